"""How long does a collective take under a hash, from a lucky seed to an unlucky one?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._cost import cost
from collectives._moe import is_count
from collectives._records import Outer, Schedule
from collectives._results import plain
from collectives._schedule import Stages
from topo import Fabric, Fault, Hash, InputError, Ranks, route
from topo.units import format_quantity

__all__ = ["HashTimes", "hash_times"]


@dataclass(frozen=True, eq=False, repr=False)
class HashTimes:
    """Times of a collective over seeds of the hash.

    Attributes
    ----------
    median, p99 : float
        Of the times [s]; the smallest of them that 50 % and 99 % of the seeds do not exceed.
    seconds : (seeds,) float
        Time under each seed [s].
    seeds : tuple of int
        The seeds.
    queue_pairs : int
        Flows that share the bytes of a pair of ranks.
    """

    median: float
    p99: float
    seconds: NDArray[np.float64]
    seeds: tuple[int, ...]
    queue_pairs: int

    def __repr__(self) -> str:
        median, p99 = (format_quantity(value, "seconds") for value in (self.median, self.p99))
        return f"HashTimes(median {median}, p99 {p99}: {len(self.seeds)} seeds, {self.queue_pairs} queue pairs)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        found: dict[str, Any] = plain(self)
        return found


def hash_times(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | None = None,
    *,
    seeds: int | Sequence[int] = 100,
    queue_pairs: int = 1,
    ranks: Ranks = None,
    algorithm: str = "direct",
    stages: Stages = None,
) -> HashTimes:
    """Return the times of a collective under hashed routing, over many seeds.

    Parameters
    ----------
    graph, kind_or_schedule, n_bytes, ranks, algorithm, stages
        As `cost`.
    seeds : int or sequence of int, optional
        That many from 0 on, or these.
    queue_pairs : int, optional
        Flows that share the bytes of a pair of ranks.

    Raises
    ------
    InputError
        No seeds, or what `cost` refuses.

    Examples
    --------
    >>> import topo
    >>> graph = topo.build("fat_tree", k=4, bandwidth="50 GB/s", latency="0 s")
    >>> hash_times(graph, "all_to_all", 16e9, seeds=20)
    HashTimes(median 400 ms, p99 440 ms: 20 seeds, 1 queue pairs)
    """
    hashes = [Hash(seed, queue_pairs) for seed in _drawn(seeds)]
    routes = route(graph, hashes[0])
    times = [
        cost(
            routes.given, kind_or_schedule, n_bytes, ranks=ranks, algorithm=algorithm, stages=stages,
            routing=replace(routes, rule=str(hashing), hashing=hashing),
        ).seconds
        for hashing in hashes
    ]  # fmt: skip
    seconds = np.array(times)
    median, p99 = np.quantile(seconds, [0.5, 0.99], method="inverted_cdf").tolist()
    return HashTimes(median, p99, seconds, tuple(one.seed for one in hashes), queue_pairs)


def _drawn(seeds: Any) -> tuple[int, ...]:
    """Return the seeds asked for; `Hash` looks at each."""
    if is_count(seeds):
        return tuple(range(seeds))
    if not isinstance(seeds, Iterable) or isinstance(seeds, str) or not (drawn := tuple(seeds)):
        rule = "must be a whole number, at least one, or a list of seeds"
        raise InputError(Fault("seeds", seeds, rule, "Give a number of seeds, as 100."))
    return drawn
