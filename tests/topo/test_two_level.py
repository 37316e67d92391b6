"""Is two-level scale-up as published, and two hops inside a node, four between?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from collectives import cost
from topo import InputError

from .wired import alike, gpus, lanes, ports, switches


# arXiv 2506.12708: 48 nodes x 8, 7 L1 chips a node (336), 7 sub-planes of 16 L2 chips (112), 392 GB/s a package
def test_cloudmatrix384() -> None:
    graph = topo.build("two_level", bandwidth="28 GB/s")
    level = dict(graph.nodes(data="level"))
    first = [node for node in switches(graph) if level[node] == 1]
    second = [node for node in switches(graph) if level[node] == 2]
    assert (len(gpus(graph)), len(first), len(second)) == (384, 336, 112)
    assert lanes(graph, first + second) == 336 * 16
    for gpu in gpus(graph):
        assert ports(graph, gpu) == 14
        assert sum(rate for _, _, rate in graph.edges(gpu, data="bandwidth")) == pytest.approx(392e9)
    assert {ports(graph, node) for node in first} == {32}
    assert {ports(graph, node) for node in second} == {48}
    assert {kind for _, _, kind in graph.edges(data="kind")} == {"scale-up"}
    planes = list(nx.connected_components(graph.subgraph(first + second)))
    assert [len(plane) for plane in planes] == [48 + 16] * 7


def test_hops_inside_and_between_nodes() -> None:
    hops = topo.hop_counts(topo.build("two_level", nodes=4, gpus_per_node=3))
    node = np.arange(12) // 3
    same = node[:, None] == node
    assert set(hops[same].tolist()) == {0, 2}
    assert set(hops[~same].tolist()) == {4}


def test_non_blocking_by_default() -> None:
    """An all-to-all takes what a GPU's own links take."""
    graph = topo.build("two_level", nodes=6, gpus_per_node=4, l1=3, planes=3, bandwidth="10 GB/s", latency=0)
    assert cost(graph, "all_to_all", 24e9).seconds == pytest.approx(23 / 60)


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 6), size=st.integers(1, 5), planes=st.integers(1, 4), per=st.integers(1, 3),
    each=st.integers(1, 3), l2=st.one_of(st.none(), st.integers(1, 5)),
)  # fmt: skip
def test_counts(nodes: int, size: int, planes: int, per: int, each: int, l2: int | None) -> None:
    l1 = planes * per
    graph = topo.build("two_level", nodes=nodes, gpus_per_node=size, l1=l1, planes=planes, lanes=each, l2=l2)
    above = size * each if l2 is None else l2
    assert topo.check(graph) == []
    assert len(gpus(graph)) == nodes * size
    assert len(switches(graph)) == nodes * l1 + planes * above
    assert lanes(graph, switches(graph)) == nodes * l1 * above
    assert {ports(graph, gpu) for gpu in gpus(graph)} == {l1 * each}
    assert alike(graph, gpus(graph))


def test_planes_divide_the_l1_switches() -> None:
    with pytest.raises(InputError, match="do not divide evenly over 7 L1 switches") as caught:
        topo.build("two_level", planes=3)
    assert [fault.place for fault in caught.value.faults] == ["planes"]
