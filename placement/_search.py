"""How light can one layer's heaviest GPU be made? Exchanges, other spare copies, other shares, within fixed work.

Plain Python on arrays that numba compiles on first use and keeps on disk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement._moves import MOVES, Layer, descend, draw, fits, kick, weigh, weigh_one
from topo import Loop

__all__ = ["search"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pairs of slots looked at, beyond which numba is worth its import.
_MUCH = 40_000


def search(layer: Layer, goal: float, work: int, weighted: bool, seed: int = 1) -> float:
    """Improve a layer in place and return its heaviest GPU, load over speed.

    Parameters
    ----------
    layer : Layer
        A placement that keeps to its own rules; with shares of equal parts or any.
    goal : float
        Stop at a heaviest GPU as light as this.
    work : int
        Looks of the heaviest GPU at all others: what bounds the time, whatever the clock says.
    weighted : bool
        Whether copies of an expert may have unequal shares.
    seed : int, optional
        Of what is tried by chance.
    """
    much = len(layer.speed) * layer.expert.shape[1] ** 2 * work > _MUCH
    return float(_RUN.run(much)(layer, goal, work, weighted, seed))


def _run(a: Layer, goal: float, work: int, weighted: bool, seed: int) -> float:
    """Settle, then kicks and other counts in turn while there is work left."""
    left, dice = np.array([work]), np.array([seed])
    weight = weigh(a)
    _settle(a, weight, goal, left, weighted)
    best = float(weight.max())
    kept = Layer(a.expert.copy(), a.share.copy(), a.load, a.copies.copy(), a.speed, a.may, a.held)
    first = min(work // 8, 60 * len(a.speed))
    if not weighted and best > 1.02 * goal:
        best = _try_counts(a, kept, weight, best, goal, left, weighted)
    while left[0] > 0 and best > goal:
        until = left[0] - first
        while left[0] > until and left[0] > 0 and best > goal:
            left[0] -= 1
            kick(a, weight, dice)
            _settle(a, weight, goal, left, weighted)
            best = _keep(a, kept, weight, best)
        if best > goal:
            best = _try_counts(a, kept, weight, best, goal, left, weighted)
        for _ in range(6):
            if left[0] > 0 and best > goal:
                best = _leap(a, kept, weight, best, goal, left, dice, weighted)
    return best


def _leap(
    a: Layer, kept: Layer, weight: Floats, best: float, goal: float, left: Ints, dice: Ints, weighted: bool
) -> float:  # fmt: skip
    """Move a spare copy by chance, and look for better ones from there."""
    more = a.expert[np.argmax(weight), draw(dice, a.expert.shape[1])]
    fewer = draw(dice, len(a.load) - 1)
    for _ in range(64):
        if a.copies[fewer] > 1:
            break
        fewer = draw(dice, len(a.load) - 1)
    left[0] -= 1
    if more == len(a.load) - 1 or more == fewer or a.copies[fewer] < 2 or a.copies[more] >= len(weight):
        return best
    if not _recount(a, weight, more, fewer, weighted):
        return best
    _settle(a, weight, goal, left, weighted)
    near = Layer(a.expert.copy(), a.share.copy(), a.load, a.copies.copy(), a.speed, a.may, a.held)
    _try_counts(a, near, weight, float(weight.max()), goal, left, weighted)
    return _keep(a, kept, weight, best)


def _level(a: Layer, weight: Floats) -> None:
    """Share each expert's load so that its GPUs are as level as can be, expert after expert, until nothing moves."""
    most = a.expert.shape[1]
    for _ in range(60):
        moved = 0.0
        for i in range(len(a.load) - 1):
            if a.copies[i] < 2:
                continue
            gpus, seats = np.zeros(a.copies[i], dtype=np.int64), np.zeros(a.copies[i], dtype=np.int64)
            k = 0
            for g in range(len(weight)):
                for s in range(most):
                    if a.expert[g, s] == i:
                        gpus[k], seats[k] = g, s
                        k += 1
            base = np.zeros(k)
            for j in range(k):
                base[j] = weight[gpus[j]] - a.share[gpus[j], seats[j]] / a.speed[gpus[j]]
            level = _water(base, gpus, a.speed, a.load[i])
            for j in range(k):
                g, s = gpus[j], seats[j]
                new = max(0.0, level - base[j]) * a.speed[g]
                moved = max(moved, abs(new - a.share[g, s]) / a.speed[g])
                a.share[g, s] = new
                weigh_one(a, weight, g)
        if moved < 1e-7 * weight.max():
            return


