"""Which bytes take which path class, summed the way the load of links needs them?

Traffic is a matrix, or an outer product (sent x received) as in uniform and expert
all-to-alls. A product is never written out: everything is summed over groups of twins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collectives._records import Flows, Outer, Reals
from topo import Fault, InputError, Routes

__all__ = ["ClassTraffic", "split_by_class"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: Distinct sizes of a product up to which its largest messages are found without writing it out.
_MOST_SIZES = 16


@dataclass(frozen=True, eq=False)
class ClassTraffic:
    """Traffic of one path class.

    Attributes
    ----------
    number : int
        The class, as in ``routes.classes``.
    by_source : (source groups, n) float
        Bytes from every source group to every rank.
    by_target : (n, target groups) float
        Bytes from every rank to every target group.
    most : (source groups, target groups) float
        The largest message between two groups.
    whole : (n, n) float, Outer or Flows
        The phase's traffic.
    routes : Routes
        The topology's routes.
    ranks : (n,) int
        Rank numbers of rows and columns.
    """

    number: int
    by_source: Floats
    by_target: Floats
    most: Floats
    whole: Floats | Outer | Flows
    routes: Routes
    ranks: Ints

    def pair(self, rows: Ints, columns: Ints, size: float) -> tuple[int, int]:
        """Return the first row and column of this class between which so many bytes go."""
        if isinstance(self.whole, Flows):
            f = self.whole
            there = np.isin(f.source, rows) & np.isin(f.target, columns) & (f.n_bytes == size)
            there &= self.routes.pair_class[self.ranks[f.source], self.ranks[f.target]] == self.number
            first = np.flatnonzero(there)[0]
            return int(f.source[first]), int(f.target[first])
        if isinstance(self.whole, Outer):
            sizes: Reals = np.outer(self.whole.sent[rows], self.whole.received[columns])
        else:
            sizes = self.whole[np.ix_(rows, columns)]
        of_class = self.routes.pair_class[np.ix_(self.ranks[rows], self.ranks[columns])] == self.number
        i, j = np.argwhere(of_class & (sizes == size))[0]
        return int(rows[i]), int(columns[j])


def split_by_class(routes: Routes, ranks: Ints, traffic: Floats | Outer | Flows) -> Iterator[ClassTraffic]:
    """Yield the traffic of every path class that carries any.

    Raises
    ------
    InputError
        Bytes between ranks that no path joins.
    """
    numbers = range(len(routes.classes))
    if isinstance(traffic, Flows):
        flows = traffic
        of_flow = routes.pair_class[ranks[flows.source], ranks[flows.target]]
        _require_paths(routes, ranks, flows.source[of_flow == -1], flows.target[of_flow == -1])
        present = (number for number in numbers if (of_flow == number).any())
        parts = (_of_flows(routes, number, ranks, flows, of_flow == number) for number in present)
    elif isinstance(traffic, Outer) and routes.all_joined and traffic.sizes <= _MOST_SIZES:
        product = traffic
        parts = (_of_product(routes, number, ranks, product) for number in numbers)
    else:
        matrix: Floats = traffic.matrix if isinstance(traffic, Outer) else traffic
        pair_class = routes.pair_class[np.ix_(ranks, ranks)]
        _require_paths(routes, ranks, *np.nonzero((pair_class == -1) & (matrix > 0)))
        parts = (_of_matrix(routes, number, ranks, np.where(pair_class == number, matrix, 0.0)) for number in numbers)
    yield from (part for part in parts if part.by_source.any())


def _require_paths(routes: Routes, ranks: Ints, source: Ints, target: Ints) -> None:
    if len(source):
        first, second = int(ranks[source[0]]), int(ranks[target[0]])
        a, b = routes.fabric.rank_labels[first], routes.fabric.rank_labels[second]
        rule = f"has no path for {len(source)} pairs of ranks, the first {a} to {b}: {routes.why(first, second)}"
        cure = "Join them, leave those ranks out, or take an algorithm that relays (rail_aligned, hierarchical)."
        raise InputError(Fault("graph", routes.fabric.name, rule, cure))


def _of_flows(routes: Routes, number: int, ranks: Ints, flows: Flows, of_class: Bools) -> ClassTraffic:
    """Sum listed flows by groups; the list is never written out as a matrix."""
    graph, n = routes.classes[number].graph, len(ranks)
    source, target, sizes = flows.source[of_class], flows.target[of_class], flows.n_bytes[of_class]
    source_group, target_group = graph.source_group[ranks[source]], graph.target_group[ranks[target]]
    by_source, by_target = np.zeros((graph.n_sources, n)), np.zeros((n, graph.n_targets))
    np.add.at(by_source, (source_group, target), sizes)
    np.add.at(by_target, (source, target_group), sizes)
    most = np.zeros((graph.n_sources, graph.n_targets))
    np.maximum.at(most, (source_group, target_group), sizes)
    return ClassTraffic(number, by_source, by_target, most, flows, routes, ranks)


def _of_matrix(routes: Routes, number: int, ranks: Ints, matrix: Floats) -> ClassTraffic:
    graph = routes.classes[number].graph
    source, target = graph.source_group[ranks], graph.target_group[ranks]
    most = grouped(grouped(matrix, source, graph.n_sources, np.maximum).T, target, graph.n_targets, np.maximum).T
    by_source = grouped(matrix, source, graph.n_sources, np.add)
    by_target = grouped(matrix.T, target, graph.n_targets, np.add).T
    return ClassTraffic(number, by_source, by_target, most, matrix, routes, ranks)


def grouped(rows: Floats, group: Ints, n_groups: int, by: np.ufunc) -> Floats:
    """Reduce the rows of each group into one, (n_groups, columns)."""
    order = np.argsort(group, kind="stable")
    present, first = np.unique(group[order], return_index=True)
    reduced = np.zeros((n_groups, rows.shape[1]))
    reduced[present] = by.reduceat(rows[order], first, axis=0)
    return reduced


def _of_product(routes: Routes, number: int, ranks: Ints, product: Outer) -> ClassTraffic:
    """Sum a product over the pairs of a class, those of a rank with itself left out."""
    view = _ProductView(routes, number, ranks)
    pairs = view.by_source((product.sent > 0).astype(float), (product.received > 0).astype(float))
    by_source = np.where(pairs > 0.5, view.by_source(product.sent, product.received), 0.0)
    pairs = view.by_target((product.sent > 0).astype(float), (product.received > 0).astype(float))
    by_target = np.where(pairs > 0.5, view.by_target(product.sent, product.received), 0.0)
    most = np.zeros((view.n_sources, view.n_targets))
    for sent in np.unique(product.sent[product.sent > 0]):
        for received in np.unique(product.received[product.received > 0]):
            there = view.between((product.sent == sent).astype(float), (product.received == received).astype(float))
            most = np.where(there > 0.5, np.maximum(most, sent * received), most)
    return ClassTraffic(number, by_source, by_target, most, product, routes, ranks)


class _ProductView:
    """Sums of sent[i] x received[j] over the pairs of one class, by groups.

    A pair is of the class when its groups are reached and no earlier class reaches the
    pair; `prior` numbers the ranks by what earlier classes tell apart.
    """

    def __init__(self, routes: Routes, number: int, ranks: Ints) -> None:
        routed, prior = routes.classes[number], routes.priors[number]
        self.source, self.target = routed.graph.source_group[ranks], routed.graph.target_group[ranks]
        self.n_sources, self.n_targets = routed.graph.n_sources, routed.graph.n_targets
        self.reached, self.left = routed.reached, prior.left
        self.before, self.after = prior.source[ranks], prior.target[ranks]

    @cached_property
    def itself(self) -> Floats:
        """1 where the pair of a rank with itself would be counted."""
        return (self.reached[self.source, self.target] & self.left[self.before, self.after]).astype(float)

    def _sent(self, sent: Reals) -> Floats:
        """Sum over (source group, earlier group)."""
        shape = (self.n_sources, self.left.shape[0])
        return (
            np.bincount(self.source * shape[1] + self.before, sent, shape[0] * shape[1])
            .reshape(shape)
            .astype(np.float64)
        )

    def _received(self, received: Reals) -> Floats:
        """Sum over (earlier group, target group)."""
        shape = (self.left.shape[1], self.n_targets)
        return (
            np.bincount(self.after * shape[1] + self.target, received, shape[0] * shape[1])
            .reshape(shape)
            .astype(np.float64)
        )

    def by_source(self, sent: Reals, received: Reals) -> Floats:
        """Return the sums from every source group to every rank."""
        found: Floats = (self._sent(sent) @ self.left)[:, self.after] * self.reached[:, self.target] * received
        found[self.source, np.arange(len(sent))] -= self.itself * sent * received
        return found

    def by_target(self, sent: Reals, received: Reals) -> Floats:
        """Return the sums from every rank to every target group."""
        found: Floats = (self.left @ self._received(received))[self.before] * self.reached[self.source] * sent[:, None]
        found[np.arange(len(sent)), self.target] -= self.itself * sent * received
        return found

    def between(self, sent: Reals, received: Reals) -> Floats:
        """Return the sums between groups."""
        found: Floats = (self._sent(sent) @ self.left @ self._received(received)) * self.reached
        np.subtract.at(found, (self.source, self.target), self.itself * sent * received)
        return found
