"""How many bytes cross every directed link, and how late does the first of them arrive?

Flows are worked out per target group of `topo`'s class graph, level by level from the
farthest hop: twins share their routes up to the last link. A source's or target's own
links get their loads from its own row or column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives._flows import PathTerm, Spread, spread
from collectives._hashed_loads import HashedFlows
from collectives._records import Traffic
from collectives._traffic import ClassTraffic, runs, split_by_class
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


def phase_loads(routes: Routes, ranks: Ints, traffic: Traffic) -> PhaseLoads:
    """Route one phase's bytes and return what every link carries.

    Parameters
    ----------
    routes : Routes
        From `topo.route`.
    ranks : (n,) int
        Rank numbers of rows and columns.
    traffic : (n, n) float, Outer, Flows or tuple of Outer
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
    if hashing := routes.hash_of(routed):
        return HashedFlows(routed, hashing, ranks, part)
    if routed.via is not None:
        return ViaFlows(routed, routed.via, ranks, part)
    return _ClassFlows(routed, ranks, part)


class _ClassFlows:
    """One class's traffic in one phase: propagated per target group, read off per link."""

    def __init__(self, routed: ClassRoutes, ranks: Ints, traffic: ClassTraffic) -> None:
        self.routed, self.graph, self.ranks, self.traffic = routed, routed.graph, ranks, traffic
        self.source_group = self.graph.source_group[ranks]
        self.target_group = self.graph.target_group[ranks]
        #: Rows of ranks of which each stands for all of its kind, and the kind of every rank.
        self.first, self.kind = np.unique(traffic.alike, return_index=True, return_inverse=True)[1:]

    def add(self, loads: Floats, least: Floats) -> None:
        """Add the loads and lower the least latencies, links of transit, targets and sources."""
        graph = self.graph
        alone = len(np.unique(self.target_group)) == len(self.ranks)
        last_links = graph.target_edge.shape[1] > 0 and not graph.single_last_links
        if not (alone and last_links):  # else the walk to a target's last links is that of its group
            groups = np.flatnonzero(self.traffic.between.any(axis=0))
            self._add_transit(self._spread(groups, self.traffic.between[:, groups]), loads, least)
        carried, late = _idle(len(self.first), graph.target_edge.shape[1])
        if graph.single_last_links:
            beyond = self.routed.latency_to_target[:, : graph.n_sources]
            carried[:, 0], late[:, 0] = self.traffic.into(self.first, beyond, self.target_group[self.first])
        for some in runs(len(self.first), graph.n_sources) if last_links else ():
            own = graph.target_edge[self.ranks[self.first[some]]]
            walk = self._spread(self.target_group[self.first[some]], self.traffic.to_ranks(self.first[some]), own)
            carried[some], late[some] = walk.own_flow / graph.members[own], walk.own_least
            if alone:
                self._add_transit(walk, loads, least)
        self._add_own(graph.target_link, carried, late, loads, least)
        self._add_own(graph.source_link, *self._sources(self.first), loads, least)

    def _add_transit(self, walk: Spread, loads: Floats, least: Floats) -> None:
        """Read off links between switches: all of a group's targets share their routes up to the last link."""
        edge, link = self.graph.through_edge, self.graph.through_link
        np.add.at(loads, link, (walk.flow / self.graph.members)[edge])
        np.minimum.at(least, link, walk.least[edge])

    def _add_own(self, links: Ints, carried: Floats, late: Floats, loads: Floats, least: Floats) -> None:
        """Read off ranks' own links, those of a kind all alike."""
        link = links[self.ranks]
        own = link >= 0
        np.add.at(loads, link[own], carried[self.kind][own])
        np.minimum.at(least, link[own], late[self.kind][own])

    def _spread(self, group: Ints, sent: Floats, own: Ints | None = None) -> Spread:
        return spread(self.routed, group, np.arange(self.graph.n_sources), sent.T, own=own)

    def _sources(self, sources: Ints) -> tuple[Floats, Floats]:
        """Return what sources put on their own links."""
        graph, (carried, late) = self.graph, _idle(len(sources), self.graph.source_edge.shape[1])
        for k in range(graph.source_edge.shape[1]):
            edge = graph.source_edge[self.ranks[sources], k]
            rows = np.flatnonzero(edge >= 0)
            edges, of = np.unique(edge[rows], return_inverse=True)
            part = self.routed.share[:, edges].T
            beyond = graph.latency[edges][:, None] + self.routed.latency_to_target[:, graph.head[edges]].T
            sent, late[rows, k] = self.traffic.out_of(sources[rows], part, of, beyond, of)
            carried[rows, k] = sent / graph.members[edge[rows]]
        return carried, late

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


def _idle(n: int, links: int) -> tuple[Floats, Floats]:
    """Return loads and least latencies of links that carry nothing."""
    return np.zeros((n, links)), np.full((n, links), np.inf)
