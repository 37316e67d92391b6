"""How many bytes cross every directed link, and how late does the first of them arrive?

Flows are worked out per target group of `topo`'s class graph, level by level from the
farthest hop: twins share their routes up to the last link. A source's or target's own
links get their loads from its own row or column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives._flows import CELLS, PathTerm, propagate
from collectives._hashed_loads import HashedFlows
from collectives._records import Flows, Outer
from collectives._traffic import ClassTraffic, split_by_class
from collectives._via_loads import ViaFlows
from topo import ClassRoutes, Routes

__all__ = ["PathTerm", "PhaseLoads", "phase_loads"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


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


def phase_loads(routes: Routes, ranks: Ints, traffic: Floats | Outer | Flows) -> PhaseLoads:
    """Route one phase's bytes and return what every link carries.

    Parameters
    ----------
    routes : Routes
        From `topo.route`.
    ranks : (n,) int
        Rank numbers of rows and columns.
    traffic : (n, n) float, Outer or Flows
        Bytes from row to column; the diagonal stays.

    Raises
    ------
    InputError
        Bytes between ranks that no path joins.
    """
    links = len(routes.fabric.source)
    loads, least, path = np.zeros(links), np.full(links, np.inf), PathTerm()
    for part in split_by_class(routes, ranks, traffic):
        flows = _flows(routes, ranks, part)
        flows.add(loads, least)
        path = max(path, flows.slowest_path(), key=lambda term: term.seconds)
    return PhaseLoads(loads, least, path)


def _flows(routes: Routes, ranks: Ints, part: ClassTraffic) -> _ClassFlows | ViaFlows | HashedFlows:
    """Return one class's traffic as its rule moves it."""
    routed = routes.classes[part.number]
    if routes.hashing is not None:
        return HashedFlows(routed, routes.hashing, ranks, part)
    if routed.via is not None:
        return ViaFlows(routed, routed.via, ranks, part)
    return _ClassFlows(routed, ranks, part)


class _ClassFlows:
    """One class's traffic in one phase: propagated per target group, read off per link."""

    def __init__(self, routed: ClassRoutes, ranks: Ints, traffic: ClassTraffic) -> None:
        self.routed, self.graph, self.ranks, self.traffic = routed, routed.graph, ranks, traffic
        self.source_group = self.graph.source_group[ranks]
        self.target_group = self.graph.target_group[ranks]

    def add(self, loads: Floats, least: Floats) -> None:
        """Add the loads and lower the least latencies, links of transit, targets and sources."""
        graph, everyone = self.graph, np.arange(len(self.ranks))
        alone = len(np.unique(self.target_group)) == len(everyone)
        last_links = graph.target_edge.shape[1] > 0 and not graph.single_last_links
        if not (alone and last_links):  # else the walk to a target's last links is that of its group
            for some in _runs(np.flatnonzero(self.traffic.between.any(axis=0)), len(graph.tail)):
                self._add_transit(*self._propagate(some, self.traffic.between[:, some].T), loads, least)
        if graph.single_last_links:
            for some in _runs(everyone, graph.n_sources):
                self._add_single_targets(some, loads, least)
        elif last_links:
            for some in _runs(everyone, len(graph.tail)):
                walk = self._propagate(self.target_group[some], self.traffic.to_ranks(some).T)
                self._add_targets(some, *walk, loads, least)
                if alone:
                    self._add_transit(*walk, loads, least)
        for some in _runs(everyone, graph.n_targets):
            self._add_sources(some, loads, least)

    def _add_transit(self, flow: Floats, through: Floats, loads: Floats, least: Floats) -> None:
        """Read off links between switches: all of a group's targets share their routes up to the last link."""
        edge, link = self.graph.through_edge, self.graph.through_link
        if not len(link):
            return
        np.add.at(loads, link, (flow.sum(axis=0) / self.graph.members)[edge])
        np.minimum.at(least, link, through.min(axis=0, initial=np.inf)[edge])

    def _add_single_targets(self, targets: Ints, loads: Floats, least: Floats) -> None:
        """Read off targets with one last link: all that reaches them comes over it."""
        graph, by_source = self.graph, self.traffic.to_ranks(targets)
        link = graph.target_link[self.ranks[targets], 0]
        late = self.routed.latency_to_target[self.target_group[targets]][:, : graph.n_sources].T
        own = link >= 0
        np.add.at(loads, link[own], by_source.sum(axis=0)[own])
        np.minimum.at(least, link[own], np.where(by_source > 0, late, np.inf).min(axis=0)[own])

    def _add_targets(self, targets: Ints, flow: Floats, through: Floats, loads: Floats, least: Floats) -> None:
        """Read off the last links of targets that have several."""
        graph = self.graph
        rows = np.arange(len(targets))[:, None]
        edge, link = graph.target_edge[self.ranks[targets]], graph.target_link[self.ranks[targets]]
        own = edge >= 0
        np.add.at(loads, link[own], (flow[rows, edge] / graph.members[edge])[own])
        np.minimum.at(least, link[own], through[rows, edge][own])

    def _propagate(self, group: Ints, sent: Floats) -> tuple[Floats, Floats]:
        """Flow over each edge toward some target groups, and the least latency of a path through it."""
        at_node = np.zeros((len(group), self.graph.n_nodes))
        at_node[:, : self.graph.n_sources] = sent
        return propagate(self.routed, group, at_node)

    def _add_sources(self, sources: Ints, loads: Floats, least: Floats) -> None:
        graph, by_target = self.graph, self.traffic.from_ranks(sources)
        share, beyond = self.routed.share, self.routed.latency_to_target
        for k in range(graph.source_edge.shape[1]):
            edge, link = graph.source_edge[self.ranks[sources], k], graph.source_link[self.ranks[sources], k]
            rows = np.flatnonzero(edge >= 0)
            edge, link = edge[rows], link[rows]
            moved = by_target[rows] * (share[:, edge] / graph.members[edge]).T
            np.add.at(loads, link, moved.sum(axis=1))
            late = np.where(moved > 0, graph.latency[edge][:, None] + beyond[:, graph.head[edge]].T, np.inf)
            np.minimum.at(least, link, late.min(axis=1))

    def slowest_path(self) -> PathTerm:
        """Return the worst flow and path of it, all by itself."""
        labels = self.routed.paths
        most = self.traffic.most
        n_bytes = most[labels.source, labels.target]
        transfer = n_bytes * labels.share / labels.narrowest
        seconds = np.where(n_bytes > 0, labels.latency + transfer, -1.0)
        i = int(np.argmax(seconds))
        rows = np.flatnonzero(self.source_group == labels.source[i])
        columns = np.flatnonzero(self.target_group == labels.target[i])
        r, d = self.traffic.pair(rows, columns, float(n_bytes[i]))
        return PathTerm(float(labels.latency[i]), float(transfer[i]), int(self.ranks[r]), int(self.ranks[d]))


def _runs(numbers: Ints, cells: int) -> Iterator[Ints]:
    """Yield numbers run by run, so that a row of so many cells for each of a run fits."""
    step = max(1, CELLS // max(1, cells))
    return (numbers[first : first + step] for first in range(0, len(numbers), step))
