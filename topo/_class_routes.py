"""What do the routes of one path class say? Hops and shares toward every target, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from topo._classes import ClassGraph
from topo._hops import FAR
from topo._paths import PathLabels, latency_to_target, path_labels
from topo._shares import Bools, Floats, Hops, Ints

if TYPE_CHECKING:
    from topo._valiant import Via

__all__ = ["ClassRoutes"]


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
    def walk(self) -> tuple[Ints, Ints, Floats, Hops, Floats]:
        """What loops walk on: first edge of every node, heads, latencies, hops and shares, row after row."""
        graph, arrays = self.graph, (self.graph.head, self.graph.latency, self.hops, self.share)
        head, latency, hops, share = map(np.ascontiguousarray, arrays)
        return graph.first_edge, head, latency, hops, share

    @cached_property
    def latency_to_target(self) -> Floats:
        """Least latency [s] from every node to every target over the routes, (targets, nodes)."""
        return latency_to_target(self)

    @cached_property
    def paths(self) -> PathLabels:
        """The paths that can be slowest between every source group and target group."""
        return path_labels(self, np.arange(self.graph.n_sources))
