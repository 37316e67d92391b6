"""What is one scale-up domain wired like? A row of SHAPES per shape.

A builder gets the domain's table and size and returns a graph on local labels: "gpu0",
"gpu1", ... in rank order, and its switches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from topo._asked import MOST, called
from topo._bridges import bridge_pairs, hybrid_cube_mesh
from topo._design import ScaleUp
from topo._errors import Fault, InputError
from topo._tori import hypercube, ring, torus, ultraserver
from topo._two_level import two_level

__all__ = ["SHAPES", "Shape", "build_domain", "resolved", "shape_faults"]

Builder = Callable[[ScaleUp, int, bool], "nx.Graph[str]"]


@dataclass(frozen=True)
class Shape:
    """One scale-up shape.

    Attributes
    ----------
    build : callable
        Table, size and whether planes are unfolded -> graph.
    keys : tuple of str
        Keys of [scale_up] it takes beside those that every shape takes.
    switches : bool
        Whether it has switches, which may reduce and multicast.
    any_size : bool
        Whether domains of other sizes than the design's can be built.
    bare : bool
        Whether `keys` are parameters of `topo.build`'s builder.
    """

    build: Builder
    keys: tuple[str, ...] = ()
    switches: bool = False
    any_size: bool = False
    bare: bool = True


def build_domain(spec: ScaleUp, size: int, *, planes: bool = False) -> nx.Graph[str]:
    """Return one scale-up domain of `size` GPUs on local labels.

    Parameters
    ----------
    spec : ScaleUp
        Shape, bandwidth per GPU and direction [bytes/s], latency per link [s], lanes.
    size : int
        GPUs in the domain.
    planes : bool, optional
        Unfold identical parallel switch planes into one switch node each.

    Raises
    ------
    InputError
        Parameters that no such shape has.
    """
    if faults := shape_faults(spec):
        raise InputError(*faults)
    try:
        graph = SHAPES[spec.shape].build(spec, size, planes)
    except InputError as error:
        raise _dotted(error) from None
    for slot in spec.off:
        gpu = f"gpu{slot}"
        if gpu in graph:
            graph.remove_edges_from(
                [(a, b) for a, b, data in graph.edges(gpu, data=True) if data["kind"] == "scale-up"]
            )
    return graph


def resolved(spec: ScaleUp, size: int) -> ScaleUp:
    """Return the table with both its bandwidths: of a GPU, and of a link, which a file states either of.

    A GPU's links share its bandwidth equally; where GPUs have different numbers of links,
    as in a mesh, that of a GPU which has most.

    Raises
    ------
    InputError
        A shape that cannot be, or that has other GPUs than `size`.
    """
    if any(slot >= size for slot in spec.off):
        raise InputError(Fault("scale_up.off", list(spec.off), f"slots are 0 to {size - 1}", "Correct it."))
    if not SHAPES[spec.shape].bare:
        return _with_links(spec, size)
    sample = build_domain(replace(spec, off=(), link_bandwidth=spec.link_bandwidth or 1.0), size)
    gpus = [node for node, data in sample.nodes(data=True) if data["kind"] == "gpu"]
    if len(gpus) != size:
        rule = f"is not the number of GPUs that scale_up makes: {len(gpus)}"
        raise InputError(Fault("design.domain_size", size, rule, f"Write {len(gpus)}, or another shape."))
    if spec.host_block and "coordinates" not in sample.nodes[gpus[0]]:
        raise InputError(_no_grid(spec))
    if spec.link_bandwidth is not None:
        return replace(spec, bandwidth=max(_sum(sample, gpu, "bandwidth") for gpu in gpus))
    most = max(_sum(sample, gpu, "lanes") for gpu in gpus)
    return replace(spec, link_bandwidth=spec.bandwidth / most if most else spec.bandwidth)


def _with_links(spec: ScaleUp, size: int) -> ScaleUp:
    """Resolve a switched domain or a full mesh without building it."""
    if spec.host_block:
        raise InputError(_no_grid(spec))
    mesh = spec.shape == "full_mesh"
    if mesh and size * (size + 1) // 2 > MOST:
        rule = f"means {size * (size - 1) // 2:,} links, and a graph of Python objects holds {MOST:,}"
        raise InputError(Fault("design.domain_size", size, rule, "Take fewer."))
    lanes = (spec.lanes if isinstance(spec.lanes, int) else 1) * (size - 1) if mesh else sum(lanes_per_plane(spec))
    if isinstance(spec.link_bandwidth, float):
        return replace(spec, bandwidth=spec.link_bandwidth * max(lanes, 1))
    return replace(spec, link_bandwidth=spec.bandwidth / max(lanes, 1))


def _no_grid(spec: ScaleUp) -> Fault:
    rule = f"groups neighbours on a grid, and {spec.shape} is none"
    return Fault("scale_up.host_block", list(spec.host_block), rule, "Use design.gpus_per_host.")


def _sum(graph: nx.Graph[str], gpu: str, key: str) -> float:
    return sum(float(data[key]) for _, _, data in graph.edges(gpu, data=True) if data["kind"] == "scale-up")


def _dotted(error: InputError) -> InputError:
    """Name what a bare builder found wrong by the dotted key of a design file."""
    faults = [f if "." in f.place.partition("[")[0] else replace(f, place=f"scale_up.{f.place}") for f in error.faults]
    return InputError(*faults)


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
    if isinstance(spec.link_bandwidth, tuple) and spec.shape not in ("torus", "ultraserver"):
        rule = f"is one per axis, and {spec.shape} has no axes"
        return [Fault("scale_up.link_bandwidth", list(spec.link_bandwidth), rule, "Give one bandwidth.")]
    return []


def switched(spec: ScaleUp, size: int, planes: bool) -> nx.Graph[str]:
    """Every GPU to every switch plane: any pair of GPUs two hops apart.

    Folded, the planes are one switch with all lanes. That is exact while every GPU has
    the same lanes to a plane and traffic splits by capacity: each plane then carries the
    same share of its capacity.
    """
    per_plane = lanes_per_plane(spec)
    groups = [per_plane] if not planes else [(lanes,) for lanes in per_plane]
    total = spec.bandwidth or _link(spec) * sum(per_plane)
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
        bandwidth = total * lanes / sum(per_plane)
        for gpu in _gpus(size):
            graph.add_edge(gpu, name, kind="scale-up", bandwidth=bandwidth, latency=spec.latency, lanes=lanes)
    return graph


def full_mesh(spec: ScaleUp, size: int, planes: bool) -> nx.Graph[str]:
    """Every GPU wired to every other."""
    links = spec.lanes if isinstance(spec.lanes, int) else 1
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(_gpus(size), kind="gpu", forwards=False)
    for i in range(size):
        for j in range(i + 1, size):
            graph.add_edge(
                f"gpu{i}", f"gpu{j}", kind="scale-up", latency=spec.latency, bandwidth=links * _link(spec), lanes=links
            )
    return graph


def _link(spec: ScaleUp) -> float:
    return spec.link_bandwidth if isinstance(spec.link_bandwidth, float) else spec.bandwidth


def _bare(builder: Callable[..., nx.Graph[str]], size_key: str | None = None) -> Builder:
    """Return a builder of `topo.build` as one of domains; `size_key` is the parameter that counts GPUs."""

    def build(spec: ScaleUp, size: int, planes: bool) -> nx.Graph[str]:
        sized: dict[str, Any] = {size_key: size} if size_key else {}
        rates = list(spec.link_bandwidth) if isinstance(spec.link_bandwidth, tuple) else spec.link_bandwidth
        asked = {**spec.parameters, **sized, "bandwidth": rates, "latency": spec.latency}
        graph = called(spec.shape, builder, asked)
        for _, data in graph.nodes(data=True):
            if data["kind"] == "switch":
                data.update(reduces=spec.reduces, multicasts=spec.multicasts)
        return graph

    return build


SHAPES: dict[str, Shape] = {
    "switched": Shape(switched, ("planes", "lanes"), switches=True, any_size=True, bare=False),
    "full_mesh": Shape(full_mesh, ("planes", "lanes"), any_size=True, bare=False),
    "hybrid_cube_mesh": Shape(_bare(hybrid_cube_mesh), ("pcie",)),
    "bridge_pairs": Shape(_bare(bridge_pairs, "n"), ("lanes", "pcie"), any_size=True),
    "ring": Shape(_bare(ring, "n"), any_size=True),
    "torus": Shape(_bare(torus), ("dims", "twist", "wrap")),
    "hypercube": Shape(_bare(hypercube), ("dim",)),
    "ultraserver": Shape(_bare(ultraserver)),
    "two_level": Shape(
        _bare(two_level), ("nodes", "gpus_per_node", "l1", "planes", "lanes", "l2", "radix"), switches=True
    ),
}
