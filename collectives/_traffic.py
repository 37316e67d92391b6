"""Which bytes take which path class, summed the way the load of links needs them?

Traffic is a matrix, or an outer product (sent x received) as in uniform and expert
all-to-alls. A product is never written out: everything is summed over groups of twins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from collectives._records import Flows, Outer, Schedule, Traffic
from collectives._sums import Sums, summed
from topo import Fault, InputError, Routes

__all__ = ["ClassTraffic", "NoPath", "no_path", "runs", "split_by_class"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
Ends = tuple[Floats, Floats]

#: Cells (ranks x groups) worked on at once: about 100 MB.
CELLS = 4_000_000
#: Distinct sizes of a product up to which its largest messages are found without writing it out.
_MOST_SIZES = 16


@dataclass(frozen=True, eq=False)
class ClassTraffic:
    """Traffic of one path class.

    Attributes
    ----------
    number : int
        The class, as in ``routes.classes``.
    to_ranks : callable
        Bytes from every source group to some columns, (source groups, columns) float.
    from_ranks : callable
        Bytes from some rows to every target group, (rows, target groups) float.
    into, out_of : callable
        Bytes from all source groups to some columns, and the least of late[of_late[i], source
        group] where any come, two (columns,) float; from some rows to all target groups alike,
        of the bytes the part[of_part[i], target group].
    alike : (n,) int
        Number of every row's kind: rows of a kind send alike and get alike.
    between, most : (source groups, target groups) float
        Bytes between two groups in all, and in the largest message.
    whole : (n, n) float, Outer or Flows
        The phase's traffic.
    routes : Routes
        The topology's routes.
    ranks : (n,) int
        Rank numbers of rows and columns.
    """

    number: int
    to_ranks: Callable[[Ints], Floats]
    from_ranks: Callable[[Ints], Floats]
    into: Callable[[Ints, Floats, Ints], Ends]
    out_of: Callable[[Ints, Floats, Ints, Floats, Ints], Ends]
    alike: Ints
    between: Floats
    most: Floats
    whole: Floats | Outer | Flows
    routes: Routes
    ranks: Ints

    def pair(self, rows: Ints, columns: Ints, size: float) -> tuple[int, int]:
        """Return the first row and column of this class between which so many bytes go."""
        if isinstance(self.whole, Flows):
            f = self.whole
            there = np.isin(f.source, rows) & np.isin(f.target, columns) & (f.n_bytes == size)
            there &= self.routes.class_between(self.ranks[f.source], self.ranks[f.target]) == self.number
            first = np.flatnonzero(there)[0]
            return int(f.source[first]), int(f.target[first])
        if isinstance(self.whole, Outer):
            sizes: NDArray[Any] = np.outer(self.whole.sent[rows], self.whole.received[columns])
            sizes = np.where(self.whole.blocks[rows][:, None] == self.whole.blocks[columns], sizes, 0.0)
        else:
            sizes = self.whole[np.ix_(rows, columns)]
        of_class = self.routes.class_between(self.ranks[rows][:, None], self.ranks[columns]) == self.number
        i, j = np.argwhere(of_class & (sizes == size))[0]
        return int(rows[i]), int(columns[j])


def split_by_class(routes: Routes, ranks: Ints, traffic: Traffic) -> Iterator[ClassTraffic]:
    """Yield the traffic of every path class that carries any.

    Raises
    ------
    InputError
        Bytes between ranks that no path joins.
    """
    numbers = range(len(routes.classes))
    if isinstance(traffic, tuple):
        yield from (part for product in traffic for part in split_by_class(routes, ranks, product))
        return
    if isinstance(traffic, Flows):
        flows = traffic
        of_flow = routes.class_between(ranks[flows.source], ranks[flows.target])
        cut = np.flatnonzero(of_flow == -1)
        if len(cut):
            raise no_path(routes, ranks[[flows.source[cut[0]], flows.target[cut[0]]]], len(cut))
        present = (number for number in numbers if (of_flow == number).any())
        parts = (_of_flows(routes, number, ranks, flows, of_flow == number) for number in present)
    elif isinstance(traffic, Outer) and traffic.sizes <= _MOST_SIZES:
        views = [_ProductView(routes, number, ranks, traffic) for number in numbers]
        _require_all(routes, ranks, traffic, sum(float(view.pairs.sum()) for view in views))
        parts = (view.traffic() for view in views)
    else:
        pair_class = routes.class_between(ranks[:, None], ranks)
        matrix: Floats = traffic.matrix if isinstance(traffic, Outer) else traffic
        lost = np.argwhere((pair_class == -1) & (matrix > 0))
        if len(lost):
            raise no_path(routes, ranks[lost[0]], len(lost))
        parts = (_of_matrix(routes, number, ranks, np.where(pair_class == number, matrix, 0.0)) for number in numbers)
    yield from (part for part in parts if part.most.any())


class NoPath(InputError):
    """Ranks that no path joins: the numbers of the first two, and the schedule that sends between them."""

    def __init__(self, fault: Fault, pair: Ints) -> None:
        self.pair = pair
        self.plan: Schedule | None = None
        super().__init__(fault)


def no_path(routes: Routes, pair: Ints, pairs: int) -> NoPath:
    a, b = (routes.fabric.rank_labels[rank] for rank in pair)
    why = routes.why(int(pair[0]), int(pair[1]))
    rule = f"has no path for {pairs} pairs of ranks, the first {a} to {b}: {why}"
    cure = "collectives.cost looks for an algorithm that has one, and says if none does and why."
    return NoPath(Fault("graph", routes.fabric.name, rule, cure), pair)


def _require_all(routes: Routes, ranks: Ints, product: Outer, joined: float) -> None:
    """Refuse a product some of whose pairs are of no class; `joined` of them are of one."""
    cut = product.pairs - round(joined)
    for row in np.flatnonzero(product.sent > 0) if cut else ():
        here = (product.received > 0) & (product.blocks == product.blocks[row])
        lost = np.flatnonzero((routes.class_between(ranks[row], ranks) == -1) & here)
        if len(lost):
            raise no_path(routes, ranks[[row, lost[0]]], cut)


def _of_flows(routes: Routes, number: int, ranks: Ints, flows: Flows, of_class: Bools) -> ClassTraffic:
    """Sum listed flows by groups; the list is never written out as a matrix."""
    graph, n = routes.classes[number].graph, len(ranks)
    source, target, sizes = flows.source[of_class], flows.target[of_class], flows.n_bytes[of_class]
    source_group, target_group = graph.source_group[ranks[source]], graph.target_group[ranks[target]]
    by_source = coo_array((sizes, (source_group, target)), shape=(graph.n_sources, n)).tocsc()
    by_target = coo_array((sizes, (source, target_group)), shape=(n, graph.n_targets)).tocsr()
    between, most = np.zeros((2, graph.n_sources, graph.n_targets))
    np.add.at(between, (source_group, target_group), sizes)
    np.maximum.at(most, (source_group, target_group), sizes)
    return _listed(
        number, lambda columns: by_source[:, columns].toarray(), lambda rows: by_target[rows].toarray(),
        between, most, flows, routes, ranks,
    )  # fmt: skip


def _of_matrix(routes: Routes, number: int, ranks: Ints, matrix: Floats) -> ClassTraffic:
    graph = routes.classes[number].graph
    source, target = graph.source_group[ranks], graph.target_group[ranks]
    most = grouped(grouped(matrix, source, graph.n_sources, np.maximum).T, target, graph.n_targets, np.maximum).T
    by_source = grouped(matrix, source, graph.n_sources, np.add)
    by_target = grouped(matrix.T, target, graph.n_targets, np.add).T
    between = grouped(by_source.T, target, graph.n_targets, np.add).T
    return _listed(
        number, lambda columns: by_source[:, columns], lambda rows: by_target[rows],
        between, most, matrix, routes, ranks,
    )  # fmt: skip


def _listed(
    number: int, to_ranks: Callable[[Ints], Floats], from_ranks: Callable[[Ints], Floats],
    between: Floats, most: Floats, whole: Floats | Flows, routes: Routes, ranks: Ints,
) -> ClassTraffic:  # fmt: skip
    """Return traffic of which every rank's row and column is known."""

    def ends(sent: Callable[[Ints], Floats], late: Floats, of_late: Ints) -> Ends:
        total, least = np.zeros(len(of_late)), np.full(len(of_late), np.inf)
        for some in runs(len(of_late), late.shape[1]):
            n_bytes = sent(some)
            total[some], least[some] = n_bytes.sum(1), np.where(n_bytes > 0, late[of_late[some]], np.inf).min(1)
        return total, least

    def into(columns: Ints, late: Floats, of_late: Ints) -> Ends:
        return ends(lambda some: to_ranks(columns[some]).T, late, of_late)

    def out_of(rows: Ints, part: Floats, of_part: Ints, late: Floats, of_late: Ints) -> Ends:
        return ends(lambda some: from_ranks(rows[some]) * part[of_part[some]], late, of_late)

    alone = np.arange(len(ranks))
    return ClassTraffic(number, to_ranks, from_ranks, into, out_of, alone, between, most, whole, routes, ranks)


