"""How long does a collective take if its flows share the links max-min fairly?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._background import beside
from collectives._cost import settled
from collectives._filling import TIE, Filled
from collectives._in_network import one_link
from collectives._msccl import Algorithm
from collectives._records import Flows, Outer, Schedule
from collectives._request import end_ports, fallen_through, scheduled
from collectives._schedule import Order, Stages
from collectives._sharing import Gates, gated, shared
from collectives._subflows import MOST, Subflows, subflows
from collectives._timeline import PhaseTime, Timeline
from collectives._traffic import no_path
from topo import Fabric, Ranks, Routes, Routing

__all__ = ["simulate", "simulated"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Times at which link use is noted, and cells (times x links) in all.
_SAMPLES, _CELLS = 512, 8_000_000


def simulate(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    routing: Routing = "ecmp",
    barriers: bool = True,
    background: ArrayLike | None = None,
    stages: Stages = None,
    root: str | int | None = None,
    channels: int | None = None,
    order: Order = None,
) -> Timeline:
    """Return when every flow of a collective ends, and how busy the links are meanwhile.

    A flow that the routing rule splits is one fixed subflow a path. Subflows share the links
    max-min fairly, worked out again whenever one starts or ends; the last byte arrives a
    path's latency after it was sent.

    Parameters
    ----------
    graph, kind_or_schedule, n_bytes, ranks, algorithm, routing, stages, root, channels, order
        As `cost`.
    barriers : bool, optional
        Whether a phase starts when the one before has ended everywhere. If not, a rank
        sends on as soon as all it sends and receives in earlier phases has arrived.
    background : (ranks, ranks) array, optional
        Other jobs' steady traffic [bytes/s] from every rank of the graph (row) to every other
        one. It goes by the same rule and has the right of way: the collective shares what
        it leaves of every link. Where a rule splits by capacity, by that.

    Returns
    -------
    Timeline
        Never shorter than `cost` of a single phase.

    Raises
    ------
    InputError
        As `cost`; more paths than can be listed; a background that fills a link.

    Examples
    --------
    >>> import topo
    >>> simulate(topo.load("gb200-nvl72", overrides={"scale_up.latency": "0 s"}), "all_to_all", 72e9)
    Timeline(78.89 ms, busbw 900 GB/s: all_to_all over 72 ranks, 1 phases with barriers, 5112 flows on 5112 paths,
        routing ecmp)
    """
    graph, ranks = end_ports(graph, ranks)
    routes = beside(graph, background, routing)
    words: dict[str, Any] = {"ranks": ranks, "stages": stages, "root": root, "channels": channels, "order": order}
    algorithm = settled(routes, kind_or_schedule, n_bytes, algorithm, **words)
    plan = scheduled(routes.fabric, kind_or_schedule, n_bytes, algorithm, **words)
    return simulated(routes, plan, MOST, barriers=barriers)


def simulated(routes: Routes, plan: Schedule, most: int, *, barriers: bool = True) -> Timeline:
    """Simulate a schedule whose phases go over `most` paths each at most."""
    phases = _phases(routes, plan, most)
    in_turn = barriers or not any(len(sent.source) for sent in phases)
    runs = _one_by_one(routes, phases) if in_turn else _overlapping(routes, phases)
    return _timeline(routes, plan, phases, runs, barriers)


class _Sent(NamedTuple):
    """Flows of a phase between nodes, and the paths they go over."""

    source: Ints
    target: Ints
    n_bytes: Floats
    parts: Subflows
    latency: Floats


class _Run(NamedTuple):
    """Flows that share links: when each starts and has arrived, and what links have carried by some times."""

    starts: Floats
    ends: Floats
    times: Floats
    carried: Floats


def _phases(routes: Routes, plan: Schedule, most: int) -> list[_Sent]:
    """Take every phase apart into flows and paths, phases of equal traffic once."""
    known: dict[Any, _Sent] = {}
    found = []
    for phase in plan.phases:
        key = phase.key
        if key not in known:
            known[key] = _sent(routes, plan, phase.listed(len(plan.ranks) + len(plan.switches)), most)
        found += [known[key]] * phase.repeats
    return found


def _sent(routes: Routes, plan: Schedule, flows: Flows, most: int) -> _Sent:
    fabric, (source, target) = routes.fabric, (flows.source, flows.target)
    nodes = np.concatenate([fabric.ranks[plan.ranks], plan.switches])
    if (np.maximum(source, target) >= len(plan.ranks)).any():
        links = one_link(fabric, nodes[source], nodes[target])
        parts = Subflows(np.arange(len(links)), np.ones(len(links)), np.arange(len(links) + 1), links)
    else:
        cut = np.flatnonzero(routes.class_between(plan.ranks[source], plan.ranks[target]) == -1)
        if len(cut):
            raise no_path(routes, plan.ranks[[source[cut[0]], target[cut[0]]]], len(cut))
        parts = subflows(routes, plan.ranks[source], plan.ranks[target], most)
    latency = np.add.reduceat(np.append(fabric.latency[parts.links], 0.0), parts.indptr)[:-1]
    return _Sent(nodes[source], nodes[target], flows.n_bytes, parts, latency)


def _arrivals(sent: _Sent, ends: Floats) -> Floats:
    """When the last part of every flow has arrived, (flows,)."""
    found = np.zeros(len(sent.source))
    np.maximum.at(found, sent.parts.flow, ends + sent.latency)
    return found


def _samples(routes: Routes) -> int:
    return max(2, min(_SAMPLES, _CELLS // max(1, len(routes.fabric.source))) // 2 * 2)


def _one_by_one(routes: Routes, phases: list[_Sent]) -> list[_Run]:
    """Run phase after phase."""
    runs, now, known = [], 0.0, dict[int, Filled]()
    for sent in phases:
        if id(sent) not in known:
            sizes, parts = sent.n_bytes[sent.parts.flow] * sent.parts.share, sent.parts
            starts = np.zeros(len(sizes))
            known[id(sent)] = shared(
                routes.fabric.bandwidth, parts.indptr, parts.links, sizes, starts, _samples(routes)
            )
        filled = known[id(sent)]
        ends = now + _arrivals(sent, filled.ends)
        runs.append(_Run(np.full(len(ends), now), ends, now + filled.times, filled.carried))
        now = float(ends.max(initial=now))
    return runs


def _overlapping(routes: Routes, phases: list[_Sent]) -> list[_Run]:
    """Run all phases at once, each flow after those its sender must have finished."""
    begin = np.cumsum([0, *(len(sent.source) for sent in phases)])
    source, target, n_bytes = (np.concatenate([sent[i] for sent in phases]) for i in range(3))
    parts = _all_parts([sent.parts for sent in phases], begin)
    all_sent = _Sent(source, target, n_bytes, parts, np.concatenate([sent.latency for sent in phases]))
    gates = _gates(all_sent, np.repeat(np.arange(len(phases)), np.diff(begin)), len(phases))
    sizes = n_bytes[parts.flow] * parts.share
    filled, opened = gated(routes.fabric.bandwidth, parts.indptr, parts.links, sizes, gates, _samples(routes))
    starts = np.zeros(len(source))
    starts[parts.flow] = opened[gates.of_flow]
    return [_Run(starts, _arrivals(all_sent, filled.ends), filled.times, filled.carried)]


def _all_parts(parts: list[Subflows], begin: Ints) -> Subflows:
    """Put the paths of all phases into one list."""
    flow = np.concatenate([part.flow + first for part, first in zip(parts, begin[:-1], strict=True)])
    share, links = np.concatenate([part.share for part in parts]), np.concatenate([part.links for part in parts])
    length = np.concatenate([np.diff(part.indptr) for part in parts])
    return Subflows(flow, share, np.concatenate([[0], length.cumsum()]), links)


def _gates(sent: _Sent, phase: Ints, n_phases: int) -> Gates:
    """Let what an end sends in a phase wait for all it has sent and received since it last sent, and so on back."""
    keys, at_gate = np.unique(sent.source * n_phases + phase, return_inverse=True)
    nexts = []
    for end in (sent.source, sent.target):
        place = np.searchsorted(keys, end * n_phases + phase, side="right")
        same = keys[np.minimum(place, len(keys) - 1)] // n_phases == end
        nexts.append(np.where((place < len(keys)) & same, place, -1)[sent.parts.flow])
    both = np.stack(nexts, axis=1)
    next_ptr = np.concatenate([[0], (both >= 0).sum(axis=1).cumsum()])
    return Gates(at_gate[sent.parts.flow], np.zeros(len(keys)), next_ptr, both[both >= 0], sent.latency)


def _timeline(routes: Routes, plan: Schedule, phases: list[_Sent], runs: list[_Run], barriers: bool) -> Timeline:
    ends, starts = (np.concatenate([run[i] for run in runs] or [np.zeros(0)]) for i in (1, 0))
    source, target, n_bytes = (np.concatenate([sent[i] for sent in phases] or [np.zeros(0)]) for i in range(3))
    phase = np.repeat(np.arange(len(phases)), [len(sent.source) for sent in phases])
    seconds = float(ends.max(initial=0.0))
    algbw = plan.n_bytes / seconds if seconds else 0.0
    times, carried = _carried(runs, len(routes.fabric.source), _samples(routes))
    moved, passed = np.diff(carried, axis=0, prepend=0.0), np.diff(times, prepend=0.0)[:, None]
    return Timeline(
        seconds=seconds, algbw=algbw, busbw=algbw * plan.busbw_factor, barriers=barriers,
        phases=tuple(_phase_times(routes.fabric, phases, starts, ends)),
        flow_phase=phase, flow_source=source, flow_target=target, flow_bytes=n_bytes, flow_ends=ends,
        times=times, use=moved / passed / routes.fabric.bandwidth, loads=carried[-1] if len(times) else carried.sum(0),
        link_kind=routes.fabric.link_kind, bandwidth=routes.fabric.bandwidth,
        routing=routes.rule, algorithm=plan.algorithm, kind=plan.kind, n_bytes=plan.n_bytes, n_ranks=len(plan.ranks),
        assumptions=tuple(_assumptions(routes, plan)),
    )  # fmt: skip


def _assumptions(routes: Routes, plan: Schedule) -> Iterator[str]:
    yield from (*routes.fabric.assumptions, *routes.notes, *plan.assumptions, *fallen_through(routes, plan))
    if plan.pipelined:
        yield f"{plan.algorithm} cuts chunks finely, so that phases overlap; here they are run as they are"


def _phase_times(fabric: Fabric, phases: list[_Sent], starts: Floats, ends: Floats) -> Iterator[PhaseTime]:
    begin, now = 0, 0.0
    for sent in phases:
        mine = slice(begin, begin + len(sent.source))
        begin = mine.stop
        if mine.start == mine.stop:
            yield PhaseTime(now, now, "nothing is sent", 0, 0)
            continue
        now = float(ends[mine].max())
        last = int(np.flatnonzero(ends[mine] >= now * (1 - TIE))[0])  # rounding may not decide
        name = f"{fabric.labels[sent.source[last]]} => {fabric.labels[sent.target[last]]}"
        yield PhaseTime(float(starts[mine].min()), now, name, len(sent.source), len(sent.parts.flow))


def _carried(runs: list[_Run], n_links: int, samples: int) -> tuple[Floats, Floats]:
    """Return what links have carried by some times, of many every so manieth."""
    every = max(1, -(-sum(len(run.times) + 1 for run in runs) // samples))
    before, now, since = np.zeros(n_links), 0.0, 0
    times, rows = [], []
    for run in (run for run in runs if len(run.ends)):
        for time, carried in zip([*run.times, run.ends.max()], [*run.carried, run.carried[-1]], strict=True):
            if time > now:
                now, since = float(time), since + 1
                if since == every:
                    times.append(now)
                    rows.append(before + carried)
                    since = 0
        before = before + run.carried[-1]
    if since:
        times.append(now)
        rows.append(before)
    return np.array(times), np.array(rows).reshape(len(rows), n_links)
