"""Is each law of a step right by a hand number, in a limit and in how it scales?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives.laws import expert_all_to_all_seconds
from serving import laws, load_model

# --- decode when only the all-to-all counts (arXiv 2505.09343, section 2.3.2; 7K = 7000) ---


@pytest.mark.parametrize(
    # 61 layers (dense ones counted), two micro-batches in turn; the paper prints 67 and about 1,200 tokens/s
    ("bandwidth", "micros", "millis", "rate", "tolerance"),
    [(50e9, 120.96, 14.76, 67.8, 0.05), (900e9, 6.72, 0.82, 1220, 1)],
)
def test_decode_limit(bandwidth: float, micros: float, millis: float, rate: float, tolerance: float) -> None:
    layer = expert_all_to_all_seconds(32, 9, 7000, 1 + 2, bandwidth)
    assert layer * 1e6 == pytest.approx(micros, rel=1e-12)
    assert 1e3 / laws.decode_tokens_per_second(layer, 61) == pytest.approx(millis, abs=5e-3)
    assert laws.decode_tokens_per_second(layer, 61) == pytest.approx(rate, abs=tolerance)


def test_decode_limit_counts_every_micro_batch() -> None:
    one = laws.decode_tokens_per_second(1e-3, 10, micro_batches=1)
    assert one == pytest.approx(100)
    assert laws.decode_tokens_per_second(1e-3, 10, micro_batches=4) == pytest.approx(one / 4)


# arXiv 2505.09343, table 1 [bytes, BF16]; Llama-3.1-70B has Qwen2.5-72B's 80 layers of 8 KV heads of 128
@pytest.mark.parametrize(
    ("name", "n_bytes"), [("deepseek-v3", 70_272), ("llama-3.1-70b", 327_680), ("llama-3.1-405b", 516_096)]
)
def test_kv_per_token(name: str, n_bytes: int) -> None:
    assert load_model(name).kv_bytes_per_token == n_bytes


# --- work and kernels ---


def test_matmul_counts_multiply_and_add() -> None:
    assert laws.matmul_flop(3.0, 5.0) == 30.0
    assert laws.matmul_flop(np.array([1.0, 2.0]), np.array([3.0, 4.0])).tolist() == [6.0, 16.0]


@pytest.mark.parametrize(
    ("flop", "n_bytes", "seconds"), [(2e12, 1.0, 2e-3), (1.0, 16e9, 2e-3), (1e12, 8e9, 1e-3), (0.0, 0.0, 0.0)]
)
def test_a_kernel_takes_the_longer_of_the_two(flop: float, n_bytes: float, seconds: float) -> None:
    assert laws.kernel_seconds(flop, 1e15, n_bytes, 8e12) == pytest.approx(seconds, rel=1e-9)


# --- distinct experts hit ---


def test_experts_hit_in_the_limits() -> None:
    assert laws.expected_experts_hit(256.0, 8 / 256, 0.0) == 0.0
    assert laws.expected_experts_hit(256.0, 8 / 256, 1.0) == pytest.approx(8.0)  # one token: its top-k
    assert laws.expected_experts_hit(256.0, 8 / 256, 1e6) == pytest.approx(256.0)
    assert laws.expected_experts_hit(256.0, 1.0, 1.0) == 256.0


@given(st.integers(1, 512), st.floats(0.001, 1.0), st.integers(1, 2000))
def test_experts_hit_grows_with_tokens_and_never_beyond_all(n: int, inclusion: float, tokens: int) -> None:
    fewer, more = (laws.expected_experts_hit(float(n), inclusion, float(t)) for t in (tokens, tokens + 1))
    assert 0 < fewer <= more <= n
    assert more <= n * inclusion * (tokens + 1) * (1 + 1e-9)


def test_experts_hit_by_sampling() -> None:
    """32 tokens of top-8 among 256, without replacement inside a token: 163.31 experts."""
    rng = np.random.default_rng(412)
    chosen = np.argsort(rng.random((1000, 32, 256)), axis=2)[:, :, :8].reshape(1000, -1)
    distinct = 1 + (np.diff(np.sort(chosen, axis=1), axis=1) > 0).sum(axis=1)
    law = laws.expected_experts_hit(256.0, 8 / 256, 32.0)
    assert law == pytest.approx(163.31, abs=5e-3)
    assert distinct.mean() == pytest.approx(law, abs=4 * distinct.std() / np.sqrt(1000))


# --- replicas of experts ---


# vllm-project/vllm#30614, #24537; TensorRT-LLM examples/ep_load_balancer for 36
@pytest.mark.parametrize(
    ("ep", "least", "slots"), [(32, 0, 8), (36, 32, 8), (72, 32, 4), (96, 32, 3), (320, 64, 1), (256, 0, 1)]
)
def test_least_redundant_experts(ep: int, least: int, slots: int) -> None:
    assert laws.least_redundant_experts(256, ep) == least
    assert (256 + least) / ep == slots


@given(n_experts=st.integers(1, 600), ep=st.integers(1, 600))
def test_fewer_replicas_leave_slots_unequal(n_experts: int, ep: int) -> None:
    least = laws.least_redundant_experts(n_experts, ep)
    assert 0 <= least < ep
    assert [r for r in range(least + 1) if (n_experts + r) % ep == 0] == [least]


def test_guesses_by_hand_and_at_the_ends() -> None:
    assert laws.expected_accepted(0, 0.0) == 1.0
    assert laws.expected_accepted(2, 0.5) == 1.75
    assert laws.expected_accepted(200, 0.9) == pytest.approx(1 / (1 - 0.9))
    # DeepSeek-V3, arXiv 2412.19437, section 5.4.3: 85 to 90 % accepted, 1.8 times the speed.
    assert 1.8 <= laws.expected_accepted(1, 0.85) <= 1.9


def _turns(ops: list[float], layers: int) -> float:
    """Two half batches on two machines, op by op, whoever is ready first; local and experts on the GPU."""
    free, ready, done = [0.0, 0.0], [0.0, 0.0], [0, 0]
    while min(done) < 4 * layers:
        starts = [(max(ready[h], free[done[h] % 2]), done[h], h) for h in range(2) if done[h] < 4 * layers]
        start, op, h = min(starts)
        ready[h] = free[op % 2] = start + ops[op % 4]
        done[h] += 1
    return max(ready)


@pytest.mark.parametrize("seed", range(20))
def test_two_batches_in_turn_lie_between_the_busier_machine_and_lock_step(seed: int) -> None:
    ops = [float(x) for x in np.random.default_rng(seed).uniform(0.1, 3.0, 4)]
    layers = 200
    lock_step = laws.two_batch_seconds(*ops)
    busier = 2 * max(ops[0] + ops[2], ops[1] + ops[3])
    simulated = _turns(ops, layers) / layers
    assert busier * (1 - 1e-9) <= lock_step <= 2 * sum(ops)
    assert busier * (1 - 1e-9) <= simulated <= lock_step * (1 + 0.02)


def test_two_batches_with_free_wires_are_two_computations() -> None:
    assert laws.two_batch_seconds(3.0, 0.0, 2.0, 0.0) == 10.0
    assert laws.two_batch_seconds(0.0, 3.0, 0.0, 2.0) == 10.0


def test_the_sum_is_at_least_the_max() -> None:
    for flop in (1e12, 1e14):
        low, high = (law(flop, 1e15, 8e9, 4e9, 8e12) for law in (laws.lecture_seconds, laws.scaling_book_seconds))
        assert low <= high <= 2 * low
