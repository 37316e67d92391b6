"""Which groups of ranks are alike, so that a collective takes as long in each?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from topo import EDGE_KINDS, NODE_KINDS, Fabric, Routes

__all__ = ["Alike"]

Ints = NDArray[np.intp]

#: Rules under which a flow's way depends on what is next to it, and not on its number.
_BY_NEIGHBOURS = ("ecmp", "even", "paths")


class Alike:
    """Tells groups apart by what the time of their collectives depends on.

    Ranks whose scale-up links end at the same switches are two hops apart, whatever else the
    fabric holds: their links and those switches are all there is to it. Any other group is
    only like itself.
    """

    def __init__(self, routes: Routes) -> None:
        self.routes = routes
        self.stars = _stars(routes.fabric) if routes.rule in _BY_NEIGHBOURS else {}

    def key(self, ranks: Ints) -> Hashable:
        """Return what is equal for groups alike, in this fabric or another under the same rule."""
        ends = [self.stars.get(int(rank)) for rank in ranks]
        if None in ends or len({end[0] for end in ends if end is not None}) > 1:
            return id(self.routes), ranks.tobytes()
        return tuple(end[1] for end in ends if end is not None)

    def unlike(self, groups: Sequence[Ints]) -> list[Ints]:
        """Return the first group of each kind."""
        return list({self.key(group): group for group in reversed(groups)}.values())[::-1]


def _stars(fabric: Fabric) -> dict[int, tuple[Hashable, Hashable]]:
    """Return of each rank all whose scale-up links end at switches: those switches, and what its links are like."""
    up = np.flatnonzero(fabric.link_kind == EDGE_KINDS.index("scale-up"))
    links = {(int(fabric.source[i]), int(fabric.target[i])): int(i) for i in up}
    ends: dict[int, list[int]] = {}
    for a, b in sorted(links):
        ends.setdefault(a, []).append(b)
    switch = NODE_KINDS.index("switch")
    found: dict[int, tuple[Hashable, Hashable]] = {}
    for rank, node in enumerate(fabric.ranks.tolist()):
        hubs = ends.get(node, [])
        if hubs and all(fabric.node_kind[hub] == switch and (hub, node) in links for hub in hubs):
            like = tuple((*_link(fabric, links[node, hub]), *_link(fabric, links[hub, node]), bool(fabric.reduces[hub]),
                          bool(fabric.multicasts[hub]), fabric.plane_lanes[hub]) for hub in hubs)  # fmt: skip
            found[rank] = tuple(hubs), like
    return found


def _link(fabric: Fabric, link: int) -> tuple[float, float, int]:
    return float(fabric.bandwidth[link]), float(fabric.latency[link]), int(fabric.lanes[link])
