"""Between which times does a collective lie, and how far apart are they?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from collectives._background import beside
from collectives._cost import cost, settled
from collectives._lower_bound import MOST_RANKS, Bound, lower_bound
from collectives._moe import MoE
from collectives._msccl import Algorithm
from collectives._records import Flows, Outer, Phase, Schedule
from collectives._request import end_ports, scheduled
from collectives._results import Cost, plain
from collectives._schedule import Order, Stages
from collectives._simulate import simulated
from collectives._subflows import TooManyPaths
from collectives._timeline import Timeline
from topo import Fabric, InputError, Ranks, Routes, Routing
from topo.units import format_quantity

__all__ = ["Bracket", "PhaseBracket", "bracket"]

#: Simulated up to these: flows of phases that differ, of all phases, times different sizes, paths of one phase.
#: Some three seconds each.
MOST_FLOWS, MOST_ROWS, MOST_UNLIKE, MOST_PATHS = 200_000, 3_000_000, 50_000_000, 1_000_000
#: Bound up to this many cells (pairs of ranks x phases that differ x sizes), where sizes beyond some change no more.
MOST_CELLS, _UNLIKE = 16_000_000, 16

CONVENTION = (
    "lower bound <= cost <= simulated, wires only: no routes (this schedule) and no algorithm (any) beat the bounds; "
    "cost is the busiest link's or longest path's time in each phase; simulated shares links max-min fairly, "
    "each part of a split flow on its own path, with a barrier after every phase"
)
_OVERLAP = "; phases overlap in bounds and cost, which the gap compares, and are simulated one after the other"


@dataclass(frozen=True)
class PhaseBracket:
    """One phase, one repeat of it.

    Attributes
    ----------
    lower : float or None
        Least time of its transfers over any routes [s]; None where it was not bound by itself.
    cost : float
        Its cost [s].
    simulated : float or None
        Its time with shared links [s]; None where it was not simulated.
    repeats : int
        How often it runs.
    """

    lower: float | None
    cost: float
    simulated: float | None
    repeats: int


@dataclass(frozen=True, eq=False, repr=False)
class Bracket:
    """The cost of a collective between what nothing beats and what sharing makes of it.

    Attributes
    ----------
    any_bound : Bound or None
        What no algorithm beats; None where left out.
    schedule_bound : Bound or None
        What no routes of this schedule's transfers beat; None where left out.
    cost : Cost
        The cost, wires only.
    timeline : Timeline or None
        The simulation; None where left out.
    phases : tuple of PhaseBracket
        Every phase of the schedule in order.
    convention : str
        What the times mean.
    left_out : tuple of str
        What was not worked out, and why.
    """

    any_bound: Bound | None
    schedule_bound: Bound | None
    cost: Cost
    timeline: Timeline | None
    phases: tuple[PhaseBracket, ...]
    convention: str
    left_out: tuple[str, ...]

    @property
    def lower(self) -> float | None:
        """The larger of the bounds [s]."""
        return max((bound.seconds for bound in (self.any_bound, self.schedule_bound) if bound), default=None)

    @property
    def simulated(self) -> float | None:
        """Time of the simulation [s]."""
        return self.timeline.seconds if self.timeline else None

    @property
    def gap(self) -> float | None:
        """What the simulation takes more than the lower bound, as a part of it.

        The cost stands for it where nothing was simulated, and where phases overlap.
        """
        upper = self.cost.seconds if self.simulated is None or self.cost.pipelined else self.simulated
        return upper / self.lower - 1 if self.lower else None

    def __repr__(self) -> str:
        low, high = (_time(seconds) for seconds in (self.lower, self.simulated))
        gap = "unknown" if self.gap is None else f"{max(0.0, round(100 * self.gap, 6)):.3g} %"
        return f"Bracket({low} <= {_time(self.cost.seconds)} <= {high}, gap {gap}: {self.cost.kind})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units; of bounds the time and what proves it."""
        return {
            "lower": self.lower, "cost": self.cost.seconds, "simulated": self.simulated, "gap": self.gap,
            "any_bound": _proof(self.any_bound), "schedule_bound": _proof(self.schedule_bound),
            "phases": plain(self.phases), "convention": self.convention, "left_out": list(self.left_out),
        }  # fmt: skip


