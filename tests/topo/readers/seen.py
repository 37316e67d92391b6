"""What tests ask of a reading: counts, scale-up links, how near devices are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import networkx as nx

from topo import Reading, check, read

HOST = Path(__file__).resolve().parents[2] / "data" / "readers-host"


def graph_of(reading: Reading) -> nx.Graph[str]:
    """Return the graph, which every verb must take."""
    assert reading.graph is not None
    assert check(reading.graph) == []
    return reading.graph


def host(name: str) -> tuple[Reading, nx.Graph[str]]:
    """Read a file of the test data."""
    reading = read(HOST / name)
    return reading, graph_of(reading)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Reading:
    """Read a text."""
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path)


def kinds(graph: nx.Graph[str]) -> dict[str, int]:
    """Return how many nodes of each kind there are; a scale-up switch counts as "nvswitch"."""
    return dict(Counter("nvswitch" if data.get("tier") else str(data["kind"]) for _, data in graph.nodes(data=True)))


def links(graph: nx.Graph[str]) -> dict[frozenset[str], int]:
    """Return the lanes of every scale-up edge."""
    return {frozenset((a, b)): data["lanes"] for a, b, data in graph.edges(data=True) if data["kind"] == "scale-up"}


def per_gpu(graph: nx.Graph[str]) -> set[int]:
    """Return how many scale-up links GPUs have."""
    found: Counter[str] = Counter()
    for pair, n in links(graph).items():
        found.update(dict.fromkeys(pair, n))
    return {found[node] for node, data in graph.nodes(data=True) if data["kind"] == "gpu"}


def domains(graph: nx.Graph[str]) -> list[list[str]]:
    """Return the GPUs of every domain, domain by domain."""
    found: dict[object, list[str]] = {}
    for node, data in graph.nodes(data=True):
        if data["kind"] == "gpu":
            found.setdefault(data["domain"], []).append(node)
    return list(found.values())


def way(graph: nx.Graph[str], a: str, b: str) -> list[str]:
    """Return the kinds of nodes that PCIe passes between two devices."""
    pcie = graph.edge_subgraph([(u, v) for u, v, kind in graph.edges(data="kind") if str(kind) == "pcie"])
    return [str(graph.nodes[node]["kind"]) for node in nx.shortest_path(pcie, a, b)[1:-1]]
