"""Which GPU holds which expert?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import experts_in_order
from serving._layout import Layout
from serving._model import Model
from serving._workload import Workload
from topo import Fault, InputError

__all__ = ["PlacementPlan", "PlanLoads", "plan_for", "require_plan", "require_records", "require_types"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: What a saved plan says it is, and what else is read: the first version holds no loads.
SCHEMA, _OLDER = "placement-plan/2", ("placement-plan/1",)


@dataclass(frozen=True, eq=False)
class PlanLoads:
    """What a plan loads, as `placement.cost_plan` has costed it.

    Attributes
    ----------
    gpu : (MoE layers, ep) float
        Tokens of every GPU over the layer's mean: 1 is level.
    links : tuple of str
        Directed links that carry any of a step's dispatches and combines, "from -> to".
    link_bytes : (links,) float
        What they carry in one step, all layers [bytes].
    """

    gpu: Floats
    links: tuple[str, ...]
    link_bytes: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"gpu": self.gpu.tolist(), "link_bytes": dict(zip(self.links, self.link_bytes.tolist(), strict=True))}

    @classmethod
    def from_dict(cls, loads: dict[str, Any]) -> PlanLoads:
        """Return what `to_dict` wrote."""
        named = {str(name): float(value) for name, value in loads["link_bytes"].items()}
        return cls(np.array(loads["gpu"], dtype=np.float64), tuple(named), np.array([*named.values()]))


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
    slot_share : (MoE layers, slots) float, optional
        Part of its expert's tokens that a slot gets; without it copies share equally.
    loads : PlanLoads, optional
        What GPUs and links carry, if the plan was costed.
    """

    slot_expert: Ints
    slot_rank: Ints
    layer_stage: Ints
    ep: int
    pp: int
    slot_share: Floats | None = None
    loads: PlanLoads | None = None

    def __repr__(self) -> str:
        layers, slots = self.slot_expert.shape
        layout = f"{self.ep} GPUs, {len(self.layer_stage)} layers in {self.pp} stages"
        return f"PlacementPlan({layers} MoE layers x {slots} experts on {layout})"

    @property
    def phy2log(self) -> Ints:
        """Expert of every slot, GPU after GPU, as EPLB numbers them: (MoE layers, slots)."""
        return np.take_along_axis(self.slot_expert, self._order, 1)

    @property
    def logcnt(self) -> Ints:
        """Copies of every expert: (MoE layers, experts)."""
        n = int(self.slot_expert.max(initial=-1)) + 1
        return np.array([np.bincount(row, minlength=n) for row in self.slot_expert]).reshape(len(self.slot_expert), n)

    @property
    def log2phy(self) -> Ints:
        """Slots of every expert, numbered as in phy2log, -1 beyond its copies: (MoE layers, experts, most copies)."""
        phy2log, count = self.phy2log, self.logcnt
        order = np.argsort(phy2log, axis=1, kind="stable")
        expert = np.take_along_axis(phy2log, order, 1)
        place = np.arange(expert.shape[1]) - np.take_along_axis(np.cumsum(count, axis=1) - count, expert, 1)
        table = np.full((*count.shape, int(count.max(initial=0))), -1, dtype=np.intp)
        table[np.arange(len(table))[:, None], expert, place] = order
        return table

    @property
    def shares(self) -> Floats:
        """Part of its expert's tokens that each slot gets: (MoE layers, slots)."""
        if self.slot_share is not None:
            return self.slot_share
        return 1 / np.take_along_axis(self.logcnt, self.slot_expert, 1)

    def gpu_load(self, expert_load: ArrayLike) -> Floats:
        """Return the load of every GPU: (MoE layers, ep).

        Parameters
        ----------
        expert_load : (experts,) or (MoE layers, experts) array
            In any unit.

        Examples
        --------
        >>> PlacementPlan.contiguous(4, (True,), Layout(ep=2)).gpu_load([4, 3, 2, 1]).tolist()
        [[7.0, 3.0]]
        """
        load = np.asarray(expert_load, dtype=np.float64)
        load = np.broadcast_to(load, (len(self.slot_expert), load.shape[-1]))
        of_slot = np.take_along_axis(load, self.slot_expert, 1) * self.shares
        both = zip(self.slot_rank, of_slot, strict=True)
        return np.array([np.bincount(rank, part, minlength=self.ep) for rank, part in both]).reshape(len(load), self.ep)

    @property
    def _order(self) -> Ints:
        return np.argsort(self.slot_rank, axis=1, kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; `from_dict` reads them back."""
        return {
            "schema": SCHEMA, "ep": self.ep, "pp": self.pp, "slot_expert": self.slot_expert.tolist(),
            "slot_rank": self.slot_rank.tolist(), "layer_stage": self.layer_stage.tolist(),
            "slot_share": None if self.slot_share is None else self.slot_share.tolist(),
            "loads": None if self.loads is None else self.loads.to_dict(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, plan: dict[str, Any]) -> PlacementPlan:
        """Return the plan that `to_dict` wrote.

        Raises
        ------
        InputError
            Another schema, or arrays that do not belong together.

        Examples
        --------
        >>> plan = PlacementPlan.contiguous(8, (True, True), Layout(ep=4))
        >>> PlacementPlan.from_dict(plan.to_dict()).gpu_load([1] * 8).tolist()
        [[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]
        """
        schema = plan.get("schema") if isinstance(plan, dict) else None
        if schema not in (SCHEMA, *_OLDER):
            raise InputError(Fault("plan.schema", schema, f"must be {SCHEMA!r}", "Save the plan with this version."))
        try:
            expert, rank, stage = (
                np.array(plan[name], dtype=np.intp) for name in ("slot_expert", "slot_rank", "layer_stage")
            )
            share = None if plan["slot_share"] is None else np.array(plan["slot_share"], dtype=np.float64)
            loads = None if plan.get("loads") is None else PlanLoads.from_dict(plan["loads"])
            found = cls(expert, rank, stage, int(plan["ep"]), int(plan["pp"]), share, loads)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(Fault("plan", str(error), "is not what was saved", "Save the plan again.")) from None
        if expert.ndim != 2 or expert.shape != rank.shape or (share is not None and share.shape != rank.shape):
            raise InputError(Fault("plan", expert.shape, "has slots of unequal shapes", "Save the plan again."))
        if loads is not None and loads.gpu.shape != (len(expert), found.ep):
            rule = f"are not of {len(expert)} layers on {found.ep} GPUs"
            raise InputError(Fault("plan.loads", loads.gpu.shape, rule, "Save the plan again."))
        return found

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
    slots = plan.slot_expert.shape[-1] if model.is_moe else 0
    if layout.redundant and slots != model.n_experts + layout.redundant:
        rule = f"has {slots} slots of a layer, and the layout says {model.n_experts} + {layout.redundant} redundant"
        faults.append(Fault("plan", repr(plan), rule, "Leave redundant out: the plan says where copies are."))
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
    elif plan.slot_share is not None and not _shares_sum(plan, model.n_experts):
        rule = "has shares that are negative or do not sum to one over an expert's copies"
        faults.append(Fault("plan.slot_share", "array", rule, "Leave it out for equal shares."))
    if faults:
        raise InputError(*faults)


def _shares_sum(plan: PlacementPlan, n_experts: int) -> bool:
    share = plan.shares
    if share.shape != plan.slot_expert.shape or not (share >= 0).all():
        return False
    sums = [np.bincount(e, s, minlength=n_experts) for e, s in zip(plan.slot_expert, share, strict=True)]
    return bool(np.allclose(sums, 1.0, rtol=0, atol=1e-6))


def require_records(model: object, workload: object, layout: object = None, plan: object = None) -> None:
    """Refuse arguments of another type, all at once.

    Raises
    ------
    InputError
        Names each; layout and plan may be None.
    """
    require_types(model=(model, Model), workload=(workload, Workload))
    require_types(optional=True, layout=(layout, Layout), plan=(plan, PlacementPlan))


def require_types(*, optional: bool = False, **given: tuple[object, type]) -> None:
    """Refuse values that are not of their type, or None where that may be, all at once."""
    faults = [
        Fault(name, value, f"must be a serving.{kind.__name__}", f"Make one{', or leave it out' * optional}.")
        for name, (value, kind) in given.items()
        if not isinstance(value, kind) and not (optional and value is None)
    ]
    if faults:
        raise InputError(*faults)
