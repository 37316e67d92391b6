"""Small graphs whose every half can be tried, and the smallest cut by trying. Used by the tests of measures."""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx
import numpy as np

import topo
from topo import Fabric


def wired(edges: list[tuple[str, str]], kind: str = "scale-up", **numbers: float) -> nx.Graph:
    """GPUs "g..." and switches "s..." joined by links of 1 byte/s, whole graph in node order of the edges."""
    graph = nx.Graph()
    graph.add_edges_from(edges, **({"kind": kind, "bandwidth": 1.0, "latency": 0.0} | numbers))
    for node in graph:
        switch = node.startswith("s")
        graph.nodes[node].update({"kind": "switch" if switch else "gpu", "forwards": True})
        if switch:
            graph.nodes[node]["tier"] = "leaf" if node.startswith("sl") else "spine"
    return graph


def every_half(fabric: Fabric, kind: str, ranks: np.ndarray) -> float:
    """The smallest cut between any two halves, either way: every node tried on both sides."""
    kinds = [topo.EDGE_KINDS.index(k) for k in ((kind, "pcie") if kind == "scale-out" else (kind,))]
    links = np.flatnonzero(np.isin(fabric.link_kind, kinds))
    nodes = [int(i) for i in fabric.ranks[ranks]]
    ends = {int(i) for i in (*fabric.source[links], *fabric.target[links])} - set(nodes)
    order = [*nodes, *sorted(ends)]
    near = np.arange(2 ** len(order))[:, None] >> np.arange(len(order)) & 1
    size = near[:, : len(nodes)].sum(axis=1)
    near = near[np.isin(size, (len(nodes) // 2, -(-len(nodes) // 2)))].astype(bool)
    place = {node: i for i, node in enumerate(order)}
    cut = np.zeros(len(near))
    for link in links:
        tail, head = place[int(fabric.source[link])], place[int(fabric.target[link])]
        cut += fabric.bandwidth[link] * (near[:, tail] & ~near[:, head])
    return float(cut.min())


def random_fabric(seed: int) -> nx.Graph:
    dice = random.Random(seed)
    graph = nx.Graph()
    gpus = [f"g{i}" for i in range(dice.randint(2, 6))]
    switches = [f"s{i}" for i in range(dice.randint(0, 4))]
    forwards = dice.random() < 0.5
    graph.add_nodes_from(gpus, kind="gpu", forwards=forwards)
    graph.add_nodes_from(switches, kind="switch")
    kind = dice.choice(["scale-up", "scale-out"])
    rates = [dice.choice([1.0, 2.0, 5.0]) for _ in range(dice.randint(1, 3))]

    def join(pairs: list[tuple[str, str]], often: float) -> None:
        for a, b in pairs:
            if dice.random() < often:
                graph.add_edge(a, b, kind=kind, bandwidth=dice.choice(rates), latency=0.0, lanes=dice.choice([1, 2]))

    join([(a, b) for a in gpus for b in switches], dice.choice([0.4, 0.9]))
    join(list(combinations(switches, 2)), 0.6)
    join(list(combinations(gpus, 2)), 0.2 if switches else 0.8)
    for part in list(nx.connected_components(graph))[1:]:
        graph.add_edge(gpus[0], min(part, key=lambda node: node[0] == "s"), kind=kind, bandwidth=1.0, latency=0.0)
    if dice.random() < 0.3:
        graph = graph.to_directed()
        for edge in graph.edges:
            graph.edges[edge]["bandwidth"] = dice.choice(rates)
    return graph


def random_tree(seed: int) -> nx.Graph:
    """GPUs on one link each, all alike, under switches joined at random, some with nothing under them."""
    dice = random.Random(seed)
    leaves = [f"sl{i}" for i in range(dice.randint(2, 4))]
    spines = [f"s{i}" for i in range(dice.randint(1, 3))]
    edges = [(f"g{i}", dice.choice(leaves)) for i in range(dice.randint(2, 7))]
    pairs = [(a, b) for a in leaves for b in spines] + (list(combinations(leaves, 2)) if dice.random() < 0.4 else [])
    graph = wired([*edges, *(pair for pair in pairs if dice.random() < 0.8)], "scale-out")
    for a, b in graph.edges:
        if a[0] == b[0] == "s":
            graph.edges[a, b]["bandwidth"] = dice.choice([1.0, 2.0, 3.0])
    return graph
