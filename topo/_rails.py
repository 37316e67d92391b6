"""What if slot i of every domain has a network of its own? Rail-only and multi-plane fabrics.

Planes meet nowhere: GPUs of different slots in different domains have no path unless a GPU
relays, so an all-to-all over everything is refused.
"""

from __future__ import annotations

from typing import Any

import networkx as nx

from topo._asked import Asked, Link, add_cable, add_gpus, add_switch
from topo._design import ScaleOut
from topo._errors import Fault, InputError
from topo._joins import join_domains, require_room
from topo._trees import even, plant

__all__ = ["multi_plane_fat_tree", "rail_only"]


def rail_only(
    domains: int, domain_size: int, radix: int = 64, oversubscription: float = 1.0, bandwidth: Any = None,
    latency: Any = None, scale_up_bandwidth: Any = None, scale_up_latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return domains of GPUs on one scale-up switch each, slot i of all of them joined by rail i alone.

    domains x domain_size GPUs, domains scale-up switches. A rail is one switch of up to
    `radix` domains; beyond that leaves with radix/2 ports down, spines and, if it must
    be, cores, as `rail_optimised` builds them.

    Parameters
    ----------
    domains, domain_size : int
        Scale-up domains, two or more, and GPUs in each.
    radix : int, optional
        Ports of a switch.
    oversubscription : float, optional
        Down over up ports of a leaf, where a rail has leaves and spines.
    bandwidth, latency : str or number, optional
        Per cable of the rails, bandwidth per direction.
    scale_up_bandwidth, scale_up_latency : str or number, optional
        Per GPU to its scale-up switch.

    References
    ----------
    .. [1] W. Wang et al., "Rail-only: A Low-Cost High-Performance Network for Training LLMs
       with Trillion Parameters", arXiv 2307.12169.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("rail_only", domains=4, domain_size=8)
    >>> sorted(graph["rail3/leaf0"])
    ['d0/gpu3', 'd1/gpu3', 'd2/gpu3', 'd3/gpu3']
    """
    asked = Asked("rail_only")
    n, size, ports = (
        asked.whole("domains", domains, 2), asked.whole("domain_size", domain_size), asked.whole("radix", radix, 2),
    )  # fmt: skip
    ratio = asked.ratio("oversubscription", oversubscription)
    asked.size("domains", domains, 16 * n * size // 5)
    link = asked.link("scale-out", bandwidth, latency)
    inside = _inside(asked, scale_up_bandwidth, scale_up_latency)
    rail = _rail(asked, n, ScaleOut(link.bandwidth, link.latency, "fat_tree", ports, ratio))
    asked.settle()
    graph = _domains(n, size, inside)
    _stamp(graph, rail, size)
    graph.graph["assumptions"] = rail.graph.get("assumptions", [])
    return asked.named(
        graph, domains=n, domain_size=size, radix=ports, oversubscription=ratio, bandwidth=link.bandwidth,
        latency=link.latency, scale_up_bandwidth=inside.bandwidth, scale_up_latency=inside.latency,
    )  # fmt: skip


def multi_plane_fat_tree(
    planes: int, k: int, bandwidth: Any = None, latency: Any = None, scale_up_bandwidth: Any = None,
    scale_up_latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return planes of two-level fat trees: GPU i of every host on plane i, a host's GPUs on one scale-up switch.

    k^2/2 hosts of `planes` GPUs; per plane 3 k/2 fabric switches and k^2/2 links between
    them. The scale-up switches, one a host, come on top.

    Parameters
    ----------
    planes : int
        Planes, and GPUs of a host.
    k : int
        Ports of a fabric switch, an even number.
    bandwidth, latency : str or number, optional
        Per cable of the planes, bandwidth per direction.
    scale_up_bandwidth, scale_up_latency : str or number, optional
        Per GPU to its scale-up switch.

    References
    ----------
    .. [1] C. Zhao et al., "Insights into DeepSeek-V3: Scaling Challenges and Reflections on
       Hardware for AI Architectures", ISCA 2025, arXiv 2505.09343, Table 3.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("multi_plane_fat_tree", planes=2, k=4)
    >>> sum(kind == "gpu" for _, kind in graph.nodes(data="kind"))
    16
    """
    asked = Asked("multi_plane_fat_tree")
    n, ports = asked.whole("planes", planes), even(asked, k)
    asked.size("planes", planes, 11 * n * ports**2 // 5)
    link = asked.link("scale-out", bandwidth, latency)
    inside = _inside(asked, scale_up_bandwidth, scale_up_latency)
    asked.settle()
    graph = _domains(ports**2 // 2, n, inside)
    for i in range(n):
        plant(graph, ports, [ports // 2], link, f"plane{i}/", [f"d{d}/gpu{i}" for d in range(ports**2 // 2)])
    return asked.named(
        graph, planes=n, k=ports, bandwidth=link.bandwidth, latency=link.latency,
        scale_up_bandwidth=inside.bandwidth, scale_up_latency=inside.latency,
    )  # fmt: skip


def _inside(asked: Asked, bandwidth: Any, latency: Any) -> Link:
    rate = asked.rate(bandwidth, "scale_up_bandwidth", "GPU")
    return Link("scale-up", rate, asked.late(latency, "scale-up", "scale_up_latency"))


def _domains(n: int, size: int, link: Link) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    add_gpus(graph, [f"d{d}/gpu{i}" for d in range(n) for i in range(size)])
    for d in range(n):
        add_switch(graph, f"d{d}/switch", "scale-up")
        for i in range(size):
            add_cable(graph, f"d{d}/gpu{i}", f"d{d}/switch", link)
    for node, data in graph.nodes(data=True):
        data["domain"] = int(node.partition("/")[0][1:])
    return graph


def _rail(asked: Asked, domains: int, spec: ScaleOut) -> nx.Graph[str]:
    """Return one rail, its ends called "0", "1", ... by domain."""
    rail: nx.Graph[str] = nx.Graph()
    if asked.sound("domains", "domain_size", "radix", "oversubscription"):
        try:
            ends = [[str(d)] for d in range(domains)]
            require_room(ends, spec)
            join_domains(rail, ends, spec)
        except InputError as error:
            asked.faults += [Fault(f.place.partition(".")[2], f.value, f.rule, f.cure) for f in error.faults]
    return rail


def _stamp(graph: nx.Graph[str], rail: nx.Graph[str], size: int) -> None:
    """Add a copy of the rail for every slot."""
    for i in range(size):
        name = {node: f"d{node}/gpu{i}" if node.isdigit() else f"rail{i}/{node}" for node in rail}
        graph.add_nodes_from((name[node], dict(data)) for node, data in rail.nodes(data=True) if data)
        graph.add_edges_from((name[a], name[b], dict(data)) for a, b, data in rail.edges(data=True))
