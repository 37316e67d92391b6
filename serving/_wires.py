"""How long does a collective take at any size, known from a few?

At fixed ranks every flow and link adds (latency + bytes / rate) to a phase, and the phase is
the largest of them: convex and piecewise linear in bytes. Where two lines that touch it meet,
it is no higher than their meeting if it has no piece between them (Eisner and Severance, J. ACM
23(4), 1976): so a few costs give the whole curve, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import Cost, cost
from serving._alike import Alike
from serving._task import Collective, Wire
from topo import Fabric, Routes

__all__ = ["Curve", "Wires", "curve_of", "longer"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Time = Wire[Floats]

#: Sizes between which every piece of a curve lies: latency alone, and bandwidth alone.
_LEAST, _MOST = 1e-6, 1e18


@dataclass(frozen=True, eq=False)
class Curve:
    """Time of a collective at any size.

    Parameters
    ----------
    phases : tuple of (int, (lines, 2) array)
        How often each phase runs, and its lines: latency [s], seconds per byte [s/byte].
    busiest : float or None
        Of the busiest link over all phases, where phases overlap [s/byte].
    """

    phases: tuple[tuple[int, Floats], ...]
    busiest: float | None

    def __call__(self, size: Floats) -> Time:
        """Return the time at these sizes; nothing sent takes none."""
        latency, transfer = np.zeros(np.shape(size)), np.zeros(np.shape(size))
        for repeats, lines in self.phases:
            at = np.argmax(lines[:, 0, None] + lines[:, 1, None] * size, axis=0)
            latency += repeats * lines[at, 0]
            transfer += repeats * lines[at, 1] * size
        if self.busiest is not None:
            transfer = np.minimum(transfer, self.busiest * size)
        sent = np.asarray(size) > 0
        return Wire(np.where(sent, latency + transfer, 0.0), np.where(sent, transfer, 0.0))


def curve_of(probe: Callable[[float], Cost], fabric: Fabric) -> Curve:
    """Return the curve of a collective from its cost at a few sizes, each phase's lines found where others meet."""
    first = probe(_MOST)
    lines: list[list[tuple[float, float]]] = [[] for _ in first.phases]
    busiest = float((first.loads / fabric.bandwidth).max(initial=0.0)) / _MOST if first.pipelined else None
    asked, found = [_LEAST, _MOST], {_MOST: first}
    seen: list[float] = []
    while asked:
        size = asked.pop()
        one = found.get(size) or probe(size)
        seen.append(size)
        for known, phase in zip(lines, one.phases, strict=True):
            if not known or phase.seconds > max(a + b * size for a, b in known) * (1 + 1e-12):
                known.append((phase.latency_seconds, phase.bandwidth_seconds / size))
        if not asked:
            asked = [size for known in lines for size in _meetings(known) if not np.isclose(size, seen, 1e-9, 0).any()]
            asked = asked[:1]
    return Curve(
        tuple((phase.repeats, np.array(known)) for phase, known in zip(first.phases, lines, strict=True)), busiest
    )


def _meetings(lines: Sequence[tuple[float, float]]) -> list[float]:
    """Return the sizes at which the highest line changes."""
    found = []
    for i, (a, b) in enumerate(lines):
        for c, d in lines[:i]:
            if b == d:
                continue
            size = (c - a) / (b - d)
            if _LEAST < size < _MOST and a + b * size >= max(e + f * size for e, f in lines) * (1 - 1e-12):
                found.append(size)
    return found


class Wires:
    """Curves of a fabric's collectives, each worked out once; groups alike share theirs."""

    def __init__(self, routes: Routes, known: dict[Hashable, Any]) -> None:
        self.routes, self.known = routes, known
        self.alike = Alike(routes)

    def slowest(self, asked: Collective, groups: Sequence[Ints]) -> Time:
        """Return the time of the group that takes longest, each by its best algorithm, at sizes `asked.size`."""
        sizes, back = np.unique(asked.size, return_inverse=True)
        unlike = {self._key(group): group for group in reversed(groups)}
        found = reduce(longer, [
            reduce(_shorter, [curve(sizes) for curve in self._by_algorithm(asked.kind, group, key)])
            for key, group in unlike.items()
        ])  # fmt: skip
        return Wire(found.seconds[back], found.bandwidth_seconds[back])

    def _by_algorithm(self, kind: str, group: Ints, key: Hashable) -> list[Curve]:
        """Return the curves of all algorithms that apply."""
        if (kind, key) not in self.known:
            names = self._cost(Collective(kind, 1.0, {"ranks": group, "algorithm": "best"})).tried
            self.known[kind, key] = [self._by(name, kind, group) for name in names]
        found: list[Curve] = self.known[kind, key]
        return found

    def _by(self, algorithm: str, kind: str, group: Ints) -> Curve:
        words = {"ranks": group, "algorithm": algorithm}
        return curve_of(lambda size: self._cost(Collective(kind, size, words)), self.routes.fabric)

    def curve(self, asked: Callable[[float], Collective], ranks: Ints, what: Hashable) -> Curve:
        """Return the curve of what is asked at a size; `what` tells it from all else these ranks are asked."""
        key = what, self._key(ranks)
        if key not in self.known:
            self.known[key] = curve_of(lambda size: self._cost(asked(size)), self.routes.fabric)
        found: Curve = self.known[key]
        return found

    def _key(self, ranks: Ints) -> Hashable:
        return self.routes.rule, self.alike.key(ranks)

    def _cost(self, asked: Collective) -> Cost:
        kind, size, words = asked
        return cost(self.routes.fabric, kind, size, routing=self.routes, **words)


def longer(a: Time, b: Time) -> Time:
    """Return the longer of two times, size by size."""
    return _taken(a.seconds >= b.seconds, a, b)


def _shorter(a: Time, b: Time) -> Time:
    return _taken(a.seconds <= b.seconds, a, b)


def _taken(first: NDArray[np.bool_], a: Time, b: Time) -> Time:
    return Wire(np.where(first, a.seconds, b.seconds), np.where(first, a.bandwidth_seconds, b.bandwidth_seconds))
