"""Which GPUs hold which experts of one layer, by any objectives? Searches from several starts, and the best of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._across import place_across
from placement._flows import flows_to_gpus
from placement._homes import level_domain
from placement._link_times import LinkTimes
from placement._objective_bounds import crossing_bound, heaviest_bound, link_bound, moved_bound
from placement._objective_search import NAMES, Goal, Seating, improve_seating, seating_of, values
from placement._ruled_seats import Seats, seats_near, seats_under
from placement._rules import Gpus, Rules, home_choices, may_of
from placement._slot_shares import shared_out
from placement._start import start
from serving import PlacementPlan

__all__ = ["WORK", "Placed", "Task", "placed_by"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Steps for every copy and objective; copies are taken for no fewer; temperatures at first and at last.
WORK, _FEW, _HEAT, _COLD = 400, 80, (0.1, 1e-4), (0.008, 2e-5)
#: What objectives that come later count already: of two ways to one value the one that they like.
_LATER = 0.02
#: Parts of tokens that cross and of copies that move below which these are not told from a start without any.
_LEAST = 0.1
#: Part of the room above the mean that levelling may use.
_ROOM = 0.7
#: Choices of domains for groups kept together up to which a small layer tries each.
_CHOICES = 8


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked for, checked."""

    gpus: Gpus
    place: Ints
    rules: Rules
    links: LinkTimes | None
    copies: int
    order: tuple[str, ...]
    weight: dict[str, float] | None
    enough: dict[str, float]
    weighted: bool
    work: int

    def value(self, plan: PlacementPlan, asked: Floats, now: Bools) -> Floats:
        """Return all four objectives of a layer's plan, shares and all."""
        flow = flows_to_gpus(plan, asked[None], self.place)[0]
        load, able = flow.sum(axis=0), self.gpus.slots > 0
        mean = float(load.sum() / self.gpus.speed[able].sum())
        heavy = float((load[able] / self.gpus.speed[able]).max() / mean)
        crossing = float(flow[np.arange(len(flow))[:, None] != self.place].sum())
        busy = float(self.links.of(flow).max(initial=0.0)) if self.links else 0.0
        new = int((~now[plan.slot_rank[0], plan.slot_expert[0]]).sum())
        return np.array([heavy, crossing, busy, new])

    def key(self, value: Floats) -> tuple[float, ...]:
        """Return what placements are compared by."""
        told = dict(zip(NAMES, value, strict=True))
        if self.weight is not None:
            return (round(sum(weight * told[name] for name, weight in self.weight.items()), 12),)
        first = tuple(round(max(told[name], self.enough.get(name, 0.0)), 9) for name in self.order)
        return first + tuple(told[name] for name in self.order)


@dataclass(frozen=True, eq=False)
class Placed:
    plan: PlacementPlan
    value: Floats
    bound: Floats
    why: str


def placed_by(task: Task, asked: Floats, current: PlacementPlan | None, now: Bools) -> Placed | str:
    """Search from every start and keep the best."""
    gpus, n = task.gpus, asked.shape[1]
    may = may_of(gpus, task.rules, n)
    begun = _starts(task, asked, current, may)
    if isinstance(begun, str):
        return begun
    found = [_plan(_seating(task, asked, now, each)) for each in begun]
    # In small layers what comes later costs the first: each search once more without looking ahead.
    for each, later in product(begun, (_LATER, 0.0) if task.copies <= _FEW and len(task.order) > 1 else (_LATER,)):
        a = _seating(task, asked, now, each)
        for goal in _goals(task, a, later, each.heat == _COLD and task.rules.given != ()):
            improve_seating(a, goal, task.work * max(task.copies, _FEW), 1, *each.heat, each.weighted)
        found.append(_plan(a))
    if task.weighted:
        ways = task.links, task.order, task.weight, task.enough
        found += [shared_out(one, asked, task.place, gpus.speed, *ways) for one in found]
    plan = min(found, key=lambda one: task.key(task.value(one, asked, now)))
    value = task.value(plan, asked, now)
    return Placed(plan, value, *_bounds(task, asked, plan, value, now, may))


class _Start(NamedTuple):
    """Where a search begins: experts and weights of slots, which stay, who may be where; and how far it may stray."""

    expert: Ints
    weight: Floats
    fixed: Bools
    may: Bools
    heat: tuple[float, float]
    weighted: bool


