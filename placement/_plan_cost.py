"""What does a placement cost on a graph, under loads that were recorded?

Tokens go to a copy of their expert in their own domain where there is one, so what crosses
between domains depends on where tokens come from.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Cost, Profile, cost, plain
from placement._flows import flows_to_slots, gpus_of
from placement._loads import ExpertLoads
from placement._widths import software_of
from serving import Groups, Layout, Model, PlacementPlan, PlanLoads, Step, Workload, dtype_bytes, step
from topo import Fabric, Fault, InputError, Routes, route
from topo.units import format_quantity

__all__ = ["PlanCost", "cost_plan", "sources_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class PlanCost:
    """Balance, traffic and time of a placement.

    Attributes
    ----------
    plan : PlacementPlan
        With the shares that copies really get.
    gpu_load : (MoE layers, ep) float
        Tokens of every GPU over the mean: 1 is level.
    expert_load : (MoE layers, experts) float
        Part of a layer's tokens that every expert gets.
    heaviest, worst : float
        Heaviest GPU over the mean: averaged over layers, and of the worst layer.
    crossing : (MoE layers,) float
        Part of all tokens' copies that leave their domain.
    crossing_bytes : float
        Bytes between domains of one step, all layers, dispatch and combine [bytes].
    hot_link : str
        The link that takes longest for a step's dispatches and combines, "from -> to".
    hot_seconds : float
        Its bytes over its bandwidth [s].
    wire_seconds : float
        All dispatches and combines of a step, one after the other [s].
    step_seconds : float
        The whole step, one operation after the other [s].
    traffic : Cost
        All dispatches of a step as one all-to-all, for `figures.draw_topology`.
    step : Step
        `serving.step` of the plan, which sends tokens to all copies alike wherever they come from.
    domain : (MoE layers, ep) int
        Domain of every GPU of the layer's stage, from 0.
    """

    plan: PlacementPlan
    gpu_load: Floats
    expert_load: Floats
    heaviest: float
    worst: float
    crossing: Floats
    crossing_bytes: float
    hot_link: str
    hot_seconds: float
    wire_seconds: float
    step_seconds: float
    traffic: Cost
    step: Step
    domain: Ints

    def __repr__(self) -> str:
        crossed = f"{format_quantity(self.crossing_bytes, 'bytes', 4)} cross a step"
        time = format_quantity(self.step_seconds, "seconds", 4)
        return f"PlanCost(max/mean load {self.heaviest:.4f}, worst layer {self.worst:.4f}; {crossed}; step {time})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys; without the two costs it is made of."""
        found: dict[str, Any] = plain(self, leave_out=("plan", "traffic", "step"))
        return found | {"plan": self.plan.to_dict()}


