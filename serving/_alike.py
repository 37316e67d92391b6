"""Which groups of ranks are alike, so that a collective takes as long in each?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from topo import EDGE_KINDS, NODE_KINDS, Routes

__all__ = ["Alike"]

Ints = NDArray[np.intp]

#: Rules under which a flow's way depends on what is next to it, and not on its number.
_BY_NEIGHBOURS = ("ecmp", "even", "paths")
_SWITCH = NODE_KINDS.index("switch")


class Alike:
    """Tells groups apart by what the time of their collectives depends on.

    Ranks whose scale-up links end at the same switches are two hops apart, whatever else the
    fabric holds: their links and those switches are all there is to it. Of ranks joined pair by
    pair it is the links between them. Any other group is only like itself.
    """

    def __init__(self, routes: Routes) -> None:
        fabric = self.fabric = routes.fabric
        self.own, self.by_neighbours = id(routes), routes.rule in _BY_NEIGHBOURS
        up = np.flatnonzero(fabric.link_kind == EDGE_KINDS.index("scale-up"))
        self.links = {(int(fabric.source[i]), int(fabric.target[i])): int(i) for i in up}
        self.ends: dict[int, tuple[int, ...]] = {}
        for a, b in sorted(self.links):
            self.ends[a] = (*self.ends.get(a, ()), b)

    def key(self, ranks: Ints) -> Hashable:
        """Return what is equal for groups alike, in this fabric or another under the same rule."""
        nodes = self.fabric.ranks[ranks].tolist()
        if self.by_neighbours and len(nodes) > 1:
            hubs = self.ends.get(nodes[0], ())
            is_switch = [self.fabric.node_kind[end] == _SWITCH for end in hubs]
            if hubs and all(is_switch) and all(self.ends.get(node) == hubs for node in nodes):
                return self._links([*product(nodes, hubs), *product(hubs, nodes)]), tuple(map(self._switch, hubs))
            if not any(is_switch) and all(pair in self.links for pair in permutations(nodes, 2)):
                return self._links(permutations(nodes, 2))
        return self.own, ranks.tobytes()

    def unlike(self, groups: Sequence[Ints]) -> list[Ints]:
        """Return the first group of each kind."""
        return list({self.key(group): group for group in reversed(groups)}.values())[::-1]

    def _links(self, pairs: Iterable[tuple[int, ...]]) -> Hashable:
        at, fabric = [self.links[a, b] for a, b in pairs], self.fabric
        return tuple(column[at].tobytes() for column in (fabric.bandwidth, fabric.latency, fabric.lanes))

    def _switch(self, node: int) -> Hashable:
        fabric = self.fabric
        return bool(fabric.reduces[node]), bool(fabric.multicasts[node]), fabric.plane_lanes[node]
