"""How does flow spread from node to node? From the senders on, a hop nearer to the target at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topo import MUCH, ClassRoutes, Loop

__all__ = ["PathTerm", "Spread", "spread"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


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


@dataclass(frozen=True, eq=False)
class Spread:
    """What edges carry, and the least latency of a path through them; infinite where nothing goes.

    Attributes
    ----------
    flow, least : (edges,) float
        Toward all targets [bytes, s].
    own_flow, own_least : (n, most) float
        Toward each target, on the edges asked about.
    """

    flow: Floats
    least: Floats
    own_flow: Floats
    own_least: Floats


def spread(
    routed: ClassRoutes, group: Ints, begin: Ints, sent: Floats, extra: Floats | None = None, own: Ints | None = None
) -> Spread:
    """Move flows toward some targets.

    Parameters
    ----------
    routed : ClassRoutes
        The routes.
    group : (n,) int
        Targets.
    begin : (k,) int
        Nodes where flows begin, each once.
    sent : (n, k) float
        Bytes that begin there for each target.
    extra : (n, k) float, optional
        Latency [s] that what begins there has besides; zero by default.
    own : (n, most) int, optional
        Edges to look at for each target by itself, -1 padded.
    """
    graph = routed.graph
    own = np.zeros((len(group), 0), dtype=np.intp) if own is None else own
    extra = np.zeros(sent.shape) if extra is None else extra
    found = Spread(
        np.zeros(len(graph.tail)), np.full(len(graph.tail), np.inf), np.zeros(own.shape), np.full(own.shape, np.inf)
    )
    much = bool(np.count_nonzero(sent) * len(graph.tail) > MUCH * max(1, len(begin)))
    sent, extra = np.ascontiguousarray(sent), np.ascontiguousarray(extra)
    ways = (*routed.walk, routed.latency_to_target)
    _SPREAD.run(much)(*ways, group, begin, sent, extra, own, found.flow, found.least, found.own_flow, found.own_least)
    return found


def _spread(
    first: Ints, head: Ints, latency: Floats, hops: NDArray[np.int16], share: Floats, beyond: Floats,
    group: Ints, begin: Ints, sent: Floats, extra: Floats, own: Ints,
    flow: Floats, least: Floats, own_flow: Floats, own_least: Floats,
) -> None:  # fmt: skip
    """Walk level by level; nodes of a level that hold anything are chained, `top` first."""
    nodes, most = hops.shape[1], 0
    at, late, chain = np.zeros(nodes), np.full(nodes, np.inf), np.full(nodes, -1)
    top = np.full(nodes + 1, -1)
    moved, through = np.zeros(len(head)), np.full(len(head), np.inf)
    for i, target in enumerate(group):
        most = 0
        for k, node in enumerate(begin):
            if sent[i, k] > 0 and hops[target, node] < nodes:
                level = hops[target, node]
                at[node], late[node] = sent[i, k], extra[i, k]
                chain[node], top[level] = top[level], node
                most = max(most, level)
        for edge in own[i]:
            moved[edge], through[edge] = 0.0, np.inf
        for level in range(most, -1, -1):
            node, top[level] = top[level], -1
            while node >= 0:
                for edge in range(first[node], first[node + 1] if level else first[node]):
                    part = share[target, edge]
                    if part > 0:
                        after = head[edge]
                        if late[after] == np.inf:
                            chain[after], top[level - 1] = top[level - 1], after
                        moved[edge], arrives = at[node] * part, late[node] + latency[edge]
                        through[edge] = arrives + beyond[target, after]
                        flow[edge] += moved[edge]
                        least[edge] = min(least[edge], through[edge])
                        at[after] += moved[edge]
                        late[after] = min(late[after], arrives)
                at[node], late[node] = 0.0, np.inf
                node = chain[node]
        for k, edge in enumerate(own[i]):
            if edge >= 0:
                own_flow[i, k], own_least[i, k] = moved[edge], through[edge]


_SPREAD = Loop(_spread)
