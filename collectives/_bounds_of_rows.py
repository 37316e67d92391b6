"""What time does nothing beat, for a measured row? Bounds of scope "any", each kind proven once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectives._lower_bound import lower_bound
from collectives._matching import Matched
from collectives._measured import moe_of
from collectives._moe_traffic import moe_traffic
from topo import EDGE_KINDS

__all__ = ["row_bounds"]

_UNIT = 1e9


def row_bounds(found: Sequence[Matched]) -> NDArray[np.float64]:
    """Return the least time of every row [s].

    A bound is a latency and bytes over a cut; both proven at one size hold at every size. Of
    an expert layer each token enters every GPU of its experts once, over all its links, and
    every domain of them once, over its NICs; experts are uniform. Where routing may be
    limited to a few domains the smaller bound counts.
    """
    known: dict[object, tuple[float, float]] = {}
    seconds = np.zeros(len(found))
    for i, one in enumerate(found):
        row = one.row
        key = (row.system, row.domains, row.ranks, row.kind, row.dtype, row.params.get("topk"))
        if key not in known:
            known[key] = _expert_bound(one) if row.is_expert else _bulk_bound(one)
        fixed, each = known[key]
        seconds[i] = fixed + each * (float(row.params["tokens"]) if row.is_expert else row.n_bytes)
    return seconds


def _bulk_bound(one: Matched) -> tuple[float, float]:
    """Return the bound's latency [s] and its seconds per byte."""
    bound = lower_bound(one.routes.fabric, one.row.kind, _UNIT, ranks=one.ranks, scope="any")
    return bound.latency_seconds, bound.bandwidth_seconds / _UNIT


def _expert_bound(one: Matched) -> tuple[float, float]:
    """Return no latency, and the bound's seconds per token of every rank."""
    return 0.0, min(_least_seconds(one, merged) for merged in (False, True))


def _least_seconds(one: Matched, merged: bool) -> float:
    fabric, ranks = one.routes.fabric, one.ranks
    moe = moe_of(one.row, 1.0, merged=merged)
    traffic = moe_traffic(fabric, moe, ranks=ranks)
    token = moe.hidden * moe.dispatch_bytes
    links = np.bincount(fabric.source, fabric.bandwidth, minlength=len(fabric.labels))
    own = traffic.other_gpus * token / float(links[fabric.ranks[ranks]].min())
    if one.row.domains == 1:
        return own
    out = fabric.link_kind == EDGE_KINDS.index("scale-out")
    nics = np.bincount(fabric.source[out], fabric.bandwidth[out], minlength=len(fabric.labels))[fabric.ranks]
    domain = fabric.rank_domain
    crowded = max(
        np.count_nonzero(domain[ranks] == each) / float(nics[domain == each].sum()) for each in np.unique(domain[ranks])
    )
    return max(own, traffic.other_domains * token * crowded)
