"""How long do the wires of one step take, collective by collective, and which of them is the slowest?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import Cost, cost
from serving._alike import Alike
from serving._stages import Stages
from serving._task import Collective, Task, Wire
from topo import Routes

__all__ = ["OneStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class OneStep(Stages[float]):
    """One step being worked out, its collectives costed on the graph as they come."""

    def __init__(self, task: Task, routes: Routes) -> None:
        self.routes, self.alike = routes, Alike(routes)
        work, layout = task.workload, task.layout
        each = layout.tp * layout.cp if work.batch_per_gpu is not None else 1
        self.sequences = work.batch_of(layout.replicas) * each
        slices = work.slices(float(self.sequences.max()))
        super().__init__(task, slices, float(work.context), float(self.sequences.sum()))
        #: Operation -> the longest of its collectives, and what `cost` took.
        self.slowest: dict[str, tuple[Cost, dict[str, Any]]] = {}

    def _tokens(self, guessing: bool) -> Floats:
        """Share a replica's tokens out among its GPUs."""
        of = {int(n): float(n) if guessing else sum(one.tokens for one in self.workload.slices(float(n)))
              for n in np.unique(self.sequences)}  # fmt: skip
        each = self.layout.tp * self.layout.cp
        return np.repeat([of[int(n)] / each for n in self.sequences], each).astype(np.float64)[None]

    def _of_batches(self, values: Floats) -> float:
        return float(values[0])

    def _exchange(self, name: str, s: int, i: int, sent: Floats) -> Wire[float]:
        return self._longest(name, list(self._exchanges(name, s, i, sent[0])))

    def _slowest(self, name: str, asked: Collective, groups: Sequence[Ints]) -> Wire[float]:
        some = self.alike.unlike(groups)
        return self._longest(name, [asked._replace(words=asked.words | {"ranks": group}) for group in some])

    def _send(self, size: float, out: Ints, into: Ints) -> Wire[float]:
        return self._longest("pipeline sends", [Collective("send", size, {"stages": (out, into)})])

    def _longest(self, name: str, asked: Sequence[Collective]) -> Wire[float]:
        """Cost collectives of an operation, return the longest, and remember it if it is the longest so far."""
        profile = self.software.experts if name in ("dispatch", "combine") else self.software.others
        costs = [
            cost(self.routes.fabric, one.kind, one.size, routing=self.routes, profile=profile, **one.words)
            for one in asked
        ]
        i = max(range(len(costs)), key=lambda k: costs[k].seconds)
        found, (kind, size, words) = costs[i], asked[i]
        if name not in self.slowest or found.seconds > self.slowest[name][0].seconds:
            self.slowest[name] = found, {"kind_or_schedule": kind, "n_bytes": size} | words
        return Wire(found.seconds, found.bandwidth_seconds, found)