def runs(n: int, cells: int) -> Iterator[Ints]:
    """Yield the numbers below n run by run, so that a row of so many cells for each of a run fits."""
    step = max(1, CELLS // max(1, cells))
    return (np.arange(first, min(first + step, n)) for first in range(0, n, step))


def grouped(rows: Floats, group: Ints, n_groups: int, by: np.ufunc) -> Floats:
    """Reduce the rows of each group into one, (n_groups, columns)."""
    order = np.argsort(group, kind="stable")
    present, first = np.unique(group[order], return_index=True)
    reduced = np.zeros((n_groups, rows.shape[1]))
    reduced[present] = by.reduceat(rows[order], first, axis=0)
    return reduced


@dataclass(frozen=True, eq=False)
class _ProductView:
    """Sums of sent[i] x received[j] over the pairs of one class, those of a rank with itself left out.

    A pair is of the class when its groups are reached and no earlier class reaches the
    pair; `priors` number the ranks by what earlier classes tell apart. Sums are taken of
    the pairs too: what is left of a sum without pairs is rounding.
    """

    routes: Routes
    number: int
    ranks: Ints
    product: Outer

    def traffic(self) -> ClassTraffic:
        """Return the traffic of the class."""
        most = np.zeros(self.pairs.shape)
        for sent in self._sizes[0]:
            for received in self._sizes[1]:
                there = self.pairs
                if self._size is None:
                    there = self._sums_of(self.product.sent == sent, self.product.received == received).between
                most = np.where(there > 0.5, np.maximum(most, sent * received), most)
        pairs, sums = self._pairs, self._pairs if self._size else self._sums

        def into(columns: Ints, late: Floats, of_late: Ints) -> Ends:
            all_of_it, one = np.ones((1, late.shape[1])), np.zeros(len(columns), dtype=np.intp)
            two = pairs.rows(columns, into=True), sums.rows(columns, into=True)
            total, least = summed(*two, all_of_it, one, late, of_late)
            return total * (self._size or 1.0), least

        def out_of(rows: Ints, part: Floats, of_part: Ints, late: Floats, of_late: Ints) -> Ends:
            two = pairs.rows(rows, into=False), sums.rows(rows, into=False)
            total, least = summed(*two, part, of_part, late, of_late)
            return total * (self._size or 1.0), least

        return ClassTraffic(
            self.number, lambda columns: self._summed(lambda sums: sums.to_ranks(columns)),
            lambda rows: self._summed(lambda sums: sums.from_ranks(rows)), into, out_of, sums.alike,
            self._summed(lambda sums: sums.between), most, self.product, self.routes, self.ranks,
        )  # fmt: skip

    def _summed(self, taken: Callable[[Sums], Floats]) -> Floats:
        """Return sums of bytes; of messages of one size they are known from the pairs."""
        pairs = taken(self._pairs)
        return np.where(pairs > 0.5, pairs * self._size if self._size else taken(self._sums), 0.0)

    @cached_property
    def _sizes(self) -> list[NDArray[Any]]:
        """Factors above zero of what is sent, and of what is received."""
        return [np.unique(some[some > 0]) for some in (self.product.sent, self.product.received)]

    @cached_property
    def _size(self) -> float | None:
        """Bytes of every message, None where they differ."""
        sent, received = self._sizes
        return float(sent[0] * received[0]) if len(sent) == len(received) == 1 else None

    @cached_property
    def pairs(self) -> Floats:
        """Pairs that send, (source groups, target groups)."""
        return self._pairs.between

    @cached_property
    def _pairs(self) -> Sums:
        return self._sums_of(self.product.sent > 0, self.product.received > 0)

    @cached_property
    def _sums(self) -> Sums:
        return self._sums_of(self.product.sent, self.product.received)

    def _sums_of(self, sent: NDArray[Any], received: NDArray[Any]) -> Sums:
        routed, prior = self.routes.classes[self.number], self.routes.priors[self.number]
        source, target = routed.graph.source_group[self.ranks], routed.graph.target_group[self.ranks]
        before, after = prior.source[self.ranks], prior.target[self.ranks]
        blocks = self.product.blocks
        block = blocks if self.product.block is None else np.unique(blocks, return_inverse=True)[1]
        itself = routed.reached[source, target] & prior.left[before, after]
        own = np.where(itself, sent * received, 0.0).astype(np.float64)
        numbers, taken = (source, target, before, after, block), self.routes.taken[self.number]
        return Sums(*numbers, routed.reached, taken, sent.astype(np.float64), received.astype(np.float64), own)
