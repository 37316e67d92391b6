"""Are a graph's columns the graph, and are its parts those networkx finds?"""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

import topo
from topo._check import rank_nodes, scale_up_components
from topo._columns import Columns, distinct


def scattered(seed: int, directed: bool) -> nx.Graph:
    """A few nodes of every kind, some joined, in no order."""
    dice = random.Random(seed)
    graph = (nx.DiGraph if directed else nx.Graph)()
    labels = [f"n{i}" for i in range(dice.randint(1, 14))]
    dice.shuffle(labels)
    for label in labels:
        graph.add_node(label, kind=dice.choice(topo.NODE_KINDS))
    for _ in range(dice.randint(0, 16)):
        graph.add_edge(dice.choice(labels), dice.choice(labels), kind=dice.choice(topo.EDGE_KINDS[:2]))
    return graph


def as_sets(labels: list[str], part: np.ndarray) -> list[set[str]]:
    return [{labels[i] for i in np.flatnonzero(part == number)} for number in range(int(part.max()) + 1)]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_columns_are_the_graph(seed: int, directed: bool) -> None:
    graph = scattered(seed, directed)
    columns = Columns.of(graph)
    assert columns.labels == list(graph)
    assert columns.nodes == [data for _, data in graph.nodes(data=True)]
    ends = [(columns.labels[a], columns.labels[b]) for a, b in columns.ends]
    assert ends == list(graph.edges())
    assert all(data is graph.edges[pair] for pair, data in zip(ends, columns.edges, strict=True))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_parts_in_node_order(seed: int, directed: bool) -> None:
    graph = scattered(seed, directed)
    columns, place = Columns.of(graph), {label: i for i, label in enumerate(graph)}
    undirected = graph.to_undirected(as_view=True)
    inside = nx.Graph()
    inside.add_nodes_from(graph)
    inside.add_edges_from((a, b) for a, b, kind in graph.edges(data="kind") if kind == "scale-up")
    both = nx.strongly_connected_components(graph) if directed else nx.connected_components(graph)
    for found, wanted in (
        (columns.parts(), nx.connected_components(undirected)),
        (columns.parts("scale-up"), nx.connected_components(inside)),
        (columns.parts(both_ways=True), both),
    ):
        assert as_sets(columns.labels, found) == sorted(wanted, key=lambda part: min(place[node] for node in part))


@pytest.mark.parametrize("seed", range(20))
def test_domains_are_the_components_of_scale_up_edges(seed: int) -> None:
    graph = scattered(seed, directed=False)
    columns = Columns.of(graph)
    domains = as_sets(columns.labels, columns.domains)
    assert sorted(map(sorted, domains)) == sorted(map(sorted, scale_up_components(graph)))
    assert [columns.labels[i] for i in columns.ranks] == rank_nodes(graph)


def test_domains_follow_the_ranks() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["leaf", "up"], kind="switch")
    for node, rank in (("a", 2), ("b", 1), ("c", 0)):
        graph.add_node(node, kind="gpu", rank=rank)
        graph.add_edge(node, "leaf", kind="scale-out")
    graph.add_edge("a", "up", kind="scale-up")
    graph.add_edge("b", "up", kind="scale-up")
    columns = Columns.of(graph)
    assert [columns.labels[i] for i in columns.ranks] == ["c", "b", "a"]
    assert columns.domains.tolist() == [-1, 1, 1, 1, 0]


def test_distinct_keeps_types_apart_and_what_has_no_hash() -> None:
    assert sorted(map(repr, distinct([1, True, 1.0, 1, "1", None]))) == ["'1'", "1", "1.0", "None", "True"]
    assert distinct([[1], [1], 2]) == [[1], [1], 2]
