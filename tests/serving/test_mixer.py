"""Is what a layer keeps and computes what its positions say?"""

from __future__ import annotations

import pytest

from serving import Cache, Mixer
from serving.laws import recurrence_flop, visible_positions


@pytest.mark.parametrize("reach", [None, 1, 3, 7, 100])
@pytest.mark.parametrize(("before", "after"), [(0, 1), (0, 9), (4, 9), (8, 9), (5, 5)])
def test_visible_positions_are_the_sum_over_tokens(before: int, after: int, reach: int | None) -> None:
    tokens = range(before + 1, after + 1)
    assert visible_positions(before, after, reach) == sum(min(t, reach or t) for t in tokens)


def test_visible_positions_scale() -> None:
    assert visible_positions(0, 2e6) / visible_positions(0, 1e6) == pytest.approx(4, rel=1e-5)  # quadratic
    assert visible_positions(0, 2e6, 128) / visible_positions(0, 1e6, 128) == pytest.approx(2, rel=1e-3)  # linear


def test_recurrences_pay_per_state_element() -> None:
    assert recurrence_flop(10, 3) == 60


def test_a_window_stops_what_is_kept_and_a_selection_only_what_is_read() -> None:
    full, window, sparse = Cache(10, 4), Cache(10, 4, window=100), Cache(10, 4, selected=100)
    assert [cache.kept(1000) for cache in (full, window, sparse)] == [1000, 100, 1000]
    assert [cache.read(999, 1000) for cache in (full, window, sparse)] == [1000, 100, 100]
    assert [cache.read(49, 50) for cache in (full, window, sparse)] == [50, 50, 50]


def test_a_stride_keeps_one_position_of_many() -> None:
    cache = Cache(10, 4, stride=4, selected=25)
    assert cache.kept(1000) == 250
    assert cache.read(999, 1000) == 25  # 100 tokens' worth
    assert cache.read(19, 20) == 5


def test_a_mixer_sums_its_caches_and_its_state() -> None:
    mixer = Mixer("x", 7, 1, (Cache(10, 4), Cache(2, 3, stride=2)), state_elements=5, flops_per_token=11)
    assert mixer.kv_elements == 11
    assert mixer.kv_kept(100) == 1100
    assert mixer.flop(99, 100) == 4 * 100 + 3 * 50 + 11
    assert mixer.kv_read(99, 100) == 1100
    twice = mixer.times(2)
    assert (twice.params, twice.state_elements, twice.kv_kept(100)) == (14, 10, 2200)
    assert mixer.within(10).kv_kept(100) == 10 * 10 + 2 * 5
    assert mixer.within(None) is mixer
