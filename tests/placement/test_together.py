"""Are experts chosen together put together? Planted groups, enumeration of small cases, bounds below all of them."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placement import Gpus, Rules, domain_visits, group_experts, place
from topo import InputError

Ints = NDArray[np.int64]

TWO = Gpus([3, 3], domain=[4, 7])


def visits_of(choices: Ints, domain: Any) -> float:
    """Count again, token by token."""
    return float(np.mean([len({int(domain[e]) for e in token}) for token in choices]))


def planted(groups: int, size: int, tokens: int, k: int, seed: int) -> tuple[Ints, Ints]:
    """Tokens whose experts are all of one group, experts shuffled; the group of every expert."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(groups * size)
    choices = [rng.choice(size, k, replace=False) + size * rng.integers(groups) for _ in range(tokens)]
    group = np.empty(groups * size, dtype=np.int64)
    group[name] = np.arange(groups * size) // size
    return name[np.array(choices)], group


def test_planted_groups_are_found() -> None:
    choices, group = planted(groups=6, size=8, tokens=3000, k=4, seed=1)
    gpus = Gpus([4] * 12, domain=np.repeat(np.arange(6), 2))
    found = group_experts(gpus, choices, balance=1.2)
    assert found.visits == found.visits_bound == 1.0
    assert found.apart == 0.0
    assert {frozenset(each) for each in found.groups} == {
        frozenset(np.flatnonzero(group == g).tolist()) for g in range(6)
    }


def test_counts_of_pairs_do_as_well() -> None:
    choices, group = planted(groups=4, size=6, tokens=2000, k=3, seed=2)
    pairs = np.zeros((24, 24))
    for token in choices:
        pairs[np.ix_(token, token)] += 1
    found = group_experts(Gpus([6] * 4, domain=np.arange(4)), pairs=pairs, balance=1.2)
    assert found.visits is None
    assert found.apart == found.apart_bound == 0.0
    assert visits_of(choices, found.domain) == 1.0
    assert len({(int(d), int(g)) for d, g in zip(found.domain, group, strict=True)}) == 4


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(list(combinations(range(6), 3))), min_size=3, max_size=12))
def test_small_cases_are_solved_and_bounded(tokens: list[tuple[int, ...]]) -> None:
    choices = np.array(tokens)
    load = np.bincount(choices.ravel(), minlength=6)
    found = group_experts(TWO, choices, n_experts=6, balance=1.4)
    best, best_apart = np.inf, np.inf
    for split in product([4, 7], repeat=6):
        domain = np.array(split)
        heavy = max(load[domain == 4].sum(), load[domain == 7].sum()) / load.sum() * 2
        if (domain == 4).sum() == 3 and heavy <= 1.4:
            best = min(best, visits_of(choices, domain))
            apart = np.mean([domain[a] != domain[b] for token in tokens for a, b in combinations(token, 2)])
            best_apart = min(best_apart, float(apart))
    assert found.visits is not None
    assert found.visits_bound is not None
    assert found.visits == pytest.approx(visits_of(choices, found.domain))
    if found.heaviest <= 1.4:
        assert found.visits <= best + 0.1
        assert found.visits_bound <= best + 1e-9
        assert found.apart_bound <= best_apart + 1e-9
    else:
        assert best == np.inf


def test_balance_is_kept_at_the_cost_of_visits() -> None:
    """Four experts do all the work, in every token: balanced, two of them are in each domain."""
    choices = np.tile([0, 1, 2, 3], (50, 1))
    gpus = Gpus([4, 4], domain=[0, 1])
    assert group_experts(gpus, choices, n_experts=8, balance=2.01).visits == 1.0
    found = group_experts(gpus, choices, n_experts=8, balance=1.05)
    assert found.visits == 2.0
    assert found.heaviest == pytest.approx(1.0)
    said = group_experts(gpus, np.tile([0, 1, 2], (50, 1)), n_experts=8, balance=1.05)
    assert "above the 1.05 asked" in repr(said)


def test_domains_take_load_by_their_speed() -> None:
    choices = np.random.default_rng(3).permuted(np.tile(np.arange(24), (400, 1)), axis=1)[:, :4]
    gpus = Gpus([20, 20, 20], speed=[1.0, 1.0, 2.0], domain=[0, 1, 2])
    found = group_experts(gpus, choices, balance=1.05)
    assert found.heaviest <= 1.05
    assert np.bincount(found.domain).tolist() == pytest.approx([6, 6, 12], abs=1)


def test_a_domain_that_is_missing_whole_gets_none_and_is_not_heavy() -> None:
    """Four experts of one load on the two domains that have slots, two each: level."""
    gpus = Gpus([2, 0, 0, 2], domain=[0, 1, 1, 2])
    found = group_experts(gpus, [[0, 1], [2, 3]], balance=1.2)
    assert found.heaviest == 1.0
    assert set(found.groups) == {(0, 1), (2, 3)}


def test_groups_hold_as_rules() -> None:
    choices, _ = planted(groups=4, size=4, tokens=800, k=2, seed=4)
    gpus = Gpus([2] * 8, domain=np.repeat(np.arange(4), 2))
    found = group_experts(gpus, choices, balance=1.2)
    load = np.bincount(choices.ravel(), minlength=16).astype(float)
    plan = place(load, gpus, rules=Rules(together=found.groups)).plan
    assert plan is not None
    where = np.empty(16, dtype=np.int64)
    where[plan.slot_expert[0]] = gpus.domain[plan.slot_rank[0]]
    assert visits_of(choices, where) == 1.0


@given(st.lists(st.permutations(range(5)), min_size=1, max_size=6), st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_visits_are_counted(tokens: list[list[int]], domain: list[int]) -> None:
    choices = np.array(tokens)[:, :3]
    assert domain_visits(choices, domain) == pytest.approx(visits_of(choices, domain))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "or pairs must be given"),
        ({"choices": [[0, 1]], "pairs": np.ones((2, 2))}, "not both"),
        ({"choices": [[0.5, 1]]}, "whole numbers"),
        ({"choices": [[0, 0]]}, "expert twice"),
        ({"choices": [[0, 7]], "n_experts": 7}, "0 to 6"),
        ({"choices": [[-1, 7]]}, "-1"),
        ({"choices": [[0, 9]]}, "fewer than the 10 experts"),
        ({"pairs": np.array([[0.0, 1.0], [2.0, 0.0]])}, "symmetric"),
        ({"pairs": [[0.0, -1.0], [-1.0, 0.0]]}, "zero or more"),
        ({"choices": [[0, 1]], "balance": 0.5}, "balance"),
        ({"choices": [[0, 1]], "balance": float("nan")}, "balance"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        group_experts(TWO, **arguments)
