"""Is what is called a bound one? No placement of small layers, all of them tried, is below it."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import place
from placement._certificates import filled_bound, least_heaviest, ruled_bound
from placement._copies_bound import copies_bound

from .expert_loads import loads


def counts(n: int, copies: int, most: int) -> list[tuple[int, ...]]:
    return [c for c in product(range(1, most + 1), repeat=n) if sum(c) == copies]


def best_of_all(load: list[float], copies: int, gpus: int, slots: int) -> float:
    """Lightest heaviest GPU of all placements with equal shares and no expert twice on a GPU."""
    least = np.inf
    for count in counts(len(load), copies, gpus):
        share = [x / c for x, c in zip(load, count, strict=True)]

        def put(i: int, weight: tuple[float, ...], free: tuple[int, ...]) -> None:
            nonlocal least
            if max(weight) >= least:
                return
            if i == len(load):
                least = max(weight)
                return
            for where in combinations(range(gpus), count[i]):  # noqa: B023
                if all(free[g] for g in where):
                    put(
                        i + 1,
                        tuple(w + share[i] * (g in where) for g, w in enumerate(weight)),  # noqa: B023
                        tuple(f - (g in where) for g, f in enumerate(free)),
                    )

        put(0, (0.0,) * gpus, (slots,) * gpus)
    return least


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 60).map(float), min_size=2, max_size=5), st.integers(2, 3), st.integers(2, 3), st.data())
def test_no_small_placement_is_below_the_bounds(load: list[float], gpus: int, slots: int, data: st.DataObject) -> None:
    copies = data.draw(st.integers(len(load), max(len(load), gpus * slots - 1)))
    if copies > gpus * slots or copies > gpus * len(load):
        return
    best = best_of_all(load, copies, gpus, slots)
    row = np.array(load)
    floor, _ = least_heaviest(row, copies, np.full(gpus, slots), np.ones(gpus))
    assert floor <= best * (1 + 1e-9)
    bound = copies_bound(row, copies, gpus, slots, floor, best * 1.3, 1e-3)
    assert floor <= bound <= best * (1 + 1e-9)


def test_pairs_by_hand() -> None:
    """Six copies of 6, 6, 6, 1, 1, 1 in pairs: two sixes together or 6 + 1 three times; the mean says 7 as well.

    With 5 and 9 small ones of 1, 1 the three large ones need partners: 9 + 1, 9 + 1, 9 + 5 at best.
    """
    load = np.array([9.0, 9.0, 9.0, 5.0, 1.0, 1.0])
    bound = copies_bound(load, 6, 3, 2, 34 / 3, 14.0, 1e-4)
    assert bound == pytest.approx(14.0, rel=2e-4)


def test_three_slots_by_hand() -> None:
    """Three tens, an eight and five ones on three GPUs: 10 + 8 + 1 = 19 is the best, beside 18 the mean is no proof."""
    load = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0, 1.0, 1.0, 8.0])
    bound = copies_bound(load, 9, 3, 3, 43 / 3, 19.0, 1e-4)
    assert 17.5 <= bound <= 19.0


def test_an_expert_is_as_heavy_as_its_copies_are_few() -> None:
    assert least_heaviest(np.array([90.0, 1.0, 1.0, 1.0, 1.0]), 6, np.full(8, 1), np.ones(8))[0] == pytest.approx(45.0)
    assert least_heaviest(np.array([90.0, 1.0]), 60, np.full(3, 20), np.ones(3))[0] == pytest.approx(91 / 3)


def test_speeds_lower_the_bound() -> None:
    assert least_heaviest(np.array([8.0, 4.0]), 2, np.array([1, 1, 0]), np.array([2.0, 1.0, 9.0]))[0] == pytest.approx(
        4
    )


def test_rules_raise_the_bound() -> None:
    """Three experts of 2 that may only be on one of two GPUs: 6 there."""
    may = np.array([[True, False]] * 3 + [[True, True]])
    assert ruled_bound(np.array([2.0, 2.0, 2.0, 1.0]), may, np.ones(2)) == pytest.approx(6.0)


@pytest.mark.parametrize("seed", range(6))
def test_whole_numbers_of_copies_prove_pairs_to_be_the_best(seed: int) -> None:
    """Five experts on four GPUs of two slots, all placements tried."""
    load = np.exp(np.random.default_rng(seed).standard_normal(5))
    best = best_of_all(load.tolist(), 8, 4, 2) / load.sum() * 4
    found = place(load, 4, replicas=3, exact=True)
    assert found.objective is not None
    assert found.bound is not None
    assert found.bound <= best * (1 + 1e-9)
    assert found.objective <= best * (1 + 6e-4)


def test_whole_numbers_prove_no_less_than_fractions() -> None:
    load = loads(256, "lognormal0.7")[:2]
    quick, exact = (place(load, 144, replicas=32, exact=which) for which in (False, True))
    assert (exact.layer_bound >= quick.layer_bound - 1e-12).all()
    assert (exact.layer_objective <= quick.layer_objective + 1e-12).all()
    assert (exact.layer_bound <= exact.layer_objective + 1e-12).all()


@pytest.mark.parametrize("seed", range(12))
def test_no_placement_with_any_shares_is_below_the_bound_of_full_slots(seed: int) -> None:
    """Four experts in three GPUs of two slots: all placements, each with its best shares by a linear program."""
    from scipy.optimize import linprog

    load = np.exp(1.5 * np.random.default_rng(seed).standard_normal(4))
    best = np.inf
    for seats in product(combinations(range(4), 2), repeat=3):
        pairs = [(g, e) for g, row in enumerate(seats) for e in row]
        if {e for _, e in pairs} != set(range(4)):
            continue
        sums = np.array([[float(e == x) for _, e in pairs] + [0.0] for x in range(4)])
        loads_ = np.array([[float(g == x) for g, _ in pairs] + [-1.0] for x in range(3)])
        least = linprog([0.0] * 6 + [1.0], A_ub=loads_, b_ub=np.zeros(3), A_eq=sums, b_eq=load).fun
        best = min(best, least)
    floor, _ = least_heaviest(load, 6, np.array([2, 2, 2]), np.ones(3))
    bound = filled_bound(load, 6, np.array([2, 2, 2]), np.ones(3), floor)
    assert floor <= bound <= best * (1 + 1e-9)
    found = place(load, 3, replicas=2, sharing="weighted")  # a search, not a proof
    assert found.objective is not None
    assert bound / load.sum() * 3 <= found.objective * (1 + 1e-9) <= best / load.sum() * 3 * 1.01


@pytest.mark.parametrize("seed", range(20))
def test_gpus_of_split_experts_hold_the_lightest_beside_at_least(seed: int) -> None:
    """An expert just below two GPUs' load, light ones and ones of half: best shares of all placements by Hall's."""
    rng = np.random.default_rng(seed)
    load = np.r_[2 - 0.01 * rng.random(), 0.02 + 0.02 * rng.random(2), 0.4 + 0.08 * rng.random(2)]
    best, groups = np.inf, [list(x) for k in range(1, 6) for x in combinations(range(5), k)]
    for seats in product(combinations(range(5), 2), repeat=3):
        held = np.array([np.isin(np.arange(5), row) for row in seats])
        if held.any(axis=0).all():
            best = min(best, max(load[x].sum() / held[:, x].any(axis=1).sum() for x in groups))
    floor, _ = least_heaviest(load, 6, np.array([2, 2, 2]), np.ones(3))
    bound = filled_bound(load, 6, np.array([2, 2, 2]), np.ones(3), floor)
    assert floor * (1 + 1e-3) < bound <= best * (1 + 1e-9)
    assert bound == pytest.approx(best)
