"""Which exchanges of copies make one layer's heaviest GPU lighter? Under any rules, singly and in pairs.

Plain Python on arrays that `_search` compiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOVES", "Layer", "descend", "draw", "fits", "kick", "layer_of", "weigh", "weigh_one"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Exchanges must make the heaviest GPU lighter by this, relatively.
_LESS = 1e-10
#: Slots up to which pairs of copies are exchanged for pairs: beyond, single ones find enough.
_PAIRS = 9


class Layer(NamedTuple):
    """One layer's placement, changed in place.

    `expert` and `share` are (gpus, most slots): the expert in a slot (the number of experts
    where it is empty) and the load of that copy. `load` and `copies` are (experts + 1,), the
    last zero. `may` says which GPU may hold which expert, (experts + 1, gpus). Seats that
    are `held` (gpus, most slots) are not touched: pinned ones, and those that are not there.
    """

    expert: Ints
    share: Floats
    load: Floats
    copies: Ints
    speed: Floats
    may: NDArray[np.bool_]
    held: NDArray[np.bool_]


def fits(a: Layer, gpu: int, expert: int, but: int, also: int) -> bool:
    """Whether the GPU may take the expert, slots `but` and `also` aside."""
    if expert == len(a.load) - 1:
        return True
    if not a.may[expert, gpu]:
        return False
    for s in range(a.expert.shape[1]):  # noqa: SIM110 (numba compiles loops, not generators)
        if s != but and s != also and a.expert[gpu, s] == expert:
            return False
    return True


def weigh(a: Layer) -> Floats:
    weight = np.zeros(len(a.speed))
    for g in range(len(a.speed)):
        weigh_one(a, weight, g)
    return weight


def weigh_one(a: Layer, weight: Floats, g: int) -> None:
    total = 0.0
    for s in range(a.share.shape[1]):
        total += a.share[g, s]
    weight[g] = total / a.speed[g]


def swap(a: Layer, weight: Floats, g: int, s: int, h: int, t: int) -> None:
    a.expert[g, s], a.expert[h, t] = a.expert[h, t], a.expert[g, s]
    a.share[g, s], a.share[h, t] = a.share[h, t], a.share[g, s]
    weigh_one(a, weight, g)
    weigh_one(a, weight, h)


def best_exchange(a: Layer, weight: Floats, g: int, h: int, least: float, found: Ints) -> float:
    """Look for an exchange between GPUs g and h that leaves both below `least`; note it in `found`."""
    most, e, x = a.expert.shape[1], a.expert, a.share
    mine, theirs = weight[g] * a.speed[g], weight[h] * a.speed[h]
    for s in range(most):
        if a.held[g, s]:
            continue
        for t in range(most):
            gain = x[g, s] - x[h, t]
            worth = max((mine - gain) / a.speed[g], (theirs + gain) / a.speed[h])
            if gain <= 0 or worth >= least or a.held[h, t]:
                continue
            if fits(a, g, e[h, t], s, -1) and fits(a, h, e[g, s], t, -1):
                least = worth
                found[0], found[1], found[2], found[3], found[4] = h, s, t, -1, -1
        if most > _PAIRS:
            continue
        for r in range(s):
            if a.held[g, r]:
                continue
            for t in range(most):
                for u in range(t):
                    gain = x[g, s] + x[g, r] - x[h, t] - x[h, u]
                    worth = max((mine - gain) / a.speed[g], (theirs + gain) / a.speed[h])
                    if gain <= 0 or worth >= least or a.held[h, t] or a.held[h, u]:
                        continue
                    here = fits(a, g, e[h, t], s, r) and fits(a, g, e[h, u], s, r)
                    if here and fits(a, h, e[g, s], t, u) and fits(a, h, e[g, r], t, u):
                        least = worth
                        found[0], found[1], found[2], found[3], found[4] = h, s, t, r, u
    return least


def descend(a: Layer, weight: Floats, goal: float, left: Ints) -> None:
    """Carry out the best exchange of the heaviest GPU again and again."""
    found = np.zeros(5, dtype=np.int64)
    while left[0] > 0:
        left[0] -= 1
        g = int(np.argmax(weight))
        least = weight[g] * (1 - _LESS)
        if weight[g] <= goal:
            return
        found[0] = -1
        for h in range(len(weight)):
            if h != g and weight[h] < least:
                least = best_exchange(a, weight, g, h, least, found)
        if found[0] < 0:
            return
        h = found[0]
        swap(a, weight, g, found[1], h, found[2])
        if found[3] >= 0:
            swap(a, weight, g, found[3], h, found[4])


def layer_of(load: Floats, expert: Ints, count: Ints, slots: Ints, speed: Floats) -> Layer:
    """Return a layer whose copies share equally, under no rules but its slots."""
    share = np.append(load / count, 0.0)[expert]
    held = np.arange(expert.shape[1]) >= slots[:, None]
    may = np.tile(slots > 0, (len(load) + 1, 1))
    return Layer(expert.astype(np.int64), share, np.append(load, 0.0), np.append(count, 0), speed, may, held)


def draw(dice: Ints, below: int) -> int:
    """Return the next of a fixed sequence of chance numbers."""
    dice[0] = (dice[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return int(dice[0] >> 16) % below


def kick(a: Layer, weight: Floats, dice: Ints) -> None:
    """Exchange a few copies by chance, the first of the heaviest GPU."""
    gpus, most = a.expert.shape
    g = int(np.argmax(weight))
    for _ in range(3):
        h, s, t = draw(dice, gpus), draw(dice, most), draw(dice, most)
        free = h != g and not a.held[g, s] and not a.held[h, t]
        if free and fits(a, g, a.expert[h, t], s, -1) and fits(a, h, a.expert[g, s], t, -1):
            swap(a, weight, g, s, h, t)
        g = h


#: What numba compiles into a search.
MOVES = (draw, fits, weigh_one, weigh, swap, best_exchange, descend, kick)
