"""What does a grid of chips look like? Rings, tori with and without twists, hypercubes.

Chips forward, edges are scale-up. Rank r stands at r mod x on the first axis, (r // x) mod y
on the second, and so on: the first axis is the fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import Any

import networkx as nx

from topo._asked import Asked, Link, add_cable, add_gpus, gpu_labels

__all__ = ["hypercube", "ring", "torus", "ultraserver"]


@dataclass(frozen=True)
class Lattice:
    """A grid of sides `dims`; which axes wrap; shift of other axes where one wraps: axis -> (other, shift)s.

    `order` has an axis before those that it shifts, so one pass over it brings a point home.
    """

    dims: tuple[int, ...]
    wrap: tuple[bool, ...]
    shifts: dict[int, list[tuple[int, int]]]
    order: tuple[int, ...]

    def points(self) -> list[list[int]]:
        """Coordinates of every rank."""
        strides = [prod(self.dims[:axis]) for axis in range(len(self.dims))]
        return [[r // s % n for s, n in zip(strides, self.dims, strict=True)] for r in range(prod(self.dims))]

    def rank(self, point: Sequence[int]) -> int:
        """Return the rank that stands at a point, which may lie outside the box on axes that wrap."""
        at = list(point)
        for axis in self.order:
            turns, at[axis] = divmod(at[axis], self.dims[axis])
            for other, shift in self.shifts.get(axis, ()):
                at[other] += turns * shift
        return sum(c * prod(self.dims[:axis]) for axis, c in enumerate(at))

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """One step up along every axis from every rank: (rank, rank, axis); a side of 2 gives a pair twice."""
        for rank, point in enumerate(self.points()):
            for axis, side in enumerate(self.dims):
                if side > 1 and (self.wrap[axis] or point[axis] + 1 < side):
                    yield rank, self.rank([c + (i == axis) for i, c in enumerate(point)]), axis


def torus(
    dims: Sequence[int], twist: Any = None, wrap: bool | Sequence[bool] = True, bandwidth: Any = None,
    latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return a torus or mesh of any number of axes, its chips GPUs that forward.

    N = product of the sides. An axis of side n > 1 that wraps has N links, one that does
    not N (n - 1)/n; a side of 2 that wraps is N/2 edges of two lanes; sides of 1 vanish.
    A wrapped axis takes 2 ports of a chip. Diameter without twist: sum of floor(n/2) over
    wrapped axes and n - 1 over the others. Bisection across an even longest side n: 2 N/n
    lanes, N/n of a mesh.

    Parameters
    ----------
    dims : sequence of int
        Side of every axis.
    twist : mapping, optional
        (axis that wraps, axis that is shifted there) -> shift: whoever leaves the first
        axis at its end enters it again so much further on the second. (axis, axis, shift)
        triples do as well.
    wrap : bool or sequence of bool, optional
        Whether an axis closes to a ring.
    bandwidth : str, number or sequence, optional
        Per lane and direction; one for all axes or one per axis.
    latency : str or number, optional
        Per link.

    References
    ----------
    .. [1] N. Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer for Machine
       Learning with Hardware Support for Embeddings", ISCA 2023, arXiv 2304.01433.
    .. [2] J. M. Camara et al., "Twisted Torus Topologies for Enhanced Interconnection
       Networks", IEEE TPDS 21 (2010).

    Examples
    --------
    >>> from topo import build, hop_counts
    >>> regular = build("torus", dims=(4, 4, 8))
    >>> regular.number_of_edges(), int(hop_counts(regular).max())
    (384, 8)
    >>> twisted = build("torus", dims=(4, 4, 8), twist={(0, 2): 4, (1, 2): 4})
    >>> twisted.number_of_edges(), int(hop_counts(twisted).max())
    (384, 6)
    """
    asked = Asked("torus")
    sides = tuple(asked.whole(place, side) for place, side in asked.listed("dims", dims))
    asked.size("dims", dims, prod(sides) * (1 + len(sides)))
    closed = _flags(asked, wrap, len(sides)) if sides else ()
    links = _axis_links(asked, bandwidth, latency, len(sides))
    shifts = _twists(asked, twist, sides, closed) if sides else []
    order = _order(asked, shifts, len(sides))
    asked.settle()
    lattice = Lattice(sides, closed, _by_axis(shifts), order)
    rates: Any = [link.bandwidth for link in links]
    return asked.named(
        lattice_graph(lattice, links), dims=list(sides), wrap=list(closed), twist=[list(row) for row in shifts],
        bandwidth=rates[0] if len(set(rates)) == 1 else rates, latency=links[0].latency,
    )  # fmt: skip


