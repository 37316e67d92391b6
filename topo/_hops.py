"""How many links lie between a source and a target? Breadth first from all targets at once, a bit each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph

__all__ = ["FAR", "fewest_hops", "hop_histogram"]

Bools = NDArray[np.bool_]

#: Hops where there is no path.
FAR = np.iinfo(np.int16).max
_ROWS = 512
#: Targets looked for at once: their bits at every node stay in the processor's cache.
_TARGETS = 512


def fewest_hops(
    graph: ClassGraph, n_nodes: int | None = None, *, allowed: Bools | None = None, goals: Bools | None = None
) -> NDArray[np.int16]:
    """Return the fewest hops from the first nodes (all by default) to every target, (targets, nodes).

    Parameters
    ----------
    graph : ClassGraph
        The graph of a path class.
    n_nodes : int, optional
        Nodes asked about.
    allowed : (targets, edges) bool, optional
        Edges that may be taken; all by default.
    goals : (targets, nodes) bool, optional
        Where ways to a target end; a target group's own node by default.

    Returns
    -------
    (targets, nodes) int
        FAR where there is no path.
    """
    n = graph.n_nodes if n_nodes is None else n_nodes
    count = graph.n_targets if goals is None else len(goals)
    hops = np.full((n, count), FAR, dtype=np.int16)
    for first in range(0, count, _TARGETS):
        some = np.arange(first, min(first + _TARGETS, count))
        ways = (None if each is None else each[some] for each in (allowed, goals))
        for level, reached in enumerate(_levels(graph, some, *ways)):
            new = np.unpackbits(reached[:n].view(np.uint8), axis=1, count=len(some), bitorder="little")
            np.copyto(hops[:, first : first + _TARGETS], np.int16(level), where=new.view(bool))
    return np.ascontiguousarray(hops.T)


def hop_histogram(graphs: Sequence[ClassGraph]) -> tuple[dict[int, int], int]:
    """Return hops -> ordered pairs of ranks, each on the first class that joins it, and the pairs that none does."""
    far = [fewest_hops(graph, graph.n_sources).T for graph in graphs]
    n = len(graphs[0].source_group)
    count = np.zeros(FAR + 1, dtype=np.intp)
    for first in range(0, n, _ROWS):
        rows = np.arange(first, min(first + _ROWS, n))
        hops = np.full((len(rows), n), FAR, dtype=np.int16)
        for graph, of_class in zip(graphs, far, strict=True):
            hops = np.where(hops == FAR, of_class[graph.source_group[rows]][:, graph.target_group], hops)
        hops[np.arange(len(rows)), rows] = 0
        count += np.bincount(hops.ravel(), minlength=len(count))
    return {h: int(count[h]) for h in np.flatnonzero(count).tolist() if 0 < h < FAR}, int(count[FAR])


def _levels(
    graph: ClassGraph, some: NDArray[np.intp], allowed: Bools | None, goals: Bools | None
) -> Iterator[NDArray[np.uint64]]:
    """Which of some targets are 0, 1, ... hops away from every node and no fewer, a bit each, (nodes, words)."""
    if goals is None:
        own = np.arange(len(some))
        new = np.zeros((graph.n_nodes, -(-len(some) // 64)), dtype=np.uint64)
        new[graph.n_sources + some, own // 64] = np.uint64(1) << (own % 64).astype(np.uint64)
    else:
        new = _words(goals)
    open_to = None if allowed is None else _words(allowed)
    reached = new.copy()
    tails, first = np.unique(graph.tail, return_index=True)
    while new.any():
        yield new
        next_ = np.zeros_like(new)
        if len(tails):
            there = new[graph.head] if open_to is None else new[graph.head] & open_to
            next_[tails] = np.bitwise_or.reduceat(there, first, axis=0) & ~reached[tails]
        reached |= next_
        new = next_


def _words(rows: Bools) -> NDArray[np.uint64]:
    """Pack (targets, n) into (n, words), a bit each."""
    packed = np.packbits(rows.T, axis=1, bitorder="little")
    wide = np.zeros((len(packed), -(-len(rows) // 64) * 8), dtype=np.uint8)
    wide[:, : packed.shape[1]] = packed
    return wide.view(np.uint64)
