"""What do groups of ranks exchange when rank i sends sent[i] x received[j] bytes to rank j? Never written out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from topo import MUCH, Loop

__all__ = ["Rows", "Sums", "summed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
Sparse: TypeAlias = "csr_array[Any, tuple[int, int]]"


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of sent[i] x received[j] within blocks, over pairs that this class reaches and no earlier one does.

    `source`, `target` number the groups of ranks in this class, `before`, `after` those in earlier
    ones; `reached` says which groups this class joins, `taken` which an earlier one did.
    """

    source: Ints
    target: Ints
    before: Ints
    after: Ints
    block: Ints
    reached: Bools
    taken: Sparse
    sent: Floats
    received: Floats
    itself: Floats

    @property
    def alike(self) -> Ints:
        """Kind of every rank, (n,): ranks of a kind have the same groups and factors."""
        kind = np.zeros(len(self.source), dtype=np.intp)
        for column in (self.source, self.target, self.before, self.after, self.block, self.sent, self.received):
            if (column == column[:1]).all():
                continue  # tells none apart
            number = np.unique(column, return_inverse=True)[1]
            kind = np.unique(kind * (int(number.max()) + 1) + number, return_inverse=True)[1]
        return kind

    @cached_property
    def by_source(self) -> tuple[Ints, Sparse]:
        """Row of every rank, and what each source group sends to one rank of a row for each it receives."""
        return self._left(self.after, self.before, self.taken.T.tocsr(), self.source, self.sent, self.reached.shape[0])

    @cached_property
    def by_target(self) -> tuple[Ints, Sparse]:
        """Row of every rank, and what each target group gets of one rank of a row for each it sends."""
        return self._left(self.before, self.after, self.taken, self.target, self.received, self.reached.shape[1])

    def _left(
        self, mine: Ints, its: Ints, taken: Sparse, group: Ints, factor: Floats, groups: int
    ) -> tuple[Ints, Sparse]:
        """Sum a block by group, less what earlier classes take: rows are pairs of block and earlier group."""
        blocks = int(self.block.max(initial=0)) + 1
        names, row = np.unique(mine * blocks + self.block, return_inverse=True)
        whole = _table(self.block, group, factor, (blocks, groups))[names % blocks]
        if not taken.nnz:
            return row, whole
        others, other = np.unique(its * blocks + self.block, return_inverse=True)
        apart = _table(other, group, factor, (len(others), groups))
        # Of every row the earlier groups taken, then those of them that its block has.
        taken = taken[names // blocks]
        which = np.repeat(np.arange(len(names)), np.diff(taken.indptr))
        wanted = taken.indices * blocks + names[which] % blocks
        place = np.minimum(np.searchsorted(others, wanted), len(others) - 1)
        there = others[place] == wanted
        shape = (len(names), len(others))
        found = whole - csr_array((np.ones(there.sum()), (which[there], place[there])), shape=shape) @ apart
        found.sort_indices()
        return row, found

    def to_ranks(self, columns: Ints) -> Floats:
        """Return the sums from every source group to some ranks."""
        row, per = self.by_source
        found: Floats = per[row[columns]].toarray().T * self.reached[:, self.target[columns]]
        found *= self.received[columns]
        found[self.source[columns], np.arange(len(columns))] -= self.itself[columns]
        return found

    def from_ranks(self, rows: Ints) -> Floats:
        """Return the sums from some ranks to every target group."""
        row, per = self.by_target
        found: Floats = per[row[rows]].toarray() * self.reached[self.source[rows]]
        found *= self.sent[rows, None]
        found[np.arange(len(rows)), self.target[rows]] -= self.itself[rows]
        return found

    @cached_property
    def between(self) -> Floats:
        """Sums between groups, (source groups, target groups)."""
        if not self.reached.any():
            return np.zeros(self.reached.shape)
        row, per = self.by_source
        gets = _table(self.target, row, self.received, (self.reached.shape[1], per.shape[0]))
        full = 2 * per.nnz > per.shape[0] * per.shape[1]
        whole: Floats = gets @ per.toarray() if full else (gets @ per).toarray()
        found: Floats = whole.T * self.reached
        np.subtract.at(found, (self.source, self.target), self.itself)
        return found

    def rows(self, ranks: Ints, *, into: bool) -> Rows:
        """Return what loops need to sum over all groups that send to some ranks, or that these send to."""
        if into:
            (row, per), joined, factor, column, own = (
                self.by_source, self.reached.T, self.received, self.target, self.source
            )  # fmt: skip
        else:
            (row, per), joined, factor, column, own = (
                self.by_target, self.reached, self.sent, self.source, self.target
            )  # fmt: skip
        first, group = per.indptr.astype(np.intp), per.indices.astype(np.intp)
        tables = first, group, per.data, np.ascontiguousarray(joined)
        return Rows(*tables, row[ranks], column[ranks], own[ranks], factor[ranks], self.itself[ranks])


class Rows(NamedTuple):
    """Sums between ranks and groups: what a row has for a group x factor, where joined, less itself at own."""

    first: Ints
    group: Ints
    value: Floats
    joined: Bools
    row: Ints
    column: Ints
    own: Ints
    factor: Floats
    itself: Floats


def summed(pairs: Rows, sums: Rows, part: Floats, of_part: Ints, late: Floats, of_late: Ints) -> tuple[Floats, Floats]:
    """Return what ranks exchange with all groups, and the least latency to one with which they do.

    Parameters
    ----------
    pairs, sums : Rows
        Pairs that exchange anything, and their bytes.
    part : (parts, groups) float
        Part of the bytes that counts.
    of_part : (ranks,) int
        Row of `part` for each rank.
    late : (rows, groups) float
        Latencies [s].
    of_late : (ranks,) int
        Row of `late` for each rank.
    """
    total, least = np.zeros(len(of_part)), np.full(len(of_part), np.inf)
    run = _SUMMED.run(len(total) * part.shape[1] > MUCH)
    run(pairs, sums, np.ascontiguousarray(part), of_part, np.ascontiguousarray(late), of_late, total, least)
    return total, least


def _summed(
    pairs: Rows, sums: Rows, part: Floats, of_part: Ints, late: Floats, of_late: Ints, total: Floats, least: Floats
) -> None:
    for i in range(len(total)):
        joined, beside = pairs.joined[pairs.column[i]], sums.first[sums.row[i]]
        for at in range(pairs.first[pairs.row[i]], pairs.first[pairs.row[i] + 1]):
            group = pairs.group[at]
            while sums.group[beside] < group:  # both are in order; sums may have rounding where there is no pair
                beside += 1
            if not joined[group]:
                continue
            count, n_bytes = pairs.value[at] * pairs.factor[i], sums.value[beside] * sums.factor[i]
            if group == pairs.own[i]:
                count, n_bytes = count - pairs.itself[i], n_bytes - sums.itself[i]
            n_bytes *= part[of_part[i], group]
            if count > 0.5 and n_bytes > 0:
                total[i] += n_bytes
                least[i] = min(least[i], late[of_late[i], group])


_SUMMED = Loop(_summed)


def _table(rows: Ints, columns: Ints, values: Floats, shape: tuple[int, int]) -> Sparse:
    """Sum values by row and column."""
    return coo_array((values, (rows, columns)), shape=shape).tocsr()
