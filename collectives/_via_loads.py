"""What do links carry when every flow goes over a stop drawn at random? Two demands, one after the other.

With T[s, d] bytes of a pair, W[s, x] how often source s takes stop x and J[x, d] whether a
way goes on from there, a stop gets of the pair W J / (sum over stops of W J) of its bytes.
To the stops go T' = T / (W J) summed over targets, from there T' summed over sources. Each
way over a stop is a subflow of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collectives._flows import PathTerm, spread
from collectives._traffic import ClassTraffic
from topo import ClassRoutes, Via, path_labels

__all__ = ["ViaFlows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class ViaFlows:
    """One class's traffic in one phase, over the stops of an unfolded graph."""

    def __init__(self, routed: ClassRoutes, via: Via, ranks: Ints, traffic: ClassTraffic) -> None:
        self.routed, self.via = routed, via
        sent = np.zeros((routed.graph.n_sources, routed.graph.n_targets))
        sent[:, ranks] = traffic.to_ranks(np.arange(len(ranks)))
        drawn, self.on = via.drawn(routed), via.goes_on(routed)
        self.straight = np.where(drawn > 0, 0.0, sent)
        #: Bytes of a pair, per weight of a stop.
        self.sent = np.divide(sent, drawn, out=np.zeros_like(sent), where=drawn > 0)

    def add(self, loads: Floats, least: Floats) -> None:
        """Add the loads and lower the least latencies of all links."""
        routed, via, n = self.routed, self.via, self.routed.graph.n_sources
        after = _least(self.sent > 0, routed.latency_to_target[:, via.start].T)
        before = _least(self.sent.T > 0, np.where(via.weight.T > 0, via.leg.latency_to_target[:, :n], np.inf))
        to_stop = via.weight * (self.sent @ self.on.T.astype(np.float64))
        from_stop = self.on * (via.weight.T @ self.sent)
        sources = np.arange(n)
        self._add(via.leg, sources, to_stop.T, after.T, loads, least)
        self._add(routed, via.start, from_stop.T, before, loads, least)
        self._add(routed, sources, self.straight.T, np.zeros_like(self.straight.T), loads, least)

    def _add(self, routed: ClassRoutes, begin: Ints, sent: Floats, extra: Floats, loads: Floats, least: Floats) -> None:
        """Add flows that begin at some nodes, (targets, nodes), with a latency besides."""
        rows = np.flatnonzero(sent.any(axis=1))
        walk = spread(routed, rows, begin, sent[rows], extra[rows])
        np.add.at(loads, routed.graph.link, walk.flow)
        np.minimum.at(least, routed.graph.link, walk.least)

    def slowest_path(self) -> PathTerm:
        """Return the worst subflow, all by itself."""
        return max(self._paths(), key=lambda term: term.seconds, default=PathTerm())

    def _paths(self) -> Iterator[PathTerm]:
        """Yield the slowest way over every stop, and the slowest straight one."""
        routed, via = self.routed, self.via
        straight, to, on = routed.paths, via.leg.paths, path_labels(routed, np.unique(via.start))
        seconds = self.straight[straight.source, straight.target] * straight.share / straight.narrowest
        if seconds.any():
            one = int(np.argmax(np.where(seconds > 0, straight.latency + seconds, -1.0)))
            ends = int(straight.source[one]), int(straight.target[one])
            yield PathTerm(float(straight.latency[one]), float(seconds[one]), *ends)
        for stop, start in enumerate(via.start.tolist()):
            a, b = np.flatnonzero(to.target == stop), np.flatnonzero(on.source == start)
            if not len(a) or not len(b):
                continue
            part = to.share[a] * via.weight[to.source[a], stop]
            n_bytes = self.sent[np.ix_(to.source[a], on.target[b])] * part[:, None] * on.share[b]
            latency = to.latency[a][:, None] + on.latency[b]
            transfer = n_bytes / np.minimum(to.narrowest[a][:, None], on.narrowest[b])
            i, j = np.unravel_index(np.argmax(np.where(n_bytes > 0, latency + transfer, -1.0)), n_bytes.shape)
            if n_bytes[i, j] > 0:
                yield PathTerm(float(latency[i, j]), float(transfer[i, j]), int(to.source[a[i]]), int(on.target[b[j]]))


def _least(sends: NDArray[np.bool_], late: Floats) -> Floats:
    """Return per end and stop the least latency among the others that the end has to do with, (ends, stops).

    Parameters
    ----------
    sends : (ends, others) bool
        Whether anything goes between an end and another.
    late : (stops, others) float
        Latency between a stop and the others; infinite where there is no way.
    """
    rows = (np.where(sends, row, np.inf).min(axis=1, initial=np.inf) for row in late)
    return np.stack(list(rows), axis=1)
