"""Which switches are leaves, spines, cores? Told from the wiring, and left out where it cannot be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any

import networkx as nx

__all__ = ["set_tiers"]

_TIERS = ("leaf", "spine", "core")


def set_tiers(graph: nx.Graph[str]) -> list[str]:
    """Set `tier` of the switches and return what there is to say about it.

    Switches that hold hosts are leaves, those one step above them spines, all further ones cores. A
    switch with few hosts (a quarter of the usual number or fewer) and more trunk cables than a
    leaf usually has is one above, with service hosts on it. Where leaves are joined to each other
    (a torus, a dragonfly, switches back to back) there are no tiers.
    """
    switches = graph.subgraph([node for node, data in graph.nodes(data=True) if data["kind"] == "switch"])
    hosts = {node: sum(data.get("lanes", 1) for data in _to(graph, node, "host")) for node in switches}
    trunks = {node: sum(data.get("lanes", 1) for data in _to(graph, node, "switch")) for node in switches}
    notes, flat = [], 0
    for part in map(sorted, nx.connected_components(switches)):
        holding = [node for node in part if hosts[node]]
        leaves = [node for node in holding if not _serves(node, holding, hosts, trunks)]
        if set(leaves) & {other for leaf in leaves for other in switches[leaf]}:
            flat += len(part)
            continue
        for step, layer in enumerate(nx.bfs_layers(switches, leaves)):
            graph.add_nodes_from(layer, tier=_TIERS[min(step, 2)])
        notes += [
            f"{node} holds {hosts[node]} host ports and {trunks[node]} trunk cables: taken as above the leaves"
            for node in holding if node not in leaves
        ]  # fmt: skip
    return [*notes, f"{flat} switches have no tier: switches with hosts are joined to each other"] if flat else notes


def _to(graph: nx.Graph[str], node: str, kind: str) -> list[dict[str, Any]]:
    return [data for other, data in graph[node].items() if graph.nodes[other]["kind"] == kind]


def _serves(node: str, holding: Sequence[str], hosts: Mapping[str, int], trunks: Mapping[str, int]) -> bool:
    """Whether a switch is one above the leaves that a few service hosts hang off."""
    usual_hosts = median_low(hosts[other] for other in holding)
    usual_trunks = median_low(trunks[other] for other in holding)
    return 4 * hosts[node] <= usual_hosts and trunks[node] > usual_trunks
