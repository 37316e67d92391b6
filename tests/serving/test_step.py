"""Is a step what its operations add up to, on the real graph, and is what does not fit an answer?"""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

import collectives
import serving
import topo
from serving import Layout, Part, PlacementPlan, Step, Workload

from .steps import SMALL, STILL, mixtral, parts, plan_of, step

DISPATCH = ("dispatch", "combine")


# --- dispatch and combine: an all-to-all with a matrix of bytes ------------------------------------------------------


@pytest.mark.parametrize("still", [True, False], ids=["no latency", "catalogue latency"])
def test_256_experts_on_72_gpus_by_the_heaviest_gpu(still: bool) -> None:
    """40 GPUs hold 4 experts and 32 hold 3: a GPU with 4 receives 4/256 of what 71 others send."""
    result = step(layout=Layout(72), still=still)
    assert result.experts_per_gpu == 4
    copies = 71 * 114 * 8 * 4 / 256
    hops = 0.0 if still else 2 * 0.43e-6  # two links of the rack, a quarter of what GB300 measures there and back
    for name, size in zip(DISPATCH, (1, 2), strict=True):
        seconds = 58 * (copies * 7168 * size / 900e9 + hops)
        assert parts(result)[name].seconds == pytest.approx(seconds, rel=1e-9)
    assert result.remote_share == 0.0


def test_experts_that_divide_send_the_same_everywhere() -> None:
    result = step(layout=Layout(64))
    assert result.experts_per_gpu == 4
    assert parts(result)["dispatch"].seconds == pytest.approx(58 * 114 * 8 * 63 / 64 * 7168 / 900e9, rel=1e-9)


def test_two_racks_send_half_over_the_nics() -> None:
    result = step(domains=2, layout=Layout(128))  # 64 + 64, two experts each
    assert result.remote_share == pytest.approx(0.5, rel=1e-12)
    assert parts(result)["dispatch"].seconds == pytest.approx(58 * 114 * 8 / 2 * 7168 / 50e9, rel=1e-9)
    assert parts(result)["combine"].resource == "network"


def test_the_heaviest_gpus_experts_are_read_and_multiplied() -> None:
    experts = parts(step(layout=Layout(72)))["routed experts"]
    tokens, weights = 72 * 114, 3 * 7168 * 2048
    hit = 4 * (1 - (1 - 8 / 256) ** tokens)
    assert experts.n_bytes == pytest.approx(58 * hit * weights, rel=1e-12)
    assert experts.flop == pytest.approx(58 * 2 * tokens * 8 * 4 / 256 * weights, rel=1e-12)
    assert experts.seconds == pytest.approx(max(experts.n_bytes / 8e12, experts.flop / 5e15), rel=1e-12)


def test_few_tokens_read_few_experts_unless_all_are_read() -> None:
    few, everything = (step(work=Workload(batch=4, expert_read=read)) for read in ("distinct", "all"))
    assert parts(few)["routed experts"].n_bytes == pytest.approx(58 * 4 * (1 - (31 / 32) ** 4) * 44040192, rel=1e-12)
    assert parts(everything)["routed experts"].n_bytes == 58 * 4 * 44040192


# --- sums and memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [Layout(72), Layout(8), Layout(1), Layout(12, pp=3)], ids=repr)
def test_serial_is_the_sum_and_lower_the_busiest(layout: Layout) -> None:
    result = step(layout=layout)
    assert result.serial == pytest.approx(sum(part.seconds for part in result.parts), rel=1e-12)
    assert result.lower <= result.serial
    if layout.pp == 1:
        totals = [sum(getattr(p, f"{r}_seconds") for p in result.parts) for r in ("compute", "memory", "network")]
        assert result.lower == pytest.approx(max(totals), rel=1e-12)
    longest = max(result.parts, key=lambda part: part.seconds)
    assert result.binding == f"{longest.name} ({longest.resource})"
    # pp micro-batches go round in the time of one token, or in pp times the slowest stage where stages are unequal.
    in_flight = 114 * layout.ep * layout.pp
    assert result.tokens_per_second <= in_flight / result.serial * (1 + 1e-12)
    if layout.pp == 1:
        assert result.tokens_per_second == pytest.approx(in_flight / result.serial, rel=1e-12)


