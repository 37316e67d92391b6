"""Which one cable does D-mod-k take? Single-path routing of trees, by the number of the destination.

Hosts stand at level -1, leaves at 0, and so on: a node's level is one less than the fewest
hops between it and an end point. Of a hop between two levels the lower one is l; it takes
next cable number floor(d / product of the up-ports of levels below l) mod (number of next
cables), d the destination's number among the ranks. Up, that is D-mod-k; down, it is the
lane of a bundle that the same destination would take on the way up.

Next cables are in label order, node2 before node10, lanes of a bundle in theirs. The
up-ports of a level are the most that any of its nodes has, so that a node's choice depends
on nothing but the destination, as its forwarding table does. End points with several cables
are a level like any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph
from topo._fabric import Fabric
from topo._hops import FAR, fewest_hops
from topo._shares import Bools, Floats, Hops, numbered, onward

__all__ = ["destination_mod_k"]

Ints = NDArray[np.intp]


def destination_mod_k(fabric: Fabric, graph: ClassGraph) -> tuple[Hops, Floats]:
    """Take one cable at each of the fewest hops, by the number of the destination."""
    hops = fewest_hops(graph)
    ways = onward(graph, hops)
    number, count = numbered(graph.tail, ways)
    quotient = np.arange(graph.n_targets)[:, None] // _lower_ports(graph, hops, ways)
    return hops, (ways & (number == quotient % np.maximum(count, 1))).astype(np.float64)


def _lower_ports(graph: ClassGraph, hops: Hops, ways: Bools) -> Ints:
    """Return for every target and edge the product of the up-ports of the levels below the hop from its tail."""
    level = _levels(graph, hops)
    tail, head = level[graph.tail], level[graph.head]
    ups = np.zeros(graph.n_nodes, dtype=np.intp)
    np.add.at(ups, graph.tail[head > tail], 1)
    most = np.ones(int(level.max(initial=0)) + 2, dtype=np.intp)  # of level -1 first
    np.maximum.at(most, level + 1, ups)
    below = [1]
    for ports in most.tolist():
        below.append(min(below[-1] * ports, graph.n_targets))  # beyond the last destination all quotients are 0
    if not len(tail):
        return np.ones(ways.shape, dtype=np.intp)
    tails, first = np.unique(graph.tail, return_index=True)
    lower = np.where(ways, np.minimum(tail, head), len(below) - 2)
    lowest: Ints = np.minimum.reduceat(lower, first, axis=1)[:, np.searchsorted(tails, graph.tail)]
    found: Ints = np.array(below, dtype=np.intp)[lowest + 1]
    return found


def _levels(graph: ClassGraph, hops: Hops) -> Ints:
    """Return how far above the end points every node stands, -1 for these."""
    down = hops.min(axis=0, initial=FAR).astype(np.intp)
    up = np.full(graph.n_nodes, FAR, dtype=np.intp)
    up[: graph.n_sources] = 0
    for step in range(graph.n_nodes):
        reached = np.unique(graph.head[(up[graph.tail] == step)])
        reached = reached[up[reached] == FAR]
        if not len(reached):
            break
        up[reached] = step + 1
    level: Ints = np.minimum(down, up)
    level[: graph.n_sources + graph.n_targets] = 0
    return level - 1
