"""How wide is the fabric between the two halves of its ranks, whichever they are?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from topo._bisection_forms import bisection_form
from topo._check import EDGE_KINDS, NODE_KINDS
from topo._classes import PATH_CLASSES
from topo._congestion import proven_bisection
from topo._cuts import Part, part_of, smallest_cut
from topo._fabric import Fabric
from topo._halves import smallest_of_all
from topo._hubs import proven_by_hubs
from topo._routing import ClassRoutes
from topo._waves import proven_by_waves
from topo.units import format_quantity

__all__ = ["Bisection", "bisections"]

Ints = NDArray[np.intp]
#: A bracket this narrow is worth no rough proof.
_NARROW = 0.9
_SWITCH = NODE_KINDS.index("switch")


@dataclass(frozen=True)
class Bisection:
    """Bandwidth between the two halves of some ranks, the worst halves: exact or a bracket.

    Attributes
    ----------
    lower, upper : float
        Proven bandwidth, and that of a cut found [bytes/s, one direction]; equal where
        both meet.
    method : str
        How they are known: starts with "exact", "closed form" or "bracket".
    ranks : int
        Ranks that are halved: all for scale-out, the worst domain's for scale-up, the
        worst host's for pcie.
    first : str
        First of those ranks.
    """

    lower: float
    upper: float
    method: str
    ranks: int
    first: str

    @property
    def exact(self) -> bool:
        """Whether the bracket is closed."""
        return self.lower == self.upper

    def __str__(self) -> str:
        upper = format_quantity(self.upper, "bandwidth")
        return upper if self.exact else f"{format_quantity(self.lower, 'bandwidth')} to {upper}"


def bisections(fabric: Fabric, routed: Callable[[int], ClassRoutes | None]) -> dict[str, Bisection]:
    """Return the worst bisection of every path class that joins ranks.

    Parameters
    ----------
    fabric : Fabric
        The topology.
    routed : callable
        Number of a path class -> its routes, which prove lower bounds where nothing shorter
        does; None where they are too many.
    """
    found = {}
    for number, kind in enumerate(PATH_CLASSES):
        brackets: dict[object, Bisection] = {}
        for links, ranks in parts(fabric, kind):
            part = part_of(fabric, links, ranks)
            at = tuple(fabric.coordinates[rank] for rank in ranks) if part.size == part.n else ((),)
            key = part.key, at
            if key not in brackets:
                values = _bracket(fabric, part, links, ranks, at, partial(routed, number))
                brackets[key] = Bisection(*values, len(ranks), fabric.rank_labels[ranks[0]])
        if brackets:
            found[kind] = min(brackets.values(), key=lambda bracket: (bracket.upper, bracket.lower))
    return found


def _bracket(
    fabric: Fabric, part: Part, links: Ints, ranks: Ints, at: tuple[tuple[int, ...], ...],
    routed: Callable[[], ClassRoutes | None],
) -> tuple[float, float, str]:  # fmt: skip
    """Return lower and upper end and how they are known, the cheapest proof that closes first."""
    if form := bisection_form(part, at):
        return form[0], form[0], f"closed form: {form[1]}"
    every = _all_pass(fabric, links)
    proofs = [(proven_by_hubs(part) if every else 0.0, "all ranks sending to the top of the fabric at once")]
    upper = smallest_cut(part, enough=proofs[0][0])
    if upper == 0:
        return 0.0, 0.0, "exact: nothing joins some halves"
    if every and not _meet(proofs[0][0], upper):
        if (least := smallest_of_all(part)) is not None:
            return least, least, "exact: every half tried"
        proofs.append((proven_by_waves(part), "the slowest wave"))
    routes = None if _meet(max(proofs)[0], upper) else routed()
    if routes is not None:
        proofs.append(proven_bisection(fabric, routes, ranks, rough=max(proofs)[0] < _NARROW * upper))
    lower, how = max(proofs)
    lower = _whole(lower, part.bandwidth)
    if _meet(lower, upper):
        return upper, upper, f"exact: a cut found is as small as proven by {how}"
    proof = f"what is proven by {how}" if lower else "no proof"
    more = "" if routes is not None else " (not by routes: too many pairs)"
    return lower, upper, f"bracket: the smallest cut found, and {proof}{more}"


def _meet(lower: float, upper: float) -> bool:
    return lower >= upper * (1 - 1e-9)


def _whole(lower: float, bandwidth: NDArray[np.float64]) -> float:
    """Round up to what a cut can be, where every link is a multiple of the thinnest."""
    thin = float(bandwidth.min())
    counts = bandwidth / thin
    return thin * math.ceil(lower / thin - 1e-6) if (np.abs(counts - np.round(counts)) < 1e-9).all() else lower


def _all_pass(fabric: Fabric, links: Ints) -> bool:
    """Whether all that is no rank passes any traffic: no NIC, no CPU, no switch that does not forward."""
    between = np.setdiff1d(np.concatenate([fabric.source[links], fabric.target[links]]), fabric.ranks)
    return bool((fabric.forwards[between] & (fabric.node_kind[between] == _SWITCH)).all())


def parts(fabric: Fabric, kind: str) -> list[tuple[Ints, Ints]]:
    """Return directed links and ranks to be halved: all of scale-out, else what is joined."""
    kinds = (kind, "pcie") if kind == "scale-out" else (kind,)
    links = np.flatnonzero(np.isin(fabric.link_kind, [EDGE_KINDS.index(one) for one in kinds]))
    if kind == "scale-out":
        there = (fabric.link_kind[links] == EDGE_KINDS.index(kind)).any()
        return [(links, np.arange(fabric.n_ranks))] if there and fabric.n_ranks > 1 else []
    n = len(fabric.labels)
    joined = coo_array((np.ones(len(links)), (fabric.source[links], fabric.target[links])), shape=(n, n))
    home = connected_components(joined, directed=False)[1]
    sizes = np.bincount(home[fabric.ranks])
    by_home = np.argsort(home[fabric.source[links]], kind="stable")
    links = links[by_home]
    homes = home[fabric.source[links]]
    return [
        (links[np.searchsorted(homes, h) : np.searchsorted(homes, h, side="right")],
         np.flatnonzero(home[fabric.ranks] == h))
        for h in dict.fromkeys(home[fabric.ranks].tolist()) if sizes[h] > 1
    ]  # fmt: skip