def test_memory_by_hand() -> None:
    # arXiv 2412.19437: weights of one byte; embedding and head of 129,280 x 7,168; 576 KV elements of BF16 a layer
    expert, dense, ends = 3 * 7168 * 2048, 3 * 7168 * 18432, 2 * 129280 * 7168
    fixed = 61 * 187_105_280 + 58 * (7168 * 256 + expert) + 3 * dense + ends
    result = step(layout=Layout(72))
    assert result.weight_bytes == fixed + 58 * 4 * expert
    assert result.kv_bytes == 114 * 4096 * 61 * 576 * 2
    assert result.memory_per_gpu == result.weight_bytes + result.kv_bytes
    assert result.memory_usable == pytest.approx(0.9 * 189471 * 2**20, rel=1e-12)
    assert result.fits
    assert result.reason == ""


def test_a_single_gpu_holds_the_whole_model() -> None:
    result = step(layout=Layout(1))
    assert result.weight_bytes == serving.load_model("deepseek-v3").total_weight_bytes
    assert parts(result)["dispatch"].seconds == 0.0
    assert not result.fits


def test_what_does_not_fit_says_why() -> None:
    result = step(design="hgx-h100-8")
    assert not result.fits
    assert "per GPU of 77.31 GB usable" in result.reason
    assert "weights" in result.reason
    assert "does not fit" in repr(result)


def test_a_dense_model_runs_on_one_gpu_by_default() -> None:
    result = step("llama-3.1-70b", work=Workload(batch=8))
    assert result.layout == Layout(1)
    assert result.experts_per_gpu == 0
    assert not set(DISPATCH) & set(parts(result))
    by_hand = 80 * (150_994_944 + 704_643_072) + 128256 * 8192  # 8 KV heads of 128, width 28,672, a head of its own
    weights = (parts(result)[n].n_bytes for n in ("attention projections", "dense, shared experts and head"))
    assert sum(weights) == 2 * by_hand


# --- pipelines of racks: latency-neutral, KV per GPU the same, weights shrink ----------------------------------------


def test_two_stages_take_as_long_as_one_and_the_sends() -> None:
    one, two = step(domains=2, layout=Layout(72)), step(domains=2, layout=Layout(72, pp=2))
    send = parts(two)["pipeline sends"].seconds
    assert send == pytest.approx(114 * 7168 * 2 / 50e9, rel=1e-9)  # BF16, one copy, GPU i to GPU i of the next rack
    assert two.serial == pytest.approx(one.serial + send, rel=1e-9)
    for name, part in parts(one).items():
        assert parts(two)[name].seconds == pytest.approx(part.seconds, rel=1e-9)
    assert two.tokens_per_second == pytest.approx(2 * one.tokens_per_second * one.serial / two.serial, rel=1e-9)
    assert two.remote_share == 0.0


@pytest.mark.parametrize("pp", [2, 47])
def test_kv_per_gpu_does_not_depend_on_the_stages_and_weights_do(pp: int) -> None:
    """94 like layers in equal stages: layers over pp, sequences in flight times pp."""
    one, more = (step("qwen3-235b-a22b", domains=2, layout=Layout(2, pp=stages)) for stages in (1, pp))
    assert more.kv_bytes == pytest.approx(one.kv_bytes, rel=1e-12)
    layers = one.weight_bytes - 2 * 2 * 151936 * 4096  # embedding and head, BF16
    ends = 2 * 151936 * 4096
    assert more.weight_bytes == pytest.approx(layers / pp + ends, rel=1e-12)


