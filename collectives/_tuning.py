"""Which algorithm and protocol would NCCL take? Its published tuning model, for many collectives at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHOICES", "Tuning", "tuned_seconds", "tuning_of"]

Floats = NDArray[np.float64]

#: Rows of `tuned_seconds`: the rings of three protocols, and in-switch reduction.
CHOICES = ("ring LL", "ring LL128", "ring Simple", "nvls Simple")


@dataclass(frozen=True)
class Tuning:
    """What NCCL takes a generation's links to do.

    Attributes
    ----------
    link : float
        Part of the nominal bandwidth it counts on.
    low_limit : float
        Most that LL reaches within a host [bytes/s].
    nvls : float
        Efficiency of in-switch reduction; 0 where there is none.
    """

    link: float
    low_limit: float
    nvls: float


#: Least nominal scale-up bandwidth per GPU [bytes/s], row: Ampere, Hopper, Blackwell.
_GENERATIONS = (
    (0.0, Tuning(20.0 / 25.0, 87.7e9, 0.0)),
    (350e9, Tuning(20.6 / 25.0, 141e9, 0.85)),
    (700e9, Tuning(40.1 / 50.0, 282e9, 0.74)),
)
#: LL, LL128, Simple: launch and each step over NVLink [s], and part of the ring's bandwidth.
_BASE = np.array([6.6e-6, 14.0e-6, 8.4e-6])
_STEP = np.array([0.6e-6, 1.9e-6, 3.4e-6])
_SHARE = np.array([0.5, 0.92, 1.0])
_NVLS = 25.0e-6


def tuning_of(bandwidth: float) -> Tuning:
    """Return the row for a nominal scale-up bandwidth per GPU [bytes/s].

    Examples
    --------
    >>> tuning_of(450e9).nvls
    0.85
    """
    return [tuning for least, tuning in _GENERATIONS if bandwidth >= least][-1]


def tuned_seconds(steps: Floats, up: Floats, nvls: Floats, bandwidth: Floats) -> Floats:
    """Return NCCL's own estimate for every choice.

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
    NVIDIA/nccl src/graph/tuning.cc: base and hop latencies, LL half and LL128 0.92 of the
    ring's bandwidth, LL's limits by generation, NVLS efficiencies. In-switch reduction is
    counted by the bytes on a GPU's own link, n (1 + 1/p).

    Examples
    --------
    Eight GPUs, one NVLink node, all-reduce of no bytes: 15.0, 40.6, 56.0 us, NVLS 25.

    >>> (tuned_seconds(np.array([14.0]), np.zeros(1), np.zeros(1), np.array([450e9])) * 1e6).T.round(
    ...     3
    ... ).tolist()
    [[15.0, 40.6, 56.0, 25.0]]
    """
    rows = [tuning_of(float(value)) for value in bandwidth]
    link = np.array([row.link for row in rows])
    low = np.array([row.low_limit for row in rows])
    eased = np.array([row.nvls for row in rows])
    ring = _BASE[:, None] + _STEP[:, None] * steps + up / (_SHARE[:, None] * link)
    ring[0] = np.maximum(ring[0], _BASE[0] + _STEP[0] * steps + up * bandwidth / low)
    reduced = np.where(eased > 0, _NVLS + nvls / (link * np.where(eased > 0, eased, 1.0)), np.inf)
    found: Floats = np.vstack([ring, reduced])
    return found
