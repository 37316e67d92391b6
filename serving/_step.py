"""How long does one step of this model take on this graph?

A step is a list of operations. Each has its work, its HBM traffic and its time on the
wires. `lower` lets everything overlap; `serial` overlaps only what one kernel does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import MoE, Outer, cost, expert_shares, inclusion_shares, plain
from serving._assumptions import assumptions_of
from serving._chip import chip_numbers
from serving._dtypes import dtype_bytes
from serving._model import Model
from serving._operations import (
    Part,
    expert_part,
    experts_hit,
    kv_bytes,
    local_parts,
    merged,
    overlapped,
    resident_bytes,
    sum_parts,
    times,
)
from serving._plan import PlacementPlan, require_plan, require_records
from serving._workload import Layout, Workload
from topo import Fabric, Fault, InputError, Routes, route
from topo.units import format_quantity

__all__ = ["Step", "step"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """Time, memory and rate of one step.

    Attributes
    ----------
    lower : float
        One token through all layers if everything overlaps [s].
    serial : float
        The same if only a kernel's own compute and memory traffic overlap [s].
    parts : tuple of Part
        Operations in order; their seconds sum to `serial`.
    binding : str
        The longest part and what it waits for.
    remote_share : float
        Part of dispatched bytes that leaves the scale-up domain, own GPU counted.
    memory_per_gpu : float
        Weights and KV cache of the fullest GPU [bytes].
    memory_usable : float
        HBM less the reserve [bytes].
    fits : bool
        Whether the one is within the other.
    tokens_per_second : float
        Of all sequences in flight (pp micro-batches), at `serial`; unequal stages wait for
        the slowest.
    weight_bytes, kv_bytes : float
        What `memory_per_gpu` is made of [bytes].
    experts_per_gpu : int
        Routed experts of one layer on the fullest GPU.
    layout : Layout
        As given.
    reason : str
        Why it does not fit; empty when it does.
    assumptions : tuple of str
        Everything that was filled in.
    """

    lower: float
    serial: float
    parts: tuple[Part, ...]
    binding: str
    remote_share: float
    memory_per_gpu: float
    memory_usable: float
    fits: bool
    tokens_per_second: float
    weight_bytes: float
    kv_bytes: float
    experts_per_gpu: int
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
    profile: str = "ideal",
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
    routing, profile
        As `collectives.cost`.

    Returns
    -------
    Step
        A layout that does not fit is a result with a reason.

    Raises
    ------
    InputError
        More GPUs than there are, a chip without numbers, a plan for another layout.

    Examples
    --------
    >>> import topo, serving
    >>> step(
    ...     topo.load("gb200-nvl72"), serving.load_model("deepseek-v3"), Workload(batch_per_gpu=114)
    ... ).experts_per_gpu
    4
    """
    routes = route(graph, routing)
    require_records(model, workload, layout, plan)
    layout = layout or (Layout(plan.ep, pp=plan.pp) if plan else Layout(routes.fabric.n_ranks if model.is_moe else 1))
    return _StepModel(routes, model, workload, layout, plan, expert_load, profile).result()


