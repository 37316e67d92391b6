"""What does a network file of ASTRA-sim's analytical backend say? Dimensions, one after the other.

NPU numbers count the first dimension fastest; NPUs that differ in one dimension only are joined
by its ring, full mesh or switch. Bandwidths are of one link and direction in GB of 2^30 bytes,
latencies of one link in ns. Rings alone make a torus of chips that forward; else the first
dimension is scale-up and the others scale-out, as `topo.write` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import networkx as nx

from topo._asked import MOST, Link, add_cable, add_gpus, add_switch, gpu_labels
from topo._errors import suggest
from topo.readers._parts import Checked, finished
from topo.readers._reading import Reader, Reading, Source
from topo.readers._yaml import load_yaml

__all__ = ["ASTRA_SIM"]

_GB = 2.0**30
_KINDS = ("Ring", "FullyConnected", "Switch")
#: Key of today's files -> key of the older JSON files.
_KEYS = {
    "topology": "topologies-per-dim", "npus_count": "units-count",
    "bandwidth": "link-bandwidth", "latency": "link-latency",
}  # fmt: skip
#: Further keys of the older files: those that change nothing, those that must be zero.
_OLD_WORDS = ("topology-name", "dimension-type", "dimensions-count", "links-count")
_OLD_MEMORY = ("hbm-latency", "hbm-bandwidth", "hbm-scale")
_OLD_ZERO = ("nic-latency", "router-latency")
_MOST_TEXT = 200_000
_SINGLE = {"AllToAll": "FullyConnected"}
_CROSS = (
    "NPUs that differ in several dimensions exchange nothing directly in ASTRA-sim: those that differ in the first and "
    "another have no path here, hierarchical algorithms need none"
)


@dataclass(frozen=True)
class _Dimension:
    """One dimension: its kind, NPUs, one link and how many parallel ones."""

    kind: str
    size: int
    bandwidth: float
    latency: float
    lanes: int = 1


def _recognises(source: Source) -> bool:
    text = source.clean[:20_000]
    new = re.search(r"^\s*[{,]?\s*\"?npus_count\"?\s*:", text, re.M) and re.search(r"\"?topology\"?\s*:", text)
    return bool(new) or ('"units-count"' in text and ('"topologies-per-dim"' in text or '"link-bandwidth"' in text))


def _read(source: Source) -> Reading:
    checked = Checked(source.file)
    keys, lines = _parsed(checked, source)
    dimensions = _dimensions(checked, keys, lines)
    checked.settle()
    n = prod(dimension.size for dimension in dimensions)
    cables = sum(n * (d.size if d.kind == "FullyConnected" else 2) for d in dimensions)
    if n + cables > MOST:
        rule = f"means {n:,} NPUs and up to {cables:,} links, and a graph of Python objects holds {MOST:,}"
        raise checked.refuse(f"line {lines['npus_count']} npus_count", [d.size for d in dimensions], rule)
    torus = all(dimension.kind == "Ring" for dimension in dimensions)
    graph: nx.Graph[str] = nx.Graph()
    add_gpus(graph, gpu_labels(n), forwards=any(d.kind == "Ring" for d in dimensions))
    for axis in range(len(dimensions)):
        _add_dimension(graph, dimensions, axis, "scale-up" if axis == 0 or torus else "scale-out")
    for gpu in range(n):
        graph.nodes[f"gpu{gpu}"]["domain"] = 0 if torus else gpu // dimensions[0].size
    notes = ["bandwidths are in ASTRA-sim's GB, 2^30 bytes"]
    if len(dimensions) > 1 and not torus:
        notes += ["the first dimension is read as scale-up, the others as scale-out", _CROSS]
    elif len(dimensions) > 1:
        notes.append("rings alone are read as a torus: chips forward, every link is scale-up")
    if "hbm-bandwidth" in keys:
        notes.append("memory (hbm-...) is not read")
    return finished("astra-sim", source.file, graph, notes)


def _parsed(checked: Checked, source: Source) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the keys by today's names, and the line of each."""
    if len(source.clean) > _MOST_TEXT:
        raise checked.refuse(
            "line 1", len(source.clean), f"is longer than {_MOST_TEXT:,} characters, as no such file is"
        )
    data = load_yaml(source)
    if not isinstance(data, dict):
        raise checked.refuse("line 1", type(data).__name__, "must be keys and lists", "Give topology: [ Ring ] ...")
    lines: dict[str, int] = {}
    for number, line in enumerate(source.lines, 1):
        if match := re.match(r"\s*[{,]?\s*[\"']?([\w-]+)[\"']?\s*:", line):
            lines.setdefault(str(match[1]), number)
    is_old = any(key in data for key in _KEYS.values())
    names = {old if is_old else key: key for key, old in _KEYS.items()}
    known = [*names, *((*_OLD_WORDS, *_OLD_MEMORY, *_OLD_ZERO) if is_old else ())]
    for key in data:
        if key not in known:
            checked.fault(
                f"line {lines.get(str(key), 1)}", key, "is no key of a network file", suggest(str(key), known)
            )
    for name in names:
        if name not in data:
            checked.fault(f"line {len(source.lines)}", name, "is missing: the file may be cut off", "Add it.")
    checked.settle()
    return (
        {names.get(key) or key: value for key, value in data.items()},
        {names.get(key, key): line for key, line in lines.items()},
    )


