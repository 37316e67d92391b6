"""Which GPUs hold which experts by any objectives: one, several in turn, or several weighed against each other?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import plain
from placement._across import asked_of
from placement._link_times import LinkTimes
from placement._objective_layer import WORK, Placed, Task, placed_by
from placement._objective_search import NAMES
from placement._rules import SHARINGS, Gpus, Rules
from serving import PlacementPlan
from topo import Fault, InputError, suggest
from topo.units import format_quantity

__all__ = ["OBJECTIVES", "ObjectivePlacement", "place_by"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Name -> what is made small, of every layer by itself.
OBJECTIVES: dict[str, str] = {
    "heaviest_gpu": "load over speed of the heaviest GPU, over the mean",
    "crossing": "part of the tokens' copies that leave their domain",
    "busiest_link": "time of the busiest link for dispatch and combine [s]",
    "moved": "copies of experts that are not where they are now",
}
assert tuple(OBJECTIVES) == NAMES

_LINKS_ASKED = "Give links=placement.link_times(graph, model, workload)."


@dataclass(frozen=True, eq=False, repr=False)
class ObjectivePlacement:
    """A placement by objectives, and how good each could be at best.

    Attributes
    ----------
    plan : PlacementPlan or None
        None when infeasible.
    objective : tuple of str
        Names of `OBJECTIVES`, the first first; those weighed against each other in any order.
    weight : dict or None
        Of each, where they are weighed against each other.
    enough : dict
        Values from which on an objective is good enough and the next one counts.
    value, bound : dict of (layers,) float
        Of every objective that can be told, asked for or not; and what no placement is below. The bounds of crossing
        and of the busiest link hold for placements that keep to the heaviest GPU where that came before; all others
        for any.
    gap : float or None
        Mean of the first objective, or of the weighted sum, over the mean of its bound, less one.
    status : str
        "optimal", "feasible" with value and bound of each, or "infeasible" and why.
    binding : str
        What keeps the first objective from falling.
    """

    plan: PlacementPlan | None
    objective: tuple[str, ...]
    weight: dict[str, float] | None
    enough: dict[str, float]
    value: dict[str, Floats]
    bound: dict[str, Floats]
    gap: float | None
    status: str
    binding: str

    def __repr__(self) -> str:
        return f"ObjectivePlacement({self.status})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self, leave_out=("plan",))
        return whole | {"plan": self.plan.to_dict() if self.plan else None}


def place_by(
    sources: ArrayLike,
    gpus: Gpus,
    objective: str | Sequence[str] | Mapping[str, float] = "heaviest_gpu",
    *,
    replicas: int = 0,
    sharing: str = "weighted",
    enough: Mapping[str, float] | None = None,
    rules: Rules | None = None,
    current: PlacementPlan | None = None,
    links: LinkTimes | None = None,
    work: int = WORK,
) -> ObjectivePlacement:
    """Place experts and spare copies so that one objective, or several, are small.

    Tokens go to the copies of their expert in their own domain, those of a domain without one to
    any copies: in proportion to the copies' shares, which are chosen too, or equally. Searches
    start from a level placement, from that of `place_across` and from the current one; shares are
    then settled by linear programs. The best by the objectives is taken, layer by layer.

    Parameters
    ----------
    sources : (domains, experts) or (layers, domains, experts) array
        Tokens of every expert by the domain they come from, in any unit.
    gpus : Gpus
        Slots, speed and domain of each.
    objective : str, sequence of str, or mapping of str to float
        One of `OBJECTIVES`; several in turn (lexicographic); or weights of those whose weighted
        sum counts, in their units.
    replicas : int, optional
        Spare copies beyond one of each expert.
    sharing : {"weighted", "equal"}, optional
        Whether copies of an expert may get unequal parts of its tokens.
    enough : mapping, optional
        Objective -> value from which on it is good enough: the next in turn may use the rest.
        What is not there must be kept as it was reached.
    rules : Rules, optional
        What every placement keeps to.
    current : PlacementPlan, optional
        What runs now, for "moved": its layers and GPUs.
    links : LinkTimes, optional
        From `link_times`, for "busiest_link".
    work : int, optional
        Steps of the search for every copy and objective: what bounds the time, whatever the clock says.

    Returns
    -------
    ObjectivePlacement
        Infeasible is a status that names the rule.

    Raises
    ------
    InputError
        Loads that are no numbers, unknown objectives, objectives without what they need, too few slots.

    Examples
    --------
    Two domains of two GPUs, and a current placement: at a heaviest GPU of 1.2 over the mean nothing need move.

    >>> import numpy as np
    >>> sources = np.array([[3.0, 2, 1, 0], [0, 1, 2, 3]])
    >>> machine = Gpus([1] * 4, domain=[0, 0, 1, 1])
    >>> place_by(sources, machine, "crossing").value["crossing"].round(4).tolist()
    [0.1667]
    """
    rules = rules or Rules()
    asked, _ = asked_of(sources, gpus, replicas)
    asked = asked / asked.sum(axis=(1, 2), keepdims=True)
    order, weight, enough = _require(objective, enough, sharing, rules, asked, gpus, current, links, work)
    n, copies = asked.shape[2], asked.shape[2] + replicas
    place = np.unique(gpus.domain, return_inverse=True)[1]
    task = Task(gpus, place, rules, links, copies, order, weight, enough, sharing == "weighted", work)
    layers: list[Placed] = []
    known: dict[bytes, Placed] = {}
    for i, row in enumerate(asked):
        now = _held(current, i, len(gpus.slots), n)
        key = row.tobytes() + now.tobytes()
        if key not in known:
            found = placed_by(task, row, current and _one(current, i), now)
            if isinstance(found, str):
                return ObjectivePlacement(None, order, weight, enough, {}, {}, None, f"infeasible: {found}", found)
            known[key] = found
        layers.append(known[key])
    return _answer(task, layers, current is not None)


def _one(plan: PlacementPlan, layer: int) -> PlacementPlan:
    share = None if plan.slot_share is None else plan.slot_share[layer][None]
    stage = np.zeros(1, dtype=np.intp)
    return PlacementPlan(plan.slot_expert[layer][None], plan.slot_rank[layer][None], stage, plan.ep, 1, share)


def _held(plan: PlacementPlan | None, layer: int, gpus: int, n: int) -> Bools:
    found = np.zeros((gpus, n), dtype=bool)
    if plan is not None:
        found[plan.slot_rank[layer], plan.slot_expert[layer]] = True
    return found


def _answer(task: Task, layers: list[Placed], moves: bool) -> ObjectivePlacement:
    """Put layers together; shares are written out where those of any layer are unequal."""
    expert, rank = (
        np.concatenate([getattr(one.plan, name) for one in layers]) for name in ("slot_expert", "slot_rank")
    )
    plan = PlacementPlan(expert, rank, np.zeros(len(layers), dtype=np.intp), len(task.gpus.slots), 1)
    if any(one.plan.slot_share is not None for one in layers):
        plan = replace(plan, slot_share=np.concatenate([one.plan.shares for one in layers]))
    told = [True, True, task.links is not None, moves]
    value, bound = (
        {name: np.array([getattr(one, what)[i] for one in layers]) for i, name in enumerate(NAMES) if told[i]}
        for what in ("value", "bound")
    )
    if task.weight is None:
        reached, least = value[task.order[0]].mean(), bound[task.order[0]].mean()
    else:
        reached, least = (
            sum(weight * what[name].mean() for name, weight in task.weight.items()) for what in (value, bound)
        )
    gap = float(reached / least - 1) if least > 0 else 0.0 if reached <= 0 else None
    each = ", ".join(f"{name} {_told(name, value)} (bound {_told(name, bound)})" for name in task.order)
    best = gap is not None and gap <= 1e-9 and (task.weight is not None or len(task.order) == 1)
    return ObjectivePlacement(
        plan, task.order, task.weight, task.enough, value, bound, gap,
        f"{'optimal' if best else 'feasible'}: {each}", layers[int(np.argmax([one.value[0] for one in layers]))].why,
    )  # fmt: skip


def _told(name: str, what: Mapping[str, Floats]) -> str:
    """Return the mean over layers in words."""
    mean = float(what[name].mean())
    return format_quantity(mean, "seconds") if name == "busiest_link" else f"{mean:.5g}"


def _require(
    objective: Any, enough: Any, sharing: str, rules: Rules, asked: Floats, gpus: Gpus, current: PlacementPlan | None,
    links: LinkTimes | None, work: object,
) -> tuple[tuple[str, ...], dict[str, float] | None, dict[str, float]]:  # fmt: skip
    """Refuse what cannot be, all at once."""
    weight = dict(objective) if isinstance(objective, Mapping) else None
    order = (objective,) if isinstance(objective, str) else tuple(objective)
    faults = []
    if not order or len(set(order)) < len(order):
        faults.append(Fault("objective", objective, "must name one or more, each once", suggest("", OBJECTIVES)))
    for place, names in (("objective", order), ("enough", tuple(enough or ()))):
        faults += [Fault(place, name, "is not known", suggest(str(name), OBJECTIVES)) for name in names
                   if name not in OBJECTIVES]  # fmt: skip
    for place, pairs in (("objective", weight or {}), ("enough", enough or {})):
        faults += [Fault(place, value, f"must be a finite number, zero or more, for {name}", "Correct it.")
                   for name, value in pairs.items() if not _number(value)]  # fmt: skip
    if sharing not in SHARINGS:
        faults.append(Fault("sharing", sharing, "is not known", suggest(str(sharing), SHARINGS)))
    if "busiest_link" in order and links is None:
        faults.append(Fault("links", None, "are needed for busiest_link", _LINKS_ASKED))
    if "moved" in order and current is None:
        faults.append(Fault("current", None, "is needed for moved", "Give the plan that runs now."))
    if current is not None and (current.ep, len(current.slot_expert)) != (len(gpus.slots), len(asked)):
        rule = f"is not of {len(asked)} layers on {len(gpus.slots)} GPUs"
        faults.append(Fault("current", repr(current), rule, "Give the plan of these."))
    elif current is not None and not 0 <= int(current.slot_expert.max(initial=0)) < asked.shape[2]:
        faults.append(Fault("current", repr(current), f"has others than the {asked.shape[2]} experts", "Correct it."))
    if isinstance(work, bool) or not isinstance(work, int | np.integer) or work < 0:
        faults.append(Fault("work", work, "must be a whole number, zero or more", "Leave it out."))
    if faults:
        raise InputError(*faults)
    rules.require(asked.shape[2], gpus)
    if links is not None:
        links.require(gpus)
    return order, weight, dict(enough or {})


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < np.inf
