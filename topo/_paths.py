"""How late and how narrow is a path? Latency and narrowest link of routes, per group of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from topo._compiled import MUCH, Loop
from topo._hops import FAR

if TYPE_CHECKING:
    from topo._class_routes import ClassRoutes

__all__ = ["PathLabels", "latency_to_target", "path_labels"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Labels = tuple[Ints, Ints, Floats]
Cell = TypeVar("Cell", bound=np.generic)


def latency_to_target(routed: ClassRoutes) -> Floats:
    """Least latency [s] from every node to every target over the routes, (targets, nodes)."""
    return _LATENCIES.run(routed.share.size > MUCH)(*routed.walk)


@dataclass(frozen=True, eq=False)
class PathLabels:
    """The paths that can be slowest from a node to a target: latency [s], share of the flow, narrowest [bytes/s]."""

    source: Ints
    target: Ints
    latency: Floats
    share: Floats
    narrowest: Floats


def path_labels(routed: ClassRoutes, sources: Ints) -> PathLabels:
    """Return for every target and each of some nodes as sources the paths worth looking at.

    Of paths with equal latency and narrowest link only the one with the largest share
    can be slowest, so one label each is kept while walking back from the targets.
    """
    graph = routed.graph
    wanted = np.zeros(graph.n_nodes, dtype=np.bool_)
    wanted[sources] = True
    run = _LABELS.run(routed.share.size > MUCH)
    node, target, label = run(*routed.walk, np.ascontiguousarray(graph.bandwidth), graph.fan, wanted)
    return PathLabels(node, target, label[:, 0], label[:, 1], label[:, 2])


def _latencies(first: Ints, head: Ints, latency: Floats, hops: NDArray[np.int16], share: Floats) -> Floats:
    """Go from every target outwards, node by node."""
    best = np.full(hops.shape, np.inf)
    for target in range(len(hops)):
        for node in _by_hops(hops[target]):
            if hops[target, node] == 0:
                best[target, node] = 0.0
            for edge in range(first[node], first[node + 1]):
                if share[target, edge] > 0:
                    best[target, node] = min(best[target, node], latency[edge] + best[target, head[edge]])
    return best


def _labels(
    first: Ints, head: Ints, latency: Floats, hops: NDArray[np.int16], share: Floats,
    bandwidth: Floats, fan: Floats, wanted: NDArray[np.bool_],
) -> Labels:  # fmt: skip
    """Labels (latency, share, narrowest) of the nodes wanted: their nodes, targets and values."""
    n, known, begin = 0, np.empty((64, 3)), np.zeros(len(wanted) + 1, dtype=np.intp)
    end, found, ends, kept = begin.copy(), 0, np.empty((64, 2), dtype=np.intp), np.empty((64, 3))
    for target in range(len(hops)):
        n = 0
        for node in _by_hops(hops[target]):
            begin[node] = n
            if hops[target, node] == 0:
                known[n, 0], known[n, 1], known[n, 2] = 0.0, 1.0, np.inf
                n += 1
            for edge in range(first[node], first[node + 1]):
                if not share[target, edge] > 0:
                    continue
                for old in range(begin[head[edge]], end[head[edge]]):
                    if n == len(known):
                        known = _longer(known)
                    known[n, 0] = known[old, 0] + latency[edge]
                    known[n, 1] = known[old, 1] * share[target, edge] / fan[edge]
                    known[n, 2] = min(known[old, 2], bandwidth[edge])
                    same = begin[node]
                    while known[same, 0] != known[n, 0] or known[same, 2] != known[n, 2]:
                        same += 1
                    known[same, 1] = max(known[same, 1], known[n, 1])
                    n += same == n
            end[node] = n
            for one in range(begin[node], n if wanted[node] else begin[node]):
                if found == len(kept):
                    ends, kept = _longer(ends), _longer(kept)
                ends[found, 0], ends[found, 1], kept[found] = node, target, known[one]
                found += 1
            if n == len(known):
                known = _longer(known)
    return ends[:found, 0].copy(), ends[:found, 1].copy(), kept[:found].copy()


def _longer(rows: NDArray[Cell]) -> NDArray[Cell]:
    """Return a copy with room for as many rows again."""
    found = np.empty((2 * len(rows), rows.shape[1]), dtype=rows.dtype)
    found[: len(rows)] = rows
    return found


def _by_hops(hops: NDArray[np.int16]) -> Ints:
    """Return the nodes that have a way to a target, nearest first, those as far by number."""
    most = 0
    for far in hops:
        most = max(most, far if far < FAR else 0)
    start = np.zeros(most + 2, dtype=np.intp)
    for far in hops:
        if far < FAR:
            start[far + 1] += 1
    start = np.cumsum(start)
    order = np.empty(start[-1], dtype=np.intp)
    for node in range(len(hops)):
        if hops[node] < FAR:
            order[start[hops[node]]] = node
            start[hops[node]] += 1
    return order


_LATENCIES, _LABELS = Loop(_latencies, _by_hops), Loop(_labels, _by_hops, _longer)
