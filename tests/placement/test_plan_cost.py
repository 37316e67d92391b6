"""Do tokens go where they should, and do bytes, links and times follow from that?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import serving
import topo
from placement import ExpertLoads, Gpus, cost_plan, place_across
from placement._plan_cost import sources_of
from serving import Layout, PlacementPlan, Workload
from topo import InputError

MIXTRAL, WORK = serving.load_model("mixtral-8x7b"), Workload(batch_per_gpu=64)
BOXES = topo.load("hgx-h100-8", 2)
#: Copies a step, bytes of one there and back: fp8 to the expert, bf16 back.
COPIES, TOKEN = 16 * 64 * 2, 4096 * (1 + 2)


def recorded(asked: NDArray[np.float64]) -> ExpertLoads:
    """The same tokens by domain in all 32 layers."""
    whole = np.repeat(asked[None], 32, axis=0)
    return ExpertLoads(whole.sum(axis=1), None, whole, None, "tensorrt-llm")


def in_order() -> PlacementPlan:
    return PlacementPlan.contiguous(8, MIXTRAL.moe_layer_mask, Layout(ep=16))


def test_bytes_between_domains_by_hand() -> None:
    """Domain 0 asks for experts 4 to 7, which are in domain 1, with 26 of 30 tokens, and the other way round."""
    asked = np.array([[1.0, 1, 1, 1, 8, 7, 6, 5], [8, 7, 6, 5, 1, 1, 1, 1]])
    found = cost_plan(BOXES, MIXTRAL, WORK, in_order(), recorded(asked))
    assert found.crossing == pytest.approx(np.full(32, 26 / 30))
    assert found.crossing_bytes == pytest.approx(32 * COPIES * TOKEN * 26 / 30)
    assert found.heaviest == pytest.approx(9 / 60 * 16)  # an expert a GPU, every other GPU none


def test_the_busiest_link_by_hand() -> None:
    """All that crosses is for expert 0, on one GPU: there in fp8, back in bf16 through its NIC."""
    asked = np.array([[0.0, 1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, 1, 1, 1]])
    found = cost_plan(BOXES, MIXTRAL, WORK, in_order(), recorded(asked))
    gpu = in_order().slot_rank[0, 0]
    crossed = 32 * COPIES * (1 / 8) * 4096
    assert found.hot_link == f"d0/gpu{gpu} -> leaf0"
    assert found.hot_seconds == pytest.approx(2 * crossed / 50e9)  # back, 2 bytes; there it is the other direction
    assert found.crossing_bytes == pytest.approx(3 * crossed)


def test_alike_sources_and_single_copies_take_the_time_of_a_step() -> None:
    """Then nothing depends on where tokens come from, and the step is `serving.step`'s own."""
    load = np.array([8.0, 7, 6, 5, 4, 3, 2, 1])
    loads = ExpertLoads(np.tile(load, (32, 1)), None, None, None, "eplb")
    found = cost_plan(BOXES, MIXTRAL, WORK, in_order(), loads)
    plain = serving.step(BOXES, MIXTRAL, WORK, layout=Layout(ep=16), plan=in_order(), expert_load=load)
    assert found.step_seconds == pytest.approx(plain.serial)
    assert found.crossing == pytest.approx(np.full(32, plain.remote_share))
    by_gpu = replace(loads, sources=np.repeat(loads.load[:, None], 16, axis=1))
    assert cost_plan(BOXES, MIXTRAL, WORK, in_order(), by_gpu).step_seconds == pytest.approx(plain.serial)


def test_a_copy_at_home_takes_the_tokens_of_home() -> None:
    """Expert 0 has a copy in both domains; expert 1's copies are both in domain 1 and share alike."""
    expert, rank = np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1]), np.array([0, 8, 2, 3, 9, 10, 11, 12, 13, 14])
    plan = replace(in_order(), slot_expert=np.tile(expert, (32, 1)), slot_rank=np.tile(rank, (32, 1)))
    asked = np.array([[3.0, 2, 1, 1, 1, 1, 1, 1], [1.0, 0, 1, 1, 1, 1, 1, 1]])
    found = cost_plan(BOXES, MIXTRAL, WORK, plan, recorded(asked))
    tokens = found.gpu_load[0] * asked.sum() / 16
    assert tokens[[0, 13, 8, 14]] == pytest.approx([3, 1, 1, 1])
    assert found.crossing[0] == pytest.approx((2 + 4 + 2) / asked.sum())
    assert found.plan.shares[0][[0, 8]] == pytest.approx([0.75, 0.25])


