"""Which attribute values survive a file exactly? JSON's, and tuples under a tag of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from topo._errors import Fault

__all__ = ["TUPLE", "from_plain", "plain", "text_of", "value_faults"]

#: A tuple is written as {TUPLE: [...]}.
TUPLE = "__tuple__"


def plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy scalars as Python's, tuples tagged."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {TUPLE: [plain(item) for item in value]}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def from_plain(value: Any) -> Any:
    """Return what `plain` was given."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {TUPLE} and isinstance(value[TUPLE], list):
            return tuple(from_plain(item) for item in value[TUPLE])
        return {key: from_plain(item) for key, item in value.items()}
    return value


def text_of(value: Any) -> str:
    """Return a value as JSON text, ASCII only."""
    return json.dumps(plain(value), allow_nan=False)


def value_faults(graph: nx.Graph[str]) -> Iterator[Fault]:
    """Return every label and attribute that no file holds exactly."""
    for key, value in graph.graph.items():
        yield from _faults(f"graph.{key}", key, value)
    for node, data in graph.nodes(data=True):
        if not isinstance(node, str):
            cure = "Relabel with networkx.relabel_nodes(graph, str)."
            yield Fault(f"node {node!r}", node, "a label must be a string", cure)
        for key, value in data.items():
            yield from _faults(f"node {node!r} {key}", key, value)
    for a, b, data in graph.edges(data=True):
        for key, value in data.items():
            yield from _faults(f"edge {a!r} - {b!r} {key}", key, value)


def _faults(place: str, key: object, value: Any) -> Iterator[Fault]:
    if not isinstance(key, str):
        yield Fault(place, key, "an attribute's name must be a string", "Rename it.")
    elif (wrong := _unwritable(value)) is not None:
        rule = "is none of: text, finite number, true, false, None, and lists, tuples and dicts of these"
        yield Fault(place, wrong, rule, "Change it, or delete the attribute.")


def _unwritable(value: Any) -> str | None:
    """Return what of a value cannot be written, None if all can."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return next((wrong for item in value if (wrong := _unwritable(item)) is not None), None)
    if isinstance(value, dict):
        odd = next((repr(key) for key in value if not isinstance(key, str) or key == TUPLE), None)
        return odd or next((wrong for item in value.values() if (wrong := _unwritable(item)) is not None), None)
    good = value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
    return None if good else repr(value)