def _dimensions(checked: Checked, keys: dict[str, Any], lines: dict[str, int]) -> list[_Dimension]:
    rows = {key: _listed(checked, keys[key], f"line {lines.get(key, 1)} {key}") for key in _KEYS}
    n = len(rows["npus_count"])
    for key, row in rows.items():
        if len(row) != n or not row:
            rule = f"must have one value per dimension, and npus_count has {n}"
            checked.fault(f"line {lines.get(key, 1)} {key}", keys[key], rule)
    for key in _OLD_ZERO:
        if any(value for value in _listed(checked, keys.get(key, []), f"line {lines.get(key, 1)} {key}")):
            rule = "is not read: this graph has the latency of a link only"
            checked.fault(f"line {lines.get(key, 1)} {key}", keys[key], rule, "Add it to link-latency, and set 0 here.")
    checked.settle()
    links = _listed(checked, keys.get("links-count", [None] * n), "links-count")
    if len(links) != n:
        raise checked.refuse(f"line {lines.get('links-count', 1)} links-count", links, f"must have {n} values")
    return [
        _dimension(checked, axis, row, lines)
        for axis, row in enumerate(zip(*rows.values(), links, strict=True))
    ]  # fmt: skip


def _listed(checked: Checked, value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        checked.fault(place, value, "must be a list, one value per dimension", "Put it in [ ].")
        return []
    return value


def _dimension(checked: Checked, axis: int, row: tuple[Any, ...], lines: dict[str, int]) -> _Dimension:
    kind, size, bandwidth, latency, links = row
    places = {key: f"line {lines.get(key, 1)} {key}[{axis}]" for key in (*_KEYS, "links-count")}
    kind = _SINGLE.get(kind, kind) if isinstance(kind, str) else kind
    if kind not in _KINDS:
        checked.fault(places["topology"], kind, "is no building block of ASTRA-sim", suggest(str(kind), _KINDS))
        kind = "Switch"
    n = checked.whole(places["npus_count"], size, 1)
    own = {"Ring": 2, "FullyConnected": n - 1, "Switch": 1}[kind]
    lanes, rest = (1, 0) if links is None or not own else divmod(checked.whole(places["links-count"], links, 1), own)
    if rest or not lanes:
        checked.fault(
            places["links-count"], links, f"must be a multiple of {own}: a {kind} of {n} has {own} links each"
        )
    rate = checked.number(places["bandwidth"], bandwidth) * _GB
    return _Dimension(kind, n, rate, checked.number(places["latency"], latency, zero=True) / 1e9, lanes or 1)


def _add_dimension(graph: nx.Graph[str], dimensions: list[_Dimension], axis: int, kind: str) -> None:
    """Wire every group of NPUs that differ in this dimension only."""
    dimension = dimensions[axis]
    link = Link(kind, dimension.bandwidth, dimension.latency)
    stride = prod(d.size for d in dimensions[:axis])
    for group, first in enumerate(_firsts(stride, dimension.size, prod(d.size for d in dimensions))):
        members = [f"gpu{first + i * stride}" for i in range(dimension.size)]
        if len(members) == 1:
            continue
        if dimension.kind == "Switch":
            switch = f"dim{axis + 1}/switch{group}"
            place = {"domain": group} if kind == "scale-up" else {}
            add_switch(graph, switch, "scale-up" if kind == "scale-up" else "leaf", **place)
        for a, b in _pairs(dimension.kind, members, f"dim{axis + 1}/switch{group}"):
            add_cable(graph, a, b, link, dimension.lanes)


def _firsts(stride: int, size: int, n: int) -> Iterator[int]:
    return (block + offset for block in range(0, n, stride * size) for offset in range(stride))


def _pairs(kind: str, members: list[str], switch: str) -> Iterator[tuple[str, str]]:
    if kind == "Switch":
        yield from ((member, switch) for member in members)
    elif kind == "Ring":
        yield from pairwise(members)
        if len(members) > 2:
            yield members[-1], members[0]
    else:
        yield from ((a, b) for i, a in enumerate(members) for b in members[i + 1 :])


ASTRA_SIM = Reader("astra-sim", "network file of ASTRA-sim's analytical backend", _recognises, _read)
