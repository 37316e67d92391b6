"""Plans, and loads that tokens with different experts can have."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving import Layout, PlacementPlan, expert_shares, inclusion_shares
from topo import InputError


def places(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [fault.place for fault in error.value.faults]


def test_256_experts_on_72_gpus_are_40_x_4_and_32_x_3() -> None:
    plan = PlacementPlan.contiguous(256, (True,), Layout(72))
    counts = np.bincount(plan.slot_rank[0], minlength=72)
    assert sorted(counts.tolist()) == [3] * 32 + [4] * 40
    assert plan.slot_expert[0].tolist() == list(range(256))


def test_experts_that_do_not_divide_are_spread_over_the_domains() -> None:
    counts = np.bincount(PlacementPlan.contiguous(256, (True,), Layout(144)).slot_rank[0], minlength=144)
    assert counts[:72].sum() == counts[72:].sum() == 128


@given(st.integers(1, 400), st.integers(1, 200), st.integers(1, 90), st.integers(1, 12))
def test_the_plain_plan_is_whole_and_as_equal_as_it_divides(experts: int, ep: int, layers: int, pp: int) -> None:
    mask = tuple(layer >= layers // 3 for layer in range(layers))
    plan = PlacementPlan.contiguous(experts, mask, Layout(ep, pp=pp))
    assert plan.slot_expert.shape == plan.slot_rank.shape == (sum(mask), experts)
    counts = np.bincount(plan.slot_rank[0], minlength=ep)
    assert len(counts) == ep
    assert counts.max() - counts.min() <= 1
    assert (np.diff(plan.layer_stage) >= 0).all()
    if pp <= layers:
        per_stage = np.bincount(plan.layer_stage, minlength=pp)
        assert per_stage.max() - per_stage.min() <= 1
        assert len(per_stage) == pp


def test_a_plan_is_plain_json() -> None:
    plan = PlacementPlan.contiguous(4, (False, True), Layout(2, pp=2))
    row = json.loads(json.dumps(plan.to_dict()))
    assert row == {"ep": 2, "pp": 2, "slot_expert": [[0, 1, 2, 3]], "slot_rank": [[0, 0, 1, 1]], "layer_stage": [0, 1]}
    assert repr(plan) == "PlacementPlan(1 MoE layers x 4 experts on 2 GPUs, 2 layers in 2 stages)"


# --- expert loads ---


def test_shares_sum_to_one_and_follow_the_loads() -> None:
    shares = expert_shares(4, [1, 0, 2, 1], 3)
    assert shares.shape == (3, 4)
    assert shares.tolist() == [[0.25, 0.0, 0.5, 0.25]] * 3
    assert expert_shares(4, [[1, 1, 1, 1], [4, 0, 0, 0]], 2).tolist() == [[0.25] * 4, [1.0, 0, 0, 0]]
    assert expert_shares(4, None, 2).tolist() == [[0.25] * 4] * 2


@pytest.mark.parametrize(
    "load",
    [[1.0] * 5, [[1.0] * 4] * 2, [-1.0, 1, 1, 1], [0.0] * 4, [float("nan"), 1, 1, 1], [float("inf"), 1, 1, 1],
     [[1.0] * 4, [1.0] * 4, [0.0] * 4], [1e308] * 4],
    ids=["too long", "too few layers", "negative", "all zero", "NaN", "infinite", "a layer of zeros", "overflow"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:overflow")
def test_loads_that_are_none(load: Any) -> None:
    with pytest.raises(InputError) as caught:
        expert_shares(4, load, 3)
    assert places(caught) == ["expert_load"]


@pytest.mark.parametrize("load", ["heavy", [["a"] * 4], [[1.0, 2.0], [3.0]], {"a": 1}])
def test_loads_that_are_no_numbers(load: Any) -> None:
    with pytest.raises(InputError) as caught:
        expert_shares(4, load, 3)
    assert places(caught) == ["expert_load"]


def test_no_expert_gets_more_than_every_token_once() -> None:
    """Zipf 1.0 over 256 experts asks 16.3 % of the first; with top-8 no more than 1/8 can be (oracles, section 12)."""
    zipf = 1 / np.arange(1, 257)
    asked = expert_shares(256, zipf, 1)
    assert asked[0, 0] == pytest.approx(0.163, abs=5e-4)
    shares = inclusion_shares(asked, 8)
    assert shares[0, 0] == 1 / 8
    assert shares.sum() == pytest.approx(1, rel=1e-12)
    others = shares[0, 1:] / asked[0, 1:]
    assert others == pytest.approx(np.full(255, others[0]), rel=1e-9)


def test_loads_a_token_can_have_stay() -> None:
    asked = expert_shares(16, np.arange(17, 33), 1)
    assert inclusion_shares(asked, 4) == pytest.approx(asked)


def test_too_few_experts_with_load() -> None:
    with pytest.raises(InputError, match="at least 2 experts"):
        inclusion_shares(np.array([[1.0, 0.0, 0.0]]), 2)
