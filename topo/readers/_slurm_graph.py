"""Which graph do Slurm's groups of nodes make? Trees of switches, rings and tori; speeds are assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import prod

import networkx as nx

from topo._design import DEFAULTS
from topo._errors import Fault, InputError
from topo._nodelist import expand_hostlist
from topo._tori import Lattice
from topo.readers._ib_names import natural
from topo.readers._reading import Reading, Source
from topo.readers._tiers import set_tiers
from topo.units import parse_quantity

__all__ = ["Group", "Lattices", "Tree", "lattice_reading", "tree_reading"]

#: Slurm states no speed: every node is taken to have one such link, and switches to be non-blocking.
_SPEED = "400 Gb/s"
_LATENCY = "scale_out.latency"
_SAID = (
    f"scale_out.bandwidth = {_SPEED} per node (assumed; Slurm states no speed: topo.scale sets another)",
    f"{_LATENCY} = {DEFAULTS[_LATENCY]} per link (assumed; the file states none)",
)


@dataclass(frozen=True)
class Group:
    """A switch or block as its entry states it; `place` a line number or a key."""

    name: str
    children: list[str]
    nodes: list[str]
    place: int | str


@dataclass
class Tree:
    """Switches by name while a file is read; `block` is node -> its block, where stated."""

    kind: str
    source: Source
    groups: dict[str, Group] = field(default_factory=dict)
    block: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, place: int | str, value: object, rule: str, cure: str) -> None:
        """Add what is wrong with a line or key."""
        self.faults.append(Fault(_place(place), value, rule, cure, self.source.file))

    def names(self, text: str, place: int | str) -> list[str]:
        """Return the names of a hostlist; what is wrong with it is a fault of the place."""
        try:
            return expand_hostlist(text, place=_place(place), file=self.source.file) if text else []
        except InputError as error:
            self.faults += error.faults
            return []

    def add(self, group: Group) -> None:
        """Take a switch; stated twice, both must say the same."""
        was = self.groups.setdefault(group.name, group)
        if was is group:
            return
        if (was.children, was.nodes) == (group.children, group.nodes):
            self.notes.append(f"{_place(group.place)} says again what {_place(was.place)} says of {group.name}")
        else:
            self.fault(
                group.place, group.name, f"is stated otherwise by {_place(was.place)}", "Take one of the two out."
            )


@dataclass
class Lattices:
    """Rings and tori: the nodes of each, its sides, and where it stands in the file."""

    kind: str
    source: Source
    grids: list[tuple[list[str], tuple[int, ...], str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _place(place: int | str) -> str:
    return f"line {place}" if isinstance(place, int) else place


def tree_reading(tree: Tree) -> Reading:
    """Return a tree of switches with its nodes as hosts; raises everything wrong with it at once."""
    tree.faults += _tree_faults(tree)
    if not tree.faults and not any(group.nodes for group in tree.groups.values()):
        tree.fault("file", tree.source.file, "names no node", "Give Nodes= to the leaf switches.")
    if tree.faults:
        raise InputError(*tree.faults)
    graph = _graph(tree.source, (node for group in tree.groups.values() for node in group.nodes))
    for node, block in tree.block.items():
        if node in graph:
            graph.nodes[node]["block"] = block
    switches = sorted(tree.groups, key=natural)
    graph.add_nodes_from(switches, kind="switch")
    rate, latency = parse_quantity(_SPEED, "bandwidth"), parse_quantity(DEFAULTS[_LATENCY], "seconds")
    for name, (children, below) in _below(tree).items():
        for node in tree.groups[name].nodes:
            graph.add_edge(node, name, kind="scale-out", bandwidth=rate, latency=latency, lanes=1)
        for child, share in children.items():
            graph.add_edge(
                child, name, kind="scale-out", bandwidth=share * rate, latency=latency, lanes=max(1, int(share))
            )
        if not below:
            tree.notes.append(f"switch {name} has no nodes")
    few = min((group for group in tree.groups.values() if group.nodes), key=lambda group: len(group.nodes))
    most = max(len(group.nodes) for group in tree.groups.values())
    if len(few.nodes) < most:
        tree.notes.append(f"leaves hold {len(few.nodes)} ({few.name}) to {most} nodes")
    said = (
        *_SAID,
        "links between switches carry what all nodes below them can send: non-blocking (assumed; no cable is stated)",
    )
    return _finished(tree.kind, graph, [*tree.notes, *set_tiers(graph)], said)


def _below(tree: Tree) -> dict[str, tuple[dict[str, float], int]]:
    """Return switch -> (child -> node links its uplink stands for, nodes below); a child of several parents shares."""
    parents: dict[str, int] = {}
    for group in tree.groups.values():
        for child in dict.fromkeys(group.children):
            parents[child] = parents.get(child, 0) + 1
    below: dict[str, int] = {}
    found: dict[str, tuple[dict[str, float], int]] = {}
    for name in _order(tree):
        group = tree.groups[name]
        below[name] = len(group.nodes) + sum(below[child] for child in dict.fromkeys(group.children))
        found[name] = ({child: below[child] / parents[child] for child in group.children if below[child]}, below[name])
    return found


def _order(tree: Tree) -> list[str]:
    return list(TopologicalSorter({name: group.children for name, group in tree.groups.items()}).static_order())


def _tree_faults(tree: Tree) -> Iterator[Fault]:
    """Yield what makes switches no tree over nodes; nodes of one name are one node."""
    file = tree.source.file
    home: dict[str, Group] = {}
    for group in tree.groups.values():
        unknown = [child for child in group.children if child not in tree.groups]
        if unknown:
            rule = f"names {len(unknown)} switches that no entry states, {', '.join(unknown[:3])}"
            yield Fault(_place(group.place), group.name, rule, "Restore their entries: the file may be cut.", file)
        for node in group.nodes:
            if node in tree.groups:
                yield Fault(_place(group.place), node, "is a switch and a node", "Give each its own name.", file)
            if home.setdefault(node, group) is not group:
                rule = f"is a node of {group.name} and of {home[node].name}"
                yield Fault(_place(group.place), node, rule, "Put it under one of them.", file)
    try:
        _order(tree)
    except CycleError as error:
        yield Fault("switches", " > ".join(error.args[1]), "are above themselves", "Make them a tree.", file)


def lattice_reading(found: Lattices) -> Reading:
    """Return rings or tori of hosts that pass traffic on."""
    faults = []
    home: dict[str, str] = {}
    for nodes, dims, place in found.grids:
        if len(nodes) != prod(dims):
            sides = " x ".join(map(str, dims))
            faults.append(
                Fault(place, len(nodes), f"nodes do not fill {sides}", "Name every node once.", found.source.file)
            )
        for node, times in Counter(nodes).items():
            if home.setdefault(node, place) != place or times > 1:
                faults.append(Fault(place, node, "stands in two places", "Name every node once.", found.source.file))
    if not home and not faults:
        faults.append(
            Fault("file", found.source.file, "names no node", "Give nodes to the rings or tori.", found.source.file)
        )
    if faults:
        raise InputError(*faults)
    graph = _graph(found.source, home)
    rate, latency = parse_quantity(_SPEED, "bandwidth"), parse_quantity(DEFAULTS[_LATENCY], "seconds")
    for nodes, dims, _ in found.grids:
        lattice = Lattice(dims, (True,) * len(dims), {}, tuple(range(len(dims))))
        for node, point in zip(nodes, lattice.points(), strict=True):
            graph.nodes[node].update(forwards=True, coordinates=point)
        for a, b, axis in lattice.steps():
            lanes = graph.edges[nodes[a], nodes[b]]["lanes"] + 1 if graph.has_edge(nodes[a], nodes[b]) else 1
            graph.add_edge(
                nodes[a], nodes[b], kind="scale-out", bandwidth=lanes * rate, latency=latency, lanes=lanes, axis=axis
            )
    said = (
        _SAID[0].replace("per node", "per link"),
        _SAID[1],
        "nodes pass on what is not for them, and rings close (assumed; x runs fastest)",
    )
    return _finished(found.kind, graph, found.notes, said)


def _graph(source: Source, nodes: Iterable[str]) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph(schema=1, name=source.file.replace("\\", "/").rpartition("/")[2])
    for rank, node in enumerate(sorted(nodes, key=natural)):
        graph.add_node(node, kind="host", rank=rank)
    return graph


def _finished(kind: str, graph: nx.Graph[str], notes: list[str], said: tuple[str, ...]) -> Reading:
    graph.graph["assumptions"] = list(said)
    hosts = {node for node, data in graph.nodes(data=True) if data["kind"] == "host"}
    sizes = [len(hosts & part) for part in nx.connected_components(graph)]
    held = f"{len(sizes)} parts that nothing joins, with {', '.join(map(str, sizes[:8]))} nodes"
    split = [f"{held}: a collective over all has no path"] if len(sizes) > 1 else []
    return Reading(kind, graph, (*dict.fromkeys(notes), *split, *said))
