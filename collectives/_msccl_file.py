"""What does an MSCCL algorithm file say? Its elements, read and checked by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from topo import Fault, InputError, XmlElement, suggest

__all__ = ["Block", "Op", "Program", "Slot"]

#: GPU, buffer ("i", "o", "s") and offset of a chunk.
Slot = tuple[int, str, int]

_MOST = 100_000
COLLECTIVES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all",
}  # fmt: skip
#: Step type -> whether it receives, adds what it has at src, stores at dst, sends on.
TYPES = {
    "s": (False, False, False, True), "r": (True, False, True, False), "rcs": (True, False, True, True),
    "rrs": (True, True, False, True), "rrc": (True, True, True, False), "rrcs": (True, True, True, True),
    "cpy": (False, False, True, False), "re": (False, True, True, False), "nop": (False, False, False, False),
}  # fmt: skip


@dataclass(frozen=True)
class Op:
    """One step: what it does, where, and what it waits for."""

    does: tuple[bool, bool, bool, bool]
    src: Slot
    dst: Slot
    count: int
    waits: tuple[int, int] | None
    line: int


@dataclass(frozen=True)
class Block:
    """A thread block: its peers (-1: none), channel and steps."""

    gpu: int
    number: int
    send: int
    recv: int
    channel: int
    ops: tuple[Op, ...]
    line: int


class Program:
    """The file, read and checked by itself."""

    def __init__(self, root: XmlElement, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []
        self.name = root.get("name") or "msccl"
        coll = root.get("coll", "")
        if root.tag != "algo" or coll not in COLLECTIVES:
            rule = "is no collective this reads" if root.tag == "algo" else f"is <{root.tag}>, not <algo>"
            self._fault(root, "coll", coll, rule, suggest(coll, COLLECTIVES))
        self.kind = COLLECTIVES.get(coll, "")
        self.n_ranks = self._number(root, "ngpus", least=1)
        self.n_chunks = self._number(root, "nchunksperloop", least=1)
        if self.n_ranks * self.n_chunks > 1_000_000:
            rule = f"over {self.n_ranks} GPUs is more than this follows"
            self._fault(root, "nchunksperloop", self.n_chunks, rule, "Take fewer.")
        self.in_place = root.get("inplace") == "1"
        if self.kind != "all_reduce" and self.n_chunks % self.n_ranks:
            self._fault(root, "nchunksperloop", self.n_chunks, f"must divide by {self.n_ranks} GPUs", "Correct it.")
        self.blocks = [self._block(gpu, tb) for gpu in root.findall("gpu") for tb in gpu.findall("tb")]
        ids = sorted({self._number(gpu, "id") for gpu in root.findall("gpu")})
        if ids != list(range(self.n_ranks)) or len(root.findall("gpu")) != self.n_ranks:
            self._fault(root, "ngpus", self.n_ranks, f"does not fit the gpus' ids {ids[:8]}", "Number them from 0.")
        self._require_one_each()
        if self.faults:
            raise InputError(*self.faults)

    def _require_one_each(self) -> None:
        """Every thread block has an id, and every connection a thread block, of its own."""
        seen: set[tuple[int, str, int, int]] = set()
        for block in self.blocks:
            ends = [("send", block.send), ("recv", block.recv)]
            own = [
                (block.gpu, "id", block.number, 0),
                *((block.gpu, *end, block.channel) for end in ends if end[1] >= 0),
            ]
            for gpu, key, value, _ in (end for end in own if end in seen):
                cure = "Use another channel, or number."
                place = f"line {block.line}, {key}"
                self.faults.append(Fault(place, value, f"is that of another tb of gpu {gpu}", cure, self.file))
            seen.update(own)

    def _fault(self, at: Element, key: str, value: object, rule: str, cure: str) -> None:
        self.faults.append(Fault(f"line {getattr(at, 'line', 1)}, {key}", value, rule, cure, self.file))

    def _number(self, at: Element, key: str, least: int = 0, default: str = "") -> int:
        text = at.get(key, default)
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= _MOST:
            self._fault(at, key, text, f"must be a whole number from {least} to {_MOST}", "Correct it.")
            return max(least, 1)
        return value

    def _block(self, gpu: Element, tb: Element) -> Block:
        rank = self._number(gpu, "id")
        send, recv = (self._number(tb, key, -1) for key in ("send", "recv"))
        for key, peer in (("send", send), ("recv", recv)):
            if peer >= self.n_ranks or peer == rank:
                self._fault(tb, key, peer, f"is no other GPU of {self.n_ranks}", "Correct it.")
        steps = tb.findall("step")
        for number, step in enumerate(steps):
            if self._number(step, "s") != number:
                self._fault(step, "s", step.get("s"), f"is step {number} of its tb", "Number steps from 0, in order.")
        ops = tuple(self._op(rank, step, send, recv) for step in steps)
        return Block(rank, self._number(tb, "id"), send, recv, self._number(tb, "chan"), ops, getattr(tb, "line", 1))

    def _op(self, rank: int, step: Element, send: int, recv: int) -> Op:
        kind = step.get("type", "")
        if kind not in TYPES:
            self._fault(step, "type", kind, "is no step type", suggest(kind, TYPES))
        receives, _, _, sends = does = TYPES.get(kind, TYPES["nop"])
        for key, wanted, peer in (("send", sends, send), ("recv", receives, recv)):
            if wanted and peer < 0:
                self._fault(step, "type", kind, f"needs the tb's {key} peer, which is -1", "Name it.")
        block = self._number(step, "depid", -1)
        waits = (block, self._number(step, "deps", -1 if block < 0 else 0))
        count = self._number(step, "cnt", int(kind != "nop"))
        src, dst = (self._slot(rank, step, end, kind == "nop") for end in ("src", "dst"))
        return Op(does, src, dst, count, waits if waits[0] >= 0 else None, getattr(step, "line", 1))

    def _slot(self, rank: int, step: Element, end: str, unused: bool) -> Slot:
        """Return where a chunk lies; in place, one buffer is a part of the other."""
        buffer = step.get(f"{end}buf", "")
        if buffer not in ("i", "o", "s"):
            self._fault(step, f"{end}buf", buffer, "must be i, o or s", "Correct it.")
        offset = self._number(step, f"{end}off", -1 if unused else 0)
        return self.place(rank, buffer, offset)

    def place(self, rank: int, buffer: str, offset: int) -> Slot:
        """Return the slot of a buffer's chunk."""
        share = self.n_chunks // self.n_ranks
        if self.in_place and self.kind == "all_reduce" and buffer == "o":
            return rank, "i", offset
        if self.in_place and self.kind == "all_gather" and buffer == "i":
            return rank, "o", rank * share + offset
        if self.in_place and self.kind == "reduce_scatter" and buffer == "o":
            return rank, "i", rank * share + offset
        return rank, buffer, offset

    def inputs(self) -> Iterator[tuple[Slot, int, int]]:
        """Every slot that holds something at first, the rank it is of and its chunk."""
        count = self.n_chunks // self.n_ranks if self.kind == "all_gather" else self.n_chunks
        for rank in range(self.n_ranks):
            first = rank * count if self.kind == "all_gather" else 0
            yield from ((self.place(rank, "i", k), rank, first + k) for k in range(count))

    def outputs(self) -> Iterator[tuple[Slot, int, int]]:
        """Every slot of a result, the rank whose chunk it must be (-1: the sum of all), and the chunk."""
        share = self.n_chunks // self.n_ranks
        for rank in range(self.n_ranks):
            for k in range(share if self.kind == "reduce_scatter" else self.n_chunks):
                source, chunk = {
                    "all_reduce": (-1, k), "reduce_scatter": (-1, rank * share + k),
                    "all_gather": (k // max(share, 1), k),
                    "all_to_all": (k // max(share, 1), rank * share + k % max(share, 1)),
                }[self.kind]  # fmt: skip
                yield self.place(rank, "o", k), source, chunk
