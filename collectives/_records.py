"""What is sent? The records of traffic and schedules."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topo import Fabric
from topo.units import format_quantity

__all__ = ["Chunks", "Flows", "Outer", "Phase", "Schedule", "Traffic", "Transfers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Reals = NDArray[np.floating[Any]]
#: Sending end, receiving end and chunk of every transfer, three (transfers,) int arrays.
Transfers = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, eq=False)
class Outer:
    """Traffic in which rank i sends sent[i] x received[j] bytes to rank j.

    Uniform and expert all-to-alls are of this kind; costing one takes time and memory in
    proportion to the ranks, not to their square.

    Attributes
    ----------
    sent, received : (n,) float
        Zero or more; their products are bytes.
    block : (n,) int, optional
        Ranks of one block exchange, those of different blocks nothing; by default all are one.
    """

    sent: Reals
    received: Reals
    block: Ints | None = None

    @property
    def blocks(self) -> Ints:
        """Number of every rank's block, (n,) int."""
        return np.zeros(len(self.sent), dtype=np.intp) if self.block is None else self.block

    @property
    def matrix(self) -> Floats:
        """The products, (n, n) float [bytes]."""
        whole: Floats = np.outer(self.sent, self.received)
        return whole if self.block is None else np.where(self.block[:, None] == self.block, whole, 0.0)

    @property
    def pairs(self) -> int:
        """Number of ordered pairs of different ranks that exchange anything."""
        number = np.unique(self.blocks, return_inverse=True)[1]
        sends, receives = self.sent > 0, self.received > 0
        return int(np.bincount(number, sends) @ np.bincount(number, receives)) - int((sends & receives).sum())

    @property
    def sizes(self) -> int:
        """Number of different message sizes at most."""
        return len(np.unique(self.sent)) * len(np.unique(self.received))


@dataclass(frozen=True, eq=False)
class Flows:
    """Traffic as a list: source[i] sends n_bytes[i] to target[i], every pair at most once.

    Attributes
    ----------
    source, target : (flows,) int
        Ends: rows of the schedule's ranks, then its switches.
    n_bytes : (flows,) float
        Above zero [bytes].
    ends : int
        Number of ranks and switches.
    """

    source: Ints
    target: Ints
    n_bytes: Floats
    ends: int

    @property
    def matrix(self) -> Floats:
        """The same as a matrix, (ends, ends) float [bytes]."""
        found = np.zeros((self.ends, self.ends))
        found[self.source, self.target] = self.n_bytes
        return found


#: Traffic of a phase.
Traffic: TypeAlias = "Floats | Outer | Flows | tuple[Outer, ...]"


@dataclass(frozen=True, eq=False)
class Chunks:
    """What a collective moves, and what it means.

    Attributes
    ----------
    n_bytes : (chunks,) float
        Size of every chunk [bytes].
    origin : (chunks,) int
        Row of the rank that holds it at first; -1: every rank has its part of a sum.
    goal : (chunks,) int
        Row of the rank that must have it at the end; -1: every rank must.
    """

    n_bytes: Floats
    origin: Ints
    goal: Ints


