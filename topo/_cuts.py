"""Where is a fabric narrowest between two halves of its ranks? A cut found: an upper bound on the bisection.

Halves are tried in several orders of the ranks (by number, by own bandwidth, by the
switches they hang on, by the slowest waves of the graph, by which of two neighbours is
nearer), each with the switches put where the cut is smallest, the best improved by swaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow, shortest_path

from topo._fabric import Fabric

__all__ = ["Part", "hung_ranks", "part_of", "row_keys", "smallest_cut"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
_SWAPPED = 512  # ranks up to which halves are improved by swaps
_WAVES = 800  # groups of nodes up to which the slowest waves are worked out
_WHOLE = 2.0**30  # capacities are scaled to whole numbers for the flow algorithm, this the largest


@dataclass(frozen=True, eq=False)
class Part:
    """Ranks 0 .. n-1 and other nodes after them, joined by directed links of one class.

    Attributes
    ----------
    n : int
        Ranks.
    size : int
        Nodes.
    tail, head : (links,) int
    bandwidth : (links,) float
        Bytes/s.
    """

    n: int
    size: int
    tail: Ints
    head: Ints
    bandwidth: Floats

    @cached_property
    def both(self) -> csr_array:
        """Bandwidth of both directions between any two nodes, (nodes, nodes) [bytes/s]."""
        one = csr_array((self.bandwidth, (self.tail, self.head)), shape=(self.size, self.size))
        summed = csr_array(one + one.T)
        summed.sort_indices()
        return summed

    @cached_property
    def symmetric(self) -> bool:
        """Whether every link is as wide as the one back."""
        one = csr_array((self.bandwidth, (self.tail, self.head)), shape=(self.size, self.size))
        return abs(one - one.T).nnz == 0

    @cached_property
    def twins(self) -> Ints:
        """Number of every node's group: ranks joined alike, and to no rank, share one, (nodes,) int."""
        numbers: dict[object, int] = {}
        ends, near = self.both.indptr, self.both.indices
        keys: list[object] = [
            row if node < self.n and ends[node] < ends[node + 1] and near[ends[node]] >= self.n else node
            for node, row in enumerate(row_keys(self.both))
        ]
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)

    @cached_property
    def key(self) -> tuple[int, int, bytes, bytes, bytes]:
        """What two parts have in common that are the same, number for number."""
        return self.n, self.size, self.tail.tobytes(), self.head.tobytes(), self.bandwidth.tobytes()


def row_keys(rows: csr_array) -> list[tuple[bytes, bytes]]:
    """Return for every row of a matrix with sorted columns what equal rows have in common."""
    ends = rows.indptr
    return [
        (rows.indices[a:b].tobytes(), rows.data[a:b].tobytes())
        for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]


def hung_ranks(part: Part) -> tuple[Ints, float]:
    """Return the ranks that hang on every node and their link's bandwidth [bytes/s].

    That is where every rank has one link, to a switch, all as wide; else ranks stand on
    themselves and the bandwidth is 0.
    """
    rows = part.both[: part.n]
    alone = bool((np.diff(rows.indptr) == 1).all() and (rows.indices >= part.n).all())
    if alone and (rows.data == rows.data[0]).all():
        return np.bincount(rows.indices, minlength=part.size), float(rows.data[0]) / 2
    return (np.arange(part.size) < part.n).astype(np.intp), 0.0


def part_of(fabric: Fabric, links: Ints, ranks: Ints) -> Part:
    """Return the part of a fabric that these ranks and directed links make.

    Other nodes are ordered by how far the ranks are, so that the order of the graph's
    nodes says nothing.
    """
    rank_nodes = fabric.ranks[ranks]
    number = np.full(len(fabric.labels), -1, dtype=np.intp)
    number[rank_nodes] = np.arange(len(ranks))
    ends = np.unique(np.concatenate([fabric.source[links], fabric.target[links]]))
    others = ends[number[ends] < 0]
    number[others] = len(ranks) + np.arange(len(others))
    first = Part(len(ranks), len(ranks) + len(others), number[fabric.source[links]], number[fabric.target[links]],
                 fabric.bandwidth[links])  # fmt: skip
    if 1 < len(others) <= _WAVES:
        away = shortest_path(first.both, unweighted=True, indices=np.arange(min(first.n, _WAVES)))[:, first.n :]
        number[others[np.lexsort(away[::-1])]] = len(ranks) + np.arange(len(others))
    tail, head = number[fabric.source[links]], number[fabric.target[links]]
    order = np.lexsort((head, tail))
    return Part(first.n, first.size, tail[order], head[order], first.bandwidth[order])


def smallest_cut(part: Part, enough: float = 0.0) -> float:
    """Return the smallest cut found between two halves of the ranks, either way [bytes/s]; no search below `enough`."""
    half, best = part.n // 2, list[tuple[float, int, Bools]]()
    seen: set[bytes] = set()
    for order in _orders(part):
        near = np.zeros(part.n, dtype=bool)
        near[order[:half]] = True
        if near.tobytes() not in seen:
            seen |= {near.tobytes(), *([(~near).tobytes()] if 2 * half == part.n else [])}
            best.append((_cut(part, near)[0], len(best), near))
            if best[-1][0] <= enough * (1 + 1e-9):
                return best[-1][0]
    best.sort(key=lambda row: row[:2])
    found = best[0][0]
    if part.n <= _SWAPPED:
        for cut, _, near in best[:3]:
            found = min(found, _improved(part, cut, near))
    return found


