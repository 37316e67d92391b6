"""Which way does traffic go? A named rule on every path class: shares of the next edges.

A rule looks at the fewest-hop graph toward each target and says what share of the flow
at a node each next edge takes. RULES holds one row a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from topo._classes import PATH_CLASSES, ClassGraph, class_graph
from topo._errors import Fault, InputError, suggest
from topo._fabric import Fabric
from topo._hops import FAR, fewest_hops
from topo._paths import PathLabels, latency_to_target, path_labels

__all__ = ["RULES", "ClassRoutes", "Routes", "class_routes", "hop_counts", "route"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: Pairs of ranks are looked at one by one, 1 byte and more each.
MOST_RANKS = 20_000
Rule = Callable[[ClassGraph, Bools], Floats]


@dataclass(frozen=True, eq=False)
class ClassRoutes:
    """Routes of one path class.

    Attributes
    ----------
    graph : ClassGraph
        The folded graph of the class.
    hops : (targets, nodes) int
        Fewest hops from every node to every target group; FAR where there is no path.
    share : (targets, edges) float
        Part of the flow for that target, at the edge's tail, that the edge takes.
    """

    graph: ClassGraph
    hops: NDArray[np.int16]
    share: Floats

    @cached_property
    def reached(self) -> Bools:
        """Whether a path leads from a source group to a target group, (source groups, target groups) bool."""
        return (self.hops[:, : self.graph.n_sources] < FAR).T

    @cached_property
    def levels(self) -> list[Ints]:
        """Edges on the way to some target from nodes 1, 2, ... hops away, by level."""
        away = self.hops[:, self.graph.tail]
        most = int(away[self.share > 0].max(initial=0))
        return [np.flatnonzero(((away == level) & (self.share > 0)).any(axis=0)) for level in range(1, most + 1)]

    @cached_property
    def latency_to_target(self) -> Floats:
        """Least latency [s] from every node to every target over the routes, (targets, nodes)."""
        return latency_to_target(self)

    @cached_property
    def paths(self) -> PathLabels:
        """The paths that can be slowest between every source group and target group."""
        return path_labels(self)


@dataclass(frozen=True, eq=False)
class Prior:
    """What the classes before one tell apart.

    Attributes
    ----------
    source, target : (ranks,) int
        Group of every rank as a source and as a target.
    left : (source groups, target groups) bool
        Whether a pair of those groups is left to this class or later ones.
    """

    source: Ints
    target: Ints
    left: Bools


@dataclass(frozen=True, eq=False, repr=False)
class Routes:
    """Every pair's routes under one rule; `collectives.cost(routing=)` takes it.

    Attributes
    ----------
    fabric : Fabric
        The topology.
    rule : str
        Name of the routing rule.
    classes : tuple of ClassRoutes
        In the order of `topo.PATH_CLASSES`.
    pair_class : (ranks, ranks) int
        Index of the pair's class; -1 where no path leads, -2 on the diagonal.
    """

    fabric: Fabric
    rule: str
    classes: tuple[ClassRoutes, ...]
    pair_class: NDArray[np.int8]

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        """For every class what the classes before it leave."""
        return tuple(_prior(self.classes[:number], self.fabric.n_ranks) for number in range(len(self.classes)))

    @cached_property
    def all_joined(self) -> bool:
        """Whether a path leads between any two ranks."""
        return bool((self.pair_class != -1).all())

    @cached_property
    def any_fallen(self) -> bool:
        """Whether some pair inside one host has no scale-up path."""
        host = self.fabric.host[self.fabric.ranks]
        return bool(((host[:, None] == host) & (host >= 0) & (self.pair_class > 0)).any())

    def __repr__(self) -> str:
        return f"Routes({self.rule}, {self.fabric!r})"


def route(graph: nx.Graph[str] | Fabric, rule: str | Routes = "ecmp") -> Routes:
    """Return the routes of all pairs of ranks under a named rule.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    rule : str or Routes, optional
        "ecmp": fewest hops within the path class, at each hop split in proportion to the
        capacity of the next edges. Routes worked out before for this topology are
        returned as they are.

    Raises
    ------
    InputError
        An unknown rule, a graph with faults, or routes of another topology.

    Examples
    --------
    >>> from topo import load
    >>> route(load("gb200-nvl72"))
    Routes(ecmp, Fabric(gb200-nvl72: 72 ranks in 1 domains, 73 nodes, 144 directed links))
    """
    if isinstance(rule, Routes):
        return _require_same(graph, rule)
    if not isinstance(rule, str) or rule not in RULES:
        raise InputError(Fault("routing", rule, "is not a known routing rule", suggest(str(rule), RULES)))
    fabric = Fabric.from_graph(graph)
    if fabric.n_ranks > MOST_RANKS:
        rule_ = f"has more ranks than the {MOST_RANKS} whose pairs this version routes"
        raise InputError(Fault("graph", f"{fabric.n_ranks} ranks", rule_, "Take a part of it."))
    classes = tuple(class_routes(class_graph(fabric, kind), RULES[rule]) for kind in PATH_CLASSES)
    pair_class = np.full((fabric.n_ranks, fabric.n_ranks), -1, dtype=np.int8)
    for number in reversed(range(len(classes))):
        pair_class[_pair_hops(classes[number]) < FAR] = number
    np.fill_diagonal(pair_class, -2)
    return Routes(fabric, rule, classes, pair_class)


def _require_same(graph: nx.Graph[str] | Fabric, routes: Routes) -> Routes:
    """Refuse routes of another topology."""
    if graph is routes.fabric:
        return routes
    here, there = Fabric.from_graph(graph), routes.fabric
    arrays = ("source", "target", "bandwidth", "latency", "link_kind")
    if here.labels != there.labels or any(not np.array_equal(getattr(here, a), getattr(there, a)) for a in arrays):
        raise InputError(Fault("routing", repr(routes), "is for another topology", "Route this graph, or name a rule."))
    return routes


def hop_counts(graph: nx.Graph[str] | Fabric | Routes) -> NDArray[np.int16]:
    """Return the hops between all pairs of ranks, each on its path class.

    Returns
    -------
    (ranks, ranks) int
        0 on the diagonal, -1 where no path leads.

    Examples
    --------
    >>> from topo import load
    >>> sorted({int(h) for h in hop_counts(load("gb200-nvl72", domains=2)).flat})
    [0, 2, 4]
    """
    routes = graph if isinstance(graph, Routes) else route(graph)
    hops = np.full(routes.pair_class.shape, -1, dtype=np.int16)
    for number, routed in enumerate(routes.classes):
        of_class = routes.pair_class == number
        hops[of_class] = _pair_hops(routed)[of_class]
    np.fill_diagonal(hops, 0)
    return hops


def _prior(earlier: tuple[ClassRoutes, ...], n_ranks: int) -> Prior:
    """Return how some classes tell ranks apart, and which pairs they leave."""
    if not earlier:
        none = np.zeros(n_ranks, dtype=np.intp)
        return Prior(none, none, np.ones((1, 1), dtype=bool))
    groups = [np.stack([c.graph.source_group for c in earlier]), np.stack([c.graph.target_group for c in earlier])]
    (first_source, source), (first_target, target) = (
        np.unique(g, axis=1, return_index=True, return_inverse=True)[1:] for g in groups
    )
    taken = [c.reached[c.graph.source_group[first_source]][:, c.graph.target_group[first_target]] for c in earlier]
    return Prior(source.reshape(-1), target.reshape(-1), ~np.logical_or.reduce(taken))


def _pair_hops(routed: ClassRoutes) -> NDArray[np.int16]:
    """Hops from every rank (row) to every rank (column) in this class."""
    return routed.hops.T[routed.graph.source_group][:, routed.graph.target_group]


def class_routes(graph: ClassGraph, rule: Rule) -> ClassRoutes:
    """Return the routes of one path class."""
    hops = fewest_hops(graph)
    onward = hops[:, graph.tail] == hops[:, graph.head] + 1
    return ClassRoutes(graph, hops, rule(graph, onward))


def _by_capacity(graph: ClassGraph, onward: Bools) -> Floats:
    """Split at each hop in proportion to the bandwidth of the next edges."""
    capacity = np.where(onward, graph.bandwidth, 0.0)
    tails, first = np.unique(graph.tail, return_index=True)
    if not len(tails):
        return capacity
    total = np.add.reduceat(capacity, first, axis=1)[:, np.searchsorted(tails, graph.tail)]
    return np.divide(capacity, total, out=np.zeros_like(capacity), where=total > 0)


RULES: dict[str, Rule] = {"ecmp": _by_capacity}
