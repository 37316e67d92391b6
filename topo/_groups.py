"""Which way is minimal on a dragonfly? Local, global, local: one link between groups, straight to the other group.

Shortest paths of the graph may cross a third group (two global links and no local one);
minimal routing of a dragonfly does not. Of several ways with fewest hops each takes its
share by the capacity of the next edges, as in ecmp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph
from topo._fabric import Fabric
from topo._hops import fewest_hops
from topo._shares import Bools, Floats, Hops, onward, split_by_capacity
from topo._unplaced import unplaced, without_places

__all__ = ["groups_apart", "groups_of", "minimal_over_groups", "straight"]

Ints = NDArray[np.intp]


def groups_apart(fabric: Fabric) -> bool:
    """Whether no rank has a group of its own, so that what the links say is all there is to a rank."""
    return not fabric.marks.group.keys() & set(fabric.ranks.tolist())


def groups_of(fabric: Fabric, graph: ClassGraph) -> Ints | None:
    """Return the group of every node that traffic may pass through, -1 for the others; None where some have none."""
    ends = graph.n_sources + graph.n_targets
    if graph.n_nodes == ends or unplaced(graph, fabric.marks.group):
        return None
    group = np.array([fabric.marks.group.get(int(node), -1) for node in graph.place], dtype=np.intp)
    group[:ends] = np.where(np.isin(graph.place[:ends], graph.place[ends:]), group[:ends], -1)
    return group


def minimal_over_groups(fabric: Fabric, graph: ClassGraph) -> tuple[Hops, Floats]:
    """Take at most one link between groups, as few hops as that allows.

    Raises
    ------
    InputError
        Nodes without a group where there is a choice of ways.
    """
    group = groups_of(fabric, graph)
    if group is None:
        return without_places(fabric, graph, "dragonfly", "group", fabric.marks.group)
    at_home = np.zeros((graph.n_targets, int(group.max()) + 2), dtype=bool)  # last column: no group
    last = (graph.head >= graph.n_sources) & (graph.head < graph.n_sources + graph.n_targets)
    at_home[graph.head[last] - graph.n_sources, group[graph.tail[last]]] = True
    own = group[graph.n_sources : graph.n_sources + graph.n_targets]
    at_home[np.flatnonzero(own >= 0)] = False
    at_home[np.arange(graph.n_targets), own] = True
    at_home[:, -1] = False
    allowed = straight(graph, group, at_home)
    hops = fewest_hops(graph, allowed=allowed)
    return hops, split_by_capacity(graph, onward(graph, hops, allowed))


def straight(graph: ClassGraph, group: Ints, at_home: Bools) -> Bools:
    """Return the edges that stay in a group or lead to the target's, (targets, edges).

    Parameters
    ----------
    graph : ClassGraph
        Of a path class.
    group : (nodes,) int
        Of every node, -1 for end points that hang on the groups.
    at_home : (targets, groups + 1) bool
        Groups that a target is in; the last column stands for no group.
    """
    tail, head = group[graph.tail], group[graph.head]
    local = (tail == head) | (tail < 0) | (head < 0)
    found: Bools = local[None, :] | (at_home[:, head] & ~at_home[:, tail])
    return found
