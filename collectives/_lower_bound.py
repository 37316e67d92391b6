"""What time does nothing beat: no routes of a schedule's transfers, or no algorithm at all?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._concurrent_flow import Demand, class_networks, whole_network
from collectives._cuts import Cut
from collectives._cuts_all_reduce import partition_cut
from collectives._cuts_moe import moe_proof
from collectives._in_network import link_loads
from collectives._moe import MoE
from collectives._msccl import Algorithm
from collectives._needs import meaning_of, needs_of
from collectives._proofs import Proof, least_latency, proof_of, require_joined
from collectives._records import Flows, Outer, Schedule
from collectives._request import scheduled
from collectives._results import plain
from collectives._schedule import Order, Stages
from collectives._symmetry import classes_of
from topo import EDGE_KINDS, Fabric, Fault, InputError, Ranks, route, scale, suggest
from topo.units import format_quantity

__all__ = ["Bound", "bounds_if_doubled", "lower_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

SCOPES = ("schedule", "any")
#: Ranks up to which all pairs are held.
MOST_RANKS = 4096
#: Different phases that are bound one by one.
_MOST_PHASES = 64


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """A time that is proven to be needed, and what proves it.

    Attributes
    ----------
    seconds : float
        Least time [s].
    latency_seconds, bandwidth_seconds : float
        Its two parts [s].
    kind : {"cut", "partition", "prices", "latency", "none"}
        cut: bytes over a cut's bandwidth. partition: several cuts at once (all-reduce).
        prices: maximum concurrent flow, proven by prices on links. latency: one pair's
        least path latency. none: nothing is sent.
    cut : str
        The binding cut, priced link, or pair.
    cut_bytes, cut_bandwidth : float
        What must cross it [bytes] and what can [bytes/s]; 0 and infinite where no cut binds.
    prices : dict
        With kind "prices": class of links, by its first one -> its part of the whole price.
    scope : {"schedule", "any"}
        Whether the schedule's transfers and relays are given, or nothing is.
    collective, algorithm : str
        Names; no algorithm with scope "any".
    n_bytes : float
        nccl-tests' size [bytes].
    n_ranks : int
        Ranks taking part.
    algbw : float
        n_bytes / seconds: the most any run can show [bytes/s].
    phases : tuple of float
        With scope "schedule": least time of every phase in order, one repeat of it [s]; none
        where phases overlap, or more than 64 differ, and their sum is bound as one.
    assumptions : tuple of str
        What was filled in or left out.
    """

    seconds: float
    latency_seconds: float
    bandwidth_seconds: float
    kind: str
    cut: str
    cut_bytes: float
    cut_bandwidth: float
    prices: dict[str, float]
    scope: str
    collective: str
    algorithm: str
    n_bytes: float
    n_ranks: int
    algbw: float
    phases: tuple[float, ...]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        whose = "any algorithm" if self.scope == "any" else f"{self.algorithm}, any routes"
        time = format_quantity(self.seconds, "seconds")
        return f"Bound({time}: {self.collective} over {self.n_ranks} ranks, {whose}; {self.kind} {self.cut})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        result: dict[str, Any] = plain(self)
        return result


def lower_bound(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    scope: str = "schedule",
    stages: Stages = None,
    root: str | int | None = None,
    channels: int | None = None,
    order: Order = None,
    reached: float = np.inf,
) -> Bound:
    """Return a time that nothing beats, and the cut or the links that prove it.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    kind_or_schedule : str or Schedule
        A collective, or what `schedule` returns.
    n_bytes : float, (n, n) array, Outer or MoE
        nccl-tests' size [bytes], the matrix of all_to_all_v, or the tokens of moe_dispatch
        and moe_combine; none with a Schedule.
    ranks, algorithm, stages, root, channels, order
        As `schedule`.
    scope : {"schedule", "any"}
        schedule: the schedule's transfers, phase by phase, each pair on its path class,
        relayed by what that class lets relay, over any routes. any: every node passes on,
        over every class of links; switches reduce and multicast where the graph says so.
    reached : float, optional
        Transfer time of the collective's only phase on some routes [s], as its cost has found
        it: a cut that proves as much is not improved upon.

    Returns
    -------
    Bound
        Never more than `cost` of any algorithm (scope "any"), of this schedule under any
        routing rule that keeps to the path classes (scope "schedule").

    Raises
    ------
    InputError
        Bad graph, kind, sizes or ranks; ranks that no path of the scope joins.

    Examples
    --------
    >>> import topo
    >>> boxes = topo.load("hgx-h100-8", 2, {"scale_out.latency": "0 s"})
    >>> lower_bound(boxes, "all_to_all", 16e9)
    Bound(160 ms: all_to_all over 16 ranks, direct, any routes; cut out of d0/gpu0: 1 scale-out link)
    >>> lower_bound(boxes, "all_gather", 16e9, scope="any").cut
    'into d0/gpu0: 2 scale-up and scale-out links'
    """
    if scope not in SCOPES:
        raise InputError(Fault("scope", scope, "is not a known scope", suggest(str(scope), SCOPES)))
    fabric = Fabric.from_graph(graph)
    given = algorithm if scope == "schedule" else None
    if scope == "any" and not isinstance(kind_or_schedule, Schedule):
        given, channels, order = "direct", None, None  # says on any graph what must reach whom
    words: dict[str, Any] = {"ranks": ranks, "stages": stages, "root": root, "channels": channels, "order": order}
    plan = scheduled(fabric, kind_or_schedule, n_bytes, given, **words)
    if len(plan.ranks) > MOST_RANKS:
        rule = f"are more than the {MOST_RANKS:,} whose pairs a bound looks at"
        raise InputError(Fault("ranks", len(plan.ranks), rule, "Bound a part of it."))
    if scope == "any":
        return _summary(fabric, plan, scope, [(_any(fabric, plan, n_bytes, reached), 1)], [])
    transfers, which = _transfers(plan)
    return _summary(fabric, plan, scope, _by_phase(fabric, plan, transfers, reached), which)


def bounds_if_doubled(graph: nx.Graph[str] | Fabric, *arguments: Any, **words: Any) -> dict[str, Bound]:
    """Return the bound with all links of one kind twice as fast, for every kind there is.

    Each is solved anew: a price says what the next byte/s buys, not what twice as many do.

    Parameters
    ----------
    graph, *arguments, **words
        As `lower_bound`.

    Returns
    -------
    dict
        Kind of link -> Bound.

    Examples
    --------
    >>> import topo
    >>> fast = bounds_if_doubled(
    ...     topo.load("hgx-h100-8", 2, {"scale_out.latency": "0 s"}), "all_to_all", 16e9
    ... )
    >>> {kind: round(bound.seconds, 6) for kind, bound in fast.items()}
    {'scale-up': 0.16, 'scale-out': 0.08}
    """
    fabric = Fabric.from_graph(graph)
    kinds = [kind for number, kind in enumerate(EDGE_KINDS) if (fabric.link_kind == number).any()]
    return {kind: lower_bound(scale(fabric, kind=kind, bandwidth=2.0), *arguments, **words) for kind in kinds}


# --- the schedule's own transfers ------------------------------------------------------------------------------------


def _transfers(plan: Schedule) -> tuple[list[tuple[Floats, int]], list[int]]:
    """Bytes of phases that differ, none on the diagonal, how often each runs, and which of them every phase is.

    What takes T1 and T2 one after the other could all be sent in T1 + T2: of phases that
    overlap, or are too many, the sum is bound as one.
    """
    known: dict[bytes, tuple[Floats, int]] = {}
    keys = []
    for phase in plan.phases:
        n_bytes = np.where(np.eye(len(phase.n_bytes), dtype=bool), 0.0, phase.n_bytes)
        keys.append(key := n_bytes.tobytes())
        known[key] = n_bytes, phase.repeats + (known[key][1] if key in known else 0)
    if known and (plan.pipelined or len(known) > _MOST_PHASES):
        return [(np.sum([times * n_bytes for n_bytes, times in known.values()], axis=0), 1)], []
    order = list(known)
    return list(known.values()), [order.index(key) for key in keys]


def _by_phase(
    fabric: Fabric, plan: Schedule, transfers: list[tuple[Floats, int]], reached: float
) -> list[tuple[Proof, int]]:  # fmt: skip
    """Bound every phase, and say how often it runs."""
    if len(plan.switches):
        return [(_by_link(fabric, plan, n_bytes), times) for n_bytes, times in transfers]
    pair_class = route(fabric).pair_class[np.ix_(plan.ranks, plan.ranks)]
    networks = class_networks(fabric)
    late = np.full(pair_class.shape, np.inf)
    for number, network in enumerate(networks):
        if (pair_class == number).any():
            late = np.where(pair_class == number, least_latency(fabric, network, plan.ranks), late)
    alike, found = classes_of(fabric, plan.ranks), []
    for n_bytes, times in transfers:
        require_joined(fabric, plan.ranks, (n_bytes > 0) & (pair_class == -1))
        parts = [(net, np.where(pair_class == number, n_bytes, 0.0)) for number, net in enumerate(networks)]
        demand = Demand(fabric, plan.ranks, tuple(part for part in parts if part[1].any()), alike)
        found.append((proof_of(demand, late, n_bytes > 0, paths=not plan.pipelined, reached=reached), times))
    return found


def _by_link(fabric: Fabric, plan: Schedule, n_bytes: Floats) -> Proof:
    """Bound flows to and from switches: each has one link."""
    nodes = np.concatenate([fabric.ranks[plan.ranks], plan.switches])
    source, target = np.nonzero(n_bytes)
    if not len(source):
        return Proof()
    found = link_loads(fabric, nodes, Flows(source, target, n_bytes[source, target], len(nodes)))
    link = int(np.argmax(found.loads / fabric.bandwidth))
    cut = Cut(float(found.loads[link]), float(fabric.bandwidth[link]), fabric.link_label(link))
    return Proof(float(found.least_latency.min()), cut.seconds, "cut", cut)


# --- no algorithm given ----------------------------------------------------------------------------------------------


def _any(fabric: Fabric, plan: Schedule, n_bytes: object, reached: float) -> Proof:
    if isinstance(n_bytes, MoE):
        return moe_proof(fabric, plan, n_bytes)
    ranks, meaning, network = plan.ranks, meaning_of(plan), whole_network(fabric)
    late, apart = least_latency(fabric, network, ranks), ~np.eye(len(ranks), dtype=bool)
    best, alike = Proof(), classes_of(fabric, ranks)
    for need in needs_of(fabric, ranks, meaning, alike):
        require_joined(fabric, ranks, np.isinf(late) & (need > 0))
        proof = proof_of(Demand(fabric, ranks, ((network, need),), alike), late, need > 0, apart, reached=reached)
        best = max(best, proof, key=lambda one: one.seconds)
    if meaning.reduced and len(ranks) > 1:
        cut = partition_cut(fabric, ranks, meaning.reduced)
        proof = Proof(float(late[apart].min()), cut.seconds, "partition", cut)
        best = max(best, proof, key=lambda one: one.seconds)
    return best


def _summary(fabric: Fabric, plan: Schedule, scope: str, proofs: list[tuple[Proof, int]], which: list[int]) -> Bound:
    longest = max((proof for proof, _ in proofs), key=lambda proof: proof.seconds, default=Proof())
    latency = sum((times * proof.latency for proof, times in proofs), 0.0)
    transfer = sum((times * proof.transfer for proof, times in proofs), 0.0)
    seconds = latency + transfer
    notes = dict.fromkeys((*plan.assumptions, *(note for proof, _ in proofs for note in proof.notes)))
    return Bound(
        seconds, latency, transfer, longest.kind, longest.cut.name, longest.cut.n_bytes, longest.cut.bandwidth,
        {name: float(part) for name, part in longest.prices}, scope, plan.kind,
        plan.algorithm if scope == "schedule" else "", plan.n_bytes, len(plan.ranks),
        plan.n_bytes / seconds if seconds else 0.0, tuple(proofs[i][0].seconds for i in which),
        (*fabric.assumptions, *notes),
    )  # fmt: skip
