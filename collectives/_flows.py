"""How does flow spread from node to node? One step of shares a level, for some targets at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topo import ClassRoutes

__all__ = ["CELLS", "PathTerm", "propagate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Flow cells (targets x edges) worked on at once: about 100 MB.
CELLS = 4_000_000


@dataclass(frozen=True)
class PathTerm:
    """The flow whose own path takes longest: latency [s], bytes over narrowest link [s], its ends."""

    latency: float = 0.0
    transfer: float = 0.0
    source: int = -1
    target: int = -1

    @property
    def seconds(self) -> float:
        """Latency and transfer [s]."""
        return self.latency + self.transfer


def propagate(routed: ClassRoutes, group: Ints, sent: Floats, extra: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the flow over each edge toward some targets, and the least latency of a path through it.

    Parameters
    ----------
    routed : ClassRoutes
        The routes.
    group : (n,) int
        Targets.
    sent : (n, nodes) float
        Bytes that begin at each node for each of them.
    extra : (n, nodes) float, optional
        Latency [s] that what begins there has besides; zero by default.
    """
    graph = routed.graph
    flow = np.zeros((len(group), len(graph.tail)))
    through = np.full(flow.shape, np.inf)
    at_node = sent.copy()
    so_far = np.where(at_node > 0, 0.0 if extra is None else extra, np.inf)
    beyond, hops = routed.latency_to_target[group], routed.hops[group]
    for level in range(len(routed.levels), 0, -1):
        edges = routed.levels[level - 1]
        tail, head = graph.tail[edges], graph.head[edges]
        share = np.where(hops[:, tail] == level, routed.share[np.ix_(group, edges)], 0.0)
        moved = at_node[:, tail] * share
        late = np.where(moved > 0, so_far[:, tail] + graph.latency[edges], np.inf)
        flow[:, edges] += moved
        through[:, edges] = np.minimum(through[:, edges], late + beyond[:, head])
        order = np.argsort(head, kind="stable")
        heads, first = np.unique(head[order], return_index=True)
        at_node[:, heads] += np.add.reduceat(moved[:, order], first, axis=1)
        so_far[:, heads] = np.minimum(so_far[:, heads], np.minimum.reduceat(late[:, order], first, axis=1))
    return flow, through
