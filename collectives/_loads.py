"""How many bytes cross every directed link, and how late does the first of them arrive?

Everything is computed per target: the flow for one target at every node, level by level
from the farthest hop. Sources are the twin groups of `topo`'s class graph; a source's or
target's own links get their loads from its own row or column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topo import ClassRoutes, Fault, InputError, Routes

__all__ = ["PathTerm", "PhaseLoads", "phase_loads"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Flow cells (targets x edges) worked on at once: about 100 MB.
_CELLS = 4_000_000


@dataclass(frozen=True)
class PathTerm:
    """The flow whose own path takes longest: latency [s], bytes over narrowest link [s], its ends."""

    latency: float = 0.0
    transfer: float = 0.0
    source: int = -1
    target: int = -1

    @property
    def seconds(self) -> float:
        """Latency and transfer [s]."""
        return self.latency + self.transfer


@dataclass(frozen=True, eq=False)
class PhaseLoads:
    """Loads of one phase.

    Attributes
    ----------
    loads : (links,) float
        Bytes over every directed link.
    least_latency : (links,) float
        Least path latency among the flows over a link [s]; infinite on idle links.
    path : PathTerm
        The slowest path on its own.
    """

    loads: Floats
    least_latency: Floats
    path: PathTerm


def phase_loads(routes: Routes, ranks: Ints, n_bytes: Floats) -> PhaseLoads:
    """Route one phase's bytes and return what every link carries.

    Parameters
    ----------
    routes : Routes
        From `topo.route`.
    ranks : (n,) int
        Rank numbers of rows and columns.
    n_bytes : (n, n) float
        Bytes from row to column; the diagonal stays.

    Raises
    ------
    InputError
        Bytes between ranks that no path joins.
    """
    links = len(routes.fabric.source)
    loads, least, path = np.zeros(links), np.full(links, np.inf), PathTerm()
    pair_class = routes.pair_class[np.ix_(ranks, ranks)]
    _require_paths(routes, ranks, (pair_class == -1) & (n_bytes > 0))
    for number, routed in enumerate(routes.classes):
        traffic = np.where(pair_class == number, n_bytes, 0.0)
        if traffic.any():
            flows = _ClassFlows(routed, ranks, traffic, routes.twin[ranks])
            flows.add(loads, least)
            path = max(path, flows.slowest_path(), key=lambda term: term.seconds)
    return PhaseLoads(loads, least, path)


def _require_paths(routes: Routes, ranks: Ints, cut: NDArray[np.bool_]) -> None:
    if cut.any():
        a, b = (routes.fabric.rank_labels[ranks[i]] for i in np.argwhere(cut)[0])
        rule = f"has no path for {int(cut.sum())} pairs of ranks, the first {a} to {b}"
        raise InputError(Fault("graph", routes.fabric.name, rule, "Join them, or leave those ranks out."))


class _ClassFlows:
    """One class's traffic in one phase: aggregated by twin groups, propagated, read off per link."""

    def __init__(self, routed: ClassRoutes, ranks: Ints, traffic: Floats, twin: Ints) -> None:
        self.routed, self.graph = routed, routed.graph
        self.ranks, self.traffic = ranks, traffic
        self.source_group = self.graph.source_group[ranks]
        self.target_group = self.graph.target_group[ranks]
        self.by_source = _grouped(traffic, self.source_group, self.graph.n_sources, np.add)
        self.by_target = _grouped(traffic.T, self.target_group, self.graph.n_targets, np.add).T
        self.alike = _alike(self.by_source, twin)

    def add(self, loads: Floats, least: Floats) -> None:
        """Add the loads and lower the least latencies, links of targets, transit and sources."""
        step = max(1, _CELLS // max(1, len(self.graph.tail)))
        different = np.unique(self.alike)
        for first in range(0, len(different), step):
            self._add_targets(different[first : first + step], loads, least)
        self._add_sources(loads, least)

    def _add_targets(self, different: Ints, loads: Floats, least: Floats) -> None:
        """Work out targets that get different traffic; those alike have the same flows, on their own last links."""
        graph = self.graph
        flow, through = self._propagate(different)
        targets = np.flatnonzero(np.isin(self.alike, different))
        rows = np.searchsorted(different, self.alike[targets])
        transit = np.flatnonzero(graph.link >= 0)
        np.add.at(loads, graph.link[transit], np.bincount(rows) @ flow[:, transit])
        np.minimum.at(least, graph.link[transit], through[:, transit].min(axis=0, initial=np.inf))
        edge, link = graph.target_edge[self.ranks[targets]], graph.target_link[self.ranks[targets]]
        own = edge >= 0
        np.add.at(loads, link[own], flow[rows[:, None], edge][own])
        np.minimum.at(least, link[own], through[rows[:, None], edge][own])

    def _propagate(self, targets: Ints) -> tuple[Floats, Floats]:
        """Flow over each edge for each target, and the least latency of a path through it."""
        graph, group = self.graph, self.target_group[targets]
        flow = np.zeros((len(targets), len(graph.tail)))
        through = np.full(flow.shape, np.inf)
        at_node = np.zeros((len(targets), graph.n_nodes))
        at_node[:, : graph.n_sources] = self.by_source[:, targets].T
        so_far = np.where(at_node > 0, 0.0, np.inf)
        beyond = self.routed.latency_to_target
        hops = self.routed.hops
        for level in range(len(self.routed.levels), 0, -1):
            edges = self.routed.levels[level - 1]
            tail, head = graph.tail[edges], graph.head[edges]
            share = np.where(hops[:, tail] == level, self.routed.share[:, edges], 0.0)[group]
            moved = at_node[:, tail] * share
            late = np.where(moved > 0, so_far[:, tail] + graph.latency[edges], np.inf)
            flow[:, edges] += moved
            through[:, edges] = np.minimum(through[:, edges], late + beyond[group][:, head])
            order = np.argsort(head, kind="stable")
            heads, first = np.unique(head[order], return_index=True)
            at_node[:, heads] += np.add.reduceat(moved[:, order], first, axis=1)
            so_far[:, heads] = np.minimum(so_far[:, heads], np.minimum.reduceat(late[:, order], first, axis=1))
        return flow, through

    def _add_sources(self, loads: Floats, least: Floats) -> None:
        graph, share = self.graph, self.routed.share
        beyond = self.routed.latency_to_target
        for k in range(graph.source_edge.shape[1]):
            edge, link = graph.source_edge[self.ranks, k], graph.source_link[self.ranks, k]
            rows = np.flatnonzero(edge >= 0)
            edge, link = edge[rows], link[rows]
            moved = self.by_target[rows] * share[:, edge].T
            np.add.at(loads, link, moved.sum(axis=1))
            late = np.where(moved > 0, graph.latency[edge][:, None] + beyond[:, graph.head[edge]].T, np.inf)
            np.minimum.at(least, link, late.min(axis=1))

    def slowest_path(self) -> PathTerm:
        """Return the worst flow and path of it, all by itself."""
        labels = self.routed.paths
        most = _grouped(self.traffic, self.source_group, self.graph.n_sources, np.maximum)
        most = _grouped(most.T, self.target_group, self.graph.n_targets, np.maximum).T
        n_bytes = most[labels.source, labels.target]
        transfer = n_bytes * labels.share / labels.narrowest
        seconds = np.where(n_bytes > 0, labels.latency + transfer, -1.0)
        i = int(np.argmax(seconds))
        same = (self.source_group == labels.source[i])[:, None] & (self.target_group == labels.target[i])
        r, d = np.argwhere(same & (self.traffic == n_bytes[i]))[0]
        return PathTerm(float(labels.latency[i]), float(transfer[i]), int(self.ranks[r]), int(self.ranks[d]))


def _alike(by_source: Floats, twin: Ints) -> Ints:
    """Return for every target the first target that is its twin and gets the very same traffic, (n,) int."""
    first = np.unique(twin, return_index=True)[1][np.unique(twin, return_inverse=True)[1]]
    same = (by_source == by_source[:, first]).all(axis=0)
    return np.where(same, first, np.arange(len(twin)))


def _grouped(rows: Floats, group: Ints, n_groups: int, by: np.ufunc) -> Floats:
    """Reduce the rows of each group into one, (n_groups, columns)."""
    order = np.argsort(group, kind="stable")
    present, first = np.unique(group[order], return_index=True)
    reduced = np.zeros((n_groups, rows.shape[1]))
    reduced[present] = by.reduceat(rows[order], first, axis=0)
    return reduced
