"""What does an algorithm of MSCCL send? Its XML is run step by step, and becomes phases by dependency level.

An algo has gpus, a gpu thread blocks (tb), a tb steps that run in order; a step may wait
for a step of another tb (depid, deps). What a tb sends to a GPU over a channel arrives, in
order, at that GPU's tb that receives from there over the same channel.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collectives._meaning import fingerprints
from collectives._msccl_file import Block, Op, Program, Slot
from collectives._plan import Plan, Step, Team, unfit
from collectives._records import Transfers
from topo import Fault, InputError, parse_xml

__all__ = ["Algorithm", "read_algorithm"]

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Algorithm:
    """An algorithm read from a file; `schedule` and `cost` take it as ``algorithm=``.

    Attributes
    ----------
    name, kind : str
        Its name, and the collective it is for.
    n_ranks, n_chunks : int
        Ranks, and chunks that nccl-tests' size is cut into.
    phases : tuple of (source, target, chunks)
        Ranks that send and receive, and how many chunks, by dependency level.
    """

    name: str
    kind: str
    n_ranks: int
    n_chunks: int
    phases: tuple[Transfers, ...]

    def __repr__(self) -> str:
        size = f"{self.n_ranks} ranks, {self.n_chunks} chunks, {len(self.phases)} phases"
        return f"Algorithm({self.name}: {self.kind}, {size})"

    def plan(self, kind: str, team: Team) -> Plan:
        """Return the plan for a team of as many ranks."""
        if (kind, team.n) != (self.kind, self.n_ranks):
            raise unfit(self.name, f"it is for {self.kind} over {self.n_ranks} ranks", "Ask for those.")
        return Plan(np.array([team.n_bytes / self.n_chunks]), tuple(_step(*phase) for phase in self.phases))


def _step(source: Ints, target: Ints, count: Ints) -> Step:
    ends = np.repeat(source, count), np.repeat(target, count)
    return Step(lambda _: (*ends, np.zeros(len(ends[0]), dtype=np.intp)))


def read_algorithm(path: str | Path) -> Algorithm:
    """Read an MSCCL algorithm file and run it symbolically.

    Parameters
    ----------
    path : str or Path
        XML with algo, gpu, tb and step elements.

    Returns
    -------
    Algorithm
        Transfers in phases: a transfer's phase is the number of messages that must have
        arrived, one after the other, before it can leave.

    Raises
    ------
    InputError
        A file that is no such XML, with the line; steps that wait for each other; a run
        that does not end with exactly the right chunks on every GPU.

    References
    ----------
    M. Cowan et al., "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023;
    microsoft/msccl-tools, msccl/language/ir.py.
    """
    file = str(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(Fault("file", file, f"cannot be read: {error.strerror}", "Give an MSCCL XML file.")) from None
    program = Program(parse_xml(text, file), file)
    run = _Run(program)
    run.finish()
    return Algorithm(program.name, program.kind, program.n_ranks, program.n_chunks, run.phases())


class _Run:
    """The program run: numbers in slots, messages on their way, and the level of every transfer."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.parts: list[list[int]] = fingerprints((program.n_ranks, program.n_chunks)).tolist()
        self.held = {slot: self.parts[rank][chunk] for slot, rank, chunk in program.inputs()}
        self.way: dict[tuple[int, int, int], deque[tuple[list[int], int]]] = defaultdict(deque)
        self.done: dict[tuple[int, int], list[int]] = {(block.gpu, block.number): [] for block in program.blocks}
        self.sent: dict[int, dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))

    def finish(self) -> None:
        """Run until nothing moves, and hold the result against the collective."""
        moving = True
        while moving:
            moving = sum(self._advance(block) for block in self.program.blocks) > 0
        stuck = [b.ops[len(self._levels(b))] for b in self.program.blocks if len(self._levels(b)) < len(b.ops)]
        if stuck:
            self._refuse(f"line {stuck[0].line}, step", "waits for something that never comes")
        if any(self.way.values()):
            pair = next(pair for pair, queue in self.way.items() if queue)
            self._refuse(f"gpu {pair[0]} to gpu {pair[1]}, channel {pair[2]}", "sends more than is received")
        total = [sum(of_chunk) for of_chunk in zip(*self.parts, strict=True)]
        for slot, source, chunk in self.program.outputs():
            if self.held.get(slot) != (total if source < 0 else self.parts[source])[chunk]:
                what = f"the sum of all GPUs' chunk {chunk}" if source < 0 else f"chunk {chunk} of GPU {source}"
                self._refuse(f"gpu {slot[0]}, {slot[1]}[{slot[2]}]", f"does not end as {what}")

    def _refuse(self, place: str, rule: str) -> None:
        raise InputError(Fault(place, self.program.name, rule, "Correct the algorithm.", self.program.file))

    def _levels(self, block: Block) -> list[int]:
        return self.done[block.gpu, block.number]

    def _advance(self, block: Block) -> bool:
        """Run the steps of a thread block that can run; whether any did."""
        levels = self._levels(block)
        before = len(levels)
        while len(levels) < len(block.ops) and self._ready(block, block.ops[len(levels)]):
            levels.append(self._run(block, block.ops[len(levels)], levels[-1] if levels else 0))
        return len(levels) > before

    def _ready(self, block: Block, op: Op) -> bool:
        if op.waits is not None and len(self.done.get((block.gpu, op.waits[0]), ())) <= op.waits[1]:
            return False
        return not op.does[0] or bool(self.way[block.recv, block.gpu, block.channel])

    def _run(self, block: Block, op: Op, level: int) -> int:
        """Run one step and return its level: messages that came before it, one after the other."""
        receives, adds, stores, sends = op.does
        if op.waits is not None:
            level = max(level, self.done[block.gpu, op.waits[0]][op.waits[1]])
        if receives:
            values, arrived = self.way[block.recv, block.gpu, block.channel].popleft()
            level = max(level, arrived)
            if len(values) != op.count:
                self._refuse(f"line {op.line}, cnt", f"takes {op.count} chunks where {len(values)} were sent")
        else:
            values = self._load(op, op.src) if op.count and (adds or stores or sends) else []
        if adds:
            own = self._load(op, op.src if receives else op.dst)
            values = [a + b for a, b in zip(values, own, strict=True)]
        if stores:
            self.held.update(((op.dst[0], op.dst[1], op.dst[2] + k), value) for k, value in enumerate(values))
        if sends:
            self.way[block.gpu, block.send, block.channel].append((values, level + 1))
            self.sent[level][block.gpu, block.send] += op.count
        return level

    def _load(self, op: Op, slot: Slot) -> list[int]:
        wanted = [(slot[0], slot[1], slot[2] + k) for k in range(op.count)]
        missing = [at for at in wanted if at not in self.held]
        if missing:
            self._refuse(f"line {op.line}, step", f"reads {missing[0][1]}[{missing[0][2]}], where nothing is")
        return [self.held[at] for at in wanted]

    def phases(self) -> tuple[Transfers, ...]:
        """Return who sends how many chunks to whom, level by level."""
        found = []
        for level in sorted(self.sent):
            pairs = sorted(self.sent[level].items())
            rows = [(a, b, count) for (a, b), count in pairs]
            source, target, count = np.array(rows, dtype=np.intp).T
            found.append((source, target, count))
        return tuple(found)
