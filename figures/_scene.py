"""What is in this graph, sorted as it will be drawn? Boxes of GPUs, levels of switches above, links between."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
from numpy import float64
from numpy.typing import NDArray

from figures._graph import Link, Mark, links_of, mark_of, node_kind, nodes_of, whole
from figures._words import counted
from topo import ANNOUNCED, Fabric, Fault, InputError

__all__ = ["Group", "Level", "Scene", "scene"]

_TIERS = {"leaf": 1, "spine": 2, "core": 3}
_ENDS = ("gpu", "host")
_NAMES = ("host", "domain", "rack")  # the last that all of a box share names it

Nodes = Mapping[str, dict[str, Any]]


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
    switch stands for, 0 if that is not known. `network` are switches joined to each other
    rather than in levels; `hanging` the end points that a switch has without any box.
    """

    name: str
    domains: int
    groups: tuple[Group, ...]
    levels: tuple[Level, ...]
    links: tuple[Link, ...]
    kinds: dict[str, str]
    ranks: dict[str, int]
    planes: dict[str, int]
    marks: dict[str, Mark]
    network: tuple[str, ...]
    hanging: dict[str, tuple[str, ...]]

    @property
    def hubs(self) -> set[str]:
        """Scale-up switches in boxes."""
        return {hub for group in self.groups for hub in group.hubs}

    @property
    def n_ranks(self) -> int:
        """End points, GPUs or hosts."""
        return len(self.ranks)


def scene(graph: nx.Graph[str] | Fabric, loads: NDArray[float64] | None = None, seconds: float = 0.0) -> Scene:
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
    nodes, links = nodes_of(graph), links_of(graph, loads, seconds)
    kinds = {node: node_kind(data) for node, data in nodes.items()}
    marks = {node: mark_of(data) for node, data in nodes.items()}
    ranks = _ranks(nodes, kinds)
    groups = _groups(nodes, links, kinds, marks, ranks)
    levels = _levels(nodes, groups, links, kinds, marks)
    network = _network(levels, links, marks)
    hanging = _hanging(nodes, groups, levels, links)
    named = dict(graph.graph) if isinstance(graph, nx.Graph) else {"name": graph.name, "assumptions": graph.assumptions}
    return Scene(
        name=_titled(named), domains=_domains(named, groups, marks), groups=() if hanging else groups,
        levels=() if network else levels, links=links, kinds=kinds, ranks=ranks, marks=marks, network=network,
        planes={node: whole(data.get("planes", 1)) for node, data in nodes.items()}, hanging=hanging,
    )  # fmt: skip


def _titled(named: dict[str, Any]) -> str:
    """Return the name of a graph, and whether it is announced only."""
    return f"{named.get('name', '')}{' (announced)' if ANNOUNCED in (named.get('assumptions') or ()) else ''}"


def _domains(named: dict[str, Any], groups: Sequence[Group], marks: Mapping[str, Mark]) -> int:
    if named.get("domains"):
        return whole(named["domains"])
    sizes = {len(group.gpus) for group in groups}
    alike = len(groups) > 1 and len(sizes) == 1 and sizes != {1} and not _has_levels(marks)
    return len(groups) if alike else 0


def _has_levels(marks: Mapping[str, Mark]) -> bool:
    """Whether scale-up switches stand above others: a box is then a host, not a domain."""
    return any(mark.level > 1 for mark in marks.values())


def _groups(
    nodes: Nodes, links: Iterable[Link], kinds: dict[str, str], marks: Mapping[str, Mark], ranks: dict[str, int]
) -> tuple[Group, ...]:  # fmt: skip
    local: nx.Graph[str] = nx.Graph()
    local.add_nodes_from(node for node in nodes if marks[node].level == 1)
    local.add_edges_from(link.ends for link in links if _is_local(link, kinds, marks))
    _join_hosts(local, nodes, kinds)
    parts = [part for part in nx.connected_components(local) if any(kinds[node] in _ENDS for node in part)]
    parts.sort(key=lambda part: min(ranks[node] for node in part if node in ranks))
    up = {node for link in links if link.kind == "scale-up" for node in link.ends}
    order = {node: i for i, node in enumerate(nodes)}
    names = _NAMES[:1] if _has_levels(marks) else _NAMES
    sorted_parts = [sorted(part, key=lambda node: order[node]) for part in parts]
    return tuple(_labelled([_group(part, nodes, kinds, ranks, (i, names), up) for i, part in enumerate(sorted_parts)]))


def _is_local(link: Link, kinds: dict[str, str], marks: Mapping[str, Mark]) -> bool:
    """Whether a link stays inside a box: scale-up, pcie, or an end point's own NIC and CPU."""
    if any(marks[node].level > 1 for node in link.ends):
        return False
    ends = {kinds[node] for node in link.ends}
    return link.kind in ("scale-up", "pcie") or bool(ends & {"nic", "cpu"} and "switch" not in ends)


