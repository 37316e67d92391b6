"""How much better than now can experts be placed, for loads that were recorded?"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Profile
from placement._across import place_across
from placement._link_times import LinkTimes, link_times
from placement._loads import ExpertLoads
from placement._migration import Migration, migrate
from placement._place import place
from placement._place_by import place_by
from placement._plan_cost import PlanCost, cost_plan, sources_of
from placement._rules import SHARINGS, Gpus, Rules
from placement._start import even_slots
from placement._widths import software_of
from serving import Layout, Model, PlacementPlan, Workload
from topo import Fabric, Fault, InputError, Routes, route, suggest

__all__ = ["Improvement", "improve"]

#: Heaviest GPU over the mean that is tried next where a smaller one cannot be had.
_BALANCES = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False, repr=False)
class Improvement:
    """A placement for recorded loads, beside the one before.

    Attributes
    ----------
    before, after : PlanCost
        The plan there was, or experts in order, and the new one.
    status : str
        How good the new one is at least.
    balance : float or None
        Heaviest GPU over the mean that was allowed; None within one domain, where only that counts.
    migration : Migration
        What GPUs have to load to get there, renamed so that it is little; its time where all GPUs take part.
    notes : tuple of str
        What was assumed.
    gpus : Gpus
        Slots, domains and hosts of what was placed on, as `place_by` and `balance_curve` take them.
    room : int
        Experts of every layer that the fullest GPU has memory for beside those placed, KV cache kept free; below
        zero where it has too many.
    """

    before: PlanCost
    after: PlanCost
    status: str
    balance: float | None
    migration: Migration
    notes: tuple[str, ...]
    gpus: Gpus
    room: int

    def __repr__(self) -> str:
        saved = self.before.crossing_bytes - self.after.crossing_bytes
        part = f", {100 * saved / self.before.crossing_bytes:.3g} % less crosses" if saved > 0 else ""
        return (
            f"Improvement(max/mean load {self.before.heaviest:.4f} to {self.after.heaviest:.4f}{part}; {self.status})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        moves = self.migration.to_dict()
        return {
            "before": self.before.to_dict(), "after": self.after.to_dict(), "status": self.status,
            "balance": self.balance, "notes": list(self.notes), "room": self.room,
            "migration": {key: moves[key] for key in ("copies", "n_bytes", "across_bytes", "seconds", "bottleneck")},
        }  # fmt: skip


def improve(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    loads: ExpertLoads,
    *,
    ep: int | None = None,
    replicas: int = 0,
    slots: int | None = None,
    sharing: str = "equal",
    balance: float = 1.01,
    objective: str | Sequence[str] | Mapping[str, float] | None = None,
    enough: Mapping[str, float] | None = None,
    rules: Rules | None = None,
    current: PlacementPlan | None = None,
    routing: str | Routes = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> Improvement:
    """Place experts for recorded loads: level within a domain, over several with few bytes between them.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology, with chips.
    model, workload : records
        What runs.
    loads : ExpertLoads
        From `read_loads`.
    ep : int, optional
        GPUs the experts are spread over; by default all.
    replicas : int, optional
        Spare copies in every layer.
    slots : int, optional
        Experts a GPU may hold in a layer: where that is more than are placed, GPUs may hold unequally many.
        By default slots are fixed, as equal as the copies divide.
    sharing : {"equal", "weighted"}, optional
        Within one domain: whether copies of an expert get equal parts of its tokens.
    balance : float, optional
        Over several domains: heaviest GPU over the mean; a layer in which that is not had gets the
        next of 1.02, 1.05, ...
    objective, enough : optional
        As `place_by`, which is then asked. By default a level placement within one domain; over several
        few bytes between them at that balance.
    rules : Rules, optional
        What every layer keeps to; `place_by` is then asked too.
    current : PlacementPlan, optional
        What runs now, on as many GPUs; by default experts in order.
    routing, profile
        As `cost_plan`.

    Raises
    ------
    InputError
        Loads of another model, a current plan of other GPUs, rules that nothing keeps to, what `place`,
        `place_across` and `place_by` refuse.

    Examples
    --------
    >>> import topo, serving, numpy as np
    >>> boxes, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    >>> asked = np.repeat([[[1.0, 1, 1, 1, 8, 7, 6, 5], [8, 7, 6, 5, 1, 1, 1, 1]]], 32, axis=0)
    >>> loads = ExpertLoads(asked.sum(axis=1), None, asked, None, "tensorrt-llm")
    >>> found = improve(boxes, model, serving.Workload(batch_per_gpu=64), loads, replicas=8, balance=1.3)
    >>> bool(found.after.crossing_bytes < 0.2 * found.before.crossing_bytes)
    True
    """
    faults = [] if model.is_moe else [Fault("model", model.name, "has no experts", "Give one that has.")]
    if isinstance(balance, bool) or not balance > 1:
        faults.append(Fault("balance", balance, "must be above one", "Give 1.01 for one per cent."))
    if sharing not in SHARINGS:
        faults.append(Fault("sharing", sharing, "is not known", suggest(str(sharing), SHARINGS)))
    if faults:
        raise InputError(*faults)
    routes = route(graph, routing)
    ranks = routes.fabric.group(routes.fabric.n_ranks if ep is None else ep)
    domain = np.unique(routes.fabric.rank_domain[ranks], return_inverse=True)[1]
    loads = loads.for_model(model)
    if current is None:
        current = PlacementPlan.contiguous(model.n_experts, model.moe_layer_mask, Layout(len(ranks)))
    elif current.ep != len(ranks):
        rule = f"is on {current.ep} GPUs, and the new one on {len(ranks)}"
        raise InputError(Fault("current", repr(current), rule, f"Give ep {current.ep}, or leave it out."))
    ways: dict[str, Any] = {"routing": routes, "profile": software_of(profile)}
    before = cost_plan(routes.fabric, model, workload, current, loads, **ways)
    host = routes.fabric.host[routes.fabric.ranks][ranks]
    gpus = Gpus(
        _slots(model.n_experts + replicas, len(ranks), slots), domain=domain,
        host=np.where(host >= 0, host, len(host) + np.arange(len(host))),
    )  # fmt: skip
    if objective is None and rules is None and not enough:
        plan, status, reached = _placed(loads, gpus, model, replicas, sharing, balance)
    else:
        asked = _Objectives(objective, dict(enough or {}), rules, balance, sharing)
        times = partial(link_times, routes.fabric, model, workload, ep=len(ranks), routing=routes)
        plan, status = _placed_by(asked, loads, gpus, model, replicas, current, times)
        reached = None
    whole = routes.fabric if len(ranks) == routes.fabric.n_ranks else None
    fixed = "busiest_link" in (objective or ()) or bool(rules and rules.given)
    moves = migrate(before.plan, plan, model.expert_bytes, gpus=gpus, rename=not fixed, graph=whole)
    after = cost_plan(routes.fabric, model, workload, moves.plan, loads, **ways)
    several = (
        f"as it came from {len(np.unique(domain))} domains" if loads.sources is not None else "alike from all GPUs"
    )
    notes = (*loads.notes, f"load {several}", "tokens go to a copy in their own domain where there is one")
    if domain.any() and sharing != "equal":
        notes += ("copies of an expert share its tokens by where those come from, whatever sharing asks",)
    room = math.floor(after.step.headroom / (model.expert_bytes * model.n_moe_layers))
    return Improvement(before, after, status, reached, moves, notes, gpus, room)


def _slots(copies: int, gpus: int, slots: int | None) -> NDArray[np.intp]:
    if slots is None:
        return even_slots(copies, gpus)
    if isinstance(slots, bool) or not isinstance(slots, int) or slots * gpus < copies:
        rule = f"must be a whole number, {-(-copies // gpus)} or more, for {copies} copies on {gpus} GPUs"
        raise InputError(Fault("slots", slots, rule, "Give more, or leave it out."))
    return np.full(gpus, slots)


def _placed(
    loads: ExpertLoads, gpus: Gpus, model: Model, replicas: int, sharing: str, balance: float
) -> tuple[PlacementPlan, str, float | None]:  # fmt: skip
    stage, domain = np.zeros(model.layers, dtype=np.intp), gpus.domain
    if not domain.any():
        found = place(loads.load, gpus, replicas=replicas, sharing=sharing)
        assert found.plan is not None  # no rules, so no reason not to
        return _of_model(found.plan, slice(None), stage), found.status, None
    rows, layer = np.unique(sources_of(loads, domain), axis=0, return_inverse=True)
    across = place_across(rows, gpus, replicas=replicas, balance=balance, looser=_BALANCES)
    if across.plan is not None:
        return _of_model(across.plan, layer.ravel(), stage), across.status, float(across.layer_balance.max())
    raise InputError(Fault("loads", loads.kind, across.status, "Place more replicas."))


@dataclass(frozen=True)
class _Objectives:
    """What `place_by` is asked for."""

    objective: str | Sequence[str] | Mapping[str, float] | None
    enough: dict[str, float]
    rules: Rules | None
    balance: float
    sharing: str


def _placed_by(
    asked: _Objectives, loads: ExpertLoads, gpus: Gpus, model: Model, replicas: int,
    current: PlacementPlan, times: Callable[[], LinkTimes],
) -> tuple[PlacementPlan, str]:  # fmt: skip
    several = bool(gpus.domain.any())
    objective = asked.objective or (("heaviest_gpu", "crossing") if several else "heaviest_gpu")
    enough = {"heaviest_gpu": asked.balance} | asked.enough if several else asked.enough
    found = place_by(
        sources_of(loads, gpus.domain), gpus, objective, replicas=replicas, enough=enough, rules=asked.rules,
        sharing="weighted" if several else asked.sharing, current=current if "moved" in objective else None,
        links=times() if "busiest_link" in objective else None,
    )  # fmt: skip
    if found.plan is None:
        raise InputError(Fault("rules", "given", found.binding, "Loosen it, or place more replicas."))
    return _of_model(found.plan, slice(None), np.zeros(model.layers, dtype=np.intp)), found.status


def _of_model(plan: PlacementPlan, rows: Any, stage: NDArray[np.intp]) -> PlacementPlan:
    share = None if plan.slot_share is None else plan.slot_share[rows]
    return PlacementPlan(plan.slot_expert[rows], plan.slot_rank[rows], stage, plan.ep, 1, share)
