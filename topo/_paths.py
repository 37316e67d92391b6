"""How late and how narrow is a path? Latency and narrowest link of routes, per group of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from topo._class_routes import ClassRoutes

__all__ = ["PathLabels", "latency_to_target", "path_labels"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Targets x edges looked at at once: labels of about 200 MB.
_CELLS = 4_000_000


def latency_to_target(routed: ClassRoutes) -> Floats:
    """Least latency [s] from every node to every target over the routes, (targets, nodes)."""
    graph = routed.graph
    best = np.where(routed.hops == 0, 0.0, np.inf)
    for level, edges in enumerate(routed.levels, start=1):
        onward = (routed.hops[:, graph.tail[edges]] == level) & (routed.share[:, edges] > 0)
        late = np.where(onward, graph.latency[edges] + best[:, graph.head[edges]], np.inf)
        tails, first = np.unique(graph.tail[edges], return_index=True)
        best[:, tails] = np.minimum(best[:, tails], np.minimum.reduceat(late, first, axis=1))
    return best


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
    step = max(1, _CELLS // max(1, len(graph.tail)))
    wanted = np.zeros(graph.n_nodes, dtype=bool)
    wanted[sources] = True
    runs = (np.arange(len(routed.hops))[first : first + step] for first in range(0, len(routed.hops), step))
    found = np.concatenate([np.zeros((0, 5)), *(_labels_to(routed, targets, wanted) for targets in runs)])
    return PathLabels(found[:, 1].astype(np.intp), found[:, 0].astype(np.intp), found[:, 2], found[:, 3], found[:, 4])


def _labels_to(routed: ClassRoutes, targets: Ints, wanted: NDArray[np.bool_]) -> Floats:
    """Labels (target, node, latency, share, narrowest) of some targets at the nodes wanted."""
    graph, hops = routed.graph, routed.hops[targets]
    target, node = np.nonzero(hops == 0)
    label = np.zeros((len(target), 5))
    label[:, 0], label[:, 1] = targets[target], node
    label[:, 3], label[:, 4] = 1.0, np.inf
    done = [label[wanted[node]]]
    for level, edges in enumerate(routed.levels, start=1):
        t, e = np.nonzero((hops[:, graph.tail[edges]] == level) & (routed.share[np.ix_(targets, edges)] > 0))
        label = _extended(label, targets[t], edges[e], routed)
        done.append(label[wanted[label[:, 1].astype(np.intp)]])
    return np.concatenate(done)


def _extended(label: Floats, target: Ints, edge: Ints, routed: ClassRoutes) -> Floats:
    """Join labels (target, node, latency, share, narrowest) with the edges that enter their nodes."""
    graph = routed.graph
    key = (label[:, 0] * graph.n_nodes + label[:, 1]).astype(np.intp)
    order = np.argsort(key, kind="stable")
    wanted = target * graph.n_nodes + graph.head[edge]
    first = np.searchsorted(key[order], wanted, side="left")
    count = np.searchsorted(key[order], wanted, side="right") - first
    e = np.repeat(np.arange(len(edge)), count)
    old = label[order[np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())]]
    at = edge[e]
    new = np.column_stack([
        target[e], graph.tail[at], old[:, 2] + graph.latency[at],
        old[:, 3] * routed.share[target[e], at] / graph.fan[at], np.minimum(old[:, 4], graph.bandwidth[at]),
    ])  # fmt: skip
    rank = np.lexsort((-new[:, 3], new[:, 4], new[:, 2], new[:, 1], new[:, 0]))
    new = new[rank]
    fresh = np.ones(len(new), dtype=bool)
    fresh[1:] = (new[1:, [0, 1, 2, 4]] != new[:-1, [0, 1, 2, 4]]).any(axis=1)
    return new[fresh]
