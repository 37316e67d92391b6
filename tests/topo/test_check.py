"""Is everything wrong in a graph found, at once?"""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

import topo
from topo import Fabric, InputError, check


def pair(**edge: object) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="gpu")
    graph.add_edge("a", "b", **({"kind": "scale-up", "bandwidth": 1e9, "latency": 0.0} | edge))
    return graph


def places(graph: object) -> set[str]:
    faults = check(graph)
    assert all(fault.rule and fault.cure for fault in faults)
    return {fault.place for fault in faults}


def test_a_right_graph_has_no_faults() -> None:
    assert check(pair()) == check(pair().to_directed()) == []
    assert check(topo.load("gb200-nvl72", 2)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "nvlink"),
        ("kind", None),
        ("bandwidth", 0.0),
        ("bandwidth", -1.0),
        ("bandwidth", math.nan),
        ("bandwidth", math.inf),
        ("bandwidth", "900 GB/s"),
        ("bandwidth", None),
        ("bandwidth", True),
        ("latency", -1e-9),
        ("latency", math.nan),
        ("latency", "1 us"),
        ("latency", None),
        ("lanes", 0),
        ("lanes", 1.5),
        ("lanes", True),
        ("lanes", "2"),
    ],
)
def test_edge(key: str, value: object) -> None:
    assert places(pair(**{key: value})) == {f"edge 'a' - 'b' {key}"}
    with pytest.raises(InputError):
        Fabric.from_graph(pair(**{key: value}))


@pytest.mark.parametrize("key", ["kind", "bandwidth", "latency"])
def test_edge_without(key: str) -> None:
    graph = pair()
    del graph.edges["a", "b"][key]
    assert places(graph) == {f"edge 'a' - 'b' {key}"}


def test_numbers_may_be_numpy() -> None:
    assert check(pair(bandwidth=np.float64(1e9), latency=np.float32(0.0), lanes=np.int64(2))) == []


def test_nodes() -> None:
    graph = pair()
    graph.add_node(3, kind="gpu")
    graph.add_node("c", kind="gpuu")
    graph.add_node("d")
    found = {fault.place: fault for fault in check(graph)}
    assert set(found) == {"node 3", "node 'c' kind", "node 'd' kind"}
    assert "Did you mean 'gpu'" in found["node 'c' kind"].cure


@pytest.mark.parametrize("rank", ["first", math.nan, 1.5, True, [1]], ids=repr)
def test_rank_must_be_a_whole_number(rank: object) -> None:
    graph = pair()
    graph.nodes["a"]["rank"] = rank
    graph.nodes["b"]["rank"] = 0
    assert places(graph) == {"node 'a' rank"}


def test_rank_given_twice() -> None:
    graph = pair()
    nx.set_node_attributes(graph, 0, "rank")
    assert places(graph) == {"node 'b' rank"}


def test_self_loop() -> None:
    graph = pair()
    graph.add_edge("a", "a", kind="scale-up", bandwidth=1e9, latency=0.0)
    assert places(graph) == {"edge 'a' - 'a'"}


def test_all_at_once() -> None:
    graph = pair(bandwidth=-1.0, latency=None, lanes=0, kind="x")
    graph.add_node("c", kind="y")
    graph.graph["schema"] = 2
    assert len(check(graph)) == 6
    with pytest.raises(InputError) as caught:
        Fabric.from_graph(graph)
    assert list(caught.value.faults) == check(graph)


def test_many_faults_are_cut_with_their_number() -> None:
    graph = topo.load("gb200-nvl72")
    nx.set_edge_attributes(graph, -1.0, "bandwidth")
    assert len(check(graph)) == 72
    with pytest.raises(InputError, match="has 52 more faults") as caught:
        topo.route(graph)
    assert len(caught.value.faults) == 21


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_multigraph_is_refused_with_the_cure(kind: type) -> None:
    (fault,) = check(kind(pair()))
    assert "Merge parallel cables" in fault.cure