def cost_plan(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    plan: PlacementPlan,
    loads: ExpertLoads,
    *,
    routing: str | Routes = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> PlanCost:
    """Cost a placement under recorded loads.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology, with chips.
    model, workload : records
        What runs; the workload's tokens are shared out as the recording says.
    plan : PlacementPlan
        Copies in a domain share its tokens equally, or in proportion to the plan's shares. A stage's layers are
        on its own GPUs.
    loads : ExpertLoads
        From `read_loads`. Without sources all domains ask alike, by their GPUs; sources are GPUs, or
        domains, of a stage in order.
    routing, profile
        As `collectives.cost`: of times, not of links' loads. Dispatch and combine are predicted as all-to-alls.

    Raises
    ------
    InputError
        A plan or loads of another model, sources that no domain has.

    Examples
    --------
    >>> import topo, serving, placement, numpy as np
    >>> rack, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    >>> plan = PlacementPlan.contiguous(8, model.moe_layer_mask, Layout(ep=16))
    >>> loads = ExpertLoads(np.ones((32, 8)), None, None, None, "eplb")
    >>> float(cost_plan(rack, model, serving.Workload(batch_per_gpu=64), plan, loads).crossing[0])
    0.5
    """
    routes, software = route(graph, routing), software_of(profile)
    loads, layout = loads.for_model(model), Layout(plan.ep, pp=plan.pp)
    found = step(
        routes.fabric, model, workload, layout=layout, plan=plan, expert_load=loads.load, routing=routes,
        profile=software,
    )  # fmt: skip
    stages = _stages(routes.fabric, model, plan, loads, Groups(routes.fabric, layout).stages)
    plan = replace(plan, slot_share=np.concatenate([stage.share for stage in stages]))
    load = np.concatenate([stage.to_gpu.sum(axis=1) * plan.ep for stage in stages])
    crossing = np.concatenate([stage.crossing for stage in stages])
    wires = _Wires(routes, model, workload, software, plan.ep)
    seconds = sum(wires.seconds(stage) for stage in stages)
    total, carried = wires.carried(stages)
    busy = carried / routes.fabric.bandwidth
    hot, used = int(np.argmax(busy)), np.flatnonzero(carried)
    local = sum(part.seconds for part in found.parts if part.name not in ("dispatch", "combine"))
    heaviest = load.max(axis=1)
    links = tuple(routes.fabric.link_label(int(link)) for link in used)
    plan = replace(plan, loads=PlanLoads(load, links, carried[used]))
    return PlanCost(
        plan=plan, gpu_load=load, expert_load=np.concatenate([stage.asked.sum(axis=1) for stage in stages]),
        heaviest=float(heaviest.mean()), worst=float(heaviest.max()), crossing=crossing,
        crossing_bytes=float(crossing.sum() * wires.copies * wires.token_bytes.sum()),
        hot_link=routes.fabric.link_label(hot), hot_seconds=float(busy[hot]), wire_seconds=seconds,
        step_seconds=local + seconds, traffic=total, step=found,
        domain=np.concatenate([np.tile(stage.domain, (len(stage.asked), 1)) for stage in stages]),
    )  # fmt: skip


class _Stage(NamedTuple):
    """A stage's layers on its GPUs: parts of a layer's tokens by where they come from and go to.

    `ranks` and `domain` are (ep,), the latter numbered from 0; `asked` is (layers, domains, experts), `share`
    (layers, slots), `to_gpu` (layers, domains, ep) and `crossing` (layers,).
    """

    ranks: Ints
    domain: Ints
    asked: Floats
    share: Floats
    to_gpu: Floats
    crossing: Floats


def _stages(
    fabric: Fabric, model: Model, plan: PlacementPlan, loads: ExpertLoads, groups: Sequence[Ints]
) -> list[_Stage]:  # fmt: skip
    stage_of, found = plan.layer_stage[np.flatnonzero(model.moe_layer_mask)], []
    for s, ranks in enumerate(groups):
        ours = np.flatnonzero(stage_of == s)
        domain = np.unique(fabric.rank_domain[ranks], return_inverse=True)[1]
        asked = sources_of(loads, domain)[ours]
        part = replace(
            plan, slot_expert=plan.slot_expert[ours], slot_rank=plan.slot_rank[ours], loads=None,
            slot_share=None if plan.slot_share is None else plan.slot_share[ours],
        )  # fmt: skip
        sent = flows_to_slots(part, asked, domain)  # (layers, domains, slots)
        of_expert = np.take_along_axis(asked.sum(axis=1), part.slot_expert, 1)
        share = np.where(of_expert > 0, sent.sum(axis=1) / np.where(of_expert > 0, of_expert, 1.0), part.shares)
        to_gpu = gpus_of(part, sent).reshape(len(ours), int(domain.max()) + 1, plan.ep)
        away = np.arange(to_gpu.shape[1])[:, None] != domain
        found.append(_Stage(ranks, domain, asked, share, to_gpu, (to_gpu * away).sum(axis=(1, 2))))
    return found


def sources_of(loads: ExpertLoads, domain: NDArray[np.intp]) -> Floats:
    """Return tokens by the domain that they come from: what `place_across`, `place_by` and `balance_curve` take.

    Parameters
    ----------
    loads : ExpertLoads
        Recorded by GPU or by domain; without sources all domains ask alike, by their GPUs.
    domain : (gpus,) int
        Domain of every GPU, from 0.

    Returns
    -------
    (layers, domains, experts) array
        Each layer sums to one.

    Raises
    ------
    InputError
        Recorded on other GPUs or domains.

    Examples
    --------
    >>> loads = ExpertLoads(np.array([[3.0, 1.0]]), None, None, None, "eplb")
    >>> sources_of(loads, np.array([0, 0, 1, 1])).tolist()
    [[[0.375, 0.125], [0.375, 0.125]]]
    """
    size, whole = np.bincount(domain), loads.load
    if loads.sources is None:
        asked = whole[:, None, :] * (size / size.sum())[:, None]
    elif loads.sources.shape[1] == len(size):
        asked = loads.sources
    elif loads.sources.shape[1] == len(domain):
        asked = np.stack([loads.sources[:, domain == d].sum(axis=1) for d in range(len(size))], axis=1)
    else:
        rule = f"must be tokens from the {len(size)} domains or the {len(domain)} GPUs that are placed on"
        raise InputError(Fault("sources", loads.sources.shape[1], rule, "Record on as many GPUs as are placed on."))
    empty = ~asked.any(axis=(1, 2))
    asked = np.where(empty[:, None, None], (size / size.sum())[:, None], asked)
    return np.asarray(asked / asked.sum(axis=(1, 2), keepdims=True), dtype=np.float64)


class _Wires:
    """Dispatches and combines of all stages, costed on the graph."""

    def __init__(self, routes: Routes, model: Model, workload: Workload, profile: Profile, ep: int) -> None:
        self.routes, self.profile = routes, profile
        self.copies = float(workload.batch_of(ep).sum()) * model.top_k
        names = (workload.dispatch_dtype, workload.combine_dtype)
        self.token_bytes = np.array([model.expert_hidden_size * dtype_bytes(name) for name in names])

    def seconds(self, stage: _Stage) -> float:
        """Return a stage's dispatches and combines, alike layers costed once [s]."""
        if not len(stage.to_gpu):
            return 0.0
        rows, count = np.unique(stage.to_gpu.round(12), axis=0, return_counts=True)
        each = [sum(one.seconds for one in self._costs(self._copies(stage, row), stage.ranks)) for row in rows]
        return float(np.array(each) @ count)

    def carried(self, stages: Sequence[_Stage]) -> tuple[Cost, Floats]:
        """Return the cost of all dispatches as one, and what every link carries of them and the combines [bytes]."""
        from scipy.linalg import block_diag

        whole = block_diag(*(self._copies(stage, stage.to_gpu.sum(axis=0)) for stage in stages))
        there, back = self._costs(whole, np.concatenate([stage.ranks for stage in stages]))
        return there, there.loads + back.loads

    def _copies(self, stage: _Stage, to_gpu: Floats) -> Floats:
        """Return copies from GPU to GPU, those of a domain from all its GPUs alike."""
        found: Floats = (to_gpu / np.bincount(stage.domain)[:, None])[stage.domain] * self.copies
        return found

    def _costs(self, copies: Floats, ranks: Ints) -> tuple[Cost, Cost]:
        there, back = (
            cost(self.routes.fabric, "all_to_all_v", bytes_, ranks=ranks, routing=self.routes, profile=self.profile)
            for bytes_ in (copies * self.token_bytes[0], copies.T * self.token_bytes[1])
        )
        return there, back
