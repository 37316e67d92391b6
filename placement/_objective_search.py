"""Local search for any objective: slots change places, spare copies experts and shares, by simulated annealing.

Copies of an expert in a domain share that domain's tokens in proportion to their weights, and tokens of a domain
without one go to all copies in proportion. Plain Python on arrays; numba compiles the same functions where there is
much to do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._dice import draw
from topo import Loop

__all__ = ["HEAVIEST", "NAMES", "Goal", "Seating", "improve_seating", "seating_of", "values"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Objectives by their place in `Goal` and in what `values` returns.
NAMES = ("heaviest_gpu", "crossing", "busiest_link", "moved")
HEAVIEST, CROSSING, LINK, MOVED = range(4)
#: What the spread of loads, and of links' times, counts beside the largest: two placements with one heaviest GPU are
#: not alike.
_SPREAD, _UNEVEN = 0.05, 0.3
#: What a unit above a limit counts against a unit of the objective.
_PENALTY = 30.0
#: Limits no smaller than these, for that; times of links may be of any size. What is outside a limit ranks behind.
_LEAST, _OUTSIDE = (1e-3, 1e-3, 1e-15, 1e-3), 1e9
#: Least weight of a copy, and one over the most.
_LIGHT = 1e-3
#: Steps x what a step looks at above which numba is worth its import.
_MUCH = 200_000


class Seating(NamedTuple):
    """One layer's placement, and what the search must keep to.

    `expert` is (gpus, most slots): the expert of every slot, the number of experts where it is empty, -1 where there is
    no slot; `fixed` slots stay; `weight` is that of every slot's copy. `asked` is (domains, experts) parts of all
    tokens. `may` says which expert may be where, `zone` which GPUs are lost together (each expert then has copies in
    two), -1 each if that does not matter. `now` says which experts every GPU has already. Links are those of
    `LinkTimes`; none if they do not count. `owner` is the GPU whose experts load a link most.
    """

    expert: Ints
    weight: Floats
    fixed: Bools
    asked: Floats
    domain: Ints
    speed: Floats
    may: Bools
    zone: Ints
    now: Bools
    indptr: Ints
    link: Ints
    seconds: Floats
    n_links: int
    owner: Ints


class Goal(NamedTuple):
    """Weights of what is made small, and limits that what came before must keep to, infinite for none: (4,) each."""

    weight: Floats
    limit: Floats
    enough: Floats


class _Sums(NamedTuple):
    """What a placement sums to: load of GPUs, time of links, (crossing, moved).

    Of every expert: its copies, their weights by domain and by GPU, its copies by zone.
    """

    load: Floats
    time: Floats
    both: Floats
    many: Ints
    home: Floats
    held: Floats
    zones: Ints
    hot: Ints  # the heaviest GPU, the busiest link


def seating_of(
    expert: Ints, asked: Floats, domain: Ints, speed: Floats, may: Bools, fixed: Bools | None = None,
    zone: Ints | None = None, now: Bools | None = None, weight: Floats | None = None,
    links: tuple[Ints, Ints, Floats, int] | None = None,
) -> Seating:  # fmt: skip
    """Return a layer's placement for the search."""
    gpus, n = len(expert), asked.shape[1]
    indptr, link, seconds, n_links = links or (
        np.zeros(asked.shape[0] * gpus + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 0,
    )  # fmt: skip
    zone = np.full(gpus, -1) if zone is None else zone
    return Seating(
        np.ascontiguousarray(expert, dtype=np.int64),
        np.ones(expert.shape) if weight is None else np.clip(weight, _LIGHT, 1 / _LIGHT),
        np.zeros(expert.shape, dtype=bool) if fixed is None else fixed.copy(),
        np.ascontiguousarray(asked, dtype=np.float64), domain.astype(np.int64), speed.astype(np.float64),
        np.ascontiguousarray(may, dtype=bool), zone.astype(np.int64),
        np.zeros((gpus, n), dtype=bool) if now is None else now, indptr.astype(np.int64), link.astype(np.int64),
        seconds, n_links, _owners(indptr, link, seconds, n_links, gpus),
    )  # fmt: skip


def _owners(indptr: Ints, link: Ints, seconds: Floats, n_links: int, gpus: int) -> Ints:
    """Return the GPU of every link with most time on it, of all that domains send there."""
    gpu = np.repeat(np.arange(len(indptr) - 1) % gpus, np.diff(indptr))
    table = np.zeros((n_links, gpus))
    np.add.at(table, (link, gpu), seconds)
    return table.argmax(axis=1).astype(np.int64) if n_links else np.zeros(0, dtype=np.int64)


def values(a: Seating) -> Floats:
    """Return the objectives: heaviest GPU over the mean, part that crosses, busiest link [s], copies that are new."""
    found = np.zeros(4)
    _values(a, _summed(a), found)
    return found


def improve_seating(
    a: Seating, goal: Goal, work: int, seed: int, warm: float, cool: float, weighted: bool = False
) -> Floats:  # fmt: skip
    """Search on, in place, and return the objectives of the best found: within the limits first, then least.

    Parameters
    ----------
    a : Seating
        Where the search begins; the best found when it ends.
    goal : Goal
        What counts.
    work : int
        Steps.
    seed : int
        Of what is tried.
    warm, cool : float
        Temperatures at first and at last, over the objective's value at the start.
    weighted : bool, optional
        Whether copies of an expert may get unequal shares.
    """
    much = work * (len(a.expert) + a.n_links) > _MUCH
    found = np.zeros(4)
    _ANNEAL.run(much)(a, goal, work, seed, warm, cool, weighted, found)
    return found


def _anneal(
    a: Seating, goal: Goal, work: int, seed: int, warm: float, cool: float, weighted: bool, found: Floats
) -> None:  # fmt: skip
    sums, now = _summed(a), np.zeros(4)
    gpus, most, n = a.expert.shape[0], a.expert.shape[1], a.asked.shape[1]
    _values(a, sums, now)
    scale = 0.0
    for i in range(4):
        scale += goal.weight[i] * now[i]
    scale = max(scale, 1e-12)
    energy = _energy(sums, a, now, goal, scale)
    best, best_weight, least = a.expert.copy(), a.weight.copy(), _rank(now, goal, scale)
    found[:] = now
    dice = np.array([seed])
    for step in range(work):
        heat = warm * (cool / warm) ** (step / work)
        g, s = draw(dice, gpus), draw(dice, most)
        if step % 4 == 0 and (goal.weight[0] > 0 or now[0] > goal.limit[0]):  # help the heaviest
            g = sums.hot[0]
        elif step % 4 == 1 and (goal.weight[2] > 0 or now[2] > goal.limit[2]):
            g = a.owner[sums.hot[1]]
        e = a.expert[g, s]
        if e < 0:
            continue
        h, t, f, light, kind = -1, -1, e, a.weight[g, s], draw(dice, 6)
        heavy = light
        if kind == 0 and weighted and e < n and sums.many[e] > 1:
            heavy = min(max(light * np.exp((draw(dice, 1001) - 500) / 500), _LIGHT), 1 / _LIGHT)
        elif a.fixed[g, s]:
            continue
        elif kind < 3 and e < n and sums.many[e] > 1:
            f = draw(dice, n)
            if not _fits(a, sums, f, g, e):
                continue
            heavy = sums.home[f].sum() / sums.many[f]
        else:
            h, t = draw(dice, gpus), draw(dice, most)
            f = a.expert[h, t]
            if f < 0 or f == e or h == g or a.fixed[h, t]:
                continue
            if not (_fits(a, sums, f, g, e) and _fits(a, sums, e, h, f)):
                continue
            heavy = a.weight[h, t]
        _exchange(a, sums, g, s, h, t, e, f, light, heavy)
        _values(a, sums, now)
        if _apart(a, sums, e) and _apart(a, sums, f):
            after = _energy(sums, a, now, goal, scale)
            if after <= energy or draw(dice, 1 << 22) < np.exp((energy - after) / heat) * (1 << 22):
                energy = after
                rank = _rank(now, goal, scale)
                if rank < least - 1e-13:
                    least = rank
                    best[:] = a.expert
                    best_weight[:] = a.weight
                    found[:] = now
                continue
        _exchange(a, sums, g, s, h, t, f, e, heavy, light)
    a.expert[:] = best
    a.weight[:] = best_weight


def _exchange(
    a: Seating, sums: _Sums, g: int, s: int, h: int, t: int, e: int, f: int, light: float, heavy: float
) -> None:  # fmt: skip
    """Put a copy of f, of weight `heavy`, in the place of one of e, of weight `light`; and that in its place if any."""
    _count(a, sums, e, -1.0)
    if f != e:
        _count(a, sums, f, -1.0)
    _sit(a, sums, g, s, e, f, light, heavy)
    if h >= 0:
        _sit(a, sums, h, t, f, e, heavy, light)
    _count(a, sums, e, 1.0)
    if f != e:
        _count(a, sums, f, 1.0)


def _sit(a: Seating, sums: _Sums, g: int, s: int, e: int, f: int, light: float, heavy: float) -> None:
    """Put a copy of f in a slot in the place of one of e."""
    n, z = a.asked.shape[1], a.zone[g]
    for one, sign, weight in ((e, -1, light), (f, 1, heavy)):
        if one < n:
            sums.many[one] += sign
            sums.held[g, one] = weight if sign > 0 else 0.0
            if z >= 0:
                sums.zones[one, z] += sign
            if not a.now[g, one]:
                sums.both[1] += sign
    a.expert[g, s] = f
    a.weight[g, s] = heavy


def _fits(a: Seating, sums: _Sums, f: int, g: int, e: int) -> bool:
    """Whether expert f may take the place of e on a GPU."""
    if f == a.asked.shape[1]:
        return True
    return bool(a.may[f, g] and sums.held[g, f] == 0 and f != e)


def _apart(a: Seating, sums: _Sums, e: int) -> bool:
    """Whether an expert has copies in two zones, if that matters."""
    if a.zone[0] < 0 or e == a.asked.shape[1]:
        return True
    several = 0
    for z in range(sums.zones.shape[1]):
        several += sums.zones[e, z] > 0
    return several > 1


def _count(a: Seating, sums: _Sums, e: int, sign: float) -> None:
    """Add or take away all that an expert's tokens do."""
    domains, n = a.asked.shape
    if e == n or sums.many[e] == 0:
        return
    gpus = len(a.domain)
    if sign > 0:  # sums of weights anew: what rounding leaves of copies that are gone would hold tokens
        sums.home[e] = 0.0
        for g in range(gpus):
            sums.home[e, a.domain[g]] += sums.held[g, e]
    whole = sums.home[e].sum()
    for g in range(gpus):
        weight = sums.held[g, e]
        if weight == 0:
            continue
        for d in range(domains):
            if sums.home[e, d] > 0:
                part = a.asked[d, e] * weight / sums.home[e, d] if a.domain[g] == d else 0.0
            else:
                part = a.asked[d, e] * weight / whole
            if part == 0.0:
                continue
            sums.load[g] += sign * part
            if a.domain[g] != d:
                sums.both[0] += sign * part
            row = d * gpus + g
            for i in range(a.indptr[row], a.indptr[row + 1]):
                sums.time[a.link[i]] += sign * part * a.seconds[i]


def _summed(a: Seating) -> _Sums:
    gpus, (domains, n) = len(a.domain), a.asked.shape
    zones = 1
    for g in range(gpus):
        zones = max(zones, a.zone[g] + 1)
    sums = _Sums(
        np.zeros(gpus), np.zeros(a.n_links), np.zeros(2), np.zeros(n, dtype=np.int64),
        np.zeros((n, domains)), np.zeros((gpus, n)),
        np.zeros((n, zones), dtype=np.int64), np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    for g in range(gpus):
        for s in range(a.expert.shape[1]):
            e = a.expert[g, s]
            if 0 <= e < n:
                sums.many[e] += 1
                sums.held[g, e] = a.weight[g, s]
                if a.zone[g] >= 0:
                    sums.zones[e, a.zone[g]] += 1
                if not a.now[g, e]:
                    sums.both[1] += 1
    for e in range(n):
        _count(a, sums, e, 1.0)
    return sums


def _values(a: Seating, sums: _Sums, found: Floats) -> None:
    heavy, pace, total = 0.0, 0.0, 0.0
    for g in range(len(sums.load)):
        if a.expert[g, 0] >= 0:
            pace += a.speed[g]
        if sums.load[g] / a.speed[g] > heavy:
            heavy, sums.hot[0] = sums.load[g] / a.speed[g], g
        total += sums.load[g]
    found[0] = heavy * pace / total if total > 0 else 1.0
    found[1] = sums.both[0]
    found[2] = 0.0
    for i in range(len(sums.time)):
        if sums.time[i] > found[2]:
            found[2], sums.hot[1] = sums.time[i], i
    found[3] = sums.both[1]


def _energy(sums: _Sums, a: Seating, now: Floats, goal: Goal, scale: float) -> float:
    """Return `_order`, and a little for how uneven loads are."""
    found = _order(now, goal, scale)
    if goal.weight[0] > 0 or goal.limit[0] < np.inf:
        spread, mean = 0.0, 0.0
        for g in range(len(sums.load)):
            mean += sums.load[g] / len(sums.load)
        for g in range(len(sums.load)):
            spread += (sums.load[g] / a.speed[g] / mean - 1) ** 2 / len(sums.load)
        found += _SPREAD * spread
    if goal.weight[2] > 0 and now[2] > 0:
        spread = 0.0
        for i in range(len(sums.time)):
            spread += (sums.time[i] / now[2]) ** 8 / len(sums.time)
        found += _UNEVEN * spread * goal.weight[2] * now[2] / scale
    return found


def _order(now: Floats, goal: Goal, scale: float) -> float:
    """Return the weighted sum over its value at the start, and far more for what is above the limits."""
    found = 0.0
    for i in range(4):
        found += goal.weight[i] * max(now[i], goal.enough[i]) / scale
        if now[i] > goal.limit[i] * (1 + 1e-9) + 1e-12:
            found += _PENALTY * (now[i] - goal.limit[i]) / max(goal.limit[i], _LEAST[i])
    return found


def _rank(now: Floats, goal: Goal, scale: float) -> float:
    """Return `_order`, and more than it ever is where any limit is not kept."""
    found = _order(now, goal, scale)
    for i in range(4):
        if now[i] > goal.limit[i] * (1 + 1e-9) + 1e-12:
            return found + _OUTSIDE
    return found


_ANNEAL = Loop(
    _anneal, draw, _count, _summed, _values, _order, _rank, _energy, _apart, _fits, _sit, _exchange,
)  # fmt: skip
