"""Is a placement of experts the best there is, or as near to it as its bound says?"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placement._experts import EXACT_CELLS, load_bound, place_experts

Floats = NDArray[np.float64]


def best_placement(load: list[float], gpus: int, slots: int) -> float:
    """Heaviest GPU of the best of all placements."""
    ways = np.array(list(product(range(gpus), repeat=len(load))))
    held = np.stack([(ways == gpu).sum(axis=1) for gpu in range(gpus)], axis=1)
    weight = np.stack([((ways == gpu) * np.array(load)).sum(axis=1) for gpu in range(gpus)], axis=1)
    return float(weight.max(axis=1)[(held <= slots).all(axis=1)].min())


LOADS = st.lists(st.one_of(st.integers(0, 30).map(float), st.floats(0, 1)), min_size=1, max_size=7)


@settings(max_examples=40, deadline=None)
@given(LOADS, st.integers(1, 3), st.integers(0, 2))
def test_small_layers_are_solved_exactly(load: list[float], gpus: int, spare: int) -> None:
    slots = -(-len(load) // gpus) + spare
    best = best_placement(load, gpus, slots)
    found = place_experts(np.array(load), gpus, slots)
    assert found.heaviest == pytest.approx(best, rel=1e-6, abs=1e-12)
    assert found.bound == pytest.approx(best, rel=1e-6, abs=1e-12)
    assert found.bound <= best * (1 + 1e-12) + 1e-15
    assert load_bound(np.array(load), gpus, slots) <= best * (1 + 1e-12) + 1e-15
    assert np.bincount(found.rank, minlength=gpus).max() <= slots
    assert np.bincount(found.rank, weights=load, minlength=gpus).max() == pytest.approx(found.heaviest, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_8_experts_on_3_gpus(seed: int) -> None:
    load = np.random.default_rng(seed).pareto(1.5, 8)
    found = place_experts(load, 3, 3)
    assert found.heaviest == pytest.approx(best_placement(load.tolist(), 3, 3), rel=1e-6)
    assert found.stopped == ""


@given(st.lists(st.floats(0, 100), min_size=1, max_size=80), st.integers(1, 24), st.integers(0, 3))
def test_no_greedy_placement_is_below_its_bound(load: list[float], gpus: int, spare: int) -> None:
    """Beyond the exact solver's size as well: the bound holds, slots are kept, every expert is somewhere."""
    gpus = max(gpus, EXACT_CELLS // len(load) + 1)
    slots = -(-len(load) // gpus) + spare
    found = place_experts(np.array(load), gpus, slots)
    assert found.method == "greedy"
    assert load_bound(np.array(load), gpus, slots) <= found.heaviest * (1 + 1e-12)
    assert found.bound <= found.heaviest
    assert np.bincount(found.rank, minlength=gpus).max() <= slots
    assert len(found.rank) == len(load)
    assert np.bincount(found.rank, weights=load, minlength=gpus).max() == pytest.approx(found.heaviest, rel=1e-12)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.integers(1, 8), st.randoms(use_true_random=False))
def test_the_bound_holds_for_any_placement(load: list[float], gpus: int, dice: object) -> None:
    slots = -(-len(load) // gpus)
    seats = [gpu for gpu in range(gpus) for _ in range(slots)]
    dice.shuffle(seats)  # type: ignore[attr-defined]
    heaviest = np.bincount(seats[: len(load)], weights=load, minlength=gpus).max()
    assert load_bound(np.array(load), gpus, slots) <= heaviest * (1 + 1e-12)


def test_uniform_loads_are_optimal_at_any_size() -> None:
    found = place_experts(np.full(256, 1 / 256), 72, 4)
    assert found.heaviest == found.bound == pytest.approx(4 / 256)


def test_greedy_is_near_its_bound_on_a_zipf_load() -> None:
    load = 1 / np.arange(1, 257)
    found = place_experts(load, 64, 4)
    assert found.bound <= found.heaviest <= 1.2 * found.bound


def test_swaps_mend_what_greedy_alone_does_not() -> None:
    # Heaviest first gives 7 = 3 + 2 + 2 beside 5 = 3 + 2; the best is 6 and 6.
    assert place_experts(np.array([3.0, 3.0, 2.0, 2.0, 2.0]), 2, 3).heaviest == 6.0


def test_slots_bind() -> None:
    found = place_experts(np.array([10.0, 1.0, 1.0, 1.0]), 2, 2)
    assert found.heaviest == found.bound == 11.0
    assert place_experts(np.array([10.0, 1.0, 1.0, 1.0]), 2, 3).heaviest == 10.0


#: A load whose proof needs branching: 16 experts, 8 GPUs, two slots more than needed.
HARD = np.random.default_rng(7).integers(1, 1000, 16).astype(float)


def test_the_clock_is_said_to_have_stopped_the_solver() -> None:
    """It stops with the greedy answer and its bound, whatever is reached before."""
    found = place_experts(HARD, 5, 4, time_limit=1e-9)
    assert "clock" in found.stopped
    assert 0 < found.bound <= found.heaviest


def test_without_a_clock_the_same_answer_twice() -> None:
    first, second = (place_experts(HARD, 5, 4) for _ in range(2))
    assert first.rank.tolist() == second.rank.tolist()
    assert (first.heaviest, first.bound, first.method) == (second.heaviest, second.bound, second.method)


def test_zero_load_is_a_load() -> None:
    found = place_experts(np.zeros(4), 2, 2)
    assert found.heaviest == found.bound == 0.0
