"""Which way does dimension order go? The lowest axis first, each the shorter way round, ties in the plus direction.

A way is in order if its axes never fall; of those the ones with fewest hops count. On a
torus they are the shortest step vectors to the destination, on a twisted one as well:
steps follow its own links, so that a turn around one axis shifts the other, and the
vector that is best may use that. Of several, the largest in dictionary order is taken: a
tie on one axis goes in the plus direction. Every node decides afresh, by the destination
alone: it prefers a step up the lowest axis, up the next, ..., down the highest, ..., down
the lowest. In a complete grid that is the same vector at every node of the way. Where a
link is missing a way may go the long way round its axis, never back to a lower one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph
from topo._errors import Fault, InputError
from topo._fabric import Fabric
from topo._hops import FAR, fewest_hops
from topo._labels import label_order
from topo._shares import Bools, Floats, Hops, numbered, onward
from topo._unplaced import unplaced, without_places

__all__ = ["dimension_order", "places_apart"]

Ints = NDArray[np.intp]
#: Axis of an edge between a grid node and an end point that hangs on it.
_NONE = -1


def places_apart(fabric: Fabric) -> bool:
    """Whether no rank has coordinates of its own, so that what the links say is all there is to a rank."""
    return not fabric.marks.coordinates.keys() & set(fabric.ranks.tolist())


def dimension_order(fabric: Fabric, graph: ClassGraph) -> tuple[Hops, Floats]:
    """Take one next edge: that of the first axis on which the destination is elsewhere.

    Raises
    ------
    InputError
        Nodes without coordinates where there is a choice of ways, edges that lie on no
        single axis.
    """
    coordinates = fabric.marks.coordinates
    if unplaced(graph, coordinates):
        return without_places(fabric, graph, "dor", "coordinates", coordinates)
    axis, up = _axes(fabric, graph, np.isin(graph.place, list(coordinates)))
    left = _hops_left(graph, axis)
    offset, most = np.where(up, axis, -axis), axis.max(initial=0) + 1
    preference = np.where(axis == _NONE, -1, np.where(up, offset, 2 * most + offset))
    return _first_step(fabric, graph, axis, left, preference)


def _axes(fabric: Fabric, graph: ClassGraph, on_grid: Bools) -> tuple[Ints, Bools]:
    """Return the axis of every edge, and whether it leads up."""
    at, stated = fabric.marks.coordinates, fabric.marks.axis
    sides = [max(column) + 1 for column in zip(*at.values(), strict=False)]
    axis, up, faults = np.full(len(graph.tail), _NONE), np.zeros(len(graph.tail), dtype=bool), []
    for edge in np.flatnonzero(on_grid[graph.tail] & on_grid[graph.head]).tolist():
        a, b = int(graph.place[graph.tail[edge]]), int(graph.place[graph.head[edge]])
        differ = [i for i, (c, d) in enumerate(zip(at[a], at[b], strict=False)) if c != d]
        link = int(graph.sample[edge])
        if len(at[a]) != len(sides) or (link not in stated and len(differ) != 1):
            rule = "joins nodes that differ on no single axis, and states none"
            faults.append(Fault(f"edge {fabric.link_label(link)}", (at[a], at[b]), rule, "State its `axis`."))
            continue
        axis[edge] = stated.get(link, differ[0] if differ else 0)
        side = sides[axis[edge]]
        up[edge] = (at[b][axis[edge]] - at[a][axis[edge]]) % side * 2 <= side
    if faults:
        raise InputError(*faults)
    return axis, up


def _hops_left(graph: ClassGraph, axis: Ints) -> list[Hops]:
    """Return per axis the fewest hops of ways whose axes never fall below it, (targets, nodes) each; last: arrived."""
    own = np.arange(graph.n_targets)
    now = np.full((graph.n_targets, graph.n_nodes), FAR, dtype=np.int16)
    now[own, graph.n_sources + own] = 0
    found = [now := _along(graph, now, (axis == _NONE) & (graph.head >= graph.n_sources))]
    for one in reversed(range(int(axis.max(initial=-1)) + 1)):
        found.insert(0, now := _along(graph, now, axis == one))
    return found


def _along(graph: ClassGraph, hops: Hops, edges: Bools) -> Hops:
    """Lower hops by any number of steps over some edges."""
    hops = hops.copy()
    chosen = np.flatnonzero(edges)
    tails, first = np.unique(graph.tail[chosen], return_index=True)
    level = 0
    while len(chosen) and level <= hops[hops < FAR].max(initial=-1):
        reached = np.logical_or.reduceat(hops[:, graph.head[chosen]] == level, first, axis=1)
        now = hops[:, tails]
        hops[:, tails] = np.where(reached, np.minimum(now, level + 1), now)
        level += 1
    return hops


def _first_step(
    fabric: Fabric, graph: ClassGraph, axis: Ints, left: list[Hops], preference: Ints
) -> tuple[Hops, Floats]:
    """Return the preferred first step of the ways with fewest hops."""
    fewest = left[0].copy()
    away = np.flatnonzero((axis == _NONE) & (graph.tail < graph.n_sources))
    np.minimum.at(fewest.T, graph.tail[away], _one_more(left[0][:, graph.head[away]]).T)
    beyond = np.empty((graph.n_targets, len(axis)), dtype=np.int16)
    for one in np.unique(axis).tolist():
        edges = np.flatnonzero(axis == one)
        beyond[:, edges] = left[one][:, graph.head[edges]]
    leaving = np.flatnonzero((axis == _NONE) & (graph.tail >= graph.n_sources))
    beyond[:, leaving] = left[-1][:, graph.head[leaving]]
    beyond[:, away] = left[0][:, graph.head[away]]
    ways = (fewest[:, graph.tail] < FAR) & (_one_more(beyond) == fewest[:, graph.tail])
    label = label_order(fabric.labels)[graph.place[graph.head]]
    order = np.lexsort((label, preference, graph.tail))
    taken = np.zeros_like(ways)
    ways = ways[:, order]
    taken[:, order] = ways & (numbered(graph.tail[order], ways)[0] == 0)
    hops = fewest_hops(graph, allowed=taken)
    return hops, onward(graph, hops, taken).astype(np.float64)


def _one_more(hops: Hops) -> Hops:
    return np.where(hops < FAR, hops + 1, FAR).astype(np.int16)
