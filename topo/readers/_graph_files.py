"""Is this a graph that networkx or topo.write wrote? Read as it is, and its faults said."""

from __future__ import annotations

import json
import re

import networkx as nx

from topo._check import local_faults
from topo._errors import Fault, InputError
from topo._graphml import read_graphml
from topo._json_graph import read_json
from topo.readers._reading import Reader, Reading, Source

__all__ = ["READERS"]


def _is_json(source: Source) -> bool:
    text = source.text.lstrip()
    return text.startswith("{") and '"nodes"' in text and ('"links"' in text or '"edges"' in text)


def _is_graphml(source: Source) -> bool:
    return bool(re.search(r"<(?:\w+:)?graphml[\s>]", source.text[:4096]))


def _read_json(source: Source) -> Reading:
    text, renamed = _with_names(source)
    return _reading("node-link-json", read_json(text.encode("utf-8", "surrogatepass"), source.file), source, renamed)


def _read_graphml(source: Source) -> Reading:
    text = re.sub(r"^(\s*<\?xml[^>]*?)\s+encoding=(?:\"[^\"]*\"|'[^']*')", r"\1", source.text)
    graph = read_graphml(text.encode("utf-8", "surrogatepass"), source.file)
    return _reading("graphml", graph, source, [])


def _with_names(source: Source) -> tuple[str, list[str]]:
    """Return node-link JSON whose labels are text: networkx numbers its nodes."""
    try:
        data = json.loads(source.text)
        nodes, edges = data["nodes"], data.get("edges", data.get("links"))
        if not any(isinstance(row["id"], int) for row in nodes):
            return source.text, []
        names = [row["id"] for row in nodes]
        if len({str(name) for name in names}) < len(names):
            return source.text, []
        for row in nodes:
            row["id"] = str(row["id"])
        for row in edges:
            row |= {end: str(row[end]) for end in ("source", "target") if isinstance(row[end], int)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return source.text, []  # read_json says what is wrong
    return json.dumps(data), ["labels that are numbers became text: 0 is '0'"]


def _reading(kind: str, graph: nx.Graph[str], source: Source, notes: list[str]) -> Reading:
    if faults := local_faults(graph):
        raise InputError(*(Fault(f.place, f.value, f.rule, f.cure, source.file) for f in faults[:20]))
    return Reading(kind, graph, tuple(notes))


READERS = (
    Reader("node-link-json", "node-link JSON of networkx or topo.write", _is_json, _read_json),
    Reader("graphml", "GraphML of networkx or topo.write", _is_graphml, _read_graphml),
)
