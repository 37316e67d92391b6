"""What do groups of ranks exchange when rank i sends sent[i] x received[j] bytes to rank j? Never written out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topo import MUCH, compiled

__all__ = ["Rows", "Sums", "summed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of sent[i] x received[j]: groups of ranks in this class and in earlier ones, and what is to be left out."""

    source: Ints
    target: Ints
    before: Ints
    after: Ints
    reached: Bools
    left: Floats
    sent: Floats
    received: Floats
    itself: Floats

    @property
    def alike(self) -> Ints:
        """Kind of every rank, (n,): ranks of a kind have the same groups and factors."""
        kind = np.zeros(len(self.source), dtype=np.intp)
        for column in (self.source, self.target, self.before, self.after, self.sent, self.received):
            number = np.unique(column, return_inverse=True)[1]
            kind = np.unique(kind * (int(number.max()) + 1) + number, return_inverse=True)[1]
        return kind

    @cached_property
    def by_source(self) -> Floats:
        """What every source group sends to one of every earlier target group."""
        found: Floats = _table(self.source, self.before, self.sent, (len(self.reached), len(self.left))) @ self.left
        return found

    @cached_property
    def received_by(self) -> Floats:
        """What every earlier target group gets in every target group."""
        return _table(self.after, self.target, self.received, (self.left.shape[1], self.reached.shape[1]))

    @cached_property
    def by_target(self) -> Floats:
        """What one of every earlier source group sends to every target group."""
        found: Floats = self.left @ self.received_by
        return found

    def to_ranks(self, columns: Ints) -> Floats:
        """Return the sums from every source group to some ranks."""
        found: Floats = self.by_source[:, self.after[columns]] * self.reached[:, self.target[columns]]
        found *= self.received[columns]
        found[self.source[columns], np.arange(len(columns))] -= self.itself[columns]
        return found

    def from_ranks(self, rows: Ints) -> Floats:
        """Return the sums from some ranks to every target group."""
        found: Floats = self.by_target[self.before[rows]] * self.reached[self.source[rows]]
        found *= self.sent[rows, None]
        found[np.arange(len(rows)), self.target[rows]] -= self.itself[rows]
        return found

    def between(self) -> Floats:
        """Return the sums between groups."""
        found: Floats = (self.by_source @ self.received_by) * self.reached
        np.subtract.at(found, (self.source, self.target), self.itself)
        return found

    def rows(self, ranks: Ints, *, into: bool) -> Rows:
        """Return what loops need to sum over all groups that send to some ranks, or that these send to."""
        if into:
            per, joined, factor = self.by_source.T, self.reached.T, self.received
            row, column, own = self.after, self.target, self.source
        else:
            per, joined, factor = self.by_target, self.reached, self.sent
            row, column, own = self.before, self.source, self.target
        tables = np.ascontiguousarray(per), np.ascontiguousarray(joined)
        return Rows(*tables, row[ranks], column[ranks], own[ranks], factor[ranks], self.itself[ranks])


class Rows(NamedTuple):
    """Sums between ranks and groups: per[row, group] x factor where joined[column, group], less itself at own."""

    per: Floats
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
    run = compiled(_summed) if len(total) * part.shape[1] > MUCH else _summed
    run(pairs, sums, np.ascontiguousarray(part), of_part, np.ascontiguousarray(late), of_late, total, least)
    return total, least


def _summed(
    pairs: Rows, sums: Rows, part: Floats, of_part: Ints, late: Floats, of_late: Ints, total: Floats, least: Floats
) -> None:
    for i in range(len(total)):
        joined = pairs.joined[pairs.column[i]]
        for group in range(len(joined)):
            if not joined[group]:
                continue
            count = pairs.per[pairs.row[i], group] * pairs.factor[i]
            n_bytes = sums.per[sums.row[i], group] * sums.factor[i]
            if group == pairs.own[i]:
                count, n_bytes = count - pairs.itself[i], n_bytes - sums.itself[i]
            n_bytes *= part[of_part[i], group]
            if count > 0.5 and n_bytes > 0:
                total[i] += n_bytes
                least[i] = min(least[i], late[of_late[i], group])


def _table(rows: Ints, columns: Ints, values: Floats, shape: tuple[int, int]) -> Floats:
    """Sum values by row and column."""
    found = np.zeros(shape)
    np.add.at(found, (rows, columns), values)
    return found
