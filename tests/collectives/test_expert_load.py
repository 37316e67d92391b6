"""Do expert loads become the shares that tokens can have?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collectives import expert_shares, inclusion_shares
from topo import InputError


def test_shares_sum_to_one_and_follow_the_loads() -> None:
    shares = expert_shares(4, [1, 0, 2, 1], 3)
    assert shares.shape == (3, 4)
    assert shares.tolist() == [[0.25, 0.0, 0.5, 0.25]] * 3
    assert expert_shares(4, [[1, 1, 1, 1], [4, 0, 0, 0]], 2).tolist() == [[0.25] * 4, [1.0, 0, 0, 0]]
    assert expert_shares(4, None, 2).tolist() == [[0.25] * 4] * 2


@pytest.mark.parametrize(
    "load",
    [[1.0] * 5, [[1.0] * 4] * 2, [-1.0, 1, 1, 1], [0.0] * 4, [float("nan"), 1, 1, 1], [float("inf"), 1, 1, 1],
     [[1.0] * 4, [1.0] * 4, [0.0] * 4], [1e308] * 4],
    ids=["too long", "too few layers", "negative", "all zero", "NaN", "infinite", "a layer of zeros", "overflow"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:overflow")
def test_loads_that_are_none(load: Any) -> None:
    with pytest.raises(InputError) as caught:
        expert_shares(4, load, 3)
    assert [fault.place for fault in caught.value.faults] == ["expert_load"]


def test_a_wrong_load_is_shown() -> None:
    with pytest.raises(InputError, match=r"expert_load = nan: is the load of expert 2 in row 1"):
        expert_shares(3, [[1, 1, 1], [1, 1, np.nan]], 2)
    with pytest.raises(InputError, match=r"has no load in row 1"):
        expert_shares(3, [[1, 1, 1], [0, 0, 0]], 2)


@pytest.mark.parametrize("load", ["heavy", [["a"] * 4], [[1.0, 2.0], [3.0]], {"a": 1}])
def test_loads_that_are_no_numbers(load: Any) -> None:
    with pytest.raises(InputError) as caught:
        expert_shares(4, load, 3)
    assert [fault.place for fault in caught.value.faults] == ["expert_load"]


def test_no_expert_gets_more_than_every_token_once() -> None:
    """Zipf 1.0 over 256 experts asks 16.3 % of the first; with top-8 no more than 1/8 can be (oracles, section 12)."""
    zipf = 1 / np.arange(1, 257)
    asked = expert_shares(256, zipf, 1)
    assert asked[0, 0] == pytest.approx(0.163, abs=5e-4)
    shares = inclusion_shares(asked, 8)
    assert shares[0, 0] == 1 / 8
    assert shares.sum() == pytest.approx(1, rel=1e-12)
    others = shares[0, 1:] / asked[0, 1:]
    assert others == pytest.approx(np.full(255, others[0]), rel=1e-9)


def test_loads_a_token_can_have_stay() -> None:
    asked = expert_shares(16, np.arange(17, 33), 1)
    assert inclusion_shares(asked, 4) == pytest.approx(asked)


def test_too_few_experts_with_load() -> None:
    with pytest.raises(InputError, match="at least 2 experts"):
        inclusion_shares(np.array([[1.0, 0.0, 0.0]]), 2)
