"""What does this shape look like on its own? One call per shape, without a design file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx

from topo._design import DEFAULTS, ScaleOut, ScaleUp
from topo._errors import Fault, InputError, suggest
from topo._fabrics import join_domains
from topo._shapes import build_domain
from topo.units import Kind, parse_quantity

__all__ = ["BUILDERS", "build"]

#: Taken where no bandwidth is given, and reported.
DEFAULT_BANDWIDTH = "50 GB/s"


def build(shape: str, **parameters: Any) -> nx.Graph[str]:
    """Return the graph of a named shape, its end points GPUs.

    Parameters
    ----------
    shape : str
        ``switched(n, planes=1, lanes=None, unfold=False)``: n GPUs, each wired to every switch
        plane; ``full_mesh(n, lanes=1)``: every pair of n GPUs wired;
        ``rail_optimised(domains, domain_size, radix=64, oversubscription=1.0)``: GPUs of
        several domains under leaves and spines, scale-out links only.
    **parameters
        Those, and ``bandwidth`` (per GPU and direction: "900 GB/s" or bytes/s) and
        ``latency`` (per link: "0.5 us" or s).

    Returns
    -------
    networkx.Graph
        ``graph.graph["assumptions"]`` says which bandwidth and latency were taken.

    Raises
    ------
    InputError
        Unknown shape or parameter, or numbers no such graph has.

    Examples
    --------
    >>> graph = build("switched", n=8, planes=4, lanes=[5, 4, 4, 5], bandwidth="450 GB/s")
    >>> graph.edges["gpu0", "switch"]["lanes"]
    18
    """
    if shape not in BUILDERS:
        raise InputError(Fault("shape", shape, "is not a known shape", suggest(str(shape), BUILDERS)))
    builder = BUILDERS[shape]
    known = inspect.signature(builder).parameters
    unknown = [name for name in parameters if name not in known]
    missing = [p.name for p in known.values() if p.default is p.empty and p.name not in parameters]
    faults = [Fault(name, parameters[name], f"is no parameter of {shape}", suggest(name, known)) for name in unknown]
    faults += [Fault(name, None, f"{shape} needs it", "Give it.") for name in missing]
    if faults:
        raise InputError(*faults)
    return builder(**parameters)


def _switched(
    n: int, planes: int = 1, lanes: int | Sequence[int] | None = None, unfold: bool = False,
    bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    per_plane = tuple(_whole("lanes", count) for count in lanes) if isinstance(lanes, Sequence) else lanes
    said, rate, late = _link("scale_up", bandwidth, latency)
    spec = ScaleUp("switched", rate, late, _whole("planes", planes), per_plane)
    return _named(build_domain(spec, _whole("n", n), planes=unfold), "switched", said)


def _full_mesh(n: int, lanes: int = 1, bandwidth: Any = None, latency: Any = None) -> nx.Graph[str]:
    said, rate, late = _link("scale_up", bandwidth, latency)
    spec = ScaleUp("full_mesh", rate, late, 1, _whole("lanes", lanes))
    return _named(build_domain(spec, _whole("n", n)), "full_mesh", said)


def _rail_optimised(
    domains: int, domain_size: int, radix: int = 64, oversubscription: float = 1.0,
    bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    said, rate, late = _link("scale_out", bandwidth, latency)
    if _whole("radix", radix) < 2 or not 0 < oversubscription < float("inf"):
        value = (radix, oversubscription)
        raise InputError(Fault("radix, oversubscription", value, "must be 2 or more, and above zero", "Correct them."))
    spec = ScaleOut(rate, late, "rail_optimised", radix, float(oversubscription))
    slots = [
        [f"d{d}/gpu{i}" for i in range(_whole("domain_size", domain_size))] for d in range(_whole("domains", domains))
    ]
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((gpu for gpus in slots for gpu in gpus), kind="gpu", forwards=False)
    join_domains(graph, slots, spec)
    return _named(graph, "rail_optimised", [*said, *graph.graph.get("assumptions", ())])


BUILDERS: dict[str, Callable[..., nx.Graph[str]]] = {
    "switched": _switched, "full_mesh": _full_mesh, "rail_optimised": _rail_optimised,
}  # fmt: skip


def _link(table: str, bandwidth: Any, latency: Any) -> tuple[list[str], float, float]:
    """Return what was assumed, and bandwidth [bytes/s] and latency [s] of a link."""
    said = []
    if bandwidth is None:
        bandwidth = DEFAULT_BANDWIDTH
        said.append(f"bandwidth = {bandwidth} per GPU and direction: assumed, none was given")
    if latency is None:
        latency = DEFAULTS[f"{table}.latency"]
        said.append(f"latency = {latency} per link: assumed, none was given")
    return said, _si("bandwidth", bandwidth, "bandwidth"), _si("latency", latency, "seconds")


def _si(place: str, value: Any, kind: Kind) -> float:
    if isinstance(value, str):
        return parse_quantity(value, kind, place=place, zero=kind == "seconds")
    if isinstance(value, int | float) and not isinstance(value, bool):
        unit = "B/s" if kind == "bandwidth" else "s"
        return parse_quantity(f"{value} {unit}", kind, place=place, zero=kind == "seconds")
    raise InputError(Fault(place, value, f"is not a {kind}", "Give SI numbers, or a string with its unit."))


def _whole(place: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(Fault(place, value, "must be a whole number, one or more", "Correct it."))
    return value


def _named(graph: nx.Graph[str], name: str, said: list[str]) -> nx.Graph[str]:
    graph.graph.update(schema=1, name=name, assumptions=said)
    for rank, node in enumerate(node for node, data in graph.nodes(data=True) if data["kind"] == "gpu"):
        graph.nodes[node]["rank"] = rank
    return graph
