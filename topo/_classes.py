"""Which links may a flow use? One path class at a time, folded where end points are twins.

A pair of ranks takes the first class in which a path exists: scale-up edges, pcie edges
(one host), scale-out (through pcie and NIC where those are nodes). Within a class every
rank plays up to three roles: source (only sends), target (only receives), and, if it
forwards, transit. Sources that see the same next nodes over equal links are twins: what
a routing rule gives one it gives the other, so they share one node here. So do targets
reached from the same nodes over equal links. Link loads stay per rank. Switches are
folded in `topo._alike`. A rule that tells twins apart takes the graph unfolded: then
every edge is one directed link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topo._check import EDGE_KINDS, NODE_KINDS
from topo._fabric import Fabric
from topo._labels import label_order

__all__ = ["PATH_CLASSES", "ClassGraph", "class_graph"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

PATH_CLASSES = ("scale-up", "pcie", "scale-out")
_SWITCH, _NIC, _CPU = (NODE_KINDS.index(kind) for kind in ("switch", "nic", "cpu"))
_UP, _OUT, _PCIE = (EDGE_KINDS.index(kind) for kind in ("scale-up", "scale-out", "pcie"))
#: Where a flow of class scale-out is: still in its host, on the fabric, in the other host.
_AT_HOME, _ON_FABRIC, _ARRIVED = 0, 1, 2

Role = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class ClassGraph:
    """The directed graph one path class routes on: source groups, target groups, transit.

    Attributes
    ----------
    kind : str
        Path class.
    n_nodes, n_sources, n_targets : int
        Nodes 0 .. n_sources-1 are source groups, the next n_targets target groups, the
        rest transit.
    tail, head : (edges,) int
        Node indices; edges are sorted by tail, in an unfolded graph then by label of the
        head (node2 before node10) and lane.
    bandwidth, latency : (edges,) float
        Of one member's link [bytes/s, s].
    through_edge, through_link : (links,) int
        Directed links between transit nodes, and the edges they belong to.
    size : (nodes,) int
        Switches that a transit node stands for; 1 for a group, whose ranks count by themselves.
    members : (edges,) int
        Links that an edge stands for, each with an equal part of its traffic; for one rank
        where the edge is a group's.
    source_group, target_group : (ranks,) int
        Group of every rank; targets count from 0 (node n_sources + group).
    source_edge, source_link, target_edge, target_link : (ranks, most) int
        A rank's own links and the edges they belong to, -1 padded; empty in an unfolded
        graph, where `link` has them all.
    place : (nodes,) int
        Fabric node that a node is; of a group, its first rank's.
    sample : (edges,) int
        A directed link that an edge stands for.
    """

    kind: str
    n_nodes: int
    n_sources: int
    n_targets: int
    tail: Ints
    head: Ints
    bandwidth: Floats
    latency: Floats
    through_edge: Ints
    through_link: Ints
    size: Ints
    members: Ints
    source_group: Ints
    target_group: Ints
    source_edge: Ints
    source_link: Ints
    target_edge: Ints
    target_link: Ints
    place: Ints
    sample: Ints

    @cached_property
    def link(self) -> Ints:
        """Directed link of an edge, one of several where switches are folded; -1 for a group's edge, (edges,)."""
        found = np.full(len(self.tail), -1, dtype=np.intp)
        found[self.through_edge] = self.through_link
        return found

    @cached_property
    def fan(self) -> Floats:
        """Links of an edge at each node of its tail, (edges,)."""
        return self.members / self.size[self.tail]

    @property
    def single_last_links(self) -> bool:
        """Whether all that reaches a target comes over one link: no direct edges, no second way in."""
        last = self.n_sources + self.n_targets
        direct = (self.tail < self.n_sources) & (self.head >= self.n_sources) & (self.head < last)
        return self.target_edge.shape[1] == 1 and not bool(direct.any())


