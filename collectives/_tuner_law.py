"""What time would NCCL's own tuning model give? The model as a law among others, one row at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collectives._tuner import Team, choices

if TYPE_CHECKING:
    from collectives._predict import Features

__all__ = ["model_seconds"]

Floats = NDArray[np.float64]


def model_seconds(constants: Mapping[str, float], features: Features) -> Floats:
    """Return the time of the algorithm and protocol that NCCL picks [s].

    An all-to-all, for which NCCL picks nothing, takes the start of ring/simple and the wires.
    """
    return np.array([_row(constants, features, i) for i in range(len(features.ranks))])


def _row(c: Mapping[str, float], f: Features, i: int) -> float:
    wires = max(f.up[i] / c["efficiency.link"], f.out[i])
    if f.exchange[i] or f.ranks[i] < 2:
        return float(c["base.ring_simple"] + wires)
    kind = "all_reduce" if f.rounds[i] > 1 else "all_gather"
    n_ranks, n_domains = int(f.ranks[i]), int(f.domains[i])
    # A ring sends rounds (n - 1) / n of the size out of every domain, by all its NICs.
    sent = f.rounds[i] * (n_ranks - 1) / n_ranks * f.n_bytes[i]
    nics = sent / f.out[i] if f.out[i] > 0 else 0.0
    team = Team(n_ranks, n_domains, f.bandwidth[i], nics / (n_ranks // n_domains), bool(np.isfinite(f.nvls[i])))
    return choices(c, kind, f.n_bytes[i], team)[0].seconds
