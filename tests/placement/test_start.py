"""Is the quick placement valid, and as light as plain packing should be?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placement._exchanges import Seats
from placement._start import copy_counts, even_slots, heaviest_of, start

from .expert_loads import CASES, KINDS, loads

Floats = NDArray[np.float64]


def check(load: Floats, seats: Seats, slots: NDArray[np.int64]) -> None:
    """Every expert has the copies its count says, one or more, and every slot there is holds one."""
    n = load.shape[1]
    assert ((seats.expert < n).sum(axis=2) == slots).all()
    assert (seats.count >= 1).all()
    for row, count in zip(seats.expert, seats.count, strict=True):
        assert np.bincount(row[row < n], minlength=n).tolist() == count.tolist()


def doubled(seats: Seats, n: int) -> int:
    """GPUs with two copies of one expert."""
    return sum(len(np.unique(gpu[gpu < n])) < (gpu < n).sum() for row in seats.expert for gpu in row)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("experts", "spare", "gpus"), CASES)
def test_every_slot_is_filled_and_no_copy_is_beside_its_like(experts: int, spare: int, gpus: int, kind: str) -> None:
    load, slots = loads(experts, kind, layers=6), even_slots(experts + spare, gpus)
    seats = start(load, slots)
    check(load, seats, slots)
    assert doubled(seats, experts) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=9),
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.lists(st.floats(0.5, 2), min_size=5, max_size=5),
)
def test_any_slots_and_speeds(load: list[float], slots: list[int], speed: list[float]) -> None:
    room = np.array(slots) + (np.arange(len(slots)) == 0) * max(0, len(load) - sum(slots))
    row, pace = np.array([load]) + 1e-3, np.array(speed[: len(slots)])
    seats = start(row, room, pace)
    check(row, seats, room)
    fair = row.sum() / pace[room > 0].sum()
    assert heaviest_of(row, seats, pace)[0] >= fair * (1 - 1e-12)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=6),
    st.lists(st.floats(0, 100), min_size=1, max_size=7),
    st.sampled_from([1.0, 1e12]),
    st.floats(0, 1),
)
def test_no_gpu_has_an_expert_twice_where_they_can_be_apart(
    slots: list[int], load: list[float], unit: float, part: float
) -> None:
    """A GPU holds as many different experts as it has slots, but no more than there are."""
    n, room = len(load), np.array(slots)
    most = int(np.minimum(room, n).sum())
    if most < n:
        return
    seats = start((np.array([load]) + 1e-3) * unit, room, copies=n + int(part * (most - n)), doubled=False)
    assert doubled(seats, n) == 0
    assert seats.count.sum() == n + int(part * (most - n))
    assert seats.count.min() >= 1


def test_water_filling_leaves_the_heaviest_copy_as_light_as_can_be() -> None:
    """6 / 6, 3 / 3 and 1 / 1: ten copies of the same load."""
    assert copy_counts(np.array([[6.0, 3.0, 1.0]]), 10, 10).tolist() == [[6, 3, 1]]


def test_a_fast_gpu_takes_more() -> None:
    """12 units on speeds 2 and 1 are level at 8 and 4."""
    load, speed = np.array([[4.0, 3.0, 3.0, 1.0, 1.0]]), np.array([2.0, 1.0])
    assert heaviest_of(load, start(load, np.array([3, 2]), speed), speed)[0] == 4.0


def test_a_gpu_without_slots_stays_empty() -> None:
    seats = start(np.array([[3.0, 2.0, 1.0]]), np.array([2, 0, 1]))
    assert (seats.expert[0, 1] == 3).all()
    assert heaviest_of(np.array([[3.0, 2.0, 1.0]]), seats, np.ones(3))[0] == 3.0


def test_a_layer_does_not_depend_on_the_others() -> None:
    load, slots = loads(256, "powerlaw1.01", layers=5), even_slots(288, 72)
    whole = start(load, slots).expert
    assert all((start(load[i : i + 1], slots).expert[0] == whole[i]).all() for i in range(5))
