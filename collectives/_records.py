"""What is sent, and what does it cost? The records of this floor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topo.units import format_quantity

__all__ = ["Chunks", "ClassLoad", "Cost", "Flows", "Outer", "Phase", "Schedule", "Transfers", "plain"]

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
    """

    sent: Reals
    received: Reals

    @property
    def matrix(self) -> Floats:
        """The products, (n, n) float [bytes]."""
        return np.outer(self.sent, self.received)

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
    traffic : (n, n) float, Outer or Flows
        Bytes from rank (row) to rank (column); the diagonal is what a rank keeps, and
        uses no wire.
    repeats : int
        Times the phase is run, one after the other, with other chunks of the same sizes.
    reduces : bool
        Whether what arrives is added to what the target has, or takes its place.
    carries : callable, optional
        Which chunks a repeat (from 0) moves; `verify` follows them.
    """

    traffic: Floats | Outer | Flows
    repeats: int = 1
    reduces: bool = False
    carries: Callable[[int], Transfers] | None = None

    @property
    def n_bytes(self) -> Floats:
        """The traffic of one repeat as a matrix, (n, n) float [bytes]."""
        return self.traffic if isinstance(self.traffic, np.ndarray) else self.traffic.matrix

    def sends(self, rows: Ints, columns: Ints) -> NDArray[np.bool_]:
        """Return whether anything is sent between some pairs."""
        traffic = self.traffic
        if isinstance(traffic, Outer):
            return (traffic.sent[rows] > 0) & (traffic.received[columns] > 0)
        if isinstance(traffic, Flows):
            return np.isin(rows * traffic.ends + columns, traffic.source * traffic.ends + traffic.target)
        found: NDArray[np.bool_] = traffic[rows, columns] > 0
        return found

    def totals(self, home: Ints) -> tuple[float, float, float]:
        """Return all bytes, those a rank keeps, and those that leave their home, in all repeats [bytes]."""
        traffic = self.traffic
        if isinstance(traffic, Outer):
            sent, received = np.bincount(home, traffic.sent), np.bincount(home, traffic.received)
            away = float(sent @ (received.sum() - received))
            found = float(sent.sum() * received.sum()), float(traffic.sent @ traffic.received), away
        elif isinstance(traffic, Flows):
            away = float(traffic.n_bytes[home[traffic.source] != home[traffic.target]].sum())
            found = float(traffic.n_bytes.sum()), 0.0, away
        else:
            elsewhere = home[:, None] != home[None, :]
            found = float(traffic.sum()), float(np.trace(traffic)), float(traffic[elsewhere].sum())
        return self.repeats * found[0], self.repeats * found[1], self.repeats * found[2]


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

    def __repr__(self) -> str:
        size, count = format_quantity(self.n_bytes, "bytes"), sum(phase.repeats for phase in self.phases)
        return f"Schedule({self.kind} {self.algorithm}, {len(self.ranks)} ranks, {size}, {count} phases)"


@dataclass(frozen=True)
class ClassLoad:
    """Load of one link class.

    Attributes
    ----------
    n_bytes : float
        Bytes over all its directed links [bytes].
    utilisation : float
        Those bytes over what the class's links could carry in the whole time.
    busiest : str
        Its busiest link, "from -> to".
    busiest_seconds : float
        That link's bytes over its bandwidth [s].
    """

    n_bytes: float
    utilisation: float
    busiest: str
    busiest_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Cost:
    """What a collective costs on a graph.

    Attributes
    ----------
    seconds : float
        Time of all phases [s].
    latency_seconds, bandwidth_seconds : float
        The two parts of it at what binds [s].
    bottleneck : str
        The link ("from -> to") or flow ("from => to") that binds longest.
    bottleneck_kind : str
        Kind of the binding link, or "path" when one flow's own path binds.
    algbw, busbw : float
        As nccl-tests counts them [bytes/s].
    loads : (links,) float
        Bytes over every directed link of the fabric, all phases [bytes]; of `Routes.fabric`,
        cable by cable, under a rule that keeps a flow on one cable.
    classes : dict
        Link kind -> `ClassLoad`.
    remote_share, remote_share_of_sent : float
        Bytes that leave their scale-up domain over all bytes, what ranks keep for
        themselves counted and not counted.
    routing, algorithm, kind : str
        Rule, algorithm and collective.
    pipelined : bool
        Whether phases overlap.
    tried : dict
        With algorithm "best": algorithm -> seconds of each that applies [s].
    n_bytes : float
        Size as given [bytes].
    n_ranks : int
        Ranks taking part.
    profile : str
        Software profile; "ideal" adds none.
    assumptions : tuple of str
        Everything that was filled in.
    """

    seconds: float
    latency_seconds: float
    bandwidth_seconds: float
    bottleneck: str
    bottleneck_kind: str
    algbw: float
    busbw: float
    loads: Floats
    classes: dict[str, ClassLoad]
    remote_share: float
    remote_share_of_sent: float
    routing: str
    algorithm: str
    kind: str
    pipelined: bool
    tried: dict[str, float]
    n_bytes: float
    n_ranks: int
    profile: str
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        time, busbw = format_quantity(self.seconds, "seconds"), format_quantity(self.busbw, "bandwidth")
        return (
            f"Cost({time}, busbw {busbw}: {self.kind} over {self.n_ranks} ranks, "
            f"bound by {self.bottleneck_kind} {self.bottleneck}, routing {self.routing})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys (link loads left out)."""
        result: dict[str, Any] = plain(self, leave_out=("loads",))
        return result


def plain(record: Any, leave_out: Iterable[str] = ()) -> Any:
    """Return a record, array or container as plain JSON values; an infinite number as "Infinity"."""
    if hasattr(record, "__dataclass_fields__"):
        return {f.name: plain(getattr(record, f.name)) for f in fields(record) if f.name not in leave_out}
    if isinstance(record, dict):
        return {str(key): plain(value) for key, value in record.items()}
    if isinstance(record, np.ndarray):
        return plain(record.tolist())
    if isinstance(record, list | tuple):
        return [plain(value) for value in record]
    if isinstance(record, np.generic):
        return plain(record.item())
    if isinstance(record, float) and np.isinf(record):
        return "Infinity" if record > 0 else "-Infinity"
    return record
