"""Is a schedule made for another topology refused?"""

from __future__ import annotations

import pytest

import collectives
import topo
from topo import InputError

STILL = {"bandwidth": 450e9, "latency": 0.0}


@pytest.mark.parametrize("verb", [collectives.cost, collectives.simulate, collectives.lower_bound])
@pytest.mark.parametrize("there", ["switch that does not reduce", "no switch"])
def test_switches_that_do_not_reduce_here(there: str, verb: object) -> None:
    able = topo.load("hgx-h100-8")
    plan = collectives.schedule("all_reduce", able, 1e9, algorithm="nvls")
    other = topo.build("full_mesh", n=8, **STILL) if there == "no switch" else topo.build("switched", n=8, **STILL)
    with pytest.raises(InputError, match="that do not in this topology"):
        verb(other, plan)  # type: ignore[operator]
    assert verb(able, plan).seconds > 0  # type: ignore[operator]
