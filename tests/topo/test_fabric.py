"""Is the array view the graph, in any order, and are groups shared out fairly?"""

from __future__ import annotations

import dataclasses
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import EDGE_KINDS, NODE_KINDS, Fabric, InputError


def domains(*sizes: int) -> nx.Graph:
    """Domains of any sizes, one switch each, all on one leaf."""
    graph = nx.Graph()
    graph.add_node("leaf", kind="switch", tier="leaf")
    for d, size in enumerate(sizes):
        graph.add_node(f"up{d}", kind="switch", tier="scale-up")
        for i in range(size):
            graph.add_node(f"{d}.{i}", kind="gpu")
            graph.add_edge(f"{d}.{i}", f"up{d}", kind="scale-up", bandwidth=9e9, latency=1e-6)
            graph.add_edge(f"{d}.{i}", "leaf", kind="scale-out", bandwidth=1e9, latency=2e-6)
    return graph


def shares(graph: nx.Graph, n: int) -> list[int]:
    fabric = Fabric.from_graph(graph)
    return np.bincount(fabric.rank_domain[fabric.group(n)], minlength=len(fabric.domain_sizes)).tolist()


@pytest.mark.parametrize(
    ("graph", "n", "wanted"),
    [
        (topo.load("gb200-nvl72", 2), 128, [64, 64]),
        (domains(36, 72), 100, [36, 64]),
        (domains(72, 36), 100, [64, 36]),
        (domains(36, 72), 72, [0, 72]),
        (domains(36, 72), 73, [36, 37]),
        (domains(36, 72), 108, [36, 72]),
        (domains(4, 4, 4), 8, [4, 4, 0]),
        (domains(4, 4, 4), 9, [3, 3, 3]),
        (domains(4, 4, 4), 4, [4, 0, 0]),
        (domains(10, 20, 72), 80, [0, 20, 60]),
        (domains(8, 8), 1, [1, 0]),
        (domains(2, 3, 9), 14, [2, 3, 9]),
    ],
    ids=str,
)
def test_group_shares(graph: nx.Graph, n: int, wanted: list[int]) -> None:
    assert shares(graph, n) == wanted


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), data=st.data())
def test_groups_take_the_fewest_domains_as_equally_as_they_can(sizes: list[int], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, sum(sizes)))
    taken = [(share, size) for share, size in zip(shares(domains(*sizes), n), sizes, strict=True) if share]
    assert sum(share for share, _ in taken) == n
    fewest = next(k for k in range(1, len(sizes) + 1) if sum(sorted(sizes)[-k:]) >= n)
    assert len(taken) == fewest
    most = max(share for share, _ in taken)
    assert all(share == size or share >= most - 1 for share, size in taken)


def test_group_of_free_ranks() -> None:
    fabric = Fabric.from_graph(domains(4, 4))
    free = np.array([False, True, True, False, True, True, True, True])
    assert fabric.group(5, free).tolist() == [1, 2, 4, 5, 6]
    with pytest.raises(InputError, match="from 1 to 6"):
        fabric.group(7, free)


@pytest.mark.parametrize("n", [0, -1, 9, 2.0, True, "2", None], ids=repr)
def test_group_must_fit(n: object) -> None:
    with pytest.raises(InputError) as caught:
        Fabric.from_graph(domains(4, 4)).group(n)
    assert caught.value.faults[0].place == "ranks"


def test_rank_numbers() -> None:
    fabric = Fabric.from_graph(domains(2, 2))
    assert fabric.rank_numbers(None).tolist() == [0, 1, 2, 3]
    assert fabric.rank_numbers(np.int64(3)).tolist() == fabric.rank_numbers(3).tolist()
    assert fabric.rank_numbers(["1.1", "0.0"]).tolist() == [3, 0]
    assert fabric.rank_numbers(np.array([2, 1])).tolist() == [2, 1]
    with pytest.raises(InputError, match=r"Did you mean '1.1'|Known: 0.0"):
        fabric.rank_numbers(["1.11"])


@pytest.mark.parametrize("directed", [False, True])
def test_arrays_are_the_graph(directed: bool) -> None:
    graph = topo.load("hgx-h100-8", 2)
    graph = graph.to_directed() if directed else graph
    if directed:
        graph.edges["d0/gpu0", "leaf0"]["bandwidth"] = 1e9
    fabric = Fabric.from_graph(graph)
    assert fabric.labels == tuple(graph)
    assert len(fabric.source) == (1 if directed else 2) * graph.number_of_edges()
    seen = set()
    for i, (a, b) in enumerate(zip(fabric.source, fabric.target, strict=True)):
        tail, head = fabric.labels[a], fabric.labels[b]
        seen.add((tail, head))
        data = graph.edges[tail, head]
        assert fabric.link_label(i) == f"{tail} -> {head}"
        assert (fabric.bandwidth[i], fabric.latency[i], fabric.lanes[i]) == (
            data["bandwidth"],
            data["latency"],
            data["lanes"],
        )
        assert EDGE_KINDS[fabric.link_kind[i]] == data["kind"]
    assert len(seen) == len(fabric.source)
    for i, label in enumerate(fabric.labels):
        assert NODE_KINDS[fabric.node_kind[i]] == graph.nodes[label]["kind"]
        assert fabric.forwards[i] == (graph.nodes[label]["kind"] == "switch")
    assert fabric.rank_labels == [f"d{d}/gpu{i}" for d in range(2) for i in range(8)]
    assert fabric.domain_sizes.tolist() == [8, 8]
    assert set(fabric.chip) == {"H100-80GB"} & set(fabric.chips)


