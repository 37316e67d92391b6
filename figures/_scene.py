"""What is in this graph, sorted as it will be drawn? Boxes of GPUs, levels of switches above, links between."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from figures._words import counted
from topo import EDGE_KINDS, NODE_KINDS, Fabric, Fault, InputError

__all__ = ["Group", "Level", "Link", "Scene", "scene"]

_TIERS = {"leaf": 1, "spine": 2, "core": 3}
_ENDS = ("gpu", "host")


@dataclass(frozen=True)
class Link:
    """What joins two nodes, both directions as one: the larger bandwidth [bytes/s], the busier utilisation."""

    ends: tuple[str, str]
    kind: str
    bandwidth: float
    utilisation: float | None


@dataclass(frozen=True)
class Group:
    """Nodes of one box: end points in rank order with their hosts, scale-up switches, NICs, the rest."""

    label: str
    gpus: tuple[str, ...]
    hosts: tuple[Any, ...]
    hubs: tuple[str, ...]
    nics: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node of the box."""
        return (*self.gpus, *self.hubs, *self.nics, *self.others)


@dataclass(frozen=True)
class Level:
    """Switches the same way up, and what a row of them is called."""

    name: str
    nodes: tuple[str, ...]

    @property
    def count(self) -> str:
        """How many there are, in words."""
        return counted(len(self.nodes), self.name)


@dataclass(frozen=True)
class Scene:
    """A graph, sorted.

    `domains` is how many alike it has, 0 if they differ; `planes` the number a folded
    switch stands for, 0 if that is not known.
    """

    name: str
    domains: int
    groups: tuple[Group, ...]
    levels: tuple[Level, ...]
    links: tuple[Link, ...]
    kinds: dict[str, str]
    ranks: dict[str, int]
    planes: dict[str, int]

    @property
    def hubs(self) -> set[str]:
        """Scale-up switches."""
        return {hub for group in self.groups for hub in group.hubs}

    @property
    def n_ranks(self) -> int:
        """End points, GPUs or hosts."""
        return len(self.ranks)


def scene(graph: nx.Graph[str] | Fabric, loads: NDArray[np.float64] | None = None, seconds: float = 0.0) -> Scene:
    """Sort a graph; nothing is required of it but nodes and edges.

    Parameters
    ----------
    graph : networkx graph or Fabric
        Attributes that are missing are inferred.
    loads : (links,) float, optional
        Bytes over every directed link, in the order of `topo.Fabric.from_graph`.
    seconds : float, optional
        Time they take [s].
    """
    if not isinstance(graph, nx.Graph | Fabric):
        raise InputError(
            Fault("graph", type(graph).__name__, "is not a NetworkX graph", "Pass what topo.load returns.")
        )
    nodes = _nodes(graph)
    links = _links(graph, loads, seconds)
    kinds = {node: _kind(data) for node, data in nodes.items()}
    local: nx.Graph[str] = nx.Graph()
    local.add_nodes_from(nodes)
    local.add_edges_from(link.ends for link in links if _is_local(link, kinds))
    _join_hosts(local, nodes, kinds)
    ranks = _ranks(nodes, kinds)
    parts = [part for part in nx.connected_components(local) if any(kinds[node] in _ENDS for node in part)]
    parts.sort(key=lambda part: min(ranks[node] for node in part if node in ranks))
    up = {node for link in links if link.kind == "scale-up" for node in link.ends}
    order = {node: i for i, node in enumerate(nodes)}
    sorted_parts = [sorted(part, key=lambda node: order[node]) for part in parts]
    groups = tuple(_labelled([_group(part, nodes, kinds, ranks, i, up) for i, part in enumerate(sorted_parts)]))
    named = dict(graph.graph) if isinstance(graph, nx.Graph) else {"name": graph.name}
    return Scene(
        name=str(named.get("name", "")), domains=_domains(named, groups), groups=groups,
        levels=_levels(nodes, groups, links, kinds), links=links, kinds=kinds, ranks=ranks,
        planes={node: _whole(data.get("planes", 1)) for node, data in nodes.items()},
    )  # fmt: skip


def _domains(named: dict[str, Any], groups: Sequence[Group]) -> int:
    sizes = {len(group.gpus) for group in groups}
    alike = len(groups) > 1 and len(sizes) == 1 and sizes != {1}
    return _whole(named["domains"]) if named.get("domains") else len(groups) if alike else 0


def _nodes(graph: nx.Graph[str] | Fabric) -> dict[str, dict[str, Any]]:
    if isinstance(graph, nx.Graph):
        return {node: {key: _plain(value) for key, value in graph.nodes[node].items()} for node in graph}
    nodes: dict[str, dict[str, Any]] = {}
    for i, label in enumerate(graph.labels):
        nodes[label] = {"kind": NODE_KINDS[graph.node_kind[i]], "planes": 0}
        for name, values in (("domain", graph.domain), ("host", graph.host)):
            if values[i] >= 0:
                nodes[label][name] = int(values[i]) if name == "domain" else f"host{values[i]}"
    for rank, i in enumerate(graph.ranks):
        nodes[graph.labels[i]]["rank"] = rank
    return nodes


def _directed(graph: nx.Graph[str] | Fabric) -> Iterator[tuple[str, str, str, float]]:
    """Yield end, end, kind and bandwidth of every directed link, in the order of a Fabric's rows."""
    if isinstance(graph, Fabric):
        for a, b, kind, bandwidth in zip(graph.source, graph.target, graph.link_kind, graph.bandwidth, strict=True):
            yield graph.labels[a], graph.labels[b], EDGE_KINDS[kind], float(bandwidth)
        return
    for u, v, data in graph.edges(data=True):
        yield u, v, _edge_kind(data), _number(data.get("bandwidth"))
        if not graph.is_directed():
            yield v, u, _edge_kind(data), _number(data.get("bandwidth"))


