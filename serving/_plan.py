"""Which GPU holds which expert, and how much of the traffic does each expert get?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving._model import Model
from serving._workload import Layout, Workload
from topo import Fault, InputError

__all__ = ["PlacementPlan", "expert_shares", "inclusion_shares", "require_plan", "require_records"]

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class PlacementPlan:
    """Which GPU holds which expert, and which stage which layer.

    Attributes
    ----------
    slot_expert : (MoE layers, slots) int
        Expert in each slot.
    slot_rank : (MoE layers, slots) int
        GPU of each slot, counted within the stage's group of `ep` GPUs.
    layer_stage : (layers,) int
        Pipeline stage of every layer, ascending.
    ep, pp : int
        The layout the plan is for.
    """

    slot_expert: Ints
    slot_rank: Ints
    layer_stage: Ints
    ep: int
    pp: int

    def __repr__(self) -> str:
        layers, slots = self.slot_expert.shape
        layout = f"{self.ep} GPUs, {len(self.layer_stage)} layers in {self.pp} stages"
        return f"PlacementPlan({layers} MoE layers x {slots} experts on {layout})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "ep": self.ep, "pp": self.pp, "slot_expert": self.slot_expert.tolist(),
            "slot_rank": self.slot_rank.tolist(), "layer_stage": self.layer_stage.tolist(),
        }  # fmt: skip

    @classmethod
    def contiguous(cls, n_experts: int, mask: tuple[bool, ...], layout: Layout) -> PlacementPlan:
        """Return the plain plan: experts in order, as equal as they divide, layers cut evenly.

        Examples
        --------
        >>> import numpy as np
        >>> plan = PlacementPlan.contiguous(256, (True,), Layout(ep=72))
        >>> [int(k) for k in np.unique(np.bincount(plan.slot_rank[0]), return_counts=True)[1]]
        [32, 40]
        """
        # Counted along the ranks, what does not divide is spread over the domains.
        counts = np.diff(np.arange(layout.ep + 1) * n_experts // layout.ep)
        rank = np.repeat(np.arange(layout.ep), counts)
        moe = sum(mask)
        stage = np.arange(len(mask)) * layout.pp // max(1, len(mask))
        expert = np.arange(n_experts)
        return cls(np.tile(expert, (moe, 1)), np.tile(rank, (moe, 1)), stage, layout.ep, layout.pp)


def expert_shares(n_experts: int, expert_load: Any, layers: int) -> NDArray[np.float64]:
    """Return the share of a layer's tokens each expert gets, (layers, experts), rows summing to one.

    Parameters
    ----------
    n_experts : int
        Routed experts of a layer.
    expert_load : None, (experts,) or (layers, experts) array
        Any non-negative weights; None is uniform.
    layers : int
        MoE layers.

    Raises
    ------
    InputError
        Wrong shape, negative or non-finite loads, a layer without any.
    """
    if expert_load is None:
        return np.full((layers, n_experts), 1 / n_experts)
    try:
        load = np.atleast_2d(np.asarray(expert_load, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):  # ragged, or not numbers
        raise InputError(Fault("expert_load", expert_load, "must be an array of numbers", "Correct it.")) from None
    if load.shape not in ((1, n_experts), (layers, n_experts)):
        rule = f"must have shape ({n_experts},) or ({layers}, {n_experts})"
        raise InputError(Fault("expert_load", load.shape, rule, "One number per expert of every MoE layer."))
    if not np.isfinite(load).all() or (load < 0).any() or not (load.sum(axis=1) > 0).all():
        raise InputError(
            Fault("expert_load", "array", "must be finite, zero or more, with some load in every layer", "Correct it.")
        )
    shares: NDArray[np.float64] = np.broadcast_to(load / load.sum(axis=1, keepdims=True), (layers, n_experts))
    if not math.isclose(float(shares.sum()), layers, rel_tol=1e-9):
        raise InputError(Fault("expert_load", "array", "overflows when normalised", "Scale it."))
    return shares


def inclusion_shares(shares: NDArray[np.float64], top_k: int) -> NDArray[np.float64]:
    """Return shares of a layer's copies that tokens with top_k different experts can have.

    Parameters
    ----------
    shares : (layers, experts) float
        Rows summing to one.
    top_k : int
        Different experts of a token.

    Returns
    -------
    (layers, experts) float
        No share above 1 / top_k: a token goes to an expert once. What is over goes to
        the other experts in proportion; rows still sum to one.

    Raises
    ------
    InputError
        Fewer experts with load than a token needs.

    Examples
    --------
    >>> import numpy as np
    >>> inclusion_shares(np.array([[0.8, 0.1, 0.1]]), 2)
    array([[0.5 , 0.25, 0.25]])
    """
    if (shares > 0).sum(axis=1).min(initial=top_k) < top_k:
        rule = f"must give load to at least {top_k} experts of every layer: a token goes to {top_k} different ones"
        raise InputError(Fault("expert_load", int((shares > 0).sum(axis=1).min()), rule, "Give more experts load."))
    most = 1 / top_k
    capped = shares.copy()
    for row in capped:
        while (over := row > most * (1 + 1e-12)).any():
            full = over | (row >= most * (1 - 1e-12))
            row[full] = most
            row[~full] *= (1 - full.sum() * most) / row[~full].sum()
    return capped


def require_plan(plan: PlacementPlan, model: Model, layout: Layout) -> None:
    """Refuse a plan for another layout or model, or one that points at what is not there.

    Raises
    ------
    InputError
        Everything wrong with it.
    """
    faults = []
    ranges = ((plan.slot_rank, layout.ep), (plan.slot_expert, model.n_experts), (plan.layer_stage, layout.pp))
    if (plan.ep, plan.pp) != (layout.ep, layout.pp):
        rule = f"is for ep {plan.ep}, pp {plan.pp}, and the layout says ep {layout.ep}, pp {layout.pp}"
        faults.append(Fault("plan", repr(plan), rule, "Solve for this layout."))
    if (model.is_moe and plan.slot_expert.shape[0] != model.n_moe_layers) or len(plan.layer_stage) != model.layers:
        faults.append(Fault("plan", repr(plan), f"is not for {model.name}", "Solve for this model."))
    elif plan.slot_rank.shape != plan.slot_expert.shape or any(((a < 0) | (a >= n)).any() for a, n in ranges):
        faults.append(Fault("plan", repr(plan), "points at a GPU, expert or stage that is not there", "Count from 0."))
    elif (np.diff(plan.layer_stage) < 0).any() or len(np.unique(plan.layer_stage)) < layout.pp:
        faults.append(
            Fault("plan", repr(plan), "has stages out of order or without layers", "Cut the layers in order.")
        )
    elif model.is_moe and any(len(np.unique(row)) < model.n_experts for row in plan.slot_expert):
        faults.append(
            Fault("plan", repr(plan), "leaves an expert without a slot", "Give every expert of every layer a slot.")
        )
    if faults:
        raise InputError(*faults)


def require_records(model: object, workload: object, layout: object = None, plan: object = None) -> None:
    """Refuse arguments of another type, all at once.

    Raises
    ------
    InputError
        Names each; layout and plan may be None.
    """
    wanted = (("model", model, Model), ("workload", workload, Workload), ("layout", layout, Layout),
              ("plan", plan, PlacementPlan))  # fmt: skip
    faults = [
        Fault(name, value, f"must be a serving.{kind.__name__}", "Make one, or leave it out.")
        for name, value, kind in wanted
        if not isinstance(value, kind) and not (value is None and name in ("layout", "plan"))
    ]
    if faults:
        raise InputError(*faults)
