"""Which domains, or which GPUs, should hold an expert, so that few tokens cross and none is heavy?

Simulated annealing, compiled by numba on first use and kept on disk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement._dice import draw
from placement._homes_moves import PARTS, Aim, Homes, away, give, lift, pour, swap
from topo import Loop

#: Moves after which the heaviest bin is looked for again.
_LOOK = 64

__all__ = ["anneal", "homes_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pair = tuple[float, float]

#: Moves beyond which numba is worth its import.
_MUCH = 4000


def homes_of(asked: Floats, expert: Ints, speed: Floats, domain: Ints, most: Ints) -> Homes:
    """Return a layer with these experts in the slots of its bins, loads shared as level as can be.

    Parameters
    ----------
    asked : (domains, experts) float
        Tokens by where they come from.
    expert : (bins, most slots) int
        The number of experts where a slot is empty, minus one where there is none.
    speed, domain : (bins,)
        Of every bin.
    most : (bins, experts) int
        Copies of an expert it may hold.
    """
    bins, n = len(expert), asked.shape[1]
    held = np.zeros((bins, n + 1), dtype=np.int64)
    for b, row in enumerate(expert):
        np.add.at(held[b], row[row >= 0], 1)
    held[:, n] = 0
    spot, count = np.zeros((n + 1, bins), dtype=np.int64), (held > 0).sum(axis=0)
    for e in range(n):
        spot[e, : count[e]] = np.flatnonzero(held[:, e])
    most = np.pad(most.astype(np.int64), ((0, 0), (0, 1)), constant_values=1)
    padded = np.pad(asked.astype(float), ((0, 0), (0, 1)))
    return Homes(
        expert.astype(np.int64), held, np.zeros((bins, n + 1)), spot, count.astype(np.int64),
        padded, padded.sum(axis=0), domain.astype(np.int64), speed.astype(float), most, np.zeros(bins),
    )  # fmt: skip


def anneal(a: Homes, limit: float, size: float, moves: int, heat: Pair, fine: Pair, seed: int = 1) -> float:
    """Improve the layer in place and return the tokens that cross.

    Parameters
    ----------
    a : Homes
        As `homes_of` makes it, or a search leaves it.
    limit, size : float
        Load over speed that a bin should not exceed, load that a copy should not exceed.
    moves : int
        Tries: what bounds the time, whatever the clock says.
    heat : (2,) float
        Temperature at first and at last, over the mean load of an expert.
    fine : (2,) float
        Tokens that cross a unit of load above the limits counts as, at first and at last.
    seed : int, optional
        Of what is tried by chance.
    """
    seat = np.argwhere(a.expert >= 0)
    return float(_RUN.run(moves > _MUCH)(a, seat, limit, size, moves, heat, fine, seed))


def _anneal(
    a: Homes, seat: Ints, limit: float, size: float, moves: int, heat: Pair, fine: Pair, seed: int
) -> float:  # fmt: skip
    """Try moves at a falling temperature; end with all shares level."""
    n, seats = len(a.whole) - 1, len(seat)
    dice, kept = np.array([seed]), np.zeros((3, len(a.speed)))
    for _ in range(3):
        for e in range(n):
            lift(a, e)
            pour(a, e, size)
    unit, heavy = a.whole.sum() / n, 0
    begin = np.searchsorted(seat[:, 0], np.arange(len(a.speed) + 1))
    for step in range(moves):
        part = step / moves
        hot = unit * heat[0] * (heat[1] / heat[0]) ** part
        aim = Aim(limit, size, fine[0] + (fine[1] - fine[0]) * part)
        worse = -hot * np.log((draw(dice, 1 << 20) + 1) / (1 << 20))
        i, j = draw(dice, seats), draw(dice, seats)
        if step % _LOOK == 0:
            heavy = int(np.argmax(a.weight / a.speed))
        if step % 4 == 0 and a.weight[heavy] > limit * a.speed[heavy]:  # help the heaviest
            j = begin[heavy] + draw(dice, begin[heavy + 1] - begin[heavy])
        b, s = seat[i, 0], seat[i, 1]
        e = a.expert[b, s]
        if e < n and (a.many[e] > 1 or a.held[b, e] > 1) and draw(dice, 2) == 0:
            f = a.expert[seat[j, 0], seat[j, 1]]
            k = i if draw(dice, 2) == 0 else draw(dice, seats)
            if f < n:
                give(a, b, s, seat[k, 0], seat[k, 1], f, aim, worse, kept)
            continue
        if seat[j, 0] != b:
            swap(a, b, s, seat[j, 0], seat[j, 1], aim, worse, kept)
    for _ in range(30):
        for e in range(n):
            if a.many[e] > 1:
                lift(a, e)
                pour(a, e, size)
    crossing = 0.0
    for e in range(n):
        crossing += away(a, e)
    return crossing


_RUN = Loop(_anneal, *PARTS, draw)
