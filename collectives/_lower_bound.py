"""What time does nothing beat: no routes of a schedule's transfers, or no algorithm at all?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._concurrent_flow import Flows, class_networks, whole_network
from collectives._cuts_all_reduce import partition_cut
from collectives._needs import DISTINCT, NEEDS, ROOTED, needs_of
from collectives._proofs import Proof, least_latency, proof_of, require_joined
from collectives._records import Outer, Schedule, plain
from collectives._schedule import Stages, schedule
from collectives._symmetry import classes_of
from topo import EDGE_KINDS, Fabric, Fault, InputError, Ranks, route, scale, suggest
from topo.units import format_quantity

__all__ = ["Bound", "bounds_if_doubled", "lower_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

SCOPES = ("schedule", "any")
#: Ranks up to which all pairs are held.
MOST_RANKS = 4096


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
    n_bytes: float | ArrayLike | Outer | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | None = None,
    scope: str = "schedule",
    stages: Stages = None,
    root: str | int | None = None,
) -> Bound:
    """Return a time that nothing beats, and the cut or the links that prove it.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    kind_or_schedule : str or Schedule
        A collective, or what `schedule` returns.
    n_bytes : float, (n, n) array or Outer
        nccl-tests' size [bytes], or the matrix of all_to_all_v; none with a Schedule.
    ranks, algorithm, stages
        As `schedule`.
    scope : {"schedule", "any"}
        schedule: the schedule's transfers, phase by phase, each pair on its path class,
        relayed by what that class lets relay, over any routes. any: every node passes on,
        over every class of links; switches reduce and multicast where the graph says so.
    root : str or int, optional
        Of broadcast, reduce, gather and scatter with scope "any"; the first rank by default.

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
    >>> lower_bound(topo.load("hgx-h100-8", 2, {"scale_out.latency": "0 s"}), "all_to_all", 16e9)
    Bound(160 ms: all_to_all over 16 ranks, direct, any routes; cut out of d0/gpu0: 1 scale-out link)
    """
    if scope not in SCOPES:
        raise InputError(Fault("scope", scope, "is not a known scope", suggest(str(scope), SCOPES)))
    fabric = Fabric.from_graph(graph)
    words = {"ranks": ranks, "stages": stages} | ({} if algorithm is None else {"algorithm": algorithm})
    if scope == "any":
        kind, size, numbers, proofs = _any(fabric, kind_or_schedule, n_bytes, words, root)
        return _summary(fabric, kind, "", scope, size, len(numbers), proofs)
    if isinstance(kind_or_schedule, Schedule):
        plan = kind_or_schedule
    else:
        plan = schedule(kind_or_schedule, fabric, _sized(n_bytes), **words)  # type: ignore[arg-type]
    _require_few(plan.ranks)
    proofs = _phase_proofs(fabric, plan)
    return _summary(fabric, plan.kind, plan.algorithm, scope, plan.n_bytes, len(plan.ranks), proofs)


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


def _sized(n_bytes: Any) -> Any:
    if n_bytes is None:
        raise InputError(Fault("n_bytes", None, "a collective needs a size", "Give bytes, as 1e9."))
    return n_bytes


def _require_few(ranks: Ints) -> None:
    if len(ranks) > MOST_RANKS:
        rule = f"are more than the {MOST_RANKS:,} whose pairs a bound looks at"
        raise InputError(Fault("ranks", len(ranks), rule, "Bound a part of it."))


# --- the schedule's own transfers ------------------------------------------------------------------------------------


def _transfers(plan: Schedule) -> Iterator[Floats]:
    """Bytes of each phase from row to column, none on the diagonal."""
    for phase in plan.phases:
        yield np.where(np.eye(len(plan.ranks), dtype=bool), 0.0, phase.n_bytes)


def _phase_proofs(fabric: Fabric, plan: Schedule) -> list[Proof]:
    routes = route(fabric)
    pair_class = routes.pair_class[np.ix_(plan.ranks, plan.ranks)]
    networks = class_networks(routes)
    late = np.full(pair_class.shape, np.inf)
    for number, network in enumerate(networks):
        if (pair_class == number).any():
            late = np.where(pair_class == number, least_latency(fabric, network, plan.ranks), late)
    alike = classes_of(fabric, plan.ranks)
    known: dict[bytes, Proof] = {}
    proofs = []
    for n_bytes in _transfers(plan):
        key = n_bytes.tobytes()
        if key not in known:
            parts = [(net, np.where(pair_class == number, n_bytes, 0.0)) for number, net in enumerate(networks)]
            flows = Flows(fabric, plan.ranks, tuple(part for part in parts if part[1].any()), alike)
            require_joined(fabric, plan.ranks, (n_bytes > 0) & (pair_class == -1))
            known[key] = proof_of(flows, late, n_bytes > 0)
        proofs.append(known[key])
    return proofs


# --- no algorithm given ----------------------------------------------------------------------------------------------


def _any(
    fabric: Fabric, given: str | Schedule, n_bytes: Any, words: dict[str, Any], root: str | int | None
) -> tuple[str, float, Ints, list[Proof]]:
    kind, size, ranks, fixed = _meaning(fabric, given, n_bytes, words, root)
    _require_few(ranks)
    n, at = len(ranks), _root(fabric, ranks, root)
    if kind in DISTINCT:
        fixed = DISTINCT[kind](n, size, at)
    network = whole_network(fabric)
    late = least_latency(fabric, network, ranks)
    apart = ~np.eye(n, dtype=bool)
    best, alike = Proof(), classes_of(fabric, ranks)
    for need in [fixed] if fixed is not None else needs_of(fabric, kind, size, ranks, at, alike):
        require_joined(fabric, ranks, np.isinf(late) & (need > 0))
        proof = proof_of(Flows(fabric, ranks, ((network, need),), alike), late, need > 0, apart)
        best = max(best, proof, key=lambda one: one.seconds)
    if kind == "all_reduce" and n > 1:
        cut = partition_cut(fabric, ranks, size)
        proof = Proof(float(late[apart].min()), cut.seconds, "partition", cut)
        best = max(best, proof, key=lambda one: one.seconds)
    return kind, size, ranks, [best]


def _meaning(
    fabric: Fabric, given: str | Schedule, n_bytes: Any, words: dict[str, Any], root: str | int | None
) -> tuple[str, float, Ints, Floats | None]:
    """Kind, size and ranks of what is to be done, and its bytes where they are not the kind's."""
    known = {**NEEDS, **DISTINCT}
    if isinstance(given, Schedule):
        if given.kind in known and not (given.kind in ROOTED and root is None):
            return given.kind, given.n_bytes, given.ranks, None
        if len(given.phases) == 1 and given.kind not in known:
            return given.kind, given.n_bytes, given.ranks, next(_transfers(given))
        rule = "does not say what must reach whom, only how one algorithm does it"
        raise InputError(Fault("schedule", repr(given), rule, "Give the kind, n_bytes and root=."))
    if given in known:
        return given, _number(_sized(n_bytes)), fabric.rank_numbers(words["ranks"]), None
    plan = schedule(given, fabric, _sized(n_bytes), ranks=words["ranks"], stages=words["stages"])
    return plan.kind, plan.n_bytes, plan.ranks, next(_transfers(plan))


