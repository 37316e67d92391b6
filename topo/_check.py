"""What is wrong with this graph? Everything, at once.

Rules look at each distinct value once; only where one breaks are its places looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from numbers import Integral
from operator import itemgetter
from typing import Any

import networkx as nx
import numpy as np

from topo._columns import Columns, Rows, distinct
from topo._errors import Fault, InputError, suggest

__all__ = [
    "EDGE_KINDS", "NODE_KINDS", "TIERS", "check", "local_faults", "raise_faults", "rank_nodes", "require",
    "scale_up_components",
]  # fmt: skip

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
    if faults := _type_faults(graph):
        return faults
    columns = Columns.of(graph)
    return _faults(columns) or list(_one_way_faults(columns))


def require(graph: nx.Graph[str]) -> Columns:
    """Raise InputError with the faults of a graph, if it has any; else return what was read of it."""
    raise_faults(_type_faults(graph))
    columns = Columns.of(graph)
    raise_faults(_faults(columns))
    return columns


def local_faults(graph: nx.Graph[str]) -> list[Fault]:
    """Return what is wrong with nodes and edges by themselves; edits take a graph that fell apart."""
    return _type_faults(graph) or _local_faults(Columns.of(graph))


def raise_faults(faults: list[Fault]) -> None:
    """Raise InputError with the faults, if there are any."""
    if len(faults) > _MOST_SHOWN:
        more = Fault("graph", len(faults), f"has {len(faults) - _MOST_SHOWN} more faults", "topo.check lists them all.")
        faults = [*faults[:_MOST_SHOWN], more]
    if faults:
        raise InputError(*faults)


def rank_nodes(graph: nx.Graph[str]) -> list[str]:
    """Return the nodes that are ranks, in rank order: all GPUs, else all hosts."""
    columns = Columns.of(graph)
    return [columns.labels[i] for i in columns.ranks]


def scale_up_components(graph: nx.Graph[str]) -> list[set[str]]:
    """Return the nodes of every scale-up domain, in node order, GPUs alone included."""
    only: nx.Graph[str] = nx.Graph()
    only.add_nodes_from(graph)
    only.add_edges_from((a, b) for a, b, data in graph.edges(data=True) if data["kind"] == "scale-up")
    kinds = nx.get_node_attributes(graph, "kind")
    return [c for c in nx.connected_components(only) if any(kinds[node] in ("gpu", "host") for node in c) or len(c) > 1]


def _type_faults(graph: object) -> list[Fault]:
    if not isinstance(graph, nx.Graph):
        cure = "Pass what topo.load or topo.build returns."
        return [Fault("graph", type(graph).__name__, "is not a NetworkX graph", cure)]
    if graph.is_multigraph():
        cure = "Merge parallel cables into one edge: bandwidth of the bundle, lanes = their number."
        return [Fault("graph", type(graph).__name__, "a MultiGraph is not taken", cure)]
    return []


def _faults(columns: Columns) -> list[Fault]:
    return _local_faults(columns) or [*_domain_faults(columns), *_connection_faults(columns)]


def _local_faults(columns: Columns) -> list[Fault]:
    """Return the faults of the graph, of nodes and of edges, all of one node or edge together."""
    by_row = itemgetter(0)
    return [
        *_graph_faults(columns),
        *(fault for _, fault in sorted(_node_faults(columns), key=by_row)),
        *(fault for _, fault in sorted(_edge_faults(columns), key=by_row)),
    ]


def _graph_faults(columns: Columns) -> Iterator[Fault]:
    schema = columns.graph.get("schema", 1)
    if schema != 1:
        yield Fault("graph.schema", schema, "is not a schema this version reads", "It reads schema 1.")
    chips = columns.graph.get("chips", {})
    names = list(chips)
    for _, fault in _broken(_UNIT_RULES, Rows(chips.values()), lambda i: f"chip {names[i]!r}"):
        yield fault
    if not any(kind in ("gpu", "host") for kind in columns.nodes.column("kind")):
        yield Fault("graph", len(columns.labels), "has no node of kind gpu or host", "Give end points their kind.")


@dataclass(frozen=True)
class _Rule:
    """What an attribute must be, and how to mend it."""

    key: str
    fine: Callable[[Any], bool]
    rule: str
    cure: str
    default: Any = None
    known: tuple[str, ...] = ()


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool | str) and math.isfinite(value)
    except TypeError:
        return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_whole(value) and bool(value >= 1)


def _is_place(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(x, Integral) for x in value)


_COUNT = "must be a whole number, one or more"
_LEAVE = "Correct it, or leave it out."
_NODE_RULES = (
    _Rule("kind", lambda value: value in NODE_KINDS, "is not a kind of node", "", known=NODE_KINDS),
    _Rule("forwards", lambda value: value is None or isinstance(value, bool), "must be true or false", _LEAVE),
    _Rule("tier", lambda value: value is None or value in TIERS, f"must be one of {', '.join(TIERS)}", _LEAVE),
    _Rule("domain", lambda value: isinstance(value, Hashable), "must be a number or a name", _LEAVE),
    _Rule("host", lambda value: isinstance(value, Hashable), "must be a number or a name", _LEAVE),
    _Rule("chip", lambda value: value is None or isinstance(value, str), "must be a name", _LEAVE),
    _Rule("coordinates", lambda value: value is None or _is_place(value), "must be a list of whole numbers", _LEAVE),
    _Rule("radix", _is_count, _COUNT, "Count its ports, or leave it out.", 1),
    _Rule("planes", _is_count, _COUNT, "Count the parallel switches.", 1),
)
#: What one unit costs [$] and draws [W]: of nodes, edges and chips.
_UNIT_RULES = tuple(
    _Rule(
        key, lambda value: value is None or (_is_number(value) and value >= 0),
        f"must be a finite number, zero or more [{'$' if 'price' in key else 'W'}]", _LEAVE,
    )
    for key in ("price", "power", "nic_price", "nic_power")
)  # fmt: skip
_EDGE_RULES = (
    _Rule("kind", lambda value: value in EDGE_KINDS, "is not a kind of edge", "", known=EDGE_KINDS),
    _Rule(
        "bandwidth", lambda value: _is_number(value) and value > 0,
        "must be a finite number above zero [bytes/s]", "State it per direction.",
    ),
    _Rule(
        "latency", lambda value: _is_number(value) and value >= 0,
        "must be a finite number, zero or more [s]", "State it.",
    ),
    _Rule("lanes", _is_count, _COUNT, "Count the parallel links.", 1),
)  # fmt: skip


def _broken(rules: tuple[_Rule, ...], rows: Rows, place: Callable[[int], str]) -> Iterator[tuple[int, Fault]]:
    """Yield rows that break a rule, rule by rule."""
    for rule in rules:
        values = rows.column(rule.key, rule.default)
        if all(map(rule.fine, distinct(values))):
            continue
        for i, value in enumerate(values):
            if not rule.fine(value):
                cure = suggest(str(value), rule.known) if rule.known else rule.cure
                yield i, Fault(f"{place(i)} {rule.key}", value, rule.rule, cure)


def _node_faults(columns: Columns) -> Iterator[tuple[int, Fault]]:
    labels = columns.labels

    def place(i: int) -> str:
        return f"node {labels[i]!r}"

    for i, label in enumerate(labels):
        if not isinstance(label, str):
            cure = "Relabel with networkx.relabel_nodes(graph, str)."
            yield i, Fault(place(i), label, "a label must be a string", cure)
    yield from _broken(_NODE_RULES, columns.nodes, place)
    for i, lanes in enumerate(columns.nodes.column("plane_lanes")):
        data = columns.nodes[i]
        if lanes is not None and _is_count(data.get("planes", 1)) and not _lanes_fit(data):
            rule = f"must list whole numbers, {data.get('planes', 1)} of them above zero as planes says"
            cure = "Give the lanes to each plane, 0 for one that failed."
            yield i, Fault(f"{place(i)} plane_lanes", data["plane_lanes"], rule, cure)
    yield from _broken(_UNIT_RULES, columns.nodes, place)
    yield from _rank_faults(columns, place)


def _lanes_fit(data: dict[str, Any]) -> bool:
    """Whether a folded switch lists lanes of as many planes as it says are left."""
    lanes = data["plane_lanes"]
    whole = isinstance(lanes, list) and all(_is_whole(n) and int(n) >= 0 for n in lanes)
    return whole and sum(int(n) > 0 for n in lanes) == data.get("planes", 1)


def _rank_faults(columns: Columns, place: Callable[[int], str]) -> Iterator[tuple[int, Fault]]:
    seen: dict[object, str] = {}
    for i, rank in enumerate(columns.nodes.column("rank")):
        if rank is None:
            continue
        if not _is_whole(rank):
            yield i, Fault(f"{place(i)} rank", rank, "must be a whole number", "Number the ranks from 0.")
        elif rank in seen:
            yield i, Fault(f"{place(i)} rank", rank, f"is also the rank of {seen[rank]!r}", "Give every rank once.")
        else:
            seen[rank] = columns.labels[i]


def _edge_faults(columns: Columns) -> Iterator[tuple[int, Fault]]:
    def place(i: int) -> str:
        a, b = (columns.labels[end] for end in columns.ends[i])
        return f"edge {a!r} - {b!r}"

    for i in np.flatnonzero(columns.ends[:, 0] == columns.ends[:, 1]).tolist():
        yield i, Fault(place(i), columns.labels[columns.ends[i, 0]], "joins a node to itself", "Remove it.")
    yield from _broken((*_EDGE_RULES, *_UNIT_RULES), columns.edges, place)


def _domain_faults(columns: Columns) -> Iterator[Fault]:
    members: dict[int, list[tuple[str, Any]]] = {}
    for part, label, data in zip(columns.domains.tolist(), columns.labels, columns.nodes, strict=True):
        if part >= 0:
            members.setdefault(part, []).append((label, data.get("domain")))
    homes: dict[object, int] = {}
    for part, named in members.items():
        names = {name: node for node, name in sorted(named, key=itemgetter(0)) if name is not None}
        if len(names) > 1:
            first, second = list(names.items())[:2]
            rule = f"is joined by scale-up edges to {second[1]!r} of domain {second[0]!r}"
            yield Fault(
                f"node {first[1]!r} domain", first[0], rule, "A domain is one connected part of scale-up edges."
            )
        for name, node in names.items():
            if homes.setdefault(name, part) != part:
                rule = "is also the domain of nodes that no scale-up edge joins to it"
                yield Fault(f"node {node!r} domain", name, rule, "Give every scale-up domain its own id.")


def _connection_faults(columns: Columns) -> Iterator[Fault]:
    holding = _parts_with_ranks(columns)
    if len(holding) > 1:
        sizes = ", ".join(str(len(part)) for part in holding[:8])
        rule = f"is disconnected: {len(holding)} parts with {sizes}{', ...' if len(holding) > 8 else ''} ranks"
        cure = (
            f"Join them, or take the others out (topo.fail): nothing leads from {holding[0][0]!r} to {holding[1][0]!r}."
        )
        yield Fault("graph", columns.graph.get("name", "graph"), rule, cure)


def _one_way_faults(columns: Columns) -> Iterator[Fault]:
    parts = _parts_with_ranks(columns, both_ways=True)
    if len(parts) > 1:
        rule = f"leads one way only: {len(parts)} parts whose ranks do not reach each other both ways"
        cure = f"State both directions between {parts[0][0]!r} and {parts[1][0]!r}."
        yield Fault("graph", columns.graph.get("name", "graph"), rule, cure)


def _parts_with_ranks(columns: Columns, *, both_ways: bool = False) -> list[list[str]]:
    """Return the ranks of every connected part that has any, in rank order."""
    found: dict[int, list[str]] = {}
    part = columns.parts(both_ways=both_ways)
    for rank in columns.ranks.tolist():
        found.setdefault(int(part[rank]), []).append(columns.labels[rank])
    return list(found.values())
