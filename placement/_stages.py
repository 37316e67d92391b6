"""Which pipeline stage gets which layers? Exact: the chain is cut where the heaviest stage is lightest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["cut_layers"]

Ints = NDArray[np.intp]


def cut_layers(
    seconds: Sequence[float], n_bytes: Sequence[float], stages: int, capacity: float
) -> tuple[Ints, float] | None:  # fmt: skip
    """Cut a chain of layers into stages so that the slowest stage is as fast as can be.

    Parameters
    ----------
    seconds, n_bytes : sequences of float, one per layer
        Time [s] and memory [bytes] of each layer on its stage's fullest GPU.
    stages : int
        Number of stages, at most the number of layers; none is empty.
    capacity : float
        Memory a stage may fill [bytes].

    Returns
    -------
    (layers,) int and float, or None
        Stage of every layer, ascending, and the slowest stage's time [s]; None when no
        cut keeps every stage within its memory.

    Notes
    -----
    Dynamic programming over (stages, first layers): exact, O(stages layers^2).

    Examples
    --------
    >>> cut_layers([1.0, 1.0, 2.0], [1.0, 1.0, 1.0], 2, 2.0)
    (array([0, 0, 1]), 2.0)
    """
    n = len(seconds)
    time = np.concatenate([[0.0], np.cumsum(seconds)])
    held = np.concatenate([[0.0], np.cumsum(n_bytes)])
    best = np.full((stages + 1, n + 1), math.inf)
    cut_at = np.zeros((stages + 1, n + 1), dtype=np.intp)
    best[0, 0] = 0.0
    for s in range(1, stages + 1):
        for end in range(s, n + 1):
            first = np.arange(s - 1, end)
            worst = np.maximum(best[s - 1, first], time[end] - time[first])
            worst[held[end] - held[first] > capacity * (1 + 1e-12)] = math.inf
            k = int(np.argmin(worst))
            best[s, end], cut_at[s, end] = worst[k], first[k]
    if not math.isfinite(best[stages, n]):
        return None
    stage = np.zeros(n, dtype=np.intp)
    end = n
    for s in range(stages, 0, -1):
        stage[cut_at[s, end] : end] = s - 1
        end = int(cut_at[s, end])
    return stage, float(best[stages, n])