@pytest.mark.parametrize("thing", [None, "gb200-nvl72", 5, {}, [("a", "b")]], ids=repr)
def test_no_graph(thing: object) -> None:
    (fault,) = check(thing)
    assert fault.rule == "is not a NetworkX graph"
    with pytest.raises(InputError):
        topo.route(thing)


def test_graph_without_end_points() -> None:
    graph = nx.Graph()
    graph.add_node("s", kind="switch")
    for empty in (graph, nx.Graph()):
        assert [fault.rule for fault in check(empty)] == ["has no node of kind gpu or host"]


@pytest.mark.parametrize("directed", [False, True])
def test_disconnected(directed: bool) -> None:
    graph = nx.union(pair(), nx.relabel_nodes(pair(), {"a": "c", "b": "d"}))
    (fault,) = check(graph.to_directed() if directed else graph)
    assert fault.rule == "is disconnected: 2 parts with 2, 2 ranks"
    assert fault.cure.startswith("Join them, or take the others out (topo.fail)")
    assert "from 'a' to 'c'" in fault.cure


def test_a_loose_switch_disconnects_no_rank() -> None:
    graph = pair()
    graph.add_node("s", kind="switch")
    assert check(graph) == []


def test_domain_is_one_component_of_scale_up_edges() -> None:
    graph = pair()
    graph.nodes["a"]["domain"], graph.nodes["b"]["domain"] = 0, 1
    (fault,) = check(graph)
    assert "is joined by scale-up edges" in fault.rule
    apart = pair(kind="scale-out")
    nx.set_node_attributes(apart, 0, "domain")
    (fault,) = check(apart)
    assert "no scale-up edge joins" in fault.rule


def test_check_changes_nothing() -> None:
    graph = topo.load("gb200-nvl72", 2)
    before = nx.node_link_data(graph, edges="edges")
    check(graph)
    assert nx.node_link_data(graph, edges="edges") == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("planes", 0),
        ("planes", 1.5),
        ("planes", True),
        ("planes", "4"),
        ("plane_lanes", [5, 4, 4]),
        ("plane_lanes", [5, 4, 4, 0]),
        ("plane_lanes", [5, 4, 4, -5]),
        ("plane_lanes", [5, 4, 4, 5.0]),
        ("plane_lanes", 18),
        ("radix", 0),
        ("radix", "64"),
        ("radix", None),
    ],
)
def test_planes_and_radix(key: str, value: object) -> None:
    graph = topo.load("hgx-h100-8")
    graph.nodes["d0/switch"][key] = value
    assert places(graph) == {f"node 'd0/switch' {key}"}
    with pytest.raises(InputError):
        topo.measure(graph)


def test_one_wrong_value_among_equal_ones_is_found() -> None:
    graph = topo.load("hgx-h100-8", 2)
    graph.nodes["d1/gpu3"]["forwards"] = 0  # equal to False, which the others have
    graph.edges["d0/gpu1", "d0/switch"]["lanes"] = True
    graph.edges["d1/gpu1", "d1/switch"]["lanes"] = 18.0
    assert [fault.place for fault in check(graph)] == [
        "node 'd1/gpu3' forwards",
        "edge 'd0/gpu1' - 'd0/switch' lanes",
        "edge 'd1/gpu1' - 'd1/switch' lanes",
    ]


def test_faults_follow_the_nodes_and_edges_of_the_graph() -> None:
    graph = topo.load("hgx-h100-8")
    for gpu in ("d0/gpu5", "d0/gpu2"):
        graph.nodes[gpu].update(kind="gpuu", tier="top", rank="first")
        graph.edges[gpu, "d0/switch"].update(latency=None, bandwidth=0.0)
    assert [fault.place for fault in check(graph)] == [
        *(f"node 'd0/gpu{i}' {key}" for i in (2, 5) for key in ("kind", "tier", "rank")),
        *(f"edge 'd0/gpu{i}' - 'd0/switch' {key}" for i in (2, 5) for key in ("bandwidth", "latency")),
    ]


def test_an_unhashable_value_is_told_not_raised() -> None:
    graph = pair()
    graph.nodes["a"].update(host=[1], tier=["leaf"])
    assert places(graph) == {"node 'a' host", "node 'a' tier"}
