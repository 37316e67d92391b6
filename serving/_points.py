"""How long do steps take that differ in batch and context only, all of them at once?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from serving._stages import Stages
from serving._task import Collective, Task, Wire
from serving._wires import Wires, longer

__all__ = ["Points"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class Points(Stages[Floats]):
    """Steps of one layout side by side: `batch` as the workload counts it, and `context`, (points,) int each.

    What depends on who has how many tokens is worked out once per different batch; wires are
    read off their curves.
    """

    def __init__(self, task: Task, wires: Wires, batch: Ints, context: Ints) -> None:
        work, layout = task.workload, task.layout
        self.wires, self.each = wires, layout.tp * layout.cp
        per_gpu = work.batch_per_gpu is not None
        total = batch * layout.stage if per_gpu else batch
        # Prompts of another length are other batches: their tokens differ.
        rows = np.stack([total, context if work.phase == "prefill" else 0 * context], axis=1)
        self.rows, self.back = np.unique(rows, axis=0, return_inverse=True)
        most, each = (column.astype(np.float64) for column in (-(-total // layout.replicas), context))
        super().__init__(task, work.slices(most, each), each, total.astype(np.float64))

    def _tokens(self, guessing: bool) -> Floats:
        """Share a replica's tokens out among its GPUs; what does not divide goes to the first replicas."""
        total, context = self.rows.T[..., None]
        share, extra = np.divmod(total, self.layout.replicas)
        sequences = share + (np.arange(self.layout.replicas) < extra) + 0.0
        known = self.context[:1] if self.workload.phase != "prefill" else context + 0.0
        tokens = sequences if guessing else sum(one.tokens for one in self.workload.slices(sequences, known))
        return np.repeat(tokens / self.each, self.each, axis=1)

    def _of_batches(self, values: Floats) -> Floats:
        return np.broadcast_to(values, len(self.rows))[self.back]

    def _exchange(self, name: str, s: int, i: int, sent: Floats) -> Wire[Floats]:
        most = sent.max(axis=(1, 2))
        shapes, which = np.unique(sent / most[:, None, None], axis=0, return_inverse=True)
        seconds, transfer = np.zeros(len(sent)), np.zeros(len(sent))
        for number, shape in enumerate(shapes):
            at = which.ravel() == number
            found = self._shaped(name, s, i, shape, most[at])
            seconds[at], transfer[at] = found.seconds, found.bandwidth_seconds
        return Wire(self._of_batches(seconds), self._of_batches(transfer))

    def _shaped(self, name: str, s: int, i: int, shape: Floats, most: Floats) -> Wire[Floats]:
        """Return the time of a dispatch or combine in which GPUs send in these proportions, at most so many tokens."""
        slots = b"".join(column.tobytes() for column in self._slots(i))
        work = self.workload
        what = (name, self.model.expert_hidden_size, self.model.top_k, work.copies, work.dispatch_dtype,
                work.combine_dtype, shape.tobytes(), slots)  # fmt: skip
        found = []
        for number, one in enumerate(self._exchanges(name, s, i, shape)):

            def asked(size: float, number: int = number) -> Collective:
                return list(self._exchanges(name, s, i, shape * size))[number]

            found.append(self.wires.curve(asked, one.words["ranks"], (number, *what))(most))
        return reduce(longer, found)

    def _slowest(self, name: str, asked: Collective, groups: Sequence[Ints]) -> Wire[Floats]:
        return self.wires.slowest(asked, groups)

    def _send(self, size: Floats, out: Ints, into: Ints) -> Wire[Floats]:
        def asked(n_bytes: float) -> Collective:
            return Collective("send", n_bytes, {"stages": (out, into)})

        return self.wires.curve(asked, np.concatenate([out, into]), ("send", len(out)))(size)
