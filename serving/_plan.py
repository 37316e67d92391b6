"""Which GPU holds which expert?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import experts_in_order
from serving._layout import Layout
from serving._model import Model
from serving._workload import Workload
from topo import Fault, InputError

__all__ = ["PlacementPlan", "plan_for", "require_plan", "require_records"]

Floats = NDArray[np.float64]
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
        rank = experts_in_order(n_experts, layout.ep)
        moe = sum(mask)
        stage = np.arange(len(mask)) * layout.pp // max(1, len(mask))
        expert = np.arange(n_experts)
        return cls(np.tile(expert, (moe, 1)), np.tile(rank, (moe, 1)), stage, layout.ep, layout.pp)


def plan_for(model: Model, layout: Layout, shares: Floats) -> PlacementPlan:
    """Return the plan of a layout nobody has placed: in order; with redundant slots the most loaded twice.

    Parameters
    ----------
    model, layout : records
        What is placed, and how it is cut.
    shares : (MoE layers, experts) float
        Part of the copies of each expert.
    """
    plain = PlacementPlan.contiguous(model.n_experts, model.moe_layer_mask, layout)
    if not layout.redundant:
        return plain
    rows = {row.tobytes(): _dealt(row, layout) for row in shares}
    expert, rank = (np.stack([rows[row.tobytes()][i] for row in shares]) for i in range(2))
    return replace(plain, slot_expert=expert, slot_rank=rank)


def _dealt(share: Floats, layout: Layout) -> tuple[Ints, Ints]:
    """Give each redundant slot to the expert with most load per slot; deal the slots, heaviest first."""
    copies = np.ones(len(share), dtype=np.intp)
    for _ in range(layout.redundant):
        copies[np.argmax(np.where(copies < layout.ep, share / copies, -1.0))] += 1
    expert = np.repeat(np.arange(len(share)), copies)
    expert = expert[np.argsort(-(share / copies)[expert], kind="stable")]
    room = np.full(layout.ep, -(-len(expert) // layout.ep))
    load, rank = np.zeros(layout.ep), np.empty(len(expert), dtype=np.intp)
    holds = np.zeros((layout.ep, len(share)), dtype=bool)
    for slot, one in enumerate(expert):
        free = (room > 0) & ~holds[:, one]
        rank[slot] = gpu = int(np.argmin(np.where(free if free.any() else room > 0, load, np.inf)))
        load[gpu] += share[one] / copies[one]
        room[gpu] -= 1
        holds[gpu, one] = True
    return expert, rank


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
