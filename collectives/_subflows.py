"""Over which paths does each flow go, and with what part of its bytes? One fixed subflow a path."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topo import ClassRoutes, Fault, Hash, InputError, Routes, Via, traced

__all__ = ["Subflows", "subflows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Paths up to which they are listed: a few GB.
MOST = 3_000_000


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
    """Parts of flows on their way: at which node of the class graph, with which links behind (-1 padded)."""

    flow: Ints
    node: Ints
    share: Floats
    links: Ints

    def of(self, rows: Ints) -> _Walk:
        return _Walk(self.flow[rows], self.node[rows], self.share[rows], self.links[rows])


def subflows(routes: Routes, source: Ints, target: Ints) -> Subflows:
    """Return the paths of some flows under a routing rule.

    Parameters
    ----------
    routes : Routes
        From `topo.route`.
    source, target : (flows,) int
        Rank numbers of their ends; a path joins each two.

    Raises
    ------
    InputError
        More paths than can be listed.
    """
    of_flow = routes.pair_class[source, target]
    parts = [_none()]
    for number, routed in enumerate(routes.classes):
        flow = np.flatnonzero(of_flow == number)
        if len(flow):
            walk = _class_walk(routes, routed, source[flow], target[flow])
            parts.append(replace(walk, flow=flow[walk.flow]))
    walk = _joined(parts)
    order = np.argsort(walk.flow, kind="stable")
    links = walk.links[order]
    indptr = np.concatenate([[0], (links >= 0).sum(axis=1).cumsum()])
    return Subflows(walk.flow[order], walk.share[order], indptr, links[links >= 0])


def _class_walk(routes: Routes, routed: ClassRoutes, source: Ints, target: Ints) -> _Walk:
    """Return the paths of flows of one class, all at their targets."""
    graph = routed.graph
    if routes.hashing is not None:
        return _hashed(routed, routes.hashing, source, target)
    flows = np.arange(len(source))
    start = _Walk(flows, graph.source_group[source], np.ones(len(flows)), np.zeros((len(flows), 0), dtype=np.intp))
    if routed.via is None:
        return _walked(routed, start, source, target, graph.target_group[target])
    return _over_stops(routed, routed.via, start, source, target)


def _hashed(routed: ClassRoutes, hashing: Hash, source: Ints, target: Ints) -> _Walk:
    pairs = hashing.queue_pairs
    flow = np.repeat(np.arange(len(source)), pairs)
    _require_few(len(flow), len(source))
    links = traced(routed, source[flow], target[flow], np.tile(np.arange(pairs), len(source)), hashing.seed)
    return _Walk(flow, flow, np.full(len(flow), 1 / pairs), links.astype(np.intp))


def _over_stops(routed: ClassRoutes, via: Via, start: _Walk, source: Ints, target: Ints) -> _Walk:
    """Walk to every stop that joins a pair and on from there; pairs that none joins go straight."""
    weight = via.weight[start.node] * via.goes_on(routed).T[target]
    drawn = weight.sum(axis=1)
    row, stop = np.nonzero(weight)
    _require_few(len(row), len(source))
    to = start.of(row)
    to = _Walk(np.arange(len(row)), to.node, weight[row, stop] / drawn[row], to.links)
    there = _walked(via.leg, to, source[row], target[row], stop)
    on = _Walk(row[there.flow], via.start[stop[there.flow]], there.share, there.links)
    straight = start.of(np.flatnonzero(drawn == 0))
    both = [_walked(routed, walk, source, target, target) for walk in (on, straight) if len(walk.flow)]
    return _joined(both)


def _walked(routed: ClassRoutes, walk: _Walk, source: Ints, target: Ints, goal: Ints) -> _Walk:
    """Follow every share from where flows are to their goals, numbered as the rows of `hops` are."""
    graph = routed.graph
    at_goal, edge = np.nonzero(routed.share > 0)  # by goal, then by tail: edges are sorted by it
    fan = np.bincount(at_goal * graph.n_nodes + graph.tail[edge], minlength=len(routed.hops) * graph.n_nodes)
    first = np.cumsum(fan) - fan
    done = []
    while True:
        arrived = routed.hops[goal[walk.flow], walk.node] == 0
        done.append(walk.of(np.flatnonzero(arrived)))
        walk = walk.of(np.flatnonzero(~arrived))
        if not len(walk.flow):
            return _joined(done)
        cell = goal[walk.flow] * graph.n_nodes + walk.node
        _require_few(int(fan[cell].sum()) + sum(len(part.flow) for part in done), len(source))
        row = np.repeat(np.arange(len(cell)), fan[cell])
        count = np.arange(len(row)) - np.repeat(np.cumsum(fan[cell]) - fan[cell], fan[cell])
        taken = edge[first[cell][row] + count]
        flow = walk.flow[row]
        link = _links(routed, taken, source[flow], target[flow])
        share = walk.share[row] * routed.share[goal[flow], taken]
        walk = _Walk(flow, graph.head[taken], share, np.column_stack([walk.links[row], link]))


def _links(routed: ClassRoutes, edge: Ints, source: Ints, target: Ints) -> Ints:
    """Return the directed link of every edge: of a group's, the one of the rank itself."""
    graph = routed.graph
    link = graph.link[edge].copy()
    for own_edge, own_link, ranks in (
        (graph.source_edge, graph.source_link, source),
        (graph.target_edge, graph.target_link, target),
    ):
        for k in range(own_edge.shape[1]):
            mine = (link < 0) & (own_edge[ranks, k] == edge)
            link[mine] = own_link[ranks[mine], k]
    return link


def _none() -> _Walk:
    none = np.zeros(0, dtype=np.intp)
    return _Walk(none, none, np.zeros(0), np.zeros((0, 0), dtype=np.intp))


def _joined(walks: list[_Walk]) -> _Walk:
    width = max(walk.links.shape[1] for walk in walks)
    links = [np.pad(w.links, ((0, 0), (0, width - w.links.shape[1])), constant_values=-1) for w in walks]
    flow, node, share = (np.concatenate([getattr(w, name) for w in walks]) for name in ("flow", "node", "share"))
    return _Walk(flow, node, share, np.concatenate(links))


def _require_few(paths: int, flows: int) -> None:
    if paths > MOST:
        rule = f"splits {flows:,} flows over {paths:,} paths and more; {MOST:,} can be simulated"
        cure = "Take fewer ranks, a routing that splits less (single, hash), or `cost`, which lists no paths."
        raise InputError(Fault("routing", f"{paths:,} paths", rule, cure))
