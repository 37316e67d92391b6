"""What does a collective cost on this graph, hop by hop?"""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._loads import PhaseLoads, phase_loads
from collectives._records import ClassLoad, Cost, Outer, Schedule
from collectives._schedule import Stages, schedule
from topo import EDGE_KINDS, Fabric, Fault, InputError, Ranks, Routes, Routing, route, suggest

__all__ = ["cost"]

Floats = NDArray[np.float64]
Term = tuple[float, float, str, str]


def cost(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str = "direct",
    routing: Routing = "ecmp",
    profile: str = "ideal",
    stages: Stages = None,
) -> Cost:
    """Return the time of a collective and what every link carries.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    kind_or_schedule : str or Schedule
        A kind that `schedule` knows, or its result.
    n_bytes : float, (n, n) array or Outer
        nccl-tests' size [bytes], or the matrix of all_to_all_v; none with a Schedule.
    ranks, algorithm, stages
        As `schedule`. With ``ranks="ports"`` every end port of the fabric is a rank; its edges
        state the `ports` they join.
    routing : str, Hash, Tables or Routes, optional
        A routing rule: a row of `topo.RULES`, a hash with its seed, forwarding tables, or
        routes worked out before for this very fabric.
    profile : str, optional
        Software profile; "ideal" adds nothing.

    Returns
    -------
    Cost
        Time of a phase: the maximum over flows and their paths of (path latency + bytes
        the flow puts on that path / narrowest link), and over links of (load / bandwidth
        + least latency among its flows).

    Raises
    ------
    InputError
        Bad graph, kind, sizes, ranks or rule; ranks that no path joins.

    Examples
    --------
    >>> import topo
    >>> cost(topo.load("gb200-nvl72", overrides={"scale_up.latency": "0 s"}), "all_to_all", 72e9).seconds
    0.07888888888888888
    """
    if profile not in PROFILES:
        raise InputError(Fault("profile", profile, "is not a known profile", suggest(profile, PROFILES)))
    if isinstance(ranks, str):
        graph, ranks = _end_ports(graph, ranks), None
    routes = route(graph, routing)
    if isinstance(kind_or_schedule, Schedule):
        plan = kind_or_schedule
        _require_only(plan, routes.fabric, n_bytes=n_bytes, ranks=ranks, stages=stages)
    else:
        if n_bytes is None:
            raise InputError(Fault("n_bytes", None, f"{kind_or_schedule} needs a size", "Give bytes, as 1e9."))
        plan = schedule(kind_or_schedule, routes.fabric, n_bytes, ranks=ranks, algorithm=algorithm, stages=stages)
    terms, loads = [], np.zeros(len(routes.fabric.source))
    for phase in plan.phases:
        result = phase_loads(routes, plan.ranks, phase.traffic)
        terms.append(_binding(routes.fabric, result))
        loads += result.loads
    return _summary(routes, plan, terms, loads, profile)


#: Software profiles; "ideal" is the wires alone.
PROFILES = ("ideal",)


def _end_ports(graph: nx.Graph[str] | Fabric, ranks: str) -> Fabric:
    if ranks != "ports":
        raise InputError(Fault("ranks", ranks, 'is one name: the only one taken is "ports"', "Give a list of ranks."))
    return Fabric.from_graph(graph).by_port()


def _require_only(plan: Schedule, fabric: Fabric, **given: object) -> None:
    """Refuse what a Schedule settles already, and ranks this topology does not have."""
    faults = [
        Fault(name, "given", "a Schedule has its own", "Leave it out.")
        for name, value in given.items()
        if value is not None
    ]
    if int(plan.ranks.max(initial=-1)) >= fabric.n_ranks:
        rule = f"names rank {int(plan.ranks.max())}, and the topology has {fabric.n_ranks}"
        faults.append(Fault("schedule", repr(plan), rule, "Make the schedule for this topology."))
    if faults:
        raise InputError(*faults)


