"""How fast can all flows of a phase go, wherever each may run? Maximum concurrent flow, by its dual.

Put a price p(l) on every directed link, together sum of bandwidth(l) p(l) = 1. A byte from
s to t uses links of at least the price of the cheapest path, so in T seconds

    T >= F(p) = sum over pairs of bytes(s, t) x price of the cheapest path from s to t,

whatever the routes: that is weak duality, and it is all that correctness rests on. F is
worked out on the whole graph, from every rank. The best prices make it an equality (linear
programming duality): F is then the least time of the fluid.

Which prices are best? F is concave, and any symmetry of graph and bytes turns prices into
prices of equal F. So the mean over all symmetries is at least as good, and one price per
orbit of links is enough; and sources of one orbit then have sums of equal price. The
classes used (`_symmetry`) are unions of orbits. Where they are orbits nothing is lost;
where they are larger, F of the prices found is a bound all the same, only a lower one.

The cheapest paths from s are worked out on what is left when nodes are folded by colour
refinement with s and the bytes it sends told apart. Every node of a class has a link of
the same class from the class before it, by equitability, hence paths of the same price;
so folded distances are those of the graph. What remains is a small linear program: a
price per class of links, and a cheapest price per class of sources and class of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from collectives._symmetry import Classes, members, numbered, refine, told_apart
from topo import PATH_CLASSES, Fabric, class_graph

__all__ = ["Demand", "Network", "best_prices", "cheapest", "class_networks", "time_at", "whole_network"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Rows of the linear program up to which it is solved: some ten seconds.
MOST_ROWS = 60_000
#: Distances held at once.
_CELLS = 8_000_000


@dataclass(frozen=True, eq=False)
class Network:
    """Where flows may run.

    Attributes
    ----------
    size : int
        Nodes: of the graph, or what they are to a flow (source, target, on its way).
    tail, head, link : (arcs,) int
        Steps between nodes, and the fabric's directed link under each.
    start, stop : (ranks,) int
        Node where a rank's flows begin and end.
    """

    size: int
    tail: Ints
    head: Ints
    link: Ints
    start: Ints
    stop: Ints

    @property
    def turned(self) -> Network:
        """The same with every step backwards."""
        return replace(self, tail=self.head, head=self.tail, start=self.stop, stop=self.start)


@dataclass(frozen=True, eq=False)
class Demand:
    """Bytes between ranks, one matrix per network they may run on.

    Attributes
    ----------
    fabric : Fabric
        The topology.
    ranks : (n,) int
        Rank numbers of rows and columns.
    parts : tuple of (Network, (n, n) float)
        Each with bytes from row to column, none on the diagonal.
    alike : Classes
        Of the fabric, these ranks taking part.
    """

    fabric: Fabric
    ranks: Ints
    parts: tuple[tuple[Network, Floats], ...]
    alike: Classes

    @property
    def n_bytes(self) -> Floats:
        """All bytes from row to column, (n, n)."""
        total: Floats = np.sum([n_bytes for _, n_bytes in self.parts], axis=0)
        return total

    def classes(self) -> Classes:
        """Classes of nodes and links that these flows do not tell apart."""
        return told_apart(self.alike, self.fabric, self.ranks, self.n_bytes)

    def fewer_sources(self) -> Demand:
        """Return the flows, or all of them backwards, whichever have fewer sources: prices are the same."""
        n_bytes = self.n_bytes
        if n_bytes.any(axis=1).sum() <= n_bytes.any(axis=0).sum():
            return self
        return replace(self, parts=tuple((network.turned, part.T) for network, part in self.parts))


def whole_network(fabric: Fabric) -> Network:
    """Return the network on which everything passes everything on."""
    links = np.arange(len(fabric.source))
    return Network(len(fabric.labels), fabric.source, fabric.target, links, fabric.ranks, fabric.ranks)


def class_networks(fabric: Fabric) -> list[Network]:
    """Return one network per path class, in which nodes relay only what the class lets them."""
    found = []
    for kind in PATH_CLASSES:
        graph = class_graph(fabric, kind, fold=False)
        stop = graph.n_sources + graph.target_group
        found.append(Network(graph.n_nodes, graph.tail, graph.head, graph.sample, graph.source_group, stop))
    return found


def cheapest(network: Network, price: Floats, ranks: Ints) -> Iterator[tuple[slice, Floats]]:
    """Yield the cheapest path's price from some ranks to all nodes, a slice of the ranks at a time."""
    cost, ends = price[network.link], network.tail * network.size + network.head
    order = np.lexsort((cost, ends))
    least = order[np.unique(ends[order], return_index=True)[1]]  # of parallel links the cheapest
    shape = (network.size, network.size)
    arcs = csr_array((cost[least], (network.tail[least], network.head[least])), shape=shape)
    step = max(1, _CELLS // network.size)
    for first in range(0, len(ranks), step):
        rows = slice(first, min(first + step, len(ranks)))
        yield rows, dijkstra(arcs, indices=network.start[ranks[rows]])


def time_at(demand: Demand, price: Floats) -> float:
    """Return what prices prove: no routes take less time [s].

    Parameters
    ----------
    demand : Demand
        What is sent, and where it may run.
    price : (links,) float
        Zero or more, not all zero.
    """
    demand, spent = demand.fewer_sources(), 0.0
    for network, n_bytes in demand.parts:
        sending = np.flatnonzero(n_bytes.any(axis=1))
        stops = network.stop[demand.ranks]
        for rows, path in cheapest(network, price, demand.ranks[sending]):
            sent = n_bytes[sending[rows]]
            spent += float(np.sum(sent * np.where(sent > 0, path[:, stops], 0.0)))
    return spent / float(price @ demand.fabric.bandwidth)


def best_prices(demand: Demand, classes: Classes) -> Floats | None:
    """Return the prices that prove most, (links,) float; none where the program is too large.

    References
    ----------
    .. [1] F. Shahrokhi, D. W. Matula, "The maximum concurrent flow problem", J. ACM 37 (1990).
    .. [2] M. Grohe, K. Kersting, M. Mladenov, E. Selman, "Dimension reduction via colour
       refinement", ESA 2014, arXiv 1307.5697.
    """
    demand = demand.fewer_sources()
    first, count = members(classes.node[demand.fabric.ranks[demand.ranks]])
    used = [(part, i, k) for part in demand.parts for i, k in zip(first, count, strict=True) if part[1][i].any()]
    if sum(len(np.unique(part[0].link)) for part, _, _ in used) > 40 * MOST_ROWS:
        return None
    sums, n_links = [], int(classes.link.max()) + 1
    for (network, n_bytes), i, k in used:
        sums.append(_path_sum(network, demand.ranks, n_bytes[i] * k, int(i), classes.link))
        if sum(len(one.steps) for one in sums) > MOST_ROWS:
            return None
    per_class = _solved(sums, np.bincount(classes.link, demand.fabric.bandwidth, n_links).astype(np.float64))
    return None if per_class is None else per_class[classes.link]


@dataclass(frozen=True, eq=False)
class _PathSum:
    """Cheapest paths from one source: steps (from, to, class of link) between classes of nodes, bytes to each."""

    start: int
    steps: Ints
    n_bytes: Floats


def _path_sum(network: Network, ranks: Ints, sent: Floats, source: int, link_class: Ints) -> _PathSum:
    colour = np.zeros(network.size, dtype=np.intp)
    colour[network.stop[ranks]] = 1 + numbered(sent)
    colour[network.start[ranks[source]]] = len(sent) + 1
    kind = link_class[network.link]
    colour = refine(colour, network.tail, network.head, kind)
    steps = np.unique(np.column_stack([colour[network.tail], colour[network.head], kind]), axis=0)
    n_bytes = np.bincount(colour[network.stop[ranks]], sent, int(colour.max()) + 1).astype(np.float64)
    return _PathSum(int(colour[network.start[ranks[source]]]), steps[steps[:, 0] != steps[:, 1]], n_bytes)


def _solved(sums: Sequence[_PathSum], capacity: Floats) -> Floats | None:
    """Solve for prices per class of links, then cheapest prices per sum and class of nodes."""
    from scipy.optimize import linprog

    rows, columns, values, done = [], [], [], 0
    gain, most = [np.zeros(len(capacity))], [np.full(len(capacity), np.inf)]
    at = len(capacity)
    for one in sums:
        row = done + np.arange(len(one.steps))
        tail, head, link = one.steps.T
        rows += [row, row, row]
        columns += [at + head, at + tail, link]
        values += [np.ones(len(row)), -np.ones(len(row)), -np.ones(len(row))]
        bound = np.full(len(one.n_bytes), np.inf)
        bound[one.start] = 0.0
        gain.append(-one.n_bytes)
        most.append(bound)
        at, done = at + len(one.n_bytes), done + len(row)
    at_most: Any = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(done, at)
    )
    worth = capacity / capacity.mean()
    normal: Any = csr_array((worth, (np.zeros(len(capacity), dtype=np.intp), np.arange(len(capacity)))), shape=(1, at))
    objective = np.concatenate(gain)
    limits: Any = np.column_stack([np.zeros(at), np.concatenate(most)])
    found: Any = linprog(
        objective / -objective.sum(), A_ub=at_most, b_ub=np.zeros(done), A_eq=normal, b_eq=worth.sum(keepdims=True),
        bounds=limits, method="highs",
    )  # fmt: skip
    if found.x is None:
        return None
    price: Floats = found.x[: len(capacity)]
    price[price <= 1e-9 * price.max()] = 0.0
    return price