def test_sends_pay_one_way_through_the_fabric() -> None:
    still, real = (step(domains=2, layout=Layout(72, pp=2), still=s) for s in (True, False))
    extra = parts(real)["pipeline sends"].seconds - parts(still)["pipeline sends"].seconds
    assert extra == pytest.approx(2 * 0.8e-6, rel=1e-6)  # GPU to leaf to GPU: the same slot is on the same rail


def test_stages_within_one_rack_send_over_its_switch() -> None:
    send = parts(step(layout=Layout(36, pp=2)))["pipeline sends"].seconds
    assert send == pytest.approx(114 * 7168 * 2 / 900e9, rel=1e-9)


# --- plans and loads -------------------------------------------------------------------------------------------------


def test_the_plain_plan_is_the_default() -> None:
    planned, plain = mixtral(plan=plan_of([0, 0, 1, 1, 2, 2, 3, 3])).to_dict(), mixtral(layout=Layout(4)).to_dict()
    assert planned["imbalance"].pop("gained") == 0.0
    assert plain["imbalance"].pop("gained") is None
    assert planned == plain


def test_a_lopsided_plan_is_slower_and_heavier() -> None:
    even, lopsided = mixtral(layout=Layout(4)), mixtral(plan=plan_of([0, 0, 0, 0, 0, 1, 2, 3]))
    assert lopsided.experts_per_gpu == 5
    assert lopsided.serial > even.serial
    assert lopsided.lower > even.lower
    assert lopsided.weight_bytes > even.weight_bytes
    for name in ("dispatch", "routed experts", "combine"):
        assert parts(lopsided)[name].seconds > parts(even)[name].seconds


def test_a_plan_that_suits_the_loads_is_faster_than_the_plain_one() -> None:
    load = [9, 9, 1, 1, 1, 1, 1, 1]  # both heavy experts on GPU 0 by default
    apart = mixtral(plan=plan_of([0, 1, 0, 1, 2, 2, 3, 3]), expert_load=load)
    assert apart.serial < mixtral(layout=Layout(4), expert_load=load).serial


def test_uniform_loads_are_the_default() -> None:
    plain = mixtral(layout=Layout(4)).to_dict()
    for load in (np.ones(8), np.full((32, 8), 3.0)):
        given = mixtral(layout=Layout(4), expert_load=load).to_dict()
        assert given | {"assumptions": None} == plain | {"assumptions": None}
        assert {line for line in plain["assumptions"] if "uniformly" in line}
        assert not {line for line in given["assumptions"] if "uniformly" in line}  # it was not assumed then


def test_skewed_loads_are_slower() -> None:
    skewed = mixtral(layout=Layout(4), expert_load=[5, 3, 1, 1, 1, 1, 1, 1])
    assert skewed.serial > mixtral(layout=Layout(4)).serial


def test_layers_with_loads_of_their_own_are_summed() -> None:
    """A step of one skewed layer in 32 lies 1/32 of the way from the even to the wholly skewed step."""
    load = np.ones((32, 8))
    load[7] = [5, 3, 1, 1, 1, 1, 1, 1]
    even, one, every = (mixtral(layout=Layout(4), expert_load=l) for l in (None, load, load[7]))
    assert one.serial - even.serial == pytest.approx((every.serial - even.serial) / 32, rel=1e-9)


def test_replicas_share_the_load_of_their_expert() -> None:
    """Slots 8 and 9 hold the heavy expert again: its load is spread over three GPUs."""
    load = [12, 1, 1, 1, 1, 1, 1, 1]
    expert = np.tile([*range(8), 0, 0], (32, 1))
    rank = np.tile([0, 0, 1, 1, 2, 2, 3, 3, 1, 2], (32, 1))
    plan = PlacementPlan(expert, rank, np.zeros(32, dtype=np.intp), 4, 1)
    replicated = mixtral(plan=plan, expert_load=load)
    assert replicated.experts_per_gpu == 3
    alone = mixtral(layout=Layout(4), expert_load=load)
    assert parts(replicated)["dispatch"].seconds < parts(alone)["dispatch"].seconds