class _StepModel:
    """One step being worked out: the group, the chip and the plan, and the operations over them."""

    def __init__(
        self, routes: Routes, model: Model, workload: Workload, layout: Layout,
        plan: PlacementPlan | None, expert_load: ArrayLike | None, profile: str,
    ) -> None:  # fmt: skip
        self.routes, self.model, self.workload, self.layout, self.profile = routes, model, workload, layout, profile
        self.groups = _stage_groups(routes.fabric, model, layout)
        self.chip = chip_numbers(routes.fabric, np.concatenate(self.groups))
        self.plan = plan or PlacementPlan.contiguous(model.n_experts, model.moe_layer_mask, layout)
        require_plan(self.plan, model, layout)
        self.batch = workload.batch_of(layout.ep)
        self.heaviest = int(self.batch.max())
        asked = expert_shares(model.n_experts, expert_load, model.n_moe_layers) if model.is_moe else np.zeros((0, 0))
        self.shares = inclusion_shares(asked, model.top_k) if model.is_moe else asked
        self.uniform = expert_load is None
        self.capped = int((asked > self.shares * (1 + 1e-9)).sum())
        self.remote: list[float] = []

    def result(self) -> Step:
        stages = [self._stage_parts(s) for s in range(self.layout.pp)]
        sends = self._sends()
        parts = merged([*stages, [sends] if sends else []])
        lower = sum(overlapped(stage) for stage in stages) + (sends.seconds if sends else 0.0)
        serial = sum(part.seconds for part in parts)
        slowest = max(sum(part.seconds for part in stage) for stage in stages)
        weights, kv = self._memory()
        usable = self.chip.hbm_bytes * (1 - self.workload.hbm_reserve)
        fits = weights + kv <= usable
        longest = max(parts, key=lambda part: part.seconds)
        counts = self._experts_per_rank()
        return Step(
            lower=lower, serial=serial, parts=tuple(parts), binding=f"{longest.name} ({longest.resource})",
            remote_share=float(np.mean(self.remote)) if self.remote else 0.0,
            memory_per_gpu=weights + kv, memory_usable=usable, fits=fits,
            tokens_per_second=float(self.batch.sum()) * self.layout.pp / max(serial, self.layout.pp * slowest),
            weight_bytes=weights, kv_bytes=kv, experts_per_gpu=int(counts.max(initial=0)), layout=self.layout,
            reason="" if fits else self._why_not(weights, kv, usable),
            assumptions=self._assumptions(),
        )  # fmt: skip

    def _why_not(self, weights: float, kv: float, usable: float) -> str:
        size = [format_quantity(n, "bytes") for n in (weights + kv, usable, weights, kv)]
        return f"needs {size[0]} per GPU of {size[1]} usable (weights {size[2]}, KV cache {size[3]})"

    def _assumptions(self) -> tuple[str, ...]:
        said = assumptions_of(
            self.routes.fabric, self.model, self.workload, self.chip, uniform=self.uniform, profile=self.profile
        )
        if self.capped:
            cap = f"1/top_k = 1/{self.model.top_k}"
            return (*said, f"{self.capped} expert loads above {cap} are capped: a token goes to an expert once")
        return said

    def _stage_parts(self, s: int) -> list[Part]:
        layers = [int(i) for i in np.flatnonzero(self.plan.layer_stage == s)]
        head = s == self.layout.pp - 1
        parts = local_parts(self.model, self.workload, self.chip, self.heaviest, layers, head=head)
        moe = [i for i in layers if self.model.moe_layer_mask[i]]
        return parts + (self._experts(s, moe) if moe else [])

    def _experts(self, s: int, moe_layers: list[int]) -> list[Part]:
        """Dispatch, experts and combine of a stage's MoE layers; layers placed alike are worked out once."""
        number = np.cumsum(self.model.moe_layer_mask) - 1
        kinds: dict[bytes, list[int]] = {}
        for layer in (int(number[i]) for i in moe_layers):
            key = (
                self.plan.slot_rank[layer].tobytes()
                + self.plan.slot_expert[layer].tobytes()
                + self.shares[layer].tobytes()
            )
            kinds.setdefault(key, []).append(layer)
        found = [(len(alike), self._expert_layer(s, alike[0])) for alike in kinds.values()]
        self.remote += [remote for count, (_, remote) in found for _ in range(count)]
        return [sum_parts([times(parts[i], count) for count, (parts, _) in found]) for i in range(3)]

    def _expert_layer(self, s: int, layer: int) -> tuple[list[Part], float]:
        work, model, ep = self.workload, self.model, self.layout.ep
        expert, rank = self.plan.slot_expert[layer], self.plan.slot_rank[layer]
        copies_of = np.bincount(expert, minlength=model.n_experts)
        share = (self.shares[layer] / copies_of)[expert]
        per_rank = np.bincount(rank, weights=share, minlength=ep)
        copies = self.batch.astype(np.float64) * model.top_k
        if work.copies == "direct":
            dispatch, combine, remote = self._direct_copies(s, copies, per_rank * float(model.expert_hidden_size))
        else:
            dispatch, combine, remote = self._merged_copies(s, layer)
        held = np.bincount(rank, minlength=ep).astype(float)
        hit = experts_hit(expert, rank, share, model.top_k, float(self.batch.sum()), ep)
        experts = expert_part(model, work, self.chip, copies.sum() * per_rank, held, hit)
        wires = (
            Part("dispatch", dispatch, network_seconds=dispatch),
            Part("combine", combine, network_seconds=combine),
        )
        return [wires[0], experts, wires[1]], remote

    def _direct_copies(self, s: int, copies: Floats, elements: NDArray[Any]) -> tuple[float, float, float]:
        """Return the times of dispatch and combine [s] and the share that leaves its domain."""
        sent, back = (elements * dtype_bytes(t) for t in (self.workload.dispatch_dtype, self.workload.combine_dtype))
        dispatch, remote = self._all_to_all(s, Outer(copies, sent))
        return dispatch, self._all_to_all(s, Outer(back, copies))[0], remote

    def _merged_copies(self, s: int, layer: int) -> tuple[float, float, float]:
        """Return the same of copies for each different GPU or domain."""
        work, model, plan = self.workload, self.model, self.plan
        moe = MoE(
            self.batch, model.expert_hidden_size, model.top_k, model.n_experts, dtype_bytes(work.dispatch_dtype),
            dtype_bytes(work.combine_dtype), (plan.slot_expert[layer], plan.slot_rank[layer]), self.shares[layer],
        )  # fmt: skip
        there, back = (
            cost(
                self.routes.fabric, kind, moe, ranks=self.groups[s], algorithm=work.copies, routing=self.routes,
                profile=self.profile,
            )
            for kind in ("moe_dispatch", "moe_combine")
        )  # fmt: skip
        return there.seconds, back.seconds, there.remote_share

    def _all_to_all(self, s: int, traffic: Outer) -> tuple[float, float]:
        result = cost(
            self.routes.fabric, "all_to_all_v", traffic, ranks=self.groups[s], routing=self.routes, profile=self.profile
        )
        return result.seconds, result.remote_share

    def _sends(self) -> Part | None:
        """Activations from stage to stage, at the combine dtype, one hop after the other."""
        if self.layout.pp == 1:
            return None
        size = self.heaviest * self.model.hidden_size * dtype_bytes(self.workload.combine_dtype)
        seconds = sum(
            cost(self.routes.fabric, "send", size, stages=pair, routing=self.routes, profile=self.profile).seconds
            for pair in pairwise(self.groups)
        )
        return Part("pipeline sends", seconds, network_seconds=seconds)

    def _experts_per_rank(self) -> Ints:
        if not self.model.is_moe:
            return np.zeros(self.layout.ep, dtype=np.intp)
        return np.stack([np.bincount(row, minlength=self.layout.ep) for row in self.plan.slot_rank])

    def _memory(self) -> tuple[float, float]:
        """Weights and KV cache of the fullest GPU of the fullest stage [bytes].

        With pp stages pp micro-batches are in flight, so a stage holds 1/pp of the layers
        of pp times the sequences: KV per GPU does not depend on pp.
        """
        model, counts = self.model, self._experts_per_rank()
        number = np.cumsum(model.moe_layer_mask) - 1
        worst = (0.0, 0.0)
        for s in range(self.layout.pp):
            layers = [int(i) for i in np.flatnonzero(self.plan.layer_stage == s)]
            fixed = resident_bytes(model, layers, first=s == 0, last=s == self.layout.pp - 1)
            moe = [int(number[i]) for i in layers if model.moe_layer_mask[i]]
            experts = counts[moe].sum(axis=0).max(initial=0) * model.expert_bytes if moe else 0.0
            kv = kv_bytes(model, self.workload, layers) * self.heaviest * self.layout.pp
            worst = max(worst, (fixed + float(experts), kv), key=sum)
        return worst


def _stage_groups(fabric: Fabric, model: Model, layout: Layout) -> list[Ints]:
    if layout.ep * layout.pp > fabric.n_ranks:
        rule = f"needs {layout.ep * layout.pp} GPUs and the graph has {fabric.n_ranks}"
        raise InputError(Fault("layout", f"ep {layout.ep} x pp {layout.pp}", rule, "Take fewer, or more domains."))
    if layout.pp > model.layers:
        raise InputError(
            Fault("layout.pp", layout.pp, f"the model has {model.layers} layers", "Take at most that many stages.")
        )
    free = np.ones(fabric.n_ranks, dtype=bool)
    groups = []
    for _ in range(layout.pp):
        groups.append(fabric.group(layout.ep, free))
        free[groups[-1]] = False
    return groups
