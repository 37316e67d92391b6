"""Which nodes and links cannot be told apart? Colours that every symmetry of the graph keeps.

First every pair of nodes gets a colour: that of the second node once the first is told
apart, refined by what it is wired to (as colour refinement does from every node at once).
A torus of unequal sides shows its axes only this way: all its nodes are alike, and so
would its links be. Then nodes are refined by the links they have: while two nodes of
one colour differ in how many links of some kind lead to or from some colour, they are told
apart. What is left is equitable: any two nodes of a colour see the same numbers of links of
every kind to every colour. Nodes or links that a symmetry exchanges are never told apart,
so colours are unions of orbits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topo import Fabric

__all__ = ["Classes", "classes_of", "members", "numbered", "refine", "tied", "told_apart"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Hashes = NDArray[np.uint64]

#: Rounds of pair colours at most, rows that say when to stop, and nodes x links up to which they are worked out.
_ROUNDS, _ROWS, _MOST = 64, 64, 400_000_000
#: The same for every set of flows: there may be many.
_MOST_OFTEN = 5_000_000


@dataclass(frozen=True, eq=False)
class Classes:
    """Numbers of the classes of nodes, (nodes,) int, and of directed links, (links,) int."""

    node: Ints
    link: Ints


def classes_of(fabric: Fabric, ranks: Ints) -> Classes:
    """Return the classes of nodes and links of a fabric on which some ranks take part, all alike."""
    part = np.zeros(len(fabric.labels))
    part[fabric.ranks[ranks]] = 1
    planes = {row: k for k, row in enumerate(dict.fromkeys(fabric.plane_lanes))}
    stands_for = np.array([planes[row] for row in fabric.plane_lanes])
    node = numbered(fabric.node_kind, fabric.forwards, fabric.reduces, fabric.multicasts, part, stands_for)
    link = numbered(fabric.bandwidth, fabric.latency, fabric.link_kind, fabric.lanes)
    if len(fabric.labels) * len(fabric.source) <= _MOST:
        node, link = _by_pairs(node, link, fabric.source, fabric.target)
    return _refined(fabric, node, link)


def told_apart(alike: Classes, fabric: Fabric, ranks: Ints, traffic: Floats) -> Classes:
    """Return finer classes, in which ranks also differ by the bytes between them, (n, n), none on the diagonal."""
    apart = traffic[~np.eye(len(traffic), dtype=bool)]
    if (apart == apart[:1]).all():
        return alike
    i, j = np.nonzero(traffic)
    ends = fabric.ranks[ranks]
    return tied(alike, fabric, ends[i], ends[j], numbered(traffic[i, j]))


def tied(alike: Classes, fabric: Fabric, tail: Ints, head: Ints, kind: Ints) -> Classes:
    """Return finer classes, in which nodes also differ by ties of some kinds from one to another."""
    if not len(tail):
        return alike
    kinds = np.concatenate([alike.link, alike.link.max(initial=-1) + 1 + kind])
    tail, head = np.concatenate([fabric.source, tail]), np.concatenate([fabric.target, head])
    node = alike.node
    if len(node) * len(kinds) <= _MOST_OFTEN:
        node, kinds = _by_pairs(node, kinds, tail, head)
    node = refine(node, tail, head, kinds)
    return _refined(fabric, node, kinds[: len(fabric.source)])


def _refined(fabric: Fabric, node: Ints, link: Ints) -> Classes:
    node = refine(node, fabric.source, fabric.target, link)
    return Classes(node, numbered(node[fabric.source], node[fabric.target], link))


def _by_pairs(node: Ints, link: Ints, tail: Ints, head: Ints) -> tuple[Ints, Ints]:
    """Tell nodes and links apart by the colours of pairs of nodes, kept as 64-bit hashes: two that met would be one."""
    n = len(node)
    salt = np.random.default_rng(0).integers(1, 2**63, 2 * (int(link.max(initial=0)) + 1), dtype=np.uint64) * 2 + 1
    shape = (n, n)
    wired = csr_array((salt[2 * link], (tail, head)), shape=shape) + csr_array(
        (salt[2 * link + 1], (head, tail)), shape=shape
    )
    colour = _mixed(node.astype(np.uint64)[None, :] * 2 + np.eye(n, dtype=np.uint64))
    some, count = members(refine(node, tail, head, link))[0][:_ROWS], 0
    for _ in range(_ROUNDS):
        seen = len(np.unique(colour[some]))
        if seen == count:
            break
        count, colour = seen, _mixed(colour + _mixed(colour) @ wired)
    pairs = np.column_stack([link.astype(np.uint64), colour[tail, head], colour[head, tail]])
    number = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)
    row = np.unique(_mixed(colour).sum(axis=1), return_inverse=True)[1].astype(np.intp)
    return numbered(node, row), number


def _mixed(x: Hashes) -> Hashes:
    """Scatter bits, as SplitMix64 ends."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def refine(colour: Ints, tail: Ints, head: Ints, kind: Ints) -> Ints:
    """Return the coarsest equitable partition that keeps the colours given apart, (nodes,) int."""
    n = len(colour)
    here, there = np.concatenate([tail, head]), np.concatenate([head, tail])
    way = np.concatenate([2 * kind, 2 * kind + 1])
    colour = numbered(colour)
    while True:
        seen = numbered(way * n + colour[there])
        order = np.lexsort((seen, here))
        first = np.searchsorted(here[order], np.arange(n + 1)).tolist()
        row = seen[order]
        found: dict[tuple[int, bytes], int] = {}
        finer = [
            found.setdefault((own, row[first[v] : first[v + 1]].tobytes()), len(found))
            for v, own in enumerate(colour.tolist())
        ]
        if len(found) == colour.max(initial=-1) + 1:
            return colour
        colour = np.array(finer, dtype=np.intp)


def numbered(*columns: NDArray[np.generic]) -> Ints:
    """Return a number for every row of some columns, equal rows the same."""
    rows = columns[0] if len(columns) == 1 else np.column_stack([column.astype(np.float64) for column in columns])
    number: Ints = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)
    return number


def members(colour: Ints) -> tuple[Ints, Ints]:
    """Return the first member of every class, and how many each has."""
    _, first, count = np.unique(colour, return_index=True, return_counts=True)
    return first, count
