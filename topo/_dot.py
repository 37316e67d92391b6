"""How is a graph written for Graphviz? Every attribute as a string, nested ones as JSON."""

from __future__ import annotations

from typing import Any

import networkx as nx

from topo._errors import Fault, InputError
from topo._values import text_of

__all__ = ["dot_text"]


def dot_text(graph: nx.Graph[str]) -> str:
    """Return a graph in the DOT language; attributes keep their names."""
    word, arrow = ("digraph", "->") if graph.is_directed() else ("graph", "--")
    lines = [f"{word} {_quoted(str(graph.graph.get('name', '')))} {{"]
    lines += [f"  {_quoted(key)}={_quoted(_text(value))};" for key, value in graph.graph.items() if key != "name"]
    lines += [f"  {_quoted(node)}{_attributes(data)};" for node, data in graph.nodes(data=True)]
    lines += [f"  {_quoted(a)} {arrow} {_quoted(b)}{_attributes(data)};" for a, b, data in graph.edges(data=True)]
    return "\n".join([*lines, "}", ""])


def _attributes(data: dict[str, Any]) -> str:
    pairs = ", ".join(f"{_quoted(key)}={_quoted(_text(value))}" for key, value in data.items())
    return f" [{pairs}]" if pairs else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else text_of(value)


def _quoted(text: str) -> str:
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(Fault("text", text, "has characters that DOT cannot hold", "Rename it, or write JSON."))
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
