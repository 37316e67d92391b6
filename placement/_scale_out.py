"""How fast must scale-out be before a layer over several domains beats one domain?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from placement._widths import Terms, WidthStep
from topo import EDGE_KINDS, NODE_KINDS, Fabric, Routes, route, scale

__all__ = ["scale_out_needed", "scale_out_per_rank"]

#: Factors on the bandwidth of the topology between which the answer is sought.
_SLOWEST, _FASTEST = 1e-9, 1e9


def scale_out_per_rank(fabric: Fabric) -> float:
    """Return the scale-out bandwidth that leaves GPUs or their NICs, per rank and direction [bytes/s]."""
    ends = [NODE_KINDS.index(kind) for kind in ("gpu", "nic", "host")]
    out = fabric.link_kind == EDGE_KINDS.index("scale-out")
    leaving = out & (fabric.node_kind[fabric.source][:, None] == ends).any(axis=1)
    return float(fabric.bandwidth[leaving].sum() / fabric.n_ranks)


def scale_out_needed(routes: Routes, widths: Sequence[WidthStep], terms: Terms, one_domain: int) -> float:
    """Return the least scale-out bandwidth at which a group over several domains beats one domain.

    Parameters
    ----------
    routes : Routes
        As the topology is.
    widths : sequence of WidthStep
        All widths on it.
    terms : Terms
        Budget and overlap.
    one_domain : int
        Experts of the best layer within one domain.

    Returns
    -------
    float
        Per GPU and direction [bytes/s]; infinite when no bandwidth does.

    Notes
    -----
    At f times the bandwidth an all-to-all that scale-out binds takes at least
    T(1) - wires + wires / f. That gives a width the least f it could do with. Widths are
    tried in that order, on the graph, until none left could beat the best f found.
    """
    faster = _faster(routes)
    candidates = []
    for width in (w for w in widths if w.domains > 1):
        n = max(one_domain // width.width + 1, -(-width.model.top_k // width.width))
        if n <= width.slots and width.keeps(n, terms, 0.0):
            candidates.append((_least_possible(width, terms, n), width.width, n, width))
    best = math.inf
    for least, _, n, width in sorted(candidates, key=lambda candidate: candidate[:2]):
        if least >= best:
            break

        def spare(factor: float, width: WidthStep = width, n: int = n) -> float:
            wires = width.network(faster(factor))[0]
            return terms.budget * (1 + 1e-12) - width.seconds(n, terms.overlap, wires)

        best = min(best, _least_factor(spare, least, min(best, _FASTEST)))
    return best * scale_out_per_rank(routes.fabric)


def _least_possible(width: WidthStep, terms: Terms, n: int) -> float:
    """Return a factor on scale-out bandwidth below which n experts cannot keep the budget."""
    room = terms.budget - (width.seconds(n, terms.overlap, 0.0) if terms.overlap == "none" else 0.0)
    room -= width.all_to_all - width.scale_out_wires
    if not width.scale_out_wires:
        return _SLOWEST if room >= 0 else math.inf
    if width.profile.law != "ideal" and width.scale_out_wires <= room:
        return _SLOWEST  # latencies do not shrink with the bytes: how much slower still keeps it is for the search
    return width.scale_out_wires / room if room > 0 else math.inf


def _faster(routes: Routes) -> Callable[[float], Routes]:
    """Return routes with scale-out so many times as fast; the last few are kept."""
    kept: dict[float, Routes] = {}

    def at(factor: float) -> Routes:
        if factor not in kept:
            if len(kept) > 8:
                kept.clear()
            kept[factor] = route(scale(routes.given, kind="scale-out", bandwidth=factor), routes.asked)
        return kept[factor]

    return at


def _least_factor(spare: Callable[[float], float], low: float, high: float) -> float:
    """Return the least factor between two that leaves time to spare, to 1e-12 of itself; infinite when none does."""
    from scipy.optimize import brentq

    if low > high or spare(high) < 0:
        return math.inf
    if spare(low) >= 0:
        return low
    root = math.exp(brentq(lambda power: spare(math.exp(power)), math.log(low), math.log(high), xtol=1e-13))
    while spare(root) < 0:  # the root may lie a rounding on the wrong side
        root *= 1 + 1e-12
    return min(root, high)
