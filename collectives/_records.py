"""What is sent, and what does it cost? The records of this floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topo.units import format_quantity

__all__ = ["ClassLoad", "Cost", "Phase", "Schedule", "plain"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Phase:
    """Transfers that start together and end at a barrier.

    Attributes
    ----------
    n_bytes : (n, n) float
        Bytes from rank (row) to rank (column); the diagonal is what a rank keeps, and
        uses no wire.
    """

    n_bytes: Floats


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
    """

    kind: str
    algorithm: str
    ranks: Ints
    n_bytes: float
    busbw_factor: float
    phases: tuple[Phase, ...]

    def __repr__(self) -> str:
        size = format_quantity(self.n_bytes, "bytes")
        return f"Schedule({self.kind} {self.algorithm}, {len(self.ranks)} ranks, {size}, {len(self.phases)} phases)"


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
        Bytes over every directed link of the fabric, all phases [bytes].
    classes : dict
        Link kind -> `ClassLoad`.
    remote_share, remote_share_of_sent : float
        Bytes that leave their scale-up domain over all bytes, what ranks keep for
        themselves counted and not counted.
    routing, algorithm, kind : str
        Rule, algorithm and collective.
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
