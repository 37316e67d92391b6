"""Are marks read as they are stated, and wrong ones named all at once?"""

from __future__ import annotations

import networkx as nx
import pytest

import topo
from topo import Fabric, InputError


def pair() -> nx.Graph:
    graph = nx.Graph()
    graph.add_node("a", kind="host", coordinates=[0, 1], group="east", guid="0x2C9", lids={"2": 7, "1": 5})
    graph.add_node("b", kind="host", coordinates=[1, 1], group="west")
    graph.add_edge("a", "b", kind="scale-out", bandwidth=1e9, latency=0.0, lanes=2, axis=0, ports=[[1, 3], [2, 4]])
    return graph


def test_both_directions_of_an_edge_and_one_of_a_digraph() -> None:
    marks = Fabric.from_graph(pair()).marks
    assert marks.coordinates == {0: (0, 1), 1: (1, 1)}
    assert marks.group == {0: 0, 1: 1}
    assert marks.guid == {0: "0x00000000000002c9"}
    assert list(marks.lids[0].items()) == [(1, 5), (2, 7)]
    assert marks.ports == {0: [(1, 3), (2, 4)], 1: [(3, 1), (4, 2)]}
    assert marks.axis == {0: 0, 1: 0}
    one_way = pair().to_directed()
    one_way.edges["b", "a"]["ports"] = [[3, 1], [4, 2]]
    assert Fabric.from_graph(one_way).marks.ports == marks.ports


def test_all_wrong_marks_at_once() -> None:
    graph = pair()
    graph.nodes["a"].update(guid="xyz", lids=[3], group=[1])
    graph.edges["a", "b"].update(ports=[[1, 1]], axis=0.5, lane_bandwidths=[1e9, -1e9])
    with pytest.raises(InputError) as caught:
        topo.route(graph)
    assert {fault.place for fault in caught.value.faults} == {
        "node 'a' guid", "node 'a' lids", "node 'a' group",
        "edge ('a', 'b') ports", "edge ('a', 'b') axis", "edge ('a', 'b') lane_bandwidths",
    }  # fmt: skip


def test_the_shape_that_was_built() -> None:
    assert Fabric.from_graph(topo.build("slim_fly", q=3)).marks.shape == "slim_fly"
    assert Fabric.from_graph(pair()).marks.shape == ""
