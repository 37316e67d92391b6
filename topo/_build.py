"""What does this shape look like on its own? One call per shape, without a design file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import networkx as nx

from topo._asked import Asked, called
from topo._bridges import bridge_pairs, hybrid_cube_mesh
from topo._design import ScaleOut, ScaleUp
from topo._direct import hyperx, random_regular
from topo._dragonfly import dragonfly
from topo._errors import Fault, InputError, suggest
from topo._joins import join_domains, require_room
from topo._rails import multi_plane_fat_tree, rail_only
from topo._shapes import build_domain, resolved
from topo._slim_fly import slim_fly
from topo._tori import hypercube, ring, torus, ultraserver
from topo._trees import fat_tree, leaf_spine
from topo._two_level import two_level

__all__ = ["BUILDERS", "build"]


def build(shape: str, **parameters: Any) -> nx.Graph[str]:
    """Return the graph of a named shape, its end points GPUs.

    Parameters
    ----------
    shape : str
        Scale-up: ``switched(n, planes=1, lanes=None, unfold=False)``,
        ``full_mesh(n, lanes=1)``, ``hybrid_cube_mesh(pcie=None)``,
        ``bridge_pairs(n, lanes=1, pcie=None)``, ``ring(n)``,
        ``torus(dims, twist=None, wrap=True)``, ``hypercube(dim)``, ``ultraserver()``,
        ``two_level(nodes=48, gpus_per_node=8, l1=7, planes=7, lanes=2, l2=None)``.
        Scale-out: ``rail_optimised(domains, domain_size, radix=64, oversubscription=1.0)``,
        ``leaf_spine(leaves, spines, hosts, lanes=None, oversubscription=None)``,
        ``fat_tree(k, levels=3, oversubscription=1.0)``, ``hyperx(dims, lanes=1, hosts=1)``,
        ``dragonfly(a, p, h, groups=None)``, ``slim_fly(q, p=None)``,
        ``random_regular(n, degree, hosts=1, seed=0)``.
        Both: ``rail_only(domains, domain_size, radix=64, oversubscription=1.0)``,
        ``multi_plane_fat_tree(planes, k)``. docs/shapes.md has all of them.
    **parameters
        Those, and ``bandwidth`` (per direction, of a lane, and of a GPU where the shape is
        switched or a full mesh: "900 GB/s" or bytes/s) and ``latency`` (per link: "0.5 us"
        or s).

    Returns
    -------
    networkx.Graph
        ``graph.graph["shape"]`` has the name and every parameter as used,
        ``graph.graph["assumptions"]`` says which were assumed.

    Raises
    ------
    InputError
        Unknown shape or parameter, or numbers no such graph has.

    Examples
    --------
    >>> graph = build("switched", n=8, planes=4, lanes=[5, 4, 4, 5], bandwidth="450 GB/s")
    >>> graph.edges["gpu0", "switch"]["lanes"]
    18
    >>> build("fat_tree", k=8, levels=2).graph["assumptions"][0]
    'bandwidth = 50 GB/s per lane and direction: assumed, none was given'
    """
    if shape not in BUILDERS:
        raise InputError(Fault("shape", shape, "is not a known shape", suggest(str(shape), BUILDERS)))
    return called(shape, BUILDERS[shape], parameters)


def _switched(
    n: int, planes: int = 1, lanes: int | Sequence[int] | None = None, unfold: bool = False,
    bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    asked = Asked("switched")
    size, count = asked.whole("n", n), asked.whole("planes", planes)
    per_plane: int | tuple[int, ...] | None = None
    if isinstance(lanes, Sequence) and not isinstance(lanes, str):
        per_plane = tuple(asked.lanes(place, each) for place, each in asked.listed("lanes", lanes, count, "plane"))
    elif lanes is not None:
        per_plane = asked.lanes("lanes", lanes)
    asked.must(isinstance(unfold, bool), "unfold", unfold, "must be True or False", "Say whether planes are unfolded.")
    asked.size("n", n, 2 * size * count)
    rate, late = asked.rate(bandwidth, per="GPU"), asked.late(latency, "scale-up")
    asked.settle()
    spec = ScaleUp("switched", late, rate, planes=count, lanes=per_plane)
    with _bare():
        graph = build_domain(spec, size, planes=unfold)
    return asked.named(
        graph, n=size, planes=count,
        lanes=list(per_plane) if isinstance(per_plane, tuple) else per_plane, unfold=unfold,
        bandwidth=spec.bandwidth, latency=spec.latency,
    )  # fmt: skip


def _full_mesh(n: int, lanes: int = 1, bandwidth: Any = None, latency: Any = None) -> nx.Graph[str]:
    asked = Asked("full_mesh")
    size, each = asked.whole("n", n), asked.lanes("lanes", lanes)
    asked.size("n", n, size * (size + 1) // 2)
    rate, late = asked.rate(bandwidth, per="GPU"), asked.late(latency, "scale-up")
    asked.settle()
    graph = build_domain(resolved(ScaleUp("full_mesh", late, rate, lanes=each), size), size)
    return asked.named(graph, n=size, lanes=each, bandwidth=rate, latency=late)


def _rail_optimised(
    domains: int, domain_size: int, radix: int = 64, oversubscription: float = 1.0,
    bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    asked = Asked("rail_optimised")
    n, size, ports = (
        asked.whole("domains", domains), asked.whole("domain_size", domain_size), asked.whole("radix", radix, 2),
    )  # fmt: skip
    ratio = asked.ratio("oversubscription", oversubscription)
    asked.size("domains", domains, 3 * n * size)
    link = asked.link("scale-out", bandwidth, latency)
    asked.settle()
    spec = ScaleOut(link.bandwidth, link.latency, "rail_optimised", ports, ratio)
    slots = [[f"d{d}/gpu{i}" for i in range(size)] for d in range(n)]
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((gpu for gpus in slots for gpu in gpus), kind="gpu", forwards=False)
    with _bare():
        require_room(slots, spec)
        join_domains(graph, slots, spec)
    return asked.named(
        graph, domains=n, domain_size=size, radix=ports, oversubscription=ratio,
        bandwidth=link.bandwidth, latency=link.latency,
    )  # fmt: skip


@contextmanager
def _bare() -> Iterator[None]:
    """Name what is wrong as the parameter here, not as the dotted key of a design file."""
    try:
        yield
    except InputError as error:
        faults = [Fault(f.place.rpartition(".")[2], f.value, f.rule, f.cure) for f in error.faults]
        raise InputError(*faults) from None


BUILDERS: dict[str, Callable[..., nx.Graph[str]]] = {
    "switched": _switched, "full_mesh": _full_mesh, "hybrid_cube_mesh": hybrid_cube_mesh,
    "bridge_pairs": bridge_pairs, "ring": ring, "torus": torus, "hypercube": hypercube,
    "ultraserver": ultraserver, "two_level": two_level, "rail_optimised": _rail_optimised,
    "rail_only": rail_only, "leaf_spine": leaf_spine, "fat_tree": fat_tree,
    "multi_plane_fat_tree": multi_plane_fat_tree, "hyperx": hyperx, "dragonfly": dragonfly,
    "slim_fly": slim_fly, "random_regular": random_regular,
}  # fmt: skip
