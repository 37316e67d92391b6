"""What do the routes of one path class say? Hops and shares toward every target, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph
from topo._hops import FAR
from topo._paths import PathLabels, latency_to_target, path_labels
from topo._shares import Bools, Floats, Hops

if TYPE_CHECKING:
    from topo._valiant import Via

__all__ = ["ClassRoutes", "Step"]

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Step:
    """Edges that flows take at one number of hops from their target.

    Attributes
    ----------
    start : (targets + 1,) int
        Where each target's edges begin.
    edge : (n,) int
        Edges by target, those of a target in the order of their heads.
    share : (n,) float
        Part of the flow at the edge's tail that it takes.
    """

    start: Ints
    edge: Ints
    share: Floats

    def of(self, targets: Ints) -> tuple[Ints, Ints, Floats]:
        """Return place among these targets, edge and share of everything they move."""
        first, counts = self.start[targets], self.start[targets + 1] - self.start[targets]
        row = np.repeat(np.arange(len(targets)), counts)
        taken = np.arange(len(row)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        return row, self.edge[taken], self.share[taken]


@dataclass(frozen=True, eq=False)
class ClassRoutes:
    """Routes of one path class.

    Attributes
    ----------
    graph : ClassGraph
        The graph of the class, folded where the rule allows it.
    hops : (targets, nodes) int
        Hops from every node to every target group over the rule's own ways; FAR where there is none.
        An edge that takes a share leads from a node to one that is one hop nearer.
    share : (targets, edges) float
        Part of the flow for that target, at the edge's tail, that the edge takes.
    via : Via or None
        Under Valiant routing the stops that flows go over; hops and share are those from there on.
    """

    graph: ClassGraph
    hops: Hops
    share: Floats
    via: Via | None = None

    @cached_property
    def reached(self) -> Bools:
        """Whether a path leads from a source group to a target group, (source groups, target groups) bool."""
        straight = (self.hops[:, : self.graph.n_sources] < FAR).T
        return straight if self.via is None else straight | (self.via.drawn(self) > 0)

    @cached_property
    def pair_hops(self) -> Hops:
        """Hops from every source group to every target group, the most where ways differ; FAR where no path leads."""
        straight: Hops = self.hops[:, : self.graph.n_sources].T
        if self.via is None:
            return straight
        return np.where(self.via.drawn(self) > 0, self.via.most_hops(self), straight)

    @cached_property
    def levels(self) -> list[Ints]:
        """Edges on the way to some target from nodes 1, 2, ... hops away, by level."""
        away = self.hops[:, self.graph.tail]
        most = int(away[self.share > 0].max(initial=0))
        return [np.flatnonzero(((away == level) & (self.share > 0)).any(axis=0)) for level in range(1, most + 1)]

    @cached_property
    def steps(self) -> list[Step]:
        """What moves from nodes 1, 2, ... hops away, by level."""
        row, edge = np.nonzero(self.share)
        away = self.hops[row, self.graph.tail[edge]]
        order = np.lexsort((self.graph.head[edge], row, away))
        row, edge, away = row[order], edge[order], away[order]
        ends = np.searchsorted(away, np.arange(1, int(away.max(initial=0)) + 2))
        return [self._step(row[a:b], edge[a:b]) for a, b in pairwise(ends.tolist())]

    def _step(self, row: Ints, edge: Ints) -> Step:
        return Step(np.searchsorted(row, np.arange(len(self.hops) + 1)), edge, self.share[row, edge])

    @cached_property
    def latency_to_target(self) -> Floats:
        """Least latency [s] from every node to every target over the routes, (targets, nodes)."""
        return latency_to_target(self)

    @cached_property
    def paths(self) -> PathLabels:
        """The paths that can be slowest between every source group and target group."""
        return path_labels(self, np.arange(self.graph.n_sources))