def test_a_fabric_cannot_be_changed() -> None:
    graph = domains(2, 2)
    fabric = Fabric.from_graph(graph)
    for field in dataclasses.fields(fabric):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(fabric, field.name, None)
        array = getattr(fabric, field.name)
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]
    assert Fabric.from_graph(fabric) is fabric
    graph.edges["0.0", "up0"]["bandwidth"] = 1.0
    assert fabric.bandwidth.min() == 1e9


def test_numbers_of_chips_are_a_copy() -> None:
    graph = topo.load("hgx-h100-8")
    fabric = Fabric.from_graph(graph)
    graph.graph["chips"]["H100-80GB"]["hbm_bytes"] = 0
    assert fabric.chips["H100-80GB"]["hbm_bytes"] == 80 * 2**30


@pytest.mark.parametrize("seed", range(5))
def test_ranks_follow_their_attribute_in_any_node_order(seed: int) -> None:
    graph = topo.load("hgx-h100-8", 3)
    nodes = list(graph)
    random.Random(seed).shuffle(nodes)
    other = nx.Graph(**graph.graph)
    other.add_nodes_from((node, graph.nodes[node]) for node in nodes)
    other.add_edges_from((b, a, data) for a, b, data in graph.edges(data=True))
    one, two = Fabric.from_graph(graph), Fabric.from_graph(other)
    assert one.rank_labels == two.rank_labels
    assert one.rank_domain.tolist() == two.rank_domain.tolist()
    assert one.group(10).tolist() == two.group(10).tolist()


def test_ranks_without_attribute_follow_insertion() -> None:
    graph = domains(2, 2)
    assert Fabric.from_graph(graph).rank_labels == ["0.0", "0.1", "1.0", "1.1"]
    graph.nodes["1.1"]["rank"] = 0  # those with a rank come first
    assert Fabric.from_graph(graph).rank_labels == ["1.1", "0.0", "0.1", "1.0"]


def test_hosts_are_ranks_where_no_gpu_is_known() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["h0", "h1"], kind="host")
    graph.add_node("s", kind="switch", tier="leaf")
    graph.add_edges_from([("h0", "s"), ("h1", "s")], kind="scale-out", bandwidth=1e9, latency=0.0)
    fabric = Fabric.from_graph(graph)
    assert (fabric.rank_labels, fabric.domain_sizes.tolist()) == (["h0", "h1"], [1, 1])
    assert fabric.domain[fabric.labels.index("s")] == -1
    assert topo.hop_counts(graph).tolist() == [[0, 2], [2, 0]]


def test_repr_says_the_size_first() -> None:
    assert repr(Fabric.from_graph(domains(1, 2))) == "Fabric(unnamed: 3 ranks in 2 domains, 6 nodes, 12 directed links)"


def test_planes_tiers_and_ports_are_kept() -> None:
    fabric = Fabric.from_graph(topo.load("hgx-h100-8", 2))
    at = {label: i for i, label in enumerate(fabric.labels)}
    assert fabric.plane_lanes[at["d0/switch"]] == (5, 4, 4, 5)
    assert [int(fabric.planes[at[node]]) for node in ("d0/gpu0", "d0/switch", "leaf0")] == [1, 4, 1]
    assert [fabric.tier[at[node]] for node in ("d0/gpu0", "d0/switch", "leaf0")] == ["", "scale-up", "leaf"]
    assert [int(fabric.radix[at[node]]) for node in ("d0/gpu0", "leaf0")] == [0, 64]
    hurt = Fabric.from_graph(topo.fail(topo.load("hgx-h100-8"), switches=["d0/switch1"]))
    assert hurt.planes[hurt.labels.index("d0/switch")] == 3


def test_what_switches_can_do() -> None:
    rack = Fabric.from_graph(topo.load("hgx-h100-8"))
    switch = rack.labels.index("d0/switch")
    assert rack.reduces[switch]
    assert rack.multicasts[switch]
    assert not rack.reduces[rack.ranks].any()


def test_an_attribute_that_is_none_is_left_out() -> None:
    graph = domains(2, 2)
    plain = Fabric.from_graph(graph)
    for key in ("forwards", "tier", "domain", "host", "chip", "rank"):
        nx.set_node_attributes(graph, None, key)
    fabric = Fabric.from_graph(graph)
    assert fabric.forwards.tolist() == plain.forwards.tolist()
    assert set(fabric.tier) == {""}
    assert fabric.rank_labels == plain.rank_labels
