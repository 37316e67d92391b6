"""How is a graph written as GraphML, and read back exactly?

Numbers, text and truth values are GraphML's own. Anything nested, None, and text that XML
cannot hold stand as JSON strings; the key of such data says so in its <desc>.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
import numpy as np

from topo._errors import Fault, InputError
from topo._values import from_plain, text_of
from topo._xml import parse_xml

__all__ = ["graphml_text", "read_graphml"]

_SPACE = "http://graphml.graphdrawing.org/xmlns"
_JSON = "JSON"
#: Text that XML gives back as it was: no control characters, no carriage return, no lone surrogates.
_SAFE = re.compile("[\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_READ: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _TRUTH[text.strip().lower()], "int": int, "long": int, "float": float, "double": float,
    "string": str, _JSON: lambda text: from_plain(json.loads(text)),
}  # fmt: skip


def _typed(value: Any) -> tuple[str, str]:
    """Return the GraphML type of a value, or JSON, and its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "boolean", "true" if value else "false"
    if isinstance(value, int):
        return "long", str(value)
    if isinstance(value, float):
        return "double", repr(value)
    if isinstance(value, str) and _SAFE.fullmatch(value):
        return "string", escape(value)
    return _JSON, escape(text_of(value))


def graphml_text(graph: nx.Graph[str]) -> str:
    """Return a graph as GraphML.

    Raises
    ------
    InputError
        Labels or names of attributes that XML cannot hold.
    """
    keys: dict[tuple[str, str, str], str] = {}

    def data(of: str, values: dict[str, Any]) -> str:
        typed = [(keys.setdefault((of, name, kind), f"d{len(keys)}"), text)
                 for name, (kind, text) in ((name, _typed(value)) for name, value in values.items())]  # fmt: skip
        return "".join(f'<data key="{key}">{text}</data>' for key, text in typed)

    _require_safe(graph)
    body = [data("graph", graph.graph)] if graph.graph else []
    body += [f"<node id={quoteattr(node)}>{data('node', values)}</node>" for node, values in graph.nodes(data=True)]
    body += [
        f"<edge source={quoteattr(a)} target={quoteattr(b)}>{data('edge', values)}</edge>"
        for a, b, values in graph.edges(data=True)
    ]
    head = [
        f'<key id="{key}" for="{of}" attr.name={quoteattr(name)} attr.type="{"string" if kind == _JSON else kind}"'
        + (f"><desc>{_JSON}</desc></key>" if kind == _JSON else "/>")
        for (of, name, kind), key in keys.items()
    ]
    default = "directed" if graph.is_directed() else "undirected"
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<graphml xmlns="{_SPACE}">', *head]
    return "\n".join([*lines, f'<graph edgedefault="{default}">', *body, "</graph>", "</graphml>", ""])


def _require_safe(graph: nx.Graph[str]) -> None:
    names = {key for data in (graph.graph, *(d for _, d in graph.nodes(data=True))) for key in data}
    names |= {key for _, _, data in graph.edges(data=True) for key in data}
    faults = [
        Fault(f"{what} {text!r}", text, "has characters that XML cannot hold", "Rename it, or write JSON.")
        for what, texts in (("node", graph), ("attribute", sorted(names))) for text in texts
        if not _SAFE.fullmatch(text)
    ]  # fmt: skip
    if faults:
        raise InputError(*faults[:20])


def read_graphml(text: bytes, file: str) -> nx.Graph[str]:
    """Return the graph of a GraphML file.

    Raises
    ------
    InputError
        XML of something else, or parts of GraphML that a topology has no use for.
    """
    root = parse_xml(text, file)
    graphs = [part for part in root if _tag(part) == "graph"]
    if _tag(root) != "graphml" or len(graphs) != 1:
        rule = f"is no GraphML with one graph: <{_tag(root)}> with {len(graphs)} graphs"
        raise InputError(Fault("root", _tag(root), rule, "Give a graph that topo.write wrote.", file))
    keys = {part.get("id", ""): part for part in root if _tag(part) == "key"}
    directed = graphs[0].get("edgedefault") == "directed"
    graph: nx.Graph[str] = nx.DiGraph() if directed else nx.Graph()
    graph.graph.update(_values(graphs[0], "graph", keys, file))
    for part in graphs[0]:
        if _tag(part) == "node":
            label = part.get("id")
            _require(label is not None and label not in graph, f"node {label!r}", "has no id of its own", file)
            graph.add_node(str(label), **_values(part, "node", keys, file))
        elif _tag(part) not in ("edge", "data", "desc"):
            _require(False, f"<{_tag(part)}>", "is not part of a topology", file)
    for part in graphs[0].iterfind("{*}edge"):
        a, b = part.get("source", ""), part.get("target", "")
        place = f"edge {a!r} - {b!r}"
        _require(a in graph and b in graph, place, "has an end that is no node", file)
        _require(not graph.has_edge(a, b), place, "stands there twice", file)
        one_way = part.get("directed", str(directed)).lower() == "true"
        _require(one_way == directed, place, "is directed otherwise than the graph", file)
        graph.add_edge(a, b, **_values(part, "edge", keys, file))
    return graph


def _tag(part: Element) -> str:
    return str(part.tag).rpartition("}")[2]


def _require(good: bool, place: str, rule: str, file: str) -> None:
    if not good:
        raise InputError(Fault(place, None, rule, "Correct it, or give a graph that topo.write wrote.", file))


def _values(part: Element, of: str, keys: dict[str, Element], file: str) -> dict[str, Any]:
    """Return the attributes of a node, an edge or the graph, defaults of keys included."""
    given = {data.get("key", ""): data.text or "" for data in part if _tag(data) == "data"}
    return dict(_read(of, given, keys, file))


def _read(of: str, given: dict[str, str], keys: dict[str, Element], file: str) -> Iterator[tuple[str, Any]]:
    for key, text in (_defaults(of, keys) | given).items():
        _require(key in keys, f"data key {key!r}", "is not declared", file)
        kind = keys[key].get("attr.type", "string")
        if any(_tag(part) == "desc" and part.text == _JSON for part in keys[key]):
            kind = _JSON
        try:
            yield keys[key].get("attr.name", key), _READ[kind](text)
        except (KeyError, ValueError, RecursionError):
            cure = f"Known types: {', '.join(sorted(_READ))}."
            raise InputError(Fault(f"data key {key!r}", text[:80], f"is no {kind}", cure, file)) from None


def _defaults(of: str, keys: dict[str, Element]) -> dict[str, str]:
    return {
        key: part.text or ""
        for key, declared in keys.items() if declared.get("for") in (of, "all")
        for part in declared if _tag(part) == "default"
    }  # fmt: skip