def _binding(fabric: Fabric, phase: PhaseLoads) -> Term:
    """Latency and transfer seconds of what binds one phase, its name and its kind."""
    busy = np.flatnonzero(phase.loads > 0)
    if not len(busy):
        return 0.0, 0.0, "nothing is sent", "none"
    transfer = phase.loads[busy] / fabric.bandwidth[busy]
    # Rounding may not decide between links that are equal: the first within 1e-12 binds.
    seconds = transfer + phase.least_latency[busy]
    i = int(np.flatnonzero(seconds >= seconds.max() * (1 - 1e-12))[0])
    link, path = int(busy[i]), phase.path
    if path.seconds > seconds[i] * (1 + 1e-12):
        labels = fabric.rank_labels
        return path.latency, path.transfer, f"{labels[path.source]} => {labels[path.target]}", "path"
    return (
        float(phase.least_latency[link]),
        float(transfer[i]),
        fabric.link_label(link),
        EDGE_KINDS[fabric.link_kind[link]],
    )


def _summary(routes: Routes, plan: Schedule, terms: list[Term], loads: Floats, profile: str) -> Cost:
    latency, transfer = sum(term[0] for term in terms), sum(term[1] for term in terms)
    seconds = latency + transfer
    longest = max(terms, key=lambda term: term[0] + term[1])
    algbw = plan.n_bytes / seconds if seconds else 0.0
    remote, of_sent = _remote_shares(routes.fabric, plan)
    return Cost(
        seconds=seconds, latency_seconds=latency, bandwidth_seconds=transfer,
        bottleneck=longest[2], bottleneck_kind=longest[3],
        algbw=algbw, busbw=algbw * plan.busbw_factor, loads=loads,
        classes=_class_loads(routes.fabric, loads, seconds),
        remote_share=remote, remote_share_of_sent=of_sent,
        routing=routes.rule, algorithm=plan.algorithm, kind=plan.kind,
        n_bytes=plan.n_bytes, n_ranks=len(plan.ranks), profile=profile,
        assumptions=(*routes.fabric.assumptions, *routes.notes, *_fallen_through(routes, plan)),
    )  # fmt: skip


def _remote_shares(fabric: Fabric, plan: Schedule) -> tuple[float, float]:
    totals = [phase.totals(fabric.rank_domain[plan.ranks]) for phase in plan.phases]
    total, kept, remote = (sum(column) for column in zip(*totals, strict=True))
    return remote / total if total else 0.0, remote / (total - kept) if total > kept else 0.0


def _class_loads(fabric: Fabric, loads: Floats, seconds: float) -> dict[str, ClassLoad]:
    found = {}
    for number, kind in enumerate(EDGE_KINDS):
        links = np.flatnonzero(fabric.link_kind == number)
        if not len(links):
            continue
        busy = loads[links] / fabric.bandwidth[links]
        busiest = links[int(np.flatnonzero(busy >= busy.max() * (1 - 1e-12))[0])]
        carried = float(loads[links].sum())
        capacity = float(fabric.bandwidth[links].sum()) * seconds
        found[kind] = ClassLoad(
            n_bytes=carried, utilisation=carried / capacity if capacity else 0.0,
            busiest=fabric.link_label(int(busiest)), busiest_seconds=float(busy.max()),
        )  # fmt: skip
    return found


def _fallen_through(routes: Routes, plan: Schedule) -> list[str]:
    """Say how many pairs inside one host have no scale-up path."""
    if not routes.any_fallen:
        return []
    host = routes.fabric.host[routes.fabric.ranks[plan.ranks]]
    together = (host[:, None] == host[None, :]) & (host[:, None] >= 0)
    pair_class = routes.pair_class[np.ix_(plan.ranks, plan.ranks)]
    sent = np.logical_or.reduce([phase.n_bytes > 0 for phase in plan.phases])
    fallen = int((together & sent & (pair_class > 0)).sum())
    return [f"{fallen} ordered pairs inside a host have no scale-up path and take the next class"] if fallen else []