def _time(seconds: float | None) -> str:
    return "left out" if seconds is None else format_quantity(seconds, "seconds")


def _proof(bound: Bound | None) -> dict[str, Any] | None:
    return None if bound is None else {"seconds": bound.seconds, "kind": bound.kind, "cut": bound.cut}


def bracket(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    routing: Routing = "ecmp",
    pipelined: bool | None = None,
    stages: Stages = None,
    root: str | int | None = None,
    channels: int | None = None,
    order: Order = None,
    background: ArrayLike | None = None,
) -> Bracket:
    """Return the cost of a collective between its lower bounds and its simulation.

    What would take more than some seconds is left out, by counts of ranks, phases and
    flows, and `Bracket.left_out` says so; `lower_bound` and `simulate` take more.

    Parameters
    ----------
    graph, kind_or_schedule, n_bytes, ranks, algorithm, routing, pipelined, stages, root, channels, order
        As `cost`, which is taken without software.
    background : (ranks, ranks) array, optional
        As `simulate`: bounds and cost too are those of what it leaves.

    Returns
    -------
    Bracket
        Its times are in order, up to rounding. Under forwarding tables no bound of the
        schedule is given: they need not keep to the path classes it counts on.

    Raises
    ------
    InputError
        As `cost`.

    Examples
    --------
    >>> import topo
    >>> boxes = topo.load("hgx-h100-8", 2, {"scale_out.latency": "0 s", "scale_up.latency": "0 s"})
    >>> bracket(boxes, "all_to_all", 16e9)
    Bracket(160 ms <= 160 ms <= 160 ms, gap 0 %: all_to_all)
    >>> bracket(boxes, "all_reduce", 1e9, algorithm="ring").schedule_bound.kind
    'cut'
    """
    graph, ranks = end_ports(graph, ranks)
    routes = beside(graph, background, routing)
    words: dict[str, Any] = {"ranks": ranks, "stages": stages, "root": root, "channels": channels, "order": order}
    algorithm = settled(routes, kind_or_schedule, n_bytes, algorithm, **words)
    plan = scheduled(routes.fabric, kind_or_schedule, n_bytes, algorithm, **words)
    plan = plan if pipelined is None else replace(plan, pipelined=pipelined)
    left_out: list[str] = []
    priced = cost(routes.fabric, plan, routing=routes)
    asked: Any = (kind_or_schedule, n_bytes) if isinstance(kind_or_schedule, str) else (plan,)
    given = words if isinstance(kind_or_schedule, str) else {}
    reached = _reached(routes, plan, priced)
    free = _bound(routes, plan, "any", left_out,
                  lambda: lower_bound(routes.given, *asked, scope="any", reached=reached, **given))  # fmt: skip
    own = _schedule_bound(routes, plan, left_out, reached)
    timeline = _timeline(routes, plan, left_out)
    in_turn = _schedule_bound(routes, replace(plan, pipelined=False), []) if plan.pipelined else own
    phases = tuple(_phases(in_turn, priced, timeline))
    convention = CONVENTION + (_OVERLAP if priced.pipelined else "")
    return Bracket(free, own, priced, timeline, phases, convention, tuple(left_out))


def _reached(routes: Routes, plan: Schedule, priced: Cost) -> float:
    """Return the time of the busiest link where there is one phase only [s]: no bound's transfer takes longer."""
    if sum(phase.repeats for phase in plan.phases) != 1:
        return np.inf
    return float((priced.loads / routes.fabric.bandwidth).max(initial=0.0))


