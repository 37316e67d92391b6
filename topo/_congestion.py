"""How little can any half of the ranks exchange with the other? A lower bound, proven by a routed all-to-all.

Let every ordered pair of n ranks exchange one byte over the routes of a class. Take any
half S and the rest T. By flow conservation the pairs from S to T, |S||T| bytes, cross
every set of links that separates S from T. If W_e bounds what those pairs put on link e
whatever S is, then for every such set C

    |S||T| <= sum over C of W_e <= u * sum over C of bandwidth_e,  u = max_e W_e / bandwidth_e,

so its capacity is at least |S||T| / u. With F_e[s, t] the part of a pair's byte on link e
and h = ceil(n/2), a source sends over e at most min(sum_t F_e[s, t], h max_t F_e[s, t]),
and at most h sources send; alike for targets. W_e is the smaller of the two sums. (The
plain load of the all-to-all would do, but is twice too much on the ranks' own links: half
of what a rank sends stays on its side.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from topo._fabric import Fabric
from topo._hops import FAR
from topo._routing import ClassRoutes

__all__ = ["largest", "proven_bisection"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
#: Up to so many cells (kinds x kinds x links) F is worked out; beyond, only its sums over sources.
_CELLS = 60_000_000


def proven_bisection(fabric: Fabric, routed: ClassRoutes, ranks: Ints, *, rough: bool = True) -> tuple[float, str]:
    """Return a bandwidth that every half of these ranks has to the other [bytes/s], and how it is known.

    Parameters
    ----------
    fabric : Fabric
        The topology.
    routed : ClassRoutes
        Routes of one path class.
    ranks : (n,) int
        Rank numbers, at least two.
    rough : bool, optional
        Whether sums over sources will do where more is too much: half as good at worst.
    """
    kinds = _Kinds.of(routed, ranks)
    hops = routed.hops[kinds.target][:, kinds.source]
    joined = (hops < FAR) | (np.eye(len(kinds.count), dtype=bool) & (kinds.count == 1))
    if not joined.all():
        return 0.0, "some ranks have no path to each other"
    slots = _Slots.of(routed, ranks)
    dense = len(kinds.count) ** 2 * slots.n <= _CELLS
    if not (dense or rough):
        return 0.0, "nothing"
    by_source, by_target = _most_sent(routed, kinds, slots, dense)
    half = -(-len(ranks) // 2)
    whole = largest(by_target, kinds.count, half)
    if dense:
        whole = np.minimum(whole, largest(by_source, kinds.count, half))
    own = np.where(slots.of_source, by_source.max(axis=0), by_target.max(axis=0))
    carried = np.where(slots.single, whole, own)
    load = np.bincount(slots.link, weights=carried[slots.slot], minlength=len(fabric.bandwidth))
    worst = float((load / fabric.bandwidth).max())
    how = "all-to-all over the routes" if dense else "all-to-all over the routes, summed over sources"
    return half * (len(ranks) - half) / worst, how


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Ranks of one source and one target group of the class graph: all send and get alike."""

    source: Ints
    target: Ints
    count: Ints

    @classmethod
    def of(cls, routed: ClassRoutes, ranks: Ints) -> _Kinds:
        graph = routed.graph
        pairs = np.stack([graph.source_group[ranks], graph.target_group[ranks]])
        (source, target), count = np.unique(pairs, axis=1, return_counts=True)
        return cls(source, target, count)

    def others(self) -> Floats:
        """How many ranks of a kind (column) a rank of a kind (row) sends to."""
        others: Floats = self.count[None, :] - np.eye(len(self.count))
        return others


