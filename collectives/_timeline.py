"""What happened when? The record of a simulated collective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives._results import plain
from topo import EDGE_KINDS
from topo.units import format_quantity

__all__ = ["ClassUse", "PhaseTime", "Timeline"]

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


@dataclass(frozen=True, eq=False)
class ClassUse:
    """How busy the links of one class are, interval by interval.

    Attributes
    ----------
    mean : (intervals,) float
        Part of the bandwidth of all its links that is in use.
    most : (intervals,) float
        That of its busiest link in each interval.
    """

    mean: Floats
    most: Floats


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
    link_kind : (links,) int
        Index into `topo.EDGE_KINDS`.
    bandwidth, loads : (links,) float
        What every directed link can carry [bytes/s]; bytes over every directed link of the routes' fabric [bytes].
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
    link_kind: Ints
    bandwidth: Floats
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

    def finish(self, *parts: float) -> list[float]:
        """Return by when such parts of all flows have arrived, 0.5 for half of them [s]; none of none."""
        if not len(self.flow_ends):
            return []
        found: list[float] = np.quantile(self.flow_ends, parts, method="inverted_cdf").tolist()
        return found

    def intervals(self, n: int) -> tuple[Floats, dict[str, ClassUse]]:
        """Return the ends of n equal intervals [s] and how busy the links of every class are in each."""
        if not len(self.times):
            return np.zeros(0), {}
        known = np.concatenate([[0.0], self.times])
        busy = np.concatenate([np.zeros((1, len(self.loads))), np.cumsum(self.use * np.diff(known)[:, None], axis=0)])
        ends = np.linspace(0.0, self.times[-1], n + 1)
        after = np.clip(np.searchsorted(known, ends), 1, len(self.times))
        part = ((ends - known[after - 1]) / (known[after] - known[after - 1]))[:, None]
        use = np.diff(busy[after - 1] * (1 - part) + busy[after] * part, axis=0) / np.diff(ends)[:, None]
        found = {}
        for number in np.unique(self.link_kind).tolist():
            mine = np.flatnonzero(self.link_kind == number)
            mean = use[:, mine] @ self.bandwidth[mine] / self.bandwidth[mine].sum()
            found[EDGE_KINDS[number]] = ClassUse(mean, use[:, mine].max(axis=1))
        return ends[1:], found

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys (arrays over flows and links left out)."""
        arrays = [name for name, value in vars(self).items() if isinstance(value, np.ndarray)]
        result: dict[str, Any] = plain(self, leave_out=arrays)
        return result
