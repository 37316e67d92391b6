"""Are weights, caches, tokens and wires divided as a layout says, in every phase?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import serving
import topo
from collectives import cost
from serving import Layout, Part, Step, Workload
from topo import InputError

STILL = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
WORK = Workload(context=4096, batch_per_gpu=16)


@cache
def routes(design: str, domains: int) -> topo.Routes:
    return topo.route(topo.load(design, domains, STILL))


def step(
    model: str, layout: Layout, work: Workload = WORK, design: str = "gb200-nvl72", domains: int = 1, **given: Any
) -> Step:  # fmt: skip
    found = routes(design, domains)
    return serving.step(found.fabric, serving.load_model(model), work, layout=layout, routing=found, **given)


def parts(result: Step) -> dict[str, Part]:
    return {part.name: part for part in result.parts}


# --- tensor parallelism ----------------------------------------------------------------------------------------------


def test_tensor_parallelism_divides_weights_caches_and_work() -> None:
    one, eight = (step("llama-3.1-70b", Layout(1, tp=tp), design="hgx-h100-8") for tp in (1, 8))
    model = serving.load_model("llama-3.1-70b")
    assert eight.weight_bytes == pytest.approx(model.total_weight_bytes / 8)
    assert eight.kv_bytes == pytest.approx(one.kv_bytes)  # 8 times the sequences, a KV head each
    for name in ("attention projections", "attention and KV cache"):
        assert parts(eight)[name].flop == pytest.approx(parts(one)[name].flop)  # 8 times the tokens, an 8th each
        assert parts(eight)[name].n_bytes <= parts(one)[name].n_bytes * (1 + 1e-12)


def test_two_sums_per_layer() -> None:
    work = Workload(batch=32)
    found = step("llama-3.1-70b", Layout(1, tp=8), work, "hgx-h100-8")
    each = cost(routes("hgx-h100-8", 1).fabric, "all_reduce", 32 * 8192 * 2, algorithm="best")
    assert parts(found)["tensor-parallel all-reduce"].seconds == pytest.approx(2 * 80 * each.seconds)


def test_a_latent_does_not_divide_and_kv_heads_only_so_far() -> None:
    work = Workload(batch=64)
    deepseek = [step("deepseek-v3", Layout(8, tp=tp), work).kv_bytes for tp in (1, 8)]
    assert deepseek[1] == 8 * deepseek[0]  # 8 and 64 sequences, all of the latent each
    qwen = [step("qwen3-235b-a22b", Layout(8, tp=tp), work).kv_bytes for tp in (1, 8)]
    assert qwen[1] == 2 * qwen[0]  # 4 KV heads over 8 GPUs


def test_experts_over_replicas_times_tensor_ranks_get_the_same_tokens() -> None:
    plain, cut = step("qwen3-235b-a22b", Layout(64)), step("qwen3-235b-a22b", Layout(64, tp=8))
    for name in ("dispatch", "routed experts", "combine"):
        assert parts(cut)[name].seconds == pytest.approx(parts(plain)[name].seconds)


# --- groups of experts -----------------------------------------------------------------------------------------------


def test_two_groups_of_experts_in_two_racks_leave_no_rack() -> None:
    one, two = step("deepseek-v3", Layout(64)), step("deepseek-v3", Layout(64, dp=128), domains=2)
    assert two.remote_share == 0
    assert two.serial == pytest.approx(one.serial)
    assert two.tokens_per_second == pytest.approx(2 * one.tokens_per_second)
    assert any("2 expert-parallel groups of 64" in line for line in two.assumptions)


def test_redundant_slots_halve_what_the_hot_expert_gets() -> None:
    load = [4, 1, 1, 1, 1, 1, 1, 1]
    plain, more = (step("mixtral-8x7b", Layout(8, redundant=n), expert_load=load) for n in (0, 8))
    assert plain.imbalance is not None
    assert more.imbalance is not None
    assert plain.imbalance.load == pytest.approx(8 * 4 / 11)
    assert plain.imbalance.heaviest_gpu == "d0/gpu0"
    # 16 slots on 8 GPUs; the hot one on 4 or more of them, with a slot of another beside it.
    assert more.experts_per_gpu == 2
    assert more.imbalance.load < 1.4
    assert parts(more)["dispatch"].seconds < parts(plain)["dispatch"].seconds


def test_a_spread_shared_expert_is_a_ninth_copy() -> None:
    local, spread = (step("deepseek-v3", Layout(64, shared=shared, redundant=63 * (shared == "spread")))
                     for shared in ("local", "spread"))  # fmt: skip
    # 257 experts and 63 copies are 5 slots a GPU; the shared expert has a slot on every fourth GPU or so.
    assert (local.experts_per_gpu, spread.experts_per_gpu) == (4, 5)
    sent = parts(spread)["dispatch"].seconds / parts(local)["dispatch"].seconds
    assert sent == pytest.approx(9 / 8, rel=0.02)
    assert parts(spread)["dense, shared experts and head"].flop < parts(local)["dense, shared experts and head"].flop


def test_the_shared_expert_gets_every_token() -> None:
    model = serving.load_model("deepseek-v3")
    wider, load = serving.spread(model, np.full((58, 256), 1 / 256))
    assert (wider.n_experts, wider.top_k, wider.shared_params) == (257, 9, 0)
    assert (wider.total_params - model.total_params) == 0
    assert load.sum(axis=1) == pytest.approx(np.ones(58))
    assert load[:, 256] == pytest.approx(np.full(58, 1 / 9))


def test_experts_at_a_latent_width_are_sent_less() -> None:
    model = serving.load_model("deepseek-v3")
    narrow = replace(model, expert_hidden_size=model.hidden_size // 2)
    found = routes("gb200-nvl72", 1)
    wide, half = (serving.step(found.fabric, one, WORK, layout=Layout(64), routing=found) for one in (model, narrow))
    for name in ("dispatch", "combine"):
        assert parts(half)[name].seconds == pytest.approx(parts(wide)[name].seconds / 2)


@pytest.mark.parametrize("copies", ["per_gpu", "per_domain"])
def test_copies_in_two_groups_are_those_of_one(copies: str) -> None:
    work = Workload(context=4096, batch_per_gpu=16, copies=copies)
    one, two = step("deepseek-v3", Layout(8), work), step("deepseek-v3", Layout(8, dp=16), work)
    assert two.serial == pytest.approx(one.serial)


# --- phases ----------------------------------------------------------------------------------------------------------


def test_a_prefill_passes_every_token_and_sees_half_the_context() -> None:
    work = Workload(phase="prefill", context=2048, batch=1)
    found = parts(step("llama-3.1-70b", Layout(1), work, "hgx-h100-8"))
    model = serving.load_model("llama-3.1-70b")
    assert found["attention projections"].flop == 2 * 2048 * model.params_in("attention", range(80))
    assert found["attention and KV cache"].flop == 80 * 4 * 64 * 128 * 2048 * 2049 / 2
    assert found["attention and KV cache"].n_bytes == 80 * 2048 * 2 * 8 * 128 * 2
    logits = 2 * (128256 * 8192 + 2048 * model.params_in("dense", range(80)))
    assert found["dense, shared experts and head"].flop == logits


def test_a_cached_prefix_is_read_and_not_passed() -> None:
    whole, rest = (step("llama-3.1-70b", Layout(1), Workload(phase="prefill", context=2048, batch=1, cached=cached),
                        "hgx-h100-8") for cached in (0, 1536))  # fmt: skip
    assert parts(rest)["attention projections"].flop * 4 == parts(whole)["attention projections"].flop
    assert parts(rest)["attention and KV cache"].n_bytes == parts(whole)["attention and KV cache"].n_bytes
    assert parts(rest)["attention and KV cache"].flop == 80 * 4 * 64 * 128 * sum(range(1537, 2049))


def test_latent_attention_is_expanded_for_a_prompt_and_absorbed_for_a_token() -> None:
    prompt = parts(step("deepseek-v3", Layout(32), Workload(phase="prefill", context=4096, batch_per_gpu=1)))
    assert prompt["attention and KV cache"].flop == 61 * 2 * 128 * (192 + 128) * 4096 * 4097 / 2
    token = parts(step("deepseek-v3", Layout(32), Workload(context=4096, batch_per_gpu=1)))
    assert token["attention and KV cache"].flop == 61 * 2 * 128 * (576 + 512) * 4096


def test_chunks_of_a_prompt_cost_what_the_prompt_does() -> None:
    mixer = serving.load_model("llama-3.1-70b").mixers[0]
    (_, middle) = Workload(phase="chunked", context=4096, batch=1, chunk=512).slices(1)
    pieces = [mixer.flop(start, start + 512) for start in range(0, 4096, 512)]
    assert 8 * mixer.flop(middle.before, middle.after) == pytest.approx(sum(pieces)) == mixer.flop(0, 4096)
    assert middle.logits == 512 / 4096


def test_a_chunk_adds_its_tokens_to_the_decode() -> None:
    decode, mixed = (step("deepseek-v3", Layout(64), Workload(phase=phase, batch_per_gpu=16, chunk=chunk))
                     for phase, chunk in (("decode", None), ("chunked", 112)))  # fmt: skip
    assert parts(mixed)["attention projections"].flop == 8 * parts(decode)["attention projections"].flop
    assert parts(mixed)["dispatch"].seconds == pytest.approx(8 * parts(decode)["dispatch"].seconds)
    assert mixed.kv_bytes == pytest.approx(decode.kv_bytes * 17 / 16)


def test_context_parallelism_divides_a_prompt_and_gathers_its_keys() -> None:
    work = Workload(phase="prefill", context=8192, batch=1)
    one, four = (step("llama-3.1-70b", Layout(1, cp=cp), work, "hgx-h100-8") for cp in (1, 4))
    for name in ("attention projections", "attention and KV cache"):
        assert parts(four)[name].flop == pytest.approx(parts(one)[name].flop / 4)
    gather = cost(routes("hgx-h100-8", 1).fabric, "all_gather", 8192 * 2 * 8 * 128 * 2, ranks=[0, 1, 2, 3],
                  algorithm="best")  # fmt: skip
    assert parts(four)["context-parallel all-gather"].seconds == pytest.approx(80 * gather.seconds)
    assert four.kv_bytes == one.kv_bytes / 4


def test_guessed_tokens_are_checked_in_one_pass() -> None:
    work = {"context": 4096, "batch_per_gpu": 64}
    plain, free, mtp = (
        step("deepseek-v3", Layout(64), Workload(**work, **more))  # type: ignore[arg-type]
        for more in ({}, {"draft": 1, "acceptance": 1.0, "drafter": "free"}, {"draft": 1, "acceptance": 0.85})
    )
    for name in ("dispatch", "combine"):
        assert parts(free)[name].seconds == pytest.approx(2 * parts(plain)[name].seconds)
    assert parts(free)["attention and KV cache"].memory_seconds == pytest.approx(
        parts(plain)["attention and KV cache"].memory_seconds, rel=1e-3
    )
    assert free.tokens_per_user == pytest.approx(2 / free.seconds)
    assert mtp.tokens_per_user == pytest.approx(1.85 / mtp.seconds)
    assert parts(mtp)["drafting"].seconds > 0
    assert mtp.weight_bytes - plain.weight_bytes == pytest.approx(
        serving.load_model("deepseek-v3").layer_weight_bytes(60, 4) + 2 * 7168**2
    )


def test_a_model_without_a_drafting_layer_cannot_draft() -> None:
    with pytest.raises(InputError, match="has no multi-token-prediction layer"):
        step("mixtral-8x7b", Layout(8), Workload(batch_per_gpu=1, draft=1, acceptance=0.5))


def test_fewer_micro_batches_than_stages_idle() -> None:
    full, one = (step("deepseek-v3", Layout(18, pp=4, micro_batches=n)) for n in (None, 1))
    # 61 layers are 15 or 16 to a stage: a little less than four at a time.
    assert 3.7 * one.tokens_per_second < full.tokens_per_second < 4 * one.tokens_per_second
    assert one.kv_bytes == full.kv_bytes / 4
    assert one.serial == full.serial


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [Layout(64), Layout(16, tp=8), Layout(16, pp=4)], ids=repr)
def test_the_most_sequences_fit_and_one_more_does_not(layout: Layout) -> None:
    most = step("deepseek-v3", layout).most_sequences
    fits, over = (step("deepseek-v3", layout, Workload(context=4096, batch_per_gpu=n)) for n in (most, most + 1))
    assert (fits.fits, over.fits) == (True, False)
    assert fits.headroom >= 0 > over.headroom
    assert f"{most:,} sequences per GPU would fit" in over.reason


def test_weights_that_do_not_fit_say_by_how_much() -> None:
    found = step("deepseek-v3", Layout(8), design="hgx-h100-8")
    assert found.headroom < 0
    assert found.most_sequences == 0
    assert "the weights alone are" in found.reason


# --- software --------------------------------------------------------------------------------------------------------


def test_a_profile_of_expert_layers_changes_dispatch_and_combine_only() -> None:
    plain, deepep = (step("deepseek-v3", Layout(8, tp=2), design="hgx-h100-8", profile=name)
                     for name in ("ideal", "deepep-normal"))  # fmt: skip
    for name, part in parts(plain).items():
        if name in ("dispatch", "combine"):
            assert parts(deepep)[name].seconds > part.seconds
        else:
            assert parts(deepep)[name] == part
    assert any("profile deepep-normal, version" in line for line in deepep.assumptions)


def test_each_collective_runs_on_the_software_named_for_it() -> None:
    both = step("deepseek-v3", Layout(8, tp=2), design="hgx-h100-8", profile="nccl-hopper",
                expert_profile="deepep-normal")  # fmt: skip
    alone = {name: step("deepseek-v3", Layout(8, tp=2), design="hgx-h100-8", profile=name)
             for name in ("nccl-hopper", "deepep-normal")}  # fmt: skip
    for name, of in (("dispatch", "deepep-normal"), ("tensor-parallel all-reduce", "nccl-hopper")):
        assert parts(both)[name] == parts(alone[of])[name]
    ideal = step("deepseek-v3", Layout(8, tp=2), design="hgx-h100-8")
    assert parts(alone["nccl-hopper"])["dispatch"].seconds > parts(ideal)["dispatch"].seconds
