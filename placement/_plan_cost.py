"""What does a placement cost on a graph, under loads that were recorded?

Tokens go to a copy of their expert in their own domain where there is one, so what crosses
between domains depends on where tokens come from.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Cost, Profile, cost, plain
from placement._flows import flows_to_slots, gpus_of
from placement._loads import ExpertLoads
from placement._widths import software_of
from serving import Layout, Model, PlacementPlan, PlanLoads, Step, Workload, dtype_bytes, step
from topo import Fabric, Fault, InputError, Routes, route
from topo.units import format_quantity

__all__ = ["PlanCost", "cost_plan", "sources_of"]

Floats = NDArray[np.float64]


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
    domain : (ep,) int
        Domain of every GPU.
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
    domain: NDArray[np.intp]

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
        Of one stage. Copies in a domain share its tokens equally, or in proportion to the plan's shares.
    loads : ExpertLoads
        From `read_loads`. Without sources all domains ask alike, by their GPUs; sources are GPUs, or
        domains, of the group in order.
    routing, profile
        As `collectives.cost`: of times, not of links' loads. Dispatch and combine are predicted as all-to-alls.

    Raises
    ------
    InputError
        A plan or loads of another model, sources that no domain has, a plan of several stages.

    Examples
    --------
    >>> import topo, serving, placement, numpy as np
    >>> rack, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    >>> plan = PlacementPlan.contiguous(8, model.moe_layer_mask, Layout(ep=16))
    >>> loads = ExpertLoads(np.ones((32, 8)), None, None, None, "eplb")
    >>> float(cost_plan(rack, model, serving.Workload(batch_per_gpu=64), plan, loads).crossing[0])
    0.5
    """
    if plan.pp != 1:
        raise InputError(Fault("plan", repr(plan), "has several stages", "Cost a plan of one."))
    routes, software = route(graph, routing), software_of(profile)
    ranks = routes.fabric.group(plan.ep)
    domain = np.unique(routes.fabric.rank_domain[ranks], return_inverse=True)[1]
    loads = loads.for_model(model)
    asked = sources_of(loads, domain)
    sent = flows_to_slots(plan, asked, domain)  # (layers, domains, slots)
    served, whole = sent.sum(axis=1), asked.sum(axis=1)
    of_expert = np.take_along_axis(whole, plan.slot_expert, 1)
    share = np.where(of_expert > 0, served / np.where(of_expert > 0, of_expert, 1.0), plan.shares)
    plan = replace(plan, slot_share=share)
    to_gpu = gpus_of(plan, sent)
    crossing = np.array([row[np.arange(len(row))[:, None] != domain].sum() for row in to_gpu])
    found = step(
        routes.fabric,
        model,
        workload,
        layout=Layout(plan.ep),
        plan=plan,
        expert_load=loads.load,
        routing=routes,
        profile=software,
    )
    wires = _Wires(routes, ranks, domain, model, workload, software)
    seconds = wires.seconds(to_gpu)
    total, carried = wires.carried(to_gpu.sum(axis=0))
    busy = carried / routes.fabric.bandwidth
    hot, used = int(np.argmax(busy)), np.flatnonzero(carried)
    local = sum(part.seconds for part in found.parts if part.name not in ("dispatch", "combine"))
    load = to_gpu.sum(axis=1) * plan.ep
    heaviest = load.max(axis=1)
    links = tuple(routes.fabric.link_label(int(link)) for link in used)
    plan = replace(plan, loads=PlanLoads(load, links, carried[used]))
    return PlanCost(
        plan=plan, gpu_load=load, expert_load=whole, heaviest=float(heaviest.mean()), worst=float(heaviest.max()),
        crossing=crossing, crossing_bytes=float(crossing.sum() * wires.copies * wires.token_bytes.sum()),
        hot_link=routes.fabric.link_label(hot), hot_seconds=float(busy[hot]), wire_seconds=seconds,
        step_seconds=local + seconds, traffic=total,
        step=found, domain=domain,
    )  # fmt: skip


def sources_of(loads: ExpertLoads, domain: NDArray[np.intp]) -> Floats:
    """Return tokens by domain that they come from, (layers, domains, experts), each layer summing to one."""
    size, whole = np.bincount(domain), loads.load
    if loads.sources is None:
        asked = whole[:, None, :] * (size / size.sum())[:, None]
    elif loads.sources.shape[1] == len(size):
        asked = loads.sources
    elif loads.sources.shape[1] == len(domain):
        asked = np.stack([loads.sources[:, domain == d].sum(axis=1) for d in range(len(size))], axis=1)
    else:
        rule = f"are {loads.sources.shape[1]}, neither the {len(size)} domains nor the {len(domain)} GPUs"
        raise InputError(Fault("sources", loads.sources.shape[1], rule, "Record on as many GPUs as are placed on."))
    empty = ~asked.any(axis=(1, 2))
    asked = np.where(empty[:, None, None], (size / size.sum())[:, None], asked)
    return np.asarray(asked / asked.sum(axis=(1, 2), keepdims=True), dtype=np.float64)


class _Wires:
    """Dispatches and combines of a group, costed on the graph."""

    def __init__(
        self, routes: Routes, ranks: NDArray[np.intp], domain: NDArray[np.intp], model: Model, workload: Workload,
        profile: Profile,
    ) -> None:  # fmt: skip
        self.routes, self.ranks, self.domain, self.profile = routes, ranks, domain, profile
        self.copies = float(workload.batch_of(len(ranks)).sum()) * model.top_k
        names = (workload.dispatch_dtype, workload.combine_dtype)
        self.token_bytes = np.array([model.expert_hidden_size * dtype_bytes(name) for name in names])

    def seconds(self, to_gpu: Floats) -> float:
        """Return all layers' dispatches and combines, alike layers costed once [s]."""
        rows, count = np.unique(to_gpu.round(12), axis=0, return_counts=True)
        both = (cost.seconds for row in rows for cost in self._costs(row))
        return float(np.add.reduceat(np.fromiter(both, float), np.arange(0, 2 * len(rows), 2)) @ count)

    def carried(self, to_gpu: Floats) -> tuple[Cost, Floats]:
        """Return the cost of all dispatches as one, and what every link carries of them and the combines [bytes]."""
        there, back = self._costs(to_gpu)
        return there, there.loads + back.loads

    def _costs(self, to_gpu: Floats) -> tuple[Cost, Cost]:
        size = np.bincount(self.domain)
        matrix = (to_gpu / size[:, None])[self.domain] * self.copies
        there, back = (
            cost(
                self.routes.fabric, "all_to_all_v", bytes_, ranks=self.ranks, routing=self.routes, profile=self.profile
            )
            for bytes_ in (matrix * self.token_bytes[0], matrix.T * self.token_bytes[1])
        )
        return there, back
