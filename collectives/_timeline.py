"""What happened when? The record of a simulated collective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives._results import plain
from topo.units import format_quantity

__all__ = ["PhaseTime", "Timeline"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class PhaseTime:
    """One phase of a timeline.

    Attributes
    ----------
    start, end : float
        When its first flow starts and its last one has arrived [s].
    last : str
        The flow that arrives last, "from => to".
    n_flows, n_subflows : int
        Its flows, and the paths they are split over.
    """

    start: float
    end: float
    last: str
    n_flows: int
    n_subflows: int


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """A collective simulated with max-min fair sharing.

    Attributes
    ----------
    seconds : float
        When the last byte has arrived [s].
    algbw, busbw : float
        As nccl-tests counts them [bytes/s].
    phases : tuple of PhaseTime
        In order.
    barriers : bool
        Whether a phase waits until the one before has ended everywhere; otherwise a rank
        goes on once all it sends and receives in earlier phases has arrived.
    flow_phase, flow_source, flow_target : (flows,) int
        Phase of every flow, and its ends, nodes of the routes' fabric.
    flow_bytes, flow_ends : (flows,) float
        Its bytes, and when the last of them has arrived [bytes, s].
    times : (samples,) float
        Ends of the intervals in which link use is given [s]; from 0 to the first, and so on.
    use : (samples, links) float
        Part of every directed link's bandwidth that is in use, averaged over the interval.
    loads : (links,) float
        Bytes over every directed link of the routes' fabric [bytes].
    routing, algorithm, kind : str
        Rule, algorithm and collective.
    n_bytes : float
        Size as given [bytes].
    n_ranks : int
        Ranks taking part.
    assumptions : tuple of str
        Everything that was filled in.
    """

    seconds: float
    algbw: float
    busbw: float
    phases: tuple[PhaseTime, ...]
    barriers: bool
    flow_phase: Ints
    flow_source: Ints
    flow_target: Ints
    flow_bytes: Floats
    flow_ends: Floats
    times: Floats
    use: Floats
    loads: Floats
    routing: str
    algorithm: str
    kind: str
    n_bytes: float
    n_ranks: int
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        time, busbw = format_quantity(self.seconds, "seconds"), format_quantity(self.busbw, "bandwidth")
        paths = sum(phase.n_subflows for phase in self.phases)
        return (
            f"Timeline({time}, busbw {busbw}: {self.kind} over {self.n_ranks} ranks, {len(self.phases)} phases "
            f"{'with' if self.barriers else 'without'} barriers, {len(self.flow_ends)} flows on {paths} paths, "
            f"routing {self.routing})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys (arrays over flows and links left out)."""
        arrays = [name for name, value in vars(self).items() if isinstance(value, np.ndarray)]
        result: dict[str, Any] = plain(self, leave_out=arrays)
        return result
