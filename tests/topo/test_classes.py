"""Which links may a flow use? NICs, CPUs and GPUs pass only what they may; twins share a node."""

from __future__ import annotations

import networkx as nx
import pytest

import topo
from topo import PATH_CLASSES
from topo._classes import class_graph

KINDS = {"g": "gpu", "s": "switch", "n": "nic", "c": "cpu"}
EDGES = {"=": "scale-up", "-": "pcie", "~": "scale-out"}


def drawn(*chains: str, forwards: str = "") -> nx.Graph:
    """Build a graph from chains as "g0 - s0 - n0 ~ s1": the first letter is the node's kind."""
    graph = nx.Graph()
    for chain in chains:
        words = chain.split()
        for node in words[::2]:
            graph.add_node(node, kind=KINDS[node[0]], **({"forwards": True} if node in forwards.split() else {}))
        for a, edge, b in zip(words[::2], words[1::2], words[2::2], strict=False):
            graph.add_edge(a, b, kind=EDGES[edge], bandwidth=1e9, latency=0.0)
    return graph


def pair(graph: nx.Graph, a: str = "g0", b: str = "g1") -> tuple[str | None, int]:
    assert topo.check(graph) == []
    routes = topo.route(graph)
    ranks = routes.fabric.rank_labels
    i, j = ranks.index(a), ranks.index(b)
    number = int(routes.pair_class[i, j])
    return (PATH_CLASSES[number] if number >= 0 else None), int(topo.hop_counts(routes)[i, j])


@pytest.mark.parametrize(
    ("chains", "kind", "hops"),
    [
        (["g0 = g1"], "scale-up", 1),
        (["g0 = s0 = g1"], "scale-up", 2),
        (["g0 - s0 - g1"], "pcie", 2),
        (["g0 - c0 - c1 - g1"], "pcie", 3),
        (["g0 - s0 - c0 - s1 - g1"], "pcie", 4),
        (["g0 ~ s0 ~ g1"], "scale-out", 2),
        (["g0 - n0 ~ s0 ~ n1 - g1"], "scale-out", 4),
        (["g0 - n0 ~ n1 - g1"], "scale-out", 3),
        (["g0 - s1 - n0 ~ s0 ~ g1"], "scale-out", 4),
        (["g0 - c0 - s1 - n0 ~ s0 ~ n1 - c1 - g1"], "scale-out", 7),
        # the first class in which a path exists, however long, wins
        (["g0 = s0 = s1 = g1", "g0 - g1"], "scale-up", 3),
        (["g0 - c0 - s1 - g1", "g0 ~ s0 ~ g1"], "pcie", 3),
        # a NIC passes neither pcie to pcie nor fabric to fabric
        (["g0 - n0 - g1"], None, -1),
        (["g0 - n0 - s0 - g1", "g0 ~ s9 ~ g1"], "scale-out", 2),
        (["g0 ~ n0 ~ g1"], None, -1),
        (["g0 ~ s0 ~ n0 ~ s1 ~ g1"], None, -1),
        # nor does a flow come down in a third host and go up again
        (["g0 - n0 ~ n1 - s0 - n2 ~ n3 - g1"], None, -1),
        # only a NIC stands between host and fabric
        (["g0 - s0 ~ s1 ~ g1"], None, -1),
        (["g0 - c0 ~ s1 ~ g1"], None, -1),
        # a CPU passes pcie only
        (["g0 = c0 = g1"], None, -1),
        (["g0 ~ c0 ~ g1"], None, -1),
        (["g0 ~ s0 ~ c0 ~ s1 ~ g1"], None, -1),
        # a GPU does not relay
        (["g0 = g2 = g1"], None, -1),
        (["g0 ~ s0 ~ g2 ~ s1 ~ g1"], None, -1),
        (["g0 - g2 - g1"], None, -1),
        (["g0 = g2 ~ s0 ~ g1"], None, -1),
        (["g0 ~ s0 ~ g2 = g1"], None, -1),
    ],
    ids=str,
)
def test_class_and_hops(chains: list[str], kind: str | None, hops: int) -> None:
    graph = drawn(*chains)
    assert pair(graph) == (kind, hops)
    assert pair(graph, "g1", "g0") == (kind, hops)


def test_a_gpu_that_forwards_relays() -> None:
    assert pair(drawn("g0 = g2 = g3 = g1", forwards="g2 g3")) == ("scale-up", 3)
    assert pair(drawn("g0 = g2 = g3 = g1", forwards="g2")) == (None, -1)
    assert pair(drawn("g0 ~ g2 ~ g1", forwards="g2")) == ("scale-out", 2)


def test_a_switch_that_does_not_forward() -> None:
    graph = drawn("g0 = s0 = g1", "g0 ~ s1 ~ g1")
    assert pair(graph) == ("scale-up", 2)
    graph.nodes["s0"]["forwards"] = False
    assert pair(graph) == ("scale-out", 2)


def test_one_host_falls_through_class_by_class() -> None:
    """g0 and g1 share NVLink, g2 is reached over pcie, g3 of another host over NICs."""
    graph = drawn("g0 = g1", "g0 - s0 - n0 ~ s9 ~ n1 - s1 - g3", "g1 - s0", "g2 - s0")
    assert [pair(graph, "g0", other) for other in ("g1", "g2", "g3")] == [
        ("scale-up", 1),
        ("pcie", 2),
        ("scale-out", 6),
    ]
    assert pair(graph, "g2", "g1") == ("pcie", 2)


def test_direction_counts_in_a_digraph() -> None:
    graph = drawn("g0 = s0 = g1", "g0 ~ s1 ~ g1").to_directed()
    graph.remove_edge("s0", "g0")
    assert pair(graph) == ("scale-up", 2)
    assert pair(graph, "g1", "g0") == ("scale-out", 2)


# --- twins -----------------------------------------------------------------------------------------------------------


def groups(graph: nx.Graph, kind: str = "scale-up") -> tuple[int, int]:
    folded = class_graph(topo.Fabric.from_graph(graph), kind)
    assert sorted(set(folded.source_group.tolist())) == list(range(folded.n_sources))
    assert sorted(set(folded.target_group.tolist())) == list(range(folded.n_targets))
    return folded.n_sources, folded.n_targets


def test_equal_gpus_of_a_rack_are_one_group() -> None:
    assert groups(topo.load("gb200-nvl72")) == (1, 1)
    assert groups(topo.load("gb200-nvl72", planes=True)) == (1, 1)
    assert groups(topo.load("gb200-nvl72", 3)) == (3, 3)


def test_gpus_of_a_leaf_are_one_group() -> None:
    assert groups(topo.load("gb200-nvl72", 2), "scale-out") == (5, 5)


@pytest.mark.parametrize("key", ["bandwidth", "latency"])
def test_an_unequal_link_stands_alone(key: str) -> None:
    graph = topo.load("gb200-nvl72")
    graph.edges["d0/gpu7", "d0/switch"][key] *= 0.5
    assert groups(graph) == (2, 2)
    one_way = topo.load("gb200-nvl72").to_directed()
    one_way.edges["d0/gpu7", "d0/switch"][key] *= 0.5
    assert groups(one_way) == (2, 1)


def test_gpus_wired_to_each_other_stay_alone() -> None:
    assert groups(topo.load("mi300x-8")) == (8, 8)