def _number(n_bytes: Any) -> float:
    if isinstance(n_bytes, int | float | np.number) and not isinstance(n_bytes, bool) and 0 < n_bytes < np.inf:
        return float(n_bytes)
    raise InputError(Fault("n_bytes", n_bytes, "must be a finite number of bytes above zero", "Give bytes, as 1e9."))


def _root(fabric: Fabric, ranks: Ints, root: str | int | None) -> int:
    if root is None:
        return 0
    one: Any = [root]
    place = np.flatnonzero(ranks == fabric.rank_numbers(one)[0])
    if not len(place):
        raise InputError(Fault("root", root, "does not take part", "Name one of the ranks."))
    return int(place[0])


def _summary(
    fabric: Fabric, kind: str, algorithm: str, scope: str, n_bytes: float, n_ranks: int, proofs: list[Proof]
) -> Bound:
    longest = max(proofs, key=lambda proof: proof.seconds)
    latency, transfer = sum(proof.latency for proof in proofs), sum(proof.transfer for proof in proofs)
    seconds = latency + transfer
    notes = dict.fromkeys(note for proof in proofs for note in proof.notes)
    return Bound(
        seconds, latency, transfer, longest.kind, longest.cut.name, longest.cut.n_bytes, longest.cut.bandwidth,
        {name: float(part) for name, part in longest.prices}, scope, kind, algorithm, n_bytes, n_ranks,
        n_bytes / seconds if seconds else 0.0, (*fabric.assumptions, *notes),
    )  # fmt: skip