@dataclass(frozen=True, eq=False)
class Phase:
    """Transfers that start together and end at a barrier.

    Attributes
    ----------
    traffic : (n, n) float, Outer, Flows or tuple of Outer
        Bytes from rank (row) to rank (column); the diagonal is what a rank keeps, and
        uses no wire. Of several products no two have a pair of different ranks in common,
        and none means what a rank would have for itself.
    repeats : int
        Times the phase is run, one after the other, with other chunks of the same sizes.
    reduces : bool
        Whether what arrives is added to what the target has, or takes its place.
    carries : callable, optional
        Which chunks a repeat (from 0) moves; `verify` follows them.
    shares : bool
        Whether chunks of a flow share bytes: copies of one token sent once.
    """

    traffic: Traffic
    repeats: int = 1
    reduces: bool = False
    carries: Callable[[int], Transfers] | None = None
    shares: bool = False

    @property
    def n_bytes(self) -> Floats:
        """The traffic of one repeat as a matrix, (n, n) float [bytes]."""
        if isinstance(self.traffic, tuple):
            whole: Floats = np.sum([part.matrix for part in self.traffic], axis=0)
            np.fill_diagonal(whole, 0.0)
            return whole
        return self.traffic if isinstance(self.traffic, np.ndarray) else self.traffic.matrix

    @property
    def key(self) -> Hashable:
        """Equal for phases of equal traffic."""
        traffic = self.traffic
        if isinstance(traffic, Flows):
            return traffic.source.tobytes(), traffic.target.tobytes(), traffic.n_bytes.tobytes()
        return id(traffic)

    def listed(self, ends: int) -> Flows:
        """Return what one repeat sends over wires among so many ranks and switches."""
        if isinstance(self.traffic, Flows):
            source, target, n_bytes = self.traffic.source, self.traffic.target, self.traffic.n_bytes
        else:
            matrix = self.n_bytes
            source, target = np.nonzero(matrix)
            n_bytes = matrix[source, target]
        wire = np.flatnonzero((source != target) & (n_bytes > 0))
        return Flows(source[wire], target[wire], n_bytes[wire], ends)

    def sends(self, rows: Ints, columns: Ints) -> NDArray[np.bool_]:
        """Return whether anything is sent between some pairs."""
        traffic = self.traffic
        if isinstance(traffic, tuple):
            any_of: NDArray[np.bool_] = np.logical_or.reduce(
                [replace(self, traffic=t).sends(rows, columns) for t in traffic]
            )
            return any_of
        if isinstance(traffic, Outer):
            together = traffic.blocks[rows] == traffic.blocks[columns]
            of_product: NDArray[np.bool_] = (traffic.sent[rows] > 0) & (traffic.received[columns] > 0) & together
            return of_product
        if isinstance(traffic, Flows):
            return np.isin(rows * traffic.ends + columns, traffic.source * traffic.ends + traffic.target)
        found: NDArray[np.bool_] = traffic[rows, columns] > 0
        return found

    def totals(self, home: Ints) -> tuple[float, float, float]:
        """Return all bytes, those a rank keeps, and those that leave their home, in all repeats [bytes]."""
        traffic = self.traffic
        if isinstance(traffic, tuple):
            total, kept, away = np.sum([replace(self, traffic=part).totals(home) for part in traffic], axis=0).tolist()
            return total - kept, 0.0, away
        if isinstance(traffic, Outer):
            total = _dot(traffic, traffic.blocks)
            inside = _dot(traffic, traffic.blocks * (int(home.max()) + 1) + home)
            found = total, float(traffic.sent @ traffic.received), total - inside
        elif isinstance(traffic, Flows):
            away = float(traffic.n_bytes[home[traffic.source] != home[traffic.target]].sum())
            found = float(traffic.n_bytes.sum()), 0.0, away
        else:
            elsewhere = home[:, None] != home[None, :]
            found = float(traffic.sum()), float(np.trace(traffic)), float(traffic[elsewhere].sum())
        return self.repeats * found[0], self.repeats * found[1], self.repeats * found[2]


def _dot(product: Outer, group: Ints) -> float:
    """Return the bytes between ranks of a group, all groups together."""
    number = np.unique(group, return_inverse=True)[1]
    return float(np.bincount(number, product.sent) @ np.bincount(number, product.received))


def _no_nodes() -> Ints:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """A collective as data: what is sent between which ranks, phase by phase.

    Attributes
    ----------
    kind, algorithm : str
        Names of collective and algorithm.
    ranks : (n,) int
        Rank numbers on the fabric; rows and columns of every phase follow them.
    n_bytes : float
        Size as nccl-tests counts it [bytes]; sets algbw and busbw.
    busbw_factor : float
        busbw / algbw.
    phases : tuple of Phase
        In order.
    content : callable, optional
        What is moved, as `Chunks`: written out only for `verify`.
    switches : (switches,) int
        Nodes that take part as ends of flows, each over one link: rows from n on.
    pipelined : bool
        Whether chunks are cut so fine that the phases overlap.
    assumptions : tuple of str
        What was filled in.
    again : callable, optional
        (fabric, algorithm) -> the same collective by another algorithm.
    """

    kind: str
    algorithm: str
    ranks: Ints
    n_bytes: float
    busbw_factor: float
    phases: tuple[Phase, ...]
    content: Callable[[], Chunks] | None = None
    switches: Ints = field(default_factory=_no_nodes)
    pipelined: bool = False
    assumptions: tuple[str, ...] = ()
    again: Callable[[Fabric, str], Schedule] | None = None

    def __repr__(self) -> str:
        size, count = format_quantity(self.n_bytes, "bytes"), sum(phase.repeats for phase in self.phases)
        return f"Schedule({self.kind} {self.algorithm}, {len(self.ranks)} ranks, {size}, {count} phases)"
