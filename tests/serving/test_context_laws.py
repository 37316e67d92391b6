"""Do the laws of context and cache give the lecture's numbers, and do they hold against each other?"""

from __future__ import annotations

import pytest

from serving import TIERS, laws, load_model


def test_the_price_step_read_backwards() -> None:
    # claim 73 (1:35:47): (1/300) x 100e9 / 200e3 = 1,667 bytes at one byte per weight; FP4 at twice the rate: 833
    assert laws.kv_bytes_at_crossing(200e3, 100e9, 600e12, 1e12) == pytest.approx(1666.7, abs=0.05)
    assert laws.kv_bytes_at_crossing(200e3, 100e9, 1200e12, 1e12) == pytest.approx(833.3, abs=0.05)


def test_two_kilobytes_of_one_global_layer() -> None:  # claim 74 (1:40:00)
    assert laws.kv_bytes_per_token(128, 8, 1, 1.0) == 2048
    # arXiv 2505.09343, table 1: Qwen2.5-72B and Llama-3.1-70B have 80 layers of 8 heads of 128 at BF16
    assert laws.kv_bytes_per_token(128, 8, 80, 2.0) == 327_680 == load_model("llama-3.1-70b").kv_bytes_per_token


@pytest.mark.parametrize(("weights", "batch"), [(0.0, 1.0), (671e9, 1e4), (671e9, 1e6)])
def test_at_the_crossing_memory_takes_as_long_as_compute(weights: float, batch: float) -> None:
    context = laws.crossing_context(37e9, 5e15, 1000.0, 8e12, weights, batch)
    memory = laws.lecture_seconds(0, 1, weights, batch * context * 1000.0, 8e12)
    assert memory == pytest.approx(batch * 2 * 37e9 / 5e15, rel=1e-12)


def test_the_crossing_backwards_and_below_the_knee() -> None:
    assert laws.crossing_context(
        100e9, 600e12, laws.kv_bytes_at_crossing(2e5, 100e9, 600e12, 1e12), 1e12
    ) == pytest.approx(2e5)
    knee = laws.knee_batch(671e9, 37e9, 5e15, 8e12)
    assert laws.crossing_context(37e9, 5e15, 1000.0, 8e12, 671e9, knee) == pytest.approx(0, abs=1e-6)
    assert laws.crossing_context(37e9, 5e15, 1000.0, 8e12, 671e9, knee / 2) < 0


def test_utilisation_halves_as_the_context_doubles() -> None:  # claim 13 (11:25)
    assert laws.utilisation(200e3, 100e3) == 0.5
    assert laws.utilisation(50e3, 100e3) == 1.0
    # the same from times: batch so large that weights vanish
    context, kv, batch = 4e5, 1000.0, 1e9
    crossing = laws.crossing_context(37e9, 5e15, kv, 8e12)
    compute = batch * 2 * 37e9 / 5e15
    seconds = laws.lecture_seconds(batch * 2 * 37e9, 5e15, 671e9, batch * context * kv, 8e12)
    assert compute / seconds == pytest.approx(laws.utilisation(context, crossing), rel=1e-4)


def test_read_in_a_drain_time_both_walls_are_one() -> None:  # claim 24 (22:44)
    hbm, bandwidth, weights = 198.67e9, 8e12, 27e9
    capacity = laws.kv_wall_context(hbm - weights, 114, 70_272)
    budget = laws.drain_seconds(hbm, bandwidth) * bandwidth - weights
    assert laws.kv_wall_context(budget, 114, 70_272) == pytest.approx(capacity, rel=1e-12)
    assert capacity == pytest.approx(21_429, abs=1)  # 171.67e9 / (114 x 70,272)


def test_sparse_attention_stays_linear() -> None:  # claim 14 (12:25) says the square root
    few, many = (laws.sparse_positions(n, 2048, 1 / 9) for n in (1e6, 2e6))
    assert laws.sparse_positions(1000, 2048, 0.0) == 1000
    assert many - few == pytest.approx(1e6 / 9)


def test_break_even_is_where_both_have_cost_as_much() -> None:
    gpu = 2 / 3600
    hbm = (0.0, laws.hold_dollars(70_272, 198.67e9, gpu, 1.0))
    anew = (2 * 36.7e9 / 5e15 * gpu, 0.0)
    at = laws.break_even_seconds(hbm, anew)
    assert hbm[0] + hbm[1] * at == pytest.approx(anew[0] + anew[1] * at, rel=1e-12)
    assert at == pytest.approx(41.5, abs=0.05)  # 2 x 36.7e9 / 5e15 s x 198.67e9 / 70,272


def test_the_right_tier_fetches_as_long_as_it_holds() -> None:
    """Claim 84 (2:00:24): held a drain time, a cache takes as much of a memory's bytes as of its bandwidth."""
    for tier in TIERS:
        drain = laws.drain_seconds(tier.n_bytes, tier.bandwidth)
        held = laws.hold_dollars(80e3, tier.n_bytes, tier.dollars_per_second, drain)
        fetched = laws.drain_seconds(80e3, tier.bandwidth) * tier.dollars_per_second
        assert held == pytest.approx(fetched, rel=1e-12)


def test_tiers_are_ordered() -> None:
    """Claim 82 (1:50:19): fetching gets dearer as holding gets cheaper."""
    fetch = [1 / tier.bandwidth for tier in TIERS]
    hold = [tier.dollars_per_second / tier.n_bytes for tier in TIERS]
    assert fetch == sorted(fetch)
    assert hold == sorted(hold, reverse=True)
    assert all("assumed" in tier.source for tier in TIERS)
