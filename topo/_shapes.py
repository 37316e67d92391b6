"""What is one scale-up domain wired like? One builder per shape; a row of SHAPES each.

A builder gets the domain's table and size and returns a graph on local labels: "gpu0",
"gpu1", ... in rank order, and its switches.
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx

from topo._design import ScaleUp
from topo._errors import Fault, InputError, suggest

__all__ = ["SHAPES", "build_domain"]

Builder = Callable[[ScaleUp, int, bool], "nx.Graph[str]"]


def build_domain(spec: ScaleUp, size: int, *, planes: bool = False, file: str | None = None) -> nx.Graph[str]:
    """Return one scale-up domain of `size` GPUs on local labels.

    Parameters
    ----------
    spec : ScaleUp
        Shape, bandwidth per GPU and direction [bytes/s], latency per link [s], lanes.
    size : int
        GPUs in the domain.
    planes : bool, optional
        Unfold identical parallel switch planes into one switch node each.
    file : str, optional
        For messages.
    """
    if spec.shape not in SHAPES:
        cure = suggest(spec.shape, SHAPES)
        raise InputError(Fault("scale_up.shape", spec.shape, "is not a known shape", cure, file))
    if faults := shape_faults(spec):
        raise InputError(*faults)
    return SHAPES[spec.shape](spec, size, planes)


def _gpus(size: int) -> list[str]:
    return [f"gpu{i}" for i in range(size)]


def lanes_per_plane(spec: ScaleUp) -> tuple[int, ...]:
    """Return the links of one GPU to each plane of a switched domain."""
    if isinstance(spec.lanes, tuple):
        return spec.lanes
    return ((spec.lanes or spec.planes) // spec.planes,) * spec.planes


def shape_faults(spec: ScaleUp) -> list[Fault]:
    """Return what of lanes and planes no domain of this shape can have."""
    lanes, planes = spec.lanes, spec.planes
    if spec.shape == "switched" and isinstance(lanes, tuple) and len(lanes) != planes:
        rule = f"must name one number per plane, planes = {planes}"
        return [Fault("scale_up.lanes", list(lanes), rule, "Give as many numbers as there are planes.")]
    if spec.shape == "switched" and isinstance(lanes, int) and lanes % planes:
        rule = f"does not divide over {planes} planes"
        return [Fault("scale_up.lanes", lanes, rule, "Give the links to each plane, as [5, 4, 4, 5].")]
    if spec.shape == "full_mesh" and planes != 1:
        cure = "Leave planes out; lanes is links per pair."
        return [Fault("scale_up.planes", planes, "a full mesh has no switch planes", cure)]
    if spec.shape == "full_mesh" and isinstance(lanes, tuple):
        return [Fault("scale_up.lanes", list(lanes), "a full mesh has one number of links per pair", "Give a number.")]
    return []


def switched(spec: ScaleUp, size: int, planes: bool) -> nx.Graph[str]:
    """Every GPU to every switch plane: any pair of GPUs two hops apart.

    Folded, the planes are one switch with all lanes. That is exact while every GPU has
    the same lanes to a plane and traffic splits by capacity: each plane then carries the
    same share of its capacity.
    """
    per_plane = lanes_per_plane(spec)
    groups = [per_plane] if not planes else [(lanes,) for lanes in per_plane]
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(_gpus(size), kind="gpu", forwards=False)
    for index, group in enumerate(groups):
        name = f"switch{index}" if planes else "switch"
        lanes = sum(group)
        graph.add_node(
            name, kind="switch", tier="scale-up", forwards=True, planes=len(group),
            reduces=spec.reduces, multicasts=spec.multicasts,
        )  # fmt: skip
        if len(group) > 1:
            graph.nodes[name]["plane_lanes"] = list(group)
        bandwidth = spec.bandwidth * lanes / sum(per_plane)
        for gpu in _gpus(size):
            graph.add_edge(gpu, name, kind="scale-up", bandwidth=bandwidth, latency=spec.latency, lanes=lanes)
    return graph


def full_mesh(spec: ScaleUp, size: int, planes: bool) -> nx.Graph[str]:
    """Every GPU wired to every other; a pair has 1/(size - 1) of a GPU's bandwidth."""
    links = spec.lanes if isinstance(spec.lanes, int) else 1
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(_gpus(size), kind="gpu", forwards=False)
    for i in range(size):
        for j in range(i + 1, size):
            graph.add_edge(
                f"gpu{i}", f"gpu{j}", kind="scale-up", latency=spec.latency,
                bandwidth=spec.bandwidth / (size - 1), lanes=links,
            )  # fmt: skip
    return graph


SHAPES: dict[str, Builder] = {"switched": switched, "full_mesh": full_mesh}
