"""Do rails and planes meet nowhere, and are they as large as published?"""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from collectives import cost
from topo import InputError

from .wired import gpus, lanes, ports, switches

OUT = ("leaf", "spine", "core")


def outside(graph: nx.Graph) -> nx.Graph:
    """The fabric without scale-up."""
    return graph.edge_subgraph([(a, b) for a, b, kind in graph.edges(data="kind") if kind == "scale-out"])


# arXiv 2505.09343, Table 3: 8 planes of FT2, k = 64; links without those of end points
def test_published_multi_plane_fat_tree() -> None:
    graph = topo.build("multi_plane_fat_tree", planes=8, k=64)
    assert len(gpus(graph)) == 16384
    assert len(switches(graph, *OUT)) == 768
    assert lanes(graph, switches(graph, *OUT)) == 16384
    assert len(switches(graph, "scale-up")) == 2048


@settings(max_examples=30, deadline=None)
@given(planes=st.integers(1, 5), half=st.integers(1, 4))
def test_planes_are_fat_trees_apart(planes: int, half: int) -> None:
    graph = topo.build("multi_plane_fat_tree", planes=planes, k=2 * half)
    assert len(gpus(graph)) == planes * 2 * half**2
    assert lanes(graph, switches(graph, *OUT)) == planes * 2 * half**2
    assert {ports(graph, switch) for switch in switches(graph, *OUT)} == {2 * half}
    parts = list(nx.connected_components(outside(graph)))
    assert len(parts) == planes
    alone = topo.build("fat_tree", k=2 * half, levels=2)
    for part in parts:
        assert len(part) == len(alone)
        assert len({node.rpartition("/gpu")[2] for node in part if "/gpu" in node}) == 1


@settings(max_examples=50, deadline=None)
@given(domains=st.integers(2, 60), size=st.integers(1, 5), radix=st.integers(4, 24), over=st.sampled_from([1.0, 2.0]))
def test_rails(domains: int, size: int, radix: int, over: float) -> None:
    parameters = {"domains": domains, "domain_size": size, "radix": radix, "oversubscription": over}
    if domains > radix and math.ceil(domains / (radix // 2)) > radix * (radix // 2):
        with pytest.raises(InputError, match="three levels of switches do not reach"):
            topo.build("rail_only", **parameters)
        return
    graph = topo.build("rail_only", **parameters)
    assert topo.check(graph) == []
    assert len(gpus(graph)) == domains * size
    parts = list(nx.connected_components(outside(graph)))
    assert len(parts) == size
    rails = [sorted(node.partition("/")[2] for node in part if not node.startswith("rail")) for part in parts]
    assert rails == [[f"gpu{i}"] * domains for i in range(size)]
    assert all(ports(graph, switch) <= radix for switch in switches(graph, *OUT))
    if domains <= radix:
        assert len(switches(graph, *OUT)) == size
    assert {ports(graph, gpu) for gpu in gpus(graph)} == {2}


def test_a_rail_of_leaves_and_spines() -> None:
    """40 domains on radix 16: 5 leaves of 8 down and 8 up, 40 uplinks on 3 spines."""
    graph = topo.build("rail_only", domains=40, domain_size=2, radix=16)
    assert len(switches(graph, "leaf")) == 10
    assert len(switches(graph, "spine")) == 6
    assert any("do not divide" in line for line in graph.graph["assumptions"])


def test_other_rails_are_out_of_reach_and_that_is_said() -> None:
    graph = topo.build("rail_only", domains=3, domain_size=4)
    hops = topo.hop_counts(graph)
    domain, slot = np.arange(12) // 4, np.arange(12) % 4
    same_domain, same_slot = domain[:, None] == domain, slot[:, None] == slot
    assert (hops[same_domain & ~same_slot] == 2).all()
    assert (hops[same_slot & ~same_domain] == 2).all()
    assert (hops[~same_slot & ~same_domain] == -1).all()
    with pytest.raises(InputError, match="has no path for 72 pairs of ranks"):
        cost(graph, "all_to_all", 1e6)
    rail = [f"d{d}/gpu1" for d in range(3)]
    assert cost(graph, "all_to_all", 3e9, ranks=rail).bandwidth_seconds == pytest.approx(2 / 50)


def test_scale_up_has_its_own_bandwidth() -> None:
    graph = topo.build("rail_only", domains=2, domain_size=4, bandwidth="50 GB/s", scale_up_bandwidth="900 GB/s")
    assert graph.edges["d1/gpu2", "d1/switch"]["bandwidth"] == 900e9
    assert graph.edges["d1/gpu2", "rail2/leaf0"]["bandwidth"] == 50e9
    assert graph.nodes["d1/switch"]["domain"] == graph.nodes["d1/gpu2"]["domain"] == 1
    assert [line.split(" = ")[0] for line in graph.graph["assumptions"]] == ["latency", "scale_up_latency"]


def test_too_many_domains_name_a_radix_that_works() -> None:
    with pytest.raises(InputError, match="A radix of 8 does") as caught:
        topo.build("rail_only", domains=60, domain_size=2, radix=4)
    assert [fault.place for fault in caught.value.faults] == ["radix"]
    assert topo.check(topo.build("rail_only", domains=60, domain_size=2, radix=8)) == []
