"""Which loads do experts have? Seeded generators of three shapes, and the sizes they are placed on (numpy only).

Every row sums to 1. Seeds: np.random.default_rng([seed, experts, number of the kind]), so sizes with as many experts
see the same loads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 20261130
LAYERS = 58
KINDS = ("lognormal0.7", "zipf1", "powerlaw1.01")
#: Experts, spare copies, GPUs.
CASES = [(16, 0, 4), (64, 0, 8), (64, 8, 8), (256, 0, 64), (256, 32, 72), (256, 32, 144), (256, 64, 320), (384, 32, 72)]
#: Experts, spare copies, GPUs, groups, nodes.
HIER = [(256, 32, 32, 8, 4), (256, 32, 72, 8, 2), (256, 32, 144, 8, 2), (256, 32, 144, 8, 8)]


def loads(experts: int, kind: str, layers: int = LAYERS, seed: int = SEED) -> NDArray[np.float64]:
    """Loads (layers, experts), each row summing to 1.

    lognormal0.7: independent exp(0.7 z); Gini about 0.38. zipf1: 1 / rank, shuffled, with 5 % of jitter either way.
    powerlaw1.01: the shape NVIDIA's AIConfigurator documents for DeepSeek-V3/R1 (truncated power law, exponent 1.01):
    inverse-CDF samples on [1, 0.8 * 1024], then every expert capped at the 1,024 tokens of the batch (top-8), the
    surplus spread evenly.
    """
    rng = np.random.default_rng([seed, experts, KINDS.index(kind)])
    if kind == "lognormal0.7":
        w = np.exp(0.7 * rng.standard_normal((layers, experts)))
    elif kind == "zipf1":
        w = (1.0 / np.arange(1, experts + 1))[None, :] * rng.uniform(0.95, 1.05, (layers, experts))
        w = rng.permuted(w, axis=1)
    else:
        a, lo, hi, tokens, topk = 1.01, 1.0, 0.8 * 1024, 1024, 8
        u = rng.random((layers, experts))
        w = ((hi ** (1 - a) - lo ** (1 - a)) * u + lo ** (1 - a)) ** (1 / (1 - a))
        w = w / w.sum(1, keepdims=True) * tokens * topk
        for _ in range(20):
            over = np.maximum(w - tokens, 0).sum(1, keepdims=True)
            w = np.minimum(w, tokens)
            room = w < tokens
            w = w + room * over / np.maximum(room.sum(1, keepdims=True), 1)
    return np.asarray(w / w.sum(1, keepdims=True))
