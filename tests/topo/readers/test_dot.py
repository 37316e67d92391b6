"""Is a graph that was written for Graphviz read back, and what of other DOT files?"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

import topo
from collectives import cost
from topo import InputError, build, check, write
from topo.readers._dot import DOT
from topo.readers._reading import Source

from .sim_files import graph_of, survives

LINE = 'graph "x" {\n  "a" [kind="gpu"];\n  "b" [kind="gpu"];\n' \
    '  "a" -- "b" [kind="scale-up", bandwidth="1e9", latency="1e-6"];\n}\n'  # fmt: skip


def of(text: str) -> nx.Graph[str]:
    found = Source("f", text)
    assert DOT.recognises(found)
    return graph_of(DOT.read(found))


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        DOT.read(Source("f", text))
    return [(fault.place, fault.rule) for fault in caught.value.faults]


def odd() -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.DiGraph(schema=1, name='a "quoted" \\ name', assumptions=["é", 'with "quotes"'])
    graph.add_node("node {1} -- x;\n", kind="gpu", domain=0, coordinates=[1, 2], twins=("a", 1.5))
    graph.add_node("back\\slash\\", kind="gpu", domain=0, spare=None, forwards=True)
    for ends in (("node {1} -- x;\n", "back\\slash\\"), ("back\\slash\\", "node {1} -- x;\n")):
        graph.add_edge(*ends, kind="scale-up", bandwidth=1 / 3, latency=1e-7, lanes=2)
    return graph


@pytest.mark.parametrize(
    "graph",
    [
        build("switched", n=8, planes=4), build("torus", dims=(4, 4)), build("fat_tree", k=4),
        build("rail_optimised", domains=4, domain_size=8), topo.load("gb200-nvl72", domains=2), odd(),
    ],
    ids=["switch", "torus", "tree", "rails", "racks", "odd"],
)  # fmt: skip
def test_what_this_project_writes_comes_back_exactly(tmp_path: Path, graph: nx.Graph[str]) -> None:
    back = of(write(graph, tmp_path / "graph.dot").read_text(encoding="utf-8"))
    assert back.graph == graph.graph
    assert list(back.nodes(data=True)) == list(graph.nodes(data=True))
    assert list(back.edges(data=True)) == list(graph.edges(data=True))
    assert cost(back, "all_to_all", 1e6).seconds == cost(graph, "all_to_all", 1e6).seconds


def test_a_file_by_hand_with_defaults_units_and_subgraphs() -> None:
    text = """
    // two servers and a switch
    strict graph {
      rankdir = LR
      node [kind=gpu shape=box]
      edge [kind="scale-out", bandwidth="400 Gb/s"; latency="1.5 us"]
      subgraph cluster_0 { a; b:north }  /* ports are for drawing */
      { node [kind=switch] s }
      s -- {a b c}
      a -- c -- b [bandwidth="800 Gb" + "/s"]
    }"""
    reading = DOT.read(Source("f", text))
    graph = graph_of(reading)
    assert check(graph) == []
    assert dict(graph.nodes(data="kind")) == {"a": "gpu", "b": "gpu", "s": "switch", "c": "gpu"}
    assert graph.edges["s", "c"] == {"kind": "scale-out", "bandwidth": 50e9, "latency": pytest.approx(1.5e-6)}
    assert graph.edges["c", "b"]["bandwidth"] == 100e9
    assert graph.number_of_edges() == 5
    assert reading.notes


def test_what_is_not_stated_is_asked_for() -> None:
    found = faults("digraph {\n a -> b\n}")
    assert found == [
        ("line 2 node a kind", "is not stated"), ("line 2 node b kind", "is not stated"),
        ("line 2 edge a b kind", "is not stated"), ("line 2 edge a b bandwidth", "is not stated"),
        ("line 2 edge a b latency", "is not stated"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "rule"),
    [
        (LINE.replace("--", "->"), "line 4", "must be -> in a digraph and -- in a graph"),
        (LINE.replace("1e9", "9 parsecs"), "line 4 edge a b bandwidth", "unit 'parsecs' is unknown"),
        (LINE.replace("}", '"b" -- "a" [kind="scale-up", bandwidth=1, latency=0]}'), "line 5", "stands there twice"),
        (LINE.replace("}", ""), "line 6", "stands where a name must"),
        (LINE.replace('1e-6"', "1e-6"), "line 4", "is an open quotation"),
        (LINE.replace('"a" --', "<b>a</b> --"), "line 4", "is HTML text, which is not read"),
        (LINE.replace('"a" --', "@ --"), "line 4", "is no DOT"),
        (LINE + "graph {}", "line 6", "stands where 'end' must"),
        ("graph {" + "{" * 60 + "}" * 61, "line 1", "is within more than 50 pairs of braces"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, place: str, rule: str) -> None:
    assert (place, rule) in faults(text)


def test_damaged_files_never_break_it() -> None:
    survives(DOT, LINE, check)
