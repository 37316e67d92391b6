"""Which small topologies do the tests of algorithms use?"""

from __future__ import annotations

import networkx as nx

import topo


def star(n: int, bandwidth: float = 1e9, latency: float = 0.0, kind: str = "scale-up") -> nx.Graph:
    """Ranks under one switch that reduces and multicasts."""
    graph = nx.Graph(name="star")
    graph.add_node("switch", kind="switch", reduces=True, multicasts=True)
    for i in range(n):
        graph.add_node(f"gpu{i}", kind="gpu", rank=i)
        graph.add_edge(f"gpu{i}", "switch", kind=kind, bandwidth=bandwidth, latency=latency)
    return graph


def racks(*sizes: int, up: float = 9e9, out: float = 1e9, latency: float = 0.0, rails: bool = False) -> nx.Graph:
    """Domains of any sizes, each under a switch, on one leaf or on a rail per slot, all switches reducing."""
    graph = nx.Graph(name="racks")
    able = {"kind": "switch", "reduces": True, "multicasts": True}
    for d, size in enumerate(sizes):
        graph.add_node(f"up{d}", **able)
        for i in range(size):
            leaf = f"leaf{i if rails else 0}"
            graph.add_node(leaf, tier="leaf", **able)
            graph.add_node(f"{d}.{i}", kind="gpu")
            graph.add_edge(f"{d}.{i}", f"up{d}", kind="scale-up", bandwidth=up, latency=latency)
            graph.add_edge(f"{d}.{i}", leaf, kind="scale-out", bandwidth=out, latency=3 * latency)
    return graph


def torus(*dims: int, latency: float = 0.0) -> nx.Graph:
    """A torus of 1 GB/s links."""
    return topo.build("torus", dims=dims, bandwidth="1 GB/s", latency=f"{latency:.12g} s")