def class_graph(fabric: Fabric, kind: str, *, fold: bool = True) -> ClassGraph:
    """Return the graph of one path class.

    Parameters
    ----------
    fabric : Fabric
        The topology.
    kind : {"scale-up", "pcie", "scale-out"}
        Path class.
    fold : bool, optional
        Whether twins share a node; if not, every rank and every directed link has its own.
    """
    hops = list(_hops(fabric, kind))
    alone = np.arange(fabric.n_ranks)
    source_group, target_group = _twins(fabric, hops) if fold else (alone, alone)
    n_sources, n_targets = int(source_group.max()) + 1, int(target_group.max()) + 1
    numbers: dict[Role, int] = {}

    def node(role: Role) -> int:
        what, rank, _ = role
        if what == "source":
            return int(source_group[rank])
        if what == "target":
            return n_sources + int(target_group[rank])
        return numbers.setdefault(role, n_sources + n_targets + len(numbers))

    rows = [(node(a), node(b), link, a, b) for a, link, b in hops]
    place = np.zeros(n_sources + n_targets + len(numbers), dtype=np.intp)
    place[source_group[::-1]], place[n_sources + target_group[::-1]] = fabric.ranks[::-1], fabric.ranks[::-1]
    place[n_sources + n_targets :] = [where for _, where, _ in numbers]
    order = np.zeros(len(place), dtype=np.intp) if fold else label_order(fabric.labels)[place]
    cable = _cable_numbers(fabric) if fold else np.arange(len(fabric.source))
    edges: dict[tuple[int, int, int], int] = {}
    for tail, head, link, *_ in sorted(rows, key=lambda row: (row[0], order[row[1]], *row[1:3])):
        edges.setdefault((tail, head, int(cable[link])), len(edges))
    link_of = np.full(len(edges), -1, dtype=np.intp)
    sample = np.zeros(len(edges), dtype=np.intp)
    outs: list[list[tuple[int, int]]] = [[] for _ in range(fabric.n_ranks)]
    ins: list[list[tuple[int, int]]] = [[] for _ in range(fabric.n_ranks)]
    for tail, head, link, a, b in rows:
        edge = edges[tail, head, int(cable[link])]
        sample[edge] = link
        if not fold:
            link_of[edge] = link
        elif a[0] == "source":
            outs[a[1]].append((edge, link))
        elif b[0] == "target":
            ins[b[1]].append((edge, link))
        else:
            link_of[edge] = link
    ends = np.array(list(edges), dtype=np.intp).reshape(-1, 3)
    through, ones = np.flatnonzero(link_of >= 0), np.ones(max(len(place), len(ends)), dtype=np.intp)
    source_edge, source_link = _padded(outs)
    target_edge, target_link = _padded(ins)
    return ClassGraph(
        kind, len(place), n_sources, n_targets, ends[:, 0], ends[:, 1],
        fabric.bandwidth[sample], fabric.latency[sample], through, link_of[through],
        ones[: len(place)], ones[: len(ends)], source_group, target_group,
        source_edge, source_link, target_edge, target_link, place, sample,
    )  # fmt: skip


def _cable_numbers(fabric: Fabric) -> Ints:
    """Return the place of every directed link among those of the same two nodes, alike for twins."""
    ends = fabric.source * len(fabric.labels) + fabric.target
    order = np.lexsort((fabric.latency, fabric.bandwidth, ends))
    _, first, pair = np.unique(ends[order], return_index=True, return_inverse=True)
    number = np.empty(len(ends), dtype=np.intp)
    number[order] = np.arange(len(ends)) - first[pair.reshape(-1)]
    return number


