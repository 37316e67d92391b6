"""What do the lecture's curves look like on this hardware? One figure per row."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.laws import scale_up_to_scale_out_time
from figures import Line, draw_lines
from rackbound._claims import shown
from rackbound._claims_batch import RENT, crossing, knee, pass_seconds
from rackbound._claims_price import memories
from rackbound._claims_rack import distinct_gpus, named_seconds
from rackbound._lecture_case import Case
from serving import matmul_rate
from serving.laws import (
    dollars_per_token,
    kv_wall_context,
    pipeline_bytes_per_gpu,
    sparse_positions,
)
from topo import InputError, load_design
from topo.units import format_quantity

#: Matplotlib's, which this floor does not import.
Axes = Any

__all__ = ["FIGURES", "lecture_figures"]

#: Sequences on every GPU at which our step is drawn beside the lecture's.
_STEPS = (1, 4, 16, 64, 128, 256)
_BATCH = np.geomspace(1, 1e5, 201)
_PRICE_STEP = 200e3


def _stepped(case: Case) -> list[tuple[float, float]]:
    """Return sequences of a domain and time of our step [s]."""
    found = []
    for each in _STEPS:
        step = case.step(1, workload=replace(case.workload, batch=None, batch_per_gpu=each))
        found.append((float(each * case.width), step.serial))
    return found


def _latency(case: Case) -> Axes:
    gpus = case.size
    lines = {
        "max(compute, weights + KV cache)": [pass_seconds(case, b) for b in _BATCH],
        "compute": _BATCH * case.token_seconds / gpus,
        "weights": np.full_like(_BATCH, case.weights / case.bandwidth / gpus),
        "KV cache": _BATCH * case.sequence / case.bandwidth / gpus,
    }  # fmt: skip
    batches, ours = zip(*_stepped(case), strict=True)
    floor, at = format_quantity(case.weights / case.bandwidth / gpus, "seconds", 3), knee(case)
    return draw_lines(
        [*(Line(name, _BATCH, np.asarray(y) * 1e3) for name, y in lines.items()),
         Line("our step, one after the other", batches, np.asarray(ours) * 1e3, points=True)],
        xlabel="sequences on one domain", ylabel="time of a pass [ms]", marks={f"knee {at:,.0f}": at},
        heading=f"{case.model.name}'s weights take {floor} to read, as long as {at:,.0f} sequences to compute",
    )  # fmt: skip


def _cost(case: Case) -> Axes:
    def dollars(seconds: float, batch: float) -> float:
        return dollars_per_token(seconds, batch, case.size, RENT) * 1e6

    part, gpus = case.token_seconds, case.size
    lines = {
        "a pass by its sequences": [dollars(pass_seconds(case, b), b) for b in _BATCH],
        "compute": [dollars(b * part / gpus, b) for b in _BATCH],
        "weights": [dollars(case.weights / case.bandwidth / gpus, b) for b in _BATCH],
        "KV cache": [dollars(b * case.sequence / case.bandwidth / gpus, b) for b in _BATCH],
    }
    points = [(batch, dollars(seconds, batch)) for batch, seconds in _stepped(case)]
    batches, ours = zip(*points, strict=True)
    gain = lines["a pass by its sequences"][0] / lines["a pass by its sequences"][-1]
    return draw_lines(
        [*(Line(name, _BATCH, y) for name, y in lines.items()),
         Line("our step, one after the other", batches, ours, points=True)],
        xlabel="sequences on one domain", ylabel=f"cost of a million tokens at {RENT:g} $ per GPU-hour [$]",
        marks={f"knee {knee(case):,.0f}": knee(case)},
        heading=f"A batch of one costs {gain:,.0f} times as much; beyond the knee little is left to gain",
    )  # fmt: skip


def _wall(case: Case) -> Axes:
    context = np.geomspace(1e3, 1e7, 161)
    each = case.one.weight_bytes
    per = np.array([case.model.kv_bytes(n, case.workload.kv_dtype) / n for n in context])
    fits = np.array([kv_wall_context(case.room, n, k) for n, k in zip(context, per, strict=True)])
    lines = [Line("fit beside the weights", context, fits)]
    for budget in (0.05, 0.02, 0.01):
        left = budget * case.bandwidth - each
        lines.append(Line(f"read in {1e3 * budget:g} ms", context, [
            kv_wall_context(left, n, k) if left > 0 else np.nan for n, k in zip(context, per, strict=True)
        ]))  # fmt: skip
    level = knee(case) / case.size
    wall = float(np.exp(np.interp(-np.log(level), -np.log(fits), np.log(context))))
    return draw_lines(
        lines, xlabel="context [tokens]", ylabel="sequences on every GPU",
        levels={f"knee:\n{level:.0f} per GPU": level, "one": 1.0}, marks={f"{wall:,.0f} tokens": wall},
        heading=f"The KV wall: beyond {wall:,.0f} tokens a GPU holds fewer sequences than the knee asks for",
    )  # fmt: skip


def _crossing(case: Case) -> Axes:
    context, model = np.geomspace(100, 1e6, 161), case.model
    weights = case.token_seconds
    at = matmul_rate(case.chip.flops, case.workload.kv_dtype)[0]
    attention = np.array([(model.flops_per_token(n) - model.flops_per_token(1)) / at for n in context])
    read = np.array([model.kv_bytes(n, case.workload.kv_dtype) for n in context]) / case.bandwidth
    sparse = _sparse_share(context) * read
    cross = crossing(case)
    said = shown(cross, "tokens")
    return draw_lines(
        [Line("reading the KV cache", context, read * 1e6),
         Line("weights' arithmetic", context, np.full_like(context, weights * 1e6)),
         Line("with attention arithmetic", context, (weights + attention) * 1e6),
         Line("sparse: 2,048 and an index", context, sparse * 1e6)],
        xlabel="context [tokens]", ylabel="GPU time of a token at a large batch [us]",
        marks={said: cross, "Gemini's price step": _PRICE_STEP},
        heading=f"{model.name}'s memory crosses compute at {said}; Gemini's price steps up at 200,000",
    )  # fmt: skip


def _sparse_share(context: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([sparse_positions(n, 2048, 128 / 1152) / n for n in context])


def _pipeline(case: Case) -> Axes:
    stages = np.array([1, 2, 3, 4, 5, 6, 7, 8])
    micro = float(case.workload.batch_of(case.width).sum())
    shape = (micro, case.workload.context, case.sequence / case.workload.context)
    both = [pipeline_bytes_per_gpu(case.weights, *shape, case.width, int(n)) for n in stages]
    cache = [pipeline_bytes_per_gpu(0.0, *shape, case.width, int(n)) for n in stages]
    some = (1, 2, 4, 8)
    steps = [case.step(n) for n in some]
    return draw_lines(
        [Line("weights and KV cache, Nt / (E P) + b L k / E", stages, np.array(both) / 1e9),
         Line("KV cache, b L k / E", stages, np.array(cache) / 1e9),
         Line("weights, Nt / (E P)", stages, (np.array(both) - np.array(cache)) / 1e9),
         Line("our fullest GPU", some, [s.memory_per_gpu / 1e9 for s in steps], points=True),
         Line("its KV cache", some, [s.kv_bytes / 1e9 for s in steps], points=True)],
        xlabel="pipeline stages, a domain each", ylabel="memory of a GPU [GB]", log="",
        heading="More stages share out the weights; the KV cache of a GPU stays as it is",
    )  # fmt: skip


def _ratio(case: Case) -> Axes:
    layers = np.geomspace(1, 64, 61)
    told = [("lecture: 8 experts, 8 times slower", 8.0, 8.0, 2.0)]
    copies = distinct_gpus(case)
    for name in ("hgx-h800-8", "hgx-h100-8", "gb200-nvl72"):
        one = load_design(name)
        slower = one.scale_up.bandwidth / one.scale_out.per_gpu if one.scale_out else np.nan
        told.append((f"{name}: {slower:.3g} times", copies, slower, 1.5))
    lines = [Line(name, layers, [scale_up_to_scale_out_time(n, x, slower, passes) for x in layers])
             for name, n, slower, passes in told]  # fmt: skip
    points = []
    for stages in (2, 4, 8):
        step = case.step(stages)
        inside = named_seconds(step, "dispatch", "combine") / stages
        hop = named_seconds(step, "pipeline sends") / (stages - 1)
        points.append((case.model.n_moe_layers / stages, inside / hop))
    x, y = zip(*points, strict=True)
    least = math.ceil(x[0] / y[0])
    counted = f"{least} MoE layer{'s' * (least > 1)}"
    return draw_lines(
        [*lines, Line("our step", x, y, points=True)],
        xlabel="MoE layers in one rack", ylabel="time in the rack over time to the next", levels={"equal": 1.0},
        heading=f"{case.shown.design.name}: from {counted} on, the wires inside a rack take longer than those between",
    )  # fmt: skip


def _tiers(case: Case) -> Axes:
    hold, found = np.geomspace(0.1, 1e6, 281), memories(case)
    costs = {name: (fetch + each * hold) * 1e6 for name, (fetch, each) in found.items()}
    names = {"anew": "computed anew"} | {name: name for name in found if name != "anew"}
    cheapest = [list(costs)[i] for i in np.argmin(list(costs.values()), axis=0)]
    ends = {name: _span(hold[at]) for at, name in enumerate(cheapest[:-1]) if cheapest[at + 1] != name}
    until = ", ".join(f"in {names[name]} up to {end}" for name, end in ends.items())
    return draw_lines(
        [Line(names[name], hold, costs[name]) for name in names], xlabel="held for [s]",
        ylabel="cost of a million tokens, fetched once [$]", marks={"5 minutes": 300.0, "1 hour": 3600.0},
        heading=f"A cache waits cheapest {until}, then {'is ' * (cheapest[-1] == 'anew')}{names[cheapest[-1]]}",
    )  # fmt: skip


def _span(seconds: float) -> str:
    """Return a time as people say it.

    >>> _span(3.2), _span(549.0), _span(84210.0)
    ('3.2 s', '9.2 min', '23 h')
    """
    unit, size = next(
        (row for row in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)) if seconds >= row[1]), ("s", 1.0)
    )
    return f"{seconds / size:.2g} {unit}"


def _passes(case: Case) -> Axes:
    """Tokens of a sequence that pass at once: one in decode, a prompt's in prefill."""
    many = np.geomspace(1, 2e3, 161)
    sequences, gpus = float(case.workload.batch_of(case.size).sum()), case.size
    before, rate = case.workload.context, matmul_rate(case.chip.flops, case.workload.kv_dtype)[0]
    read = (case.weights / sequences + case.sequence) / case.bandwidth / many
    attention = (case.model.flops_per_token(before) - case.model.flops_per_token(1)) / rate
    ours = []
    for new in (1, 4, 16, 64, 256, 1024):
        work = replace(case.workload, phase="prefill", context=before + new, cached=before)
        step = case.step(1, workload=work)
        ours.append((float(new), step.serial * case.width / (float(work.batch_of(case.width).sum()) * new)))
    x, y = zip(*ours, strict=True)
    meet = float(read[0] / case.token_seconds)
    said = f"{read[0] / case.token_seconds:.3g} times" if meet >= 1 else f"{1 / meet:.3g} times less than"
    return draw_lines(
        [Line("reading weights and cache", many, read * 1e6),
         Line("weights' arithmetic", many, np.full_like(many, case.token_seconds * 1e6)),
         Line("with attention", many, np.full_like(many, (case.token_seconds + attention) * 1e6)),
         Line("our step", x, np.asarray(y) * 1e6, points=True)],
        xlabel=f"tokens of each sequence in a pass, after {before:,} ({sequences / gpus:.3g} sequences per GPU)",
        ylabel="GPU time of a token [us]", marks={f"{meet:.3g} tokens": meet} if meet > 1 else {},
        heading=f"A token alone waits {said} its arithmetic for memory; a prompt's share the reading",
    )  # fmt: skip


#: Name of the file -> what must be there, and what draws it.
FIGURES: dict[str, tuple[str, Callable[[Case], Axes]]] = {
    "lecture-latency": ("experts", _latency),
    "lecture-cost": ("experts", _cost),
    "lecture-kv-wall": ("experts cache room", _wall),
    "lecture-crossing": ("cache", _crossing),
    "lecture-pipeline": ("experts scale-out cache", _pipeline),
    "lecture-rack-ratio": ("experts scale-out", _ratio),
    "lecture-passes": ("experts", _passes),
    "lecture-tiers": ("cache", _tiers),
}


def lecture_figures(case: Case) -> dict[str, Axes]:
    """Draw the lecture's curves, those that the case has all for.

    Parameters
    ----------
    case : Case
        Design, model and workload.

    Returns
    -------
    dict
        Name of the file -> Axes.
    """
    drawn = {}
    for name, (needs, draw) in FIGURES.items():
        with suppress(InputError):  # a rate that the chip does not state
            if not case.lacks(needs):
                drawn[name] = draw(case)
    return drawn
