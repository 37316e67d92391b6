"""Which constants may a profile hold? One row each: its unit and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from collectives._tuner_constants import TUNER
from topo.units import Kind

__all__ = ["CONSTANTS", "Constant"]


@dataclass(frozen=True)
class Constant:
    """One row: the kind of quantity, "ratio" for a plain number, its meaning, and what it may be, SI."""

    unit: Kind | Literal["ratio"]
    meaning: str
    least: float = 0.0
    most: float = inf


def _seconds(meaning: str) -> Constant:
    return Constant("seconds", meaning)


def _ratio(meaning: str) -> Constant:
    return Constant("ratio", meaning)


def _part(meaning: str) -> Constant:
    """Return the row of an efficiency: no wire carries more than its rate, and one that carries none never ends."""
    return Constant("ratio", meaning, 1e-6, 1.0)


def _order(meaning: str) -> Constant:
    """Return the row of a norm: of order 1 it is the sum, and no join takes longer."""
    return Constant("ratio", meaning, 1.0)


def _tuned(name: str, unit: Kind | Literal["ratio"], meaning: str) -> Constant:
    if name.startswith("efficiency.") and name != "efficiency.nvls":
        return _part(meaning)
    return Constant(unit, meaning, most=1.0 if name == "efficiency.nvls" else inf)


#: Of collectives that send bytes. LL and LL128 are NCCL's protocols with a flag in every 8 and 128 bytes, Simple the
#: one that moves chunks; "of the wire" is of the time the busiest link needs at full rate.
_COLLECTIVE = {
    "latency.environment": _ratio("factor on every latency: clouds differ"),
    "latency.base": _seconds("launch"),
    "latency.step": _seconds("each step of the ring"),
    "latency.ramp": _ratio("how much slower a step is once it carries kilobytes, not a flag"),
    "ll.efficiency": _part("of the wire, LL"),
    "ll128.latency": _ratio("latency of LL128 over that of LL"),
    "ll128.efficiency": _part("of the wire, LL128"),
    "simple.base": _seconds("launch and first chunks, Simple"),
    "simple.step": _seconds("each step of the ring, Simple"),
    "simple.efficiency": _part("of the wire where nothing is reduced twice"),
    "simple.own": _ratio("part of a rank's own block that costs as one sent"),
    "simple.reduce_efficiency": _part("of the wire, all_reduce"),
    "simple.reduce_own": _ratio("part of a rank's own block that costs as one sent, all_reduce"),
    "simple.pipeline": _seconds("a chunk's way through a step: adds 2 sqrt(this x steps x body)"),
    "nvls.base": _seconds("launch, in-switch reduction"),
    "nvls.pipeline": _seconds("a chunk's way up and down: adds 2 sqrt(this x ranks x body)"),
    "nvls.efficiency": _part("of the wire, in-switch reduction"),
    "exchange.base": _seconds("launch of an all-to-all of flags"),
    "exchange.rank": _seconds("each rank"),
    "exchange.low_efficiency": _part("of the wire, flags"),
    "exchange.bulk_base": _seconds("launch of an all-to-all of chunks"),
    "exchange.rounds": _seconds("launches more above 3 MB to a peer, where chunks go in rounds"),
    "exchange.efficiency": _part("of the wire, chunks"),
    "exchange.own": _ratio("part of a rank's own block that costs as one sent"),
    "exchange.pipeline": _seconds("a chunk's way: adds 2 sqrt(this x ranks x body)"),
    "exchange.norm": _order("norm that joins launch and body: 1 is the sum"),
    "scale_out.step": _seconds("each step between domains"),
    "scale_out.efficiency": _part("of the NIC"),
    "scale_out.overlap": _order("norm that joins scale-up and scale-out time: large is the maximum, 1 the sum"),
}

#: Of expert layers' dispatch and combine.
_EXPERT = {
    "latency.environment": _ratio("factor on every latency: clouds differ"),
    "latency.base": _seconds("launch and barrier of two ranks"),
    "latency.rank": _seconds("each doubling of ranks more"),
    "latency.hosts": _seconds("more where ranks are in several hosts"),
    "latency.combine": _ratio("combine's latency over dispatch's"),
    "latency.combine_rank": _ratio("the same of what ranks, hosts and scale-out add"),
    "latency.scale_out": _seconds("more where tokens leave the domain"),
    "latency.norm": _order("norm that joins latency and body: 1 is the sum"),
    "wire.efficiency": _part("of the scale-up wire"),
    "wire.combine": _ratio("combine's efficiency over dispatch's"),
    "wire.crowd": _ratio("time more for each doubling of ranks beyond eight"),
    "wire.pipeline": _seconds("adds 2 sqrt(this x body)"),
    "token.seconds": _seconds("a token's read and write in its own GPU"),
    "token.combine": _ratio("the same in combine, over dispatch"),
    "token.overlap": _order("norm that joins it and the wires"),
    "scale_out.efficiency": _part("of the NIC"),
    "scale_out.combine": _ratio("combine's efficiency over dispatch's"),
    "scale_out.overlap": _order("norm that joins scale-up and scale-out time"),
    "scale_out.combine_overlap": _order("the same in combine: 1 if sums of a node are ready before they leave it"),
}

#: Law -> dotted name -> row. "ideal" is the wires alone.
CONSTANTS: dict[str, dict[str, Constant]] = {
    "ideal": {}, "collective": _COLLECTIVE, "expert": _EXPERT,
    "nccl-model": {name: _tuned(name, *row) for name, row in TUNER.items()},
}  # fmt: skip
