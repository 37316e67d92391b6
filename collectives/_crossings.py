"""Which ranks carry what leaves a domain, and which receive it in another? Those that wires join, on the same rail.

Two ranks of different domains are joined if a fabric reaches both without a rank between:
they share a plane, a connected part of scale-out (or of PCIe). On a rank's rail in another
domain is a rank of its leaf, else that of its slot. Where wires do not join the two, as on
uneven rails or without a NIC, another rank of the domain carries the data out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.sparse.csgraph import connected_components, shortest_path

from collectives._plan import Team, unfit
from topo import EDGE_KINDS, NODE_KINDS, Fabric

__all__ = ["Crossings", "crossings", "joined", "leaves", "planes_of"]

Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
_OUT, _PCIE = (EDGE_KINDS.index(kind) for kind in ("scale-out", "pcie"))
_SWITCH, _NIC, _CPU = (NODE_KINDS.index(kind) for kind in ("switch", "nic", "cpu"))


@dataclass(frozen=True, eq=False)
class Crossings:
    """How data gets from every rank into every domain.

    Attributes
    ----------
    exit, entry : (n, domains) int
        Row that sends a row's data on into a domain, and row there that receives it; the
        row itself at home.
    on_rail : (n, domains) bool
        Whether the entry is on the row's own rail.
    parent, depth : (domains, domains) int
        From a domain (row) to another: the domain before it on the way, and how many
        crossings that takes.
    """

    exit: Ints
    entry: Ints
    on_rail: Bools
    parent: Ints
    depth: Ints


def planes_of(fabric: Fabric) -> Bools:
    """Return the planes every rank is on, (ranks, planes): those that reach several domains."""
    switches = fabric.forwards & ~np.isin(fabric.node_kind, (_NIC, _CPU))
    out = _touched(fabric, fabric.link_kind == _OUT, switches)
    bus = _touched(fabric, fabric.link_kind == _PCIE, switches | (fabric.node_kind == _CPU))
    nics = np.flatnonzero(fabric.node_kind == _NIC)
    through_nics = bus[fabric.ranks] @ (bus[nics].T @ out[nics])
    found = hstack([out[fabric.ranks] + through_nics, bus[fabric.ranks]]).tocoo()
    domain, plane = fabric.rank_domain[found.row], found.col
    reached = np.unique(np.stack([plane, domain]), axis=1)[0]
    wide = np.flatnonzero(np.bincount(reached, minlength=found.shape[1]) > 1)
    planes: Bools = found.tocsc()[:, wide].toarray() > 0
    return planes


def _touched(fabric: Fabric, links: Bools, passing: Bools) -> csr_array:
    """Return the parts that links of a kind and the nodes that pass traffic on make up, (nodes, parts)."""
    source, target, n = fabric.source[links], fabric.target[links], len(fabric.labels)
    inner = passing[source] & passing[target]
    linked = csr_array((np.ones(inner.sum()), (source[inner], target[inner])), shape=(n, n))
    count, part = connected_components(linked, directed=False)
    # A cable between two ends without a switch is a part of its own.
    alone = ~passing[source] & ~passing[target]
    cable = count + np.arange(alone.sum())
    to, of = passing[target], passing[source]
    node = np.concatenate([source[to], target[to], source[of], target[of], source[alone], target[alone]])
    parts = np.concatenate([np.tile(part[target[to]], 2), np.tile(part[source[of]], 2), np.tile(cable, 2)])
    return csr_array((np.ones(len(node)), (node, parts)), shape=(n, count + len(cable)))


def joined(team: Team, source: Ints, target: Ints) -> Bools:
    """Return whether wires join rows without a rank between; inside a domain they do."""
    found: Bools = _share(planes_of(team.fabric)[team.ranks], source, target)
    found |= team.home[source] == team.home[target]
    return found


def _share(planes: Bools, source: Ints, target: Ints) -> Bools:
    found = np.zeros(np.broadcast_shapes(source.shape, target.shape), dtype=bool)
    for plane in planes.T:
        found |= plane[source] & plane[target]
    return found


def crossings(team: Team) -> Crossings:
    """Return who carries what between domains.

    Raises
    ------
    InputError
        One domain, or domains that no wires join.
    """
    if len(team.domains) < 2:
        raise unfit("by rails", "all ranks are in one scale-up domain", "Take ranks of several domains.")
    entry, on_rail = _namesakes(team)
    out = np.where(entry >= 0, np.arange(team.n)[:, None], -1)
    adjacent = np.zeros((len(team.domains), len(team.domains)), dtype=bool)
    for d, members in enumerate(team.domains):
        adjacent[d] = (entry[members] >= 0).any(axis=0)
        for e in np.flatnonzero(adjacent[d] & (entry[members] < 0).any(axis=0)):
            able, lacking = (members[(entry[members, e] >= 0) == has] for has in (True, False))
            stand_in = able[(team.slot[lacking] + e) % len(able)]
            out[lacking, e], entry[lacking, e] = stand_in, entry[stand_in, e]
    hops, before = shortest_path(adjacent, unweighted=True, return_predecessors=True)
    if np.isinf(hops).any():
        a, b = (team.fabric.rank_labels[team.ranks[team.domains[d][0]]] for d in np.argwhere(np.isinf(hops))[0])
        rule = f"no wires lead from ranks that take part in the domain of {a} to those of {b}"
        raise unfit("by rails", rule, "Let more ranks of these domains take part, or add links.")
    depth, parent = hops.astype(np.intp), before.astype(np.intp)
    for far in range(2, int(depth.max()) + 1):  # from where the way into the domain before has led
        row, domain = np.nonzero(depth[team.home] == far)
        at = entry[row, parent[team.home[row], domain]]
        out[row, domain], entry[row, domain] = out[at, domain], entry[at, domain]
    return Crossings(out, entry, on_rail, parent, depth)


def _namesakes(team: Team) -> tuple[Ints, Bools]:
    """Return the row of every domain that each row sends to itself, (n, domains), -1 for none; and if on its rail.

    Who has nobody on its rail there takes one whom nobody else does, if it is joined to any.
    """
    rows, n_domains = np.arange(team.n), len(team.domains)
    planes, leaf, slot = planes_of(team.fabric)[team.ranks], leaves(team), _slots(team)
    found, on_rail = _on_leaf(team, leaf)
    of_slot = np.full((n_domains, int(slot.max()) + 1), -1, dtype=np.intp)
    of_slot[team.home, slot] = rows
    same = of_slot[:, slot].T
    named = (found < 0) & (same >= 0) & _share(planes, rows[:, None], same)
    found, on_rail = np.where(named, same, found), on_rail | named
    found[rows, team.home] = rows
    for members in team.domains:
        for e in np.flatnonzero((found[members] < 0).any(axis=0)):
            lacking = members[found[members, e] < 0]
            theirs = team.domains[e]
            for k, row in enumerate(lacking[planes[lacking].any(axis=1)]):
                there = theirs[_share(planes, row, theirs)]
                spare = np.setdiff1d(there, found[members, e])
                choice = spare if len(spare) else there
                if len(choice):
                    found[row, e] = choice[(0 if len(spare) else k) % len(choice)]
    return found, on_rail


def _on_leaf(team: Team, leaf: Ints) -> tuple[Ints, Bools]:
    """Return the row of every domain on each row's leaf, at its place among its domain's rows there; -1 for none.

    Where a domain has fewer there, places are counted round; the second array says where they are not.
    """
    shape = (len(team.domains), int(leaf.max()) + 1)
    order = np.lexsort((leaf, team.home))
    cell = team.home * shape[1] + leaf
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    first = np.cumsum(count) - count
    place = np.empty(team.n, dtype=np.intp)
    place[order] = np.arange(team.n) - first[cell[order]]
    there = np.arange(shape[0]) * shape[1] + leaf[:, None]
    found = order[np.minimum(first[there] + place[:, None] % np.maximum(count[there], 1), team.n - 1)]
    return np.where(count[there] > 0, found, -1), place[:, None] < count[there]


def _slots(team: Team) -> Ints:
    """Return every row's place in its domain, all ranks of the fabric counted."""
    return Team(team.fabric, np.arange(team.fabric.n_ranks), team.n_bytes).slot[team.ranks]


def leaves(team: Team) -> Ints:
    """Return the leaf each row's own NIC hangs off, numbered; a rank without such a NIC has a number of its own."""
    fabric = team.fabric
    out = (fabric.link_kind == _OUT) & (fabric.node_kind[fabric.target] == _SWITCH)
    node, first = np.unique(fabric.source[out], return_index=True)
    leaf = -1 - np.arange(len(fabric.labels))
    leaf[node] = fabric.target[out][first]
    return np.unique(leaf[fabric.ranks[team.ranks]], return_inverse=True)[1]
