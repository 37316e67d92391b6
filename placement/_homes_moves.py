"""What does it change when two copies of experts change places, or a spare copy goes to another expert?

Copies are in bins: GPUs, or whole domains while their GPUs do not matter yet. Plain Python on arrays that
`_homes_search` compiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PARTS", "Homes", "away", "give", "lift", "pour", "swap"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Homes(NamedTuple):
    """One layer's copies, changed in place; expert number `experts` is an empty slot.

    `expert` is (bins, most slots), the expert in every slot. `held` and `share` are (bins, experts + 1): copies of an
    expert in a bin and its load there. `spot` is (experts + 1, bins): the bins that hold an expert, `many` of them.
    `asked` is (domains, experts + 1): tokens by where they come from, the last column zero; `whole` their sums.
    `most` is (bins, experts + 1): copies of an expert a bin may hold; `domain`, `speed`, `weight` (load) are (bins,).
    """

    expert: Ints
    held: Ints
    share: Floats
    spot: Ints
    many: Ints
    asked: Floats
    whole: Floats
    domain: Ints
    speed: Floats
    most: Ints
    weight: Floats


class Aim(NamedTuple):
    """What a place counts: load over speed above `limit`, and load of a copy above `size`, `fine` a unit."""

    limit: float
    size: float
    fine: float


def lone(a: Homes, e: int, k: int) -> bool:
    """Whether bin k of an expert's is the first in its domain."""
    for j in range(k):  # noqa: SIM110 (numba compiles loops, not generators)
        if a.domain[a.spot[e, j]] == a.domain[a.spot[e, k]]:
            return False
    return True


def away(a: Homes, e: int) -> float:
    """Return the tokens of an expert that come from domains without a copy."""
    left = a.whole[e]
    for k in range(a.many[e]):
        if lone(a, e, k):
            left -= a.asked[a.domain[a.spot[e, k]], e]
    return float(max(0.0, left))


def lift(a: Homes, e: int) -> None:
    """Take the expert's load off its bins."""
    for k in range(a.many[e]):
        b = a.spot[e, k]
        a.weight[b] -= a.share[b, e]
        a.share[b, e] = 0.0


def pour(a: Homes, e: int, size: float) -> None:
    """Share the expert's load: a domain's tokens over its own copies, the others over all, as level as can be."""
    if a.many[e] < 2:
        if a.many[e] == 0:  # an empty slot
            return
        b = a.spot[e, 0]
        a.share[b, e] = a.whole[e]
        a.weight[b] += a.whole[e]
        return
    left = a.whole[e]
    for k in range(a.many[e]):
        if lone(a, e, k):
            d = a.domain[a.spot[e, k]]
            left -= a.asked[d, e]
            fill(a, e, d, a.asked[d, e], size)
    fill(a, e, -1, left, size)


def fill(a: Homes, e: int, d: int, load: float, size: float) -> None:
    """Pour load over the copies in domain d, over all where d is negative, no copy fuller than `size`."""
    while load > 1e-12 * a.whole[e]:
        level, top = 0.0, np.inf
        while True:
            pace, filled, highest = 0.0, load, -np.inf
            for k in range(a.many[e]):
                b = a.spot[e, k]
                if (d < 0 or a.domain[b] == d) and a.weight[b] / a.speed[b] < top and room(a, e, b, size) > 0:
                    pace += a.speed[b]
                    filled += a.weight[b]
                    highest = max(highest, a.weight[b] / a.speed[b])
            if pace <= 0:
                break
            level = filled / pace
            if highest <= level * (1 + 1e-12):
                break
            top = highest
        if pace <= 0:  # all are full: the first takes the rest
            for k in range(a.many[e]):
                b = a.spot[e, k]
                if d < 0 or a.domain[b] == d:
                    a.share[b, e] += load
                    a.weight[b] += load
                    return
            return
        before = load
        for k in range(a.many[e]):
            b = a.spot[e, k]
            if d < 0 or a.domain[b] == d:
                more = min(level * a.speed[b] - a.weight[b], room(a, e, b, size))
                if more > 0:
                    a.share[b, e] += more
                    a.weight[b] += more
                    load -= more
        if load >= before:
            return


def room(a: Homes, e: int, b: int, size: float) -> float:
    """Return what a bin's copies of an expert may still take."""
    return float(a.held[b, e] * size - a.share[b, e])


