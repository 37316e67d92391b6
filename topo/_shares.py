"""Which next edges lead on, and what share does each take? The ways to split over fewest hops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph
from topo._fabric import Fabric
from topo._hops import FAR, fewest_hops

__all__ = ["Hops", "by_capacity", "by_paths", "evenly", "numbered", "onward", "split_by_capacity"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Hops = NDArray[np.int16]
Ints = NDArray[np.intp]


def onward(graph: ClassGraph, hops: Hops, allowed: Bools | None = None) -> Bools:
    """Return the edges on a way with fewest hops, (targets, edges)."""
    here = np.take(hops, graph.tail, axis=1)
    found: Bools = (here == np.take(hops, graph.head, axis=1) + 1) & (here < FAR)
    return found if allowed is None else found & allowed


def split_by_capacity(graph: ClassGraph, ways: Bools) -> Floats:
    """Split at each hop in proportion to the bandwidth of the next edges."""
    return _in_proportion(graph, np.where(ways, graph.bandwidth * graph.fan, 0.0))


def by_capacity(fabric: Fabric, graph: ClassGraph) -> tuple[Hops, Floats]:
    """Take the fewest hops, split by the capacity of the next edges."""
    hops = fewest_hops(graph)
    return hops, split_by_capacity(graph, onward(graph, hops))


def evenly(fabric: Fabric, graph: ClassGraph) -> tuple[Hops, Floats]:
    """Take the fewest hops, split equally over the next edges."""
    hops = fewest_hops(graph)
    return hops, _in_proportion(graph, np.where(onward(graph, hops), graph.fan, 0.0))


def by_paths(fabric: Fabric, graph: ClassGraph) -> tuple[Hops, Floats]:
    """Take the fewest hops, every path of them the same part of the flow."""
    hops = fewest_hops(graph)
    ways = onward(graph, hops)
    paths = np.where(hops == 0, 1.0, 0.0)
    tails, first = np.unique(graph.tail, return_index=True)
    for level in range(1, int(hops[hops < FAR].max(initial=0)) + 1):
        beyond = np.where(ways & (hops[:, graph.tail] == level), graph.fan * paths[:, graph.head], 0.0)
        paths[:, tails] += np.add.reduceat(beyond, first, axis=1)
    return hops, _in_proportion(graph, np.where(ways, graph.fan * paths[:, graph.head], 0.0))


def numbered(tail: Ints, ways: Bools) -> tuple[Ints, Ints]:
    """Count the next edges of every node: the number of each among them, and how many there are, per edge.

    Edges are sorted by tail. Only where `ways` holds does the number mean anything.
    """
    if not len(tail):
        none = np.zeros(ways.shape, dtype=np.intp)
        return none, none
    tails, first = np.unique(tail, return_index=True)
    up_to = np.cumsum(ways, axis=1)
    segment = np.searchsorted(tails, tail)
    before: Ints = (up_to - ways)[:, first]
    count = np.add.reduceat(ways.astype(np.intp), first, axis=1)
    return up_to - 1 - before[:, segment], count[:, segment]


def _in_proportion(graph: ClassGraph, weight: Floats) -> Floats:
    """Divide the weights of the next edges by their sum, in place."""
    tails, first = np.unique(graph.tail, return_index=True)
    if len(tails):
        total = np.add.reduceat(weight, first, axis=1)
        total[total == 0] = 1.0
        for row, whole in zip(weight, total, strict=True):  # row by row: a second array of this size is too much
            row /= np.repeat(whole, np.diff(first, append=len(row)))
    return weight
