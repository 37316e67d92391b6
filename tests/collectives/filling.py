"""When does each flow end, worked out the slow way? Progressive filling in whole fractions, flow by flow."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf


def rates(capacity: Sequence[Fraction], paths: Sequence[Sequence[int]], active: set[int]) -> dict[int, Fraction]:
    """Return the max-min fair rate of the active flows."""
    found: dict[int, Fraction] = {}
    room = list(capacity)
    while active - found.keys():
        free = [f for f in active if f not in found]
        crossed = [sum(paths[f].count(link) for f in free) for link in range(len(room))]
        level, narrowest = min((room[link] / crossed[link], link) for link in range(len(room)) if crossed[link])
        for f in free:
            if narrowest in paths[f]:
                found[f] = level
                for link in paths[f]:
                    room[link] -= level
    return found


def ends(
    capacity: Sequence[float], paths: Sequence[Sequence[int]], n_bytes: Sequence[float], start: Sequence[float]
) -> list[float]:
    """Return the end of every flow."""
    exact = [Fraction(c) for c in capacity]
    left = [Fraction(b) for b in n_bytes]
    found: dict[int, Fraction | float] = {}
    now = min(map(Fraction, start), default=Fraction(0))
    while len(found) < len(paths):
        waiting = [f for f in range(len(paths)) if f not in found and start[f] > now]
        active = {f for f in range(len(paths)) if f not in found} - set(waiting)
        done = {f for f in active if not left[f] or not paths[f]}
        found |= dict.fromkeys(done, now)
        active -= done
        moving = {f: rate for f, rate in rates(exact, paths, active).items() if rate}
        if not moving and not waiting:
            return [float(found.get(f, inf)) for f in range(len(paths))]
        steps = [left[f] / rate for f, rate in moving.items()] + [Fraction(start[f]) - now for f in waiting]
        now += min(steps)
        for f, rate in moving.items():
            left[f] -= rate * min(steps)
    return [float(found[f]) for f in range(len(paths))]


def ends_without_barriers(
    capacity: Sequence[float], flows: Sequence[tuple[int, int, int, float]], paths: Sequence[Sequence[int]]
) -> list[float]:
    """Return the end of every flow (phase, source, target, bytes): its source has ended all of earlier phases."""
    exact, left = [Fraction(c) for c in capacity], [Fraction(flow[3]) for flow in flows]
    found: dict[int, Fraction] = {}
    now = Fraction(0)
    while len(found) < len(flows):
        undone = [f for f in range(len(flows)) if f not in found]
        active = {
            f for f in undone if not any(flows[e][0] < flows[f][0] and flows[f][1] in flows[e][1:3] for e in undone)
        }
        moving = rates(exact, paths, active)
        now += (step := min(left[f] / rate for f, rate in moving.items()))
        for f, rate in moving.items():
            left[f] -= rate * step
            if not left[f]:
                found[f] = now
    return [float(found[f]) for f in range(len(flows))]
