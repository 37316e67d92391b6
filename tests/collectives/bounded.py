"""Which topologies do the tests of bounds use? Their switches do nothing but forward, unless told."""

from __future__ import annotations

import itertools

import networkx as nx

import topo

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def boxes(count: int, up: str = "300 GB/s", out: str = "25 GB/s", **more: object) -> nx.Graph:
    """Boxes of eight: scale-up under one switch, a NIC per GPU on a rail-optimised fabric."""
    return topo.load("hgx-h100-8", count, DRY | {"scale_up.bandwidth": up, "scale_out.bandwidth": out} | more)


def star(n: int, bandwidth: float, latency: float = 0.0, **switch: bool) -> nx.Graph:
    graph = nx.Graph()
    graph.add_node("switch", kind="switch", **switch)
    for i in range(n):
        graph.add_node(f"gpu{i}", kind="gpu")
        graph.add_edge(f"gpu{i}", "switch", kind="scale-up", bandwidth=bandwidth, latency=latency)
    return graph


def gpus_of(graph: nx.Graph) -> list[str]:
    return [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]


def rail_only(domains: int, size: int) -> nx.Graph:
    graph = nx.Graph()
    for d, i in itertools.product(range(domains), range(size)):
        graph.add_node(f"d{d}/gpu{i}", kind="gpu")
        graph.add_node(f"up{d}", kind="switch", tier="scale-up")
        graph.add_node(f"rail{i}", kind="switch", tier="leaf")
        graph.add_edge(f"d{d}/gpu{i}", f"up{d}", kind="scale-up", bandwidth=900e9, latency=0.0)
        graph.add_edge(f"d{d}/gpu{i}", f"rail{i}", kind="scale-out", bandwidth=50e9, latency=0.0)
    return graph


SHAPES = {
    "torus": lambda: topo.build("torus", dims=(3, 4), latency="0 s", bandwidth="50 GB/s"),
    "mesh": lambda: topo.build("torus", dims=(3, 3), wrap=False, latency="0 s", bandwidth="50 GB/s"),
    "dragonfly": lambda: topo.build("dragonfly", a=2, p=1, h=1, bandwidth="50 GB/s"),
    "tapered": lambda: topo.load("hgx-h100-8", 3, {"scale_out.oversubscription": 2.0, "scale_out.radix": 8}),
    "uneven": lambda: topo.load("hgx-h100-8", [4, 2], {"design.gpus_per_host": 2}),
    "failed": lambda: topo.fail(topo.load("mi300x-8", 1), links=[("d0/gpu0", "d0/gpu1")]),
}
