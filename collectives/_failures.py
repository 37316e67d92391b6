"""What does one failure cost, which is the worst, and who can no longer reach whom?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._cost import cost
from collectives._msccl import Algorithm
from collectives._parts import Part, parts_of
from collectives._records import Outer, Schedule
from collectives._results import plain
from collectives._schedule import Stages, schedule
from collectives._symmetry import Classes, classes_of, numbered, told_apart
from topo import Fabric, Fault, Hash, InputError, Ranks, Tables, fail, route
from topo.units import format_quantity

__all__ = ["Failure", "Failures", "failures"]

Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
_MOST_NAMED = 4
_ROUNDING = 1e-12
#: Rules that treat alike what symmetry cannot tell apart; under others every member is tried.
_FAIR = ("ecmp", "even", "paths")


@dataclass(frozen=True)
class Failure:
    """What one failure does.

    Attributes
    ----------
    parts : tuple of (str, str)
        What failed: kind (link, lane, nic, switch) and name; two of them in a double failure.
    alike : int
        Failures that do the same, by symmetry, this one included.
    seconds : float
        Time of the collective then; infinite if some pair has no path [s].
    loss : float
        What that is more than before [s].
    bottleneck : str
        What binds then.
    unreachable : int
        Ordered pairs of ranks that have no path.
    pairs : tuple of str
        The first of those, "a => b".
    """

    parts: tuple[tuple[str, str], ...]
    alike: int
    seconds: float
    loss: float
    bottleneck: str
    unreachable: int
    pairs: tuple[str, ...]

    @property
    def name(self) -> str:
        """What failed, in words."""
        return " and ".join(f"{kind} {name}" for kind, name in self.parts)

    def __repr__(self) -> str:
        what = f"{self.unreachable} pairs without a path" if self.unreachable else _plus(self.loss)
        return f"Failure({what}: {self.name}, one of {self.alike:,} alike)"


@dataclass(frozen=True, eq=False, repr=False)
class Failures:
    """What single failures, and sampled double ones, do to a collective.

    Attributes
    ----------
    seconds : float
        Time with nothing failed [s].
    singles : tuple of Failure
        One per class of parts that symmetry cannot tell apart, the worst first.
    doubles : tuple of Failure
        As sampled, the worst first.
    seed : int
        Of the sample.
    kind, algorithm, routing : str
        Collective, algorithm and routing rule.
    n_bytes : float
        nccl-tests' size [bytes].
    n_ranks : int
        Ranks taking part.
    assumptions : tuple of str
        What was filled in.
    """

    seconds: float
    singles: tuple[Failure, ...]
    doubles: tuple[Failure, ...]
    seed: int
    kind: str
    algorithm: str
    routing: str
    n_bytes: float
    n_ranks: int
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> Failure | None:
        """The single failure that costs most; none where nothing can fail."""
        return self.singles[0] if self.singles else None

    def __repr__(self) -> str:
        worst = "nothing can fail" if self.worst is None else f"worst {self.worst!r}"
        return f"Failures({format_quantity(self.seconds, 'seconds')} without; {worst})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        result: dict[str, Any] = plain(self)
        return result


def _plus(loss: float) -> str:
    return f"{'-' if loss < 0 else '+'}{format_quantity(abs(loss), 'seconds')}"


def failures(
    graph: nx.Graph[str],
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    routing: str | Hash | Tables = "ecmp",
    stages: Stages = None,
    root: str | int | None = None,
    doubles: int = 0,
    seed: int = 0,
) -> Failures:
    """Cost a collective with every single link, lane, NIC and switch failed in turn.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        The topology. In a DiGraph a link fails both ways.
    kind_or_schedule, n_bytes, ranks, algorithm, stages, root
        As `cost`; the schedule stays what it is, and routes find other ways.
    routing : str, Hash or Tables, optional
        As `cost`.
    doubles : int, optional
        Double failures to sample, each two parts drawn from all.
    seed : int, optional
        Of the sample.

    Raises
    ------
    InputError
        As `cost`; a Fabric, which does not say what can fail.

    Examples
    --------
    >>> import topo
    >>> failures(topo.load("hgx-h100-8", 2, {"scale_out.latency": "0 s"}), "all_to_all", 16e9).worst
    Failure(128 pairs without a path: switch leaf0, one of 1 alike)
    """
    if not isinstance(graph, nx.Graph):
        raise InputError(Fault("graph", repr(graph), "does not say what can fail", "Give the graph itself."))
    if isinstance(doubles, bool) or not isinstance(doubles, int) or doubles < 0:
        raise InputError(Fault("doubles", doubles, "must be a whole number, zero or more", "Correct it."))
    words: dict[str, Any] = {"ranks": ranks, "stages": stages, "root": root}
    healthy = cost(graph, kind_or_schedule, n_bytes, algorithm=algorithm, routing=routing, **words)
    fabric = Fabric.from_graph(graph)
    plan = kind_or_schedule
    if not isinstance(plan, Schedule):
        plan = schedule(
            plan, fabric, n_bytes, algorithm=algorithm if algorithm != "best" else healthy.algorithm, **words
        )
    if len(plan.switches):
        rule = "has switches add up, and is made for the switches there are"
        raise InputError(Fault("algorithm", plan.algorithm, rule, "Take an algorithm between ranks, as ring."))
    trial = _Trial(graph, fabric, plan, routing, healthy.seconds)
    found = list(parts_of(graph, fabric, _classes(fabric, plan)))
    classes: dict[object, list[Part]] = {}
    for part in found:
        key = part.alike if isinstance(routing, str) and routing in _FAIR else part
        classes.setdefault(key, []).append(part)
    singles = [trial.without((same[0],), sum(part.count for part in same)) for same in classes.values()]
    twos = [trial.without(pair, 1) for pair in _sampled(found, doubles, seed)]
    return Failures(
        healthy.seconds, _worst_first(singles), _worst_first(twos), seed, plan.kind, plan.algorithm, healthy.routing,
        plan.n_bytes, len(plan.ranks), healthy.assumptions,
    )  # fmt: skip


def _worst_first(found: list[Failure]) -> tuple[Failure, ...]:
    return tuple(sorted(found, key=lambda one: (-one.seconds, -one.unreachable)))


def _sampled(found: list[Part], count: int, seed: int) -> list[tuple[Part, Part]]:
    """Return so many different pairs of parts, or all where there are no more."""
    every = len(found) * (len(found) - 1) // 2
    if count >= every:
        return list(combinations(found, 2))
    dice, pairs = random.Random(seed), dict[tuple[int, int], None]()
    while len(pairs) < count:
        a, b = sorted(dice.sample(range(len(found)), 2))
        pairs[a, b] = None
    return [(found[a], found[b]) for a, b in pairs]


def _classes(fabric: Fabric, plan: Schedule) -> Classes:
    """Classes of nodes and links that the schedule does not tell apart, phase by phase."""
    alike, n = classes_of(fabric, plan.ranks), len(plan.ranks)
    apart = ~np.eye(n, dtype=bool)
    label = np.zeros((n, n))
    for n_bytes in {phase.n_bytes.tobytes(): phase.n_bytes for phase in plan.phases}.values():
        label[apart] = numbered(label[apart], n_bytes[apart])
    return told_apart(alike, fabric, plan.ranks, label)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A collective on a graph, to be run without some of its parts."""

    graph: nx.Graph[str]
    fabric: Fabric
    plan: Schedule
    routing: str | Hash | Tables
    seconds: float

    def without(self, parts: tuple[Part, ...], alike: int) -> Failure:
        """Return what the failure of some parts at once does."""
        given: dict[str, Any] = {}
        for word, value in (item for part in parts for item in part.given.items()):
            given[word] = given.get(word, {}) | value if word == "lanes" else [*given.get(word, ()), *value]
        edited = fail(self.graph, **given)
        names = tuple((part.kind, part.name) for part in parts)
        labels = [self.fabric.rank_labels[rank] for rank in self.plan.ranks]
        cut, whole = self._cut_off(edited, labels)
        if cut.any():
            pairs = tuple(f"{labels[i]} => {labels[j]}" for i, j in np.argwhere(cut)[:_MOST_NAMED])
            return Failure(names, alike, np.inf, np.inf, "no path", int(cut.sum()), pairs)
        plan = replace(self.plan, ranks=Fabric.from_graph(whole).rank_numbers(labels))
        then = cost(whole, plan, routing=self.routing)
        loss = then.seconds - self.seconds
        loss = loss if abs(loss) > _ROUNDING * self.seconds else 0.0
        return Failure(names, alike, then.seconds, loss, then.bottleneck, 0, ())

    def _cut_off(self, edited: nx.Graph[str], labels: list[str]) -> tuple[Bools, nx.Graph[str]]:
        """Pairs of ranks that lost each other, and the part of the graph in which the first stands.

        Ranks in different parts are lost to each other whether or not they have anything
        to send: they are no group any more.
        """
        part = {node: k for k, nodes in enumerate(_joined(edited)) for node in nodes}
        home = np.array([part[label] for label in labels])
        lost: Bools = home[:, None] != home[None, :]
        whole = edited.subgraph([node for node in edited if part[node] == home[0]]).copy()
        for number in np.unique(home):
            rows = np.flatnonzero(home == number)
            if len(rows) > 1:
                piece = whole if number == home[0] else edited.subgraph([n for n in edited if part[n] == number])
                routes = route(piece, self.routing)
                ranks = routes.fabric.rank_numbers([labels[i] for i in rows])
                lost[np.ix_(rows, rows)] = routes.pair_class[np.ix_(ranks, ranks)] == -1
        sent = np.logical_or.reduce([phase.n_bytes > 0 for phase in self.plan.phases])
        return lost & (sent | (home[:, None] != home[None, :])), whole


def _joined(graph: nx.Graph[str]) -> Iterator[set[str]]:
    parts: Iterator[set[str]] = nx.connected_components(graph.to_undirected(as_view=True))
    return parts
