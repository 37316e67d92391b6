"""Do few tokens cross, and no fewer than the bound says? Small cases by trying everything."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placement import AcrossPlacement, Gpus, place_across
from topo import InputError

from .expert_loads import loads

TWO = Gpus([3] * 4, domain=[0, 0, 1, 1])


def crossing_of(found: AcrossPlacement, sources: NDArray[np.float64], gpus: Gpus, layer: int = 0) -> float:
    """Count again, token by token: it crosses where its domain has no copy."""
    assert found.plan is not None
    crossed = 0.0
    for d, e in product(range(sources.shape[0]), range(sources.shape[1])):
        gpus_with = found.plan.slot_rank[layer][found.plan.slot_expert[layer] == e]
        if d not in gpus.domain[gpus_with]:
            crossed += sources[d, e]
    return crossed / sources.sum()


def least_crossing(sources: NDArray[np.float64], slots: int, copies: int) -> float:
    """Of all choices of domains with slots for them, whatever the balance."""
    least = np.inf
    for choice in product([(1, 0), (0, 1), (1, 1)], repeat=sources.shape[1]):
        held = np.array(choice).T
        if held.sum() <= copies and (held.sum(axis=1) <= slots).all():
            least = min(least, sources[held == 0].sum() / sources.sum())
    return least


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=4, max_size=6), st.integers(0, 4))
def test_small_cases_are_solved_exactly(columns: list[tuple[int, int]], replicas: int) -> None:
    sources = np.array(columns, dtype=float).T
    found = place_across(sources, TWO, replicas=replicas, balance=50.0)
    best = least_crossing(sources, 6, len(columns) + replicas)
    assert found.crossing[0] == pytest.approx(crossing_of(found, sources, TWO))
    assert found.crossing[0] <= best + 2e-3
    assert found.bound[0] <= best + 1e-9


def test_the_heaviest_experts_are_in_both_domains() -> None:
    """Asked for alike from both, a copy in both saves half of an expert's tokens: the 4 heaviest of 16 save most."""
    load = np.sort(loads(16, "lognormal0.7", layers=1)[0])[::-1]
    gpus = Gpus([5] * 4, domain=[0, 0, 1, 1])
    found = place_across(np.tile(load / 2, (2, 1)), gpus, replicas=4, balance=1.2, work=400)
    assert found.crossing[0] == pytest.approx(load[4:].sum() / 2 / load.sum(), rel=5e-3)
    assert found.layer_objective[0] <= 1.2


def test_balance_is_kept_at_the_cost_of_crossing() -> None:
    """All tokens come from domain 0, whose GPUs may take half of them."""
    sources = np.vstack([np.ones(8), np.zeros(8)])
    gpus = Gpus([4] * 2, domain=[0, 1])
    found = place_across(sources, gpus, balance=1.01, work=400)
    assert found.crossing[0] == pytest.approx(0.5)
    assert found.bound[0] == pytest.approx(0.5, abs=6e-3)
    assert found.layer_objective[0] == pytest.approx(1.0)


def test_many_domains_are_level_and_bounded() -> None:
    """Eight domains of two GPUs, 192 experts that get 60 % of their tokens from a home: there, 35 % cross."""
    load = loads(192, "lognormal0.7", layers=1)[0]
    home = np.random.default_rng(5).integers(0, 8, 192)
    sources = 0.4 * load / 8 + 0.6 * load * (home == np.arange(8)[:, None])
    gpus = Gpus([13] * 16, domain=np.repeat(np.arange(8), 2))
    found = place_across(sources, gpus, replicas=16, balance=1.05)
    assert found.crossing[0] == pytest.approx(crossing_of(found, sources, gpus))
    assert 0.3 < found.bound[0] < 0.35
    assert found.bound[0] <= found.crossing[0] < found.bound[0] + 0.01
    assert found.layer_objective[0] <= 1.05


