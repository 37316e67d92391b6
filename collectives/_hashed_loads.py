"""What do links carry when a hash picks every flow's path? Each queue pair traced hop by hop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives._flows import PathTerm
from collectives._traffic import ClassTraffic
from topo import ClassRoutes, Hash, traced

__all__ = ["HashedFlows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class HashedFlows:
    """One class's traffic in one phase; on one path the queue pairs of a pair of ranks are one flow."""

    def __init__(self, routed: ClassRoutes, hashing: Hash, ranks: Ints, traffic: ClassTraffic) -> None:
        graph = routed.graph
        n_bytes = traffic.to_ranks(np.arange(len(ranks)))[ranks]
        row, column = np.nonzero(n_bytes)
        pairs = hashing.queue_pairs
        self.source, self.target = np.repeat(ranks[row], pairs), np.repeat(ranks[column], pairs)
        queue_pair = np.tile(np.arange(pairs), len(row))
        self.links = traced(routed, self.source, self.target, queue_pair, hashing.seed)
        self.n_bytes = np.repeat(n_bytes[row, column] / pairs, pairs)
        paths = self.links.reshape(-1, pairs, self.links.shape[1])
        together = np.ones(paths.shape[:2])
        for shift in range(1, pairs):
            together += (paths == np.roll(paths, shift, axis=1)).all(axis=2)
        last = int(graph.link.max(initial=-1)) + 1
        late, narrow = np.zeros(last + 1), np.full(last + 1, np.inf)
        late[graph.link], narrow[graph.link] = graph.latency, graph.bandwidth  # the last stands for no link
        self.latency = late[self.links].sum(axis=1)
        self.transfer = self.n_bytes * together.reshape(-1) / narrow[self.links].min(axis=1, initial=np.inf)

    def add(self, loads: Floats, least: Floats) -> None:
        """Add the loads and lower the least latencies of all links."""
        for hop in self.links.T:
            on = hop >= 0
            loads += np.bincount(hop[on], self.n_bytes[on], len(loads))
            np.minimum.at(least, hop[on], self.latency[on])

    def slowest_path(self) -> PathTerm:
        """Return the worst flow, all by itself."""
        i = int(np.argmax(self.latency + self.transfer))
        return PathTerm(float(self.latency[i]), float(self.transfer[i]), int(self.source[i]), int(self.target[i]))
