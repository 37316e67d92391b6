"""How does data go down trees and up again? Binomial trees, and two binary trees that share the work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collectives._plan import Plan, Step, Team, blocks, then, turned
from collectives._records import Transfers
from collectives._rings import ring

__all__ = [
    "binomial_all_reduce", "binomial_broadcast", "binomial_scatter", "direct_broadcast", "direct_scatter",
    "double_binary_tree", "scatter_all_gather",
]  # fmt: skip

Ints = NDArray[np.intp]


def direct_broadcast(team: Team) -> Plan:
    """All of it goes from the root to everyone at once."""
    return Plan(np.array([team.n_bytes]), _from_root(team, np.zeros(team.n, dtype=np.intp)))


def direct_scatter(team: Team) -> Plan:
    """Every block goes from the root to its rank at once."""
    return Plan(blocks(team), _from_root(team, np.arange(team.n)))


def _from_root(team: Team, chunk: Ints) -> tuple[Step, ...]:
    others = np.delete(np.arange(team.n), team.root)
    root = np.full(len(others), team.root)
    return (Step(lambda _: (root, others, chunk[others])),) if len(others) else ()


def _halvings(n: int) -> Iterator[tuple[int, Ints]]:
    """Distance and senders of every step of a binomial tree rooted at 0, the farthest first."""
    for k in reversed(range((n - 1).bit_length())):
        senders = np.arange(0, n, 2 << k)
        yield 1 << k, senders[senders + (1 << k) < n]


def binomial_broadcast(team: Team) -> Plan:
    """Who has it sends to half the distance further on."""

    def step(distance: int, senders: Ints) -> Step:
        source, target = (senders + team.root) % team.n, (senders + distance + team.root) % team.n
        return Step(lambda _: (source, target, np.zeros(len(source), dtype=np.intp)))

    return Plan(np.array([team.n_bytes]), tuple(step(*halving) for halving in _halvings(team.n)))


def binomial_scatter(team: Team, parts: int = 1) -> Plan:
    """Who holds blocks sends the far half of them to the rank half way on."""

    def step(distance: int, senders: Ints) -> Step:
        def carries(_: int) -> Transfers:
            source, ahead = (grid.ravel() for grid in np.meshgrid(senders, np.arange(distance), indexing="ij"))
            block = source + distance + ahead
            source, block = source[block < team.n], block[block < team.n]
            chunk = (((block + team.root) % team.n * parts)[:, None] + np.arange(parts)).ravel()
            ends = ((source + team.root) % team.n, (source + distance + team.root) % team.n)
            return np.repeat(ends[0], parts), np.repeat(ends[1], parts), chunk

        return Step(carries)

    return Plan(blocks(team, parts), tuple(step(*halving) for halving in _halvings(team.n)))


def scatter_all_gather(team: Team) -> Plan:
    """Broadcast as a binomial scatter and a ring all-gather."""
    gathered = ring(team)
    assert isinstance(gathered.sizes, np.ndarray)
    return then(binomial_scatter(team, len(gathered.sizes) // team.n), gathered)


def binomial_all_reduce(team: Team) -> Plan:
    """Reduce to one rank up a binomial tree, and back down."""
    down = binomial_broadcast(team)
    return then(turned(down), down)


def double_binary_tree(team: Team) -> Plan:
    """All-reduce of one half up and down a binary tree and the other half over its mirror image, pipelined.

    Whoever passes on in one tree is a leaf of the other, so no rank sends or receives
    more than twice the data.
    """
    trees = _two_trees(team.n)
    down = tuple(_level(trees, depth) for depth in range(1, max(int(depth.max()) for _, depth in trees) + 1))
    plan = Plan(np.full(2, team.n_bytes / 2), down, pipelined=True)
    return then(turned(plan), plan)


def _level(trees: list[tuple[Ints, Ints]], depth: int) -> Step:
    child = [np.flatnonzero(depths == depth) for _, depths in trees]
    source = np.concatenate([parent[c] for (parent, _), c in zip(trees, child, strict=True)])
    tree = np.repeat(np.arange(2), [len(c) for c in child])
    return Step(lambda _: (source, np.concatenate(child), tree))


def _two_trees(n: int) -> list[tuple[Ints, Ints]]:
    """Parent (-1 at the root) and depth of every rank: one tree, and its mirror (n even) or the same one further on."""
    parent = np.array([_parent(rank, n) for rank in range(n)])
    other = np.arange(n)[::-1] if n % 2 == 0 else (np.arange(n) + 1) % n
    second = np.empty_like(parent)
    second[other] = np.where(parent < 0, -1, other[parent])
    return [(tree, _depths(tree)) for tree in (parent, second)]


def _parent(rank: int, n: int) -> int:
    """Parent in the in-order binary tree whose leaves are the odd ranks and whose root is 0."""
    if rank == 0:
        return -1
    bit = rank & -rank
    up = (rank ^ bit) | (bit << 1)
    return up if up < n else rank ^ bit


def _depths(parent: Ints) -> Ints:
    depth, above = np.zeros(len(parent), dtype=np.intp), parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth
