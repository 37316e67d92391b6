"""What does an all-reduce need where switches do not add up, beyond any single cut?

Split the ranks into k groups, each with the nodes that belong to it. Take one element and
the first moment at which what some group holds determines the sum. By then every other
group has sent its part out: k - 1 messages that have arrived. Afterwards every other group
must receive something: k - 1 more, since they had not arrived by then. So every element
crosses between groups at least 2(k - 1) times, each time over a link out of a group and a
link into one, and 2(k - 1) n bytes share what all groups have outward, and inward.

A switch outside all groups that multicasts turns one message out into many in: then only
the way in counts. One that reduces turns many into one: then only the way out counts. One
that does both leaves nothing but cuts. Elements are taken to travel apart from each other
(sums of one element with another, coded data, are not looked at).

With one switch and p equal links this is 2 (p-1)/p n / B, the bound of Patarasuk and Yuan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collectives._cuts import Cut
from topo import NODE_KINDS, Fabric

__all__ = ["partition_cut"]

Ints = NDArray[np.intp]
_WIRES = [NODE_KINDS.index(kind) for kind in ("switch", "nic")]


def partition_cut(fabric: Fabric, ranks: Ints, n_bytes: float) -> Cut:
    """Return the tightest of the splits into ranks, hosts and domains.

    Parameters
    ----------
    fabric : Fabric
        The topology.
    ranks : (n,) int
        Ranks taking part.
    n_bytes : float
        What each of them adds up [bytes].

    References
    ----------
    .. [1] P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
       workstations", J. Parallel Distrib. Comput. 69 (2009).
    """
    best = Cut()
    for what, group in _splits(fabric, ranks):
        k = len(np.unique(group[group >= 0]))
        tail, head = group[fabric.source], group[fabric.target]
        between = tail != head
        outside = group < 0
        if k < 2 or not np.isin(fabric.node_kind[outside], _WIRES).all():
            continue
        ways = [("out of", between & (tail >= 0))] if not fabric.multicasts[outside].any() else []
        ways += [("into", between & (head >= 0))] if not fabric.reduces[outside].any() else []
        for way, links in ways:
            cut = Cut(2 * (k - 1) * n_bytes, float(fabric.bandwidth[links].sum()), f"{way} all {k:,} {what} together")
            best = cut if cut.seconds > best.seconds * (1 + 1e-9) else best
    return best


def _splits(fabric: Fabric, ranks: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield group of every node, -1 outside; only groups with ranks that take part count."""
    nodes = fabric.ranks[ranks]
    alone = np.full(len(fabric.labels), -1, dtype=np.intp)
    alone[nodes] = np.arange(len(nodes))
    yield "ranks", alone
    for what, number in (("hosts", fabric.host), ("domains", fabric.domain)):
        if (number[nodes] >= 0).all():
            yield what, np.where(np.isin(number, number[nodes]), number, -1)
