"""What do the network simulators of the field get? SimGrid a platform, ASTRA-sim a network file.

Both where the shape allows: SimGrid takes one path a pair, ASTRA-sim's analytical backend
a product of rings, full meshes and switches. Anything else is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from topo._check import EDGE_KINDS, NODE_KINDS
from topo._errors import Fault, InputError
from topo._fabric import Fabric
from topo._routing import ClassRoutes, Routes, route

__all__ = ["astra_sim_text", "simgrid_text"]

Ints = NDArray[np.intp]
_SWITCH, _GPU, _HOST = (NODE_KINDS.index(kind) for kind in ("switch", "gpu", "host"))
_UP, _OUT = EDGE_KINDS.index("scale-up"), EDGE_KINDS.index("scale-out")
_GB = 2.0**30  # ASTRA-sim's
_FLUID = "network/model:CM02 network/crosstraffic:0 network/TCP-gamma:0"


def _refusal(fabric: Fabric, format_: str, reason: str) -> InputError:
    cure = "Write JSON or GraphML instead, which hold every graph."
    return InputError(Fault("graph", fabric.name or "unnamed", f"cannot be a {format_} file: {reason}", cure))


# --- SimGrid ---------------------------------------------------------------------------------------------------------


def simgrid_text(graph: nx.Graph[str]) -> str:
    """Return a SimGrid platform (DTD 4.1): hosts, routers, directed links, one route an ordered pair.

    Raises
    ------
    InputError
        A pair of ranks has several paths with fewest hops: SimGrid would take one of them.
    """
    fabric = Fabric.from_graph(graph)
    routes = route(fabric)
    ranks = {int(node): r for r, node in enumerate(fabric.ranks)}
    names = [quoteattr(fabric.link_label(i)) for i in range(len(fabric.source))]
    lines = [
        f'    <host id={quoteattr(label)} speed="{_speed(fabric, ranks[i])!r}f"/>' if i in ranks
        else f"    <router id={quoteattr(label)}/>" for i, label in enumerate(fabric.labels)
    ]  # fmt: skip
    lines += [
        f'    <link id={name} bandwidth="{float(b)!r}Bps" latency="{float(late)!r}s" sharing_policy="SHARED"/>'
        for name, b, late in zip(names, fabric.bandwidth, fabric.latency, strict=True)
    ]
    labels = [quoteattr(label) for label in fabric.rank_labels]
    for a, b, links in _single_paths(routes):
        hops = "".join(f"<link_ctn id={names[link]}/>" for link in links)
        lines.append(f'    <route src={labels[a]} dst={labels[b]} symmetrical="NO">{hops}</route>')
    return "\n".join([
        "<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        f"<!-- Plain fluid sharing, as rackbound computes it, needs cfg= {_FLUID} -->",
        '<platform version="4.1">', f'  <zone id={quoteattr(fabric.name or "graph")} routing="Full">',
        *lines, "  </zone>", "</platform>", "",
    ])  # fmt: skip


def _speed(fabric: Fabric, rank: int) -> float:
    """Return the dense BF16 rate of a rank's chip [FLOP/s], else its largest; 1 GFLOP/s where it states none."""
    rates = fabric.chips.get(fabric.chip[rank], {}).get("flops", {})
    return float(rates.get("bf16") or max(rates.values(), default=1e9))


def _single_paths(routes: Routes) -> Iterator[tuple[int, int, list[int]]]:
    """Yield ordered pairs of ranks with the directed links of their only path."""
    walks = [_Walk(routes.fabric, routed) for routed in routes.classes]
    for a, b in np.argwhere(routes.pair_class >= 0).tolist():
        yield a, b, walks[routes.pair_class[a, b]].links(a, b)


class _Walk:
    """Next edge of every node toward every target of one class, where there is only one."""

    def __init__(self, fabric: Fabric, routed: ClassRoutes) -> None:
        self.fabric, self.graph = fabric, routed.graph
        used = routed.share > 0
        self.ways = np.zeros((self.graph.n_targets, self.graph.n_nodes), dtype=np.intp)
        self.next = np.zeros_like(self.ways)
        self.link = np.full(len(self.graph.tail), -1, dtype=np.intp)
        self.link[self.graph.through_edge] = self.graph.through_link
        for target, row in enumerate(used):
            edges = np.flatnonzero(row)
            np.add.at(self.ways[target], self.graph.tail[edges], self.graph.fan[edges].astype(np.intp))
            self.next[target, self.graph.tail[edges]] = edges
        self.out = _own_links(self.graph.source_edge, self.graph.source_link)
        self.into = _own_links(self.graph.target_edge, self.graph.target_link)

    def links(self, a: int, b: int) -> list[int]:
        graph, target = self.graph, int(self.graph.target_group[b])
        node, found = int(graph.source_group[a]), []
        while node != graph.n_sources + target:
            if self.ways[target, node] != 1:
                pair = " to ".join(self.fabric.rank_labels[rank] for rank in (a, b))
                reason = f"SimGrid takes one path a pair, and {pair} has several with fewest hops"
                raise _refusal(self.fabric, "SimGrid", reason)
            edge = int(self.next[target, node])
            found.append(self.out[a].get(edge, self.into[b].get(edge, int(self.link[edge]))))
            node = int(graph.head[edge])
        return found


