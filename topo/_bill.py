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
from topo._design import Design
from topo._planes import folded_planes, lane_count

__all__ = ["Bill", "bill_of", "state_units"]

_NAMES = {"gpu": "GPUs", "host": "hosts", "nic": "NICs", "cpu": "CPUs"}
#: Class of part, units a row stands for, price and power of one.
_Row = tuple[str, float, float | None, float | None]


@dataclass(frozen=True)
class Bill:
    """Parts of one class: how many, and what they cost [$] and draw [W] together, None unless each states it."""

    units: int
    price: float | None
    power: float | None


def bill_of(graph: nx.Graph[str]) -> dict[str, Bill]:
    """Return class of part -> `Bill`: GPUs, switches by tier, NICs, cables by kind of edge."""
    alike = Counter(chain(_nodes(graph), _edges(graph)))
    rows: dict[str, list[_Row]] = {}
    for (name, units, price, power), times in alike.items():
        rows.setdefault(name, []).append((name, units * times, price, power))
    return {
        name: Bill(round(sum(row[1] for row in rows[name])), _total(rows[name], 2), _total(rows[name], 3))
        for name in sorted(rows, key=_order)
    }


def state_units(graph: nx.Graph[str], design: Design) -> None:
    """Write the unit prices and powers of a design's tables onto the graph under construction."""
    tables: dict[str, Any] = {"scale-up": design.scale_up, "scale-out": design.scale_out}
    for _, data in graph.nodes(data=True):
        if data["kind"] == "switch":
            _state(data, tables["scale-up" if data.get("tier") == "scale-up" else "scale-out"], "switch_", "")
        elif data["kind"] == "nic":
            _state(data, tables["scale-out"], "nic_", "")
    for a, b, data in graph.edges(data=True):
        _state(data, tables.get(data["kind"]), "cable_", "")
        if data["kind"] == "scale-out" and "gpu" in (graph.nodes[a]["kind"], graph.nodes[b]["kind"]):
            _state(data, tables["scale-out"], "nic_", "nic_")
            if design.scale_out is not None and (nics := lane_count(data) / design.scale_out.ports_per_nic) != 1:
                data["nics"] = nics


def _state(data: dict[str, Any], table: Any, key: str, name: str) -> None:
    for what in ("price", "power"):
        value = getattr(table, key + what, None)
        if value is not None:
            data[name + what] = value


def _nodes(graph: nx.Graph[str]) -> Iterator[_Row]:
    chips = graph.graph.get("chips", {})
    for _, data in graph.nodes(data=True):
        kind, chip = data["kind"], chips.get(data.get("chip"), {})
        name = _NAMES.get(kind) or f"{data.get('tier', '')} switches".strip()
        units = sum(lanes > 0 for lanes in folded_planes(data)) if kind == "switch" else 1
        yield name, units, data.get("price", chip.get("price")), data.get("power", chip.get("power"))


def _edges(graph: nx.Graph[str]) -> Iterator[_Row]:
    for a, b, data in graph.edges(data=True):
        if graph.is_directed() and a > b and graph.has_edge(b, a):
            continue  # the same cable, the other way
        yield f"{data['kind']} cables", lane_count(data), data.get("price"), data.get("power")
        if "nic" in data or "nic_price" in data or "nic_power" in data:
            yield "NICs", data.get("nics", 1), data.get("nic_price"), data.get("nic_power")


def _total(rows: Iterable[tuple[Any, ...]], column: int) -> float | None:
    values = [(row[1], row[column]) for row in rows]
    return None if any(value is None for _, value in values) else float(sum(n * value for n, value in values))


def _order(name: str) -> tuple[int, int]:
    """GPUs first, then hosts, switches from the ranks up, NICs, cables."""
    which, _, what = name.rpartition(" ")
    parts, kinds = ("GPUs", "hosts", "CPUs", "switches", "NICs", "cables"), ("", *TIERS, *EDGE_KINDS)
    return parts.index(what), kinds.index(which)