def _hops(fabric: Fabric, kind: str) -> Iterator[tuple[Role, int, Role]]:
    """Every step a flow of this class can take: from a role over a directed link to a role."""
    rank_of = {int(node): r for r, node in enumerate(fabric.ranks)}
    ends = zip(fabric.source.tolist(), fabric.target.tolist(), fabric.link_kind.tolist(), strict=True)
    for link, (u, v, link_kind) in enumerate(ends):
        for phase, after in _phases(kind, link_kind, int(fabric.node_kind[u])):
            starts = [("source", rank_of[u], 0)] if u in rank_of and phase == _AT_HOME else []
            stops = [("target", rank_of[v], 0)] if v in rank_of else []
            leaves_host = kind == "scale-out" and link_kind == _OUT and phase == _AT_HOME
            if _passes(fabric, u, phase, kind) and (not leaves_host or fabric.node_kind[u] == _NIC):
                starts.append(("transit", u, phase))
            if _passes(fabric, v, after, kind):
                stops.append(("transit", v, after))
            yield from ((a, link, b) for a in starts for b in stops)


def _phases(kind: str, link_kind: int, tail_kind: int) -> Iterator[tuple[int, int]]:
    """Phases (before, after) in which a link of this kind may be taken."""
    if (kind == "scale-up" and link_kind == _UP) or (kind == "pcie" and link_kind == _PCIE):
        yield _AT_HOME, _AT_HOME
    elif kind == "scale-out" and link_kind == _OUT:
        yield _AT_HOME, _ON_FABRIC
        if tail_kind != _NIC:
            yield _ON_FABRIC, _ON_FABRIC
    elif kind == "scale-out" and link_kind == _PCIE:
        if tail_kind == _NIC:
            yield _ON_FABRIC, _ARRIVED
        else:
            yield _AT_HOME, _AT_HOME
            yield _ARRIVED, _ARRIVED


def _passes(fabric: Fabric, node: int, phase: int, kind: str) -> bool:
    """Whether traffic may pass through a node on a path of this class and phase.

    A NIC passes only between its host side and the fabric: at home it is entered from
    pcie and left over the fabric, on the fabric it is entered from there and left over
    pcie (`_phases` keeps the way out). CPUs pass pcie traffic only. GPUs relay where the
    graph says that they forward.
    """
    node_kind = int(fabric.node_kind[node])
    if node_kind == _NIC:
        return kind == "scale-out" and phase in (_AT_HOME, _ON_FABRIC)
    if node_kind == _CPU:
        return kind != "scale-up" and not (kind == "scale-out" and phase == _ON_FABRIC)
    return bool(fabric.forwards[node])


def _twins(fabric: Fabric, hops: list[tuple[Role, int, Role]]) -> tuple[Ints, Ints]:
    """Group ranks by what they see as sources and by what sees them as targets."""
    outs: list[list[tuple[Role, float, float]]] = [[] for _ in range(fabric.n_ranks)]
    ins: list[list[tuple[Role, float, float]]] = [[] for _ in range(fabric.n_ranks)]
    for a, link, b in hops:
        bandwidth, latency = float(fabric.bandwidth[link]), float(fabric.latency[link])
        if a[0] == "source":
            outs[a[1]].append((b, bandwidth, latency))
        if b[0] == "target":
            # A target wired straight to a source has one link per source: it stays alone.
            ins[b[1]].append((a, bandwidth, latency) if a[0] != "source" else (b, 0.0, 0.0))
    return _number(outs), _number(ins)


def _number(seen: list[list[tuple[Role, float, float]]]) -> Ints:
    numbers: dict[tuple[tuple[Role, float, float], ...], int] = {}
    return np.array([numbers.setdefault(tuple(sorted(rows)), len(numbers)) for rows in seen], dtype=np.intp)


def _padded(rows: list[list[tuple[int, int]]]) -> tuple[Ints, Ints]:
    most = max((len(row) for row in rows), default=0)
    edge = np.full((len(rows), most), -1, dtype=np.intp)
    link = np.full((len(rows), most), -1, dtype=np.intp)
    for r, row in enumerate(rows):
        for k, (e, one) in enumerate(row):
            edge[r, k], link[r, k] = e, one
    return edge, link
