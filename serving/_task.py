"""What is worked out of a step, and what do its wires and experts answer?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collectives import Cost
from serving._chip import ChipNumbers
from serving._elementwise import Number
from serving._layout import Groups, Layout
from serving._model import Model
from serving._operations import Part
from serving._plan import PlacementPlan
from serving._software import Software
from serving._workload import Workload

__all__ = ["Collective", "ExpertLayer", "Task", "Wire"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Wire(Generic[Number]):
    """Time of a collective and its part that grows with bytes [s]; of one step also what `cost` said."""

    seconds: Number
    bandwidth_seconds: Number
    cost: Cost | None = None


class Collective(NamedTuple):
    """What `cost` is asked: kind, sizes, and who takes part how."""

    kind: str
    size: Any
    words: dict[str, Any]


class Task(NamedTuple):
    """What is worked out: model with the loads of its experts, workload, layout, plan, ranks, chip and software."""

    model: Model
    workload: Workload
    layout: Layout
    plan: PlacementPlan
    shares: Floats
    groups: Groups
    chip: ChipNumbers
    software: Software


@dataclass(frozen=True, eq=False)
class ExpertLayer(Generic[Number]):
    """One layer's dispatch, experts and combine, the experts also of half a batch.

    `tokens` of every GPU's experts and how many of them are `hit`, one row per batch: (batches, GPUs).
    """

    dispatch: Wire[Number]
    combine: Wire[Number]
    experts: Part[Number]
    half_experts: Part[Number]
    tokens: Floats
    hit: Floats
