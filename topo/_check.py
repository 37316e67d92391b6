"""What is wrong with this graph? Everything, at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from numbers import Integral
from typing import Any

import networkx as nx

from topo._errors import Fault, InputError, suggest

__all__ = ["EDGE_KINDS", "NODE_KINDS", "TIERS", "check", "local_faults", "raise_faults", "rank_nodes", "require"]

NODE_KINDS = ("gpu", "switch", "nic", "cpu", "host")
EDGE_KINDS = ("scale-up", "scale-out", "pcie")
TIERS = ("scale-up", "leaf", "spine", "core")
_MOST_SHOWN = 20


def check(graph: nx.Graph[str]) -> list[Fault]:
    """Return everything wrong with a graph, in the order of its nodes and edges.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Nodes with `kind`, edges with `kind`, `bandwidth` [bytes/s per direction] and
        `latency` [s]; see docs/graph.md.

    Returns
    -------
    list of Fault
        Empty for a graph every verb takes. Verbs refuse a graph with any of these, but
        for links one way only: what can be sent over those still has a cost.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.Graph()
    >>> graph.add_node("a", kind="gpu")
    >>> graph.add_node("b", kind="gpu")
    >>> graph.add_edge("a", "b", kind="scale-up", bandwidth=-1.0, latency=0.0)
    >>> [fault.rule for fault in check(graph)]
    ['must be a finite number above zero [bytes/s]']
    """
    return _faults(graph) or list(_one_way_faults(graph))


def _faults(graph: nx.Graph[str]) -> list[Fault]:
    return local_faults(graph) or [*_domain_faults(graph), *_connection_faults(graph)]


def local_faults(graph: nx.Graph[str]) -> list[Fault]:
    """Return what is wrong with nodes and edges by themselves; edits take a graph that fell apart."""
    if not isinstance(graph, nx.Graph):
        return [
            Fault(
                "graph", type(graph).__name__, "is not a NetworkX graph", "Pass what topo.load or topo.build returns."
            )
        ]
    if graph.is_multigraph():
        cure = "Merge parallel cables into one edge: bandwidth of the bundle, lanes = their number."
        return [Fault("graph", type(graph).__name__, "a MultiGraph is not taken", cure)]
    return [*_graph_faults(graph), *_node_faults(graph), *_edge_faults(graph)]


def _one_way_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    if not isinstance(graph, nx.DiGraph):
        return
    place = {node: number for number, node in enumerate(rank_nodes(graph))}
    parts = _parts_with_ranks(nx.strongly_connected_components(graph), place)
    if len(parts) > 1:
        rule = f"leads one way only: {len(parts)} parts whose ranks do not reach each other both ways"
        cure = f"State both directions between {parts[0][0]!r} and {parts[1][0]!r}."
        yield Fault("graph", graph.graph.get("name", "graph"), rule, cure)


def require(graph: nx.Graph[str]) -> None:
    """Raise InputError with the faults of a graph, if it has any."""
    raise_faults(_faults(graph))


def raise_faults(faults: list[Fault]) -> None:
    """Raise InputError with the faults, if there are any."""
    if len(faults) > _MOST_SHOWN:
        more = Fault("graph", len(faults), f"has {len(faults) - _MOST_SHOWN} more faults", "topo.check lists them all.")
        faults = [*faults[:_MOST_SHOWN], more]
    if faults:
        raise InputError(*faults)


def rank_nodes(graph: nx.Graph[str]) -> list[str]:
    """Return the nodes that are ranks, in rank order: all GPUs, else all hosts."""
    for kind in ("gpu", "host"):
        found = [node for node, data in graph.nodes(data=True) if data.get("kind") == kind]
        if found:
            given: list[float] = [graph.nodes[node].get("rank", math.inf) for node in found]
            return [node for _, _, node in sorted(zip(given, range(len(found)), found, strict=True))]
    return []


def _graph_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    schema = graph.graph.get("schema", 1)
    if schema != 1:
        yield Fault("graph.schema", schema, "is not a schema this version reads", "It reads schema 1.")
    for name, chip in graph.graph.get("chips", {}).items():
        yield from _unit_faults(f"chip {name!r}", chip)
    if not any(data.get("kind") in ("gpu", "host") for _, data in graph.nodes(data=True)):
        yield Fault("graph", graph.number_of_nodes(), "has no node of kind gpu or host", "Give end points their kind.")


def _node_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    ranks: dict[object, str] = {}
    for node, data in graph.nodes(data=True):
        place = f"node {node!r}"
        if not isinstance(node, str):
            yield Fault(place, node, "a label must be a string", "Relabel with networkx.relabel_nodes(graph, str).")
        kind = data.get("kind")
        if kind not in NODE_KINDS:
            yield Fault(f"{place} kind", kind, "is not a kind of node", suggest(str(kind), NODE_KINDS))
        for key, fine, rule in _NODE_RULES:
            if data.get(key) is not None and not fine(data[key]):
                yield Fault(f"{place} {key}", data[key], rule, "Correct it, or leave it out.")
        yield from _plane_faults(place, data)
        yield from _unit_faults(place, data)
        rank = data.get("rank")
        if rank is None:
            continue
        if isinstance(rank, bool) or not isinstance(rank, Integral):
            yield Fault(f"{place} rank", rank, "must be a whole number", "Number the ranks from 0.")
        elif rank in ranks:
            yield Fault(f"{place} rank", rank, f"is also the rank of {ranks[rank]!r}", "Give every rank once.")
        else:
            ranks[rank] = node


#: attribute -> whether a value is fine, and the rule.
_NODE_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("forwards", lambda value: isinstance(value, bool), "must be true or false"),
    ("tier", lambda value: value in TIERS, f"must be one of {', '.join(TIERS)}"),
    ("domain", lambda value: isinstance(value, Hashable), "must be a number or a name"),
    ("host", lambda value: isinstance(value, Hashable), "must be a number or a name"),
    ("chip", lambda value: isinstance(value, str), "must be a name"),
    (
        "coordinates",
        lambda value: isinstance(value, list | tuple) and all(isinstance(x, Integral) for x in value),
        "must be a list of whole numbers",
    ),
)
#: Attributes of nodes, edges and chips that state what one unit costs [$] and draws [W].
_UNIT_KEYS = ("price", "power", "nic_price", "nic_power")


def _unit_faults(place: str, data: dict[str, Any]) -> Iterator[Fault]:
    for key in _UNIT_KEYS:
        if data.get(key) is not None and not (_is_number(data[key]) and data[key] >= 0):
            rule = f"must be a finite number, zero or more [{'$' if 'price' in key else 'W'}]"
            yield Fault(f"{place} {key}", data[key], rule, "Correct it, or leave it out.")


def _plane_faults(place: str, data: dict[str, Any]) -> Iterator[Fault]:
    planes, lanes, radix = data.get("planes", 1), data.get("plane_lanes"), data.get("radix", 1)
    if isinstance(radix, bool) or not isinstance(radix, Integral) or radix < 1:
        yield Fault(f"{place} radix", radix, "must be a whole number, one or more", "Count its ports, or leave it out.")
    if isinstance(planes, bool) or not isinstance(planes, Integral) or planes < 1:
        yield Fault(f"{place} planes", planes, "must be a whole number, one or more", "Count the parallel switches.")
    elif lanes is not None and not (
        isinstance(lanes, list)
        and all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 0 for n in lanes)
        and sum(int(n) > 0 for n in lanes) == planes
    ):
        rule = f"must list whole numbers, {planes} of them above zero as planes says"
        yield Fault(f"{place} plane_lanes", lanes, rule, "Give the lanes to each plane, 0 for one that failed.")


def _edge_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    for a, b, data in graph.edges(data=True):
        place = f"edge {a!r} - {b!r}"
        if a == b:
            yield Fault(place, a, "joins a node to itself", "Remove it.")
        if data.get("kind") not in EDGE_KINDS:
            yield Fault(
                f"{place} kind", data.get("kind"), "is not a kind of edge", suggest(str(data.get("kind")), EDGE_KINDS)
            )
        if not _is_number(data.get("bandwidth")) or data["bandwidth"] <= 0:
            rule = "must be a finite number above zero [bytes/s]"
            yield Fault(f"{place} bandwidth", data.get("bandwidth"), rule, "State it per direction.")
        if not _is_number(data.get("latency")) or data["latency"] < 0:
            yield Fault(
                f"{place} latency", data.get("latency"), "must be a finite number, zero or more [s]", "State it."
            )
        lanes = data.get("lanes", 1)
        if isinstance(lanes, bool) or not isinstance(lanes, Integral) or lanes < 1:
            yield Fault(f"{place} lanes", lanes, "must be a whole number, one or more", "Count the parallel links.")
        yield from _unit_faults(place, data)


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool | str) and math.isfinite(value)
    except TypeError:
        return False


def scale_up_components(graph: nx.Graph[str]) -> list[set[str]]:
    """Return the node sets joined by scale-up edges, in node order, singletons of GPUs included."""
    only: nx.Graph[str] = nx.Graph()
    only.add_nodes_from(graph)
    only.add_edges_from((a, b) for a, b, data in graph.edges(data=True) if data["kind"] == "scale-up")
    kinds = nx.get_node_attributes(graph, "kind")
    return [c for c in nx.connected_components(only) if any(kinds[node] in ("gpu", "host") for node in c) or len(c) > 1]


def _domain_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    homes: dict[object, int] = {}
    for index, component in enumerate(scale_up_components(graph)):
        names = {
            graph.nodes[node]["domain"]: node
            for node in sorted(component)
            if graph.nodes[node].get("domain") is not None
        }
        if len(names) > 1:
            first, second = list(names.items())[:2]
            rule = f"is joined by scale-up edges to {second[1]!r} of domain {second[0]!r}"
            yield Fault(
                f"node {first[1]!r} domain", first[0], rule, "A domain is one connected part of scale-up edges."
            )
        for name, node in names.items():
            if homes.setdefault(name, index) != index:
                rule = "is also the domain of nodes that no scale-up edge joins to it"
                yield Fault(f"node {node!r} domain", name, rule, "Give every scale-up domain its own id.")


def _connection_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    place = {node: number for number, node in enumerate(rank_nodes(graph))}
    name = graph.graph.get("name", "graph")
    holding = _parts_with_ranks(nx.connected_components(graph.to_undirected(as_view=True)), place)
    if len(holding) > 1:
        sizes = ", ".join(str(len(part)) for part in holding[:8])
        rule = f"is disconnected: {len(holding)} parts with {sizes}{', ...' if len(holding) > 8 else ''} ranks"
        cure = f"Join them: nothing leads from {holding[0][0]!r} to {holding[1][0]!r}."
        yield Fault("graph", name, rule, cure)


def _parts_with_ranks(parts: Iterable[set[str]], place: dict[str, int]) -> list[list[str]]:
    """Return the ranks of every part that has any, in rank order."""
    found = [sorted((node for node in part if node in place), key=lambda node: place[node]) for part in parts]
    return sorted((part for part in found if part), key=lambda part: place[part[0]])
