"""What time does nothing beat, for a measured row? Bounds of scope "any", each kind proven once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectives._lower_bound import lower_bound
from collectives._matching import Matched
from collectives._measured import moe_of

__all__ = ["row_bounds"]

#: What is bounded, bytes or tokens of a rank: a bound's cut holds at every size.
_UNIT = 1e9


def row_bounds(found: Sequence[Matched]) -> NDArray[np.float64]:
    """Return the least time of every row [s].

    A bound is a latency, and bytes over a cut: proven at one size it holds at every size. An
    expert layer's experts are taken as uniform; where routing may be limited to a few domains
    the smaller bound counts.
    """
    known: dict[object, tuple[float, float]] = {}
    seconds = np.zeros(len(found))
    for i, one in enumerate(found):
        row = one.row
        layer = [row.library, row.dtype, *(row.params.get(name) for name in ("hidden", "topk", "experts"))]
        key = (row.system, row.domains, row.ranks, row.kind, *(layer if row.is_expert else ()))
        if key not in known:
            known[key] = _parts(one)
        fixed, each = known[key]
        seconds[i] = fixed + each * (float(row.params["tokens"]) if row.is_expert else row.n_bytes)
    return seconds


def _parts(one: Matched) -> tuple[float, float]:
    """Return a bound's latency [s], and its seconds per byte or token."""
    row = one.row
    sizes = [moe_of(row, _UNIT, merged=merged) for merged in (False, True)] if row.is_expert else [_UNIT]
    bounds = [lower_bound(one.routes.fabric, row.kind, size, ranks=one.ranks, scope="any") for size in sizes]
    least = min(bounds, key=lambda bound: bound.seconds)
    return least.latency_seconds, least.bandwidth_seconds / _UNIT
