"""Which way does traffic go? A named rule on every path class: shares of the next edges.

A rule says how far every target is over its own ways, and what share of the flow at a node
each next edge takes. `RULES` holds one row a rule; docs/routing.md says what each does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topo._alike import fold_switches
from topo._check import EDGE_KINDS
from topo._class_routes import ClassRoutes
from topo._classes import PATH_CLASSES, class_graph
from topo._errors import Fault, InputError, suggest
from topo._fabric import Fabric
from topo._hashing import Hash
from topo._hops import FAR
from topo._rules import RULES
from topo._tables import TableWalk, by_tables
from topo._unplaced import has_choice, unplaced
from topo._valiant import over_stops
from topo.readers._reading import Tables

__all__ = ["FAR", "ClassRoutes", "Routes", "Routing", "hop_counts", "route"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: Ranks of which every pair may be written out.
MOST_RANKS = 20_000
#: The class in which flows go by hash.
_HASHED = "scale-out"
#: Cells (targets x edges) of a class: 4 GB of shares.
MOST_CELLS = 500_000_000
#: The same for a rule that cannot fold twins, which needs several such arrays.
_MOST_CELLS = 100_000_000


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
        The topology; cable by cable where the rule keeps a flow on one cable. Loads follow
        its directed links.
    rule : str
        The routing rule, with its parameters.
    classes : tuple of ClassRoutes
        In the order of `topo.PATH_CLASSES`; under forwarding tables one for all pairs.
    given : Fabric
        The topology as it was given.
    hashing : Hash or None
        Seed and queue pairs, where flows go by hash.
    walk : TableWalk or None
        The forwarding tables, where flows go by them.
    notes : tuple of str
        What the rule could not be applied to.
    """

    fabric: Fabric
    rule: str
    classes: tuple[ClassRoutes, ...]
    given: Fabric
    hashing: Hash | None = None
    walk: TableWalk | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def priors(self) -> tuple[Prior, ...]:
        """For every class what the classes before it leave."""
        return tuple(_prior(self.classes[:number], self.fabric.n_ranks) for number in range(len(self.classes)))

    @cached_property
    def taken(self) -> tuple[csr_array[np.bool_, tuple[int, int]], ...]:
        """For every class the pairs of groups in `priors` that an earlier class joins."""
        return tuple(csr_array(~prior.left) for prior in self.priors)

    @cached_property
    def pair_class(self) -> NDArray[np.int8]:
        """Index of every pair's class, (ranks, ranks); -1 where no path leads, -2 on the diagonal."""
        everyone = np.arange(self.fabric.n_ranks)
        return self.class_between(everyone[:, None], everyone)

    def class_between(self, source: Ints, target: Ints) -> NDArray[np.int8]:
        """Return the same for some pairs: rank numbers of shapes that broadcast."""
        require_pairs(self.fabric, np.broadcast_shapes(source.shape, target.shape))
        found = np.where(source == target, np.int8(-2), np.int8(-1))
        for number, routed in enumerate(self.classes):
            there = routed.reached[routed.graph.source_group[source], routed.graph.target_group[target]]
            found[there & (found == -1)] = number
        return found

    @cached_property
    def fallen(self) -> tuple[Ints, Ints]:
        """Ordered pairs of ranks inside one host that no scale-up path joins but another: sources, targets."""
        host = self.fabric.host[self.fabric.ranks]
        by_host = np.argsort(host, kind="stable")[np.count_nonzero(host < 0) :]
        same = np.split(by_host, np.flatnonzero(np.diff(host[by_host])) + 1)
        source = np.concatenate([np.repeat(ranks, len(ranks)) for ranks in same])
        target = np.concatenate([np.tile(ranks, len(ranks)) for ranks in same])
        fallen = self.class_between(source, target) > 0
        return source[fallen], target[fallen]

    def hash_of(self, routed: ClassRoutes) -> Hash | None:
        """Return the hash that picks the ways of a class: that of a network, since scale-up stripes every message."""
        return self.hashing if routed.graph.kind == _HASHED else None

    @property
    def asked(self) -> str | Hash | Tables:
        """What `route` was asked for, to route another topology alike."""
        return self.hashing or (self.walk.tables if self.walk else self.rule)

    def unreachable(self) -> Iterator[tuple[str, str, str]]:
        """Yield every ordered pair of ranks that no path joins: from, to, and why."""
        labels = self.fabric.rank_labels
        for a, b in np.argwhere(self.pair_class == -1).tolist():
            yield labels[a], labels[b], self.why(a, b)

    def why(self, source: int, target: int) -> str:
        """Return why no path leads from a rank to another."""
        return self.walk.why(source, target) if self.walk else f"no way under {self.rule}"

    def __repr__(self) -> str:
        return f"Routes({self.rule}, {self.fabric!r})"


#: What verbs accept as ``routing=``.
Routing = str | Hash | Tables | Routes


