"""Where do experts and layers go, and how good is the answer at least?"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import Profile, expert_shares, load_profile, plain
from placement._experts import ExpertSolution, place_experts
from placement._place import place
from placement._rules import Gpus
from placement._stages import cut_layers
from serving import (
    ChipNumbers,
    Layout,
    Model,
    PlacementPlan,
    Step,
    Workload,
    chip_numbers,
    expert_part,
    kv_bytes,
    local_parts,
    require_records,
    step,
)
from serving.laws import expected_experts_hit
from topo import Fabric, Fault, InputError, Routes, route, suggest
from topo.units import format_quantity

__all__ = ["Solution", "solve"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_OBJECTIVES = ("heaviest_gpu",)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A placement and how good it is at least.

    Attributes
    ----------
    plan : PlacementPlan or None
        None when nothing fits.
    objective : float or None
        Load of the heaviest GPU over the mean, averaged over the MoE layers; 1 for a
        dense model, None when nothing fits. It is load, not time: where reading experts
        takes longest, a plan of equal load may be no faster (see `step`).
    bound : float or None
        No placement has a smaller one.
    gap : float or None
        objective / bound - 1.
    status : str
        "optimal", "feasible" or "infeasible", and why.
    binding : str
        What keeps the objective from falling, or what does not fit.
    layout : Layout
        The layout solved for.
    layer_objective, layer_bound : (MoE layers,) float
        The same for every layer.
    methods : tuple of str
        How each layer was solved: "milp" or "greedy", with replicas "search".
    slowest_stage : float
        Time of the slowest pipeline stage, the least any cut of the layers has [s].
    step : Step
        The plan costed again by `serving.step`; it holds the assumptions too.
    """

    plan: PlacementPlan | None
    objective: float | None
    bound: float | None
    gap: float | None
    status: str
    binding: str
    layout: Layout
    layer_objective: Floats
    layer_bound: Floats
    methods: tuple[str, ...]
    slowest_stage: float
    step: Step

    def __repr__(self) -> str:
        if self.objective is None:
            return f"Solution({self.status})"
        return f"Solution({self.status}; max/mean load {self.objective:.4f}, bound {self.bound:.4f}, {self.layout})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self, leave_out=("plan",))
        return whole | {"plan": self.plan.to_dict() if self.plan else None}


