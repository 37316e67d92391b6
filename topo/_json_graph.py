"""How is a graph written as node-link JSON, and read back exactly?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import networkx as nx

from topo._errors import Fault, InputError
from topo._values import from_plain, text_of

__all__ = ["json_text", "read_json"]

_CURE = "Give a graph that topo.write wrote, or a node-link file of networkx."
#: Keys of the format itself, which no attribute may have.
_TAKEN = {"nodes": ("id",), "edges": ("source", "target")}


def json_text(graph: nx.Graph[str]) -> str:
    """Return a graph as node-link JSON, one node or edge a line.

    Raises
    ------
    InputError
        Attributes with the names the format uses itself: id, source, target.
    """
    faults = [
        Fault(f"{where} {key}", data[key], "is a key of the format itself", "Rename it, or write GraphML.")
        for where, data, taken in _records(graph) for key in taken if key in data
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
    nodes = [text_of({"id": node} | data) for node, data in graph.nodes(data=True)]
    edges = [text_of({"source": a, "target": b} | data) for a, b, data in graph.edges(data=True)]
    head = f'"directed": {json.dumps(graph.is_directed())},\n"multigraph": false,\n"graph": {text_of(graph.graph)},\n'
    return f'{{\n{head}"nodes": [{_lines(nodes)}],\n"edges": [{_lines(edges)}]\n}}\n'


def _records(graph: nx.Graph[str]) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    for node, data in graph.nodes(data=True):
        yield f"node {node!r}", data, _TAKEN["nodes"]
    for a, b, data in graph.edges(data=True):
        yield f"edge {a!r} - {b!r}", data, _TAKEN["edges"]


def _lines(rows: list[str]) -> str:
    return "".join(f"\n{row}{',' if i < len(rows) - 1 else ''}" for i, row in enumerate(rows)) + "\n"


def read_json(text: bytes, file: str) -> nx.Graph[str]:
    """Return the graph of a node-link file.

    Raises
    ------
    InputError
        JSON of something else, or with parts that do not fit together, all at once.
    """
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(Fault("JSON", str(error), "is not valid JSON", "Correct that line.", file)) from None
    links = "edges" if isinstance(data, dict) and "edges" in data else "links"
    if not isinstance(data, dict) or not all(isinstance(data.get(key), list) for key in ("nodes", links)):
        found = sorted(data)[:8] if isinstance(data, dict) else type(data).__name__
        raise InputError(Fault("JSON", found, "is no graph: it has no lists nodes and edges", _CURE, file))
    if data.get("multigraph"):
        cure = "Merge parallel cables into one edge: bandwidth of the bundle, lanes = their number."
        raise InputError(Fault("multigraph", True, "a MultiGraph is not taken", cure, file))
    about = data.get("graph", {})
    if not isinstance(about, dict):
        raise InputError(Fault("graph", about, "must be an object", "Give the attributes of the graph.", file))
    if faults := list(_faults(data["nodes"], data[links], bool(data.get("directed")), file)):
        raise InputError(*faults[:20])
    graph: nx.Graph[str] = nx.DiGraph() if data.get("directed") else nx.Graph()
    graph.graph.update({key: from_plain(value) for key, value in about.items()})
    graph.add_nodes_from((row["id"], _without(row, "id")) for row in data["nodes"])
    graph.add_edges_from((row["source"], row["target"], _without(row, "source", "target")) for row in data[links])
    return graph


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")


def _without(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a row's attributes as they were before writing."""
    return {key: from_plain(value) for key, value in row.items() if key not in keys}


def _faults(nodes: list[Any], edges: list[Any], directed: bool, file: str) -> Iterator[Fault]:
    known: set[str] = set()
    for i, row in enumerate(nodes):
        label = row.get("id") if isinstance(row, dict) else None
        if not isinstance(label, str):
            yield Fault(f"nodes[{i}].id", label, "must be a string", "Give every node its label.", file)
        elif label in known:
            yield Fault(f"nodes[{i}].id", label, "stands there twice", "Give every node once.", file)
        else:
            known.add(label)
    joined: set[tuple[str, str]] = set()
    for i, row in enumerate(edges):
        ends = [row.get(key) if isinstance(row, dict) else None for key in ("source", "target")]
        if not all(isinstance(end, str) and end in known for end in ends):
            yield Fault(f"edges[{i}]", ends, "has an end that is no node", "Give source and target their labels.", file)
        elif (str(ends[0]), str(ends[1])) in joined:
            yield Fault(f"edges[{i}]", ends, "stands there twice", "Merge parallel cables: lanes.", file)
        else:
            joined |= {(str(a), str(b)) for a, b in ((ends, ends[::-1]) if not directed else (ends,))}
