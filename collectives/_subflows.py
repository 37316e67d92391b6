"""Over which paths does each flow go, and with what part of its bytes? One fixed subflow a path."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from topo import ClassRoutes, Fabric, Fault, Hash, InputError, Routes, Via, traced

__all__ = ["MOST", "Subflows", "TooManyPaths", "subflows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Paths up to which they are listed: a few GB.
MOST = 3_000_000


class TooManyPaths(InputError):
    """Flows are split over more paths than were to be listed."""


@dataclass(frozen=True, eq=False)
class Subflows:
    """Parts of flows, each on one path.

    Attributes
    ----------
    flow : (subflows,) int
        Row of the flow it is a part of, ascending.
    share : (subflows,) float
        Part of the flow's bytes.
    indptr, links : (subflows + 1,) int, (crossings,) int
        Its directed links, in order, are ``links[indptr[s]:indptr[s + 1]]``.
    """

    flow: Ints
    share: Floats
    indptr: Ints
    links: Ints


@dataclass(frozen=True, eq=False)
class _Walk:
    """Parts of flows on their way: node of the class graph, place on the fabric, links behind (-1 padded)."""

    flow: Ints
    node: Ints
    place: Ints
    share: Floats
    links: Ints

    def of(self, rows: Ints) -> _Walk:
        return _Walk(*(getattr(self, field.name)[rows] for field in fields(self)))


def subflows(routes: Routes, source: Ints, target: Ints, most: int) -> Subflows:
    """Return the paths of some flows under a routing rule.

    Parameters
    ----------
    routes : Routes
        From `topo.route`.
    source, target : (flows,) int
        Rank numbers of their ends; a path joins each two.
    most : int
        Paths up to which they are listed.

    Raises
    ------
    TooManyPaths
        There are more.
    """
    of_flow = routes.class_between(source, target)
    parts = [_none()]
    for number, routed in enumerate(routes.classes):
        flow = np.flatnonzero(of_flow == number)
        if len(flow):
            walk = _class_walk(routes, routed, source[flow], target[flow], most)
            parts.append(replace(walk, flow=flow[walk.flow]))
    walk = _joined(parts)
    order = np.argsort(walk.flow, kind="stable")
    links = walk.links[order]
    indptr = np.concatenate([[0], (links >= 0).sum(axis=1).cumsum()])
    return Subflows(walk.flow[order], walk.share[order], indptr, links[links >= 0])


def _class_walk(routes: Routes, routed: ClassRoutes, source: Ints, target: Ints, most: int) -> _Walk:
    """Return the paths of flows of one class, all at their targets."""
    if hashing := routes.hash_of(routed):
        return _hashed(routed, hashing, source, target, most)
    flows, ones, none = np.arange(len(source)), np.ones(len(source)), np.zeros((len(source), 0), dtype=np.intp)
    goal, at = routes.fabric.ranks[target], routes.fabric.ranks[source]
    start = _Walk(flows, routed.graph.source_group[source], at, ones, none)
    if routed.via is None:
        return _walked(routes.fabric, routed, start, routed.graph.target_group[target], goal, most)
    return _over_stops(routes.fabric, routed, routed.via, start, target, most)


def _hashed(routed: ClassRoutes, hashing: Hash, source: Ints, target: Ints, most: int) -> _Walk:
    pairs = hashing.queue_pairs
    flow = np.repeat(np.arange(len(source)), pairs)
    _require_few(len(flow), len(source), most)
    links = traced(routed, source[flow], target[flow], np.tile(np.arange(pairs), len(source)), hashing.seed)
    return _Walk(flow, flow, flow, np.full(len(flow), 1 / pairs), links.astype(np.intp))


def _over_stops(fabric: Fabric, routed: ClassRoutes, via: Via, start: _Walk, target: Ints, most: int) -> _Walk:
    """Walk to every stop that joins a pair and on from there; pairs that none joins go straight."""
    weight = via.weight[start.node] * via.goes_on(routed).T[target]
    drawn, goal = weight.sum(axis=1), fabric.ranks[target]
    row, stop = np.nonzero(weight)
    _require_few(len(row), len(target), most)
    to = replace(start.of(row), flow=np.arange(len(row)), share=weight[row, stop] / drawn[row])
    there = _walked(fabric, via.leg, to, stop, routed.graph.place[via.start[stop]], most)
    on = replace(there, flow=row[there.flow], node=via.start[stop[there.flow]])
    straight = start.of(np.flatnonzero(drawn == 0))
    return _joined([_walked(fabric, routed, walk, target, goal, most) for walk in (on, straight)])


def _walked(fabric: Fabric, routed: ClassRoutes, walk: _Walk, row: Ints, goal: Ints, most: int) -> _Walk:
    """Follow every share to where a flow's row of `hops` is 0; `goal` is the node of its target."""
    ways = _Ways(fabric, routed)
    at_goal, edge = np.nonzero(routed.share > 0)  # by goal, then by tail: edges are sorted by it
    fan = np.bincount(at_goal * ways.n + routed.graph.tail[edge], minlength=len(routed.hops) * ways.n)
    first = np.cumsum(fan) - fan
    done = []
    while True:
        arrived = routed.hops[row[walk.flow], walk.node] == 0
        done.append(walk.of(np.flatnonzero(arrived)))
        walk = walk.of(np.flatnonzero(~arrived))
        if not len(walk.flow):
            return _joined(done)
        cell = row[walk.flow] * ways.n + walk.node
        part, way = _expanded(first[cell], fan[cell])
        taken = edge[way]
        begin, count = ways.of(taken, walk.place[part], goal[walk.flow[part]])
        _require_few(int(count.sum()) + sum(len(one.flow) for one in done), len(row), most)
        again, way = _expanded(begin, count)
        part, taken, link = part[again], taken[again], ways.link[way]
        share = walk.share[part] * routed.share[row[walk.flow[part]], taken] / routed.graph.fan[taken]
        links = np.column_stack([walk.links[part], link])
        walk = _Walk(walk.flow[part], routed.graph.head[taken], fabric.target[link], share, links)


