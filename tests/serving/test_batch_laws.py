"""Do the laws of the batch give the lecture's numbers, and do they hold against each other?

Claims by number and video time: R. Pope on the Dwarkesh podcast, 2026-04-29.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from serving import laws
from topo import load_design

# --- the balance and the knee ---


@pytest.mark.parametrize(
    # claim 16 (18:00): FP4 multiplies x half a byte, about 300; the specifications ai-dynamo/aiconfigurator@095f58a has
    ("name", "key", "size", "balance"),
    [("gb200-nvl72", "fp8", 1, 312.5), ("gb200-nvl72", "fp4", 0.5, 312.5), ("hgx-h200-8", "fp8", 1, 206.04),
     ("hgx-h100-8", "fp8", 1, 295.22), ("hgx-a100-8", "bf16", 2, 153.02)],
)  # fmt: skip
def test_balance(name: str, key: str, size: float, balance: float) -> None:
    chip = load_design(name).chip
    assert laws.machine_balance(chip.flops[key], chip.hbm_bandwidth, size) == pytest.approx(balance, abs=5e-3)


@pytest.mark.parametrize(
    # claim 18 (19:00) and its three readings of DeepSeek V3's sparsity, at a balance of 300 and one byte per weight
    ("total", "active", "sequences"),
    [(256, 32, 2400), (700, 37, 5676), (256, 8, 9600)],
)
def test_three_readings_of_the_knee(total: float, active: float, sequences: float) -> None:
    assert laws.knee_batch(total * 1e9, active * 1e9, 600e12, 1e12) == pytest.approx(sequences, abs=0.5)


def test_the_knee_depends_on_sparsity_and_not_on_scale() -> None:  # claim 22 (25:53)
    small, large = (laws.knee_batch(n * 18.0, n, 5e15, 8e12) for n in (1e9, 1e12))
    assert small == pytest.approx(large, rel=1e-12)
    assert small == pytest.approx(18 * laws.machine_balance(5e15, 8e12, 1.0), rel=1e-12)


@pytest.mark.parametrize("kv", [0.0, 1e7, 8e7])
def test_at_the_knee_compute_takes_as_long_as_memory(kv: float) -> None:
    batch = laws.knee_batch(671e9, 37e9, 5e15, 8e12, kv)
    compute = laws.lecture_seconds(batch * 2 * 37e9, 5e15, 0, 0, 8e12)
    memory = laws.lecture_seconds(0, 5e15, 671e9, batch * kv, 8e12)
    assert compute == pytest.approx(memory, rel=1e-12)


def test_the_cache_pushes_the_knee_up_until_there_is_none() -> None:  # claims 12 (11:25) and 20 (19:52)
    slope = 2 * 37e9 / 5e15 * 8e12  # bytes read in the time of a token's arithmetic
    none, half = laws.knee_batch(671e9, 37e9, 5e15, 8e12), laws.knee_batch(671e9, 37e9, 5e15, 8e12, slope / 2)
    assert half == pytest.approx(2 * none, rel=1e-12)
    assert laws.knee_batch(671e9, 37e9, 5e15, 8e12, slope) == math.inf
    assert laws.knee_batch(671e9, 37e9, 5e15, 8e12, 2 * slope) == math.inf


# --- latency: the floor, the drain time, the train ---


@pytest.mark.parametrize(
    # oracle list of drain times [ms]; claim 25 (22:44): 288 GB at 20 TB/s is 14.4 ms
    ("name", "millis"),
    [("hgx-a100-8", 42.1), ("hgx-h100-8", 25.6), ("hgx-h200-8", 31.5), ("gb200-nvl72", 24.8), ("vr-nvl72", 13.1)],
)
def test_drain_times(name: str, millis: float) -> None:
    chip = load_design(name).chip
    assert laws.drain_seconds(chip.hbm_bytes, chip.hbm_bandwidth) * 1e3 == pytest.approx(millis, abs=0.05)


def test_no_batch_is_faster_than_the_weights() -> None:  # claim 7 (9:45)
    floor = laws.drain_seconds(671e9, 72 * 8e12)
    times = [laws.lecture_seconds(b * 74e9, 72 * 5e15, 671e9, b * 3e8, 72 * 8e12) for b in (1, 10, 100, 10**4)]
    assert floor < times[0] < times[1]
    assert times[0] == pytest.approx(floor, rel=1e-3)


def test_the_train() -> None:  # claim 23 (22:13): 20 + 20 = 40 ms
    arrivals = (np.arange(100_000) + 0.5) / 100_000 * 0.02
    waits = (0.02 - arrivals) + 0.02  # to the next departure, and the journey
    mean, worst = laws.train_wait(0.02)
    assert worst == pytest.approx(0.04)
    assert mean == pytest.approx(waits.mean(), rel=1e-9)
    assert worst == pytest.approx(waits.max(), rel=1e-4)


# --- cost ---


def test_cost_of_a_token() -> None:
    # 64 GPUs at 2 $ are 128 $/h = 0.03556 $/s; 128,000 tokens/s (claim 27): 0.2778 $ per million
    assert laws.dollars_per_token(1 / 64, 2000, 64, 2.0) * 1e6 == pytest.approx(0.27778, abs=5e-6)
    one, ten = laws.dollars_per_token(0.02, 100, 8, 2.0), laws.dollars_per_token(0.02, 1000, 8, 2.0)
    assert one == pytest.approx(10 * ten)


@pytest.mark.parametrize(("price", "speed"), [(6, 2.5), (2, 1.5), (3, 2)])
def test_fast_mode_by_batch_alone(price: float, speed: float) -> None:
    """Take the slow mode the law asks for, shrink its batch, and see what becomes of speed and price."""
    weights, sequence, bandwidth = 671e9, 3e8, 5.76e14
    slow = laws.fast_mode_kv_share(price, speed) * weights / sequence
    fast = slow / laws.fast_mode_batches(price, speed)
    times = [laws.lecture_seconds(0, 1, weights, batch * sequence, bandwidth) for batch in (slow, fast)]
    assert times[0] / times[1] == pytest.approx(speed, rel=1e-12)
    assert times[1] / fast / (times[0] / slow) == pytest.approx(price, rel=1e-12)
    assert laws.fast_mode_price(laws.fast_mode_kv_share(price, speed), speed) == pytest.approx(price, rel=1e-12)


def test_fast_mode_of_the_lecture_and_in_the_limits() -> None:
    # by hand: w + 15 x = 2.5 (w + x), so x = 0.12 w, and the slow batch reads 15 x = 1.8 w
    assert laws.fast_mode_kv_share(6, 2.5) == pytest.approx(1.8)
    assert laws.fast_mode_kv_share(1e12, 2.5) == pytest.approx(1.5)  # no cache left at all: 1 + x = speed
    assert laws.fast_mode_price(1.5, 2.5) == math.inf
    assert laws.fast_mode_price(1e12, 2.5) == pytest.approx(1)  # all is cache: speed is free