def test_an_expert_too_hot_for_its_own_domain_is_elsewhere() -> None:
    """2.6 of 6 GPUs' load is for expert 0 and comes from domain 0, which has two GPUs: all of it crosses."""
    sources = np.zeros((3, 9))
    sources[0, 0], sources[:, 1:] = 2.6, np.tile([[3.4 / 24]], (3, 8))
    gpus = Gpus([4] * 6, domain=[0, 0, 1, 1, 2, 2])
    found = place_across(sources, gpus, replicas=10, balance=1.05, work=200)
    assert found.plan is not None
    assert found.layer_objective[0] <= 1.05
    at = gpus.domain[found.plan.slot_rank[0][found.plan.slot_expert[0] == 0]]
    assert 0 not in at
    assert found.crossing[0] > found.bound[0] > 2.6 / 6


def test_layers_that_cannot_be_level_are_placed_for_a_looser_balance_and_said() -> None:
    """In the second layer one expert has nine tenths of all and one slot: 1.8 times the mean on two GPUs."""
    sources = np.array([[[5.0, 5.0], [5.0, 5.0]], [[9.0, 1.0], [9.0, 1.0]]])
    gpus = Gpus([1, 1], domain=[0, 1])
    found = place_across(sources, gpus, balance=1.01, looser=(1.5, 2.0, 4.0), work=50)
    assert found.layer_balance.tolist() == [1.01, 2.0]
    assert found.layer_objective == pytest.approx([1.0, 1.8])
    assert "1 of 2 layers at 2" in found.status
    assert found.plan is not None
    assert place_across(sources, gpus, balance=1.01, looser=(1.5,), work=50).plan is None


def test_shares_of_an_expert_sum_to_one_and_stay_at_home() -> None:
    """Of the plan's own shares: an expert's tokens from a domain with copies are served there."""
    load = loads(32, "lognormal0.7", layers=2)
    sources = load[:, None] * np.array([0.7, 0.3])[:, None]
    gpus = Gpus([3] * 13, speed=[1.0] * 6 + [2.0] * 7, domain=[0] * 6 + [1] * 7)
    found = place_across(sources, gpus, replicas=7, balance=1.05, work=100)
    plan = found.plan
    assert plan is not None
    assert plan.slot_share is not None
    for layer in range(2):
        expert, rank, share = plan.slot_expert[layer], plan.slot_rank[layer], plan.slot_share[layer]
        assert np.bincount(expert, weights=share, minlength=32) == pytest.approx(np.ones(32), abs=1e-9)
        served = np.zeros((2, 32))
        np.add.at(served, (gpus.domain[rank], expert), share * load[layer, expert])
        has = np.zeros((2, 32), dtype=bool)
        has[gpus.domain[rank], expert] = True
        assert (served[has] >= sources[layer][has] * (1 - 1e-9)).all()
        gpu = np.bincount(rank, weights=share * load[layer, expert], minlength=13) / gpus.speed
        assert gpu.max() / (1 / gpus.speed.sum()) == pytest.approx(found.layer_objective[layer])
        assert len(set(zip(expert.tolist(), rank.tolist(), strict=True))) == 39  # never twice on a GPU


def test_an_expert_nobody_asks_for_is_placed_all_the_same() -> None:
    sources = np.array([[4.0, 0, 0, 1], [0, 0, 4, 1]])
    found = place_across(sources, TWO, replicas=2, balance=1.5, work=100)
    assert found.plan is not None
    assert set(found.plan.slot_expert[0].tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sources": np.ones((3, 4))}, "row for each domain"),
        ({"sources": [[1.0, np.inf], [1.0, 1.0]]}, "finite"),
        ({"sources": np.ones((2, 13))}, "fewer than the 13 copies"),
        ({"balance": 1.0}, "balance"),
        ({"replicas": -1}, "replicas"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        place_across(**({"sources": np.ones((2, 4)), "gpus": TWO} | arguments))


def test_a_balance_that_cannot_be_is_infeasible() -> None:
    found = place_across(np.array([[9.0, 1.0], [9.0, 1.0]]), Gpus([1, 1], domain=[0, 1]), balance=1.01)
    assert found.plan is None
    assert "within 1.01 of the mean" in found.status