def _join_hosts(local: nx.Graph[str], nodes: Nodes, kinds: dict[str, str]) -> None:
    first: dict[Any, str] = {}
    for node in local:
        host = nodes[node].get("host")
        if host is not None and kinds[node] != "host" and first.setdefault(host, node) != node:
            local.add_edge(first[host], node)


def _ranks(nodes: Nodes, kinds: dict[str, str]) -> dict[str, int]:
    ends = [node for node in nodes if kinds[node] == "gpu"] or [node for node in nodes if kinds[node] == "host"]
    taken = set(ends)
    extra = [node for node in nodes if kinds[node] in _ENDS and node not in taken]
    given = {node: nodes[node].get("rank") for node in ends}
    places = {node: float(rank) if isinstance(rank, int) else math.inf for node, rank in given.items()}
    ends.sort(key=lambda node: places[node])
    return {node: i for i, node in enumerate([*ends, *extra])}


def _group(
    inside: list[str], nodes: Nodes, kinds: dict[str, str], ranks: dict[str, int], named: tuple[int, Sequence[str]],
    up: set[str],
) -> Group:  # fmt: skip
    gpus = tuple(sorted((node for node in inside if node in ranks), key=lambda node: ranks[node]))
    hubs = tuple(n for n in inside if n not in ranks and kinds[n] == "switch" and n in up)
    nics = tuple(n for n in inside if kinds[n] == "nic")
    taken = {*gpus, *hubs, *nics}
    others = tuple(n for n in inside if n not in taken)
    hosts = tuple(nodes[gpu].get("host") for gpu in gpus)
    label = str(gpus[0]) if len(inside) == 1 else f"domain {named[0]}"
    for name in named[1]:
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
    nodes: Nodes, groups: Iterable[Group], links: Iterable[Link], kinds: dict[str, str], marks: Mapping[str, Mark]
) -> tuple[Level, ...]:  # fmt: skip
    """Rows of switches: higher levels of scale-up, then by their tier, else by hops from the boxes."""
    inside = {node for group in groups for node in group.nodes}
    outer: nx.Graph[str] = nx.Graph()
    outer.add_nodes_from(nodes)
    outer.add_edges_from(link.ends for link in links)
    hops = nx.multi_source_dijkstra_path_length(outer, inside, weight=None) if inside else {}
    rows: dict[tuple[bool, int], list[str]] = {}
    for node, data in nodes.items():
        if node not in inside:
            out, level = marks[node].level == 1, marks[node].level - 1
            row = _TIERS.get(data.get("tier", ""), int(hops.get(node, 1))) if out else level
            rows.setdefault((out, row), []).append(node)
    return tuple(Level(_row_name(nodes, kinds, marks, rows[row]), tuple(rows[row])) for row in sorted(rows))


def _row_name(nodes: Nodes, kinds: dict[str, str], marks: Mapping[str, Mark], row: Sequence[str]) -> str:
    tiers = {nodes[node].get("tier") for node in row}
    if len(tiers) == 1 and tiers <= set(_TIERS):
        return str(tiers.pop())
    if marks[row[0]].level > 1:
        return f"L{marks[row[0]].level} switch"
    return "switch" if all(kinds[node] == "switch" for node in row) else "node"


def _network(levels: Sequence[Level], links: Iterable[Link], marks: Mapping[str, Mark]) -> tuple[str, ...]:
    """Return the only row of switches if they are joined to each other: they stand where they say, not in a row."""
    if len(levels) != 1:
        return ()
    row = set(levels[0].nodes)
    among = sum(row.issuperset(link.ends) for link in links)
    placed = all(marks[node].coordinates or marks[node].group is not None for node in row)
    joined = among > 0 if placed else len(row) > 2 and among >= len(row)
    return levels[0].nodes if joined else ()


def _hanging(
    nodes: Nodes, groups: Sequence[Group], levels: Sequence[Level], links: Iterable[Link]
) -> dict[str, tuple[str, ...]]:  # fmt: skip
    """Return the end points of every switch of the lowest row if there are no boxes, only such that hang on one."""
    alone = {group.nodes[0] for group in groups if len(group.nodes) == 1}
    lowest = set(levels[0].nodes) if levels else set()
    if len(alone) < len(groups) or any(nodes[node].get(name) is not None for node in alone for name in _NAMES):
        return {}
    above: dict[str, set[str]] = {node: set() for node in alone}
    for link in links:
        for node, other in (link.ends, link.ends[::-1]):
            if node in alone:
                above[node].add(other)
    if any(len(found) != 1 or not found <= lowest for found in above.values()):
        return {}
    hanging: dict[str, list[str]] = {}
    for group in groups:
        hanging.setdefault(next(iter(above[group.nodes[0]])), []).append(group.nodes[0])
    return {switch: tuple(ends) for switch, ends in hanging.items()}
