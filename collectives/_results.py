"""What does a collective cost? The records of the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topo.units import format_quantity

__all__ = ["ClassLoad", "Cost", "PhaseCost", "Sensitivity", "plain"]

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class PhaseCost:
    """What one phase costs, once.

    Attributes
    ----------
    latency_seconds, bandwidth_seconds : float
        The two parts of it at what binds [s].
    bottleneck, bottleneck_kind : str
        As in `Cost`.
    repeats : int
        How often it runs.
    classes : dict
        Link kind -> `ClassLoad` of one repeat.
    """

    latency_seconds: float = 0.0
    bandwidth_seconds: float = 0.0
    bottleneck: str = "nothing is sent"
    bottleneck_kind: str = "none"
    repeats: int = 1
    classes: dict[str, ClassLoad] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Latency and transfer at what binds [s]."""
        return self.latency_seconds + self.bandwidth_seconds


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
    phases : tuple of PhaseCost
        Every phase of the schedule in order, one repeat of it.
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
    band : (float, float) or None
        Of a profile's prediction: nine in ten measurements are between these [s].
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
    phases: tuple[PhaseCost, ...]
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
    band: tuple[float, float] | None = None

    def __repr__(self) -> str:
        time, busbw = format_quantity(self.seconds, "seconds"), format_quantity(self.busbw, "bandwidth")
        return (
            f"Cost({time}, busbw {busbw}: {self.kind} over {self.n_ranks} ranks, "
            f"{self._binds}, routing {self.routing}{self._software})"
        )

    @property
    def _binds(self) -> str:
        return (
            f"bound by {self.bottleneck_kind} {self.bottleneck}" if self.bottleneck_kind != "none" else self.bottleneck
        )

    @property
    def _software(self) -> str:
        if self.band is None:
            return ""
        low, high = (format_quantity(seconds, "seconds", 3) for seconds in self.band)
        return f", profile {self.profile}: {low} to {high}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys (link loads left out)."""
        result: dict[str, Any] = plain(self, leave_out=("loads",))
        return result


@dataclass(frozen=True)
class Sensitivity:
    """How much time faster links would save.

    Attributes
    ----------
    cost : Cost
        As things are.
    saved : dict
        Link kind -> time saved per relative increase of its bandwidth [s]: where 0.2 s are
        saved, 1 % more bandwidth saves 2 ms. Where two kinds bind alike neither saves alone.
    """

    cost: Cost
    saved: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: seconds now, and seconds saved by link kind."""
        return {"seconds": self.cost.seconds, "saved": plain(self.saved)}


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
