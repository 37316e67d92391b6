"""Plans, and loads that tokens with different experts can have."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collectives
import serving
import topo
from serving import Layout, PlacementPlan
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
    assert row == {
        "schema": "placement-plan/2",
        "slot_share": None,
        "loads": None,
        "ep": 2,
        "pp": 2,
        "slot_expert": [[0, 1, 2, 3]],
        "slot_rank": [[0, 0, 1, 1]],
        "layer_stage": [0, 1],
    }
    assert repr(plan) == "PlacementPlan(1 MoE layers x 4 experts on 2 GPUs, 2 layers in 2 stages)"


def test_a_plan_without_the_redundant_slots_of_the_layout_is_refused() -> None:
    graph, model, work = topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), serving.Workload(batch_per_gpu=8)
    plan = PlacementPlan.contiguous(8, model.moe_layer_mask, Layout(8))
    with pytest.raises(InputError, match=r"has 8 slots of a layer, and the layout says 8 \+ 8 redundant"):
        serving.step(graph, model, work, layout=Layout(8, redundant=8), plan=plan)


@pytest.mark.parametrize("copies", ["direct", "per_gpu", "per_domain"])
def test_unequal_shares_of_slots_count_whatever_copies_are_sent(copies: str) -> None:
    """Expert 0 in both boxes, nine tenths of its tokens in the first: dispatch is that of the layer by itself."""
    graph, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    expert, rank = np.r_[0:8, 0:8], np.r_[0:16]
    share = np.where(expert == 0, np.where(rank < 8, 0.9, 0.1), 0.5)
    rows = [np.tile(row, (32, 1)) for row in (expert, rank, share)]
    plan = PlacementPlan(rows[0], rows[1], np.zeros(32, dtype=np.intp), 16, 1, rows[2])
    load, work = np.array([3.0, 1, 1, 1, 1, 1, 1, 1]), serving.Workload(batch_per_gpu=32, copies=copies)
    step = serving.step(graph, model, work, layout=serving.Layout(16), plan=plan, expert_load=load)
    moe = collectives.MoE(32, 4096, 2, 8, placement=(expert, rank), expert_load=load, slot_share=share)
    algorithm = None if copies == "direct" else copies
    for name in ("dispatch", "combine"):
        (part,) = [one for one in step.parts if one.name == name]
        alone = collectives.cost(graph, f"moe_{name}", moe, algorithm=algorithm).seconds
        assert part.seconds == pytest.approx(32 * alone, rel=1e-9)
    equal = serving.step(
        graph, model, work, layout=serving.Layout(16), plan=replace(plan, slot_share=None), expert_load=load
    )
    assert step.serial > equal.serial