@dataclass(frozen=True, eq=False)
class _Slots:
    """Columns loads are counted in: a link, or alike links.

    `edges` are those of the class graph that count, `column` their slots; `link` and
    `slot` list which slots a directed link's load is the sum of. A slot is `single` where
    all pairs load its links alike: not where each link is that of another rank.
    """

    n: int
    edges: Ints
    column: Ints
    single: NDArray[np.bool_]
    of_source: NDArray[np.bool_]
    link: Ints
    slot: Ints

    @classmethod
    def of(cls, routed: ClassRoutes, ranks: Ints) -> _Slots:
        graph = routed.graph
        used = np.flatnonzero((routed.share[np.unique(graph.target_group[ranks])] > 0).any(axis=0))
        edge, link = _members(routed, ranks)
        edge, link = np.concatenate([edge, graph.through_edge]), np.concatenate([link, graph.through_link])
        kept = np.isin(edge, used)
        edge, link = edge[kept], link[kept]
        links = np.bincount(edge, minlength=len(graph.tail))[edge]
        # A link is a slot; an edge that stands for several links one of its own, numbered after all links.
        most = int(link.max(initial=0)) + 1
        names, slot = np.unique(np.where(links == 1, link, most + edge), return_inverse=True)
        single = np.zeros(len(names), dtype=bool)
        single[slot] = links == graph.members[edge]
        column = np.zeros(len(graph.tail), dtype=np.intp)
        column[edge] = slot
        of_source = np.zeros(len(names), dtype=bool)
        of_source[slot] = graph.tail[edge] < graph.n_sources
        link, slot = np.unique(np.stack([link, slot]), axis=1)
        return cls(len(names), used, column[used], single, of_source, link, slot)


def _members(routed: ClassRoutes, ranks: Ints) -> tuple[Ints, Ints]:
    """Edges of the class graph that are ranks' own, and the links they are for each rank."""
    graph = routed.graph
    edge = np.concatenate([graph.source_edge[ranks].ravel(), graph.target_edge[ranks].ravel()])
    link = np.concatenate([graph.source_link[ranks].ravel(), graph.target_link[ranks].ravel()])
    # An edge from a source straight to a target is in both lists.
    pairs = np.unique(np.stack([edge, link])[:, edge >= 0], axis=1)
    return pairs[0], pairs[1]


def _most_sent(routed: ClassRoutes, kinds: _Kinds, slots: _Slots, dense: bool) -> tuple[Floats, Floats]:
    """Return what one source of a kind, and what one target, can have on a slot, (kinds, slots) each.

    Not dense: sources only on their own links, all kinds in one row.
    """
    n, half = len(kinds.count), -(-int(kinds.count.sum()) // 2)
    others, graph = kinds.others(), routed.graph
    rows = np.arange(len(slots.edges))
    column = csr_array((np.ones(len(rows)), (rows, slots.column)), shape=(len(rows), slots.n))
    starts = np.zeros((n, graph.n_nodes))
    starts[np.arange(n), kinds.source] = 1.0
    total, largest, by_target = (np.zeros((n, slots.n)) for _ in range(3))
    for k, target in enumerate(kinds.target.tolist()):
        if not dense:
            sent = np.asarray(_parts(routed, target, others[k][None] @ starts, slots.edges) @ column)
            by_target[k] = np.minimum(sent[0], half)
            continue
        part = np.asarray(_parts(routed, target, starts, slots.edges) @ column)
        part = np.where(others[:, k, None] > 0, part, 0.0)
        total += others[:, k, None] * part
        largest = np.maximum(largest, part)
        by_target[k] = np.minimum(others[k] @ part, half * part.max(axis=0))
    if dense:
        return np.minimum(total, half * largest), by_target
    of_source = (graph.tail[slots.edges] < graph.n_sources) / graph.members[slots.edges]
    share = routed.share[kinds.target][:, slots.edges] * of_source
    own = np.minimum(kinds.count @ share, half * share.max(axis=0))
    return np.asarray(own[None] @ column), by_target


def _parts(routed: ClassRoutes, target: int, begin: Floats, edges: Ints) -> Floats:
    """Return what part of what begins at each node crosses a link of each edge to one target, (rows, edges)."""
    graph, share = routed.graph, routed.share[target]
    on = np.flatnonzero(share > 0)
    step = coo_array((share[on], (graph.tail[on], graph.head[on])), shape=(graph.n_nodes, graph.n_nodes)).tocsr()
    now, passed = begin, begin.copy()
    for _ in range(int(routed.hops[target, graph.tail[on]].max(initial=0))):
        now = now @ step
        passed += now
    found: Floats = passed[:, graph.tail[edges]] * (share[edges] / graph.members[edges])
    return found


def largest(values: Floats, count: Ints, most: int) -> Floats:
    """Return per column the sum of its `most` largest values, each there `count` times."""
    order = np.argsort(-values, axis=0, kind="stable")
    times = count[order]
    taken = np.clip(most - (np.cumsum(times, axis=0) - times), 0, times)
    summed: Floats = (np.take_along_axis(values, order, axis=0) * taken).sum(axis=0)
    return summed
