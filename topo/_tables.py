"""Where do a subnet manager's forwarding tables send a packet? Switch by switch, to the LID of the destination.

Every pair follows the tables, whatever its path class. A rank with LIDs of its own sends
from its first port and is reached by that port's LID; another one over the nearest NIC that
has them. Loops, missing entries and dead ends leave a pair without a path, and can be asked why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topo._check import EDGE_KINDS, NODE_KINDS
from topo._class_routes import ClassRoutes
from topo._classes import ClassGraph, class_graph
from topo._errors import Fault, InputError
from topo._fabric import Fabric
from topo._hops import fewest_hops
from topo._labels import natural
from topo._shares import Bools, numbered, onward
from topo.readers._reading import Tables

__all__ = ["TableWalk", "by_tables"]

Ints = NDArray[np.intp]
_PCIE, _SWITCH = EDGE_KINDS.index("pcie"), NODE_KINDS.index("switch")


def by_tables(fabric: Fabric, tables: Tables) -> tuple[ClassRoutes, TableWalk]:
    """Return the routes of an unfolded fabric under forwarding tables, and what can say why a pair has none.

    Raises
    ------
    InputError
        Ranks without a LID, tables of switches that the graph does not have.
    """
    walk = TableWalk(fabric, tables, _owners(fabric, tables))
    graph = class_graph(fabric, "scale-out", fold=False)
    allowed = _allowed(fabric, graph, walk)
    hops = fewest_hops(graph, allowed=allowed)
    ways = onward(graph, hops, allowed)
    return ClassRoutes(graph, hops, (ways & (numbered(graph.tail, ways)[0] == 0)).astype(np.float64)), walk


@dataclass(frozen=True, eq=False)
class TableWalk:
    """Tables joined to a fabric, to be walked.

    Attributes
    ----------
    fabric : Fabric
        Cable by cable.
    tables : Tables
        Of its subnet manager.
    owner : (ranks,) int
        Node whose LID stands for a rank: itself or its NIC.
    """

    fabric: Fabric
    tables: Tables
    owner: Ints

    def first_port(self, node: int) -> tuple[int, int]:
        """Return the first port of an end point that has a LID, and the LID."""
        return next(iter(self.fabric.marks.lids[node].items()))

    def why(self, source: int, target: int) -> str:
        """Return what keeps a rank's packets from another."""
        fabric, marks = self.fabric, self.fabric.marks
        start, goal = int(self.owner[source]), int(self.owner[target])
        lid = self.first_port(goal)[1]
        cable = {(a, pairs[0][0]): b for a, b, pairs in self._cables()}
        port, now = self.first_port(start)[0], start
        seen: list[int] = []
        while now != goal:
            if (now, port) not in cable:
                return f"port {port} of {fabric.labels[now]} leads nowhere (LID {lid})"
            now = cable[now, port]
            if now == goal:
                break
            if now in seen:
                loop = [*seen[seen.index(now) :], now]
                return f"LID {lid} loops: {' -> '.join(fabric.labels[node] for node in loop)}"
            seen.append(now)
            guid = marks.guid.get(now, "")
            if guid not in self.tables.next_port:
                return f"{fabric.labels[now]} has no table (LID {lid})"
            if lid not in self.tables.next_port[guid]:
                return f"{fabric.labels[now]} has no entry for LID {lid}"
            port = self.tables.next_port[guid][lid]
        return "no cable joins the rank to its NIC" if source != target else ""

    def _cables(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        ends = zip(self.fabric.source.tolist(), self.fabric.target.tolist(), strict=True)
        ports = self.fabric.marks.ports
        return [(a, b, ports[link]) for link, (a, b) in enumerate(ends) if link in ports]


def _owners(fabric: Fabric, tables: Tables) -> Ints:
    """Return the node whose LID stands for each rank."""
    lids, faults = fabric.marks.lids, []
    owner = np.full(fabric.n_ranks, -1, dtype=np.intp)
    beside: dict[int, list[int]] = {}
    for link in np.flatnonzero(fabric.link_kind == _PCIE).tolist():
        beside.setdefault(int(fabric.source[link]), []).append(int(fabric.target[link]))
    for rank, node in enumerate(fabric.ranks.tolist()):
        ring, seen = [node], {node}
        while ring and not any(one in lids for one in ring):
            ring = list(dict.fromkeys(b for a in ring for b in beside.get(a, ()) if b not in seen))
            seen.update(ring)
        near = sorted((one for one in ring if one in lids), key=lambda one: natural(fabric.labels[one]))
        if near:
            owner[rank] = near[0]
        else:
            cure = "Give the graph read from the same fabric, or `lids` of its end points."
            faults.append(Fault(f"node {fabric.labels[node]!r}", None, "has no LID and no NIC that has one", cure))
    known = set(fabric.marks.guid.values())
    if tables.next_port and not known & tables.next_port.keys():
        rule = "are of switches that the graph does not have (by GUID)"
        faults.append(Fault("routing", repr(tables), rule, "Give the tables of this fabric."))
    if faults:
        raise InputError(*faults)
    return owner


def _allowed(fabric: Fabric, graph: ClassGraph, walk: TableWalk) -> Bools:
    """Return the edges that may be taken: at switches with a GUID what the table says, (targets, edges)."""
    marks = fabric.marks
    port = np.array([marks.ports[link][0][0] if link in marks.ports else -1 for link in graph.sample.tolist()])
    allowed = np.ones((graph.n_targets, len(graph.tail)), dtype=bool)
    lids = np.array([walk.first_port(int(node))[1] for node in walk.owner], dtype=np.intp)
    ends = graph.n_sources + graph.n_targets
    by_tail = np.searchsorted(graph.tail, np.arange(graph.n_nodes + 1))
    cabled = np.zeros(len(fabric.labels), dtype=bool)
    cabled[fabric.source[fabric.link_kind != _PCIE]] = True
    switch = cabled & (fabric.node_kind == _SWITCH)
    for node in range(graph.n_nodes):
        place, edges = int(graph.place[node]), slice(by_tail[node], by_tail[node + 1])
        if node >= ends and switch[place]:
            row = walk.tables.next_port.get(marks.guid.get(place, ""), {})
            out = np.array([row.get(lid, -2) for lid in lids.tolist()])
            allowed[:, edges] = out[:, None] == port[edges]
        elif place in marks.lids and node < graph.n_sources and (port[edges] >= 0).any():
            allowed[:, edges] = port[edges] == walk.first_port(place)[0]
        elif place in marks.lids and node >= ends:
            down = fabric.link_kind[graph.sample[edges]] == _PCIE
            allowed[:, edges] &= ~down | (walk.owner == place)[:, None]
    return allowed
