"""Is an all-reduce bound by what its groups of ranks must exchange, and by what switches add up?"""

from __future__ import annotations

import pytest

from collectives import lower_bound

from .bounded import boxes, star


@pytest.mark.parametrize("p", [2, 3, 8])
def test_all_reduce_on_a_switch(p: int) -> None:
    def seconds(**switch: bool) -> float:
        return lower_bound(star(p, 1e9, **switch), "all_reduce", 1e9, scope="any").seconds

    ring = 2 * (p - 1) / p  # Patarasuk and Yuan: bandwidth optimal
    assert seconds() == pytest.approx(ring, rel=1e-9)
    assert seconds(reduces=True) == pytest.approx(ring, rel=1e-9)  # results still leave one by one
    assert seconds(multicasts=True) == pytest.approx(ring, rel=1e-9)
    assert seconds(reduces=True, multicasts=True) == pytest.approx(1.0, rel=1e-9)  # n / link


def test_all_reduce_over_boxes_with_in_network_reduction_inside_them() -> None:
    bound = lower_bound(boxes(4), "all_reduce", 1e9, scope="any")
    # 2 (k-1) n over what k boxes of 8 NICs have together; the switches inside may do anything
    assert bound.seconds == pytest.approx(2 * 3 * 1e9 / (4 * 8 * 25e9), rel=1e-9)
    assert (bound.kind, bound.cut_bytes) == ("partition", 6e9)


def test_a_gpu_that_takes_no_part_may_reduce_for_others() -> None:
    alone = lower_bound(star(4, 1e9), "all_reduce", 1e9, ranks=["gpu0", "gpu1", "gpu2"], scope="any")
    assert alone.seconds == pytest.approx(1.0, rel=1e-9)  # only the cut around one rank is left
