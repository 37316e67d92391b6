"""Does a collective have what other jobs leave of the links, under any rule?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collectives
import topo
from collectives import bracket, hash_times, simulate
from topo import InputError

from .random_graphs import FAMILIES, Dice
from .shapes import star
from .test_bracket import RULES, gpus, in_order


def rates(n: int, flows: dict[tuple[int, int], float]) -> Any:
    matrix = np.zeros((n, n))
    for pair, rate in flows.items():
        matrix[pair] = rate
    return matrix


@pytest.mark.parametrize(
    ("flow", "seconds"),
    [((0, 2), 2.0), ((2, 1), 2.0), ((1, 0), 1.0), ((2, 0), 1.0), ((0, 1), 2.0)],
    ids=["its sender's link", "its receiver's", "the way back", "neither", "both"],
)
def test_half_a_link_takes_twice_as_long(flow: tuple[int, int], seconds: float) -> None:
    other, sends = rates(3, {(0, 1): 0.5e9}), rates(3, {flow: 1e9})
    found = simulate(star(3), "all_to_all_v", sends, background=other)
    assert found.seconds == pytest.approx(seconds, rel=1e-12)
    whole = bracket(star(3), "all_to_all_v", sends, background=other)
    assert (whole.lower, whole.cost.seconds, whole.simulated) == pytest.approx((seconds,) * 3)
    assert sum("other jobs send 500 MB/s in all" in line for line in found.assumptions) == 1


def test_what_is_left_is_shared_fairly() -> None:
    # 0.25 GB/s into gpu0 is taken: three flows of a quarter each, then two of 0.375, then one of 0.75.
    found = simulate(star(5), "all_to_all_v", rates(5, {(1, 0): 1e9, (2, 0): 2e9, (3, 0): 3e9}),
                     background=rates(5, {(4, 0): 0.25e9}))  # fmt: skip
    assert found.flow_ends == pytest.approx([4.0, 4 + 1 / 0.375, 4 + 1 / 0.375 + 1 / 0.75], rel=1e-12)
    assert found.loads.max() == pytest.approx(6e9)  # its own bytes alone


def test_a_split_background_takes_a_part_of_every_way() -> None:
    """50 GB/s NICs, two spines: 20 GB/s from leaf to leaf are 10 on each way up, of 50."""
    graph = topo.build("leaf_spine", leaves=2, spines=2, hosts=2, bandwidth="50 GB/s", latency="0 s")
    # gpu1's 2 GB to gpu3: 50 GB/s of its own NIC, 80 of the two ways up.
    alone = simulate(graph, "all_to_all_v", rates(4, {(1, 3): 2e9}), background=rates(4, {(0, 2): 20e9}))
    assert alone.seconds == pytest.approx(0.04)
    both = simulate(graph, "all_to_all_v", rates(4, {(0, 2): 2e9, (1, 3): 2e9}), background=rates(4, {(0, 3): 20e9}))
    # Out of gpu0 30 GB/s are left, into gpu3 30: both flows are bound there, and 60 of 80 go up.
    assert both.seconds == pytest.approx(2 / 30)


def test_a_hashed_background_meets_a_flow_for_half_of_the_seeds() -> None:
    graph = topo.build("leaf_spine", leaves=2, spines=2, hosts=2, bandwidth="50 GB/s", latency="0 s")
    found = hash_times(graph, "all_to_all_v", rates(4, {(1, 3): 1e9}), seeds=200, background=rates(4, {(0, 2): 25e9}))
    assert set(np.round(found.seconds, 12)) == {0.02, 0.04}  # alone on its cable, or with what 25 GB/s leave of 50
    assert abs((found.seconds > 0.03).mean() - 0.5) < 5 * np.sqrt(0.25 / 200)
    assert found.ideal == pytest.approx(0.02)  # split evenly: 12.5 GB/s on each of two ways


@pytest.mark.parametrize("family", FAMILIES)
def test_times_stay_in_order_and_none_gets_shorter(family: str) -> None:
    tried = seed = 0
    while tried < 2:
        dice, seed = Dice(seed), seed + 1
        graph = FAMILIES[family](dice)
        if topo.check(graph) or len(gpus(graph)) < 3:
            continue
        n = len(gpus(graph))
        other = rates(n, {tuple(dice.sample(range(n), 2)): dice.choice([1e8, 4e8]) for _ in range(2)})
        rule = RULES[seed % len(RULES)]
        try:
            alone = bracket(graph, "all_to_all", 1e6, routing=rule)
            found = bracket(graph, "all_to_all", 1e6, routing=rule, background=other)
        except InputError:  # pairs that no path joins, a full link
            continue
        in_order(found)
        assert found.lower >= alone.lower * (1 - 1e-9)
        tried += found.cost.seconds > 0


@pytest.mark.parametrize(
    ("background", "says"),
    [
        (np.zeros((2, 2)), r"must be a matrix of shape \(3, 3\)"),
        ([[0, 1], [0]], r"must be a matrix of shape \(3, 3\)"),
        (rates(3, {(0, 1): -1.0}), "zero or more"),
        (rates(3, {(0, 1): np.inf}), "zero or more"),
        (rates(3, {(0, 1): 0.6e9, (2, 1): 0.6e9}), "fills 1 links, the fullest switch -> gpu1: 1.2 GB/s over 1 GB/s"),
        (rates(3, {(0, 1): 1e9}), "fills 2 links"),
    ],
)
def test_bad_backgrounds_are_refused(background: Any, says: str) -> None:
    for verb in (simulate, bracket, hash_times):
        with pytest.raises(InputError, match=says):
            verb(star(3), "all_to_all", 3e9, background=background)


def test_of_a_rank_to_itself_nothing_crosses_a_wire() -> None:
    assert simulate(star(3), "all_to_all", 3e9, background=np.eye(3) * 1e15).seconds == pytest.approx(2.0)
    assert collectives.cost(star(3), "all_to_all", 3e9).seconds == pytest.approx(2.0)
