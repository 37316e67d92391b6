"""What did the caller of `build` ask for? Parameters read one by one, all that is wrong with them said at once.

Also what every bare shape is made of: GPUs, switches and cables.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np

from topo._design import DEFAULTS
from topo._errors import Fault, InputError, suggest
from topo.units import Kind, parse_quantity

__all__ = ["DEFAULT_BANDWIDTH", "MOST", "Asked", "Link", "add_cable", "add_gpus", "add_switch", "called", "gpu_labels"]

#: Taken where no bandwidth is given, and reported.
DEFAULT_BANDWIDTH = "50 GB/s"
#: Nodes and links a bare shape may have: some 2 GB as Python objects.
MOST = 3_000_000


@dataclass(frozen=True)
class Link:
    """One lane: kind of edge, bandwidth per direction [bytes/s], latency [s]."""

    kind: str
    bandwidth: float
    latency: float


@dataclass
class Asked:
    """Parameters of one call of `build` as they are read: faults found so far, values assumed so far."""

    shape: str
    faults: list[Fault] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def must(self, holds: bool, place: str, value: object, rule: str, cure: str) -> bool:
        """Note a fault unless the rule holds; return whether it does."""
        if not holds:
            self.faults.append(Fault(place, value, rule, cure))
        return holds

    def sound(self, *places: str) -> bool:
        """Whether nothing is wrong so far with the parameters of these names."""
        return not any(fault.place.partition("[")[0] in places for fault in self.faults)

    def lanes(self, place: str, value: Any) -> int:
        """Return a number of parallel cables, one that float64 still multiplies."""
        n = self.whole(place, value)
        return n if self.must(n <= MOST, place, value, f"must be at most {MOST:,}", "Take fewer.") else 1

    def whole(self, place: str, value: Any, least: int = 1) -> int:
        """Return a whole number of at least `least`; that where it is none."""
        good = isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)
        rule = f"must be a whole number, {('zero', 'one', 'two')[least]} or more"
        return int(value) if self.must(good, place, value, rule, "Correct it.") else least

    def ratio(self, place: str, value: Any) -> float:
        """Return a finite number above zero; one where it is none."""
        good = _is_number(value) and 0 < value < math.inf
        return float(value) if self.must(good, place, value, "must be a finite number above zero", "Correct it.") else 1

    def listed(self, place: str, value: Any, n: int | None = None, what: str = "axis") -> list[tuple[str, Any]]:
        """Return (place, value) of every member of a list; one value alone stands for all n of them."""
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if n is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
            return [(place, value)] * n
        good = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == (n or max(1, len(value)))
        rule = f"must be a list, one per {what}" if n is None else f"must be one for all or one per {what}: {n}"
        if not self.must(good, place, value, rule, f"Give {'them in a list' if n is None else f'one or {n}'}."):
            return []
        return [(f"{place}[{i}]", member) for i, member in enumerate(value)]

    def rate(self, bandwidth: Any, place: str = "bandwidth", per: str = "lane") -> float:
        """Return a bandwidth [bytes/s], assumed where none is given."""
        if bandwidth is None:
            bandwidth = DEFAULT_BANDWIDTH
            self.said.append(f"{place} = {bandwidth} per {per} and direction: assumed, none was given")
        return self._si(place, bandwidth, "bandwidth")

    def late(self, latency: Any, kind: str, place: str = "latency") -> float:
        """Return a latency per link [s], assumed where none is given."""
        if latency is None:
            latency = DEFAULTS[f"{kind.replace('-', '_')}.latency"]
            self.said.append(f"{place} = {latency} per link: assumed, none was given")
        return self._si(place, latency, "seconds")

    def link(self, kind: str, bandwidth: Any, latency: Any) -> Link:
        """Return what one lane is."""
        return Link(kind, self.rate(bandwidth), self.late(latency, kind))

    def _si(self, place: str, value: Any, kind: Kind) -> float:
        zero = kind == "seconds"
        text = f"{float(value)} {'s' if zero else 'B/s'}" if _is_number(value) else value
        try:
            return parse_quantity(text, kind, place=place, zero=zero)
        except InputError as error:
            said = [Fault(f.place, value, f.rule, f"{f.cure} SI numbers are taken too.") for f in error.faults]
            self.faults += said
            return 1.0

    def ports(self, radix: Any, *used: tuple[str, int]) -> int:
        """Count ports against the radix, if one is given, else return the ports that the largest switch uses."""
        most = max(n for _, n in used)
        if radix is None:
            return most
        has = self.whole("radix", radix)
        for what, n in used if self.sound("radix") else ():
            self.must(n <= has, "radix", radix, f"{what} needs {n} ports", f"Take a radix of {most}, or fewer ports.")
        return has

    def size(self, place: str, value: object, count: int) -> None:
        """Refuse more nodes and links than a graph of Python objects holds."""
        rule = f"means about {min(count, 10**300):.2g} nodes and links, and a graph of Python objects holds {MOST:,}"
        self.must(count <= MOST, place, value, rule, "Take a smaller one.")

    def settle(self) -> None:
        """Raise InputError with everything found, if there is anything."""
        if self.faults:
            raise InputError(*self.faults)

    def named(self, graph: nx.Graph[str], **parameters: Any) -> nx.Graph[str]:
        """Return the finished graph: its shape and parameters, what was assumed, GPUs ranked in order."""
        said = [*self.said, *graph.graph.get("assumptions", ())]
        shape = {"name": self.shape, **parameters}
        graph.graph.update(schema=1, name=self.shape, shape=shape, assumptions=said)
        for rank, node in enumerate(node for node, data in graph.nodes(data=True) if data["kind"] == "gpu"):
            graph.nodes[node]["rank"] = rank
        return graph


def called(shape: str, builder: Callable[..., nx.Graph[str]], parameters: Mapping[str, Any]) -> nx.Graph[str]:
    """Return what a builder makes of parameters by name.

    Raises
    ------
    InputError
        Parameters it does not know or needs, or numbers no such graph has.
    """
    known = inspect.signature(builder).parameters
    unknown = [name for name in parameters if name not in known]
    missing = [p.name for p in known.values() if p.default is p.empty and p.name not in parameters]
    faults = [Fault(name, parameters[name], f"is no parameter of {shape}", suggest(name, known)) for name in unknown]
    faults += [Fault(name, None, f"{shape} needs it", "Give it.") for name in missing]
    if faults:
        raise InputError(*faults)
    return builder(**parameters)


def _is_number(value: Any) -> bool:
    """Whether a value is a number that float64 holds."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and (not isinstance(value, int) or abs(value) <= sys.float_info.max)


def gpu_labels(n: int) -> list[str]:
    """Return "gpu0", "gpu1", ..."""
    return [f"gpu{i}" for i in range(n)]


def add_gpus(graph: nx.Graph[str], labels: Iterable[str], *, forwards: bool = False) -> None:
    """Add end points in rank order."""
    graph.add_nodes_from(labels, kind="gpu", forwards=forwards)


def add_switch(graph: nx.Graph[str], label: str, tier: str, radix: int | None = None, **data: Any) -> None:
    """Add a switch, with its number of ports where that is known."""
    if radix is not None:
        data = {"radix": radix, **data}
    graph.add_node(label, kind="switch", tier=tier, forwards=True, reduces=False, multicasts=False, **data)


def add_cable(graph: nx.Graph[str], a: str, b: str, link: Link, lanes: int = 1, **data: Any) -> None:
    """Cable two nodes with so many lanes."""
    graph.add_edge(a, b, kind=link.kind, bandwidth=lanes * link.bandwidth, latency=link.latency, lanes=lanes, **data)
