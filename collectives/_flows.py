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
    beyond = routed.latency_to_target[group]
    for step in reversed(routed.steps):
        row, edge, share = step.of(group)
        if not len(row):
            continue
        tail, head = graph.tail[edge], graph.head[edge]
        moved = at_node[row, tail] * share
        late = np.where(moved > 0, so_far[row, tail] + graph.latency[edge], np.inf)
        flow[row, edge] = moved
        through[row, edge] = late + beyond[row, head]
        first = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]) | (head[1:] != head[:-1])])
        row, head = row[first], head[first]
        at_node[row, head] += np.add.reduceat(moved, first)
        so_far[row, head] = np.minimum(so_far[row, head], np.minimum.reduceat(late, first))
    return flow, through