def worth(a: Homes, e: int, f: int, g: int, b: int, c: int, aim: Aim) -> float:
    """Return what three experts, two bins and all bins of the experts count."""
    total = max(0.0, a.weight[b] - aim.limit * a.speed[b])
    if c != b:
        total += max(0.0, a.weight[c] - aim.limit * a.speed[c])
    for k in range(a.many[e]):
        i = a.spot[e, k]
        total += max(0.0, -room(a, e, i, aim.size))
        if i not in (b, c):
            total += max(0.0, a.weight[i] - aim.limit * a.speed[i])
    for k in range(a.many[f]):
        i = a.spot[f, k]
        total += max(0.0, -room(a, f, i, aim.size))
        if i not in (b, c) and a.held[i, e] == 0:
            total += max(0.0, a.weight[i] - aim.limit * a.speed[i])
    for k in range(a.many[g]):
        i = a.spot[g, k]
        total += max(0.0, -room(a, g, i, aim.size))
        if i not in (b, c) and a.held[i, e] == 0 and a.held[i, f] == 0:
            total += max(0.0, a.weight[i] - aim.limit * a.speed[i])
    return float(aim.fine * total + away(a, e) + away(a, f) + away(a, g))


def keep(a: Homes, e: int, kept: Floats) -> None:
    """Remember the shares of an expert."""
    for k in range(a.many[e]):
        kept[a.spot[e, k]] = a.share[a.spot[e, k], e]


def restore(a: Homes, e: int, kept: Floats) -> None:
    """Give an expert the shares that were remembered."""
    for k in range(a.many[e]):
        b = a.spot[e, k]
        a.share[b, e] = kept[b]
        a.weight[b] += kept[b]


def change(a: Homes, b: int, s: int, f: int) -> None:
    """Put a copy of f in the place of what is in a slot, loads aside."""
    e = a.expert[b, s]
    a.expert[b, s] = f
    if e < len(a.whole) - 1:
        a.held[b, e] -= 1
        if a.held[b, e] == 0:
            a.many[e] -= 1
            for k in range(a.many[e]):
                if a.spot[e, k] == b:
                    a.spot[e, k] = a.spot[e, a.many[e]]
                    break
    if f < len(a.whole) - 1:
        a.held[b, f] += 1
        if a.held[b, f] == 1:
            a.spot[f, a.many[f]] = b
            a.many[f] += 1


def swap(a: Homes, b: int, s: int, c: int, t: int, aim: Aim, worse: float, kept: Floats) -> None:
    """Exchange what is in slots of two bins where that is not worse by more than `worse`."""
    e, f = a.expert[b, s], a.expert[c, t]
    if e == f or a.held[c, e] >= a.most[c, e] or a.held[b, f] >= a.most[b, f]:
        return
    if a.many[e] < 2 and a.many[f] < 2 and a.held[b, e] < 2 and a.held[c, f] < 2:
        gain = a.share[b, e] - a.share[c, f]
        here, there = a.weight[b] - aim.limit * a.speed[b], a.weight[c] - aim.limit * a.speed[c]
        more = max(0.0, here - gain) - max(0.0, here) + max(0.0, there + gain) - max(0.0, there)
        i, j = a.domain[b], a.domain[c]
        if aim.fine * more + a.asked[i, e] - a.asked[j, e] + a.asked[j, f] - a.asked[i, f] > worse:
            return
    none = len(a.whole) - 1
    before = worth(a, e, f, none, b, c, aim)
    keep(a, e, kept[0])
    keep(a, f, kept[1])
    lift(a, e)
    lift(a, f)
    change(a, b, s, f)
    change(a, c, t, e)
    pour(a, e, aim.size)
    pour(a, f, aim.size)
    if worth(a, e, f, none, b, c, aim) - before > worse:
        lift(a, e)
        lift(a, f)
        change(a, b, s, e)
        change(a, c, t, f)
        restore(a, e, kept[0])
        restore(a, f, kept[1])


def give(a: Homes, b: int, s: int, c: int, t: int, f: int, aim: Aim, worse: float, kept: Floats) -> None:
    """Put what is in slot t of bin c in the place of a spare copy, and a copy of f there, where that is not much worse.

    With the same slot twice, f comes in the place of the spare copy.
    """
    e, g = a.expert[b, s], a.expert[c, t]
    if b == c:
        c, t, g = b, s, len(a.whole) - 1
    if f in (e, g) or g == e or a.held[c, f] >= a.most[c, f] or (b != c and a.held[b, g] >= a.most[b, g]):
        return
    before = worth(a, e, f, g, b, c, aim)
    keep(a, e, kept[0])
    keep(a, f, kept[1])
    keep(a, g, kept[2])
    lift(a, e)
    lift(a, f)
    lift(a, g)
    if b != c:
        change(a, b, s, g)
    change(a, c, t, f)
    pour(a, e, aim.size)
    pour(a, f, aim.size)
    pour(a, g, aim.size)
    if worth(a, e, f, g, b, c, aim) - before > worse:
        lift(a, e)
        lift(a, f)
        lift(a, g)
        if b != c:
            change(a, c, t, g)
        change(a, b, s, e)
        restore(a, e, kept[0])
        restore(a, f, kept[1])
        restore(a, g, kept[2])


#: What numba compiles into a search.
PARTS = (lone, away, room, fill, lift, pour, worth, keep, restore, change, swap, give)