def solve(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    expert_load: ArrayLike | None = None,
    objective: str = "heaviest_gpu",
    layout: Layout | None = None,
    replicas: int = 0,
    sharing: str = "equal",
    time_limit: float | None = None,
    routing: str | Routes = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> Solution:
    """Place a model's layers on stages and its experts on GPUs.

    Layers are cut exactly: the slowest stage is as fast as any cut within HBM allows.
    Experts of a layer go to ceil(experts / ep) slots per GPU: exactly up to 16 experts x
    8 GPUs, beyond that greedily with swaps, always beside a bound no placement beats.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology, with chips.
    model, workload : records
        What runs.
    expert_load : (experts,) or (MoE layers, experts) array, optional
        Relative loads; uniform by default.
    objective : {"heaviest_gpu"}, optional
        The load of the heaviest GPU.
    layout : Layout, optional
        By default ep is the largest scale-up domain (1 for a dense model) and pp the
        fewest stages that fit into HBM.
    replicas : int, optional
        Spare copies of experts in every layer, placed as `place` does.
    sharing : {"equal", "weighted"}, optional
        Whether copies of an expert get equal parts of its tokens, or any.
    time_limit : float, optional
        For the exact solver, per layer, and with replicas for all layers [s]. Without it the
        answer does not depend on the machine's speed.
    routing : str or Routes, optional
        For costing the plan.
    profile : str, path or Profile, optional
        For costing the plan: as `serving.step`.

    Returns
    -------
    Solution
        Infeasible is a status with what does not fit.

    Raises
    ------
    InputError
        Bad graph, loads, objective or time limit.

    Examples
    --------
    >>> import topo, serving
    >>> rack = topo.load("gb200-nvl72")
    >>> solve(rack, serving.load_model("deepseek-v3"), serving.Workload(batch_per_gpu=114)).status
    'optimal'
    """
    require_records(model, workload, layout)
    if objective not in _OBJECTIVES:
        raise InputError(Fault("objective", objective, "is not known", suggest(str(objective), _OBJECTIVES)))
    number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if time_limit is not None and not (number and time_limit > 0):
        raise InputError(Fault("time_limit", time_limit, "must be above zero [s]", "Leave it out, or give seconds."))
    routes, software = route(graph, routing), load_profile(profile)
    count = isinstance(replicas, int) and not isinstance(replicas, bool) and replicas >= 0
    if not count or (replicas and not model.is_moe):
        rule = "must be a whole number, zero or more" if model.is_moe else f"{model.name} has no experts"
        raise InputError(Fault("replicas", replicas, rule, "Leave it out for one copy of every expert."))
    shares = expert_shares(model.n_experts, expert_load, model.n_moe_layers) if model.is_moe else np.zeros((0, 0))
    cut = _cut(routes, model, workload, layout, replicas)
    if cut is None:
        return _infeasible(routes, model, workload, layout, replicas, software)
    chosen, layer_stage, slowest = cut
    ways: dict[str, Any] = {"expert_load": expert_load, "routing": routes, "profile": software}
    if replicas:
        placed = place(
            shares, Gpus(np.full(chosen.ep, -(-(model.n_experts + replicas) // chosen.ep))),
            replicas=replicas, sharing=sharing, time_limit=time_limit,
        )  # fmt: skip
        assert placed.plan is not None  # no rules, so no reason not to
        plan = replace(placed.plan, layer_stage=layer_stage, pp=chosen.pp)
        costed = step(routes.fabric, model, workload, layout=chosen, plan=plan, **ways)
        return Solution(
            plan, placed.objective, placed.bound, placed.gap, placed.status, placed.binding, chosen,
            placed.layer_objective, placed.layer_bound, ("search",) * len(shares), slowest, costed,
        )  # fmt: skip
    layers = _place_layers(shares, chosen.ep, time_limit)
    rank = np.stack([layer.rank for layer in layers]) if layers else np.zeros((0, 0), dtype=np.intp)
    expert = np.tile(np.arange(rank.shape[1]), (len(layers), 1))
    plan = PlacementPlan(expert, rank, layer_stage, chosen.ep, chosen.pp)
    costed = step(routes.fabric, model, workload, layout=chosen, plan=plan, **ways)
    return _summary(plan, layers, chosen, slowest, costed)


def _summary(
    plan: PlacementPlan, layers: list[ExpertSolution], layout: Layout, slowest: float, costed: Step
) -> Solution:  # fmt: skip
    heavy = np.array([layer.heaviest for layer in layers]) * layout.ep
    bound = np.array([layer.bound for layer in layers]) * layout.ep
    objective = float(heavy.mean()) if layers else 1.0
    least = float(bound.mean()) if layers else 1.0
    gap = max(0.0, objective / least - 1)
    stopped = sorted({layer.stopped for layer in layers if layer.stopped})
    open_gap = f"feasible, gap {100 * gap:.3g} %{'; ' + '; '.join(stopped) if stopped else ''}"
    return Solution(
        plan=plan, objective=objective, bound=least, gap=gap,
        status="optimal" if gap <= 1e-9 else open_gap, binding=_binding(layers, layout),
        layout=layout, layer_objective=heavy, layer_bound=bound,
        methods=tuple(layer.method for layer in layers), slowest_stage=slowest, step=costed,
    )  # fmt: skip


def _binding(layers: list[ExpertSolution], layout: Layout) -> str:
    if not layers:
        return "no experts to place"
    worst = max(layers, key=lambda layer: layer.heaviest)
    slots = int(np.bincount(worst.rank, minlength=layout.ep).max())
    if worst.heaviest * layout.ep <= 1 + 1e-9:
        return "nothing: every GPU has the mean load"
    return f"whole experts: {len(worst.rank)} on {layout.ep} GPUs, up to {slots} each"


def _place_layers(shares: Floats, ep: int, time_limit: float | None) -> list[ExpertSolution]:
    """Solve every layer; layers of equal loads are solved once."""
    solved: dict[bytes, ExpertSolution] = {}
    found = []
    for row in shares:
        key = row.tobytes()
        if key not in solved:
            solved[key] = place_experts(row, ep, -(-len(row) // ep), time_limit)
        found.append(solved[key])
    return found


def _cut(
    routes: Routes, model: Model, workload: Workload, layout: Layout | None, replicas: int
) -> tuple[Layout, Ints, float] | None:  # fmt: skip
    """Return the layout (as asked, or with the fewest stages that fit), the layers' stages and the slowest stage."""
    if layout is not None:
        cut = _cut_for(routes, model, workload, layout, replicas)
        return None if cut is None else (layout, *cut)
    ep = int(routes.fabric.domain_sizes.max()) if model.is_moe else 1
    for pp in range(1, min(model.layers, routes.fabric.n_ranks // ep) + 1):
        candidate = Layout(ep, pp=pp)
        cut = _cut_for(routes, model, workload, candidate, replicas)
        if cut is not None:
            return (candidate, *cut)
    return None


def _cut_for(
    routes: Routes, model: Model, workload: Workload, layout: Layout, replicas: int
) -> tuple[Ints, float] | None:  # fmt: skip
    ranks = routes.fabric.group(min(layout.ep * layout.pp, routes.fabric.n_ranks))
    chip = chip_numbers(routes.fabric, ranks)
    heaviest = int(workload.batch_of(layout.ep).max())
    held = -(-(model.n_experts + replicas) // layout.ep) if model.is_moe else 0
    seconds, n_bytes = [], []
    for i in range(model.layers):
        last = i == model.layers - 1
        time = sum(part.seconds for part in local_parts(model, workload, chip, heaviest, [i], head=last))
        if model.moe_layer_mask[i]:
            time += _experts_seconds(model, workload, chip, held, float(workload.batch_of(layout.ep).sum()))
        tied = last and layout.pp > 1 and not model.head_params  # the last stage holds the embedding too
        ends = model.bytes_of("embedding") * ((i == 0) + tied) + model.bytes_of("head") * last
        seconds.append(time)
        kv = kv_bytes(model, workload, [i]) * heaviest * layout.pp
        n_bytes.append(model.layer_weight_bytes(i, held) + ends + kv)
    return cut_layers(seconds, n_bytes, layout.pp, chip.hbm_bytes * (1 - workload.hbm_reserve))


def _experts_seconds(model: Model, workload: Workload, chip: ChipNumbers, held: int, tokens: float) -> float:
    """Return the routed experts of one layer, uniformly loaded, on the GPU with most of them [s]."""
    hit = expected_experts_hit(float(held), model.top_k / model.n_experts, tokens)
    ours, here = tokens * model.top_k * held / model.n_experts, float(held)
    return expert_part(model, workload, chip, np.array([ours]), np.array([here]), np.array([hit])).seconds


def _infeasible(
    routes: Routes, model: Model, workload: Workload, layout: Layout | None, replicas: int, software: Profile
) -> Solution:  # fmt: skip
    """Name what does not fit, by how much, and the machine that would hold it; as asked or with most stages."""
    ep = int(routes.fabric.domain_sizes.max()) if model.is_moe else 1
    tried = layout or Layout(ep, pp=max(1, min(model.layers, routes.fabric.n_ranks // ep)))
    plan = PlacementPlan.contiguous(model.n_experts, model.moe_layer_mask, tried)
    if replicas:
        slots = np.arange(tried.ep * -(-(model.n_experts + replicas) // tried.ep))
        rows = (model.n_moe_layers, 1)
        rank = np.tile(slots % tried.ep, rows)
        plan = replace(plan, slot_expert=np.tile(slots % model.n_experts, rows), slot_rank=rank)
    costed = step(routes.fabric, model, workload, layout=tried, plan=plan, routing=routes, profile=software)
    over = costed.memory_per_gpu - costed.memory_usable
    need, room, short = (format_quantity(n, "bytes") for n in (costed.memory_per_gpu, costed.memory_usable, over))
    why = f"{need} per GPU needed, {room} usable at EP {tried.ep}, PP {tried.pp}: {short} too much" if over > 0 else ""
    why = why or f"no cut of the layers into {tried.pp} stages fits into {room} per GPU"
    stages = range(tried.pp + 1, model.layers + 1)
    fits = next((pp for pp in stages if _cut_for(routes, model, workload, replace(tried, pp=pp), replicas)), None)
    more = f"{tried.ep * fits} such GPUs would hold it, PP {fits}" if fits else "no number of stages helps"
    none = np.zeros(0)
    return Solution(
        None, None, None, None, f"infeasible: {why}; {more}", f"HBM capacity: {why}", tried, none, none, (), 0.0,
        replace(costed, fits=False),
    )  # fmt: skip
