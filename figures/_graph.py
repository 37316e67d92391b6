"""What does a graph state of its nodes and links? Kinds, where a node stands, utilisation; nothing is required."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
from numpy import float64
from numpy.typing import NDArray

from topo import EDGE_KINDS, NODE_KINDS, Fabric, Fault, InputError

__all__ = ["Link", "Mark", "links_of", "mark_of", "node_kind", "nodes_of", "whole"]


@dataclass(frozen=True)
class Link:
    """What joins two nodes, both directions as one: the larger bandwidth [bytes/s], the busier utilisation.

    `axis` is that of a torus or HyperX it lies on, None where that is not said.
    """

    ends: tuple[str, str]
    kind: str
    bandwidth: float
    utilisation: float | None
    axis: int | None = None


@dataclass(frozen=True)
class Mark:
    """Where a node says it stands: coordinates in a grid, group; domain, level and plane of scale-up switches."""

    coordinates: tuple[int, ...] | None = None
    group: Any = None
    domain: Any = None
    level: int = 1
    plane: Any = None


def mark_of(data: dict[str, Any]) -> Mark:
    """Return where a node stands, from its attributes as `nodes_of` gives them."""
    at = data.get("coordinates")
    level = data.get("level") if node_kind(data) == "switch" else 1
    return Mark(
        at if isinstance(at, tuple) else None, data.get("group"), data.get("domain"),
        level if isinstance(level, int) else 1, data.get("plane"),
    )  # fmt: skip


def nodes_of(graph: nx.Graph[str] | Fabric) -> dict[str, dict[str, Any]]:
    """Return nodes with attributes that can be compared and looked up."""
    if isinstance(graph, nx.Graph):
        return {node: {key: _plain(key, value) for key, value in graph.nodes[node].items()} for node in graph}
    nodes: dict[str, dict[str, Any]] = {}
    for i, label in enumerate(graph.labels):
        nodes[label] = {"kind": NODE_KINDS[graph.node_kind[i]], "planes": 0}
        for name, values in (("domain", graph.domain), ("host", graph.host)):
            if values[i] >= 0:
                nodes[label][name] = int(values[i]) if name == "domain" else f"host{values[i]}"
    for rank, i in enumerate(graph.ranks):
        nodes[graph.labels[i]]["rank"] = rank
    return nodes


def _plain(key: str, value: Any) -> Any:
    """Return coordinates as a tuple, another type that cannot be looked up by its name."""
    if key == "coordinates" and isinstance(value, Sequence) and all(type(c) is int for c in value):
        return tuple(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _directed(graph: nx.Graph[str] | Fabric) -> Iterator[tuple[str, str, str, float, int | None]]:
    """Yield end, end, kind, bandwidth and axis of every directed link, in the order of a Fabric's rows."""
    if isinstance(graph, Fabric):
        for a, b, kind, bandwidth in zip(graph.source, graph.target, graph.link_kind, graph.bandwidth, strict=True):
            yield graph.labels[a], graph.labels[b], EDGE_KINDS[kind], float(bandwidth), None
        return
    for u, v, data in graph.edges(data=True):
        axis = data.get("axis")
        said = _edge_kind(data), _number(data.get("bandwidth")), axis if isinstance(axis, int) else None
        yield u, v, *said
        if not graph.is_directed():
            yield v, u, *said


def links_of(graph: nx.Graph[str] | Fabric, loads: NDArray[float64] | None, seconds: float) -> tuple[Link, ...]:
    """Return the links, with their utilisation where loads are given."""
    rows = list(_directed(graph))
    if loads is not None and len(loads) != len(rows):
        rule = f"has loads of {len(loads)} directed links and the graph has {len(rows)}"
        raise InputError(Fault("cost", "Cost", rule, "Pass the graph it was worked out on."))
    found: dict[tuple[str, str], Link] = {}
    for row, (u, v, kind, bandwidth, axis) in enumerate(rows):
        if u == v:
            continue
        ends = (v, u) if (v, u) in found else (u, v)
        held = found.get(ends)
        use = None if loads is None else _ratio(float(loads[row]), bandwidth * seconds)
        if held is not None:
            bandwidth = max(bandwidth, held.bandwidth)
            use = None if use is None or held.utilisation is None else max(use, held.utilisation)
        found[ends] = Link(ends, kind, bandwidth, use, axis)
    return tuple(found.values())


def _ratio(load: float, capacity: float) -> float:
    return load / capacity if capacity > 0 else 0.0


def _number(value: Any) -> float:
    try:
        return float(value) if math.isfinite(value) and value > 0 else 0.0
    except TypeError:
        return 0.0


def whole(value: Any) -> int:
    """Return a count, 1 where it is none."""
    return value if isinstance(value, int) and value >= 0 else 1


def node_kind(data: dict[str, Any]) -> str:
    """Return the kind of a node, "other" where it says none that is known."""
    kind = data.get("kind")
    return kind if kind in NODE_KINDS else ("switch" if data.get("tier") else "other")


def _edge_kind(data: dict[str, Any]) -> str:
    kind = data.get("kind")
    return kind if kind in EDGE_KINDS else "other"
