"""How big can an expert layer get before the wires, the memory or the clock say no?"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Profile, plain
from placement._scale_out import scale_out_needed, scale_out_per_rank
from placement._widths import Terms, WidthStep, WidthSteps, width_steps
from serving import (
    Model,
    Workload,
    assumptions_of,
    chip_numbers,
    require_records,
)
from topo import Fabric, Fault, InputError, Routes, route, suggest, together
from topo.units import format_quantity

__all__ = ["ExpertLayerBound", "WidthCurve", "expert_layer_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class WidthCurve:
    """The bound at every width; row i is width i + 1.

    Attributes
    ----------
    width : (widths,) int
        GPUs of the expert-parallel group.
    domains : (widths,) int
        Scale-up domains it lies in.
    n_experts, experts_per_gpu : (widths,) int
        The largest layer within budget and memory.
    fixed_seconds : (widths,) float
        Everything but routed experts and all-to-all, one after the other [s].
    all_to_all_seconds : (widths,) float
        Dispatch and combine of all layers [s].
    remote_share : (widths,) float
        Part of the copies that leaves its domain, own GPU counted.
    memory_experts : (widths,) int
        Experts per GPU that fit into memory, time aside.
    """

    width: Ints
    domains: Ints
    n_experts: Ints
    experts_per_gpu: Ints
    fixed_seconds: Floats
    all_to_all_seconds: Floats
    remote_share: Floats
    memory_experts: Ints


@dataclass(frozen=True, eq=False, repr=False)
class ExpertLayerBound:
    """The largest expert layer of a model's kind on a topology.

    Attributes
    ----------
    width : int
        GPUs it is spread over; 0 when no layer is possible.
    n_experts : int
        Routed experts.
    n_bytes : float
        Their weights [bytes].
    binding : str
        What stops one more expert per GPU at that width.
    curve : WidthCurve
        All widths.
    scale_out_needed : float or None
        Scale-out bandwidth per GPU and direction from which several domains beat one
        [bytes/s]; infinite when none does, None with a single domain.
    scale_out : float or None
        What the topology has [bytes/s].
    experts_per_gpu : int
        At `width`.
    one_domain, beyond : tuple of int
        (experts, width) of the best layer within one domain, and over several; (0, 0)
        when there is none.
    step_budget : float
        Time for one token through all layers [s].
    overlap, copies : str
        As asked.
    status : str
        "bounded", "no experts" (a dense model) or "nothing fits".
    assumptions : tuple of str
        Everything taken for granted or filled in.
    """

    width: int
    n_experts: int
    n_bytes: float
    binding: str
    curve: WidthCurve
    scale_out_needed: float | None
    scale_out: float | None
    experts_per_gpu: int
    one_domain: tuple[int, int]
    beyond: tuple[int, int]
    step_budget: float
    overlap: str
    copies: str
    status: str
    assumptions: tuple[str, ...]

    @property
    def one_domain_bounds(self) -> bool | None:
        """Whether no layer over several domains is larger than the best within one.

        None with a single domain, and when no layer is possible at all.
        """
        if self.scale_out_needed is None or self.status != "bounded":
            return None
        return self.beyond[0] <= self.one_domain[0]

    def __repr__(self) -> str:
        if self.status != "bounded":
            return f"ExpertLayerBound({self.status}: {self.binding})"
        size = format_quantity(self.n_bytes, "bytes")
        return f"ExpertLayerBound({self.n_experts:,} experts, {size}, over {self.width} GPUs: {self.binding})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        result: dict[str, Any] = plain(self)
        return result | {"one_domain_bounds": self.one_domain_bounds}


def expert_layer_bound(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    step_budget: float,
    overlap: str = "none",
    copies: str = "direct",
    routing: str | Routes = "ecmp",
    steps: WidthSteps | None = None,
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> ExpertLayerBound:
    """Return the largest expert layer whose step keeps a budget, over every width.

    Depth, top-k, expert size and everything else of the model stay; experts are whole and
    uniformly loaded.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology, with chips.
    model : Model
        Its layers, top-k and expert size; its own number of experts plays no part.
    workload : Workload
        Context and batch; which batch is given is what stays constant over the widths.
    step_budget : float
        Time for one token through all layers [s].
    overlap : {"none", "full"}, optional
        none: operations one after the other; full: compute, memory and wires all overlap.
    copies : {"direct"}, optional
        A copy of a token per expert it goes to.
    routing : str or Routes, optional
        As `collectives.cost`.
    steps : WidthSteps, optional
        What `width_steps` made of these very arguments, to try several budgets.
    profile : str, path or Profile, optional
        As `width_steps`.

    Returns
    -------
    ExpertLayerBound
        A dense model and a budget nothing keeps are results with a status.

    Raises
    ------
    InputError
        A budget that is no time above zero, an unknown overlap or copies, bad graph.

    Examples
    --------
    >>> import topo, serving
    >>> still = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
    >>> rack = topo.load("gb200-nvl72", overrides=still)
    >>> work = serving.Workload(context=4096, batch_per_gpu=114)
    >>> expert_layer_bound(rack, serving.load_model("deepseek-v3"), work, step_budget=20e-3).n_experts
    2808
    """
    terms, _, fabric, _ = together(
        lambda: Terms(step_budget, overlap),
        lambda: _require_copies(copies, workload),
        lambda: Fabric.from_graph(graph),
        lambda: require_records(model, workload),
    )
    if not model.is_moe:
        return _no_experts(fabric, model, workload, terms, copies)
    if steps is not None and (steps.model, steps.workload) != (model, workload):
        raise InputError(Fault("steps", repr(steps), "is of another model or workload", "Work it out for this one."))
    found = steps or width_steps(fabric, model, workload, routing=routing, profile=profile)
    route(fabric, found.routes)  # steps of another topology are refused
    widths = found.steps
    experts = np.array([width.width * width.most(terms) for width in widths], dtype=np.intp)
    domains = np.array([width.domains for width in widths], dtype=np.intp)
    best = int(np.argmax(experts))
    one, beyond = _best(experts, domains == 1), _best(experts, domains > 1)
    any_layer = experts[best] > 0
    # With no layer at all, the width that comes nearest to the budget says why.
    telling = widths[best] if any_layer else min(widths, key=lambda width: width.seconds(1, overlap))
    single = bool((domains == 1).all())
    return ExpertLayerBound(
        width=best + 1 if any_layer else 0, n_experts=int(experts[best]),
        n_bytes=float(experts[best] * model.expert_bytes), binding=telling.binding(terms),
        curve=_curve(widths, experts, domains),
        scale_out_needed=None if single else scale_out_needed(found.routes, widths, terms, one[0]),
        scale_out=None if single else scale_out_per_rank(found.routes.fabric),
        experts_per_gpu=int(experts[best] // (best + 1)), one_domain=one, beyond=beyond,
        step_budget=step_budget, overlap=overlap, copies=copies,
        status="bounded" if any_layer else "nothing fits",
        assumptions=(*_assumptions(fabric, model, workload, found.profile), *found.said),
    )  # fmt: skip


def _require_copies(copies: object, workload: object) -> None:
    if copies != "direct":
        raise InputError(Fault("copies", copies, "is not known", suggest(str(copies), ["direct"])))
    if getattr(workload, "copies", "direct") != "direct":
        rule = "is what a step counts; the bound counts direct copies"
        raise InputError(Fault("workload.copies", getattr(workload, "copies", None), rule, "Leave it direct here."))


def _best(experts: Ints, allowed: NDArray[np.bool_]) -> tuple[int, int]:
    """Most experts and the narrowest allowed width that has them."""
    of_allowed = np.where(allowed, experts, 0)
    i = int(np.argmax(of_allowed))
    return (int(of_allowed[i]), i + 1) if of_allowed[i] else (0, 0)


def _curve(widths: Sequence[WidthStep], experts: Ints, domains: Ints) -> WidthCurve:
    numbers = np.arange(1, len(widths) + 1)
    return WidthCurve(
        numbers, domains, experts, experts // numbers,
        np.array([w.fixed for w in widths]), np.array([w.all_to_all for w in widths]),
        np.array([w.remote_share for w in widths]), np.array([w.slots for w in widths], dtype=np.intp),
    )  # fmt: skip


def _assumptions(fabric: Fabric, model: Model, workload: Workload, profile: str = "ideal") -> tuple[str, ...]:
    return assumptions_of(fabric, model, workload, chip_numbers(fabric, np.arange(fabric.n_ranks)), profile=profile)


def _no_experts(fabric: Fabric, model: Model, workload: Workload, terms: Terms, copies: str) -> ExpertLayerBound:
    none = np.zeros(0, dtype=np.intp)
    curve = WidthCurve(none, none, none, none, none.astype(float), none.astype(float), none.astype(float), none)
    single = len(fabric.domain_sizes) == 1
    needed, has = (None, None) if single else (math.inf, scale_out_per_rank(fabric))
    return ExpertLayerBound(
        0, 0, 0.0, f"{model.name} is dense: it has no experts", curve, needed, has, 0, (0, 0), (0, 0),
        terms.budget, terms.overlap, copies, "no experts", _assumptions(fabric, model, workload),
    )  # fmt: skip
