"""Which experts get the spare copies where every GPU holds two? The heaviest copy then goes with the lightest.

With two slots a GPU the best pairs follow from the sizes, so only the numbers of copies are
searched: one copy moved at a time, to what is too heavy beside its partner or to any,
without going back at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement._exchanges import Seats, parted

__all__ = ["paired", "seated_in_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Part below the lightest heaviest pair so far that is aimed at; moves an expert then rests; others tried at a time.
_AIM, _REST, _OTHERS, _MOST = 5e-4, 8, 6, 600


def paired(load: Floats, count: Ints, gpus: int, moves: int) -> Seats:
    """Return a layer of two slots a GPU, every slot filled, after the best numbers of copies found.

    Parameters
    ----------
    load, count : (experts,) float, int
        Loads, and copies to start from: twice as many in all as GPUs.
    gpus, moves : int
        GPUs, and copies moved at most.

    Examples
    --------
    Of 7, 3 and 1 two copies each make 3.5 + 0.5 twice; one of 3 and three of 1 make 3.5 + 1 / 3.

    >>> import numpy as np
    >>> paired(np.array([7.0, 3.0, 1.0]), np.array([2, 2, 2]), 3, 9).count.tolist()
    [[2, 1, 3]]
    """
    rng, n = np.random.default_rng(0), len(load)
    best, least, rests = count, _pairs(np.repeat(load / count, count)).max(), np.zeros(n, dtype=np.int64)
    for move in range(moves):
        aim = least * (1 - _AIM)
        more, fewer = _moves(load, count, aim, gpus, (rests > move), rng)
        if not len(more):
            break
        heavy = _pairs(_sizes(load, count, more, fewer))
        k = int(np.lexsort((heavy.max(axis=1), np.maximum(heavy - aim, 0).sum(axis=1)))[0])
        count = count + np.bincount([more[k]], minlength=n) - np.bincount([fewer[k]], minlength=n)
        rests[[more[k], fewer[k]]] = move + _REST
        if heavy[k].max() < least:
            best, least = count, heavy[k].max()
    return seated_in_pairs(load, best, gpus)


def _pairs(size: Floats) -> Floats:
    """Return the loads of GPUs: heaviest and lightest, next and next, ..."""
    rising = np.sort(size, axis=-1)
    half = rising.shape[-1] // 2
    return np.asarray(rising[..., :half] + rising[..., : half - 1 : -1])


def _moves(
    load: Floats, count: Ints, aim: float, gpus: int, resting: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Ints, Ints]:  # fmt: skip
    """Return experts to get a copy more, and one fewer: those in pairs above the aim and a few others; any with two."""
    expert = np.repeat(np.arange(len(load)), count)
    rising = expert[np.argsort((load / count)[expert], kind="stable")]
    above = np.flatnonzero(_pairs((load / count)[expert]) > aim)
    large, small = rising[::-1][above], rising[above]
    more = np.unique(np.concatenate([large, small, rng.integers(0, len(load), _OTHERS)]))
    fewer = np.flatnonzero((count > 1) & (load <= 1.3 * aim * np.maximum(count - 1, 1)))
    a, b = (x.ravel() for x in np.meshgrid(more[count[more] < gpus], fewer, indexing="ij"))
    kept = (a != b) & ~(resting[a] & resting[b])
    a, b = a[kept], b[kept]
    chosen = rng.permutation(len(a))[:_MOST]
    return a[chosen], b[chosen]


def _sizes(load: Floats, count: Ints, more: Ints, fewer: Ints) -> Floats:
    """Return the sizes of all copies after each move, (moves, copies)."""
    expert = np.repeat(np.arange(len(load)), count)
    size = np.tile((load / count)[expert], (len(more), 1))
    less, larger = load[more] / (count[more] + 1), load[fewer] / (count[fewer] - 1)
    size = np.where(expert == more[:, None], less[:, None], size)
    size = np.where(expert == fewer[:, None], larger[:, None], size)
    size[np.arange(len(more)), np.searchsorted(expert, fewer)] = less
    return np.asarray(size)


def seated_in_pairs(load: Floats, count: Ints, gpus: int) -> Seats:
    """Pair copies, and part those of one expert that meet."""
    expert = np.repeat(np.arange(len(load)), count)
    rising = expert[np.argsort((load / count)[expert], kind="stable")]
    seats = Seats(np.stack([rising[::-1][:gpus], rising[:gpus]], axis=1)[None], count[None])
    return parted(load[None], seats, np.full(gpus, 2), np.ones(gpus))
