"""Which marks on nodes and cables do routing rules go by? Places on a grid, groups, GUIDs, LIDs, port numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topo._columns import Columns, Rows
from topo._errors import Fault, InputError

__all__ = ["Marks", "marks_of"]


@dataclass(frozen=True, eq=False)
class Marks:
    """What a graph states beyond kinds and rates; dicts hold only what is stated.

    Attributes
    ----------
    coordinates : dict
        Node number -> where it stands on its grid.
    group : dict
        Node number -> its group, numbered as first met.
    guid : dict
        Node number -> its GUID.
    lids : dict
        Node number -> port number -> LID.
    axis : dict
        Directed link -> the axis it lies on.
    ports : dict
        Directed link -> (port at its tail, port at its head) per lane.
    parts : dict
        Directed link -> part of the bandwidth that every lane has, where they differ.
    cables : tuple of str
        Name of every directed link in an unfolded fabric; empty otherwise.
    shape : str
        Name of the shape that was built, "" where the graph states none.
    """

    coordinates: dict[int, tuple[int, ...]] = field(default_factory=dict)
    group: dict[int, int] = field(default_factory=dict)
    guid: dict[int, str] = field(default_factory=dict)
    lids: dict[int, dict[int, int]] = field(default_factory=dict)
    axis: dict[int, int] = field(default_factory=dict)
    ports: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    parts: dict[int, list[float]] = field(default_factory=dict)
    cables: tuple[str, ...] = ()
    shape: str = ""


def marks_of(columns: Columns) -> Marks:
    """Read the marks of a graph; an undirected edge is two directed links in a row, as in `Fabric`.

    Raises
    ------
    InputError
        With every mark that cannot be read.
    """
    faults: list[Fault] = []
    nodes = {
        key: dict(_read(_stated(columns.nodes, key, columns.labels), read, rule, faults, f"node {{!r}} {key}"))
        for key, (read, rule) in _NODE_MARKS.items()
    }
    numbers = {name: i for i, name in enumerate(dict.fromkeys(nodes["group"].values()))}
    both = 1 if columns.directed else 2
    edges: dict[str, dict[int, Any]] = {}
    for key, (read, rule) in _EDGE_MARKS.items():
        stated = (
            (
                row,
                tuple(columns.labels[end] for end in columns.ends[row]),
                (value, int(columns.edges[row].get("lanes", 1))),
            )
            for row, _, value in _stated(columns.edges, key, columns.ends)
        )
        edges[key] = dict(_read(stated, read, rule, faults, f"edge {{!r}} {key}"))
    if faults:
        raise InputError(*faults)
    shape = columns.graph.get("shape")
    return Marks(
        coordinates=nodes["coordinates"],
        group={node: numbers[name] for node, name in nodes["group"].items()},
        guid=nodes["guid"],
        lids=nodes["lids"],
        axis={both * row + way: axis for row, axis in edges["axis"].items() for way in range(both)},
        ports={
            both * row + way: pairs if not way else [(q, p) for p, q in pairs]
            for row, pairs in edges["ports"].items() for way in range(both)
        },
        parts={both * row + way: parts for row, parts in edges["lane_bandwidths"].items() for way in range(both)},
        shape=str(shape.get("name", "")) if isinstance(shape, Mapping) else "",
    )  # fmt: skip


def _stated(rows: Rows, key: str, names: Iterable[Any]) -> Iterator[tuple[int, Any, Any]]:
    if key not in rows.keys:
        return iter(())
    named = enumerate(zip(names, rows.column(key), strict=True))
    return ((i, name, value) for i, (name, value) in named if value is not None)


def _read(
    stated: Any, read: Callable[[Any], Any], rule: str, faults: list[Fault], place: str
) -> Iterator[tuple[int, Any]]:
    for row, name, value in stated:
        try:
            yield row, read(value)
        except (TypeError, ValueError, AttributeError):
            shown = value[0] if "edge" in place else value
            faults.append(Fault(place.format(name), shown, rule, "Correct it, or leave it out."))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise ValueError
    return int(value)


def _coordinates(value: Sequence[int]) -> tuple[int, ...]:
    return tuple(_whole(c) for c in value)


def _hashable(value: Any) -> Hashable:
    hash(value)
    return value  # type: ignore[no-any-return]


def _guid(value: str) -> str:
    return f"0x{int(value, 16):016x}"


def _lids(value: Mapping[str, int]) -> dict[int, int]:
    return dict(sorted((int(port), _whole(lid)) for port, lid in value.items()))


def _axis(value: tuple[Any, int]) -> int:
    return _whole(value[0])


def _ports(value: tuple[Any, int]) -> list[tuple[int, int]]:
    pairs, lanes = [(_whole(p), _whole(q)) for p, q in value[0]], value[1]
    if len(pairs) != lanes:
        raise ValueError
    return pairs


def _parts(value: tuple[Any, int]) -> list[float]:
    rates, lanes = [float(rate) for rate in value[0]], value[1]
    if len(rates) != lanes or min(rates) <= 0:
        raise ValueError
    return [rate / sum(rates) for rate in rates]


_Row = tuple[Callable[[Any], Any], str]
_NODE_MARKS: dict[str, _Row] = {
    "coordinates": (_coordinates, "must be a list of whole numbers"),
    "group": (_hashable, "must be a number or a name"),
    "guid": (_guid, "must be hexadecimal digits, as 0x0002c90300000001"),
    "lids": (_lids, "must map port numbers to LIDs"),
}
_EDGE_MARKS: dict[str, _Row] = {
    "axis": (_axis, "must be a whole number"),
    "ports": (_ports, "must list a pair of port numbers per lane"),
    "lane_bandwidths": (_parts, "must list a bandwidth above zero per lane [bytes/s]"),
}