def _starts(task: Task, asked: Floats, current: PlacementPlan | None, may: Bools) -> list[_Start] | str:
    """Return where searches begin; under rules also what is nearest to where they would begin without."""
    gpus, rules, load = task.gpus, task.rules, asked.sum(axis=0)
    if not rules.given:
        return _free_starts(task, asked, current, may)
    level = seats_under(load, gpus, rules, task.copies)
    if isinstance(level, str):
        return level
    found = [_ruled(level, gpus)]
    for homes in home_choices(rules, gpus, len(load), _CHOICES if task.copies <= _FEW else 0):
        other = seats_under(load, gpus, homes, task.copies)
        found += [] if isinstance(other, str) else [_ruled(other, gpus)]
    for each in _free_starts(task, asked, current, may):
        held, weight = (np.zeros((len(gpus.slots), len(load) + 1)) for _ in range(2))
        rows = np.arange(len(gpus.slots))[:, None]
        held[rows, each.expert], weight[rows, each.expert] = each.expert >= 0, each.weight
        near = seats_near(load, gpus, rules, task.copies, held[:, :-1].T > 0)
        if near is not None:
            bent = _ruled(near, gpus)
            mine = weight[rows, near.expert]
            bent = bent._replace(weight=np.where(mine > 0, mine, 1.0), heat=each.heat, weighted=each.weighted)
            found.append(_levelled(task, asked, bent) if each.weighted else bent)
    return found


def _ruled(seats: Seats, gpus: Gpus) -> _Start:
    there = np.arange(seats.expert.shape[1]) < gpus.slots[:, None]
    return _Start(
        np.where(there, seats.expert, -1), np.ones(there.shape), seats.fixed, seats.may, _HEAT, False
    )  # fmt: skip


def _levelled(task: Task, asked: Floats, begun: _Start) -> _Start:
    """Level the GPUs of every domain: what was bent to rules is heavy in places, and this lets no more tokens cross."""
    gpus, n = task.gpus, asked.shape[1]
    none = np.zeros((len(gpus.slots), n), dtype=bool)
    plan, load = _plan(_seating(task, asked, none, begun)), asked.sum(axis=0)
    rank, held = plan.slot_rank[0], plan.slot_expert[0]
    share, expert = np.zeros(none.shape), begun.expert.copy()
    share[rank, held] = plan.shares[0] * load[held]
    goal = 1 + _ROOM * max(0.0, task.enough.get(NAMES[0], 1.0) - 1)
    goal *= float(load.sum() / gpus.speed[gpus.slots > 0].sum())
    fixed = begun.fixed | (task.rules.apart in ("gpu", "host"))  # exchanges know of no zones, and move copies
    for d in range(len(asked)):
        level_domain(expert, share, np.flatnonzero(task.place == d), gpus, goal, task.work, begun.may, fixed)
    part = np.pad(share * plan.logcnt[0] / np.where(load > 0, load, 1.0), ((0, 0), (0, 1)))
    weight = part[np.arange(len(expert))[:, None], expert]
    return begun._replace(expert=expert, weight=np.where(weight > 0, weight, 1.0))


def _free_starts(task: Task, asked: Floats, current: PlacementPlan | None, may: Bools) -> list[_Start]:
    """Return where searches without rules begin."""
    gpus, n = task.gpus, asked.shape[1]
    load = asked.sum(axis=0)
    blank = np.where(np.arange(int(gpus.slots.max())) < gpus.slots[:, None], n, -1)
    ones, none = np.ones(blank.shape), np.zeros(blank.shape, dtype=bool)
    expert = start(load[None], gpus.slots, gpus.speed, task.copies, doubled=False).expert[0]
    level = np.where(blank < 0, -1, expert)
    found = [_Start(level, ones, none, may, _HEAT, False)]
    if task.weighted and len(asked) == 1:  # no placement over domains to start from
        found.append(_Start(level, ones, none, may, _HEAT, True))
    plans = [] if current is None or current.slot_expert.shape[1] != task.copies else [current]
    if len(asked) > 1 and task.weighted:
        balance = max(1.001, task.enough.get(NAMES[0], 1.01))
        across = place_across(asked, gpus, replicas=task.copies - n, balance=balance)
        plans += [across.plan] if across.plan is not None else []
    for plan in plans:
        rank = plan.slot_rank[0]
        if (np.bincount(rank, minlength=len(gpus.slots)) <= gpus.slots).all():
            order = np.argsort(rank, kind="stable")
            seat = np.empty(len(rank), dtype=np.int64)
            seat[order] = np.arange(len(rank)) - np.searchsorted(rank[order], rank[order])
            expert, weight = blank.copy(), ones.copy()
            expert[rank, seat] = plan.slot_expert[0]
            if task.weighted:
                weight[rank, seat] = plan.shares[0] * plan.logcnt[0][plan.slot_expert[0]]
            found.append(_Start(expert, weight, none, may, _COLD, task.weighted))
    return found