def test_a_plan_brings_its_layout() -> None:
    assert mixtral(plan=plan_of([0, 0, 1, 1, 2, 2, 3, 3])).layout == Layout(4)


# --- what is said ----------------------------------------------------------------------------------------------------


def test_a_rate_that_is_not_the_chips_own_is_said() -> None:
    said = step("deepseek-v3", "hgx-a100-8").assumptions
    assert any("fp8 is multiplied at the chip's bf16 rate" in line for line in said)
    assert not any("is multiplied at" in line for line in step("deepseek-v3").assumptions)


def test_dtypes_of_unquantised_parts_are_looked_at_too() -> None:
    said = step("gpt-oss-120b", "hgx-h100-8").assumptions
    assert any("mxfp4 is multiplied at the chip's fp8 rate" in line for line in said)


def test_a_group_limit_that_is_not_used_is_said() -> None:
    assert any("limit of 4 of 8 expert groups is not used" in line for line in step().assumptions)
    assert not any("expert groups" in line for line in step("kimi-k2").assumptions)  # one group is no limit


def test_unequal_chips_count_by_their_weakest() -> None:
    graph = topo.load("hgx-h100-8", 1, STILL)
    model = serving.load_model("mixtral-8x7b")
    alike = serving.step(graph, model, SMALL)
    slow: nx.Graph[str] = graph.copy()
    numbers = graph.graph["chips"]["H100-80GB"]
    slow.graph["chips"] = {"H100-80GB": numbers, "slow": {**numbers, "hbm_bandwidth": numbers["hbm_bandwidth"] / 2}}
    slow.nodes["d0/gpu5"]["chip"] = "slow"
    mixed = serving.step(slow, model, SMALL)
    assert any("chips differ (H100-80GB, slow)" in line for line in mixed.assumptions)
    before, after = parts(alike)["attention and KV cache"], parts(mixed)["attention and KV cache"]
    assert after.memory_seconds == pytest.approx(2 * before.memory_seconds, rel=1e-12)
    assert not any("chips differ" in line for line in alike.assumptions)


def test_a_step_says_the_answer_first_and_is_plain_json() -> None:
    result = step()
    assert repr(result).startswith("Step(")
    row = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(row) == set(Step.__dataclass_fields__)
    assert set(row["parts"][0]) == set(Part.__dataclass_fields__)
    assert Layout(**row["layout"]) == Layout(72)


def test_the_same_step_twice() -> None:
    assert step().to_dict() == step().to_dict()


@pytest.mark.parametrize("kind", ["uniform", "skewed"])
def test_merged_copies_take_the_wires_of_their_algorithm(kind: str) -> None:
    """58 layers of dispatch and combine as `collectives.cost` has them; fewer copies, less time."""
    graph, model = topo.load("hgx-h100-8", 2), serving.load_model("deepseek-v3")
    load = None if kind == "uniform" else 1 / np.arange(1, 257)
    seconds = {}
    for copies in ("direct", "per_gpu", "per_domain"):
        found = serving.step(graph, model, Workload(batch_per_gpu=64, copies=copies), expert_load=load)
        layer = collectives.MoE(64, 7168, 8, 256, expert_load=load)
        for part, name in (("dispatch", "moe_dispatch"), ("combine", "moe_combine")):
            (one,) = [part_ for part_ in found.parts if part_.name == part]
            wanted = 58 * collectives.cost(graph, name, layer, algorithm=copies).seconds
            assert one.seconds == pytest.approx(wanted, rel=1e-9), (copies, part)
            seconds[copies, part] = one.seconds
        if copies != "direct":
            assert any(f"each different {'GPU' if copies == 'per_gpu' else 'domain'}" in s for s in found.assumptions)
    for part in ("dispatch", "combine"):
        assert seconds["direct", part] > seconds["per_gpu", part] > seconds["per_domain", part]
