"""Is a step that cannot be refused by name?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

import serving
import topo
from serving import Layout
from topo import InputError

from .steps import SMALL, plan_of, step


def refused(**given: Any) -> str:
    with pytest.raises(InputError) as caught:
        step(**given)
    (fault,) = caught.value.faults
    return fault.place


@pytest.mark.parametrize("layout", [Layout(73), Layout(72, pp=2), Layout(37, pp=2)], ids=repr)
def test_more_gpus_than_there_are(layout: Layout) -> None:
    assert refused(layout=layout) == "layout"


def test_more_stages_than_layers() -> None:
    assert refused(layout=Layout(1, pp=62)) == "layout.pp"


def test_a_chip_without_numbers() -> None:
    graph = nx.Graph(name="bare")
    graph.add_node("switch", kind="switch", tier="scale-up")
    for i in range(4):
        graph.add_node(f"gpu{i}", kind="gpu", rank=i)
        graph.add_edge(f"gpu{i}", "switch", kind="scale-up", bandwidth=450e9, latency=0.0)
    with pytest.raises(InputError, match="has no numbers in this graph"):
        serving.step(graph, serving.load_model("mixtral-8x7b"), SMALL)


def test_a_graph_in_two_pieces() -> None:
    graph = topo.load("hgx-h100-8", 2)
    graph.remove_nodes_from([node for node, kind in graph.nodes(data="tier") if kind in ("leaf", "spine")])
    with pytest.raises(InputError):
        serving.step(graph, serving.load_model("mixtral-8x7b"), SMALL)


def test_plans_for_something_else() -> None:
    plan = plan_of([0, 0, 1, 1, 2, 2, 3, 3])
    given: dict[str, Any] = {"model": "mixtral-8x7b", "design": "hgx-h100-8", "work": SMALL}
    assert refused(**given, plan=plan, layout=Layout(8)) == "plan"
    assert refused(design="hgx-h100-8", work=SMALL, model="deepseek-v3", plan=plan) == "plan"
    without = replace(plan, slot_expert=np.where(plan.slot_expert == 3, 2, plan.slot_expert))
    assert refused(**given, plan=without) == "plan"


@pytest.mark.parametrize(
    "change",
    [{"slot_rank": np.full((32, 8), 4)}, {"slot_rank": np.full((32, 8), -1)}, {"slot_expert": np.full((32, 8), 8)},
     {"layer_stage": np.ones(32, dtype=np.intp)}, {"slot_rank": np.zeros((32, 7), dtype=np.intp)}],
    ids=["rank too high", "rank negative", "expert too high", "stage too high", "shapes differ"],
)  # fmt: skip
def test_plans_that_point_nowhere(change: dict[str, Any]) -> None:
    plan = replace(plan_of([0, 0, 1, 1, 2, 2, 3, 3]), **change)
    assert refused(model="mixtral-8x7b", design="hgx-h100-8", work=SMALL, plan=plan) == "plan"


@pytest.mark.parametrize("load", [[1.0] * 7, [0.0] * 8, [-1.0] * 8, [float("nan")] * 8])
def test_loads_that_are_none(load: list[float]) -> None:
    given: dict[str, Any] = {"model": "mixtral-8x7b", "design": "hgx-h100-8", "work": SMALL}
    assert refused(**given, expert_load=load) == "expert_load"


def test_an_unknown_profile() -> None:
    with pytest.raises(InputError, match="profile"):
        step(profile="fast")


def test_what_is_no_workload_is_said() -> None:
    with pytest.raises(InputError, match=r"must be a serving\.Workload"):
        serving.step(topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), None)  # type: ignore[arg-type]
