"""How large, how far, how wide, how full, how fragile is this topology?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import networkx as nx
import numpy as np

from topo._alike import fold_switches
from topo._bill import Bill
from topo._bisection import Bisection, bisections
from topo._check import EDGE_KINDS, NODE_KINDS
from topo._classes import PATH_CLASSES, ClassGraph, class_graph
from topo._fabric import Fabric
from topo._hops import hop_histogram
from topo._levels import Ports, oversubscription, ports
from topo._routing import MOST_RANKS, ClassRoutes, Routes
from topo._rules import RULES
from topo._weak_points import weak_points

__all__ = ["Links", "Measures", "measure"]

_SWITCH = NODE_KINDS.index("switch")
#: Shares of routes (targets x edges of a class) up to which they are worked out for a proof.
_MOST_SHARES = 50_000_000


@dataclass(frozen=True)
class Links:
    """Edges of one kind (a pair of nodes counts once), and the physical links they stand for."""

    edges: int
    lanes: int


@dataclass(frozen=True, repr=False)
class Measures:
    """What a topology measures.

    Attributes
    ----------
    name : str
        Of the graph.
    gpus, domains : int
        End points (GPUs, else hosts) and scale-up domains, a GPU on its own counted as one.
    switches : dict
        Tier -> switches, every plane of a folded one counted; "" where no tier is stated.
    links : dict
        Edge kind -> `Links`.
    hops : dict
        Hops -> ordered pairs of ranks, each pair on its path class.
    unreachable : int or None
        Ordered pairs that no path joins.
    diameter : int or None
        Most hops.
    bisection : dict
        Path class -> `Bisection`.
    oversubscription : dict
        Tier -> the worst switch's bandwidth towards the ranks over that away from them;
        without tiers that nothing is above of.
    ports : dict
        Tier -> `Ports`: the fullest switch's used ports, and the radix stated.
    weak_nodes, weak_links : tuple
        Single points of failure: without them the ranks fall into parts. Folded switches
        of several planes and bundles of several lanes are none.
    bill : dict
        Class of part -> `Bill`: how many, what they cost [$] and draw [W] together, None
        unless the graph states it for each; nothing is assumed.
    left_out : dict
        Field -> why it is empty.
    assumptions : tuple of str
        Everything that was filled in.
    """

    name: str
    gpus: int
    domains: int
    switches: dict[str, int]
    links: dict[str, Links]
    hops: dict[int, int]
    unreachable: int | None
    diameter: int | None
    bisection: dict[str, Bisection]
    oversubscription: dict[str, float]
    ports: dict[str, Ports]
    weak_nodes: tuple[str, ...]
    weak_links: tuple[tuple[str, str], ...]
    bill: dict[str, Bill]
    left_out: dict[str, str]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        switches = sum(self.switches.values())
        width = "".join(f", {kind} bisection {bracket}" for kind, bracket in self.bisection.items())
        weak = len(self.weak_nodes) + len(self.weak_links)
        return (
            f"Measures({self.name or 'unnamed'}: {self.gpus} GPUs in {self.domains} domains, {switches} switches"
            f"{f', at most {self.diameter} hops' if self.diameter else ''}{width}, {weak} single points of failure)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data, SI units, hops as text."""
        plain = asdict(self)
        plain["hops"] = {str(hops): pairs for hops, pairs in self.hops.items()}
        plain["weak_nodes"], plain["weak_links"] = list(self.weak_nodes), [list(pair) for pair in self.weak_links]
        plain["assumptions"] = list(self.assumptions)
        return plain


def measure(graph: nx.Graph[str] | Fabric | Routes) -> Measures:
    """Return what a topology measures.

    Parameters
    ----------
    graph : networkx.Graph, Fabric or Routes
        The topology; routes worked out before may save time.

    Returns
    -------
    Measures
        Above 20,000 ranks without what looks at every pair; `left_out` says so.

    Raises
    ------
    InputError
        With everything `topo.check` finds.

    Examples
    --------
    >>> from topo import load
    >>> measure(load("gb200-nvl72"))
    Measures(gb200-nvl72: 72 GPUs in 1 domains, 18 switches, at most 2 hops, scale-up bisection 32.4 TB/s,
    0 single points of failure)
    """
    fabric = graph.given if isinstance(graph, Routes) else Fabric.from_graph(graph)
    few = fabric.n_ranks <= MOST_RANKS
    graphs = [fold_switches(class_graph(fabric, kind)) for kind in PATH_CLASSES] if few else []
    hops, unreachable = hop_histogram(graphs) if few else ({}, None)
    nodes, links = weak_points(fabric)
    return Measures(
        name=fabric.name,
        gpus=fabric.n_ranks,
        domains=len(fabric.domain_sizes),
        switches=_switches(fabric),
        links=_links(fabric),
        hops=hops,
        unreachable=unreachable,
        diameter=max(hops, default=0) if few else None,
        bisection=bisections(fabric, _router(graph, fabric, graphs)),
        oversubscription=oversubscription(fabric),
        ports=ports(fabric),
        weak_nodes=tuple(fabric.labels[node] for node in nodes),
        weak_links=tuple((fabric.labels[a], fabric.labels[b]) for a, b in links),
        bill=fabric.bill,
        left_out={} if few else dict.fromkeys(("hops", "unreachable", "diameter"), f"more than {MOST_RANKS:,} ranks"),
        assumptions=fabric.assumptions,
    )


def _router(given: object, fabric: Fabric, graphs: list[ClassGraph]) -> Callable[[int], ClassRoutes | None]:
    """Return what gives the routes of a class: those given, or worked out when asked for and not too many."""

    @cache
    def routed(number: int) -> ClassRoutes | None:
        if isinstance(given, Routes) and given.rule == "ecmp":
            return given.classes[number]
        if not graphs or graphs[number].n_targets * len(graphs[number].tail) > _MOST_SHARES:
            return None
        return ClassRoutes(graphs[number], *RULES["ecmp"].work(fabric, graphs[number]))

    return routed


def _switches(fabric: Fabric) -> dict[str, int]:
    found: dict[str, int] = {}
    planes = fabric.planes
    for node in np.flatnonzero(fabric.node_kind == _SWITCH).tolist():
        tier = fabric.tier[node]
        found[tier] = found.get(tier, 0) + int(planes[node])
    return found


def _links(fabric: Fabric) -> dict[str, Links]:
    low, high = np.minimum(fabric.source, fabric.target), np.maximum(fabric.source, fabric.target)
    found = {}
    for number, kind in enumerate(EDGE_KINDS):
        of_kind = np.flatnonzero(fabric.link_kind == number)
        pairs, pair = np.unique(low[of_kind] * len(fabric.labels) + high[of_kind], return_inverse=True)
        lanes = np.zeros(len(pairs), dtype=np.intp)
        np.maximum.at(lanes, pair, fabric.lanes[of_kind])
        if len(pairs):
            found[kind] = Links(len(pairs), int(lanes.sum()))
    return found
