"""How long does one step of this model take on this graph?

A step is a list of operations. Each has its work, its HBM traffic and its time on the
wires. `lower` lets everything overlap; `serial` overlaps only what one kernel does; between
them two half batches take turns on the GPU and on the wires.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
from numpy.typing import ArrayLike

from collectives import Profile, plain
from serving._asked import Asked
from serving._assumptions import assumptions_of
from serving._engine import band_of, engine_of, engine_seconds, engine_work
from serving._imbalance import Imbalance, imbalance_of
from serving._layout import Layout, drafting_faults
from serving._model import Model
from serving._one_step import OneStep
from serving._operations import Part
from serving._plan import PlacementPlan
from serving._software import ProfileLike, Software
from serving._times import PLAIN_TIMES, TIMES, rates_of, times_of
from serving._workload import Workload
from topo import Fabric, Fault, InputError, Routes, suggest
from topo.units import format_quantity

__all__ = ["Step", "step"]


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """Time, memory and rate of one step.

    Attributes
    ----------
    lower : float
        One token through all layers if everything overlaps [s].
    serial : float
        The same if only a kernel's own compute and memory traffic overlap [s].
    two_batch : float
        The same if two half batches take turns on GPU and wires, `serial` where that is no faster [s].
    times : mapping of str to float
        These, the two rules of thumb and what an engine takes, if the profile is one, by name: see `TIMES` [s].
    band : (float, float) or None
        Where nine in ten measured times of the engine lie [s].
    time : str
        The name rates are worked out at.
    seconds : float
        Its time [s].
    parts : tuple of Part
        Operations in order; their seconds sum to `serial`.
    binding : str
        The longest part and what it waits for.
    binding_link : str
        Link and its class that the experts' slower all-to-all waits for; empty without one.
    remote_share : float
        Part of dispatched bytes that leaves the scale-up domain, own GPU counted.
    memory_per_gpu : float
        Weights and KV cache of the fullest GPU [bytes].
    memory_usable : float
        HBM less the reserve [bytes].
    fits : bool
        Whether the one is within the other.
    headroom : float
        What is left; below zero what is missing [bytes].
    most_sequences : int
        Sequences per GPU that would fit.
    tokens_per_second : float
        New tokens of all sequences in flight, at `seconds`; unequal stages wait for the
        slowest. Of a prefill the tokens of prompts.
    tokens_per_user : float
        Tokens a sequence gains per second; 0 in a prefill [1/s].
    weight_bytes, kv_bytes : float
        What `memory_per_gpu` is made of [bytes].
    experts_per_gpu : int
        Expert slots of one layer on the fullest GPU.
    imbalance : Imbalance or None
        How uneven the experts' work is; None for a dense model.
    layout : Layout
        As given.
    reason : str
        Why it does not fit; empty when it does.
    assumptions : tuple of str
        Everything that was filled in.
    """

    lower: float
    serial: float
    two_batch: float
    times: Mapping[str, float]
    band: tuple[float, float] | None
    time: str
    seconds: float
    parts: tuple[Part[float], ...]
    binding: str
    binding_link: str
    remote_share: float
    memory_per_gpu: float
    memory_usable: float
    fits: bool
    headroom: float
    most_sequences: int
    tokens_per_second: float
    tokens_per_user: float
    weight_bytes: float
    kv_bytes: float
    experts_per_gpu: int
    imbalance: Imbalance | None
    layout: Layout
    reason: str
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        low, high = format_quantity(self.lower, "seconds"), format_quantity(self.serial, "seconds")
        fits = "fits" if self.fits else f"does not fit: {self.reason}"
        return f"Step({low} .. {high} per token at EP {self.layout.ep}, bound by {self.binding}; {fits})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        result: dict[str, Any] = plain(self)
        return result


def step(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    layout: Layout | None = None,
    plan: PlacementPlan | None = None,
    expert_load: ArrayLike | None = None,
    routing: str | Routes = "ecmp",
    profile: ProfileLike = "ideal",
    expert_profile: ProfileLike | None = None,
    time: str | None = None,
) -> Step:
    """Return the time of one step of a model on a graph.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology; GPU nodes name a chip whose numbers the graph holds.
    model : Model
        From `load_model`.
    workload : Workload
        Phase, context, batch, dtypes.
    layout : Layout, optional
        By default expert parallelism over all ranks (a dense model: one GPU).
    plan : PlacementPlan, optional
        Where experts and layers are; by default in order and as equal as they divide.
    expert_load : (experts,) or (MoE layers, experts) array, optional
        Relative load of the experts; uniform by default.
    routing
        As `collectives.cost`.
    profile : str, path or Profile, optional
        Software: of collectives, as `collectives.cost` takes it, or a serving engine: a name of
        `list_engines`, or what `load_engine` returns. An engine's own constants stand for its collectives.
    expert_profile : str, path or Profile, optional
        Software of dispatch and combine; by default `profile`. One of expert layers alone leaves
        the other collectives ideal.
    time : str, optional
        Which of `TIMES` rates are worked out at; by default the engine's, without one `serial`.

    Returns
    -------
    Step
        A layout that does not fit is a result with a reason.

    Raises
    ------
    InputError
        A layout that cannot exist, a chip without numbers, a plan for another layout.

    Examples
    --------
    >>> import topo, serving
    >>> step(
    ...     topo.load("gb200-nvl72"), serving.load_model("deepseek-v3"), Workload(batch_per_gpu=114)
    ... ).experts_per_gpu
    4
    """
    engine = engine_of(profile, expert_profile)
    time = ("engine" if engine else "serial") if time is None else time
    asked = Asked(graph, model, workload, layout, plan, expert_load, routing)
    _require_words(time, model, workload, engine)
    software = Software.load("ideal" if engine else profile, expert_profile)
    before = asked.stages(asked.usual, software) if plan is not None else None
    worked = asked.stages(plan or asked.usual, software)
    return _result(worked, before, time, engine, uniform=expert_load is None, capped=asked.capped)


def _require_words(time: str, model: Model, workload: Workload, engine: Profile | None) -> None:
    faults = []
    if not isinstance(time, str) or time not in TIMES:
        faults.append(Fault("time", time, "is not known", suggest(str(time), TIMES)))
    if time == "engine" and engine is None:
        faults.append(Fault("time", time, "needs an engine as profile", "Name one of `list_engines`."))
    faults += drafting_faults(model, workload)
    if faults:
        raise InputError(*faults)


def _result(
    worked: OneStep, before: OneStep | None, time: str, engine: Profile | None, *, uniform: bool, capped: int
) -> Step:  # fmt: skip
    times = {name: float(seconds) for name, seconds in times_of(worked, *PLAIN_TIMES).items()}
    parts = worked.all_parts
    band, notes = None, list[str]()
    if engine is not None:
        work = engine_work(parts, worked.model, worked.layout, worked.workload.draft)
        times["engine"] = float(engine_seconds(engine.constants, work))
        band, notes = band_of(times["engine"], engine, worked.chip.name)
    weights, kv, each = max(worked.memory(), key=lambda row: row[0] + row[1])
    usable = worked.chip.hbm_bytes * (1 - worked.workload.hbm_reserve)
    fits = weights + kv <= usable
    most = max(0, math.floor((usable - weights) / (each * worked.layout.tp * worked.layout.cp))) if each else 0
    longest = max(parts, key=lambda part: part.seconds)
    uneven = imbalance_of(worked, before)
    rates = rates_of(worked, times[time])
    return Step(
        lower=times["lower"], serial=times["serial"], two_batch=times["two_batch"], times=times, band=band, time=time,
        seconds=times[time], parts=tuple(parts), binding=f"{longest.name} ({longest.resource})",
        binding_link=uneven.hot_link if uneven else "", remote_share=uneven.remote_share if uneven else 0.0,
        memory_per_gpu=weights + kv, memory_usable=usable, fits=fits, headroom=usable - weights - kv,
        most_sequences=most, tokens_per_second=rates[0], tokens_per_user=rates[1], weight_bytes=weights, kv_bytes=kv,
        experts_per_gpu=int(worked.experts_per_rank.max(initial=0)), imbalance=uneven, layout=worked.layout,
        reason="" if fits else _why_not(worked, weights, kv, usable, most),
        assumptions=(*_assumptions(worked, uniform, capped), *notes),
    )  # fmt: skip


def _why_not(worked: OneStep, weights: float, kv: float, usable: float, most: int) -> str:
    size = [format_quantity(n, "bytes") for n in (weights + kv, usable, weights, kv, weights + kv - usable)]
    if weights > usable:
        alone = f"the weights alone are {format_quantity(weights - usable, 'bytes')} too much"
    else:
        alone = f"{most:,} sequences per GPU would fit"
    need = f"needs {size[0]} per GPU of {size[1]} usable (weights {size[2]}, KV cache {size[3]})"
    return f"{need}: {size[4]} too much; {alone}"


def _assumptions(worked: OneStep, uniform: bool, capped: int) -> tuple[str, ...]:
    layout, work = worked.layout, worked.workload
    count = layout.stage // layout.ep
    groups = "one expert-parallel group" if count == 1 else f"{count} expert-parallel groups of {layout.ep} GPUs"
    software = worked.software
    # A library of expert layers copies tokens in its own way, unless another one is asked for.
    own = software.copies_its_own_way and work.copies == "direct"
    said = list(assumptions_of(
        worked.routes.fabric, worked.model, work, worked.chip, uniform=uniform, profile=software.name,
        groups=groups, copies=software.experts.copies if own else None,
    ))  # fmt: skip
    predicted = [line for found, _ in worked.slowest.values() for line in found.assumptions]
    said += dict.fromkeys(line for line in predicted if line.startswith(("profile ", "no ")))
    if capped:
        cap = f"1/top_k = 1/{worked.model.top_k}"
        said.append(f"{capped} expert loads above {cap} are capped: a token goes to an expert once")
    if layout.tp > 1:
        said.append("tensor-parallel groups are costed one by one: links two of them share are not counted twice")
    if layout.cp > 1:
        said.append("context parallelism: tokens and attention divide evenly; states are handed on free")
    if work.chunk is not None:
        said.append(
            f"a piece of {work.chunk} tokens in the middle of a prompt of {work.prompt_tokens} on every replica"
        )
    return tuple(said)
