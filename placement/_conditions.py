"""What must numbers of copies satisfy so that no GPU is heavier than a load? Conditions free of which GPU is which.

A copy larger than half of the load is alone of its kind on its GPU and leaves its neighbours
what is left: of those at least one is small, two are smaller still than ... (with two slots
this is Hall's condition of a perfect matching; with more they are cutting-stock patterns seen
from their dual).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns", "Conditions", "columns_of", "conditions_of", "rows_of", "violations"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Parts of the neighbours' room at which their smallness is counted by size, not by number.
_SLOPES = (0.6, 0.8, 1.0, 1.25, 1.6)


class Columns(NamedTuple):
    """Every expert's possible numbers of copies: expert, copies, size of one."""

    expert: Ints
    copies: Floats
    size: Floats


class Conditions(NamedTuple):
    """Copies of size large[i] or more leave their neighbours what is left: some, by number or by size, are small."""

    large: Floats
    rank: Ints
    slope: Floats

    def some(self, which: Ints | NDArray[np.bool_]) -> Conditions:
        """Return some of them."""
        return Conditions(self.large[which], self.rank[which], self.slope[which])


def columns_of(load: Floats, copies: int, most: float, small: float) -> Columns:
    """List numbers of copies not above `most`; the last of an expert stands for more, all weightless.

    Copies are counted one by one down to the part `small` of the load.
    """
    n = len(load)
    spare = copies - n + 1
    last = np.clip(np.maximum(np.ceil(load / (small * most)), 5), 1, spare).astype(np.int64)
    many = last + (last < spare)
    expert = np.repeat(np.arange(n), many)
    number = np.arange(len(expert)) - np.repeat(np.cumsum(many) - many, many) + 1
    size = np.where(number > last[expert], 0.0, load[expert] / number)
    kept = size <= most * (1 + 1e-12)
    return Columns(expert[kept], number[kept].astype(np.float64), size[kept])


def conditions_of(c: Columns, slots: int, most: float) -> Conditions:
    """Return all conditions at a load: one of each kind for every size above half of it."""
    large = np.unique(c.size[c.size >= most / 2])
    kinds = [(rank, 0.0) for rank in range(1, slots)] + [(0, slope) for slope in _SLOPES if slots > 2]
    rank, slope = (np.repeat([kind[i] for kind in kinds], len(large)) for i in (0, 1))
    return Conditions(np.tile(large, len(kinds)), rank.astype(np.int64), slope)


def rows_of(c: Columns, which: Conditions, slots: int, most: float) -> Floats:
    """Return what every number of copies asks of (above zero) or gives to each condition."""
    tiny = 1e-12 * most
    size, large = c.size[None, :], c.size >= which.large[:, None] - tiny
    room, rank = most - which.large[:, None], which.rank[:, None]
    by_number = (slots - rank) * large - 1.0 * (size <= room / np.maximum(rank, 1) + tiny)
    mean = np.maximum(which.slope[:, None] * room / (slots - 1), tiny)
    by_size = (large * ((slots - 1) * mean - most + size) - np.maximum(mean - size, 0)) / mean
    return np.asarray(np.where(rank > 0, by_number, by_size) * c.copies)


def violations(c: Columns, which: Conditions, part: Floats, weightless: float, slots: int, most: float) -> Floats:
    """Return how much each condition asks beyond what it is given by parts of the columns: sums over sizes in order."""
    order = np.argsort(c.size, kind="stable")
    size, amount = c.size[order], (c.copies * part)[order]
    below, weight = (np.concatenate([[0.0], np.cumsum(some)]) for some in (amount, amount * size))
    tiny, room = 1e-12 * most, most - which.large
    at = np.searchsorted(size, which.large - tiny)
    large, large_weight = below[-1] - below[at], weight[-1] - weight[at]
    small = below[np.searchsorted(size, room / np.maximum(which.rank, 1) + tiny, side="right")]
    by_number = (slots - which.rank) * large - small
    mean = np.maximum(which.slope * room / (slots - 1), tiny)
    under = np.searchsorted(size, mean)
    by_size = (((slots - 1) * mean - most) * large + large_weight - (mean * below[under] - weight[under])) / mean
    return np.asarray(np.where(which.rank > 0, by_number, by_size) - weightless)
