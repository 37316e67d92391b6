"""Which GPUs hold which experts of one layer, by any objectives? Searches from several starts, and the best of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._across import place_across
from placement._flows import flows_to_gpus
from placement._link_times import LinkTimes
from placement._objective_bounds import crossing_bound, heaviest_bound, link_bound, moved_bound
from placement._objective_search import NAMES, Goal, Seating, improve_seating, seating_of, values
from placement._ruled_seats import seats_under
from placement._rules import Gpus, Rules, may_of
from placement._slot_shares import shared_out
from placement._start import start
from serving import PlacementPlan

__all__ = ["WORK", "Placed", "Task", "placed_by"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Steps for every copy and objective; copies are taken for no fewer; temperatures at first and at last.
WORK, _FEW, _HEAT, _COLD = 400, 80, (0.1, 1e-4), (0.002, 1e-5)
#: What objectives that come later count already: of two ways to one value the one that they like.
_LATER = 0.02
#: Parts of tokens that cross and of copies that move below which these are not told from a start without any.
_LEAST = 0.1


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
    for each in begun:
        a = _seating(task, asked, now, each)
        for goal in _goals(task, a):
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
    gpus, n = task.gpus, asked.shape[1]
    load = asked.sum(axis=0)
    blank = np.where(np.arange(int(gpus.slots.max())) < gpus.slots[:, None], n, -1)
    ones, none = np.ones(blank.shape), np.zeros(blank.shape, dtype=bool)
    if task.rules.given:
        seats = seats_under(load, gpus, task.rules, task.copies)
        if isinstance(seats, str):
            return seats
        return [_Start(np.where(blank < 0, -1, seats.expert), ones, seats.fixed, seats.may, _HEAT, False)]
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


def _goals(task: Task, a: Seating) -> Iterator[Goal]:
    """Yield what counts, in turn; each within what came before it reached, or what is enough of that."""
    none, free = np.zeros(4), np.full(4, np.inf)
    if task.weight is not None:
        yield Goal(np.array([task.weight.get(name, 0.0) for name in NAMES]), free, none)
        return
    limit, enough = free.copy(), none.copy()
    size = np.maximum(values(a), [1.0, _LEAST, 1e-12, _LEAST * task.copies])
    for k, name in enumerate(task.order):
        i, weight = NAMES.index(name), none.copy()
        for j, later in enumerate(task.order[k:]):
            weight[NAMES.index(later)] = size[i] * _LATER**j / size[NAMES.index(later)]
        enough[i] = task.enough.get(name, 0.0)
        yield Goal(weight, limit.copy(), enough.copy())
        limit[i] = max(values(a)[i], enough[i])


def _bounds(
    task: Task, asked: Floats, plan: PlacementPlan, value: Floats, now: Bools, may: Bools
) -> tuple[Floats, str]:
    heavy, why = heaviest_bound(asked, task.gpus, task.copies, may)
    limit = np.inf
    if task.weight is None and NAMES[0] in task.order[:-1] and "crossing" in task.order[task.order.index(NAMES[0]) :]:
        limit = max(value[0], task.enough.get(NAMES[0], 0.0))
    crossing = crossing_bound(asked, task.gpus, task.copies, limit, float(value[1]))
    busy = 0.0
    if task.links is not None:
        time = task.links.of(flows_to_gpus(plan, asked[None], task.place)[0])
        busy = min(link_bound(asked, task.links, task.copies, time), float(value[2]))
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