class _Ways:
    """The directed links of every edge of a class graph, by the node they leave, and the rank they lead to."""

    def __init__(self, fabric: Fabric, routed: ClassRoutes) -> None:
        graph = routed.graph
        own = [(graph.source_edge, graph.source_link), (graph.target_edge, graph.target_link)]
        edge = np.concatenate([graph.through_edge, *(e[e >= 0] for e, _ in own)])
        link = np.concatenate([graph.through_link, *(l[e >= 0] for e, l in own)])
        self.n, self.width = graph.n_nodes, len(fabric.labels)
        self.last = (graph.head >= graph.n_sources) & (graph.head < graph.n_sources + graph.n_targets)
        key = self._key(edge, fabric.source[link], fabric.target[link])
        order = np.argsort(key, kind="stable")
        self.key, self.link = key[order], link[order]

    def _key(self, edge: Ints, tail: Ints, goal: Ints) -> Ints:
        return (edge * self.width + tail) * (self.width + 1) + np.where(self.last[edge], goal, self.width)

    def of(self, edge: Ints, tail: Ints, goal: Ints) -> tuple[Ints, Ints]:
        """Return first place and number, in `link`, of an edge's links from a node, and to a rank if it ends there."""
        key = self._key(edge, tail, goal)
        first = np.searchsorted(self.key, key)
        return first, np.searchsorted(self.key, key, side="right") - first


def _expanded(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Write out runs: the row of each, and first, first + 1, ... of it."""
    row = np.repeat(np.arange(len(first)), count)
    return row, np.arange(len(row)) + (first - np.cumsum(count) + count)[row]


def _none() -> _Walk:
    none = np.zeros(0, dtype=np.intp)
    return _Walk(none, none, none, np.zeros(0), np.zeros((0, 0), dtype=np.intp))


def _joined(walks: list[_Walk]) -> _Walk:
    width = max(walk.links.shape[1] for walk in walks)
    links = [np.pad(w.links, ((0, 0), (0, width - w.links.shape[1])), constant_values=-1) for w in walks]
    flow, node, place, share = (
        np.concatenate([getattr(w, name) for w in walks]) for name in ("flow", "node", "place", "share")
    )
    return _Walk(flow, node, place, share, np.concatenate(links))


def _require_few(paths: int, flows: int, most: int) -> None:
    if paths > most:
        rule = f"splits {flows:,} flows over {paths:,} paths and more; {most:,} can be simulated"
        cure = "Take fewer ranks, a routing that splits less (single, hash), or `cost`, which lists no paths."
        raise TooManyPaths(Fault("routing", f"{paths:,} paths", rule, cure))
