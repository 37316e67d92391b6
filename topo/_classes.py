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

from dataclasses import dataclass
from functools import cached_property
from itertools import product

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
#: Steps of each class: over which links, from NICs (or not), in which phase before and after.
_STEPS: dict[str, tuple[tuple[int, bool | None, int, int], ...]] = {
    "scale-up": ((_UP, None, _AT_HOME, _AT_HOME),),
    "pcie": ((_PCIE, None, _AT_HOME, _AT_HOME),),
    "scale-out": (
        (_OUT, None, _AT_HOME, _ON_FABRIC),
        (_OUT, False, _ON_FABRIC, _ON_FABRIC),
        (_PCIE, True, _ON_FABRIC, _ARRIVED),
        (_PCIE, False, _AT_HOME, _AT_HOME),
        (_PCIE, False, _ARRIVED, _ARRIVED),
    ),
}


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

    @cached_property
    def first_edge(self) -> Ints:
        """Where the edges of every node begin, and where the last ones end, (nodes + 1,)."""
        return np.searchsorted(self.tail, np.arange(self.n_nodes + 1))

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
    moves = _moves(fabric, kind)
    alone = np.arange(fabric.n_ranks)
    source_group, target_group = _twins(fabric, moves) if fold else (alone, alone)
    n_sources, n_targets = int(source_group.max()) + 1, int(target_group.max()) + 1
    node, passing = _numbered(fabric, moves, source_group, target_group)
    place = np.zeros(n_sources + n_targets + len(passing), dtype=np.intp)
    place[source_group[::-1]], place[n_sources + target_group[::-1]] = fabric.ranks[::-1], fabric.ranks[::-1]
    place[n_sources + n_targets :] = passing
    order = np.zeros(len(place), dtype=np.intp) if fold else label_order(fabric.labels)[place]
    cable = _cable_numbers(fabric) if fold else np.arange(len(fabric.source))
    tail, head, link = node[moves.start], node[moves.stop], moves.link
    by_tail = np.lexsort((link, head, order[head], tail))
    edge = np.empty(len(link), dtype=np.intp)
    key = (tail * len(place) + head) * (cable.max(initial=0) + 1) + cable[link]
    edge[by_tail], first = _by_appearance(key[by_tail])
    first = by_tail[first]
    sample, ones = np.zeros(len(first), dtype=np.intp), np.ones(max(len(place), len(first)), dtype=np.intp)
    sample[edge] = link
    leaves, enters = moves.start < fabric.n_ranks, moves.stop < 2 * fabric.n_ranks
    passes = ~(leaves | enters) if fold else np.ones(len(link), dtype=bool)
    link_of = np.full(len(first), -1, dtype=np.intp)
    link_of[edge[passes]] = link[passes]
    through = np.flatnonzero(link_of >= 0)
    out, into = (leaves, enters & ~leaves) if fold else (~passes, ~passes)
    n = fabric.n_ranks  # rows of twins are in the same order: by edge
    source_edge, source_link = _padded(n, moves.start[out], edge[out], link[out])
    target_edge, target_link = _padded(n, moves.stop[into] - n, edge[into], link[into])
    return ClassGraph(
        kind, len(place), n_sources, n_targets, tail[first], head[first],
        fabric.bandwidth[sample], fabric.latency[sample], through, link_of[through],
        ones[: len(place)], ones[: len(first)], source_group, target_group,
        source_edge, source_link, target_edge, target_link, place, sample,
    )  # fmt: skip


def _numbered(fabric: Fabric, moves: _Moves, source_group: Ints, target_group: Ints) -> tuple[Ints, Ints]:
    """Return the node of every role, and the fabric nodes of transit, numbered by first appearance."""
    groups = np.concatenate([source_group, source_group.max() + 1 + target_group])
    node = np.concatenate([groups, np.zeros(_ARRIVED * len(fabric.labels) + len(fabric.labels), dtype=np.intp)])
    roles = np.column_stack([moves.start, moves.stop]).ravel()
    transit = roles[roles >= len(groups)]
    transit = transit[_by_appearance(transit)[1]]
    node[transit] = groups.max() + 1 + np.arange(len(transit))
    return node, (transit - len(groups)) % len(fabric.labels)


