"""Which layout and batch serves a traffic with fewest GPUs, in each of the two pools?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving._handover import Handover, handover
from serving._layout import Layout
from serving._model import Model
from serving._software import ProfileLike
from serving._sweep import Sweep, sweep
from serving._traffic import Traffic
from serving._workload import Workload
from topo import InputError, Routes

__all__ = ["Pool", "decode_pool", "in_phase", "prefill_pool"]

Floats = NDArray[np.float64]
Axes = Mapping[str, Any]


@dataclass(frozen=True)
class Pool:
    """Units of one layout that do one of the two phases.

    Attributes
    ----------
    layout : Layout
        Of one unit.
    batch : int
        Sequences on every GPU of a decode unit; prompts of a prefill unit's pass.
    seconds : float
        Per token of a sequence, or a pass of mean length [s].
    rate : float
        Requests a unit serves when never idle [1/s].
    units : int
        Units the traffic needs with its headroom.
    """

    layout: Layout
    batch: int
    seconds: float
    rate: float
    units: int

    @property
    def gpus(self) -> int:
        """GPUs of all units."""
        return self.units * self.layout.gpus


#: Sequences per GPU that are tried: all small numbers, and then steps of half a percent.
_BATCHES = np.unique(np.round(np.concatenate([np.arange(1, 200), np.geomspace(200, 4096, 600)])).astype(int))


def decode_pool(
    routes: Routes, model: Model, work: Workload, traffic: Traffic, axes: Axes, profile: ProfileLike
) -> Pool | str:  # fmt: skip
    """Return the pool that answers, or why there is none.

    Sequences under way have the traffic's mean context.
    """
    context = traffic.mean_context
    asked = in_phase(work, "decode", context=context, batch=None, batch_per_gpu=1)
    found = sweep(routes.fabric, model, asked, batch=_BATCHES, context=context, profile=profile, **axes)
    tpot = 1 / np.where(found.fits, found.tokens_per_user, np.nan)
    if not found.fits.any():
        return f"decode: {_nothing(found)}"
    if not (tpot <= traffic.tpot).any():
        return f"decode: {1e3 * np.nanmin(tpot):.3g} ms per token at best, and {1e3 * traffic.tpot:g} ms are promised"
    rate = found.tokens_per_second / traffic.mean_answer
    best = found.point(int(_fewest(traffic, rate, found.gpus, tpot, tpot <= traffic.tpot)[0]))
    layout = Layout(best["ep"], tp=best["tp"], pp=best["pp"])
    each = np.float64(best["tokens_per_second"] / traffic.mean_answer)
    return Pool(layout, best["batch"], 1 / best["tokens_per_user"], float(each), int(_units(traffic, each)))


def prefill_pool(
    routes: Routes, model: Model, work: Workload, traffic: Traffic, axes: Axes, decode: Pool, profile: ProfileLike
) -> tuple[Pool, Handover, float] | str:
    """Return the pool that reads prompts, what it hands over and its time to first token [s]; or why there is none.

    Of prompts alike a pass is made; a prompt waits for the pass under way.
    """
    rows = traffic.shares("prompt")
    batch = _prompts(axes)
    sweeps = [
        sweep(
            routes.fabric, model, _prefill(work, traffic, tokens), batch=batch, context=tokens, profile=profile, **axes
        )
        for tokens, _ in rows
    ]
    fits = np.all([one.fits for one in sweeps], axis=0).ravel()
    if not fits.any():
        return f"prefill: {_nothing(sweeps[-1])}"
    share = np.array([part for _, part in rows])
    # A pass of a pipeline ends every `period`; seconds are a prompt's way through it.
    news = np.array([one_new(work, traffic, tokens) for tokens, _ in rows])
    periods = np.array([n * _count(one) / one.tokens_per_second.ravel() for n, one in zip(news, sweeps, strict=True)])
    period, passes = share @ periods, share @ np.array([one.seconds.ravel() for one in sweeps])
    rate = _count(sweeps[0]) / period
    longest = next(i for i, (tokens, _) in enumerate(rows) if tokens == traffic.long_prompt)
    least = np.inf
    for i in _fewest(traffic, rate, sweeps[0].gpus.ravel(), period, fits):
        at = sweeps[longest].point(int(i))
        layout = Layout(at["ep"], tp=at["tp"], pp=at["pp"])
        prompt = replace(_prefill(work, traffic, traffic.long_prompt), batch=at["batch"])
        cuts = {"prefill": layout, "decode": decode.layout}
        sent = handover(routes.fabric, model, prompt, at["seconds"], routing=routes, **cuts)
        first = float(period[i]) + at["seconds"] + sent.exposed_seconds + decode.seconds
        least = min(least, first)
        if first <= traffic.ttft:
            pool = Pool(layout, at["batch"], float(passes[i]), float(rate[i]), int(_units(traffic, rate[i])))
            return pool, sent, first
    return f"prefill: {1e3 * least:.4g} ms to the first token at best, and {1e3 * traffic.ttft:g} ms are promised"


def in_phase(work: Workload, phase: str, **stated: Any) -> Workload:
    """Return what a workload says of types and copies in a phase of its own; guesses are of a decode."""
    free: dict[str, Any] = {"cached": 0, "chunk": None, "prompt": None}
    if phase == "prefill":
        free |= {"draft": 0, "acceptance": None}
    return replace(work, **(free | {"phase": phase} | stated))


def one_new(work: Workload, traffic: Traffic, tokens: int) -> int:
    """Return the tokens of a prompt that are not in the cache: at least its last."""
    return max(1, tokens - int(tokens * traffic.cache_hit))


def _prompts(axes: Axes) -> list[int]:
    """Return the prompts of a pass that are tried: powers of two, of one prompt and of one on every replica."""
    each = {1}
    for ep, tp in product(np.ravel(axes["ep"]).tolist(), np.ravel(axes["tp"]).tolist()):
        # A layout that cannot exist is said by the sweep.
        with suppress(InputError):
            each.add(Layout(ep, tp=tp).replicas)
    return sorted({replicas << i for replicas in each for i in range(11) if not i or replicas << i <= 1024})


def _prefill(work: Workload, traffic: Traffic, tokens: int) -> Workload:
    cached = tokens - one_new(work, traffic, tokens)
    return in_phase(work, "prefill", context=tokens, cached=cached, batch=1, batch_per_gpu=None)


def _count(found: Sweep) -> Floats:
    """Return the prompts of a pass at every point."""
    return np.broadcast_to(np.array(found.axes["batch"], dtype=np.float64)[:, None], found.fits.shape).ravel()


def _units(traffic: Traffic, rate: Any) -> Any:
    """Return the units, never idle for `rate` requests per second each, that serve the traffic with headroom."""
    return np.ceil(traffic.requests_per_second / (rate * (1 - traffic.headroom)) - 1e-9).astype(int)


def _fewest(traffic: Traffic, rate: Floats, gpus: Any, seconds: Floats, kept: Any) -> NDArray[np.intp]:
    """Return the points that keep what is promised, fewest GPUs for the traffic first, of those the quickest."""
    there = np.flatnonzero(kept)
    total = _units(traffic, rate.ravel()[there]) * gpus.ravel()[there]
    return there[np.lexsort((seconds.ravel()[there], total))]


def _nothing(found: Sweep) -> str:
    if not (found.gpus > 0).any():
        return f"no layout exists: {'; '.join(found.refused)}"
    least: Any = np.nanmin(np.where(found.gpus > 0, found.memory_per_gpu, np.nan))
    return f"nothing fits: {least / 1e9:.4g} GB per GPU at least"
