"""What if a link fails, gets slower or faster? Edits of a topology, each a new one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TypeVar

import networkx as nx
import numpy as np

from topo._check import EDGE_KINDS, local_faults, raise_faults
from topo._errors import Fault, InputError, suggest
from topo._fabric import Fabric
from topo._failures import Link, failures
from topo._planes import keep_lanes, lane_count, unfold, without_plane

__all__ = ["degrade", "fail", "scale"]

AnyTopology = TypeVar("AnyTopology", "nx.Graph[str]", Fabric)
AnyGraph = TypeVar("AnyGraph", bound="nx.Graph[str]")


def scale(graph: AnyTopology, *, kind: str, bandwidth: float = 1.0, latency: float = 1.0) -> AnyTopology:
    """Return a topology in which every link of one kind is so many times as fast and as late.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        Left as it is.
    kind : {"scale-up", "scale-out", "pcie"}
        Which links.
    bandwidth, latency : float, optional
        Factors; bandwidth above zero, latency zero or more.

    Returns
    -------
    networkx.Graph or Fabric
        Of the type given.

    Raises
    ------
    InputError
        Unknown kind, or a factor that is not a finite number in its range.

    Examples
    --------
    >>> from topo import load
    >>> faster = scale(load("hgx-h100-8", domains=2), kind="scale-out", bandwidth=2.0)
    >>> faster.edges["d0/gpu0", "leaf0"]["bandwidth"]
    100000000000.0
    """
    if kind not in EDGE_KINDS:
        raise InputError(Fault("kind", kind, "is not a kind of edge", suggest(kind, EDGE_KINDS)))
    if not (math.isfinite(bandwidth) and bandwidth > 0 and math.isfinite(latency) and latency >= 0):
        rule = "factors must be finite, bandwidth above zero, latency zero or more"
        raise InputError(Fault("bandwidth, latency", (bandwidth, latency), rule, "Correct them."))
    if isinstance(graph, Fabric):
        of_kind = graph.link_kind == EDGE_KINDS.index(kind)
        rates = np.where(of_kind, graph.bandwidth * bandwidth, graph.bandwidth)
        return replace(graph, bandwidth=rates, latency=np.where(of_kind, graph.latency * latency, graph.latency))
    edited = graph.copy()
    for _, _, data in edited.edges(data=True):
        if data["kind"] == kind:
            data["bandwidth"] *= bandwidth
            data["latency"] *= latency
    return edited


def fail(
    graph: AnyGraph, *, links: Iterable[Link] = (), lanes: Mapping[Link, int | Collection[int]] | None = None,
    switches: Iterable[str] = (), nics: Iterable[str | Link] = (), gpus: Iterable[str] = (),
) -> AnyGraph:  # fmt: skip
    """Return a graph without what failed.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Left as it is. In a DiGraph a link is one direction.
    links : iterable of (str, str), optional
        Edges that failed, with all their lanes.
    lanes : mapping, optional
        Edge -> how many of its lanes failed, the last ones going first; or the numbers of
        those that did, from 0 in the order of `lane_bandwidths`, `ports` and planes.
    switches : iterable of str, optional
        Switches, or single planes of a folded one under the name they have unfolded:
        "d0/switch3" is plane 3 of "d0/switch".
    nics : iterable of str or (str, str), optional
        NIC nodes; where a NIC is the edge itself, the GPU (all its scale-out links) or
        that edge.
    gpus : iterable of str, optional
        GPUs, or hosts where those are the end points. The others stay ranks in order.

    Returns
    -------
    networkx.Graph
        Of the type given; may be disconnected, which `topo.check` reports. A node that
        lost all its scale-up links leaves its domain; of a domain that fell apart the
        part with most ranks keeps the id. A folded switch loses a plane's lanes, or is
        unfolded where planes are no longer alike. What failed is said in `assumptions`.

    Raises
    ------
    InputError
        Names and links that do not exist, all at once, with the nearest ones.

    Examples
    --------
    >>> from topo import load
    >>> hurt = fail(load("gb200-nvl72"), switches=["d0/switch3"], gpus=["d0/gpu0"])
    >>> hurt.edges["d0/gpu1", "d0/switch"]["bandwidth"]  # 17/18 of 900 GB/s
    850000000000.0
    """
    _require_graph(graph)
    what = failures(graph, links, lanes or {}, switches, nics, gpus)
    edited, planes = unfold(graph, what.unfold) if what.unfold else (graph.copy(), {})
    edited.graph = deepcopy(graph.graph)
    for link, numbers in what.lanes.items():
        _drop_lanes(edited, _edges(edited, link, planes), numbers)
    for link in what.links:
        edited.remove_edges_from(_edges(edited, link, planes))
    for switch, plane in what.planes:
        if switch in planes:
            edited.remove_nodes_from([f"{switch}{plane}"])
        elif switch in edited:
            without_plane(edited, switch, plane)
    edited.remove_nodes_from(name for node in what.nodes for name in planes.get(node, [node]))
    _leave_domains(edited, graph)
    _say(edited, what.said)
    return edited


def degrade(graph: AnyGraph, edge: Link, keep: float = 0.5) -> AnyGraph:
    """Return a graph in which one edge keeps part of its bandwidth, all its lanes alike.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Left as it is. In a DiGraph only the direction named gets slower.
    edge : (str, str)
        Its ends; one plane of a folded switch under its unfolded name.
    keep : float, optional
        Part that is left, above 0 and up to 1.

    Raises
    ------
    InputError
        No such edge, or a part out of range.

    Examples
    --------
    >>> from topo import load
    >>> degrade(load("hgx-h100-8"), ("d0/gpu0", "d0/switch")).edges["d0/gpu0", "d0/switch"]["bandwidth"]
    225000000000.0
    """
    _require_graph(graph)
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= 1:
        raise InputError(Fault("keep", keep, "must be above 0 and up to 1", "An edge that keeps nothing: topo.fail."))
    what = failures(graph, [edge], {}, (), (), ())
    edited, planes = unfold(graph, what.unfold) if what.unfold else (graph.copy(), {})
    edited.graph = deepcopy(graph.graph)
    for a, b in _edges(edited, what.links[0], planes):
        data = edited.edges[a, b]
        data["bandwidth"] *= keep
        if data.get("lane_bandwidths"):
            data["lane_bandwidths"] = [rate * keep for rate in data["lane_bandwidths"]]
    _say(edited, [f"degrade: {' - '.join(what.links[0])} keeps {keep:g}"])
    return edited


def _require_graph(graph: object) -> None:
    if isinstance(graph, Fabric):
        cure = "Edit the graph, then take topo.Fabric.from_graph of it."
        raise InputError(Fault("graph", repr(graph), "does not say which planes, NICs and domains it has", cure))
    raise_faults(local_faults(graph))  # type: ignore[arg-type]


def _edges(graph: nx.Graph[str], link: Link, planes: Mapping[str, list[str]]) -> list[Link]:
    """Return what a link is after unfolding: itself, or one edge a plane, in their order."""
    ends = [planes.get(end, [end]) for end in link]
    return [(a, b) for a in ends[0] for b in ends[1] if graph.has_edge(a, b)]


def _drop_lanes(graph: nx.Graph[str], edges: list[Link], numbers: Collection[int]) -> None:
    """Take lanes from a link, numbered over the edges that stand for it."""
    first = 0
    for a, b in edges:
        data = graph.edges[a, b]
        of = lane_count(data)
        kept = [i for i in range(of) if first + i not in numbers]
        first += of
        if not kept:
            graph.remove_edge(a, b)
        elif len(kept) < of:
            data.update(keep_lanes(data, kept, of))


def _leave_domains(edited: nx.Graph[str], before: nx.Graph[str]) -> None:
    """Take the domain from nodes that are no longer joined to most of it by scale-up edges."""
    wired: nx.Graph[str] = nx.Graph()
    wired.add_nodes_from(node for node, domain in edited.nodes(data="domain") if domain is not None)
    wired.add_edges_from((a, b) for a, b, data in edited.edges(data=True) if data["kind"] == "scale-up")
    first: dict[object, set[str]] = {}
    parts = sorted(nx.connected_components(wired), key=lambda part: -_rank_count(edited, part))
    for part in parts:
        for domain in {edited.nodes[node].get("domain") for node in part} - {None}:
            home = first.setdefault(domain, part)
            for node in part if home is not part or _stranded(part, before) else ():
                edited.nodes[node].pop("domain", None)
    if edited.graph.get("domains") is not None:
        left = {domain for _, domain in edited.nodes(data="domain") if domain is not None}
        edited.graph["domains"] = len(left) or 1


def _rank_count(graph: nx.Graph[str], part: Iterable[str]) -> int:
    return sum(graph.nodes[node]["kind"] in ("gpu", "host") for node in part)


def _stranded(part: set[str], before: nx.Graph[str]) -> bool:
    """Whether a node stands alone that had scale-up links before."""
    return len(part) == 1 and any(
        data["kind"] == "scale-up" for node in part if node in before for _, _, data in before.edges(node, data=True)
    )


def _say(graph: nx.Graph[str], lines: list[str]) -> None:
    if lines:
        graph.graph["assumptions"] = [*graph.graph.get("assumptions", ()), *lines]