def test_a_plan_across_domains_has_its_own_loads_and_crossing() -> None:
    """The solver's shares and this traffic are one and the same."""
    rng = np.random.default_rng(2)
    asked = rng.uniform(0, 10, (32, 2, 8))
    gpus = Gpus([2] * 16, domain=np.repeat([0, 1], 8))
    made = place_across(asked[:2], gpus, replicas=16, balance=1.3, work=100)
    assert made.plan is not None
    plan = replace(
        in_order(), slot_expert=made.plan.slot_expert.repeat(16, 0), slot_rank=made.plan.slot_rank.repeat(16, 0),
        slot_share=made.plan.shares.repeat(16, 0),
    )  # fmt: skip
    whole = asked[:2].repeat(16, 0)
    found = cost_plan(BOXES, MIXTRAL, WORK, plan, ExpertLoads(whole.sum(axis=1), None, whole, None, "vllm"))
    assert found.crossing[[0, 16]] == pytest.approx(made.crossing)
    assert found.gpu_load.max(axis=1)[[0, 16]] == pytest.approx(made.layer_objective)


def test_sources_are_domains_or_gpus_and_their_tokens_add_up() -> None:
    domain = np.array([0, 0, 0, 1])
    loads = recorded(np.arange(8.0).reshape(4, 2))
    assert (sources_of(loads, domain)[0] * 28).round(12).tolist() == [[6, 9], [6, 7]]
    none = replace(loads, sources=None, load=np.array([[1.0, 3]]))
    assert sources_of(none, domain).round(12).tolist() == [[[0.1875, 0.5625], [0.0625, 0.1875]]]
    assert sources_of(replace(none, load=np.zeros((1, 2))), domain).sum() == pytest.approx(1)
    with pytest.raises(InputError, match="the 2 domains or the 4 GPUs"):
        sources_of(recorded(np.ones((3, 2))), domain)


def test_stages_cost_what_each_costs_by_itself() -> None:
    """Two stages on boxes 0, 1 and 2, 3: half of the layers each, as one stage on two boxes has all."""
    asked = np.array([[1.0, 1, 1, 1, 8, 7, 6, 5], [8, 7, 6, 5, 1, 1, 1, 1]])
    one = cost_plan(BOXES, MIXTRAL, WORK, in_order(), recorded(asked))
    plan = PlacementPlan.contiguous(8, MIXTRAL.moe_layer_mask, Layout(ep=16, pp=2))
    two = cost_plan(topo.load("hgx-h100-8", 4), MIXTRAL, WORK, plan, recorded(asked))
    assert two.crossing_bytes == pytest.approx(one.crossing_bytes)
    assert two.wire_seconds == pytest.approx(one.wire_seconds)
    assert two.hot_seconds == pytest.approx(one.hot_seconds / 2)
    assert two.gpu_load == pytest.approx(one.gpu_load)
    assert np.unique(two.domain, axis=0).tolist() == [[0] * 8 + [1] * 8]
    dispatched = two.traffic.loads.sum()
    assert dispatched == pytest.approx(one.traffic.loads.sum())


def test_stages_take_the_time_of_a_step() -> None:
    plan = PlacementPlan.contiguous(8, MIXTRAL.moe_layer_mask, Layout(ep=8, pp=2))
    load = np.array([8.0, 7, 6, 5, 4, 3, 2, 1])
    found = cost_plan(BOXES, MIXTRAL, WORK, plan, recorded(load[None]))  # one domain a stage
    plain = serving.step(BOXES, MIXTRAL, WORK, layout=Layout(ep=8, pp=2), plan=plan, expert_load=load)
    assert found.step_seconds == pytest.approx(plain.serial)
    assert found.crossing_bytes == 0


def test_refused() -> None:
    loads = recorded(np.ones((2, 8)))
    with pytest.raises(InputError, match="is not for mixtral"):
        cost_plan(BOXES, MIXTRAL, WORK, replace(in_order(), layer_stage=np.zeros(3, dtype=np.intp)), loads)
    with pytest.raises(InputError, match="has 8"):
        cost_plan(BOXES, MIXTRAL, WORK, in_order(), recorded(np.ones((2, 9))))


def test_a_costed_plan_holds_the_loads_of_gpus_and_links() -> None:
    """Saved and read back; the busiest link's bytes over its bandwidth are the plan's hot seconds."""
    found = cost_plan(BOXES, MIXTRAL, WORK, in_order(), recorded(np.array([[8.0, 7, 6, 5, 4, 3, 2, 1]] * 2)))
    loads = found.plan.loads
    assert loads is not None
    assert loads.gpu == pytest.approx(found.gpu_load)
    carried = dict(zip(loads.links, loads.link_bytes, strict=True))
    assert carried[found.hot_link] / 50e9 == pytest.approx(found.hot_seconds)
    # Every copy that crosses goes over a NIC and back over the other's: counted once out of each.
    out = sum(n_bytes for link, n_bytes in carried.items() if link.split(" -> ")[1].startswith("leaf"))
    assert out == pytest.approx(found.crossing_bytes)
    again = PlacementPlan.from_dict(found.plan.to_dict()).loads
    assert again is not None
    assert again.links == loads.links
    assert again.link_bytes.tolist() == loads.link_bytes.tolist()
    older = found.plan.to_dict() | {"schema": "placement-plan/1"}
    del older["loads"]
    assert PlacementPlan.from_dict(older).loads is None
    with pytest.raises(InputError, match="loads"):
        PlacementPlan.from_dict(found.plan.to_dict() | {"loads": {"gpu": [[1.0]], "link_bytes": {}}})
