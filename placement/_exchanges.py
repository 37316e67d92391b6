"""Which exchanges of copies make the heaviest GPU lighter? One of every layer at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = ["Seats", "exchanged", "parted"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Cells of exchange tables a layer looks at, which bounds the time whatever the clock says; exchanges it may try at
#: least; and cells of a table beyond which layers are taken a few at a time, or pairs left alone.
_CELLS, _ROUNDS, _MANY = 30_000, 8, 4_000_000
#: An exchange must make the heaviest GPU lighter by this, relatively.
_LESS = 1e-9


@dataclass(frozen=True)
class Seats:
    """Experts on the slots of GPUs, for every layer.

    Attributes
    ----------
    expert : (layers, gpus, most slots) int
        Expert in the slot; the number of experts where the slot is empty or not there.
    count : (layers, experts) int
        Copies of every expert.
    """

    expert: Ints
    count: Ints


@dataclass(frozen=True)
class _Table:
    """What exchanges change: experts, loads of copies and of GPUs, copies of an expert on a GPU."""

    expert: Ints
    share: Floats
    copy: Floats
    weight: Floats
    holds: NDArray[np.int16]
    there: NDArray[np.bool_]
    speed: Floats


def _table(load: Floats, seats: Seats, slots: Ints, speed: Floats) -> _Table:
    layers, n = load.shape
    share = np.pad(load / seats.count, ((0, 0), (0, 1)))
    rows = np.arange(layers)[:, None, None]
    holds = np.zeros((layers, len(slots), n + 1), dtype=np.int16)
    np.add.at(holds, (rows, np.arange(len(slots))[None, :, None], seats.expert), 1)
    holds[:, :, n] = 0
    copy = share[rows, seats.expert]
    there = np.arange(seats.expert.shape[2]) < slots[:, None]
    return _Table(seats.expert.copy(), share, copy, copy.sum(axis=2), holds, there, speed)


def _best_exchange(t: _Table, rows: Ints, gpu: Ints, may: NDArray[np.bool_], size: int) -> tuple[Ints, Ints, Floats]:
    """Return each row's best exchange of `size` of its GPU's slots in `may`.

    Slots here, GPU, slots there: (size, rows), (rows,), (size, rows) in one array each, and
    the heavier of the two GPUs afterwards, over speed; infinite where none is allowed.
    """
    many, step = len(rows), np.arange(len(rows))
    chosen = np.array(list(combinations(range(t.expert.shape[2]), size)))  # (options, size)
    each = t.expert[rows]
    value = t.copy[rows][:, :, chosen].sum(axis=3)  # (rows, gpus, options)
    gain = value[step, gpu][:, :, None, None] - value[:, None]
    here = (t.weight[rows, gpu][:, None, None, None] - gain) / t.speed[gpu][:, None, None, None]
    after = np.maximum(here, (t.weight[rows][:, None, :, None] + gain) / t.speed[None, None, :, None])
    known_here = t.holds[rows, gpu][step[:, None, None], each] > 0
    known_there = t.holds[rows][step[:, None], :, each[step, gpu]] > 0  # (rows, slots here, gpus)
    unfit_there = np.any((known_here | ~t.there)[:, :, chosen], axis=3)
    unfit_here = np.any(known_there[:, chosen], axis=2) | ~np.all(may[:, chosen], axis=2)[:, :, None]
    after[unfit_there[:, None] | unfit_here[:, :, :, None]] = np.inf
    flat = after.reshape(many, -1)
    best = flat.argmin(axis=1)
    mine, other, theirs = np.unravel_index(best, after.shape[1:])
    return np.stack([*chosen[mine].T, *chosen[theirs].T]), other, flat[step, best]


def _exchange(t: _Table, rows: Ints, gpu: Ints, other: Ints, found: Ints) -> None:
    """Carry the exchanges out."""
    n, size = t.share.shape[1] - 1, len(found) // 2
    for slot, place in zip(found[:size], found[size:], strict=True):
        a, b = t.expert[rows, gpu, slot], t.expert[rows, other, place]
        for here, at, gone, come in ((gpu, slot, a, b), (other, place, b, a)):
            t.expert[rows, here, at] = come
            t.copy[rows, here, at] = t.share[rows, come]
            t.holds[rows, here, gone] -= (gone < n).astype(np.int16)
            t.holds[rows, here, come] += (come < n).astype(np.int16)
    for here in (gpu, other):
        t.weight[rows, here] = t.copy[rows, here].sum(axis=1)


def exchanged(load: Floats, seats: Seats, slots: Ints, speed: Floats, sizes: tuple[int, ...] = (1,)) -> Seats:
    """Exchange copies of the heaviest GPU for lighter ones elsewhere while that makes it lighter."""
    t = _table(load, seats, slots, speed)
    most = t.expert.shape[2]
    for size in sizes:
        cells = len(slots) * comb(most, size) ** 2
        chunk = max(1, _MANY // max(1, cells))
        for first in range(0, len(load) if 0 < cells <= _MANY or size == 1 else 0, chunk):
            _descend(
                t,
                np.arange(first, min(first + chunk, len(load))),
                size,
                max(_ROUNDS, size**4 * _CELLS // max(1, cells)),
            )
    return Seats(t.expert, seats.count)


def _descend(t: _Table, rows: Ints, size: int, rounds: int) -> None:
    for _ in range(rounds):
        relative = t.weight[rows] / t.speed
        top = relative.argmax(axis=1)
        found, other, worth = _best_exchange(t, rows, top, t.there[top], size)
        better = worth < relative.max(axis=1) * (1 - _LESS)
        rows, top, other, found = rows[better], top[better], other[better], found[:, better]
        if not len(rows):
            return
        _exchange(t, rows, top, other, found)


def parted(load: Floats, seats: Seats, slots: Ints, speed: Floats) -> Seats:
    """Exchange a copy that is beside its like for any other, at least harm, until none is or none can."""
    t = _table(load, seats, slots, speed)
    rows = np.arange(len(load))
    while True:
        twice = t.holds[rows].max(axis=2) > 1
        rows, twice = rows[twice.any(axis=1)], twice[twice.any(axis=1)]
        if not len(rows):
            return Seats(t.expert, seats.count)
        gpu = twice.argmax(axis=1)
        doubled = np.take_along_axis(t.holds[rows, gpu], t.expert[rows, gpu], 1) > 1
        found, other, worth = _best_exchange(t, rows, gpu, doubled, 1)
        able = np.isfinite(worth)
        rows, gpu, other, found = rows[able], gpu[able], other[able], found[:, able]
        _exchange(t, rows, gpu, other, found)