def _water(floor: Floats, gpus: Ints, speed: Floats, load: float) -> float:
    """Return how high the load stands over these floors: floors above it stay dry."""
    level, highest = 0.0, np.inf
    while True:
        pace, filled, top = 0.0, load, -np.inf
        for j in range(len(floor)):
            if floor[j] < highest:
                pace += speed[gpus[j]]
                filled += floor[j] * speed[gpus[j]]
                top = max(top, floor[j])
        if pace == 0.0:  # without any load rounding may leave even the lowest floors dry
            return highest
        level = filled / pace
        if top <= level:
            return level
        highest = top


def _settle(a: Layer, weight: Floats, goal: float, left: Ints, weighted: bool) -> None:
    descend(a, weight, goal, left)
    if weighted and weight.max() > goal:
        _level(a, weight)
        before = weight.max()
        descend(a, weight, goal, left)
        if weight.max() < before:
            _level(a, weight)


def _keep(a: Layer, kept: Layer, weight: Floats, best: float) -> float:
    """Keep what is as light as the best, go back to the best otherwise."""
    if weight.max() <= best:
        best = float(weight.max())
        kept.expert[:], kept.share[:], kept.copies[:] = a.expert, a.share, a.copies
        return best
    a.expert[:], a.share[:], a.copies[:] = kept.expert, kept.share, kept.copies
    weight[:] = weigh(a)
    return best


def _recount(a: Layer, weight: Floats, more: int, fewer: int, weighted: bool) -> bool:
    """Put a copy of `more` in the place of the copy of `fewer` where that weighs least; say whether there is one."""
    n, most = len(a.load) - 1, a.expert.shape[1]
    extra = a.load[more] / (a.copies[more] + 1)
    where, seat, least = -1, -1, np.inf
    for g in range(len(weight)):
        for s in range(most):
            if a.expert[g, s] == fewer and not a.held[g, s] and fits(a, g, more, s, -1):
                after = weight[g] + (extra - a.share[g, s]) / a.speed[g]
                if after < least:
                    where, seat, least = g, s, after
    if where < 0:
        return False
    gone = a.share[where, seat]
    a.copies[more] += 1
    a.copies[fewer] -= 1 if fewer < n else 0
    a.expert[where, seat], a.share[where, seat] = more, 0.0
    for g in range(len(weight)):
        for s in range(most):
            if a.expert[g, s] == more:
                a.share[g, s] = a.load[more] / a.copies[more]
            elif a.expert[g, s] == fewer and fewer < n:
                if weighted:
                    a.share[g, s] += gone / a.copies[fewer]
                else:
                    a.share[g, s] = a.load[fewer] / a.copies[fewer]
    weight[:] = weigh(a)
    return True


def _try_counts(
    a: Layer, kept: Layer, weight: Floats, best: float, goal: float, left: Ints, weighted: bool
) -> float:  # fmt: skip
    """Move a spare copy to a large expert of the heaviest GPU, from the one least missed; start anew after a gain."""
    n = len(a.load) - 1
    gained = True
    while gained and left[0] > 0 and best > goal:
        gained = False
        g = int(np.argmax(weight))
        large = _largest(a, g)
        missed = np.full(n, np.inf)
        for j in range(n):
            if a.copies[j] > 1:
                missed[j] = a.load[j] if weighted else a.load[j] / (a.copies[j] - 1)
        while left[0] > 0 and not gained:
            j = int(np.argmin(missed))
            if missed[j] >= best * a.speed.max():
                break
            missed[j] = np.inf
            for i in large:
                if i in (n, j) or gained or a.copies[i] >= len(weight) or a.copies[j] < 2:
                    continue
                left[0] -= 1
                if _recount(a, weight, i, j, weighted):
                    _settle(a, weight, goal, left, weighted)
                    gained = weight.max() < best * (1 - 1e-9)
                    best = _keep(a, kept, weight, best)
    return best


def _largest(a: Layer, gpu: int) -> tuple[int, int]:
    """Return the experts of a GPU's two largest copies."""
    first, second = -1, -1
    for s in range(a.expert.shape[1]):
        if first < 0 or a.share[gpu, s] > a.share[gpu, first]:
            first, second = s, first
        elif second < 0 or a.share[gpu, s] > a.share[gpu, second]:
            second = s
    return a.expert[gpu, first], a.expert[gpu, max(second, 0)]


#: What numba compiles into `_run`.
_PARTS = (*MOVES, _water, _level, _settle, _largest, _keep, _recount, _try_counts, _leap)
_RUN = Loop(_run, *_PARTS)