def _own_links(edges: Ints, links: Ints) -> list[dict[int, int]]:
    return [
        {int(e): int(link) for e, link in zip(row, own, strict=True) if e >= 0}
        for row, own in zip(edges, links, strict=True)
    ]


# --- ASTRA-sim -------------------------------------------------------------------------------------------------------


def astra_sim_text(graph: nx.Graph[str]) -> str:
    """Return the network file of ASTRA-sim's analytical backend; bandwidth in its GB, 2**30 bytes.

    Raises
    ------
    InputError
        The graph is no ring, full mesh or switch of equal links, nor several such domains
        whose GPUs of one slot share a switch.
    """
    fabric = Fabric.from_graph(graph)
    if not np.isin(fabric.node_kind, [_SWITCH, _GPU, _HOST]).all():
        raise _refusal(fabric, "ASTRA-sim", "NICs and CPUs are nodes of it")
    size = int(fabric.domain_sizes[0])
    n_domains = len(fabric.domain_sizes)
    if not np.array_equal(fabric.rank_domain, np.repeat(np.arange(n_domains), size)):
        raise _refusal(fabric, "ASTRA-sim", "its domains are not equal, rank after rank")
    blocks = fabric.ranks.reshape(n_domains, size)
    inner = {_domain_dimension(fabric, block) for block in blocks} if size > 1 else set()
    if len(inner) > 1:
        raise _refusal(fabric, "ASTRA-sim", "its domains are wired differently")
    dimensions = [*inner, *([_rail_dimension(fabric, blocks)] if n_domains > 1 else [])]
    if not dimensions:
        raise _refusal(fabric, "ASTRA-sim", "it has a single end point")
    kinds, counts, rates, late = zip(*dimensions, strict=True)
    return (
        "# Written by rackbound. Here GB is 2^30 bytes; latency is of one link.\n"
        f"topology: [ {', '.join(kinds)} ]\n"
        f"npus_count: [ {', '.join(str(n) for n in counts)} ]\n"
        f"bandwidth: [ {', '.join(repr(rate / _GB) for rate in rates)} ]  # GB/s\n"
        f"latency: [ {', '.join(repr(float(f'{t * 1e9:.12g}')) for t in late)} ]  # ns\n"
    )


Dimension = tuple[str, int, float, float]


def _domain_dimension(fabric: Fabric, block: Ints) -> Dimension:
    """Return what the scale-up links of one domain are to ASTRA-sim."""
    place = {int(node): i for i, node in enumerate(block)}
    links = np.flatnonzero((fabric.link_kind == _UP) & (fabric.domain[fabric.source] == fabric.domain[block[0]]))
    rate, late = _equal(fabric, links, "the links of a domain")
    ends = {(place.get(int(fabric.source[i]), -1), place.get(int(fabric.target[i]), -1)) for i in links}
    n = len(block)
    hubs = {int(node) for i in links for node in (fabric.source[i], fabric.target[i]) if int(node) not in place}
    if len(hubs) == 1 and ends == {(i, -1) for i in range(n)} | {(-1, i) for i in range(n)}:
        return "Switch", n, rate, late
    if not hubs and ends == {(i, j) for i in range(n) for j in range(n) if i != j}:
        return "FullyConnected", n, rate, late
    if not hubs and ends == {(i, (i + step) % n) for i in range(n) for step in (1, -1)}:
        return "Ring", n, rate, late
    raise _refusal(fabric, "ASTRA-sim", "a domain is no ring in rank order, no full mesh and no single (folded) switch")


def _rail_dimension(fabric: Fabric, blocks: Ints) -> Dimension:
    """Return the second dimension: the GPUs of one slot of all domains under one switch."""
    ranks = np.flatnonzero(np.isin(fabric.source, blocks) & (fabric.link_kind == _OUT))
    back = np.flatnonzero(np.isin(fabric.target, blocks) & (fabric.link_kind == _OUT))
    leaf = {int(fabric.source[i]): int(fabric.target[i]) for i in ranks}
    single = len(leaf) == len(ranks) == len(back) == blocks.size
    if not single or any(len({leaf[int(node)] for node in slot}) > 1 for slot in blocks.T):
        raise _refusal(fabric, "ASTRA-sim", "the GPUs of one slot of all domains do not share one switch")
    if (fabric.node_kind[list(leaf.values())] != _SWITCH).any():
        raise _refusal(fabric, "ASTRA-sim", "GPUs are wired to each other over scale-out links")
    return ("Switch", len(blocks), *_equal(fabric, np.concatenate([ranks, back]), "the NICs"))


def _equal(fabric: Fabric, links: Ints, what: str) -> tuple[float, float]:
    numbers = {(float(fabric.bandwidth[i]), float(fabric.latency[i])) for i in links}
    if len(numbers) != 1:
        raise _refusal(fabric, "ASTRA-sim", f"{what} are not equal")
    return numbers.pop()
