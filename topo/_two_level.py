"""What does scale-up look like with two levels of switches? Huawei's CloudMatrix384 and its like."""

from __future__ import annotations

from typing import Any

import networkx as nx

from topo._asked import Asked, Link, add_cable, add_gpus, add_switch, gpu_labels

__all__ = ["two_level"]


def two_level(
    nodes: int = 48, gpus_per_node: int = 8, l1: int = 7, planes: int = 7, lanes: int = 2, l2: int | None = None,
    radix: int | None = None, bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return nodes of GPUs under L1 switches, which L2 switches join in planes; all of it one scale-up domain.

    Every GPU has `lanes` links to each L1 switch of its node: l1 x lanes ports. L1 switch
    i is of plane i mod planes and has one link to each of the plane's l2 L2 switches. nodes
    x l1 + planes x l2 switches, nodes x l1 x l2 links between them. Two hops in a node,
    four between nodes (of one plane, which all L1 switches of a node serve).

    Parameters
    ----------
    nodes, gpus_per_node : int, optional
        48 nodes of 8 by default, a CloudMatrix384.
    l1, planes : int, optional
        L1 switches of a node; planes of L2 switches, which divide them evenly.
    lanes : int, optional
        Links of a GPU to an L1 switch.
    l2 : int, optional
        L2 switches of a plane; gpus_per_node x lanes by default, which is non-blocking.
    radix : int, optional
        Ports of a switch, if they are to be checked.
    bandwidth, latency : str or number, optional
        Per lane, bandwidth per direction; 28 GB/s in a CloudMatrix384.

    References
    ----------
    .. [1] P. Zuo et al., "Serving Large Language Models on Huawei CloudMatrix384",
       arXiv 2506.12708.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("two_level", bandwidth="28 GB/s")
    >>> sum(kind == "switch" for _, kind in graph.nodes(data="kind")), 48 * 7 + 7 * 16
    (448, 448)
    >>> sum(rate for _, _, rate in graph.edges("gpu0", data="bandwidth")) / 1e9
    392.0
    """
    asked = Asked("two_level")
    n, size, each = asked.whole("nodes", nodes), asked.whole("gpus_per_node", gpus_per_node), asked.whole("l1", l1)
    n_planes, per = asked.whole("planes", planes), asked.lanes("lanes", lanes)
    above = size * per if l2 is None else asked.whole("l2", l2)
    if asked.sound("l1", "planes"):
        rule = f"{n_planes} planes do not divide evenly over {each} L1 switches of a node"
        asked.must(each % n_planes == 0, "planes", planes, rule, "Take a divisor of l1.")
    asked.size("nodes", nodes, n * each * (1 + size + above) + n * size + n_planes * above)
    ports = asked.ports(radix, ("an L1 switch", size * per + above), ("an L2 switch", n * (each // n_planes)))
    link = asked.link("scale-up", bandwidth, latency)
    asked.settle()
    tops = [[f"plane{plane}/l2.{j}" for j in range(above)] for plane in range(n_planes)]
    return asked.named(
        _wired([n, size, each, per], tops, ports, link), nodes=n, gpus_per_node=size, l1=each, planes=n_planes,
        lanes=per, l2=above, radix=radix, bandwidth=link.bandwidth, latency=link.latency,
    )  # fmt: skip


def _wired(counts: list[int], tops: list[list[str]], ports: int, link: Link) -> nx.Graph[str]:
    """Return nodes, GPUs of a node, L1 switches of a node and lanes wired, `tops` the L2 switches of each plane."""
    nodes, size, each, lanes = counts
    graph: nx.Graph[str] = nx.Graph()
    gpus = gpu_labels(nodes * size)
    add_gpus(graph, gpus)
    for plane, names in enumerate(tops):
        for name in names:
            add_switch(graph, name, "scale-up", ports, plane=plane, level=2)
    for node in range(nodes):
        inside = gpus[node * size : (node + 1) * size]
        graph.add_nodes_from(inside, host=f"host{node}")
        for i in range(each):
            name, plane = f"n{node}/l1.{i}", i % len(tops)
            add_switch(graph, name, "scale-up", ports, plane=plane, level=1, host=f"host{node}")
            for gpu in inside:
                add_cable(graph, gpu, name, link, lanes)
            for top in tops[plane]:
                add_cable(graph, name, top, link)
    return graph
