"""Where do copies of experts go, quickly? All layers at once: spare copies, packing, exchanges.

Copies go where one is heaviest (water-filling) and the heaviest first onto the lightest
GPU, as EPLB does and in its float32, but never beside a copy of the same expert; then the
heaviest GPU exchanges copies with any other while that makes it lighter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement._exchanges import Seats, exchanged, parted

__all__ = ["copy_counts", "even_slots", "greedy", "heaviest_of", "start"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def even_slots(slots: int, gpus: int) -> Ints:
    """Return the slots of every GPU: as equal as they divide, the first GPUs one more.

    Examples
    --------
    >>> even_slots(8, 3).tolist()
    [3, 3, 2]
    """
    return np.full(gpus, slots // gpus) + (np.arange(gpus) < slots % gpus)


def copy_counts(load: NDArray[np.floating], slots: int, most: int) -> Ints:
    """Return copies of every expert: one more, again and again, where a copy is heaviest.

    Parameters
    ----------
    load : (layers, experts) float
        Loads, in the precision to work in.
    slots, most : int
        Copies in all, and of one expert at most.

    Examples
    --------
    >>> import numpy as np
    >>> copy_counts(np.array([[6.0, 2.0, 1.0]]), 5, 4).tolist()
    [[3, 1, 1]]
    """
    layers, n = load.shape
    count, rows = np.ones((layers, n), dtype=np.int64), np.arange(layers)
    share = load.copy()
    if most == 1:
        share[:] = -1
    for _ in range(slots - n):
        chosen = share.argmax(axis=1)
        count[rows, chosen] += 1
        held = count[rows, chosen]
        share[rows, chosen] = np.where(held < most, load[rows, chosen] / held.astype(load.dtype), -1)
    return count


def heaviest_of(load: Floats, seats: Seats, speed: Floats) -> Floats:
    """Return the heaviest GPU of every layer, copies sharing equally: load over speed."""
    share = np.pad(load / seats.count, ((0, 0), (0, 1)))
    rows = np.arange(len(load))[:, None, None]
    return np.asarray((share[rows, seats.expert].sum(axis=2) / speed).max(axis=1))


def greedy(load: Floats, slots: Ints, speed: Floats, copies: int) -> Seats:
    """Return EPLB's answer: copies of one expert may share a GPU."""
    coarse = _coarse(load)
    count = copy_counts(coarse, copies, copies)
    return Seats(_packed(coarse, count, slots, speed, apart=False)[0], count)


def _coarse(load: Floats) -> NDArray[np.float32]:
    """Return loads as EPLB sees them; the power of two keeps every digit."""
    coarse: NDArray[np.float32] = np.ldexp(load, -np.frexp(load.max(axis=1, keepdims=True))[1]).astype(np.float32)
    return coarse


