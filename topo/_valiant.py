"""Over which stop does Valiant routing go? Two minimal ways, to a place drawn at random and on from there.

On a dragonfly the place is a group: the way to it ends where it first gets there (Kim et
al. 2008). Elsewhere it is a switch that end points hang on, and where there is none a rank
that forwards, as on a torus (Valiant 1982; Dally and Towles 2004). All are equally likely,
the flow's own and the destination's included: then the way is minimal. Loads are those
expected. Pairs that no stop joins, as GPUs wired to each other, go straight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topo._check import EDGE_KINDS, NODE_KINDS
from topo._class_routes import ClassRoutes
from topo._classes import ClassGraph
from topo._fabric import Fabric
from topo._groups import groups_of, minimal_over_groups, straight
from topo._hops import FAR, fewest_hops
from topo._shares import Bools, Floats, Hops, by_capacity, onward, split_by_capacity

__all__ = ["Via", "over_stops"]

Ints = NDArray[np.intp]
_SWITCH = NODE_KINDS.index("switch")


@dataclass(frozen=True, eq=False)
class Via:
    """The stops of one path class.

    Attributes
    ----------
    leg : ClassRoutes
        Ways to the stops, its targets.
    start : (stops,) int
        Node of the graph that a way goes on from.
    weight : (sources, stops) float
        How often a source takes a stop; for a pair, of the stops that join it, in this proportion.
    """

    leg: ClassRoutes
    start: Ints
    weight: Floats

    def goes_on(self, onwards: ClassRoutes) -> Bools:
        """Return whether a way leads from a stop to a target, (stops, targets)."""
        found: Bools = (onwards.hops[:, self.start] < FAR).T
        return found

    def drawn(self, onwards: ClassRoutes) -> Floats:
        """Return the summed weight of the stops that join a source and a target, (sources, targets)."""
        return np.asarray(self.weight @ self.goes_on(onwards).astype(np.float64))

    def most_hops(self, onwards: ClassRoutes) -> Hops:
        """Return the hops of the longest way over a stop, (sources, targets); 0 where no stop joins a pair."""
        sources = len(self.weight)
        longest = np.zeros((sources, len(onwards.hops)), dtype=np.int16)
        for stop, start in enumerate(self.start.tolist()):
            rows = np.flatnonzero(self.weight[:, stop] > 0)
            columns = np.flatnonzero(onwards.hops[:, start] < FAR)
            block = np.ix_(rows, columns)
            there, on = self.leg.hops[stop, rows], onwards.hops[columns, start]
            longest[block] = np.maximum(longest[block], there[:, None] + on[None, :])
        return longest


def over_stops(fabric: Fabric, graph: ClassGraph) -> ClassRoutes:
    """Return the routes of an unfolded graph: straight ones, and the stops that flows go over first."""
    group = None if fabric.marks.shape == "slim_fly" else groups_of(fabric, graph)
    hops, share = by_capacity(fabric, graph) if group is None else minimal_over_groups(fabric, graph)
    # A rank is at its own place without a hop.
    own, out = np.arange(graph.n_targets), np.flatnonzero(graph.tail < graph.n_sources)
    hops[own, own], share[graph.tail[out], out] = 0, 0.0
    start = _stops(fabric, graph, group)
    if not len(start):
        return ClassRoutes(graph, hops, share)
    arrived = np.zeros((len(start), graph.n_nodes), dtype=bool)
    arrived[np.arange(len(start)), start] = True
    ranks = np.flatnonzero(start < graph.n_sources)
    arrived[ranks, graph.n_sources + start[ranks]] = True  # what comes to a rank comes to its role of a target
    if group is None:
        to = fewest_hops(graph, goals=arrived)
        leg = ClassRoutes(graph, to, split_by_capacity(graph, onward(graph, to)))
        weight = (to[:, : graph.n_sources] < FAR).T.astype(np.float64)
    else:
        leg, weight = _to_groups(graph, group, arrived, group[start])
    return ClassRoutes(graph, hops, share, Via(leg, start, weight))


def _stops(fabric: Fabric, graph: ClassGraph, group: Ints | None) -> Ints:
    """Return where ways go on from: switches of every group or that end points hang on, else ranks that forward."""
    ends = graph.n_sources + graph.n_targets
    transit = np.arange(ends, graph.n_nodes)
    relays = np.flatnonzero(np.isin(fabric.ranks, graph.place[ends:]))
    if group is not None:
        return np.concatenate([transit[~np.isin(graph.place[transit], fabric.ranks)], relays])
    switch = fabric.node_kind[graph.place] == _SWITCH
    own = fabric.link_kind[graph.sample] == EDGE_KINDS.index(graph.kind)
    down = own & (switch[graph.tail] != switch[graph.head])
    beside = np.isin(transit, np.concatenate([graph.tail[down], graph.head[down]]))
    routers = transit[switch[transit] & beside]
    return routers if len(routers) else relays


def _to_groups(graph: ClassGraph, group: Ints, arrived: Bools, at: Ints) -> tuple[ClassRoutes, Floats]:
    """Return the ways to every group, taken apart by the stop where they arrive, and how often they arrive there.

    With L the part of what is at a node that arrives at a stop, the part of this that takes
    an edge is share x L(head) / L(tail).
    """
    n_groups = int(group.max()) + 1
    goals = np.zeros((n_groups, graph.n_nodes), dtype=bool)
    np.logical_or.at(goals, at, arrived)
    at_home = np.zeros((n_groups, n_groups + 1), dtype=bool)
    at_home[np.arange(n_groups), np.arange(n_groups)] = True
    allowed = straight(graph, group, at_home)
    hops = fewest_hops(graph, allowed=allowed, goals=goals)[at]
    share = split_by_capacity(graph, onward(graph, hops, allowed[at]))
    lands = arrived.astype(np.float64)
    tails, first = np.unique(graph.tail, return_index=True)
    for level in range(1, int(hops[hops < FAR].max(initial=0)) + 1):
        step = np.where(hops[:, graph.tail] == level, share * lands[:, graph.head], 0.0)
        lands[:, tails] += np.add.reduceat(step, first, axis=1)
    from_tail = lands[:, graph.tail]
    part = np.divide(share * lands[:, graph.head], from_tail, out=np.zeros_like(share), where=from_tail > 0)
    leg = ClassRoutes(graph, np.where(lands > 0, hops, FAR).astype(np.int16), part)
    return leg, lands[:, : graph.n_sources].T.copy()