def _by_appearance(keys: Ints) -> tuple[Ints, Ints]:
    """Return the number of every key by first appearance, equal ones the same; and where each appears first."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), dtype=np.intp)
    rank[order] = np.arange(len(first))
    return rank[number.reshape(-1)], first[order]


def _cable_numbers(fabric: Fabric) -> Ints:
    """Return the place of every directed link among those of the same two nodes, alike for twins."""
    ends = fabric.source * len(fabric.labels) + fabric.target
    order = np.lexsort((fabric.latency, fabric.bandwidth, ends))
    _, first, pair = np.unique(ends[order], return_index=True, return_inverse=True)
    number = np.empty(len(ends), dtype=np.intp)
    number[order] = np.arange(len(ends)) - first[pair.reshape(-1)]
    return number


@dataclass(frozen=True, eq=False)
class _Moves:
    """Every step a flow of a class can take: from a role over a directed link to a role, (moves,) int each.

    Rank r as a source is role r, as a target ranks + r; node v as transit in phase p is
    2 ranks + p x nodes + v.
    """

    start: Ints
    link: Ints
    stop: Ints


def _moves(fabric: Fabric, kind: str) -> _Moves:
    """Return the moves by link; of one link by phase, those of end points first."""
    rank_of = np.full(len(fabric.labels), -1)
    rank_of[fabric.ranks] = np.arange(fabric.n_ranks)
    nic, found = fabric.node_kind == _NIC, [np.zeros((5, 0), dtype=np.intp)]
    for number, (link_kind, from_nic, before, after) in enumerate(_STEPS[kind]):
        taken = fabric.link_kind == link_kind
        taken &= True if from_nic is None else nic[fabric.source] == from_nic
        link = np.flatnonzero(taken)
        u, v = fabric.source[link], fabric.target[link]
        leaves_host = kind == "scale-out" and link_kind == _OUT and before == _AT_HOME
        through, on = _passes(fabric, kind, before)[u] & (nic[u] | (not leaves_host)), _passes(fabric, kind, after)[v]
        first, middle = (rank_of[u] >= 0) & (before == _AT_HOME), 2 * fabric.n_ranks
        starts = (first, rank_of[u]), (through, middle + before * len(nic) + u)
        stops = (rank_of[v] >= 0, fabric.n_ranks + rank_of[v]), (on, middle + after * len(nic) + v)
        for (may_start, a), (may_stop, b) in product(starts, stops):
            rows = np.flatnonzero(may_start & may_stop)
            place = np.full(len(rows), len(found))
            found.append(np.stack([link[rows], np.full(len(rows), number), place, a[rows], b[rows]]))
    moves = np.concatenate(found, axis=1)
    link, _, _, start, stop = moves[:, np.lexsort((moves[2], moves[1], moves[0]))]
    return _Moves(start, link, stop)


def _passes(fabric: Fabric, kind: str, phase: int) -> NDArray[np.bool_]:
    """Return whether traffic may pass through each node on a path of this class and phase.

    A NIC passes only between its host side and the fabric: at home it is entered from
    pcie and left over the fabric, on the fabric it is entered from there and left over
    pcie (`_STEPS` keeps the way out). CPUs pass pcie traffic only. GPUs relay where the
    graph says that they forward.
    """
    nic = kind == "scale-out" and phase in (_AT_HOME, _ON_FABRIC)
    cpu = kind != "scale-up" and not (kind == "scale-out" and phase == _ON_FABRIC)
    found: NDArray[np.bool_] = np.where(fabric.node_kind == _CPU, cpu, fabric.forwards)
    return np.where(fabric.node_kind == _NIC, nic, found)


def _twins(fabric: Fabric, moves: _Moves) -> tuple[Ints, Ints]:
    """Group ranks by what they see as sources and by what sees them as targets."""
    n, start, stop = fabric.n_ranks, moves.start, moves.stop
    bandwidth, latency = (np.unique(x, return_inverse=True)[1] for x in (fabric.bandwidth, fabric.latency))
    wire = 1 + (bandwidth * (latency.max(initial=0) + 1) + latency)[moves.link]
    leaves, enters = start < n, (stop >= n) & (stop < 2 * n)
    # A target wired straight to a source has one link per source: it stays alone.
    straight = leaves & enters
    seen = np.where(straight, stop, start) * (wire.max(initial=0) + 1) + np.where(straight, 0, wire)
    sees = stop * (wire.max(initial=0) + 1) + wire
    return _alike(n, start[leaves], sees[leaves]), _alike(n, stop[enters] - n, seen[enters])


def _alike(n: int, rank: Ints, seen: Ints) -> Ints:
    """Return a number for every rank, the same for those that see the same."""
    number, (columns,) = np.zeros(n, dtype=np.intp), _padded(n, rank, np.unique(seen, return_inverse=True)[1])
    for column in columns.T:
        number, _ = _by_appearance(number * (len(seen) + 1) + column + 1)
    return number


def _padded(n: int, rank: Ints, *columns: Ints) -> list[Ints]:
    """Write values out by rank, ordered by the first column, -1 padded, (ranks, most) each."""
    order = np.lexsort((*columns[::-1], rank))
    rank, count = rank[order], np.bincount(rank, minlength=n)
    place = np.arange(len(rank)) - (np.cumsum(count) - count)[rank]
    found = [np.full((n, int(count.max(initial=0))), -1, dtype=np.intp) for _ in columns]
    for table, column in zip(found, columns, strict=True):
        table[rank, place] = column[order]
    return found
