"""Is what cannot be refused, all at once, and are batch, experts and layers dealt as said?"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving import Layout, PlacementPlan, Workload
from serving._workload import expert_shares
from topo import InputError


def places(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [fault.place for fault in error.value.faults]


# --- Workload ---


def test_defaults_are_those_of_the_design() -> None:
    work = Workload(batch_per_gpu=114)
    assert (work.phase, work.context, work.kv_dtype, work.dispatch_dtype, work.combine_dtype) == (
        "decode", 4096, "bf16", "fp8", "bf16",
    )  # fmt: skip
    assert (work.copies, work.expert_routing, work.expert_read) == ("direct", "free", "distinct")
    assert work.hbm_reserve == 0.10


@pytest.mark.parametrize(
    ("change", "place"),
    [({"phase": "prefil"}, "phase"), ({"copies": "dedup"}, "copies"), ({"expert_routing": "group"}, "expert_routing"),
     ({"expert_read": "some"}, "expert_read"), ({"kv_dtype": "fp9"}, "kv_dtype"),
     ({"dispatch_dtype": ""}, "dispatch_dtype"), ({"combine_dtype": "BF16"}, "combine_dtype"),
     ({"context": 0}, "context"), ({"context": -4096}, "context"), ({"context": 4096.0}, "context"),
     ({"context": True}, "context"), ({"context": None}, "context"), ({"batch_per_gpu": 0}, "batch_per_gpu"),
     ({"batch_per_gpu": -1}, "batch_per_gpu"), ({"batch_per_gpu": 1.5}, "batch_per_gpu"),
     ({"batch_per_gpu": "114"}, "batch_per_gpu"), ({"batch_per_gpu": None}, "batch, batch_per_gpu"),
     ({"batch": 8208}, "batch, batch_per_gpu"), ({"hbm_reserve": 1.0}, "hbm_reserve"),
     ({"hbm_reserve": -0.1}, "hbm_reserve"), ({"hbm_reserve": float("nan")}, "hbm_reserve")],
)  # fmt: skip
def test_what_cannot_be_is_refused(change: dict[str, Any], place: str) -> None:
    asked: dict[str, Any] = {"batch_per_gpu": 114} | change
    with pytest.raises(InputError) as caught:
        Workload(**asked)
    assert places(caught) == [place]


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Workload(phase="x", context=0, batch=1, batch_per_gpu=0, kv_dtype="x", hbm_reserve=2)
    assert sorted(places(caught)) == [
        "batch, batch_per_gpu", "batch_per_gpu", "context", "hbm_reserve", "kv_dtype", "phase",
    ]  # fmt: skip


def test_an_unknown_word_lists_the_known_and_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'distinct'"):
        Workload(batch=1, expert_read="distincts")


@given(st.integers(1, 10_000), st.integers(1, 300))
def test_a_total_batch_is_dealt_equally_up_to_one(batch: int, ranks: int) -> None:
    dealt = Workload(batch=batch).batch_of(ranks)
    assert dealt.sum() == batch
    assert len(dealt) == ranks
    assert dealt.max() - dealt.min() <= 1


def test_a_batch_per_gpu_is_the_same_at_every_width() -> None:
    work = Workload(batch_per_gpu=114)
    assert work.batch_of(3).tolist() == [114, 114, 114]
    assert work.batch_policy == "114 sequences per GPU"
    assert Workload(batch=7).batch_policy == "7 sequences over the group"


# --- Layout ---


@pytest.mark.parametrize(
    ("layout", "place"),
    [({"ep": 0}, "ep"), ({"ep": -1}, "ep"), ({"ep": 1.0}, "ep"), ({"ep": True}, "ep"), ({"ep": 1, "pp": 0}, "pp"),
     ({"ep": 1, "pp": "2"}, "pp")],
)  # fmt: skip
def test_layouts_that_are_none(layout: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        Layout(**layout)
    assert places(caught) == [place]


# --- PlacementPlan ---


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
