"""Which cable does the hash of a flow pick? Per-flow ECMP, hop by hop, the same for the same seed.

A flow is a queue pair: source, destination and its number. At every node with n next cables
(in label order, lanes in theirs) it takes number h mod n, h a 64-bit hash of seed, source,
destination, queue pair and node.
Collisions are as in real fabrics: nothing balances what few large flows do.

The hash: starting from the seed, for each of the four numbers in turn add it and
0x9e3779b97f4a7c15, then mix as splitmix64 does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topo._errors import Fault, InputError

if TYPE_CHECKING:
    from topo._class_routes import ClassRoutes

__all__ = ["Hash", "mixed", "traced"]

Ints = NDArray[np.intp]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Hash:
    """Routing by hash, for ``routing=``.

    Parameters
    ----------
    seed : int
        Zero or more; another seed is another draw of all hashes.
    queue_pairs : int
        Flows that share the bytes of a pair of ranks.

    Examples
    --------
    >>> Hash(seed=3, queue_pairs=4)
    Hash(seed=3, queue_pairs=4)
    """

    seed: int = 0
    queue_pairs: int = 1

    def __post_init__(self) -> None:
        faults = [
            Fault(f"routing.{name}", value, f"must be a whole number, {least} or more", "Correct it.")
            for name, value, least in (("seed", self.seed, 0), ("queue_pairs", self.queue_pairs, 1))
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**32
        ]
        if faults:
            raise InputError(*faults)

    def __str__(self) -> str:
        pairs = f"{self.queue_pairs} queue pair{'' if self.queue_pairs == 1 else 's'}"
        return f"hash (seed {self.seed}, {pairs} a pair of ranks)"


def mixed(word: Words, value: Words | np.uint64) -> Words:
    """Return the next hash: a value taken in, bits mixed (splitmix64)."""
    word = word + value + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Words = word ^ (word >> np.uint64(31))
    return found


def traced(routed: ClassRoutes, source: Ints, target: Ints, queue_pair: Ints, seed: int) -> NDArray[np.int32]:
    """Return the directed links of every flow, hop by hop, (flows, most hops), -1 behind the last.

    Parameters
    ----------
    routed : ClassRoutes
        Of an unfolded graph; an edge that takes any share is a next cable.
    source, target, queue_pair : (flows,) int
        Rank numbers that a path joins, and the number of the queue pair.
    seed : int
        Of the hash.
    """
    graph = routed.graph
    at_target, edge = np.nonzero(routed.share > 0)  # by target, then by tail: edges are sorted by it
    fan = np.bincount(at_target * graph.n_nodes + graph.tail[edge], minlength=graph.n_targets * graph.n_nodes)
    first = np.cumsum(fan) - fan
    word = np.full(len(source), seed, dtype=np.uint64)
    for number in (source, target, queue_pair):
        word = mixed(word, number.astype(np.uint64))
    now, end = source.copy(), graph.n_sources + target
    most = int(routed.hops[target, source].max(initial=0))
    links = np.full((len(source), most), -1, dtype=np.int32)
    for hop in range(most):
        going = np.flatnonzero(now != end)
        cell = target[going] * graph.n_nodes + now[going]
        pick = mixed(word[going], graph.place[now[going]].astype(np.uint64)) % fan[cell].astype(np.uint64)
        taken = edge[first[cell] + pick.astype(np.intp)]
        links[going, hop] = graph.link[taken]
        now[going] = graph.head[taken]
    return links