def route(graph: nx.Graph[str] | Fabric, rule: Routing = "ecmp") -> Routes:
    """Return the routes of all pairs of ranks under a named rule.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    rule : str, Hash, Tables or Routes, optional
        A row of `RULES`: "ecmp" (fewest hops within the path class, at each hop split in
        proportion to the capacity of the next edges), "even", "paths", "single", "dor",
        "dragonfly", "valiant", "hash". Tables are forwarding tables that `topo.read` found.
        Routes worked out before for this topology are returned as they are.

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
    if not isinstance(rule, Hash | Tables):
        _require_rule(rule)
    given = Fabric.from_graph(graph)
    if isinstance(rule, Tables):
        fabric = given.unfolded()
        routed, walk = by_tables(fabric, rule)
        name = f"table ({rule.engine or 'engine not stated'})"
        return Routes(fabric, name, (routed,), given, walk=walk)
    name, hashing = (rule, Hash() if rule == "hash" else None) if isinstance(rule, str) else ("hash", rule)
    fabric = given.unfolded(_HASHED if hashing else None) if RULES[name].cables else given
    others = "ecmp" if hashing else name
    classes = tuple(_class_routes(fabric, kind, name if kind == _HASHED else others) for kind in PATH_CLASSES)
    notes = (*_unplaced_notes(fabric, name, classes), *(_striped_notes(fabric) if hashing else ()))
    return Routes(fabric, str(hashing or name), classes, given, hashing, notes=notes)


def require_pairs(fabric: Fabric, shape: tuple[int, ...]) -> None:
    """Refuse to write out more pairs of ranks than fit into memory."""
    if math.prod(shape) > MOST_RANKS**2:
        rule = f"has more pairs than those of the {MOST_RANKS} ranks this version writes out"
        raise InputError(Fault("graph", f"{fabric.n_ranks} ranks", rule, "Take a part of it."))


def _require_rule(rule: object) -> None:
    if not isinstance(rule, str) or rule not in RULES:
        raise InputError(Fault("routing", rule, "is not a known routing rule", suggest(str(rule), RULES)))
    if rule == "table":
        cure = "Give the tables themselves: routing=topo.read(FILE).routing."
        raise InputError(Fault("routing", rule, "needs the forwarding tables", cure))


def _class_routes(fabric: Fabric, kind: str, name: str) -> ClassRoutes:
    """Work out one path class under a named rule."""
    rule = RULES[name]
    graph = class_graph(fabric, kind, fold=rule.folds(fabric))
    if graph.n_targets * len(graph.tail) > _MOST_CELLS and not rule.folds(fabric):
        rule_ = f"tells all {graph.n_targets} ranks apart, too many with {len(graph.tail)} {kind} links"
        raise InputError(Fault("routing", name, rule_, "Take ecmp, even or paths, or a part of the topology."))
    graph = fold_switches(graph) if rule.alike else graph
    if (cells := graph.n_targets * len(graph.tail)) > MOST_CELLS:
        what = f"{graph.n_targets} groups of ranks x {len(graph.tail)} links after alike ones are folded"
        rule_ = f"is {cells:.2g} {kind} shares of traffic, more than the {MOST_CELLS:,} this version holds"
        raise InputError(Fault("graph", what, rule_, "Take a part of it."))
    return over_stops(fabric, graph) if name == "valiant" else ClassRoutes(graph, *rule.work(fabric, graph))


def _unplaced_notes(fabric: Fabric, name: str, classes: tuple[ClassRoutes, ...]) -> Iterator[str]:
    """Say which classes a rule that goes by places found none in."""
    mark = RULES[name].mark
    for routed in classes if mark else ():
        if has_choice(routed.share) and unplaced(routed.graph, getattr(fabric.marks, mark)):
            yield f"routing {name}: nodes of {routed.graph.kind} state no {mark}, so ecmp there"


def _striped_notes(fabric: Fabric) -> Iterator[str]:
    """Say that a hash does not pick among the lanes of scale-up links."""
    if ((fabric.link_kind != EDGE_KINDS.index(_HASHED)) & (fabric.lanes > 1)).any():
        yield f"routing hash: only {_HASHED} flows are hashed; a domain stripes messages over all lanes, ecmp"


def _require_same(graph: nx.Graph[str] | Fabric, routes: Routes) -> Routes:
    """Refuse routes of another topology."""
    if graph is routes.given or graph is routes.fabric:
        return routes
    here, there = Fabric.from_graph(graph), routes.given
    arrays = ("source", "target", "bandwidth", "latency", "link_kind")
    if here.labels != there.labels or any(not np.array_equal(getattr(here, a), getattr(there, a)) for a in arrays):
        raise InputError(Fault("routing", repr(routes), "is for another topology", "Route this graph, or name a rule."))
    return routes


def hop_counts(graph: nx.Graph[str] | Fabric | Routes) -> NDArray[np.int16]:
    """Return the hops between all pairs of ranks, each on its path class, over the rule's own ways.

    Returns
    -------
    (ranks, ranks) int
        0 on the diagonal, -1 where no path leads; under valiant those of the longest way.

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
        of_pair = routed.pair_hops[routed.graph.source_group][:, routed.graph.target_group]
        hops[of_class] = of_pair[of_class]
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
