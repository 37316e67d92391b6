"""Where does the search for a level placement begin, layer by layer, and under rules?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placement._exchanges import Seats
from placement._moves import Layer, layer_of
from placement._ruled_seats import seats_under
from placement._rules import Allowed, Gpus, Rules, allowed, may_of, seated

__all__ = ["Found", "Task", "layers_under", "quick_layers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Task:
    """A layer as it is placed so far, the expert of every piece; experts' loads, and where each may be under rules.

    Pieces and homes that the start settles for rules are its own choice: no bound may build on them.
    """

    layer: Layer
    expert: Ints
    whole: Floats
    may: Bools | None = None

    @property
    def ruled(self) -> bool:
        """Whether any rule holds."""
        return self.may is not None


@dataclass(frozen=True)
class Found:
    """A layer, the load over speed that its heaviest GPU cannot be below and why, and if the clock stopped it."""

    task: Task
    bound: float
    why: str
    stopped: bool

    def heaviest(self, speed: Floats) -> float:
        """Return the load over speed of the heaviest GPU."""
        return float((self.task.layer.share.sum(axis=1) / speed).max())


def quick_layers(loads: Floats, seats: Seats, machine: Gpus) -> list[Task]:
    n = loads.shape[1]
    return [
        Task(layer_of(row, expert, count, machine.slots, machine.speed), np.arange(n), row)
        for row, expert, count in zip(loads, seats.expert, seats.count, strict=True)
    ]


def layers_under(loads: Floats, machine: Gpus, rules: Rules, copies: int) -> list[Task] | str:
    """Return layers that keep to the rules, quickly or by the program that knows for certain; or why none does."""
    may = may_of(machine, rules, loads.shape[1])
    free = [allowed(row, machine, rules, copies) for row in loads]
    layers = [
        _ruled(row, each, machine, copies, may)
        for row, each in zip(loads, free, strict=True)
        if isinstance(each, Allowed) and len(rules.pins) <= len(rules.pin)  # quick for one copy of an expert
    ]
    if len(layers) == len(loads) and all(int(each.layer.copies.sum()) == copies for each in layers):
        return layers
    found = []
    for row, each in zip(loads, free, strict=True):
        seats = seats_under(row, machine, rules, copies)
        if isinstance(seats, str):
            return each if isinstance(each, str) else seats
        layer = layer_of(row, seats.expert, _copies(seats.expert, len(row)), machine.slots, machine.speed)
        layer.held[:] |= seats.fixed | bool(rules.apart)  # exchanges know of no zones
        layer.may[:-1] = seats.may
        found.append(Task(layer, np.arange(len(row)), row, may))
    return found


def _copies(expert: Ints, n: int) -> Ints:
    return np.bincount(expert.ravel(), minlength=n + 1)[:n]


def _ruled(load: Floats, free: Allowed, machine: Gpus, copies: int, may: Bools) -> Task:
    pieces = load[free.expert] * free.part
    expert, count, held = seated(pieces, free, machine, copies)
    layer = layer_of(pieces, expert, count, machine.slots, machine.speed)
    layer.held[:] = held
    layer.may[:-1] = free.may
    return Task(layer, free.expert, load, may)