def start(
    load: Floats, slots: Ints, speed: Floats | None = None, copies: int | None = None, doubled: bool = True
) -> Seats:
    """Place all layers' experts.

    Parameters
    ----------
    load : (layers, experts) float
        Zero or more.
    slots : (gpus,) int
        Slots of every GPU; no fewer in all than experts.
    speed : (gpus,) float, optional
        Relative speeds; a GPU counts as heavy as load / speed. Equal by default.

    copies : int, optional
        Copies in all; as many as slots by default.
    doubled : bool, optional
        Whether a layer may have two copies of an expert on one GPU where it would be
        heavier than EPLB's otherwise.

    Returns
    -------
    Seats
        No layer is heavier than EPLB's greedy answer. Two copies of an expert are on one
        GPU only where there are too many to be apart, or where apart is heavier than that.

    Examples
    --------
    >>> import numpy as np
    >>> start(np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([2, 2])).expert.tolist()
    [[[0, 3], [1, 2]]]
    """
    speed = np.ones(len(slots)) if speed is None else speed
    total, n = copies or int(slots.sum()), load.shape[1]
    coarse = _coarse(load)
    apart = max(int((slots > 0).sum()), -(-total // n))
    count = copy_counts(coarse, total, apart)
    expert, bent = _packed(coarse, count, slots, speed, apart=True)
    seats = Seats(expert, count)
    bent |= count.max(axis=1) >= apart
    if not bent.any():
        return exchanged(load, seats, slots, speed)
    tame = exchanged(load, parted(load, _dealt(load, seats, slots), slots, speed), slots, speed)
    where = np.flatnonzero(bent)
    eplb = greedy(load[where], slots, speed, total)
    goal = heaviest_of(load[where], eplb, speed) * (1 + 1e-12)
    for better in (_again, _undoubled, _recounted, *([_doubled] if doubled else [])):
        worse = heaviest_of(load[where], _rows(tame, where), speed) > goal
        where, goal, eplb = where[worse], goal[worse], _rows(eplb, worse)
        if not len(where):
            break
        before = _rows(tame, where)
        found = better(load[where], before, eplb, slots, speed)
        new = np.full(len(where), True) if better is _doubled else _twice(before) | ~_twice(found)
        tame.expert[where[new]], tame.count[where[new]] = found.expert[new], found.count[new]
    return tame


def _rows(seats: Seats, rows: Any) -> Seats:
    return Seats(seats.expert[rows], seats.count[rows])


def _dealt(load: Floats, seats: Seats, slots: Ints) -> Seats:
    """Deal layers anew in which an expert is twice on a GPU."""
    for layer in np.flatnonzero(_twice(seats)):
        expert, count = _dealt_out(load[layer], seats.count[layer], slots)
        if count.sum() == seats.count[layer].sum():
            seats.expert[layer], seats.count[layer] = expert, count
    return seats


def _dealt_out(load: Floats, asked: Ints, slots: Ints) -> tuple[Ints, Ints]:
    """Deal most copies first, to the GPUs with most free slots.

    Copies that no GPU is left for become copies of the expert that is heaviest among those a free slot may take.
    """
    n = len(load)
    expert, count = np.full((len(slots), int(slots.max())), n), np.zeros(n, dtype=np.int64)
    free, absent = slots.copy(), np.ones((n, len(slots)), dtype=bool)
    order = np.argsort(-asked, kind="stable")
    for spare in range(int(asked.sum())):  # the first n rounds deal, the others fill
        if spare < n:
            i = int(order[spare])
            gpus = np.argsort(-free, kind="stable")[: asked[i]]
            gpus = gpus[free[gpus] > 0]
        else:
            able = absent & (free > 0)
            if count.sum() == asked.sum() or not able.any():
                break
            i = int(np.where(able.any(axis=1), load / count, -1.0).argmax())
            gpus = np.array([np.where(able[i], free, -1).argmax()])
        expert[gpus, slots[gpus] - free[gpus]] = i
        free[gpus] -= 1
        count[i] += len(gpus)
        absent[i, gpus] = False
    return expert, count


def _again(load: Floats, tame: Seats, eplb: Seats, slots: Ints, speed: Floats) -> Seats:
    """Exchange two at a time as well."""
    return exchanged(load, tame, slots, speed, (1, 2))


def _undoubled(load: Floats, tame: Seats, eplb: Seats, slots: Ints, speed: Floats) -> Seats:
    """Give the second of two copies on one GPU to the lightest expert, and pack again."""
    n, count = load.shape[1], eplb.count.copy()
    on = np.stack([np.stack([np.bincount(gpu, minlength=n + 1)[:n] for gpu in row]) for row in eplb.expert])
    for i, spare in enumerate(np.maximum(on - 1, 0).sum(axis=1)):
        count[i] -= spare
        for _ in range(int(spare.sum())):
            count[i, np.where(count[i] < (slots > 0).sum(), load[i] / (count[i] + 1), np.inf).argmin()] += 1
    seats = Seats(_packed(load.astype(np.float32), count, slots, speed, apart=True)[0], count)
    return exchanged(load, parted(load, seats, slots, speed), slots, speed, (1, 2))


def _recounted(load: Floats, tame: Seats, eplb: Seats, slots: Ints, speed: Floats) -> Seats:
    """Move one spare copy to a large expert of the heaviest GPU, from any; all such moves are packed at once."""
    best = Seats(tame.expert.copy(), tame.count.copy())
    for i, row in enumerate(load):
        share = np.append(row / tame.count[i], 0.0)[tame.expert[i]]
        heaviest = int((share.sum(axis=1) / speed).argmax())
        more = tame.expert[i, heaviest, np.argsort(-share[heaviest])[:2]]
        moves = [(a, b) for a in more for b in np.flatnonzero(tame.count[i] > 1) if a not in (b, len(row))]
        moves = [(a, b) for a, b in moves if tame.count[i, a] < (slots > 0).sum()]
        if not moves:
            continue
        rows, count = np.tile(row, (len(moves), 1)), np.tile(tame.count[i], (len(moves), 1))
        step, (a, b) = np.arange(len(moves)), np.array(moves).T
        count[step, a] += 1
        count[step, b] -= 1
        seats = Seats(_packed(_coarse(rows), count, slots, speed, apart=True)[0], count)
        seats = exchanged(rows, parted(rows, seats, slots, speed), slots, speed, (1, 2))
        k = int(np.where(_twice(seats), np.inf, heaviest_of(rows, seats, speed)).argmin())
        best.expert[i], best.count[i] = seats.expert[k], seats.count[k]
    worse = heaviest_of(load, best, speed) >= heaviest_of(load, tame, speed)
    best.expert[worse], best.count[worse] = tame.expert[worse], tame.count[worse]
    return best


def _twice(seats: Seats) -> NDArray[np.bool_]:
    """Return the layers in which some GPU has two copies of an expert."""
    rows, n = np.sort(seats.expert, axis=2), seats.count.shape[1]
    return np.asarray(((rows[..., 1:] == rows[..., :-1]) & (rows[..., 1:] < n)).any(axis=(1, 2)))


def _doubled(load: Floats, tame: Seats, eplb: Seats, slots: Ints, speed: Floats) -> Seats:
    """Leave copies of one expert on one GPU where apart is heavier."""
    return exchanged(load, eplb, slots, speed, (1, 2))


def _packed(
    load: NDArray[np.float32], count: Ints, slots: Ints, speed: Floats, apart: bool
) -> tuple[Ints, NDArray[np.bool_]]:
    """Heaviest copy first onto the lightest GPU with a free slot; say where a copy had to give way to its like."""
    layers, n = load.shape
    gpus, rows = len(slots), np.arange(layers)
    share = load / count.astype(load.dtype)
    order = np.argsort(-np.repeat(share.ravel(), count.ravel()).reshape(layers, -1), axis=1, kind="stable")
    copies = np.take_along_axis(np.repeat(np.tile(np.arange(n), layers), count.ravel()).reshape(layers, -1), order, 1)
    expert = np.full((layers, gpus, int(slots.max())), n)
    weight, held = np.zeros((layers, gpus), dtype=load.dtype), np.zeros((layers, gpus), dtype=np.int64)
    holds = np.zeros((layers, n, gpus), dtype=bool)
    closed = np.where(slots > 0, np.float32(0), np.float32(np.inf))[None, :].repeat(layers, axis=0)
    bent = np.zeros(layers, dtype=bool)
    even = bool((speed == speed[0]).all())
    for copy in copies.T:
        x = share[rows, copy]
        after = weight + closed if even else (weight + x[:, None]) / speed + closed
        gpu = after.argmin(axis=1)
        clash = holds[rows, copy, gpu] if apart else np.zeros(layers, dtype=bool)
        if clash.any():
            bent |= clash
            beside = np.where(holds[rows, copy], np.inf, after)
            other = beside.argmin(axis=1)
            gpu = np.where(clash & np.isfinite(beside[rows, other]), other, gpu)
        expert[rows, gpu, held[rows, gpu]] = copy
        holds[rows, copy, gpu] = True
        weight[rows, gpu] += x
        held[rows, gpu] += 1
        closed[rows, gpu] = np.where(held[rows, gpu] < slots[gpu], 0, np.inf)
    return expert, bent
