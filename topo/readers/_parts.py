"""What do the readers of simulators' files share? Numbers checked with their line, cables, the finished reading."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import networkx as nx

from topo._asked import MOST, Link, add_cable
from topo._errors import Fault, InputError
from topo.readers._reading import Reading
from topo.units import Kind, parse_quantity

__all__ = ["Checked", "add_lane", "finished", "merged_ways"]

_SHOWN = 20
_SPACED = re.compile(r"\s*(\S+?)\s*([A-Za-z]\S*)?\s*")


class Checked:
    """What is wrong with a file, gathered while it is read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []

    def fault(self, place: str, value: object, rule: str, cure: str = "Correct it.") -> None:
        """Note a fault."""
        self.faults.append(Fault(place, value, rule, cure, self.file))

    def refuse(self, place: str, value: object, rule: str, cure: str = "Correct it.") -> InputError:
        """Note a fault after which nothing more can be read; return the error to raise."""
        self.fault(place, value, rule, cure)
        return self.error()

    def error(self) -> InputError:
        """Return the first faults as an error."""
        return InputError(*self.faults[:_SHOWN])

    def settle(self) -> None:
        """Raise InputError if anything is wrong."""
        if self.faults:
            raise self.error()

    def whole(self, place: str, value: object, least: int = 0, most: int = MOST) -> int:
        """Return a whole number from `least` to `most`; `least` where it is none."""
        text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
        number = int(text) if re.fullmatch(r"\+?[0-9]{1,18}", text) else None
        if number is not None and least <= number <= most:
            return number
        self.fault(place, value, f"must be a whole number from {least} to {most:,}")
        return least

    def number(self, place: str, value: object, *, zero: bool = False) -> float:
        """Return a finite number above zero (or zero); 1 where it is none."""
        return self._si(place, value, f"{value} B/s", "bandwidth" if not zero else "seconds", " s" if zero else "")

    def rate(self, place: str, text: str) -> float:
        """Return a bandwidth [bytes/s] written as 400Gbps, 125MBps or 1.25E8 (bytes/s)."""
        return self._si(place, text, re.sub(r"ps$", "/s", _with_unit(text, "Bps")), "bandwidth")

    def time(self, place: str, text: str) -> float:
        """Return a time [s] written as 50us, 0.0005ms or 2.4E-5 (s)."""
        return self._si(place, text, _with_unit(text, "s"), "seconds")

    def _si(self, place: str, value: object, text: str, kind: Kind, unit: str = "") -> float:
        try:
            return parse_quantity(f"{value}{unit}" if unit else text, kind, place=place, zero=kind == "seconds")
        except InputError as error:
            self.faults += [Fault(place, value, f.rule, f.cure, self.file) for f in error.faults]
            return 1.0


def _with_unit(text: str, unit: str) -> str:
    """Return a quantity with a unit behind it where it has none."""
    try:
        float(text)
    except ValueError:
        return text
    return f"{text}{unit}"


def add_lane(graph: nx.Graph[str], a: str, b: str, link: Link) -> None:
    """Add one cable; beside another between the same two nodes it is one lane more of a bundle."""
    if not graph.has_edge(a, b):
        add_cable(graph, a, b, link)
        return
    data = graph.edges[a, b]
    lanes = [*data.get("lane_bandwidths", [data["bandwidth"] / data["lanes"]] * data["lanes"]), link.bandwidth]
    data.update(bandwidth=sum(lanes), latency=max(data["latency"], link.latency), lanes=len(lanes))
    if len(set(lanes)) > 1:
        data["lane_bandwidths"] = lanes


def finished(kind: str, file: str, graph: nx.Graph[str], notes: Iterable[str], **about: Any) -> Reading:
    """Return the reading of a graph: named after its file, end points ranked in order, notes kept with it."""
    said = tuple(dict.fromkeys(notes))
    graph.graph.update(schema=1, name=PurePath(file).stem or kind, assumptions=list(said), **about)
    ends = [data for _, data in graph.nodes(data=True) if data["kind"] in ("gpu", "host")]
    for rank, data in enumerate(ends):
        data["rank"] = rank
    return Reading(kind, graph, said)


def merged_ways(graph: nx.DiGraph[str]) -> nx.Graph[str]:
    """Return a graph of full duplex links if every link is the same both ways, else the graph given."""
    if any(graph.get_edge_data(b, a) != data for a, b, data in graph.edges(data=True)):
        return graph
    both: nx.Graph[str] = nx.Graph()
    both.add_nodes_from(graph.nodes(data=True))
    both.add_edges_from(graph.edges(data=True))
    return both
