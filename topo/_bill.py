"""What does it take to build it, and what do its parts cost and draw? Only what is stated counts.

Unit prices [$] and powers [W] stand where their part does: `price` and `power` of a node
(of one plane where a switch is folded; of a GPU also in `chips`), `price` and `power` of
an edge per lane, its cable, `nic_price` and `nic_power` of an edge that is a NIC, or
`nics` of them: a half where two ports of a NIC are two edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import networkx as nx

from topo._check import EDGE_KINDS, TIERS
from topo._columns import Columns, Rows
from topo._design import Design
from topo._planes import folded_planes, lane_count

__all__ = ["Bill", "bill_of", "state_units"]

#: Price and power of a node or of a lane of an edge.
_UNIT = ("price", "power")
_NAMES = {"gpu": "GPUs", "host": "hosts", "nic": "NICs", "cpu": "CPUs"}
#: Class of part, units a row stands for, price and power of one.
_Row = tuple[str, float, float | None, float | None]


@dataclass(frozen=True)
class Bill:
    """Parts of one class: how many, and what they cost [$] and draw [W] together, None unless each states it."""

    units: int
    price: float | None
    power: float | None


def bill_of(columns: Columns) -> dict[str, Bill]:
    """Return class of part -> `Bill`: GPUs, switches by tier, NICs, cables by kind of edge."""
    rows: dict[str, list[_Row]] = {}
    for (name, units, price, power), times in chain(_nodes(columns), _edges(columns)):
        rows.setdefault(name, []).append((name, units * times, price, power))
    return {
        name: Bill(round(sum(row[1] for row in rows[name])), _total(rows[name], 2), _total(rows[name], 3))
        for name in sorted(rows, key=_order)
    }


def state_units(graph: nx.Graph[str], design: Design) -> None:
    """Write the unit prices and powers of a design's tables onto the graph under construction."""
    tables: dict[str, Any] = {"scale-up": design.scale_up, "scale-out": design.scale_out}
    out = design.scale_out
    one_each = out is None or (out.ports_per_nic == 1 and out.nics_per_gpu == 1)
    if one_each and not any(_states_units(table) for table in tables.values()):
        return  # nothing to write, on what may be half a million edges
    for _, data in graph.nodes(data=True):
        if data["kind"] == "switch":
            _state(data, tables["scale-up" if data.get("tier") == "scale-up" else "scale-out"], "switch_", "")
        elif data["kind"] == "nic":
            _state(data, tables["scale-out"], "nic_", "")
    for a, b, data in graph.edges(data=True):
        _state(data, tables.get(data["kind"]), "cable_", "")
        if data["kind"] == "scale-out" and "gpu" in (graph.nodes[a]["kind"], graph.nodes[b]["kind"]):
            _state(data, tables["scale-out"], "nic_", "nic_")
            if out is not None and (nics := lane_count(data) / out.ports_per_nic) != 1:
                data["nics"] = nics


def _states_units(table: Any) -> bool:
    keys = (f"{part}_{unit}" for part in ("switch", "cable", "nic") for unit in _UNIT)
    return any(getattr(table, key, None) is not None for key in keys)


def _state(data: dict[str, Any], table: Any, key: str, name: str) -> None:
    for what in ("price", "power"):
        value = getattr(table, key + what, None)
        if value is not None:
            data[name + what] = value


def _nodes(columns: Columns) -> Iterator[tuple[_Row, int]]:
    """Yield the kinds of rows that nodes make, and how many of each."""
    chips, nodes = columns.graph.get("chips", {}), columns.nodes
    of_chips = [
        [data[key] if key in data else chips.get(data.get("chip"), {}).get(key) for data in nodes] for key in _UNIT
    ]
    units = [sum(n > 0 for n in folded_planes(data)) if data["kind"] == "switch" else 1 for data in nodes]
    alike = Counter(zip(nodes.column("kind"), nodes.column("tier", ""), units, *of_chips, strict=True))
    for (kind, tier, planes, price, power), times in alike.items():
        yield (_NAMES.get(kind) or f"{tier or ''} switches".strip(), planes, price, power), times


def _edges(columns: Columns) -> Iterator[tuple[_Row, int]]:
    """Yield the same of edges: cables, then NICs."""
    cables = _cables(columns)
    alike = Counter(zip(*(cables.column(key) for key in ("kind", *_UNIT)), cables.column("lanes", 1), strict=True))
    for (kind, price, power, lanes), times in alike.items():
        yield (f"{kind} cables", int(lanes), price, power), times
    nics = Rows(data for data in cables if "nic" in data or "nic_price" in data or "nic_power" in data)
    of_nics = Counter(zip(nics.column("nics", 1), nics.column("nic_price"), nics.column("nic_power"), strict=True))
    for (units, price, power), times in of_nics.items():
        yield ("NICs", units, price, power), times


def _cables(columns: Columns) -> Rows:
    """Return the edges, of the two directions of a cable one."""
    if not columns.directed:
        return columns.edges
    ends, labels = list(map(tuple, columns.ends.tolist())), columns.labels
    there = set(ends)
    return Rows(
        data for (a, b), data in zip(ends, columns.edges, strict=True)
        if not (labels[a] > labels[b] and (b, a) in there)
    )  # fmt: skip


def _total(rows: Iterable[tuple[Any, ...]], column: int) -> float | None:
    values = [(row[1], row[column]) for row in rows]
    return None if any(value is None for _, value in values) else float(sum(n * value for n, value in values))


def _order(name: str) -> tuple[int, int]:
    """GPUs first, then hosts, switches from the ranks up, NICs, cables."""
    which, _, what = name.rpartition(" ")
    parts, kinds = ("GPUs", "hosts", "CPUs", "switches", "NICs", "cables"), ("", *TIERS, *EDGE_KINDS)
    return parts.index(what), kinds.index(which)
