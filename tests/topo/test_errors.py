"""Does a message say file, place, value, rule and cure?"""

from __future__ import annotations

import numpy as np
import pytest

import topo
from topo import Fault, InputError, suggest


def test_fault_says_all_five() -> None:
    fault = Fault("scale_up.bandwidth", "900", "a bandwidth needs a unit", "Write 900 GB/s.", "rack.toml")
    assert str(fault) == "rack.toml: scale_up.bandwidth = '900': a bandwidth needs a unit. Write 900 GB/s."
    assert str(Fault("domains", 0, "must be one or more", "Give 1.")) == "domains = 0: must be one or more. Give 1."


def test_error_says_every_fault_on_its_line() -> None:
    faults = [Fault("a", 1, "is odd", "Double it."), Fault("b", 3, "is odd", "Double it.")]
    error = InputError(*faults)
    assert error.faults == tuple(faults)
    assert str(error).splitlines() == [str(fault) for fault in faults]
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(("name", "near"), [("evn", "even"), ("ECMP", "ecmp"), ("ecpm", "ecmp"), ("Single", "single")])
def test_suggests_the_nearest(name: str, near: str) -> None:
    assert suggest(name, ["ecmp", "even", "single"]) == f"Did you mean '{near}'? Known: ecmp, even, single."


def test_suggests_nothing_far() -> None:
    assert suggest("zzzzzz", ["even", "ecmp"]) == "Known: ecmp, even."
    assert suggest("", []) == "Known: ."


def test_is_the_root_of_user_errors() -> None:
    with pytest.raises(topo.InputError):
        topo.load("no-such-design")


def test_a_long_value_is_shown_short_on_one_line() -> None:
    said = str(Fault("placement", np.arange(5000).reshape(2, -1), "must be less", "Correct it."))
    assert said.startswith("placement = array([[ 0, 1, 2")
    assert "\n" not in said
    assert len(str(Fault("ranks", list(range(5000)), "must be less", "Correct it."))) < 250
    assert "4999]" in str(Fault("ranks", list(range(5000)), "must be less", "Correct it."))
