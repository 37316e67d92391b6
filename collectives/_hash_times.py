"""How long does a collective take under a hash, from a lucky seed to an unlucky one?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._background import beside
from collectives._cost import cost, settled
from collectives._moe import is_count
from collectives._msccl import Algorithm
from collectives._records import Outer, Schedule
from collectives._request import end_ports, scheduled
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
    ideal : float
        Time with every flow split evenly over all its ways, "ecmp" [s].
    median, p99 : float
        Of the times [s]; the smallest of them that 50 % and 99 % of the seeds do not exceed.
    seconds : (seeds,) float
        Time under each seed [s].
    seeds : tuple of int
        The seeds.
    queue_pairs : int
        Flows that share the bytes of a pair of ranks.
    """

    ideal: float
    median: float
    p99: float
    seconds: NDArray[np.float64]
    seeds: tuple[int, ...]
    queue_pairs: int

    def __repr__(self) -> str:
        ideal, median, p99 = (format_quantity(value, "seconds") for value in (self.ideal, self.median, self.p99))
        drawn = f"{len(self.seeds)} seeds, {self.queue_pairs} queue pairs"
        return f"HashTimes(ideal {ideal}, median {median}, p99 {p99}: {drawn})"

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
    algorithm: str | Algorithm | None = None,
    stages: Stages = None,
    background: ArrayLike | None = None,
) -> HashTimes:
    """Return the times of a collective under hashed routing, over many seeds.

    Parameters
    ----------
    graph, kind_or_schedule, n_bytes, ranks, algorithm, stages
        As `cost`; the best algorithm is that of the even split.
    seeds : int or sequence of int, optional
        That many from 0 on, or these.
    queue_pairs : int, optional
        Flows that share the bytes of a pair of ranks.
    background : (ranks, ranks) array, optional
        Other jobs' traffic, as `simulate`; hashed too, by the same seed.

    Raises
    ------
    InputError
        No seeds, or what `cost` refuses.

    Examples
    --------
    >>> import topo
    >>> graph = topo.build("fat_tree", k=4, bandwidth="50 GB/s", latency="0 s")
    >>> hash_times(graph, "all_to_all", 16e9, seeds=20)
    HashTimes(ideal 300 ms, median 400 ms, p99 440 ms: 20 seeds, 1 queue pairs)
    """
    drawn = _drawn(seeds)
    graph, ranks = end_ports(graph, ranks)
    hashes = [Hash(seed, queue_pairs) for seed in drawn]
    even, routes = beside(graph, background, "ecmp"), route(graph, hashes[0])
    asked: dict[str, Any] = {"ranks": ranks, "stages": stages}
    algorithm = settled(even, kind_or_schedule, n_bytes, algorithm, **asked)
    plan = scheduled(routes.fabric, kind_or_schedule, n_bytes, algorithm, **asked)
    ends = len(plan.ranks) + len(plan.switches)
    # A hash takes flows one by one: listed once, not once a seed.
    listed = replace(plan, phases=tuple(replace(phase, traffic=phase.listed(ends)) for phase in plan.phases))
    times = []
    for hashing in hashes:
        seeded = beside(routes.given, background, replace(routes, rule=str(hashing), hashing=hashing))
        times.append(cost(seeded.fabric, listed, routing=seeded).seconds)
    ideal = cost(even.fabric, kind_or_schedule, n_bytes, algorithm=algorithm, routing=even, **asked)
    seconds = np.array(times)
    median, p99 = np.quantile(seconds, [0.5, 0.99], method="inverted_cdf").tolist()
    return HashTimes(ideal.seconds, median, p99, seconds, tuple(one.seed for one in hashes), queue_pairs)


def _drawn(seeds: Any) -> tuple[int, ...]:
    """Return the seeds asked for; `Hash` looks at each."""
    if is_count(seeds):
        return tuple(range(seeds))
    if not isinstance(seeds, Iterable) or isinstance(seeds, str) or not (drawn := tuple(seeds)):
        rule = "must be a whole number, at least one, or a list of seeds"
        raise InputError(Fault("seeds", seeds, rule, "Give a number of seeds, as 100."))
    return drawn
