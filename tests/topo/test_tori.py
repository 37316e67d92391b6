"""Are tori wired as published: sides, ends, twists, lanes, and the load of an all-to-all on them?"""

from __future__ import annotations

import math
from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from collectives import cost
from topo import InputError

from .wired import alike, diameter, distances, lanes, ports

sides = st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(lambda dims: prod(dims) <= 200)


def twisted(draw: st.DrawFn) -> tuple[list[int], dict[tuple[int, int], int]]:
    """Any sides and any twists that go round in no circle."""
    dims = draw(st.lists(st.integers(2, 5), min_size=2, max_size=3))
    order = draw(st.permutations(range(len(dims))))
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    return dims, {(a, b): draw(st.integers(1, dims[b] - 1)) for a, b in chosen}


# --- closed forms ----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(dims=sides, data=st.data())
def test_counts_ports_and_diameter(dims: list[int], data: st.DataObject) -> None:
    wrap = data.draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    graph = topo.build("torus", dims=dims, wrap=wrap)
    n = prod(dims)
    real = [(side, closed) for side, closed in zip(dims, wrap, strict=True) if side > 1]
    assert len(graph) == n
    assert lanes(graph) == sum(n if closed else n // side * (side - 1) for side, closed in real)
    assert diameter(graph) == sum(side // 2 if closed else side - 1 for side, closed in real)
    if all(closed for _, closed in real):
        assert {ports(graph, node) for node in graph} == {2 * len(real)}
        assert alike(graph)


@settings(max_examples=60, deadline=None)
@given(case=st.composite(twisted)())
def test_twists_keep_ports_and_symmetry(case: tuple[list[int], dict[tuple[int, int], int]]) -> None:
    dims, twist = case
    graph = topo.build("torus", dims=dims, twist=twist)
    assert topo.check(graph) == []
    assert {ports(graph, node) for node in graph} == {2 * len(dims)}
    assert lanes(graph) == prod(dims) * len(dims)
    assert alike(graph)


@settings(max_examples=30, deadline=None)
@given(dims=sides, data=st.data())
def test_bisection_across_the_longest_side(dims: list[int], data: st.DataObject) -> None:
    wrap = data.draw(st.booleans())
    longest = max(dims)
    if longest % 2 or longest == 1:
        return
    axis, n = dims.index(longest), prod(dims)
    graph = topo.build("torus", dims=dims, wrap=wrap)
    low = {node for node, point in graph.nodes(data="coordinates") if point[axis] < longest // 2}
    crossing = sum(data["lanes"] for _, _, data in nx.edge_boundary(graph, low, data=True))
    assert crossing == (2 if wrap else 1) * n // longest


def test_first_axis_is_the_fastest() -> None:
    graph = topo.build("torus", dims=(4, 3, 2))
    assert graph.nodes["gpu1"]["coordinates"] == [1, 0, 0]
    assert graph.nodes["gpu4"]["coordinates"] == [0, 1, 0]
    assert graph.nodes["gpu23"]["coordinates"] == [3, 2, 1]
    assert {graph.edges[edge]["axis"] for edge in graph.edges("gpu0")} == {0, 1, 2}
    assert all(data["forwards"] and data["kind"] == "gpu" for _, data in graph.nodes(data=True))
    assert {kind for _, _, kind in graph.edges(data="kind")} == {"scale-up"}


def test_a_side_of_two_is_two_lanes_and_a_side_of_one_is_none() -> None:
    graph = topo.build("torus", dims=(2, 3, 1), bandwidth="10 GB/s")
    assert graph.edges["gpu0", "gpu1"]["lanes"] == 2
    assert graph.edges["gpu0", "gpu1"]["bandwidth"] == 20e9
    assert graph.edges["gpu0", "gpu2"]["lanes"] == 1
    assert graph.number_of_edges() == 3 + 6
    mesh = topo.build("torus", dims=(2, 3, 1), wrap=[False, True, True])
    assert mesh.edges["gpu0", "gpu1"]["lanes"] == 1


def test_a_twisted_side_of_two_is_two_edges() -> None:
    """4 x 2, x shifted by 2 where y wraps: gpu4 = (0, 1) goes up to (2, 0) = gpu2."""
    graph = topo.build("torus", dims=(4, 2), twist={(1, 0): 2})
    assert graph.edges["gpu0", "gpu4"]["lanes"] == 1
    assert graph.edges["gpu4", "gpu2"]["lanes"] == 1
    assert graph.number_of_edges() == 16


def test_bandwidth_per_axis() -> None:
    graph = topo.build("torus", dims=(3, 4), bandwidth=["10 GB/s", 5e9])
    assert {(data["axis"], data["bandwidth"]) for _, _, data in graph.edges(data=True)} == {(0, 10e9), (1, 5e9)}


def test_a_twist_by_hand() -> None:
    """4 x 2, y shifted by 1 where x wraps: (3, 0) goes up to (0, 1), and (3, 1) to (0, 0)."""
    graph = topo.build("torus", dims=(4, 2), twist={(0, 1): 1})
    assert graph.has_edge("gpu3", "gpu4")
    assert graph.has_edge("gpu7", "gpu0")
    assert not graph.has_edge("gpu3", "gpu0")
    assert graph.graph["shape"]["twist"] == [[0, 1, 1]]


# --- other names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_ring(n: int) -> None:
    graph = topo.build("ring", n=n)
    assert lanes(graph) == (n if n > 1 else 0)
    assert {ports(graph, node) for node in graph} == {2 if n > 1 else 0}
    assert diameter(graph) == n // 2


@pytest.mark.parametrize("dim", range(1, 8))
def test_hypercube(dim: int) -> None:
    graph = topo.build("hypercube", dim=dim)
    assert (len(graph), lanes(graph), diameter(graph)) == (2**dim, dim * 2 ** (dim - 1), dim)
    assert all((int(a[3:]) ^ int(b[3:])).bit_count() == 1 for a, b in graph.edges)
    assert alike(graph)
    assert distances(graph, "gpu0") == {hops: math.comb(dim, hops) for hops in range(dim + 1)}


# AWS Neuron documentation: 16 chips an instance, 4 instances; here 128 GB/s a direction on x and y, 64 on z
def test_ultraserver() -> None:
    graph = topo.build("ultraserver")
    assert (len(graph), lanes(graph), diameter(graph)) == (64, 192, 6)
    for node in graph:
        assert ports(graph, node) == 6
        assert sum(rate for _, _, rate in graph.edges(node, data="bandwidth")) == 640e9
    hosts = [host for _, host in graph.nodes(data="host")]
    assert hosts == [f"host{rank // 16}" for rank in range(64)]
    between = {data["bandwidth"] for a, b, data in graph.edges(data=True) if hosts[int(a[3:])] != hosts[int(b[3:])]}
    assert between == {64e9}
    assert any("assumed" in line for line in graph.graph["assumptions"])
    assert not any("both directions" in line for line in topo.build("ultraserver", bandwidth=1e9).graph["assumptions"])


# --- traffic ---------------------------------------------------------------------------------------------------------


# arXiv 2304.01433: 4x4x8 regular 128/64 pairwise messages on the busiest and least busy link, twisted 73.33 on all
@pytest.mark.parametrize(
    ("twist", "most", "least", "hops"),
    [(None, 128, 64, 8), ({(0, 2): 4, (1, 2): 4}, 220 / 3, 220 / 3, 6)],
    ids=["regular", "twisted"],
)
def test_all_to_all_on_4x4x8(twist: dict[tuple[int, int], int] | None, most: float, least: float, hops: int) -> None:
    graph = topo.build("torus", dims=(4, 4, 8), twist=twist, latency=0)
    loads = cost(graph, "all_to_all", 128.0).loads
    assert len(loads) == 768
    assert loads.max() == pytest.approx(most, rel=1e-12)
    assert loads.min() == pytest.approx(least, rel=1e-12)
    assert topo.hop_counts(graph).max() == hops


# SimGrid 3.32: 1e9 bytes between all of 4x4x4, links 50 GB/s, ties split both ways
def test_all_to_all_on_4x4x4() -> None:
    graph = topo.build("torus", dims=(4, 4, 4), bandwidth="50 GB/s", latency="0 s")
    assert cost(graph, "all_to_all", 64e9).seconds == pytest.approx(0.64, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(dims=st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda dims: 1 < prod(dims) <= 60))
def test_load_of_a_lane_is_closed(dims: list[int]) -> None:
    """N floor(n^2/4) / (2 n) messages on every lane of an axis of side n, each direction."""
    graph = topo.build("torus", dims=dims, latency=0)
    n = prod(dims)
    view = topo.Fabric.from_graph(graph)
    loads = cost(view, "all_to_all", float(n)).loads / view.lanes
    for link in range(len(loads)):
        ends = view.labels[view.source[link]], view.labels[view.target[link]]
        side = dims[graph.edges[ends]["axis"]]
        assert loads[link] == pytest.approx(n * (side**2 // 4) / (2 * side), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(case=st.composite(twisted)())
def test_messages_cross_as_many_links_as_they_have_hops(case: tuple[list[int], dict[tuple[int, int], int]]) -> None:
    dims, twist = case
    graph = topo.build("torus", dims=dims, twist=twist, latency=0)
    hops = topo.hop_counts(graph)
    assert (hops >= 0).all()
    assert cost(graph, "all_to_all", float(len(graph))).loads.sum() == pytest.approx(float(np.sum(hops)), rel=1e-9)


# --- what does not exist ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "place", "rule"),
    [
        ({"dims": (4, 4), "twist": {(0, 2): 1}}, "twist[0, 2]", "there is no axis 2"),
        ({"dims": (4, 4), "twist": {(-1, 0): 1}}, "twist[-1, 0]", "there is no axis -1"),
        ({"dims": (4, 4), "twist": {(1, 1): 2}}, "twist[1, 1]", "cannot shift itself"),
        ({"dims": (4, 4), "twist": {(0, 1): 4}}, "twist[0, 1]", "must shift by 1 to 3"),
        ({"dims": (4, 4), "twist": {(0, 1): 0}}, "twist[0, 1]", "must shift by 1 to 3"),
        ({"dims": (4, 1), "twist": {(0, 1): 1}}, "twist[0, 1]", "axis 1 has side 1"),
        ({"dims": (4, 4), "twist": {(0, 1): 2}, "wrap": [False, True]}, "twist[0, 1]", "axis 0 does not wrap"),
        ({"dims": (4, 4), "twist": {(0, 1): 2}, "wrap": [True, False]}, "twist[0, 1]", "axis 1 does not wrap"),
        ({"dims": (4, 4), "twist": {(0, 1): 2, (1, 0): 2}}, "twist", "in a circle"),
        ({"dims": (4, 4), "twist": [(0, 1, 2), (0, 1, 1)]}, "twist[0, 1]", "second shift"),
        ({"dims": (4, 4), "twist": {0: 2}}, "twist", "must map two axes"),
        ({"dims": (4, 4), "twist": {(0, 1): 1.0}}, "twist", "must map two axes"),
        ({"dims": (4, 4), "twist": "0,1"}, "twist", "must map two axes"),
        ({"dims": 4}, "dims", "must be a list"),
        ({"dims": ()}, "dims", "must be a list"),
        ({"dims": (4, 4), "wrap": [True, 1]}, "wrap[1]", "must be True or False"),
        ({"dims": (4, 4), "bandwidth": [1e9, 1e9, 1e9]}, "bandwidth", "one for all or one per axis: 2"),
    ],
)
def test_tori_that_do_not_exist(parameters: dict[str, object], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        topo.build("torus", **parameters)
    (fault,) = caught.value.faults
    assert fault.place == place
    assert rule in fault.rule


def test_a_side_that_is_none_hides_no_twist() -> None:
    with pytest.raises(InputError) as caught:
        topo.build("torus", dims=(4, 0), twist={(0, 5): 1, (0, 1): 1})
    assert [fault.place for fault in caught.value.faults] == ["dims[1]", "twist[0, 5]"]


def test_sides_of_an_array() -> None:
    assert topo.build("torus", dims=np.array([2, 3])).graph["shape"]["dims"] == [2, 3]


def test_all_faults_of_a_torus() -> None:
    with pytest.raises(InputError) as caught:
        topo.build("torus", dims=(4, 4), twist={(0, 3): 1, (0, 1): 9}, bandwidth="50 Gb", latency=-1)
    assert {fault.place for fault in caught.value.faults} == {"twist[0, 3]", "twist[0, 1]", "bandwidth", "latency"}
