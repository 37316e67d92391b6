"""Are the times of a collective in order on any graph, under any rule, and is what is left out said?"""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from collectives import _bracket, bracket
from topo import Hash, InputError

from .random_graphs import FAMILIES, Dice, traffic
from .shapes import star
from .test_cost import racks

TIE = 1 + 1e-9
RULES: list[Any] = [*(rule for rule in topo.RULES if rule not in ("table", "hash")), Hash(3, 1), Hash(5, 3)]
ALGORITHMS = [(kind, name) for kind, row in collectives.KINDS.items() for name in row.algorithms]


def hurt(graph: nx.Graph, dice: Dice) -> nx.Graph:
    """Make some links slower or faster to cross."""
    for a, b in dice.sample(list(graph.edges), min(dice.choice([0, 1, 3]), graph.number_of_edges())):
        graph.edges[a, b][dice.choice(["bandwidth", "latency"])] *= dice.choice([0.5, 0.75])
    return graph


def torus(dice: Dice) -> nx.Graph:
    """A torus whose directions are hurt one by one."""
    graph = topo.build("torus", dims=dice.choice([(2, 2), (2, 2), (4, 2)]), latency="1 us", bandwidth="50 GB/s")
    return hurt(graph.to_directed(), dice)


def boxes(dice: Dice, domains: int) -> nx.Graph:
    """Boxes whose switches add up and copy."""
    graph = topo.load("hgx-h100-8", domains, {"design.domain_size": 2, "design.gpus_per_host": 2})
    for node in [node for node, kind in graph.nodes(data="kind") if kind == "switch"]:
        graph.nodes[node].update(reduces=True, multicasts=True)
    return hurt(graph, dice)


def gpus(graph: nx.Graph) -> list[str]:
    return [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]


def sizes_of(kind: str, matrix: list[list[float]], dice: Dice) -> Any:
    if kind.startswith("moe"):
        return collectives.MoE(tokens=7, hidden=dice.choice([8, 4096]), top_k=2, experts=2 * len(matrix))
    return matrix if kind == "all_to_all_v" else dice.choice([1e3, 1e6, 3e7])


def in_order(found: collectives.Bracket) -> None:
    assert found.timeline is not None
    bounds = [bound.seconds for bound in (found.any_bound, found.schedule_bound) if bound]
    assert bounds
    assert all(0 <= seconds <= found.cost.seconds * TIE for seconds in bounds)
    assert found.cost.seconds <= found.timeline.seconds * TIE
    for phase in found.phases:
        assert phase.lower is None or phase.lower <= phase.cost * TIE
        assert phase.simulated is not None
        # A phase's time is a difference: it is as exact as the whole.
        assert phase.cost <= phase.simulated * TIE + 1e-12 * found.timeline.seconds


@pytest.mark.parametrize("number", range(len(ALGORITHMS)), ids=lambda i: " ".join(ALGORITHMS[i]))
def test_times_of_every_algorithm_are_in_order(number: int) -> None:
    (kind, algorithm), dice = ALGORITHMS[number], Dice(number)
    fits = 0
    for shape, graph in enumerate((torus(dice), boxes(dice, 1), boxes(dice, 2))):
        n = len(gpus(graph))
        sizes = sizes_of(kind, [[dice.uniform(0, 1e6) for _ in range(n)] for _ in range(n)], dice)
        rule = "ecmp" if algorithm in ("nvls", "sharp") else RULES[(number + 3 * shape) % len(RULES)]
        try:
            found = bracket(
                graph, kind, sizes, algorithm=algorithm, routing=rule, pipelined=dice.choice([None, None, True])
            )
        except InputError:  # an algorithm that is not for these, or a rule
            continue
        in_order(found)
        fits += 1
    assert fits


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_times_are_in_order_on_any_graph(family: str, rule: Any) -> None:
    tried = seed = 0
    while tried < 1:
        dice, seed = Dice(1000 * RULES.index(rule) + seed), seed + 1
        graph, (kind, algorithm) = FAMILIES[family](dice), dice.choice(ALGORITHMS)
        if topo.check(graph):
            continue
        ranks, matrix = traffic(dice, gpus(graph))
        words: Any = {"routing": rule, "algorithm": algorithm} | ({} if kind == "send" else {"ranks": ranks})
        try:
            found = bracket(graph, kind, sizes_of(kind, matrix, dice), **words)
        except InputError:  # ranks that no path joins, or an algorithm that is not for these
            continue
        in_order(found)
        tried += found.cost.seconds > 0


# --- by hand ---------------------------------------------------------------------------------------------------------


def crowded() -> Any:
    """gpu0 sends 3 and 1 GB to gpu2 and gpu1, which three others also send a quarter GB each."""
    matrix = np.zeros((6, 6))
    matrix[0, 2], matrix[0, 1] = 3e9, 1e9
    matrix[3:, 1:3] = 0.25e9
    return matrix


