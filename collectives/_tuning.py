"""Which algorithm and protocol would NCCL take? Its published tuning model, for many collectives at once."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from collectives._profile import load_profile
from collectives._tuner_constants import PROTOCOLS, TUNER

__all__ = ["CHOICES", "tuned_seconds"]

Floats = NDArray[np.float64]

#: Rows of `tuned_seconds`: the rings of three protocols, and in-switch reduction.
CHOICES = ("ring LL", "ring LL128", "ring Simple", "nvls Simple")
#: Least nominal scale-up bandwidth per GPU [bytes/s], and the table of that generation.
_LEAST = np.array([0.0, 350e9, 700e9])
_TABLES = ("nccl-model-a100", "nccl-model-h100", "nccl-model-b200")


@cache
def _columns() -> dict[str, Floats]:
    """Return every constant of the three tables, (tables,) float."""
    tables = [load_profile(name).constants for name in _TABLES]
    return {name: np.array([table[name] for table in tables]) for name in TUNER}


def tuned_seconds(steps: Floats, up: Floats, nvls: Floats, bandwidth: Floats) -> Floats:
    """Return NCCL's own estimate for every choice, within a domain.

    Parameters
    ----------
    steps : (rows,) float
        Steps of the ring: ranks - 1, twice that of an all-reduce.
    up, nvls : (rows,) float
        Time of the busiest scale-up link at its full rate, by ring and by in-switch
        reduction; infinite where there is none [s].
    bandwidth : (rows,) float
        Nominal scale-up bandwidth of a GPU [bytes/s].

    Returns
    -------
    (choices, rows) float
        In the order of `CHOICES` [s].

    References
    ----------
    NVIDIA/nccl src/graph/tuning.cc, in the tables nccl-model-a100, -h100 and -b200: base and
    hop latencies, LL half and LL128 0.92 of the ring's bandwidth, LL's limits by generation,
    NVLS efficiencies. In-switch reduction is counted by the bytes on a GPU's own link,
    n (1 + 1/p).

    Examples
    --------
    Eight GPUs, one NVLink node, all-reduce of no bytes: 15.0, 40.6, 56.0 us, NVLS 25.

    >>> (tuned_seconds(np.array([14.0]), np.zeros(1), np.zeros(1), np.array([450e9])) * 1e6).T.round(
    ...     3
    ... ).tolist()
    [[15.0, 40.6, 56.0, 25.0]]
    """
    table = np.searchsorted(_LEAST, bandwidth, side="right") - 1
    c = {name: values[table] for name, values in _columns().items()}
    wire, ones = up / c["efficiency.link"], np.ones(len(table))
    slower = np.array([1 / c["efficiency.ring_ll"], 1 / c["efficiency.ring_ll128"], ones]) * wire
    slower[0] = np.maximum(slower[0], up * bandwidth / c["most.ll_one"])
    latency = np.array([c[f"base.ring_{each}"] + c[f"nvlink.ring_{each}"] * steps for each in PROTOCOLS])
    eased = c["efficiency.nvls"] > 0
    reduced = c["nvlink.nvls_simple"] + nvls / (c["efficiency.link"] * np.where(eased, c["efficiency.nvls"], 1.0))
    found: Floats = np.vstack([latency + slower, np.where(eased, reduced, np.inf)])
    return found
