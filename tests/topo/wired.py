"""What does a bare shape hold, counted the plain way? Used by the tests of every family."""

from __future__ import annotations

import json
import math
from collections import Counter, deque

import networkx as nx

import topo

Graph = nx.Graph


def gpus(graph: Graph) -> list[str]:
    return [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]


def switches(graph: Graph, *tiers: str) -> list[str]:
    found = [(node, data["tier"]) for node, data in graph.nodes(data=True) if data["kind"] == "switch"]
    return [node for node, tier in found if not tiers or tier in tiers]


def lanes(graph: Graph, among: list[str] | None = None) -> int:
    """Cables between nodes of a list, between all without one."""
    part = graph if among is None else graph.subgraph(among)
    return sum(n for _, _, n in part.edges(data="lanes"))


def ports(graph: Graph, node: str) -> int:
    return sum(n for _, _, n in graph.edges(node, data="lanes"))


def distances(graph: Graph, start: str) -> Counter[int]:
    """How many nodes stand 0, 1, ... links away."""
    away, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for other in graph[node]:
            if other not in away:
                away[other] = away[node] + 1
                queue.append(other)
    return Counter(away.values())


def diameter(graph: Graph) -> int:
    return max(max(distances(graph, node)) for node in graph)


def alike(graph: Graph, nodes: list[str] | None = None) -> bool:
    """Whether every node sees the same: its ports, and how many nodes at every distance."""
    seen = [(sorted(distances(graph, node).items()), ports(graph, node)) for node in nodes or graph]
    return all(one == seen[0] for one in seen)


def fabric(graph: Graph) -> Graph:
    """The switches alone."""
    return graph.subgraph(switches(graph))


def assert_sound(name: str, graph: Graph, parameters: dict[str, object]) -> None:
    """What holds for every shape, whatever its parameters."""
    assert topo.check(graph) == []
    assert nx.is_connected(graph)
    assert [graph.nodes[node]["rank"] for node in gpus(graph)] == list(range(len(gpus(graph))))
    for node in switches(graph):
        assert ports(graph, node) <= graph.nodes[node].get("radix", math.inf), node
        assert "radix" in graph.nodes[node] or name in ("switched", "rail_only", "multi_plane_fat_tree")
        assert graph.nodes[node]["forwards"]
    for a, b, data in graph.edges(data=True):
        assert a != b
        assert data["kind"] in topo.EDGE_KINDS
        assert data["lanes"] >= 1
    again = topo.build(name, **parameters)
    assert_same(graph, again)
    assert graph.graph == again.graph
    shape = json.loads(json.dumps(graph.graph["shape"]))
    assert shape == graph.graph["shape"], "the parameters as used are plain data"
    assert shape.pop("name") == graph.graph["name"] == name
    rebuilt = topo.build(name, **shape)
    assert_same(graph, rebuilt)
    assert not [line for line in rebuilt.graph["assumptions"] if line.endswith("none was given")]


def assert_same(one: Graph, two: Graph) -> None:
    assert list(one.nodes(data=True)) == list(two.nodes(data=True))
    assert list(one.edges(data=True)) == list(two.edges(data=True))
