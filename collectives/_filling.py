"""When does each flow end if links are shared max-min fairly? Progressive filling, solved again only where it changes.

Plain Python on arrays; numba compiles the same functions where there is much to do.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topo import Loop

__all__ = ["Filled", "System", "fill"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Ends and starts so close together, relative to the time passed, are one event.
TIE = 1e-12
#: Flows x links to look at when one ends, above which numba is worth its import.
_MUCH = 1_000_000


class System(NamedTuple):
    """Groups of flows that share one path and one gate; row after row in compressed form.

    A group's flows run at one rate, so they end in the order of their bytes. A gate opens
    at its time, or when every flow that leads to it has ended and its delay has passed.
    """

    capacity: Floats
    group_ptr: Ints
    group_link: Ints
    group_take: Floats
    flow_ptr: Ints
    flow_bytes: Floats
    flow_weight: Floats
    gate_ptr: Ints
    gate_time: Floats
    gate_waits: Ints
    next_ptr: Ints
    next_gate: Ints
    delay: Floats


class Filled(NamedTuple):
    """Ends of flows [s], and the bytes every link has carried by the sampled times."""

    ends: Floats
    times: Floats
    carried: Floats


class _State(NamedTuple):
    rate: Floats
    served: Floats
    since: Floats
    due: Floats
    weight: Floats
    head: Ints
    active: Ints
    link_ptr: Ints
    link_size: Ints
    link_group: Ints
    link_take: Floats
    room: Floats
    load: Floats
    queue: Ints
    seen_link: Ints
    seen_group: Ints
    ends: Floats
    total: Floats
    times: Floats
    carried: Floats
    tally: Ints


def fill(system: System, samples: int = 0) -> Filled:
    """Return when flows end.

    Parameters
    ----------
    system : System
        Capacities above zero, paths that are not empty, bytes above zero, times from zero on.
    samples : int, optional
        Times (an even number) at which to note what links have carried; where there are
        more events every other sample is dropped.
    """
    n_links, n_groups = len(system.capacity), len(system.group_ptr) - 1
    state = _State(
        rate=np.zeros(n_groups), served=np.zeros(n_groups), since=np.zeros(n_groups), due=np.zeros(n_groups),
        weight=np.zeros(n_groups), head=system.flow_ptr[:-1].copy(), active=np.zeros(n_groups, dtype=np.intp),
        link_ptr=np.searchsorted(np.sort(system.group_link), np.arange(n_links + 1)),
        link_size=np.zeros(n_links, dtype=np.intp),
        link_group=np.zeros(len(system.group_link), dtype=np.intp), link_take=np.zeros(len(system.group_link)),
        room=system.capacity.copy(), load=np.zeros(n_links), queue=np.zeros(n_links, dtype=np.intp),
        seen_link=np.zeros(n_links, dtype=np.intp), seen_group=np.zeros(n_groups, dtype=np.intp),
        ends=np.full(len(system.flow_bytes), np.inf),
        total=np.zeros(n_links), times=np.zeros(samples), carried=np.zeros((samples, n_links)),
        tally=np.array([0, 1, 0]),
    )  # fmt: skip
    an_event = len(system.group_link) + (n_links if samples else 0)
    _RUN.run(len(system.flow_bytes) * an_event > _MUCH)(system, state)
    taken = int(state.tally[0])
    return Filled(state.ends, state.times[:taken], state.carried[:taken])


def _run(system: System, state: _State) -> None:
    """Go from event to event."""
    waiting = [(system.gate_time[g], g) for g in range(len(system.gate_time)) if system.gate_waits[g] == 0]
    heapq.heapify(waiting)
    now, n_active, epoch = 0.0, 0, 0
    while n_active or waiting:
        until = waiting[0][0] if len(waiting) else np.inf
        for i in range(n_active):
            until = min(until, state.due[state.active[i]])
        until = max(until, now)  # against rounding
        if len(state.times) and until > now:
            _sample(system, state, now, until)
        tie = TIE * until
        epoch += 1
        n_active, n_queue, least = _finish(system, state, n_active, until + tie, epoch, waiting)
        now = until
        before = n_active
        while len(waiting) and waiting[0][0] <= now + tie:
            n_active, n_queue = _open(system, state, heapq.heappop(waiting)[1], n_active, n_queue, epoch, now)
        if n_active > before:
            least = min(least, _fair_share(system, state, n_queue))
        _solve(system, state, n_queue, least, epoch, now)
    if len(state.times) and state.tally[2] > 0:
        _keep(state, now, state.total)


def _finish(
    system: System, state: _State, n_active: int, until: float, epoch: int, waiting: list[tuple[float, int]]
) -> tuple[int, int, float]:
    """End the flows that are done; return active groups, touched links, least rate that ended."""
    n_queue, least = 0, np.inf
    for i in range(n_active - 1, -1, -1):
        g = state.active[i]
        if state.due[g] > until:
            continue
        least = min(least, state.rate[g])
        n_queue = _touch(system, state, g, n_queue, epoch)
        while state.due[g] <= until:
            f = state.head[g]
            state.ends[f] = state.due[g]
            state.weight[g] -= system.flow_weight[f]
            state.head[g] += 1
            _release(system, f, state.ends[f], waiting)
            if state.head[g] == system.flow_ptr[g + 1]:
                n_active -= 1
                state.active[i] = state.active[n_active]
                _remove(system, state, g)
                break
            state.due[g] = state.since[g] + (system.flow_bytes[f + 1] - state.served[g]) / state.rate[g]
    return n_active, n_queue, least


def _release(system: System, f: int, end: float, waiting: list[tuple[float, int]]) -> None:
    """Tell the gates behind a flow that it has ended."""
    for k in range(system.next_ptr[f], system.next_ptr[f + 1]):
        gate = system.next_gate[k]
        system.gate_waits[gate] -= 1
        system.gate_time[gate] = max(system.gate_time[gate], end + system.delay[f])
        if system.gate_waits[gate] == 0:
            heapq.heappush(waiting, (system.gate_time[gate], gate))


def _touch(system: System, state: _State, g: int, n_queue: int, epoch: int) -> int:
    """Queue the links of a group that are not queued yet."""
    for k in range(system.group_ptr[g], system.group_ptr[g + 1]):
        link = system.group_link[k]
        if state.seen_link[link] != epoch:
            state.seen_link[link] = epoch
            state.queue[n_queue] = link
            n_queue += 1
    return n_queue


def _remove(system: System, state: _State, g: int) -> None:
    """Take a group off its links."""
    for k in range(system.group_ptr[g], system.group_ptr[g + 1]):
        link = system.group_link[k]
        at = state.link_ptr[link]
        while state.link_group[at] != g:
            at += 1
        state.link_size[link] -= 1
        last = state.link_ptr[link] + state.link_size[link]
        state.link_group[at], state.link_take[at] = state.link_group[last], state.link_take[last]


def _open(
    system: System, state: _State, gate: int, n_active: int, n_queue: int, epoch: int, now: float
) -> tuple[int, int]:
    """Put the groups behind a gate on their links."""
    for g in range(system.gate_ptr[gate], system.gate_ptr[gate + 1]):
        state.rate[g], state.since[g] = np.inf, now
        for f in range(system.flow_ptr[g], system.flow_ptr[g + 1]):
            state.weight[g] += system.flow_weight[f]
        state.active[n_active] = g
        n_active += 1
        n_queue = _touch(system, state, g, n_queue, epoch)
        for k in range(system.group_ptr[g], system.group_ptr[g + 1]):
            link = system.group_link[k]
            at = state.link_ptr[link] + state.link_size[link]
            state.link_group[at], state.link_take[at] = g, system.group_take[k]
            state.link_size[link] += 1
    return n_active, n_queue


def _fair_share(system: System, state: _State, n_queue: int) -> float:
    """Return the least that a touched link gives each flow: up to there filling does not see the new ones."""
    least = np.inf
    for i in range(n_queue):
        link = state.queue[i]
        load = 0.0
        for at in range(state.link_ptr[link], state.link_ptr[link] + state.link_size[link]):
            load += state.link_take[at] * state.weight[state.link_group[at]]
        if load > 0:
            least = min(least, system.capacity[link] / load)
    return least


def _solve(system: System, state: _State, n_queue: int, least: float, epoch: int, now: float) -> None:
    """Share the touched links, and what hangs together with them, anew.

    Filling reaches the level `least` as before: groups with lower rates keep them.
    """
    n_queue = _spread(system, state, n_queue, least * (1 - 1e-9), epoch)
    heap = [(state.room[link] / state.load[link], link) for link in state.queue[:n_queue] if state.load[link] > 0]
    heapq.heapify(heap)
    while len(heap):
        before, link = heap[0]
        level = state.room[link] / state.load[link] if state.load[link] > 0 else 0.0
        if level > before:  # others were filled meanwhile
            heapq.heapreplace(heap, (level, link))
            continue
        heapq.heappop(heap)
        if state.load[link] <= 0:
            continue
        for at in range(state.link_ptr[link], state.link_ptr[link] + state.link_size[link]):
            g = state.link_group[at]
            if state.seen_group[g] == epoch:
                state.seen_group[g] = -epoch
                _set_rate(system, state, g, level, now)
                for k in range(system.group_ptr[g], system.group_ptr[g + 1]):
                    take = system.group_take[k] * state.weight[g]
                    state.room[system.group_link[k]] -= take * level
                    state.load[system.group_link[k]] -= take


def _set_rate(system: System, state: _State, g: int, rate: float, now: float) -> None:
    if now > state.since[g]:
        state.served[g] += state.rate[g] * (now - state.since[g])
        state.since[g] = now
    state.rate[g] = rate
    state.due[g] = now + (system.flow_bytes[state.head[g]] - state.served[g]) / rate


def _spread(system: System, state: _State, n_queue: int, least: float, epoch: int) -> int:
    """Find links and groups to be shared anew, and what is left for them."""
    done = 0
    while done < n_queue:
        link = state.queue[done]
        done += 1
        state.room[link], state.load[link] = system.capacity[link], 0.0
        for at in range(state.link_ptr[link], state.link_ptr[link] + state.link_size[link]):
            g = state.link_group[at]
            take = state.link_take[at] * state.weight[g]
            if state.rate[g] < least:
                state.room[link] -= take * state.rate[g]
                continue
            state.load[link] += take
            if state.seen_group[g] != epoch:
                state.seen_group[g] = epoch
                n_queue = _touch(system, state, g, n_queue, epoch)
    return n_queue


def _sample(system: System, state: _State, now: float, until: float) -> None:
    """Add up what links carry, and keep it at every so many events; tally: kept, events a sample, events since."""
    for link in range(len(system.capacity)):
        state.total[link] += (system.capacity[link] - state.room[link]) * (until - now)
    state.tally[2] += 1
    if state.tally[2] == state.tally[1]:
        _keep(state, until, state.total)
        if state.tally[0] == len(state.times):
            state.tally[0], state.tally[1] = 0, 2 * state.tally[1]
            for i in range(1, len(state.times), 2):
                _keep(state, state.times[i], state.carried[i])


def _keep(state: _State, now: float, total: Floats) -> None:
    row = state.tally[0]
    state.times[row] = now
    for link in range(len(total)):  # row by row numba compiles much more
        state.carried[row, link] = total[link]
    state.tally[0], state.tally[2] = row + 1, 0


_RUN = Loop(_run, _finish, _release, _touch, _remove, _open, _fair_share, _solve, _set_rate, _spread, _sample, _keep)