def ring(n: int, bandwidth: Any = None, latency: Any = None) -> nx.Graph[str]:
    """Return n GPUs in a ring: n links, 2 ports a GPU, diameter floor(n/2); two GPUs share two lanes.

    Examples
    --------
    >>> from topo import build
    >>> build("ring", n=8).number_of_edges()
    8
    """
    asked = Asked("ring")
    size = asked.whole("n", n)
    asked.size("n", n, 2 * size)
    link = asked.link("scale-up", bandwidth, latency)
    asked.settle()
    graph = lattice_graph(Lattice((size,), (True,), {}, (0,)), [link])
    return asked.named(graph, n=size, bandwidth=link.bandwidth, latency=link.latency)


def hypercube(dim: int, bandwidth: Any = None, latency: Any = None) -> nx.Graph[str]:
    """Return 2**dim GPUs, those linked whose ranks differ in one bit.

    dim 2**(dim - 1) links, dim ports a GPU, diameter dim, bisection 2**(dim - 1) links.

    Examples
    --------
    >>> from topo import build
    >>> sorted(build("hypercube", dim=3)["gpu5"])
    ['gpu1', 'gpu4', 'gpu7']
    """
    asked = Asked("hypercube")
    bits = asked.whole("dim", dim)
    asked.size("dim", dim, 2 ** min(bits, 64) * (2 + bits) // 2)
    link = asked.link("scale-up", bandwidth, latency)
    asked.settle()
    lattice = Lattice((2,) * bits, (False,) * bits, {}, tuple(range(bits)))
    graph = lattice_graph(lattice, [link] * bits)
    return asked.named(graph, dim=bits, bandwidth=link.bandwidth, latency=link.latency)


#: Lanes of a Trainium2 chip on x, y and z.
TRN2 = ("128 GB/s", "128 GB/s", "64 GB/s")


def ultraserver(bandwidth: Any = None, latency: Any = None) -> nx.Graph[str]:
    """Return an AWS Trn2 UltraServer: 64 chips, four instances of a 4 x 4 torus joined by rings of four.

    A 4 x 4 x 4 torus with thinner z: 192 links, 6 ports a chip, diameter 6; by default 640
    GB/s per chip and direction. `host` is the instance, 16 chips in rank order.

    References
    ----------
    .. [1] AWS Neuron SDK documentation, "Trn2 Architecture" and "Trainium2 Architecture":
       1024 GB/s within an instance and 256 GB/s between instances per chip.

    Examples
    --------
    >>> from topo import build
    >>> sum(rate for _, _, rate in build("ultraserver").edges("gpu0", data="bandwidth")) / 1e9
    640.0
    """
    asked = Asked("ultraserver")
    if bandwidth is None:
        asked.said.append(
            "bandwidth = 128, 128 and 64 GB/s per lane and direction on x, y, z: AWS Neuron documentation, its 1024 "
            "and 256 GB/s per chip assumed to be both directions together"
        )
    links = _axis_links(asked, TRN2 if bandwidth is None else bandwidth, latency, 3)
    asked.settle()
    graph = lattice_graph(Lattice((4, 4, 4), (True,) * 3, {}, (0, 1, 2)), links)
    for _, data in graph.nodes(data=True):
        data["host"] = f"host{data['coordinates'][2]}"
    return asked.named(graph, bandwidth=[link.bandwidth for link in links], latency=links[0].latency)


def lattice_graph(lattice: Lattice, links: Sequence[Link]) -> nx.Graph[str]:
    """Return the chips of a lattice, `links` one per axis."""
    graph: nx.Graph[str] = nx.Graph()
    labels = gpu_labels(prod(lattice.dims))
    add_gpus(graph, labels, forwards=True)
    for label, point in zip(labels, lattice.points(), strict=True):
        graph.nodes[label]["coordinates"] = point
    for a, b, axis in lattice.steps():
        lanes = graph.edges[labels[a], labels[b]]["lanes"] + 1 if graph.has_edge(labels[a], labels[b]) else 1
        add_cable(graph, labels[a], labels[b], links[axis], lanes, axis=axis)
    return graph


def _axis_links(asked: Asked, bandwidth: Any, latency: Any, n: int) -> list[Link]:
    late = asked.late(latency, "scale-up")
    if isinstance(bandwidth, str) or not isinstance(bandwidth, Sequence):
        return [Link("scale-up", asked.rate(bandwidth), late)] * n
    rates = asked.listed("bandwidth", bandwidth, n)
    return [Link("scale-up", asked.rate(value, place), late) for place, value in rates]


def _flags(asked: Asked, wrap: Any, n: int) -> tuple[bool, ...]:
    flags = asked.listed("wrap", wrap, n)
    for place, value in dict(flags).items():
        asked.must(isinstance(value, bool), place, value, "must be True or False", "Say whether the axis wraps.")
    return tuple(bool(value) for _, value in flags)


def _twists(asked: Asked, twist: Any, dims: Sequence[int], wrap: Sequence[bool]) -> list[tuple[int, int, int]]:
    """Return (wrap axis, shifted axis, shift), sorted."""
    found: dict[tuple[int, int], int] = {}
    for row in _rows(twist):
        whole = isinstance(row, Sequence) and len(row) == 3 and all(type(n) is int for n in row)
        rule = "must map two axes to a shift, whole numbers"
        if not asked.must(whole, "twist", row, rule, "Write {(wrap axis, shifted axis): shift}, as {(0, 2): 4}."):
            continue
        axis, other, shift = row
        once = (axis, other) not in found
        asked.must(once, f"twist[{axis}, {other}]", shift, "is a second shift of these axes", "Give one.")
        if _twist_is_sound(asked, row, dims, wrap):
            found[axis, other] = shift
    return sorted((axis, other, shift) for (axis, other), shift in found.items())


def _rows(twist: Any) -> list[Any]:
    if isinstance(twist, Mapping):
        return [(*axes, shift) if isinstance(axes, tuple) else (axes, shift) for axes, shift in twist.items()]
    if isinstance(twist, Sequence) and not isinstance(twist, str):
        return list(twist)
    return [] if twist is None else [twist]


def _twist_is_sound(asked: Asked, row: Sequence[int], dims: Sequence[int], wrap: Sequence[bool]) -> bool:
    axis, other, shift = row
    place = f"twist[{axis}, {other}]"
    there = [
        asked.must(0 <= a < len(dims), place, shift, f"there is no axis {a}", f"Axes are 0 to {len(dims) - 1}.")
        for a in dict.fromkeys((axis, other))
    ]
    if not all(there) or not asked.sound("dims", "wrap"):
        return False
    for a in dict.fromkeys((axis, other)):
        rule = f"axis {a} {'has side 1' if dims[a] == 1 else 'does not wrap'}, so nothing twists there"
        if not asked.must(dims[a] > 1 and wrap[a], place, shift, rule, "Leave the twist out, or wrap the axis."):
            return False
    if not asked.must(axis != other, place, shift, "an axis cannot shift itself", "Name two axes."):
        return False
    rule = f"must shift by 1 to {dims[other] - 1}, axis {other} has side {dims[other]}"
    return asked.must(0 < shift < dims[other], place, shift, rule, "Correct it, or leave it out.")


def _order(asked: Asked, shifts: Sequence[tuple[int, int, int]], n: int) -> tuple[int, ...]:
    """Return the axes, those that shift others first."""
    before: dict[int, list[int]] = {axis: [] for axis in range(n)}
    for axis, other, _ in shifts:
        before[other].append(axis)
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = " -> ".join(str(axis) for axis in error.args[1])
        rule = f"axes shift each other in a circle ({circle})"
        asked.must(False, "twist", [list(row) for row in shifts], rule, "Leave one of them out.")
        return ()


def _by_axis(shifts: Sequence[tuple[int, int, int]]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for axis, other, shift in shifts:
        found.setdefault(axis, []).append((other, shift))
    return found
