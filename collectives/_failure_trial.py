"""What does a collective do once some parts are gone? Made anew for what is left, and who lost whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives._cost import cost
from collectives._moe import MoE
from collectives._parts import Part, without
from collectives._profile import Profile
from collectives._records import Flows, Outer, Phase, Schedule
from collectives._results import Cost
from collectives._schedule import schedule
from topo import Fabric, InputError, Routes, Routing, route

__all__ = ["Outcome", "Trial"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """A collective without some parts.

    Attributes
    ----------
    cost : Cost or None
        None where it can no longer be done.
    dropped : int
        Ranks that failed themselves.
    unreachable : int
        Ordered pairs, of those with something to send, that no path joins.
    pairs : tuple of (str, str)
        The first of those.
    settled : bool
        Whether it is the same in whatever order the ranks are taken: by symmetry it is then
        the same for every part that is alike.
    """

    cost: Cost | None
    dropped: int
    unreachable: int
    pairs: tuple[tuple[str, str], ...]
    settled: bool


@dataclass(frozen=True, eq=False)
class Trial:
    """A collective on a graph, to be run without some of its parts.

    Attributes
    ----------
    graph : networkx.Graph
        With nothing failed.
    plan : Schedule
        As it is then.
    labels : list of str
        Its ranks.
    asked : dict
        What makes it anew: kind, n_bytes, algorithm, root, labels of stages; empty
        where the schedule was given ready made.
    routing, profile
        As `cost`.
    most_named : int
        Pairs named at most.
    """

    graph: nx.Graph[str]
    plan: Schedule
    labels: list[str]
    asked: dict[str, Any]
    routing: Routing
    profile: Profile
    most_named: int = 4

    def lose(self, parts: Sequence[Part]) -> Outcome:
        """Return what the failure of some parts at once does."""
        edited = without(self.graph, parts)
        alive = np.array([label in edited for label in self.labels])
        left = [label for label in self.labels if label in edited]
        pieces = [piece for piece in _pieces(edited) if not piece.isdisjoint(left)]
        dropped = len(alive) - len(left)
        one_group = len(pieces) == 1 and len(left) > (dropped > 0)
        found = self._anew(_only(edited, pieces[0]), left, alive) if one_group else None
        settled = not self.asked or not one_group or (found is not None and _same_order(self.plan, found[1]))
        if found is not None and not self.instead(found[1].algorithm):
            return Outcome(found[0], dropped, 0, (), settled)
        lost = self._lost(edited, pieces, left, alive)
        named = tuple((left[i], left[j]) for i, j in np.argwhere(lost)[: self.most_named])
        return Outcome(found[0] if found else None, dropped, int(lost.sum()), named, settled)

    def instead(self, algorithm: str) -> bool:
        """Whether an algorithm is another one than was asked for."""
        return self.asked.get("algorithm") != "best" and algorithm != self.plan.algorithm

    @cached_property
    def _healthy(self) -> dict[str, float | None]:
        return {}

    def before(self, algorithm: str) -> float | None:
        """Return what another algorithm takes with nothing failed [s]; None where it does not apply to all ranks."""
        if algorithm not in self._healthy:
            words = {"n_bytes": self.asked["n_bytes"], "root": self.asked["root"]} | self._who(self.labels)
            found = self._made(route(self.graph, self.routing), self.asked["kind"], algorithm=algorithm, **words)
            self._healthy[algorithm] = found[0].seconds if found else None
        return self._healthy[algorithm]

    def _anew(self, whole: nx.Graph[str], left: list[str], alive: Bools) -> tuple[Cost, Schedule] | None:
        """Cost the collective of the ranks that are left, by another algorithm where its own does not do any more."""
        fabric, sizes = Fabric.from_graph(whole), self.asked.get("n_bytes")
        placed = isinstance(sizes, MoE) and sizes.placement is not None
        if not alive.all() and (not self.asked or self.asked["stages"] or placed):
            return None  # who sends to whom is settled, or experts are gone
        routes = route(fabric, self.routing)
        if not self.asked:
            return self._made(routes, replace(self.plan, ranks=fabric.rank_numbers(left)))
        root = self.asked["root"] if self.asked["root"] in left else None
        words = {"n_bytes": _of_those(sizes, alive), "root": root} | self._who(left)
        kind, own = self.asked["kind"], self.asked["algorithm"]
        anew = self._made(routes, kind, algorithm=own, **words)
        return anew or self._made(routes, kind, algorithm="best", **words)

    def _who(self, labels: list[str]) -> dict[str, Any]:
        return {"stages": self.asked["stages"]} if self.asked["stages"] else {"ranks": labels}

    def _made(self, routes: Routes, what: str | Schedule, **words: Any) -> tuple[Cost, Schedule] | None:
        """Return what a collective costs and its schedule, None where it does not apply or some pair has no path."""
        try:
            if isinstance(what, Schedule):
                return cost(routes.fabric, what, routing=routes, profile=self.profile), what
            found = cost(routes.fabric, what, routing=routes, profile=self.profile, **words)
            name = found.algorithm if words["algorithm"] == "best" else words["algorithm"]
            return found, schedule(what, routes.fabric, **words | {"algorithm": name})
        except InputError:
            return None

    def _lost(self, edited: nx.Graph[str], pieces: list[set[str]], left: list[str], alive: Bools) -> Bools:
        """Return which ordered pairs of ranks that are left lost each other.

        Ranks in different parts are lost to each other whether or not they have anything
        to send: they are no group any more.
        """
        home = np.array([next(k for k, piece in enumerate(pieces) if label in piece) for label in left], dtype=np.intp)
        sent = np.zeros((len(alive), len(alive)), dtype=bool)
        for phase in self.plan.phases:
            sent |= phase.n_bytes[: len(alive), : len(alive)] > 0
        lost: Bools = home[:, None] != home[None, :]
        for number, piece in enumerate(pieces):
            rows = np.flatnonzero(home == number)
            if len(rows) > 1:
                routes = route(_only(edited, piece), self.routing)
                ranks = routes.fabric.rank_numbers([left[i] for i in rows])
                no_path = routes.pair_class[np.ix_(ranks, ranks)] == -1
                lost[np.ix_(rows, rows)] = no_path & sent[np.ix_(alive, alive)][np.ix_(rows, rows)]
        return lost


def _pieces(graph: nx.Graph[str]) -> list[set[str]]:
    return list(nx.connected_components(graph.to_undirected(as_view=True)))


def _only(graph: nx.Graph[str], piece: set[str]) -> nx.Graph[str]:
    """Return one piece of a graph, in the graph's order (that of a subgraph view may vary from run to run)."""
    if len(piece) == len(graph):
        return graph
    found = graph.copy()
    found.remove_nodes_from([node for node in graph if node not in piece])
    return found


