"""Where ranks have no path, is what the message advises true?"""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from collectives import KINDS, MoE
from topo import InputError

from .shapes import racks, star


def refusal(graph: nx.Graph, kind: str, size: object = 1e6, **words: object) -> str:
    with pytest.raises(InputError, match="has no path for") as caught:
        collectives.cost(graph, kind, size, **words)
    return str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "send"])
def test_the_algorithms_named_have_paths_and_the_others_none(kind: str) -> None:
    graph = racks(2, 3, rails=True)
    size = {"all_to_all_v": np.ones((5, 5))}.get(kind, MoE(8, 8, 2, 10) if kind.startswith("moe") else 1e6)
    words = {"root": "1.2"} if "root" in KINDS[kind].takes else {}
    said = refusal(graph, kind, size, algorithm="direct", **words)
    first, more = re.search(r"Take algorithm (\w+): .*?(?:\(so have (.*?)\))?\. No wires", said).groups()
    named = [first, *(more.split(", ") if more else ())]
    seconds = [collectives.cost(graph, kind, size, algorithm=name, **words).seconds for name in named]
    assert seconds == sorted(seconds)
    for name in set(KINDS[kind].algorithms) - set(named):
        with pytest.raises(InputError):
            collectives.cost(graph, kind, size, algorithm=name, **words)


def test_a_schedule_names_others_too() -> None:
    plan = collectives.schedule("sendrecv", racks(2, 3, rails=True), 1e6)
    with pytest.raises(InputError, match="Take algorithm rail_aligned"):
        collectives.cost(racks(2, 3, rails=True), plan)


def cut_off() -> nx.Graph:
    """Two domains joined only by a wire that no class of paths takes."""
    graph = racks(2, 2, rails=True)
    graph.remove_nodes_from(["leaf0", "leaf1"])
    graph.add_node("cpu", kind="cpu")
    for node in ("up0", "up1"):
        graph.add_edge("cpu", node, kind="pcie", bandwidth=1e9, latency=0.0)
    return graph


@pytest.mark.parametrize("algorithm", ["direct", "best"])
def test_where_none_would_the_wires_are_missing(algorithm: str) -> None:
    said = refusal(cut_off(), "all_to_all", algorithm=algorithm)
    assert "No algorithm of all_to_all has paths for all it sends here. No wires join them" in said
    assert "Take algorithm" not in said


def test_ranks_that_could_relay_and_take_no_part() -> None:
    graph = racks(2, 2, rails=True)
    said = refusal(graph, "all_reduce", ranks=["0.0", "1.1"], algorithm="best")
    assert "No algorithm of all_reduce has paths" in said
    assert "let ranks that could relay take part" in said
    assert collectives.cost(graph, "all_reduce", 1e6, ranks=["0.0", "1.1", "1.0"], algorithm="best").seconds > 0


@pytest.mark.parametrize("algorithm", ["direct", "best"])
def test_a_rule_at_fault_is_named(algorithm: str) -> None:
    """A mesh without one link: dimension order has no way round, fewest hops has."""
    mesh = topo.build("torus", dims=(3, 3), wrap=False, bandwidth="1 GB/s", latency="0 s")
    mesh = topo.fail(mesh, links=[("gpu0", "gpu1")])
    said = refusal(mesh, "all_to_all", algorithm=algorithm, routing="dor")
    assert "The wires join them and dor finds no way: take routing ecmp" in said
    assert "No algorithm of all_to_all" in said
    assert collectives.cost(mesh, "all_to_all", 1e6).seconds > 0


def test_a_part_of_another_algorithm_is_refused_by_the_name_asked_for() -> None:
    graph = topo.fail(racks(2, 3, rails=True), links=[("0.1", "leaf1")])
    for kind, name in (("broadcast", "scatter_all_gather"), ("all_reduce", "ring")):
        with pytest.raises(InputError, match=f"algorithm = '{name}': does not apply: a ring"):
            collectives.schedule(kind, graph, 1e6, algorithm=name)
    for name in ("rail_pipelined", "hierarchical", "rail_aligned"):
        with pytest.raises(InputError, match=f"algorithm = '{name}': does not apply: all ranks are in one"):
            collectives.schedule("all_to_all", star(4), 1e6, algorithm=name)
