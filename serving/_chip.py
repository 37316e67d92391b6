"""What can the weakest chip of a group do?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from serving._dtypes import MATMUL_RATE, matmul_rate
from topo import Fabric, Fault, InputError

__all__ = ["ChipNumbers", "chip_numbers"]

Ints = NDArray[np.intp]


@dataclass(frozen=True)
class ChipNumbers:
    """The weakest chip of a group: HBM [bytes, bytes/s], dense rates by dtype [FLOP/s], and what was said of it."""

    hbm_bytes: float
    hbm_bandwidth: float
    flops: dict[str, float]
    notes: tuple[str, ...]
    name: str = ""

    def rate(self, dtype: str) -> float:
        """Matmul rate of a dtype [FLOP/s]."""
        return self._rate(dtype)[0]

    def _rate(self, dtype: str) -> tuple[float, str]:
        return matmul_rate(self.flops, dtype, f"chip.flops of {self.name}")

    def fallbacks(self, dtypes: set[str]) -> list[str]:
        """Say which dtypes are multiplied at a wider dtype's rate."""
        used = {dtype: self._rate(dtype)[1] for dtype in sorted(dtypes)}
        return [
            f"{dtype} is multiplied at the chip's {key} rate: it states none for {MATMUL_RATE[dtype]}"
            for dtype, key in used.items() if key != MATMUL_RATE[dtype]
        ]  # fmt: skip


def chip_numbers(graph: nx.Graph[str] | Fabric, ranks: ArrayLike) -> ChipNumbers:
    """Return the numbers every chip of a group reaches.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    ranks : (n,) int
        The group, one rank or more.

    Raises
    ------
    InputError
        A rank that is none, one without a chip, or a chip without numbers.

    Examples
    --------
    >>> import topo
    >>> chip_numbers(topo.load("gb200-nvl72"), [0]).hbm_bandwidth
    8000000000000.0
    """
    fabric, group = Fabric.from_graph(graph), np.asarray(ranks)
    if group.ndim != 1 or not len(group) or group.dtype.kind not in "iu" or not _within(group, fabric.n_ranks):
        rule = f"must be one or more ranks, from 0 to {fabric.n_ranks - 1}"
        raise InputError(Fault("ranks", ranks, rule, "Give for example range(8)."))
    names = sorted({fabric.chip[int(r)] for r in group})
    faults = [fault for name in names for fault in _chip_faults(name, fabric.chips.get(name))]
    if faults:
        raise InputError(*faults)
    chips = [fabric.chips[name] for name in names]
    shared = set.intersection(*(set(chip["flops"]) for chip in chips))
    return ChipNumbers(
        hbm_bytes=min(chip["hbm_bytes"] for chip in chips),
        hbm_bandwidth=min(chip["hbm_bandwidth"] for chip in chips),
        flops={key: min(chip["flops"][key] for chip in chips) for key in sorted(shared)},
        notes=(f"chips differ ({', '.join(names)}): the weakest number of each counts",) if len(names) > 1 else (),
        name=", ".join(names),
    )


def _within(ranks: NDArray[np.intp], count: int) -> bool:
    return bool(((ranks >= 0) & (ranks < count)).all())


def _chip_faults(name: str, numbers: object) -> list[Fault]:
    """Return what of a chip's numbers a step cannot be worked out with."""
    place = f"chips[{name!r}]"
    if not isinstance(numbers, dict) or not {"hbm_bytes", "hbm_bandwidth", "flops"} <= set(numbers):
        cure = 'Give GPU nodes chip= and graph.graph["chips"][name] hbm_bytes, hbm_bandwidth, flops.'
        return [Fault(place, name, "has no numbers in this graph", cure)]
    values = {"hbm_bytes": numbers["hbm_bytes"], "hbm_bandwidth": numbers["hbm_bandwidth"]}
    values |= {f"flops.{key}": value for key, value in numbers["flops"].items()}
    return [
        Fault(f"{place}.{key}", value, "must be a finite number above zero, in SI units", "Correct it.")
        for key, value in values.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
    ]
