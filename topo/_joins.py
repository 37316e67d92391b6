"""How do scale-up domains hang on a scale-out fabric? A row of FABRICS per fabric.

Trees are sized by what hangs on them. Dragonflies and their like have the size that their
parameters say: the end ports of the domains take their places in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from topo._asked import called
from topo._design import ScaleOut
from topo._direct import hyperx, random_regular
from topo._dragonfly import dragonfly
from topo._errors import Fault, InputError
from topo._fabrics import leaf_ports, packed_ports, plug, require_reach, require_trees, tree
from topo._slim_fly import slim_fly

__all__ = ["FABRICS", "FabricKind", "join_domains", "require_room"]

Ports = Sequence[Sequence[str]]
#: Keys of trees.
_TREE = ("radix", "oversubscription")


@dataclass(frozen=True)
class FabricKind:
    """One scale-out fabric.

    Attributes
    ----------
    join : callable
        Adds the fabric over end ports by domain; last argument a prefix of its labels.
    require : callable
        Refuses what the fabric cannot reach, before anything is built.
    keys : tuple of str
        Keys of [scale_out] it takes beside those that every fabric takes.
    bare : bool
        Whether `keys` are parameters of `topo.build`'s builder.
    """

    join: Callable[[nx.Graph[str], Ports, ScaleOut, str], None]
    require: Callable[[Ports, ScaleOut], None]
    keys: tuple[str, ...] = _TREE
    bare: bool = False


def join_domains(graph: nx.Graph[str], domains: Ports, spec: ScaleOut) -> None:
    """Add the scale-out fabric of `spec` to a graph under construction.

    Parameters
    ----------
    graph : networkx.Graph
        Holds the domains; changed in place.
    domains : sequence of sequence of str
        Labels of each domain's ends in slot order, once per port; domains may differ.
    spec : ScaleOut
        NIC rate [bytes/s per direction], latency per link [s], radix, oversubscription.
    """
    for plane, ends in enumerate(_planes(domains, spec.planes)):
        FABRICS[spec.shape].join(graph, ends, spec, f"plane{plane}/" if spec.planes > 1 else "")


def require_room(domains: Ports, spec: ScaleOut) -> None:
    """Refuse domains that the fabric cannot hold.

    Raises
    ------
    InputError
        Names what would.
    """
    for ends in _planes(domains, spec.planes):
        FABRICS[spec.shape].require(ends, spec)


def _planes(domains: Ports, planes: int) -> list[list[list[str]]]:
    """Deal the ports of every domain over the planes in turn; domains without a port in a plane are left out."""
    dealt = [[list(ports[plane::planes]) for ports in domains] for plane in range(planes)]
    if not all(any(plane) for plane in dealt):
        most = max(len(ports) for ports in domains)
        rule = f"no domain has more than {most} ports"
        raise InputError(Fault("scale_out.planes", planes, rule, f"Take {most} planes or fewer, or more ports."))
    return [[ports for ports in plane if ports] for plane in dealt]


def _rail_optimised(graph: nx.Graph[str], domains: Ports, spec: ScaleOut, prefix: str) -> None:
    tree(graph, leaf_ports(domains, spec.radix // 2), spec, prefix)


def _packed(graph: nx.Graph[str], domains: Ports, spec: ScaleOut, prefix: str) -> None:
    tree(graph, packed_ports(domains, spec.radix), spec, prefix)


def _require_packed(domains: Ports, spec: ScaleOut) -> None:
    require_trees(sum(map(len, domains)), spec)


def _two_levels(spec: ScaleOut) -> ScaleOut:
    return replace(spec, levels=2)


def _rail_only(graph: nx.Graph[str], domains: Ports, spec: ScaleOut, prefix: str) -> None:
    for rail in range(max(map(len, domains))):
        ends = [[ports[rail]] for ports in domains if rail < len(ports)]
        tree(graph, packed_ports(ends, spec.radix), spec, f"{prefix}rail{rail}/")


def _require_rail_only(domains: Ports, spec: ScaleOut) -> None:
    require_trees(len(domains), spec)


def _bare(builder: Callable[..., nx.Graph[str]], *keys: str) -> FabricKind:
    """Return a fabric of `topo.build`, the ends of domains in the places of its GPUs."""

    def join(graph: nx.Graph[str], domains: Ports, spec: ScaleOut, prefix: str) -> None:
        bare = _built(builder, spec)
        places = [(node, next(iter(bare[node]))) for node, data in bare.nodes(data=True) if data["kind"] == "gpu"]
        ends = [end for ports in domains for end in ports]
        if len(ends) > len(places):
            rule = f"has room for {len(places)} end ports, and {len(ends)} must be joined"
            raise InputError(Fault("scale_out.shape", spec.shape, rule, "Take a larger one, or fewer domains."))
        bare.remove_nodes_from([gpu for gpu, _ in places])
        graph.add_nodes_from((f"{prefix}{node}", dict(data)) for node, data in bare.nodes(data=True))
        graph.add_edges_from((f"{prefix}{a}", f"{prefix}{b}", dict(data)) for a, b, data in bare.edges(data=True))
        for end, (_, switch) in zip(ends, places, strict=False):
            plug(graph, end, f"{prefix}{switch}", spec)
        said = graph.graph.setdefault("assumptions", [])
        said += [line for line in bare.graph["assumptions"] if line not in said]

    return FabricKind(join, lambda domains, spec: None, ("radix", *keys), bare=True)


def _built(builder: Callable[..., nx.Graph[str]], spec: ScaleOut) -> nx.Graph[str]:
    try:
        asked = {**spec.parameters, "bandwidth": spec.port_bandwidth, "latency": spec.latency}
        return called(spec.shape, builder, asked)
    except InputError as error:
        raise InputError(*(replace(f, place=f"scale_out.{f.place}") for f in error.faults)) from None


FABRICS: dict[str, FabricKind] = {
    "rail_optimised": FabricKind(_rail_optimised, require_reach),
    "rail_only": FabricKind(_rail_only, _require_rail_only),
    "leaf_spine": FabricKind(
        lambda graph, domains, spec, prefix: _packed(graph, domains, _two_levels(spec), prefix),
        lambda domains, spec: _require_packed(domains, _two_levels(spec)),
    ),
    "fat_tree": FabricKind(_packed, _require_packed, (*_TREE, "levels")),
    "dragonfly": _bare(dragonfly, "a", "p", "h", "groups"),
    "slim_fly": _bare(slim_fly, "q", "p"),
    "hyperx": _bare(hyperx, "dims", "lanes", "hosts"),
    "random_regular": _bare(random_regular, "n", "degree", "hosts", "seed"),
}
