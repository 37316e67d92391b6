"""Which cut is tightest? Named sets of nodes, and what must leave them over what they can send.

Bytes from ranks in a set to ranks outside must cross a link out of it, of those the flows
may use: T >= bytes / bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives._concurrent_flow import Demand, cheapest
from collectives._symmetry import members
from topo import EDGE_KINDS, Fabric

__all__ = ["Cut", "cut_named", "level_sides", "named_sides", "tightest"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
Side = tuple[str, Bools]
_MOST_LEVELS = 64


@dataclass(frozen=True)
class Cut:
    """What must cross [bytes], what can [bytes/s], and where that is."""

    n_bytes: float = 0.0
    bandwidth: float = np.inf
    name: str = "nothing is sent"

    @property
    def seconds(self) -> float:
        """Least time [s]."""
        return self.n_bytes / self.bandwidth


def named_sides(fabric: Fabric, node_class: Ints) -> Iterator[Side]:
    """Yield a GPU, a host, a domain of every class, and halves of a torus, (nodes,) bool each."""
    for rank in members(node_class[fabric.ranks])[0]:
        side = np.zeros(len(fabric.labels), dtype=bool)
        side[fabric.ranks[rank]] = True
        yield fabric.rank_labels[rank], side
    for what, number in (("host", fabric.host), ("domain", fabric.domain)):
        seen = set()
        for one in range(int(number.max(initial=-1)) + 1):
            side = number == one
            look = np.sort(node_class[side]).tobytes()
            inside = np.flatnonzero(side[fabric.ranks])
            if len(inside) and look not in seen:
                seen.add(look)
                yield f"the {what} of {fabric.rank_labels[inside[0]]}", side
    yield from _halves(fabric)


def _halves(fabric: Fabric) -> Iterator[Side]:
    """Halves of the grid on which all ranks have coordinates, across every axis."""
    axes = {len(at) for at in fabric.coordinates}
    if len(axes) != 1 or axes == {0}:
        return
    for axis, at in enumerate(np.array(fabric.coordinates).T):
        side = np.zeros(len(fabric.labels), dtype=bool)
        side[fabric.ranks] = at < (at.max() + 1) // 2
        yield f"half across axis {axis}", side


def level_sides(demand: Demand, price: Floats, node_class: Ints) -> Iterator[Side]:
    """Yield what lies nearer, in price, than some node to a source: of a single source or target the smallest cut.

    For flows on the whole network.
    """
    few = demand.fewer_sources()
    (network, n_bytes), fabric = few.parts[0], demand.fabric
    first = [int(i) for i in members(node_class[fabric.ranks[demand.ranks]])[0] if n_bytes[i].any()]
    for rows, path in cheapest(network, price, demand.ranks[first]):
        for i, row in zip(first[rows], path, strict=True):
            for level in np.unique(np.round(row[np.isfinite(row)], 12))[:_MOST_LEVELS]:
                near = row <= level + 1e-12
                yield _called(fabric, near, fabric.rank_labels[demand.ranks[i]]), near


def _called(fabric: Fabric, near: Bools, source: str) -> str:
    inside = int(near[fabric.ranks].sum())
    return source if inside == 1 else f"{inside:,} of {fabric.n_ranks:,} ranks around {source}"


def tightest(demand: Demand, sides: Iterator[Side]) -> Cut:
    """Return the cut that takes longest: of each side, out and in, by path class and over all."""
    fabric, best = demand.fabric, Cut()
    groups = [[part] for part in demand.parts] + ([list(demand.parts)] if len(demand.parts) > 1 else [])
    usable = [np.unique(np.concatenate([network.link for network, _ in group])) for group in groups]
    totals = [np.sum([n_bytes for _, n_bytes in group], axis=0) for group in groups]
    for name, side in sides:
        for outward in (side, ~side):
            here = outward[fabric.ranks[demand.ranks]].astype(float)
            for links, n_bytes in zip(usable, totals, strict=True):
                crossing = links[outward[fabric.source[links]] & ~outward[fabric.target[links]]]
                amount = float(here @ n_bytes @ (1 - here))
                cut = Cut(amount, float(fabric.bandwidth[crossing].sum()))
                if amount and cut.seconds > best.seconds * (1 + 1e-9):
                    best = Cut(amount, cut.bandwidth, cut_named(fabric, name, outward is side, crossing))
    return best


def cut_named(fabric: Fabric, name: str, out: bool, links: Ints) -> str:
    kinds = " and ".join(EDGE_KINDS[kind] for kind in np.unique(fabric.link_kind[links]))
    return f"{'out of' if out else 'into'} {name}: {len(links):,} {kinds} link{'s' if len(links) > 1 else ''}"
