"""Are HyperX and random regular graphs what their papers say?"""

from __future__ import annotations

from math import prod

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from collectives import cost
from topo import InputError

from .wired import alike, diameter, fabric, gpus, lanes, ports, switches

# --- HyperX ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(dims=st.lists(st.integers(1, 5), min_size=1, max_size=3), hosts=st.integers(1, 3), data=st.data())
def test_hyperx(dims: list[int], hosts: int, data: st.DataObject) -> None:
    each = data.draw(st.lists(st.integers(1, 3), min_size=len(dims), max_size=len(dims)))
    graph = topo.build("hyperx", dims=dims, lanes=each, hosts=hosts)
    n = prod(dims)
    inner = fabric(graph)
    assert (len(gpus(graph)), len(inner)) == (n * hosts, n)
    assert inner.number_of_edges() == sum(n * (side - 1) // 2 for side in dims)
    assert lanes(inner) == sum(n * (side - 1) // 2 * k for side, k in zip(dims, each, strict=True))
    degree = sum((side - 1) * k for side, k in zip(dims, each, strict=True))
    assert {ports(graph, router) for router in inner} == {degree + hosts}
    assert diameter(inner) == sum(side > 1 for side in dims)
    assert alike(inner)
    for a, b, axis in inner.edges(data="axis"):
        one, two = (graph.nodes[node]["coordinates"] for node in (a, b))
        assert [i for i in range(len(dims)) if one[i] != two[i]] == [axis]


def test_hyperx_of_one_axis_is_a_full_mesh_of_switches() -> None:
    graph = topo.build("hyperx", dims=[6])
    assert nx.is_isomorphic(fabric(graph), nx.complete_graph(6))


def test_all_to_all_on_a_hyperx() -> None:
    """3 x 3 with one GPU each, by hand: 2 switches on the link's axis x 3 messages a GPU / 2 links = 3 messages."""
    graph = topo.build("hyperx", dims=(3, 3), latency=0)
    view = topo.Fabric.from_graph(graph)
    loads = cost(view, "all_to_all", 9.0).loads
    inner = [i for i in range(len(loads)) if view.node_kind[view.source[i]] == view.node_kind[view.target[i]]]
    assert len(inner) == 36
    assert {round(float(loads[i]), 9) for i in inner} == {3.0}


# --- random regular --------------------------------------------------------------------------------------------------


def regular(n: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.sampled_from([(n, d) for d in range(1 if n == 2 else 2, n) if n * d % 2 == 0])


@settings(max_examples=80, deadline=None)
@given(case=st.integers(2, 40).flatmap(regular), hosts=st.integers(1, 3), seed=st.integers(0, 2**64))
def test_random_regular(case: tuple[int, int], hosts: int, seed: int) -> None:
    n, degree = case
    graph = topo.build("random_regular", n=n, degree=degree, hosts=hosts, seed=seed)
    inner = fabric(graph)
    assert (len(gpus(graph)), len(inner), lanes(inner)) == (n * hosts, n, n * degree // 2)
    assert {ports(graph, router) for router in inner} == {degree + hosts}
    assert nx.is_connected(inner)


@pytest.mark.parametrize("degree", [2, 3, 10, 35])
def test_seeds_make_graphs_that_differ(degree: int) -> None:
    one, two = (topo.build("random_regular", n=40, degree=degree, seed=seed) for seed in (0, 1))
    assert set(one.edges) != set(two.edges)


@pytest.mark.parametrize(
    ("n", "degree", "place", "rule"),
    [
        (5, 3, "n, degree", "15 ends of links, an odd number"),
        (4, 4, "degree", "4 switches have 3 others each"),
        (4, 1, "degree", "joins 4 switches in pairs only"),
        (1, 1, "n", "two or more"),
    ],
)
def test_random_regular_graphs_that_do_not_exist(n: int, degree: int, place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        topo.build("random_regular", n=n, degree=degree)
    assert place in [fault.place for fault in caught.value.faults]
    assert any(rule in fault.rule for fault in caught.value.faults)


def test_switches_are_leaves() -> None:
    assert len(switches(topo.build("random_regular", n=4, degree=3), "leaf")) == 4
