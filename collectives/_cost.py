"""What does a collective cost on this graph, hop by hop?"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._in_network import link_loads
from collectives._kinds import KINDS
from collectives._loads import PhaseLoads, phase_loads
from collectives._moe import MoE
from collectives._msccl import Algorithm
from collectives._profile import Profile, load_profile
from collectives._reaching import with_cure
from collectives._records import Flows, Outer, Phase, Schedule
from collectives._request import end_ports, fallen_through, scheduled
from collectives._results import ClassLoad, Cost, PhaseCost
from collectives._schedule import Order, Stages
from collectives._traffic import NoPath
from topo import EDGE_KINDS, Fabric, InputError, Ranks, Routes, Routing, route

__all__ = ["cost", "settled"]

Floats = NDArray[np.float64]


def cost(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    routing: Routing = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
    pipelined: bool | None = None,
    stages: Stages = None,
    root: str | int | None = None,
    channels: int | None = None,
    order: Order = None,
) -> Cost:
    """Return the time of a collective and what every link carries.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    kind_or_schedule : str or Schedule
        A kind that `schedule` knows, or its result.
    n_bytes : float, (n, n) array, Outer or MoE
        nccl-tests' size [bytes], the matrix of all_to_all_v, or the tokens of moe_dispatch
        and moe_combine; none with a Schedule. Zero bytes take no time: nothing is sent.
    algorithm : str or Algorithm, optional
        As `schedule`; or "best": of all that apply the one that takes least time, the
        times of the others in `Cost.tried`.
    ranks, stages, root, channels, order
        As `schedule`. With ``ranks="ports"`` every end port of the fabric is a rank; its edges
        state the `ports` they join.
    routing : str, Hash, Tables or Routes, optional
        A routing rule: a row of `topo.RULES`, a hash with its seed, forwarding tables, or
        routes worked out before for this very fabric.
    profile : str, path or Profile, optional
        Software: a name of `list_profiles`, a file, or what `load_profile` returns. "ideal" is
        the wires alone. With any other the time is that profile's prediction, of the
        algorithm its library takes where none is named; loads and bottleneck stay those of
        the wires.
    pipelined : bool, optional
        Whether phases overlap; by default as the algorithm says.

    Returns
    -------
    Cost
        Time of a phase: the maximum over flows and their paths of (path latency + bytes
        the flow puts on that path / narrowest link), and over links of (load / bandwidth
        + least latency among its flows). Phases add up. Pipelined: the maximum over links
        of their load in all phases / bandwidth, and the latencies of all phases; never
        more than one after the other.

    Raises
    ------
    InputError
        Bad graph, kind, sizes, ranks or rule; ranks that no path joins.

    Examples
    --------
    >>> import topo
    >>> cost(topo.load("gb200-nvl72", overrides={"scale_up.latency": "0 s"}), "all_to_all", 72e9).seconds
    0.07888888888888888
    >>> cost(topo.load("hgx-h100-8"), "all_reduce", 1e9, algorithm="best").algorithm
    'nvls'
    """
    software = load_profile(profile)
    graph, ranks = end_ports(graph, ranks)
    routes = route(graph, routing)
    words: dict[str, Any] = {"ranks": ranks, "stages": stages, "root": root, "channels": channels, "order": order}

    def priced(name: str | Algorithm | None) -> Cost:
        plan = scheduled(routes.fabric, kind_or_schedule, n_bytes, name, **words)
        try:
            found = _priced(routes, plan, pipelined)
        except NoPath as error:
            error.plan = plan
            raise
        if software.law == "ideal":
            return found
        from collectives._profiled import profiled  # which costs wires of its own

        chosen = name is not None or isinstance(kind_or_schedule, Schedule)
        return profiled(found, routes, plan.ranks, n_bytes, software, chosen=chosen)

    try:
        if algorithm == "best" and isinstance(kind_or_schedule, str):
            return _best(kind_or_schedule, priced)
        return priced(algorithm)
    except NoPath as lost:
        raise with_cure(lost, routes, lambda plan: _priced(routes, plan, pipelined).seconds) from None


def settled(
    routes: Routes,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None,
    algorithm: str | Algorithm | None,
    **words: Any,
) -> str | Algorithm | None:
    """Return the algorithm, and in place of "best" the one that won; `words` are other options of `cost`."""
    if algorithm != "best":
        return algorithm
    return cost(routes.fabric, kind_or_schedule, n_bytes, algorithm="best", routing=routes, **words).algorithm


def _best(kind: str, priced: Callable[[str], Cost]) -> Cost:
    """Return the cheapest of all algorithms that apply, and say how it did against the others."""
    if kind not in KINDS:
        priced("direct")  # says what is wrong with the kind
    tried, errors = {}, []
    for name in KINDS[kind].algorithms:
        try:
            tried[name] = priced(name)
        except InputError as error:
            errors.append(error)
    if not tried:
        raise next((error for error in errors if isinstance(error, NoPath)), errors[0])
    first, *others = sorted(tried, key=lambda name: tried[name].seconds)
    found = tried[first]
    line = f"best of {len(tried)} algorithms that apply: {first}"
    if others and found.seconds:
        times = f"{tried[others[0]].seconds / found.seconds:.4g}"
        line += f", {'as fast' if times == '1' else f'{times} times as fast'} as the next, {others[0]}"
    seconds = {name: one.seconds for name, one in tried.items()}
    return replace(found, tried=seconds, assumptions=(*found.assumptions, line))


def _priced(routes: Routes, plan: Schedule, pipelined: bool | None) -> Cost:
    """Cost every distinct phase once, and add up."""
    terms: list[PhaseCost] = []
    loads = np.zeros(len(routes.fabric.source))
    known: dict[Any, tuple[Floats, PhaseCost]] = {}
    for phase in plan.phases:
        key = phase.key
        if key not in known:
            result = _phase_loads(routes, plan, phase)
            term = _binding(routes.fabric, result)
            known[key] = result.loads, replace(term, classes=_class_loads(routes.fabric, result.loads, term.seconds))
        carried, term = known[key]
        terms.append(replace(term, repeats=phase.repeats))
        loads += phase.repeats * carried
    overlap = plan.pipelined if pipelined is None else pipelined
    return _summary(routes, plan, terms, loads, overlap)


def _phase_loads(routes: Routes, plan: Schedule, phase: Phase) -> PhaseLoads:
    traffic = phase.traffic
    if not isinstance(traffic, Flows):
        return phase_loads(routes, plan.ranks, traffic)
    # Only the ends of flows: a step of a chain over 1,024 ranks has a few.
    rows = np.union1d(traffic.source, traffic.target)
    nodes = np.concatenate([routes.fabric.ranks[plan.ranks], plan.switches])[rows]
    source, target = (np.searchsorted(rows, ends) for ends in (traffic.source, traffic.target))
    flows = Flows(source, target, traffic.n_bytes, len(rows))
    if (rows >= len(plan.ranks)).any():
        return link_loads(routes.fabric, nodes, flows)
    return phase_loads(routes, plan.ranks[rows], flows)


def _binding(fabric: Fabric, phase: PhaseLoads) -> PhaseCost:
    """Find what binds one phase."""
    busy = np.flatnonzero(phase.loads > 0)
    if not len(busy):
        return PhaseCost()
    transfer = phase.loads[busy] / fabric.bandwidth[busy]
    # Rounding may not decide between links that are equal: the first within 1e-12 binds.
    seconds = transfer + phase.least_latency[busy]
    i = int(np.flatnonzero(seconds >= seconds.max() * (1 - 1e-12))[0])
    link, path = int(busy[i]), phase.path
    if path.seconds > seconds[i] * (1 + 1e-12):
        labels = fabric.rank_labels
        return PhaseCost(path.latency, path.transfer, f"{labels[path.source]} => {labels[path.target]}", "path")
    kind = EDGE_KINDS[fabric.link_kind[link]]
    return PhaseCost(float(phase.least_latency[link]), float(transfer[i]), fabric.link_label(link), kind)


def _overlapped(fabric: Fabric, terms: list[PhaseCost], loads: Floats) -> PhaseCost:
    """All phases at once: the busiest link, after the latencies of all phases."""
    transfer = loads / fabric.bandwidth
    link = int(np.flatnonzero(transfer >= transfer.max() * (1 - 1e-12))[0])
    latency = sum(term.repeats * term.latency_seconds for term in terms)
    return PhaseCost(latency, float(transfer[link]), fabric.link_label(link), EDGE_KINDS[fabric.link_kind[link]])


def _summary(routes: Routes, plan: Schedule, terms: list[PhaseCost], loads: Floats, pipelined: bool) -> Cost:
    latency = sum((term.repeats * term.latency_seconds for term in terms), 0.0)
    transfer = sum((term.repeats * term.bandwidth_seconds for term in terms), 0.0)
    longest = max(terms, key=lambda term: term.repeats * term.seconds, default=PhaseCost())
    if pipelined and len(terms) > 0 and loads.any():
        overlapped = _overlapped(routes.fabric, terms, loads)
        if overlapped.seconds < latency + transfer:
            longest, latency, transfer = overlapped, overlapped.latency_seconds, overlapped.bandwidth_seconds
    seconds = latency + transfer
    algbw = plan.n_bytes / seconds if seconds else 0.0
    remote, of_sent = _remote_shares(routes.fabric, plan)
    return Cost(
        seconds=seconds, latency_seconds=latency, bandwidth_seconds=transfer,
        bottleneck=longest.bottleneck, bottleneck_kind=longest.bottleneck_kind,
        algbw=algbw, busbw=algbw * plan.busbw_factor, loads=loads,
        classes=_class_loads(routes.fabric, loads, seconds), phases=tuple(terms),
        remote_share=remote, remote_share_of_sent=of_sent,
        routing=routes.rule, algorithm=plan.algorithm, kind=plan.kind, pipelined=pipelined, tried={},
        n_bytes=plan.n_bytes, n_ranks=len(plan.ranks), profile="ideal",
        assumptions=(*routes.fabric.assumptions, *routes.notes, *plan.assumptions, *fallen_through(routes, plan)),
    )  # fmt: skip


def _remote_shares(fabric: Fabric, plan: Schedule) -> tuple[float, float]:
    home = np.concatenate([fabric.rank_domain[plan.ranks], fabric.domain[plan.switches]])
    totals = [phase.totals(home) for phase in plan.phases]
    total, kept, remote = (sum(column) for column in zip((0.0, 0.0, 0.0), *totals, strict=True))
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