def _schedule_bound(routes: Routes, plan: Schedule, left_out: list[str], reached: float = np.inf) -> Bound | None:
    # Switches of a schedule are numbered on the fabric of the routes, planes and all.
    fabric = routes.fabric if len(plan.switches) else routes.given
    return _bound(routes, plan, "schedule", left_out, lambda: lower_bound(fabric, plan, reached=reached))


def _bound(routes: Routes, plan: Schedule, scope: str, left_out: list[str], work: Callable[[], Bound]) -> Bound | None:
    """Work out a bound, or say why there is none."""
    why = _why_no_bound(routes, plan, scope)
    if not why:
        try:
            return work()
        except InputError as error:
            why = error.faults[0].rule
    left_out.append(f"lower bound ({_WHOSE[scope]}): {why}")
    return None


_WHOSE = {"any": "any algorithm", "schedule": "this schedule"}


def _why_no_bound(routes: Routes, plan: Schedule, scope: str) -> str:
    n, differ = len(plan.ranks), len({phase.key for phase in plan.phases})
    sizes = max((_count(phase)[1] for phase in plan.phases), default=0)
    if n > MOST_RANKS:
        return f"{n:,} ranks are more than the {MOST_RANKS:,} whose pairs a bound looks at"
    if scope == "schedule" and routes.walk is not None:
        return "forwarding tables need not keep to the path classes it counts on"
    if n * n * (differ if scope == "schedule" else 1) * min(sizes, _UNLIKE) > MOST_CELLS:
        what = f"{differ:,} phases of {n:,} ranks, {sizes:,} different sizes in one,"
        return f"{what} take too long here; collectives.lower_bound takes them"
    return ""


def _timeline(routes: Routes, plan: Schedule, left_out: list[str]) -> Timeline | None:
    why = _why_not_simulated(routes, plan)
    if not why:
        try:
            return simulated(routes, plan, MOST_PATHS)
        except TooManyPaths:
            why = f"a phase splits over more than {MOST_PATHS:,} paths"
    left_out.append(f"simulated: {why}, which takes too long here; rackbound simulate may take it")
    return None


def _why_not_simulated(routes: Routes, plan: Schedule) -> str:
    pairs = routes.hashing.queue_pairs if routes.hashing else 1
    counts = {phase.key: _count(phase) for phase in plan.phases}
    flows = pairs * sum(flows for flows, _ in counts.values())
    rows = pairs * sum(phase.repeats * counts[phase.key][0] for phase in plan.phases)
    if flows > MOST_FLOWS or rows > MOST_ROWS:
        return f"{rows:,} flows, {flows:,} of them in phases that differ"
    sizes, unlike = max(((sizes, flows) for flows, sizes in counts.values()), default=(0, 0))
    if sum(flows * sizes for flows, sizes in counts.values()) > MOST_UNLIKE:
        return f"{unlike:,} flows of {sizes:,} different sizes"
    return ""


def _count(phase: Phase) -> tuple[int, int]:
    """Return how many flows go over wires in a phase, and how many different sizes they have at most."""
    traffic = phase.traffic
    if isinstance(traffic, Outer | tuple):
        products = traffic if isinstance(traffic, tuple) else (traffic,)
        return sum(product.pairs for product in products), sum(product.sizes for product in products)
    if isinstance(traffic, Flows):
        return len(traffic.n_bytes), len(np.unique(traffic.n_bytes))
    wire = traffic[(traffic > 0) & ~np.eye(len(traffic), dtype=bool)]
    return len(wire), len(np.unique(wire))


def _phases(own: Bound | None, priced: Cost, timeline: Timeline | None) -> Iterator[PhaseBracket]:
    """Set every phase's times side by side."""
    first = 0
    for number, phase in enumerate(priced.phases):
        run = timeline.phases[first] if timeline else None
        first += phase.repeats
        lower = own.phases[number] if own and own.phases else None
        yield PhaseBracket(lower, phase.seconds, run.end - run.start if run else None, phase.repeats)