def test_the_gap_is_what_idle_links_cost() -> None:
    found = bracket(star(6), "all_to_all_v", crowded())
    # Out of gpu0 4 GB at 1 GB/s. But for 1 s both its flows have a quarter of gpu1's and gpu2's links: half a GB is
    # sent, and 3.5 are left.
    assert (found.lower, found.cost.seconds, found.simulated) == pytest.approx((4.0, 4.0, 4.5))
    assert found.gap == pytest.approx(1 / 8)
    assert repr(found) == "Bracket(4 s <= 4 s <= 4.5 s, gap 12.5 %: all_to_all_v)"


def test_phases_are_set_side_by_side() -> None:
    phases = (collectives.Phase(crowded(), repeats=2), collectives.Phase(crowded().T))
    plan = collectives.Schedule("mine", "by hand", np.arange(6), 4e9, 1.0, phases)
    found = bracket(star(6), plan)
    # Turned around: gpu0 receives 4 GB; its flows share the links of gpu1 and gpu2 as before.
    assert [(p.lower, p.cost, p.simulated, p.repeats) for p in found.phases] == [
        pytest.approx((4.0, 4.0, 4.5, 2)), pytest.approx((4.0, 4.0, 4.5, 1)),
    ]  # fmt: skip
    assert (found.lower, found.cost.seconds, found.simulated) == pytest.approx((12.0, 12.0, 13.5))
    assert found.left_out == (
        "lower bound (any algorithm): does not say what must reach whom, only how one algorithm does it",
    )
    over = bracket(star(6), plan, pipelined=True)
    # 8 GB out of gpu0 and 4 into it, at the same time; the phases by themselves are what they were.
    assert (over.lower, over.cost.seconds, over.simulated) == pytest.approx((8.0, 8.0, 13.5))
    assert (over.gap, over.phases) == (pytest.approx(0.0, abs=1e-9), found.phases)
    assert "one after the other" in over.convention


# --- what is left out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "value", "says"),
    [
        ("MOST_FLOWS", 29, "simulated: 30 flows, 30 of them in phases that differ"),
        ("MOST_ROWS", 29, "simulated: 30 flows, 30 of them in phases that differ"),
        ("MOST_UNLIKE", 29, "simulated: 30 flows of 1 different sizes"),
        ("MOST_PATHS", 29, "simulated: a phase splits over more than 29 paths"),
        ("MOST_CELLS", 35, "lower bound (any algorithm): 1 phases of 6 ranks, 1 different sizes in one,"),
        ("MOST_RANKS", 5, "lower bound (any algorithm): 6 ranks are more than the 5"),
    ],
)
def test_what_takes_too_long_is_left_out_and_said(
    most: str, value: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bracket, most, value)
    found = bracket(star(6), "all_to_all", 6e9)
    assert found.left_out[0].startswith(says)
    left = found.to_dict()
    assert [left["lower"] is None, left["simulated"] is None] == ["bound" in says, "bound" not in says]
    assert found.gap == (None if "bound" in says else pytest.approx(0.0, abs=1e-9))
    assert json.loads(json.dumps(left, allow_nan=False)) == left
    assert "left out" in repr(found)


def test_flows_are_counted_as_they_are() -> None:
    outer = collectives.Outer(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0]))
    listed = collectives.Flows(np.array([0, 2, 2]), np.array([1, 0, 1]), np.array([1.0, 2.0, 2.0]), 3)
    for traffic_ in (outer, outer.matrix, listed):
        flows, sizes = _bracket._count(collectives.Phase(traffic_))
        assert flows == 3
        assert 2 <= sizes <= 6  # of an Outer what the two vectors can make


def test_queue_pairs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bracket, "MOST_FLOWS", 89)
    assert bracket(star(6), "all_to_all", 6e9, routing=Hash(0, 2)).timeline is not None
    assert bracket(star(6), "all_to_all", 6e9, routing=Hash(0, 3)).timeline is None


def test_an_expert_layers_copies_have_one_bound_of_any_algorithm() -> None:
    layer = collectives.MoE(tokens=16, hidden=1024, top_k=2, experts=16)
    found = [
        bracket(racks(2, 4), "moe_dispatch", layer, algorithm=name) for name in ("direct", "per_gpu", "per_domain")
    ]
    assert len({one.any_bound.seconds for one in found if one.any_bound}) == 1
    assert [one.left_out for one in found] == [()] * 3
    for one in found:
        in_order(one)


def test_best_is_the_best() -> None:
    graph = racks(2, 4)
    assert bracket(graph, "all_reduce", 8e9, algorithm="best").cost.algorithm == (
        collectives.cost(graph, "all_reduce", 8e9, algorithm="best").algorithm
    )


def test_no_program_is_solved_where_a_cut_proves_what_the_routes_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    rack = topo.load("gb200-nvl72")
    held = bracket(rack, "all_to_all", 72e9)
    assert held.any_bound is not None
    assert held.any_bound.kind == "cut"
    monkeypatch.setattr("collectives._proofs.best_prices", None)
    again = bracket(rack, "all_to_all", 72e9)
    assert again.to_dict() == held.to_dict()