def _cut(part: Part, near: Bools) -> tuple[float, Bools]:
    """Return the smallest cut between the near ranks and the others, either way, and its near side."""
    forth = _near_side(part, near)
    cut = float(part.bandwidth[forth[part.tail] & ~forth[part.head]].sum())
    if part.symmetric:
        return cut, forth
    back = ~_near_side(part, ~near)
    other = float(part.bandwidth[~back[part.tail] & back[part.head]].sum())
    return (other, back) if other < cut else (cut, forth)


def _near_side(part: Part, near: Bools) -> Bools:
    """Return the nodes on the sending side of a smallest cut from the near ranks to the others."""
    side = np.concatenate([near, np.zeros(part.size - part.n, dtype=bool)])
    if part.size == part.n:
        return side
    # Node 0 is all near ranks, 1 all others, then everything that is no rank.
    number = np.concatenate([np.where(near, 0, 1), 2 + np.arange(part.size - part.n)])
    n = 2 + part.size - part.n
    tail, head = number[part.tail], number[part.head]
    between = tail != head
    if not between.any():
        return side
    merged = csr_array((part.bandwidth[between], (tail[between], head[between])), shape=(n, n))
    whole = np.ceil(merged.data * (_WHOLE / merged.data.max())).astype(np.int32)
    capacity = csr_array((whole, merged.indices, merged.indptr), shape=(n, n))
    left = csr_array(capacity - maximum_flow(capacity, 0, 1).flow)
    left.data = np.where(left.data > 0, 1, 0)
    left.eliminate_zeros()
    reached = np.zeros(n, dtype=bool)
    reached[breadth_first_order(left, 0, return_predecessors=False)] = True
    side[part.n :] = reached[2:]
    return side


def _orders(part: Part) -> Iterator[Ints]:
    """Orders of the ranks whose first half may be cut off cheaply."""
    ranks = np.arange(part.n)
    yield ranks
    own = np.bincount(part.tail, part.bandwidth, part.size)[: part.n]
    yield np.lexsort((ranks, own))
    yield np.argsort(_groups(part), kind="stable")
    if 2 < int(part.twins.max()) + 1 <= _WAVES:
        yield from _waves(part)
    for a in dict.fromkeys((0, part.n // 2)):
        away = shortest_path(part.both, unweighted=True, indices=[a])[0, : part.n]
        away[a] = np.inf
        nearest = np.flatnonzero(away == away.min())[:8]
        away[a] = 0
        ends = shortest_path(part.both, unweighted=True, indices=nearest)[:, : part.n]
        with np.errstate(invalid="ignore"):  # inf - inf: as far from both
            yield from (np.argsort(np.nan_to_num(away - row), kind="stable") for row in ends)


def _groups(part: Part) -> Ints:
    """Return for every rank the first node it sends to that is no rank: GPUs of one leaf stay together."""
    hub = np.full(part.size, part.size, dtype=np.intp)
    outward = part.head >= part.n
    np.minimum.at(hub, part.tail[outward], part.head[outward])
    return hub[: part.n]


def _waves(part: Part) -> Iterator[Ints]:
    """Order ranks by the slowest waves of the graph, its Laplacian's first eigenvectors."""
    group = part.twins  # which move together in a slow wave: one node, as heavy as they are many
    size = np.sqrt(np.bincount(group))
    merge = csr_array((np.ones(part.size), (group, np.arange(part.size))), shape=(len(size), part.size))
    dense = (merge @ part.both @ merge.T).toarray()
    np.fill_diagonal(dense, 0.0)
    vectors = np.linalg.eigh((np.diag(dense.sum(axis=1)) - dense) / np.outer(size, size))[1] / size[:, None]
    for wave in range(1, min(5, len(size))):
        yield np.argsort(np.round(vectors[group[: part.n], wave], 9), kind="stable")


def _improved(part: Part, cut: float, near: Bools) -> float:
    """Swap ranks while the cut gets smaller, Kernighan and Lin's way."""
    weight = part.both[: part.n, : part.n].toarray()
    for _ in range(8):
        side = _cut(part, near)[1]
        swapped = _swapped(part, weight, side)
        smaller = _cut(part, swapped)[0]
        if not smaller < cut * (1 - 1e-12):
            break
        cut, near = smaller, swapped
    return cut


def _swapped(part: Part, weight: Floats, side: Bools) -> Bools:
    """One pass: swap the best pair again and again, each rank once; keep the best prefix."""
    near = side[: part.n].copy()
    across = np.where(side, -1.0, 1.0)
    pull = part.both[: part.n] @ across * np.where(near, 1.0, -1.0)  # what the cut loses if the rank changes sides
    inside, outside = np.flatnonzero(near), np.flatnonzero(~near)
    gains, pairs = [], []
    for _ in range(min(len(inside), len(outside))):
        gain = pull[inside][:, None] + pull[outside][None, :] - 2 * weight[np.ix_(inside, outside)]
        i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        a, b = int(inside[i]), int(outside[j])
        gains.append(float(gain[i, j]))
        pairs.append((a, b))
        inside, outside = np.delete(inside, i), np.delete(outside, j)
        pull[inside] += 2 * (weight[inside, a] - weight[inside, b])
        pull[outside] += 2 * (weight[outside, b] - weight[outside, a])
    best = int(np.argmax(np.cumsum(gains)))
    for a, b in pairs[: best + 1]:
        near[a], near[b] = False, True
    return near
