"""Is each operation's work and traffic what one counts by hand?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import serving
import topo
from serving import Part, Workload, chip_numbers
from serving._chip import ChipNumbers
from serving._operations import (
    expert_part,
    experts_hit,
    kv_bytes,
    local_parts,
    merged,
    overlapped,
    resident_bytes,
    sum_parts,
    times,
)
from topo import Fabric

#: 8 TB/s; dense 2.5, 5 and 10 PFLOP/s (public GB200 numbers).
GB200 = ChipNumbers(189471 * 2**20, 8e12, {"bf16": 2.5e15, "fp8": 5e15, "fp4": 10e15}, ())
WORK = Workload(context=4096, batch_per_gpu=114)
DEEPSEEK = serving.load_model("deepseek-v3")
GPT_OSS = serving.load_model("gpt-oss-120b")
#: DeepSeek-V3's weights by its config (arXiv 2412.19437): projections of one layer; one expert; one dense layer; head.
ATTENTION, EXPERT, DENSE, HEAD = 187_105_280, 3 * 7168 * 2048, 3 * 7168 * 18432, 129280 * 7168


def by_name(parts: list[Part]) -> dict[str, Part]:
    return {part.name: part for part in parts}


def test_the_catalogue_chip_is_the_one_used_here() -> None:
    chip = chip_numbers(Fabric.from_graph(topo.load("gb200-nvl72")), np.arange(72))
    assert chip == replace(GB200, name="GB200")


# --- DeepSeek-V3 by hand ---


def test_projections() -> None:
    part = local_parts(DEEPSEEK, WORK, GB200, 114, range(61))[0]
    assert part.flop == 2 * 114 * ATTENTION * 61
    assert part.n_bytes == ATTENTION * 61  # one byte a weight
    assert part.compute_seconds == pytest.approx(2 * 114 * ATTENTION * 61 / 5e15, rel=1e-12)
    assert part.seconds == part.memory_seconds == pytest.approx(1.427e-3, abs=5e-7)
    assert part.resource == "memory"


def test_attention_is_absorbed_mla_at_the_kv_rate() -> None:
    part = local_parts(DEEPSEEK, WORK, GB200, 114, range(61))[1]
    assert part.flop == 114 * 4096 * 61 * 2 * 128 * (576 + 512)
    assert part.n_bytes == 114 * 4096 * 61 * 576 * 2
    assert part.compute_seconds == pytest.approx(part.flop / 2.5e15, rel=1e-12)
    assert part.compute_seconds == pytest.approx(3.17e-3, abs=5e-6)
    assert part.seconds == pytest.approx(4.102e-3, abs=5e-7)


def test_attention_arithmetic_is_as_large_as_all_matmuls() -> None:
    """The lecture drops it; at 4,096 context it is 69.6 GFLOP a token against 75."""
    part = local_parts(DEEPSEEK, WORK, GB200, 1, range(61))[1]
    assert part.flop / 1e9 == pytest.approx(69.6, abs=0.05)
    assert 2 * DEEPSEEK.active_params / 1e9 == pytest.approx(75.1, abs=0.05)
    left_out = local_parts(DEEPSEEK, replace(WORK, attention_arithmetic=False), GB200, 114, range(61))[1]
    assert left_out.flop == left_out.compute_seconds == 0.0
    assert left_out.n_bytes == 114 * part.n_bytes


def test_kv_dtype_sets_bytes_and_rate_of_attention() -> None:
    bf16, fp8 = (local_parts(DEEPSEEK, replace(WORK, kv_dtype=d), GB200, 114, range(61))[1] for d in ("bf16", "fp8"))
    assert fp8.n_bytes == bf16.n_bytes / 2
    assert fp8.compute_seconds == pytest.approx(bf16.compute_seconds / 2, rel=1e-12)


def test_dense_shared_and_head() -> None:
    part = local_parts(DEEPSEEK, WORK, GB200, 114, range(61))[2]
    weights = 3 * DENSE + 58 * EXPERT + HEAD
    assert part.flop == pytest.approx(2 * 114 * weights, rel=1e-12)
    assert part.n_bytes == weights
    assert part.seconds == pytest.approx(0.584e-3, abs=5e-7)


def test_the_head_is_in_the_last_stage_only() -> None:
    with_head, without = (local_parts(DEEPSEEK, WORK, GB200, 114, range(61), head=h)[2] for h in (True, False))
    assert with_head.n_bytes - without.n_bytes == HEAD


def test_the_router_counts_when_asked() -> None:
    counted = local_parts(DEEPSEEK, replace(WORK, router=True), GB200, 114, range(61))[2]
    assert counted.n_bytes - local_parts(DEEPSEEK, WORK, GB200, 114, range(61))[2].n_bytes == 58 * 7168 * 256


def test_stages_add_up() -> None:
    whole = by_name(local_parts(DEEPSEEK, WORK, GB200, 114, range(61)))
    halves = [
        local_parts(DEEPSEEK, WORK, GB200, 114, range(31), head=False),
        local_parts(DEEPSEEK, WORK, GB200, 114, range(31, 61)),
    ]
    for part in merged(halves):
        assert part.flop == pytest.approx(whole[part.name].flop, rel=1e-12)
        assert part.n_bytes == pytest.approx(whole[part.name].n_bytes, rel=1e-12)


# --- windows, mixed dtypes, tied heads ---


def test_windows_bound_what_is_read_and_kept() -> None:
    # gpt-oss: 36 layers, every other one sees 128 positions; 8 KV heads of 64, keys and values, BF16
    seen = 18 * 4096 + 18 * 128
    assert kv_bytes(GPT_OSS, WORK, range(36)) == seen * 2 * 8 * 64 * 2
    assert local_parts(GPT_OSS, WORK, GB200, 1, range(36))[1].n_bytes == seen * 2 * 8 * 64 * 2
    short = replace(WORK, context=100)
    assert kv_bytes(GPT_OSS, short, range(36)) == 36 * 100 * 2 * 8 * 64 * 2


def test_parts_have_their_own_dtypes() -> None:
    projections, _, rest = local_parts(GPT_OSS, WORK, GB200, 114, range(36))
    assert projections.n_bytes == GPT_OSS.params_in("attention", range(36)) * 2
    assert projections.compute_seconds == pytest.approx(projections.flop / 2.5e15, rel=1e-12)
    assert rest.n_bytes == 201088 * 2880 * 2  # the head alone: no dense layers, no shared experts
    one = np.array([114.0])
    experts = expert_part(GPT_OSS, WORK, GB200, one, np.array([2.0]), np.array([2.0]))
    assert experts.n_bytes == 2 * (3 * 2880 * 2880 + 3 * 2880) * 136 / 256  # MXFP4: 136 bits for 32 values
    assert experts.compute_seconds == pytest.approx(2 * 114 * GPT_OSS.expert_params / 10e15, rel=1e-12)


def test_a_tied_head_is_read_and_held_once() -> None:
    tied = replace(DEEPSEEK, head_params=0)
    assert local_parts(tied, WORK, GB200, 114, range(61))[2].n_bytes == 3 * DENSE + 58 * EXPERT + HEAD
    assert resident_bytes(tied, range(61)) == resident_bytes(DEEPSEEK, range(61)) - HEAD


def test_a_last_stage_of_its_own_holds_the_embedding_a_tied_head_reads() -> None:
    """With pp above 1 the head's stage is another GPU than the embedding's: each needs the matrix."""
    tied = replace(DEEPSEEK, head_params=0)
    last = resident_bytes(tied, range(31, 61), first=False, last=True)
    assert last - resident_bytes(tied, range(31, 61), first=False, last=False) == HEAD


def test_resident_bytes_leave_routed_experts_out() -> None:
    whole = 61 * ATTENTION + 58 * (7168 * 256 + EXPERT) + 3 * DENSE + 2 * HEAD
    assert resident_bytes(DEEPSEEK, range(61)) == whole
    assert whole + 58 * 256 * EXPERT == DEEPSEEK.total_weight_bytes
    first, last = resident_bytes(DEEPSEEK, range(31), last=False), resident_bytes(DEEPSEEK, range(31, 61), first=False)
    assert first + last == whole


# --- routed experts ---


def test_the_gpu_that_takes_longest_counts() -> None:
    tokens, held, hit = np.array([10.0, 5000.0, 20.0]), np.array([4.0, 3.0, 4.0]), np.array([3.0, 3.0, 3.5])
    part = expert_part(DEEPSEEK, WORK, GB200, tokens, held, hit)
    assert part.flop == 2 * 5000 * EXPERT
    assert part.resource == "compute"
    light = expert_part(DEEPSEEK, WORK, GB200, np.array([10.0, 10.0, 20.0]), held, hit)
    assert light.n_bytes == 3.5 * EXPERT
    read_all = replace(WORK, expert_read="all")
    everything = expert_part(DEEPSEEK, read_all, GB200, np.array([10.0, 10.0, 20.0]), held, hit)
    assert everything.n_bytes == 4 * EXPERT


def test_experts_hit_follow_the_loads() -> None:
    expert, rank = np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1])
    uniform = experts_hit(expert, rank, np.full(4, 0.25), 2, 3.0, 2)
    assert uniform == pytest.approx([2 * (1 - 0.5**3)] * 2)
    skewed = experts_hit(expert, rank, np.array([0.9, 0.1, 0.0, 0.0]), 2, 3.0, 2)
    assert skewed[0] == pytest.approx(1 + 1 - 0.8**3)  # a share above 1/top_k is hit by every token, no more
    assert skewed[1] == 0.0
    # Two slots of one expert share its tokens: each is hit less often.
    twice = experts_hit(np.array([0, 0]), np.array([0, 1]), np.array([0.25, 0.25]), 2, 1.0, 2)
    assert twice == pytest.approx([0.5, 0.5])


# --- parts ---


def test_parts_scale_and_sum() -> None:
    part = Part("a", 3.0, 3.0, 1.0, 0.0, 8.0, 9.0)
    assert times(part, 4) == Part("a", 12.0, 12.0, 4.0, 0.0, 32.0, 36.0)
    assert sum_parts([part, part]) == times(part, 2)


def test_overlap_is_the_busiest_resource() -> None:
    parts = [Part("a", 3.0, 3.0, 1.0), Part("b", 4.0, 1.0, 4.0), Part("c", 4.5, network_seconds=4.5)]
    assert overlapped(parts) == 5.0
    assert [part.resource for part in parts] == ["compute", "memory", "network"]
