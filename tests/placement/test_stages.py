"""Is the cut of a chain of layers the best of all cuts?"""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement._stages import cut_layers


def best_cut(seconds: list[float], n_bytes: list[float], stages: int, capacity: float) -> float:
    """Slowest stage of the best of all cuts, infinite when none keeps within memory."""
    n, best = len(seconds), math.inf
    for inner in combinations(range(1, n), stages - 1):
        ends = [0, *inner, n]
        pieces = [slice(a, b) for a, b in pairwise(ends)]
        if all(math.fsum(n_bytes[piece]) <= capacity for piece in pieces):
            best = min(best, max(math.fsum(seconds[piece]) for piece in pieces))
    return best


#: Whole numbers, so that sums are exact and ties are ties.
NUMBERS = st.integers(0, 9).map(float)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=9), st.integers(1, 4), st.integers(0, 40))
def test_no_cut_is_better(layers: list[tuple[float, float]], stages: int, capacity: int) -> None:
    stages = min(stages, len(layers))
    seconds, n_bytes = [t for t, _ in layers], [b for _, b in layers]
    best = best_cut(seconds, n_bytes, stages, float(capacity))
    found = cut_layers(seconds, n_bytes, stages, float(capacity))
    if found is None:
        assert best == math.inf
        return
    stage, slowest = found
    assert slowest == best
    assert sorted(set(stage.tolist())) == list(range(stages))  # none is empty
    assert (np.diff(stage) >= 0).all()
    assert slowest == np.bincount(stage, weights=seconds).max()
    assert np.bincount(stage, weights=n_bytes).max() <= capacity


def test_memory_moves_the_cut() -> None:
    seconds, n_bytes = [1.0, 1.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0]
    assert cut_layers(seconds, n_bytes, 2, 4.0) == (pytest.approx([0, 0, 0, 1]), 3.0)
    assert cut_layers(seconds, n_bytes, 2, 2.0) == (pytest.approx([0, 0, 1, 1]), 4.0)
    assert cut_layers(seconds, n_bytes, 2, 1.0) is None


def test_one_stage_is_everything_or_nothing() -> None:
    stage, slowest = cut_layers([1.0, 2.0], [3.0, 4.0], 1, 7.0) or (None, 0.0)
    assert stage is not None
    assert stage.tolist() == [0, 0]
    assert slowest == 3.0
    assert cut_layers([1.0, 2.0], [3.0, 4.0], 1, 6.9) is None


def test_like_layers_are_cut_evenly() -> None:
    stage, _ = cut_layers([0.1] * 94, [1.0] * 94, 47, 2.0) or (np.zeros(0), 0.0)
    assert np.bincount(stage.astype(int)).tolist() == [2] * 47