def _seating(task: Task, asked: Floats, now: Bools, begun: _Start) -> Seating:
    zone = None
    if task.rules.apart:
        zone = np.arange(len(task.place)) if task.rules.apart == "gpu" else getattr(task.gpus, task.rules.apart)
        zone = np.unique(zone, return_inverse=True)[1]
    links = None
    if task.links is not None:
        links = task.links.indptr, task.links.link, task.links.seconds, len(task.links.labels)
    return seating_of(
        begun.expert, asked, task.place, task.gpus.speed, begun.may, begun.fixed, zone, now, begun.weight, links
    )


def _goals(task: Task, a: Seating, ahead: float, mend: bool) -> Iterator[Goal]:
    """Yield what counts, in turn; each within what came before it reached, or what is enough of that.

    To mend a placement bent to rules, what comes later counts at first within what is enough, lest it is lost.
    """
    none, free = np.zeros(4), np.full(4, np.inf)
    if task.weight is not None:
        yield Goal(np.array([task.weight.get(name, 0.0) for name in NAMES]), free, none)
        return
    limit, enough = free.copy(), none.copy()
    size = np.maximum(values(a), [1.0, _LEAST, 1e-12, _LEAST * task.copies])
    if mend and task.enough.keys() & set(task.order[:-1]):
        weight = np.array([(name in task.order) / size[i] for i, name in enumerate(NAMES)])
        yield Goal(weight, np.array([task.enough.get(name, np.inf) for name in NAMES]), none)
    for k, name in enumerate(task.order):
        i, weight = NAMES.index(name), none.copy()
        for j, later in enumerate(task.order[k:]):
            weight[NAMES.index(later)] = size[i] * ahead**j / size[NAMES.index(later)]
        enough[i] = task.enough.get(name, 0.0)
        yield Goal(weight, limit.copy(), enough.copy())
        limit[i] = max(values(a)[i], enough[i])


def _bounds(
    task: Task, asked: Floats, plan: PlacementPlan, value: Floats, now: Bools, may: Bools
) -> tuple[Floats, str]:
    heavy, why = heaviest_bound(asked, task.gpus, task.copies, may)

    def limit(name: str) -> float:
        """Return the heaviest GPU that holds for an objective: where that one comes first."""
        first = task.weight is None and NAMES[0] in task.order
        if not first or name not in task.order[task.order.index(NAMES[0]) :]:
            return np.inf
        return float(max(value[0], task.enough.get(NAMES[0], 0.0)))

    crossing = crossing_bound(asked, task.gpus, task.copies, limit("crossing"), float(value[1]))
    busy = 0.0
    if task.links is not None:
        time = task.links.of(flows_to_gpus(plan, asked[None], task.place)[0])
        busy = min(link_bound(asked, task.links, task.gpus, task.copies, limit("busiest_link"), time), float(value[2]))
        if task.order[0] == "busiest_link":
            why = task.links.labels[int(np.argmax(time))]
    moved = moved_bound(now, task.gpus, task.copies, may)
    if task.order[0] in ("crossing", "moved"):
        why = "slots of the domains" if task.order[0] == "crossing" else "what is where now"
    return np.array([min(heavy, value[0]), crossing, busy, moved]), why


def _plan(a: Seating) -> PlacementPlan:
    """Return the plan of a layer, with shares where copies of an expert have unequal weights."""
    n = a.asked.shape[1]
    gpu, seat = np.nonzero((a.expert >= 0) & (a.expert < n))
    expert, weight, home = a.expert[gpu, seat], a.weight[gpu, seat], a.domain[gpu]
    plan = PlacementPlan(expert[None], gpu[None], np.zeros(1, dtype=np.intp), len(a.expert), 1)
    whole, many = np.bincount(expert, weight, n), np.bincount(expert, minlength=n)
    if np.allclose(weight, (whole / np.maximum(many, 1))[expert], rtol=1e-9, atol=0):
        return plan
    load = np.zeros(len(expert))
    for d, tokens in enumerate(a.asked):
        here = np.bincount(expert, weight * (home == d), n)[expert]
        load += tokens[expert] * np.where(
            here > 0, np.where(home == d, weight, 0.0) / np.where(here > 0, here, 1.0), weight / whole[expert]
        )
    total = np.bincount(expert, load, n)[expert]
    share = np.where(total > 0, load / np.where(total > 0, total, 1.0), weight / whole[expert])
    return replace(plan, slot_share=share[None])
