"""Which GPUs of a host did NVLink join before there were switches? Hybrid cube mesh and bridge pairs.

Pairs without a link need PCIe: one CPU stands for the host's PCIe tree.
"""

from __future__ import annotations

from typing import Any

import networkx as nx

from topo._asked import Asked, Link, add_cable, add_gpus, gpu_labels
from topo._design import DEFAULTS

__all__ = ["bridge_pairs", "hybrid_cube_mesh"]

#: Links between the GPUs of a DGX-1 V100, a row and column each; as its `nvidia-smi topo -m` prints.
CUBE_MESH = (
    (0, 1, 1, 2, 2, 0, 0, 0), (1, 0, 2, 1, 0, 2, 0, 0), (1, 2, 0, 2, 0, 0, 1, 0), (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2), (0, 2, 0, 0, 1, 0, 2, 1), (0, 0, 1, 0, 1, 2, 0, 2), (0, 0, 0, 1, 2, 1, 2, 0),
)  # fmt: skip
#: PCIe 4.0 with 16 lanes.
PCIE = "32 GB/s"


def hybrid_cube_mesh(bandwidth: Any = None, latency: Any = None, pcie: Any = None) -> nx.Graph[str]:
    """Return the 8 GPUs of a DGX-1 V100: 24 links, 6 a GPU; 16 pairs linked, 8 by one link and 8 by two.

    Parameters
    ----------
    bandwidth : str or number, optional
        Per link and direction; 25 GB/s for a V100.
    latency : str or number, optional
        Per link.
    pcie : str or number, optional
        PCIe bandwidth of a GPU and direction. With it the GPUs hang on a CPU as well, which
        joins the 12 pairs that no NVLink joins; GPUs do not forward.

    References
    ----------
    .. [1] NVIDIA, "NVIDIA DGX-1 With Tesla V100 System Architecture", white paper.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("hybrid_cube_mesh", bandwidth="25 GB/s")
    >>> sum(lanes for _, _, lanes in graph.edges(data="lanes")), graph.number_of_edges()
    (24, 16)
    """
    asked = Asked("hybrid_cube_mesh")
    link = asked.link("scale-up", bandwidth, latency)
    bus = Link("pcie", asked.rate(pcie, "pcie"), link.latency) if pcie is not None else None
    asked.settle()
    pairs = {(i, j): lanes for i, row in enumerate(CUBE_MESH) for j, lanes in enumerate(row) if i < j and lanes}
    graph = _host(8, pairs, link, bus)
    if bus is None:
        asked.said.append("12 of 28 pairs of GPUs have no NVLink and no other path: pcie= gives them one")
    rates = {"bandwidth": link.bandwidth, "latency": link.latency, "pcie": bus.bandwidth if bus else None}
    return asked.named(graph, **rates)


def bridge_pairs(n: int, lanes: int = 1, bandwidth: Any = None, latency: Any = None, pcie: Any = None) -> nx.Graph[str]:
    """Return n GPUs of one host, neighbours 2 i and 2 i + 1 joined by an NVLink bridge, all by PCIe.

    n/2 bridges of `lanes` links; with more than one pair n PCIe edges to one CPU.

    Parameters
    ----------
    n : int
        GPUs, an even number.
    lanes : int, optional
        Links of a pair: 12 for A100 PCIe, 18 for H100 NVL.
    bandwidth, latency : str or number, optional
        Per link, bandwidth per direction.
    pcie : str or number, optional
        PCIe bandwidth of a GPU and direction, by default 32 GB/s.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("bridge_pairs", n=4, lanes=12, bandwidth="25 GB/s")
    >>> graph.edges["gpu0", "gpu1"]["bandwidth"], graph.edges["gpu0", "cpu"]["kind"]
    (300000000000.0, 'pcie')
    """
    asked = Asked("bridge_pairs")
    size, each = asked.whole("n", n), asked.lanes("lanes", lanes)
    if asked.sound("n"):
        near = f"{size - 1} or {size + 1}" if size > 1 else "2"
        asked.must(size % 2 == 0, "n", n, "is odd, and bridges join pairs", f"Take {near}.")
    asked.size("n", n, 3 * size)
    link = asked.link("scale-up", bandwidth, latency)
    if pcie is None and size > 2:
        asked.said.append(f"pcie = {PCIE} per GPU and direction, {DEFAULTS['scale_up.latency']} per link: assumed")
    bus = Link("pcie", asked.rate(PCIE if pcie is None else pcie, "pcie"), asked.late("0.5 us", "scale-up"))
    asked.settle()
    pairs = {(i, i + 1): each for i in range(0, size, 2)}
    graph = _host(size, pairs, link, bus if size > 2 else None)
    return asked.named(
        graph, n=size, lanes=each, bandwidth=link.bandwidth, latency=link.latency, pcie=bus.bandwidth
    )  # fmt: skip


def _host(n: int, pairs: dict[tuple[int, int], int], link: Link, bus: Link | None) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    labels = gpu_labels(n)
    add_gpus(graph, labels)
    for (i, j), lanes in pairs.items():
        add_cable(graph, labels[i], labels[j], link, lanes)
    if bus is not None:
        graph.add_node("cpu", kind="cpu", forwards=True)
        for label in labels:
            add_cable(graph, label, "cpu", bus)
    for _, data in graph.nodes(data=True):
        data["host"] = "host0"
    return graph
