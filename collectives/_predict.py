"""How long will a library take, given what its wires need and a profile's constants? One law per row, many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._tuning import tuned_seconds

__all__ = ["LAWS", "Features", "chosen", "stacked"]

Floats = NDArray[np.float64]
Constants = Mapping[str, Any]

#: Exponent of the weights by which the choices of NCCL's table are mixed: near a switch point real libraries differ.
_SHARPNESS = 10.0
#: Size at which a flag has become a payload [bytes], and where an all-to-all goes from flags to chunks.
_RAMP, _CHUNKS = 20e3, 100e3


@dataclass(frozen=True)
class Features:
    """What a prediction needs to know of collectives on a graph, in arrays of one length.

    Attributes
    ----------
    ranks, domains : (rows,) float
        Taking part, and the scale-up domains that they are in.
    rounds : (rows,) float
        Times that a block goes round: 2 in an all-reduce, else 1.
    n_bytes : (rows,) float
        nccl-tests' size; 0 of an expert layer [bytes].
    bandwidth : (rows,) float
        Nominal scale-up bandwidth of a GPU [bytes/s].
    up, out : (rows,) float
        Time of the busiest scale-up and scale-out link at full rate [s].
    nvls : (rows,) float
        The same of in-switch reduction; infinite where there is none [s].
    exchange : (rows,) bool
        All-to-all.
    combine : (rows,) bool
        Expert layer's way back.
    tokens : (rows,) float
        Tokens per rank of an expert layer.
    """

    ranks: Floats
    domains: Floats
    rounds: Floats
    n_bytes: Floats
    bandwidth: Floats
    up: Floats
    out: Floats
    nvls: Floats
    exchange: NDArray[np.bool_]
    combine: NDArray[np.bool_]
    tokens: Floats


def stacked(rows: list[Features]) -> Features:
    """Return the rows of several records in one."""
    return Features(*(np.concatenate([getattr(row, f.name) for row in rows]) for f in fields(Features)))


def _norm(order: Any, *terms: ArrayLike) -> Floats:
    """Join times: the sum for order 1, the maximum for a large one."""
    found = np.array(np.broadcast_arrays(*terms), dtype=float)
    top = np.maximum(found.max(axis=0), 1e-15)
    joined: Floats = top * ((found / top) ** order).sum(axis=0) ** (1 / order)
    return joined


def chosen(f: Features) -> Floats:
    """Return the weights of `CHOICES`, which sum to one."""
    seconds = tuned_seconds(f.rounds * (f.ranks - 1), f.up, f.nvls, f.bandwidth)
    weights = (seconds.min(axis=0) / seconds) ** _SHARPNESS
    found: Floats = weights / weights.sum(axis=0)
    return found


def _ring(c: Constants, f: Features, own: Any) -> Floats:
    """Return the busiest link's time with a part of a rank's own block, which its GPU moves too."""
    return np.asarray(f.up * (f.ranks - 1 + own) / np.maximum(f.ranks - 1, 1))


def _steps(f: Features) -> Floats:
    """Return the steps whose latencies add up: beyond eight ranks trees, so each doubling one more, not each rank."""
    within = np.minimum(f.ranks, 8)
    return np.asarray(f.rounds * (within - 1 + np.log2(np.maximum(f.ranks / 8, 1))))


def collective_seconds(c: Constants, f: Features) -> Floats:
    """Return the time of collectives that send bytes [s]."""
    steps, environment = _steps(f), c["latency.environment"]
    between = c["scale_out.step"] * f.rounds * np.log2(f.domains) * environment
    out = f.out / c["scale_out.efficiency"]

    def body(up: Floats) -> Floats:
        return _norm(c["scale_out.overlap"], up, out)

    low = (c["latency.base"] + c["latency.step"] * steps) * environment
    ramp = 1 + c["latency.ramp"] * f.n_bytes / (f.n_bytes + _RAMP)
    reduces = f.rounds > 1
    own = np.where(reduces, c["simple.reduce_own"], c["simple.own"])
    efficiency = np.where(reduces, c["simple.reduce_efficiency"], c["simple.efficiency"])
    bulk = body(_ring(c, f, own) / efficiency)
    nvls = body(np.where(np.isfinite(f.nvls), f.nvls, 0.0) / c["nvls.efficiency"])
    each = np.array(
        [
            low * ramp + body(f.up / c["ll.efficiency"]),
            _norm(1.5, low * c["ll128.latency"], body(f.up / c["ll128.efficiency"])),
            c["simple.base"] * environment + c["simple.step"] * steps + bulk
            + 2 * np.sqrt(c["simple.pipeline"] * steps * bulk),
            (c["nvls.base"] + c["nvls.rank"] * f.ranks) * environment + nvls + 2 * np.sqrt(c["nvls.pipeline"] * nvls),
        ]
    )  # fmt: skip
    found = np.exp((chosen(f) * np.log(each)).sum(axis=0))
    return np.asarray(np.where(f.exchange, _exchange_seconds(c, f, body), found) + between)


def _exchange_seconds(c: Constants, f: Features, body: Callable[[Floats], Floats]) -> Floats:
    rank, environment = c["exchange.rank"] * f.ranks, c["latency.environment"]
    low = (c["exchange.base"] + rank) * environment + body(f.up / c["exchange.low_efficiency"])
    moved = body(_ring(c, f, c["exchange.own"]) / c["exchange.efficiency"])
    bulk = (c["exchange.bulk_base"] + rank) * environment + moved
    bulk = bulk + 2 * np.sqrt(c["exchange.pipeline"] * f.ranks * moved)
    part = 1 / (1 + (_CHUNKS / np.maximum(f.n_bytes, 1.0)) ** 4)
    return np.asarray(low ** (1 - part) * bulk**part)


def expert_seconds(c: Constants, f: Features) -> Floats:
    """Return the time of an expert layer's dispatch or combine [s]."""

    def back(name: str) -> Any:
        return np.where(f.combine, c[name], 1.0)

    doublings = np.log2(np.maximum(f.ranks / 2, 1))
    latency = (c["latency.base"] + c["latency.rank"] * doublings) * back("latency.combine")
    latency = (latency + c["latency.scale_out"] * (f.domains > 1)) * c["latency.environment"]
    crowd = 1 + c["wire.crowd"] * np.log2(np.maximum(f.ranks / 8, 1))
    up = f.up * crowd / (c["wire.efficiency"] * back("wire.combine"))
    out = f.out / (c["scale_out.efficiency"] * back("scale_out.combine"))
    local = f.tokens * c["token.seconds"] * back("token.combine")
    wires = _norm(c["scale_out.overlap"], up, out)
    body = _norm(c["token.overlap"], wires, local)
    body = body + 2 * np.sqrt(c["wire.pipeline"] * body)
    return _norm(c["latency.norm"], latency, body)


#: Law -> (constants, features) -> seconds of every row.
LAWS: dict[str, Callable[[Constants, Features], Floats]] = {
    "collective": collective_seconds,
    "expert": expert_seconds,
}
