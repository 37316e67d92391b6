"""Are the records readable, and do they become honest JSON?"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import collectives
import topo
from collectives import plain


@pytest.fixture(scope="module")
def found() -> collectives.Cost:
    return collectives.cost(topo.load("gb200-nvl72", 2), "all_to_all", 144e9)


def test_a_cost_says_the_answer_first(found: collectives.Cost) -> None:
    assert repr(found).startswith("Cost(1.44 s, busbw ")
    assert "bound by scale-out" in repr(found)


def test_a_schedule_says_what_it_is() -> None:
    plan = collectives.schedule("all_to_all", topo.load("hgx-h100-8"), 8e9)
    assert repr(plan) == "Schedule(all_to_all direct, 8 ranks, 8 GB, 1 phases)"


def test_to_dict_has_the_fields_and_is_json(found: collectives.Cost) -> None:
    row = found.to_dict()
    assert "loads" not in row
    assert set(row) == set(collectives.Cost.__dataclass_fields__) - {"loads"}
    assert set(row["classes"]["scale-out"]) == set(collectives.ClassLoad.__dataclass_fields__)
    again = json.loads(json.dumps(row, allow_nan=False))
    assert again["seconds"] == found.seconds
    assert row["remote_share"] == pytest.approx(1 / 2, rel=1e-12)
    assert row["remote_share_of_sent"] == pytest.approx(72 / 143, rel=1e-12)


@dataclass(frozen=True)
class _Row:
    name: str
    values: np.ndarray
    inner: Any


def test_plain_goes_all_the_way_down() -> None:
    row = _Row("a", np.array([1.5, math.inf]), {"b": (np.int64(3), np.True_, None, _Row("c", np.zeros(0), 1))})
    assert plain(row) == {
        "name": "a", "values": [1.5, "Infinity"],
        "inner": {"b": [3, True, None, {"name": "c", "values": [], "inner": 1}]},
    }  # fmt: skip
    assert "name" not in plain(row, leave_out=("name",))


@pytest.mark.parametrize(
    ("number", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (np.float64(math.inf), "Infinity")]
)
def test_infinite_numbers_are_words(number: float, text: str) -> None:
    assert plain(number) == text


def test_what_is_not_a_number_is_not_passed_off_as_one() -> None:
    """NaN has no place in an answer; it may fail loudly, it may not turn into an infinity."""
    with pytest.raises(ValueError, match="JSON"):
        json.dumps(plain({"seconds": math.nan}), allow_nan=False)


def test_nothing_sent_is_bound_by_nothing() -> None:
    told = repr(collectives.cost(topo.load("hgx-h100-8"), "all_reduce", 0))
    assert told == "Cost(0 s, busbw 0 B/s: all_reduce over 8 ranks, nothing is sent, routing ecmp)"
