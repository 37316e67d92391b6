"""Are small layers placed as lightly as any placement that keeps to the rules, and proven so?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from placement import Gpus, Rules, place

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def every(gpus: Gpus, n: int, copies: int) -> Iterator[Bools]:
    """All placements, (gpus, experts): of so many copies, each expert once at least, none twice on a GPU."""
    rows = [[c for k in range(min(int(s), n) + 1) for c in combinations(range(n), k)] for s in gpus.slots]
    for seats in product(*rows):
        if sum(map(len, seats)) == copies:
            held = np.array([np.isin(np.arange(n), row) for row in seats])
            if held.any(axis=0).all():
                yield held


def keeps(held: Bools, gpus: Gpus, rules: Rules) -> bool:
    zone = {"gpu": np.arange(len(held)), "host": gpus.host, "domain": gpus.domain}
    places = [set(np.flatnonzero(column).tolist()) for column in held.T]
    return (
        all(g in places[e] for e, g in rules.pins)
        and all(not places[e] & set(where) for e, where in rules.forbid.items())
        and all(len({int(gpus.domain[g]) for e in group for g in places[e]}) == 1 for group in rules.together)
        and (rules.apart is None or all(len({int(zone[rules.apart][g]) for g in where}) > 1 for where in places))
    )


def heaviest(held: Bools, load: Floats, speed: Floats, sharing: str) -> float:
    """Equal parts; or at will, where some experts together are too much for all GPUs that have any (Hall)."""
    if sharing == "equal":
        return float(((held * (load / held.sum(axis=0))).sum(axis=1) / speed).max())
    some = [list(each) for k in range(1, len(load) + 1) for each in combinations(range(len(load)), k)]
    return max(float(load[each].sum() / speed[held[:, each].any(axis=1)].sum()) for each in some)


UNEQUAL = Gpus([2, 1, 3, 2], speed=[1.0, 0.5, 1.5, 1.0], domain=[0, 0, 1, 1], host=[0, 1, 2, 2])
ALIKE = Gpus([2, 2, 2, 0, 2], domain=[0, 0, 1, 1, 1])


@pytest.mark.parametrize("sharing", ["equal", "weighted"])
@pytest.mark.parametrize("gpus", [UNEQUAL, ALIKE], ids=["unequal", "alike"])
@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules(pin={0: 2, 3: [0, 2]}),
        Rules(forbid={0: [0, 1], 2: [2]}),
        Rules(together=[[0, 3]]),
        Rules(pin={1: 4}, together=[[0, 1]], forbid={2: [0]}),
        Rules(apart="gpu"),
        Rules(apart="host", forbid={1: [2]}),
        Rules(apart="domain", pin={2: 1}),
    ],
    ids=lambda rules: "-".join(rules.given) or "none",
)
def test_no_placement_is_lighter_and_the_bound_says_so(
    rules: Rules, gpus: Gpus, sharing: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if gpus is UNEQUAL:
        rules = Rules({e: 3 if g == 4 else g for e, g in rules.pin.items()}, rules.forbid, rules.together, rules.apart)
    for seed in range(3):
        load = np.exp(np.random.default_rng(seed).standard_normal(4))
        able = [held for held in every(gpus, 4, 8) if keeps(held, gpus, rules)]
        found = place(load, gpus, replicas=4, rules=rules, sharing=sharing)
        if not able:
            assert found.status.startswith("infeasible")
            continue
        mean = load.sum() / gpus.speed[gpus.slots > 0].sum()
        best = min(heaviest(held, load, gpus.speed, sharing) for held in able) / mean
        assert found.plan is not None
        held = np.zeros((len(gpus.slots), 4), dtype=bool)
        held[found.plan.slot_rank[0], found.plan.slot_expert[0]] = True
        assert any((held == each).all() for each in able)
        assert found.objective is not None
        assert found.bound is not None
        assert found.bound <= best * (1 + 1e-9)
        assert found.objective <= best * (1 + (6e-4 if sharing == "equal" else 0.03))
        assert sharing == "weighted" or best * (1 - 6e-4) <= found.bound
    assert capfd.readouterr() == ("", "")


def test_a_little_more_may_be_settled_where_that_is_asked_for() -> None:
    """Eight experts in unequal slots of six GPUs: what is found is proven within the gap."""
    load = np.exp(np.random.default_rng(14).standard_normal(8))
    quick, exact = (place(load, Gpus([2, 3, 4, 1, 2, 3]), replicas=7, exact=how) for how in (False, True))
    assert exact.gap is not None
    assert quick.objective is not None
    assert exact.objective is not None
    assert exact.gap <= 5e-4
    assert exact.objective <= quick.objective


@pytest.mark.parametrize("sharing", ["equal", "weighted"])
def test_groups_kept_together_are_where_that_is_lightest(sharing: str) -> None:
    """All homes of the groups of small layers are tried: all placements beside ours."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        gpus = Gpus([2, 1, 2, 2], speed=rng.choice([0.5, 1.0], 4), domain=[0, 0, 1, 1])
        load, rules = np.exp(rng.standard_normal(4)), Rules(together=[[0, 1], [2]])
        found = place(load, gpus, replicas=2, rules=rules, sharing=sharing)
        mean = load.sum() / gpus.speed.sum()
        best = min(heaviest(held, load, gpus.speed, sharing) for held in every(gpus, 4, 6) if keeps(held, gpus, rules))
        assert found.objective is not None
        assert found.bound is not None
        assert found.bound <= best / mean * (1 + 1e-6)
        assert best / mean * (1 - 1e-9) <= found.objective <= best / mean * 1.01
