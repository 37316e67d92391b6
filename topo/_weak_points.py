"""What breaks the fabric alone? Nodes and links whose loss leaves the ranks in several parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topo._check import NODE_KINDS
from topo._fabric import Fabric

__all__ = ["weak_points"]

_SWITCH = NODE_KINDS.index("switch")


def weak_points(fabric: Fabric) -> tuple[list[int], list[tuple[int, int]]]:
    """Return single points of failure as `topo.check` would see them: by what is joined at all.

    A node counts if the ranks other than itself fall into several parts, a link if ranks
    stand on both sides of it. A folded switch of several planes and a bundle of several
    lanes are no single points.

    Returns
    -------
    list of int
        Nodes.
    list of (int, int)
        Links, as pairs of nodes.

    References
    ----------
    Hopcroft and Tarjan, Algorithm 447, 1973: low points of one depth-first walk.
    """
    walk = _Walk(fabric)
    single = np.ones(len(fabric.labels), dtype=bool)
    single[(fabric.node_kind == _SWITCH) & (fabric.planes > 1)] = False
    return (
        [node for node in sorted(walk.cutting) if single[node]],
        sorted(pair for pair in walk.bridges if walk.lanes[pair] == 1),
    )


class _Walk:
    """One depth-first walk from every part: low points, and ranks below every node."""

    def __init__(self, fabric: Fabric) -> None:
        n = len(fabric.labels)
        self.is_rank = np.zeros(n, dtype=bool)
        self.is_rank[fabric.ranks] = True
        self.near: list[list[int]] = [[] for _ in range(n)]
        self.lanes: dict[tuple[int, int], int] = {}
        ends = zip(fabric.source.tolist(), fabric.target.tolist(), fabric.lanes.tolist(), strict=True)
        for a, b, lanes in ends:
            pair = (min(a, b), max(a, b))
            if pair not in self.lanes:
                self.near[a].append(b)
                self.near[b].append(a)
            self.lanes[pair] = max(lanes, self.lanes.get(pair, 0))
        self.found = np.full(n, -1, dtype=np.intp)
        self.cutting: set[int] = set()
        self.bridges: list[tuple[int, int]] = []
        for root in range(n):
            if self.found[root] < 0:
                self._judge(*self._from(root))

    def _from(self, root: int) -> tuple[list[int], dict[int, int], dict[int, int]]:
        """Walk one part; return its nodes in order, their parents and low points."""
        order, parent, low = [root], {root: -1}, {root: 0}
        found = self.found
        found[root] = 0
        stack = [(root, iter(self.near[root]))]
        while stack:
            node, onward = stack[-1]
            for other in onward:
                if found[other] < 0:
                    found[other] = low[other] = len(order)
                    parent[other] = node
                    order.append(other)
                    stack.append((other, iter(self.near[other])))
                    break
                if other != parent[node]:
                    low[node] = min(low[node], int(found[other]))
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
        return order, parent, low

    def _judge(self, order: list[int], parent: dict[int, int], low: dict[int, int]) -> None:
        below = {node: int(self.is_rank[node]) for node in order}
        for node in reversed(order[1:]):
            below[parent[node]] += below[node]
        total = below[order[0]]
        parts: dict[int, NDArray[np.intp] | list[int]] = {}
        for node in order[1:]:
            above = parent[node]
            if low[node] > self.found[above] and 0 < below[node] < total:
                self.bridges.append((min(node, above), max(node, above)))
            if low[node] >= self.found[above]:
                parts.setdefault(above, []).append(below[node])  # type: ignore[union-attr]
        for node, cut_off in parts.items():
            rest = total - int(self.is_rank[node]) - sum(cut_off)
            if sum(count > 0 for count in [*cut_off, rest]) > 1:
                self.cutting.add(node)
