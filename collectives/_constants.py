"""Which constants may a profile hold? One row each: its unit and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topo.units import Kind

__all__ = ["CONSTANTS", "Constant"]


@dataclass(frozen=True)
class Constant:
    """One row: the kind of quantity, "ratio" for a plain number, and its meaning."""

    unit: Kind | Literal["ratio"]
    meaning: str


def _seconds(meaning: str) -> Constant:
    return Constant("seconds", meaning)


def _ratio(meaning: str) -> Constant:
    return Constant("ratio", meaning)


#: Law -> dotted name -> row. "ideal" is the wires alone.
CONSTANTS: dict[str, dict[str, Constant]] = {
    "ideal": {},
    "ring": {
        "latency.environment": _ratio("factor on every latency: clouds differ"),
        "latency.base": _seconds("launch and first step"),
        "latency.step": _seconds("each step more"),
    },
    "expert": {
        "latency.environment": _ratio("factor on every latency: clouds differ"),
        "latency.base": _seconds("launch of the kernel"),
    },
}
