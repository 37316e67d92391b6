"""How long is a step if its operations share time in this way or that, and how many tokens a second is it?"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np

from serving._elementwise import Number, larger, smaller
from serving._operations import overlapped
from serving._stages import Stages
from serving.laws import lecture_seconds, matmul_flop, scaling_book_seconds

__all__ = ["PLAIN_TIMES", "TIMES", "rates_of", "times_of"]

#: How the operations of a step share time: what each name of `Step.times` means.
TIMES: dict[str, str] = {
    "lower": "everything overlaps: the most used of compute, memory and wires",
    "two_batch": "two half batches take turns on GPU and wires",
    "serial": "one operation after the other; a kernel's compute and memory overlap",
    "lecture": "the lecture's max(compute, weights + KV cache): no wires, no attention arithmetic",
    "scaling_book": "the scaling book's KV cache + max(compute, weights): no wires, no attention arithmetic",
    "engine": "what a serving engine takes: kernels below full rate, launches (profile names one)",
}
#: Those that take no engine.
PLAIN_TIMES = tuple(name for name in TIMES if name != "engine")


def times_of(worked: Stages[Number], *names: str) -> dict[str, Number]:
    """Return the times of these names, some of `PLAIN_TIMES` [s]."""
    return {name: _TIMES[name](worked) for name in names}


def rates_of(worked: Stages[Number], seconds: Number) -> tuple[Number, Number]:
    """Return new tokens per second of all sequences in flight, and of one sequence (0 in a prefill).

    Unequal stages wait for the slowest; `seconds` is the time of the step rates are worked out at.
    """
    work, flight = worked.workload, worked.layout.in_flight
    stages = [sum(part.seconds for part in stage) for stage in worked.parts]
    slowest = reduce(larger, stages) / _serial(worked)
    period: Number = seconds * larger(1.0, flight * slowest)
    if work.phase == "prefill":
        return worked.all_tokens * flight / period, 0.0 * period
    return worked.all_sequences * flight * work.emitted / period, work.emitted / period


def _lower(worked: Stages[Number]) -> Number:
    sends = worked.sends.seconds if worked.sends else 0.0
    return sum((overlapped(stage) for stage in worked.parts), 0.0 * worked.context) + sends


def _serial(worked: Stages[Number]) -> Number:
    return sum((part.seconds for part in worked.all_parts), 0.0 * worked.context)


def _two_batch(worked: Stages[Number]) -> Number:
    """Take turns where there are two sequences to part, and where it is faster than not to."""
    serial = _serial(worked)
    can_halve = reduce(larger, [one.sequences for one in worked.slices]) >= 2
    found: Any = np.where(can_halve, smaller(serial, worked.two_batch()), serial)
    return cast(Number, found)


def _simple(law: Callable[..., Number]) -> Callable[[Stages[Number]], Number]:
    def seconds(worked: Stages[Number]) -> Number:
        model, chip, work, stage = worked.model, worked.chip, worked.workload, worked.layout.stage
        met = model.active_params - (model.embedding_params if model.head_params else 0)
        read = 0.0 * worked.context + work.cached if work.phase == "prefill" else worked.context
        caches = worked.all_sequences * model.kv_bytes(read, work.kv_dtype)
        flop = matmul_flop(worked.all_tokens, float(met))
        return law(flop, stage * chip.rate(model.weight_dtype), model.total_weight_bytes, caches,
                   stage * chip.hbm_bandwidth)  # fmt: skip

    return seconds


_TIMES = {
    "lower": _lower, "two_batch": _two_batch, "serial": _serial, "lecture": _simple(lecture_seconds),
    "scaling_book": _simple(scaling_book_seconds),
}  # fmt: skip
