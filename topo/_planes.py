"""Which planes does a folded switch stand for? Their names, their lanes, and the switch unfolded.

A folded switch carries `planes` (how many are left) and `plane_lanes` (lanes of one link
bundle to each plane, 0 for a plane that failed). Plane k of switch "d0/switch" is named
"d0/switch" + k: the name it has in the unfolded graph, so that an edit reads the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import networkx as nx

from topo._errors import Fault, InputError

__all__ = ["folded_planes", "is_folded", "keep_lanes", "lane_count", "plane_names", "unfold", "without_plane"]

AnyGraph = TypeVar("AnyGraph", bound="nx.Graph[str]")


def is_folded(data: dict[str, Any]) -> bool:
    """Whether a node stands for several planes, or did before some failed."""
    return data.get("kind") == "switch" and (int(data.get("planes", 1)) > 1 or "plane_lanes" in data)


def folded_planes(data: dict[str, Any]) -> list[int]:
    """Return the lanes to each plane of a folded switch; equal where it does not say."""
    return [int(lanes) for lanes in data.get("plane_lanes") or [1] * int(data.get("planes", 1))]


def plane_names(graph: nx.Graph[str]) -> dict[str, tuple[str, int]]:
    """Return plane name -> (folded switch, number of the plane) of all planes that are left."""
    return {
        f"{node}{k}": (node, k)
        for node, data in graph.nodes(data=True) if is_folded(data)
        for k, lanes in enumerate(folded_planes(data)) if lanes and f"{node}{k}" not in graph
    }  # fmt: skip


def lane_count(data: dict[str, Any]) -> int:
    """Return the lanes of an edge; 1 if it does not say."""
    return int(data.get("lanes", 1))


def keep_lanes(data: dict[str, Any], kept: Sequence[int], of: int) -> dict[str, Any]:
    """Return an edge's attributes when it keeps the listed ones of `of` lanes."""
    left = dict(data)
    for key in ("ports", "lane_bandwidths"):
        if len(left.get(key) or ()) == of:
            left[key] = [left[key][i] for i in kept]
    rates = left.get("lane_bandwidths")
    left["bandwidth"] = sum(rates) if rates else data["bandwidth"] * len(kept) / of
    left["lanes"] = len(kept)
    return left


def without_plane(graph: nx.Graph[str], switch: str, plane: int) -> None:
    """Take one plane from a folded switch of a graph under construction."""
    weights = folded_planes(graph.nodes[switch])
    kept = [k for k, lanes in enumerate(weights) if lanes and k != plane]
    if not kept:
        graph.remove_node(switch)
        return
    for a, b, data in _edges_of(graph, switch):
        part = _part(a, b, data, weights, kept)
        data.clear()
        data.update(part)
    lanes_left = [lanes if k != plane else 0 for k, lanes in enumerate(weights)]
    graph.nodes[switch].update(planes=len(kept), plane_lanes=lanes_left)


def unfold(graph: AnyGraph, switches: Collection[str]) -> tuple[AnyGraph, dict[str, list[str]]]:
    """Return a graph with one node a plane for these switches and the folded ones wired to them.

    Returns
    -------
    networkx.Graph
        Planes in the place of their switch, in the order of nodes and of edges.
    dict
        Switch -> names of its planes.
    """
    todo = _with_folded_neighbours(graph, switches)
    weights = {switch: folded_planes(graph.nodes[switch]) for switch in todo}
    planes = {switch: {k: f"{switch}{k}" for k, lanes in enumerate(weights[switch]) if lanes} for switch in todo}
    _require_free(graph, planes)
    wide = graph.__class__()
    wide.graph.update(graph.graph)
    for node, data in graph.nodes(data=True):
        if node in planes:
            one = {key: value for key, value in data.items() if key != "plane_lanes"} | {"planes": 1}
            wide.add_nodes_from((name, dict(one)) for name in planes[node].values())
        else:
            wide.add_node(node, **data)
    for a, b, data in graph.edges(data=True):
        if a not in planes and b not in planes:
            wide.add_edge(a, b, **data)
            continue
        folded = a if a in planes else b
        for k in planes[folded]:
            ends = [planes[end].get(k) if end in planes else end for end in (a, b)]
            if None in ends or (a in planes and b in planes and weights[a] != weights[b]):
                rule = f"has other planes than {b!r}, which it is wired to"
                raise InputError(Fault(f"node {a!r}", weights[a], rule, "Build the graph with its planes unfolded."))
            wide.add_edge(str(ends[0]), str(ends[1]), **_part(a, b, data, weights[folded], [k]))
    return wide, {switch: list(names.values()) for switch, names in planes.items()}


def _with_folded_neighbours(graph: nx.Graph[str], switches: Collection[str]) -> set[str]:
    """Return the switches and every folded one joined to them through folded ones: plane k meets plane k."""
    found, todo = set(switches), list(switches)
    while todo:
        for a, b, _ in _edges_of(graph, todo.pop()):
            for node in (a, b):
                if node not in found and is_folded(graph.nodes[node]):
                    found.add(node)
                    todo.append(node)
    return found


def _edges_of(graph: nx.Graph[str], node: str) -> list[tuple[str, str, dict[str, Any]]]:
    edges = list(graph.edges(node, data=True))
    if isinstance(graph, nx.DiGraph):
        edges += list(graph.in_edges(node, data=True))
    return edges


def _require_free(graph: nx.Graph[str], planes: dict[str, dict[int, str]]) -> None:
    taken = [name for names in planes.values() for name in names.values() if name in graph]
    if taken:
        rule = "is also the name of a plane that must be unfolded"
        raise InputError(Fault(f"node {taken[0]!r}", taken[0], rule, "Relabel it with networkx.relabel_nodes."))


def _part(a: str, b: str, data: dict[str, Any], weights: Sequence[int], kept: Sequence[int]) -> dict[str, Any]:
    """Return the attributes of what a bundle keeps when it keeps only some planes."""
    total, lanes = sum(weights), lane_count(data)
    if "lanes" not in data:  # nothing to count: the bundle keeps its share
        return data | {"bandwidth": data["bandwidth"] * sum(weights[k] for k in kept) / total}
    if lanes % total:
        rule = f"do not divide over planes of {list(weights)} lanes"
        raise InputError(Fault(f"edge {a!r} - {b!r} lanes", lanes, rule, "State plane_lanes of the switch."))
    per, first = lanes // total, [sum(weights[:k]) for k in range(len(weights))]
    numbers = [i for k in kept for i in range(first[k] * per, (first[k] + weights[k]) * per)]
    return keep_lanes(data, numbers, lanes)
