"""How long will a library take, given what its wires need and a profile's constants? One law per row, many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._tuner_law import model_seconds
from collectives._tuning import tuned_seconds

__all__ = ["LAWS", "Features", "choice_weights", "stacked"]

Floats = NDArray[np.float64]
Constants = Mapping[str, Any]

#: Exponent of the weights by which the choices of NCCL's table are mixed: near a switch point real libraries differ.
_SHARPNESS = 15.0
#: Order of the soft minimum of an all-to-all of flags and one of chunks: the library takes the faster.
_SOFT = 4.0
#: Sizes [bytes]: where a flag has become a payload, and a peer's chunks go in rounds.
_RAMP, _ROUNDS = 20e3, 3e6


@dataclass(frozen=True)
class Features:
    """What a prediction needs to know of collectives on a graph, in arrays of one length.

    Attributes
    ----------
    ranks, domains, hosts : (rows,) float
        Taking part, and the scale-up domains and hosts that they are in.
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
    hosts: Floats
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


def choice_weights(f: Features) -> Floats:
    """Return the weights of `CHOICES`, which sum to one."""
    seconds = tuned_seconds(f.rounds * (f.ranks - 1), f.up, f.nvls, f.bandwidth)
    weights = (seconds.min(axis=0) / seconds) ** _SHARPNESS
    found: Floats = weights / weights.sum(axis=0)
    return found


def _steps(f: Features) -> Floats:
    """Return the steps whose latencies add up: beyond eight ranks trees, so each doubling one more, not each rank."""
    within = np.minimum(f.ranks, 8)
    return np.asarray(f.rounds * (within - 1 + np.log2(np.maximum(f.ranks / 8, 1))))


def collective_seconds(c: Constants, f: Features) -> Floats:
    """Return the time of collectives that send bytes [s]."""
    steps, environment = _steps(f), c["latency.environment"]
    between = c["scale_out.step"] * f.rounds * np.log2(f.domains) * environment
    low = (c["latency.base"] + c["latency.step"] * steps) * environment
    ramp = 1 + c["latency.ramp"] * f.n_bytes / (f.n_bytes + _RAMP)
    reduces = f.rounds > 1
    own = np.where(reduces, c["simple.reduce_own"], c["simple.own"])
    efficiency = np.where(reduces, c["simple.reduce_efficiency"], c["simple.efficiency"])
    reduced = np.where(np.isfinite(f.nvls), f.nvls, 0.0) / c["nvls.efficiency"]
    each = np.array(
        [
            low * ramp + _body(c, f, f.up / c["ll.efficiency"]),
            _norm(1.5, low * c["ll128.latency"], _body(c, f, f.up / c["ll128.efficiency"])),
            c["simple.base"] * environment + c["simple.step"] * steps
            + _body(c, f, _moved(f, own) / efficiency, c["simple.pipeline"] * steps),
            c["nvls.base"] * environment + _body(c, f, reduced, c["nvls.pipeline"] * f.ranks),
        ]
    )  # fmt: skip
    found = np.exp((choice_weights(f) * np.log(each)).sum(axis=0))
    return np.asarray(np.where(f.exchange, _exchange_seconds(c, f), found) + between)


def _moved(f: Features, own: Any) -> Floats:
    """Return the busiest link's time with a part of a rank's own block, which its GPU moves too [s]."""
    return np.asarray(f.up * (f.ranks - 1 + own) / np.maximum(f.ranks - 1, 1))


def _body(c: Constants, f: Features, up: Floats, chunk: Any = 0.0) -> Floats:
    """Return the time of all bytes: chunks of the best size fill a pipeline `chunk` long; both classes overlap [s]."""
    return _norm(c["scale_out.overlap"], up + 2 * np.sqrt(chunk * up), f.out / c["scale_out.efficiency"])


def _exchange_seconds(c: Constants, f: Features) -> Floats:
    rank, environment = c["exchange.rank"] * f.ranks, c["latency.environment"]
    low = (c["exchange.base"] + rank) * environment + _body(c, f, f.up / c["exchange.low_efficiency"])
    moved = _moved(f, c["exchange.own"]) / c["exchange.efficiency"]
    launch = (
        c["exchange.bulk_base"] + rank + c["exchange.rounds"] * _above(f.n_bytes / f.ranks, _ROUNDS)
    ) * environment
    bulk = _norm(c["exchange.norm"], launch, _body(c, f, moved, c["exchange.pipeline"] * f.ranks))
    wires = np.maximum(f.up, f.out)  # what comes on top is the less of two: neither takes less than its wires
    return np.asarray(wires + ((low - wires) ** -_SOFT + (bulk - wires) ** -_SOFT) ** (-1 / _SOFT))


def _above(n_bytes: Floats, size: float) -> Floats:
    """Return 0 below a size and 1 above it, a half at it."""
    return np.asarray(1 / (1 + (size / np.maximum(n_bytes, 1.0)) ** 4))


def expert_seconds(c: Constants, f: Features) -> Floats:
    """Return the time of an expert layer's dispatch or combine [s]."""

    def back(name: str) -> Any:
        return np.where(f.combine, c[name], 1.0)

    doublings = np.log2(np.maximum(f.ranks / 2, 1))
    grown = (
        c["latency.rank"] * doublings + c["latency.hosts"] * (f.hosts > 1) + c["latency.scale_out"] * (f.domains > 1)
    )
    latency = c["latency.base"] * back("latency.combine") + grown * back("latency.combine_rank")
    latency = latency * c["latency.environment"]
    crowd = 1 + c["wire.crowd"] * np.log2(np.maximum(f.ranks / 8, 1))
    up = f.up * crowd / np.minimum(c["wire.efficiency"] * back("wire.combine"), 1.0)
    out = f.out / np.minimum(c["scale_out.efficiency"] * back("scale_out.combine"), 1.0)
    local = f.tokens * c["token.seconds"] * back("token.combine")
    wires = _norm(np.where(f.combine, c["scale_out.combine_overlap"], c["scale_out.overlap"]), up, out)
    body = _norm(c["token.overlap"], wires, local)
    body = body + 2 * np.sqrt(c["wire.pipeline"] * body)
    return _norm(c["latency.norm"], latency, body)


#: Law -> (constants, features) -> seconds of every row.
LAWS: dict[str, Callable[[Constants, Features], Floats]] = {
    "collective": collective_seconds,
    "expert": expert_seconds,
    "nccl-model": model_seconds,
}