def _links(graph: nx.Graph[str] | Fabric, loads: NDArray[np.float64] | None, seconds: float) -> tuple[Link, ...]:
    rows = list(_directed(graph))
    if loads is not None and len(loads) != len(rows):
        rule = f"has loads of {len(loads)} directed links and the graph has {len(rows)}"
        raise InputError(Fault("cost", "Cost", rule, "Pass the graph it was worked out on."))
    found: dict[tuple[str, str], Link] = {}
    for row, (u, v, kind, bandwidth) in enumerate(rows):
        if u == v:
            continue
        ends = (v, u) if (v, u) in found else (u, v)
        held = found.get(ends)
        use = None if loads is None else _ratio(float(loads[row]), bandwidth * seconds)
        if held is not None:
            bandwidth = max(bandwidth, held.bandwidth)
            use = None if use is None or held.utilisation is None else max(use, held.utilisation)
        found[ends] = Link(ends, kind, bandwidth, use)
    return tuple(found.values())


def _ratio(load: float, capacity: float) -> float:
    return load / capacity if capacity > 0 else 0.0


def _number(value: Any) -> float:
    try:
        return float(value) if math.isfinite(value) and value > 0 else 0.0
    except TypeError:
        return 0.0


def _plain(value: Any) -> Any:
    """Return what can be compared and looked up: an attribute of another type by its name."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 1


def _kind(data: dict[str, Any]) -> str:
    kind = data.get("kind")
    return kind if kind in NODE_KINDS else ("switch" if data.get("tier") else "other")


def _edge_kind(data: dict[str, Any]) -> str:
    kind = data.get("kind")
    return kind if kind in EDGE_KINDS else "other"


def _is_local(link: Link, kinds: dict[str, str]) -> bool:
    """Whether a link stays inside a box: scale-up, pcie, or an end point's own NIC and CPU."""
    ends = {kinds[node] for node in link.ends}
    return link.kind in ("scale-up", "pcie") or bool(ends & {"nic", "cpu"} and "switch" not in ends)


def _join_hosts(local: nx.Graph[str], nodes: dict[str, dict[str, Any]], kinds: dict[str, str]) -> None:
    first: dict[Any, str] = {}
    for node, data in nodes.items():
        host = data.get("host")
        if host is not None and kinds[node] != "host" and first.setdefault(host, node) != node:
            local.add_edge(first[host], node)


def _ranks(nodes: dict[str, dict[str, Any]], kinds: dict[str, str]) -> dict[str, int]:
    ends = [node for node in nodes if kinds[node] == "gpu"] or [node for node in nodes if kinds[node] == "host"]
    taken = set(ends)
    extra = [node for node in nodes if kinds[node] in _ENDS and node not in taken]
    given = {node: nodes[node].get("rank") for node in ends}
    places = {node: float(rank) if isinstance(rank, int) else math.inf for node, rank in given.items()}
    ends.sort(key=lambda node: places[node])
    return {node: i for i, node in enumerate([*ends, *extra])}


def _group(
    inside: list[str], nodes: dict[str, dict[str, Any]], kinds: dict[str, str], ranks: dict[str, int], number: int,
    up: set[str],
) -> Group:  # fmt: skip
    gpus = tuple(sorted((node for node in inside if node in ranks), key=lambda node: ranks[node]))
    hubs = tuple(n for n in inside if n not in ranks and kinds[n] == "switch" and n in up)
    nics = tuple(n for n in inside if kinds[n] == "nic")
    others = tuple(n for n in inside if n not in {*gpus, *hubs, *nics})
    hosts = tuple(nodes[gpu].get("host") for gpu in gpus)
    label = str(gpus[0]) if len(inside) == 1 else f"domain {number}"
    for name in ("host", "domain", "rack"):  # the last that all of them share names the box
        values = list(dict.fromkeys(nodes[n].get(name) for n in gpus))
        if len(values) == 1 and values[0] is not None:
            label = str(values[0]) if name == "host" or str(values[0]).startswith(name) else f"{name} {values[0]}"
    return Group(label, gpus, hosts, hubs, nics, others)


def _labelled(groups: list[Group]) -> Iterator[Group]:
    """Tell apart boxes of one label, such as several domains of one rack."""
    count = Counter(group.label for group in groups)
    for number, group in enumerate(groups):
        yield replace(group, label=f"{group.label}.{number}") if count[group.label] > 1 else group


def _levels(
    nodes: dict[str, dict[str, Any]], groups: Iterable[Group], links: Iterable[Link], kinds: dict[str, str]
) -> tuple[Level, ...]:  # fmt: skip
    """Rows of switches, by their tier, else by hops from the boxes."""
    inside = {node for group in groups for node in group.nodes}
    outer: nx.Graph[str] = nx.Graph()
    outer.add_nodes_from(nodes)
    outer.add_edges_from(link.ends for link in links)
    hops = nx.multi_source_dijkstra_path_length(outer, inside, weight=None) if inside else {}
    rows: dict[int, list[str]] = {}
    for node, data in nodes.items():
        if node not in inside:
            rows.setdefault(_TIERS.get(data.get("tier", ""), int(hops.get(node, 1))), []).append(node)
    return tuple(Level(_row_name(nodes, kinds, rows[row]), tuple(rows[row])) for row in sorted(rows))


def _row_name(nodes: dict[str, dict[str, Any]], kinds: dict[str, str], row: Sequence[str]) -> str:
    tiers = {nodes[node].get("tier") for node in row}
    if len(tiers) == 1 and tiers <= set(_TIERS):
        return str(tiers.pop())
    return "switch" if all(kinds[node] == "switch" for node in row) else "node"