def _same_order(plan: Schedule, then: Schedule) -> bool:
    """Whether a schedule is still what it was, or does not go by the order of ranks at all."""
    pairs = [(_arrays(a), _arrays(b)) for a, b in zip(plan.phases, then.phases, strict=False)]
    same_ends = (len(plan.ranks), len(plan.switches)) == (len(then.ranks), len(then.switches))
    same_sends = all(len(a) == len(b) and all(map(np.array_equal, a, b)) for a, b in pairs)
    if same_ends and len(plan.phases) == len(then.phases) and same_sends:
        return True
    whole = (one.traffic for one in then.phases)
    return all(isinstance(one, Outer) and not any(map(np.ptp, (one.sent, one.received, one.blocks))) for one in whole)


def _arrays(phase: Phase) -> tuple[NDArray[Any], ...]:
    traffic = phase.traffic
    if isinstance(traffic, Flows):
        return traffic.source, traffic.target, traffic.n_bytes
    if isinstance(traffic, np.ndarray):
        return (traffic,)
    products = traffic if isinstance(traffic, tuple) else (traffic,)
    return tuple(column for one in products for column in (one.sent, one.received, one.blocks))


def _of_those(n_bytes: Any, alive: Bools) -> Any:
    """Return the sizes of the ranks that are left."""
    if alive.all():
        return n_bytes
    if isinstance(n_bytes, Outer):
        block = None if n_bytes.block is None else n_bytes.block[alive]
        return Outer(n_bytes.sent[alive], n_bytes.received[alive], block)
    if isinstance(n_bytes, MoE):
        tokens, load = np.asarray(n_bytes.tokens), n_bytes.expert_load
        by_rank = load is not None and np.ndim(load) == 2
        return replace(
            n_bytes, tokens=tokens[alive] if tokens.ndim else n_bytes.tokens,
            expert_load=np.asarray(load)[alive] if by_rank else load,
        )  # fmt: skip
    return n_bytes if n_bytes is None or np.ndim(n_bytes) == 0 else np.asarray(n_bytes)[np.ix_(alive, alive)]
