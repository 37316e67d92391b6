"""How much can every rank send to the top of the fabric at once? A lower bound on the bisection, at any size.

Let all n ranks send upwards at once, at each switch split by capacity, no link above its
bandwidth: hub v, a switch with nothing above, gets c(r, v) from rank r. Links as wide
both ways let the hubs send the same back at the same time. Any cut puts a hub with one
of the halves, and it must pass what that hub exchanges with the ranks of the other: the
floor(n/2) smallest of its c(r, v) at least. Flows of different hubs use different
bandwidth, so

    cut >= sum over v of the floor(n/2) smallest c(r, v).

On fat trees, leaf/spine and switched domains whose links divide evenly this is the
bisection itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import dijkstra

from topo._congestion import largest
from topo._cuts import Part

__all__ = ["proven_by_hubs"]

Floats = NDArray[np.float64]
#: Hubs looked at together.
_COLUMNS = 64


def proven_by_hubs(part: Part) -> float:
    """Return a bandwidth that every half of the ranks has to the other [bytes/s]; 0 where links differ both ways."""
    if not part.symmetric:
        return 0.0
    near: Floats = dijkstra(part.both, unweighted=True, indices=np.arange(part.n), min_only=True)
    rises = np.flatnonzero(near[part.head] > near[part.tail])
    tail, head, wide = part.tail[rises], part.head[rises], part.bandwidth[rises]
    above = np.bincount(tail, wide, part.size)
    share = csr_array((wide / above[tail], (tail, head)), shape=(part.size, part.size))
    _, first, count = np.unique(part.twins[: part.n], return_index=True, return_counts=True)
    begin = csr_array((np.ones(len(first)), (np.arange(len(first)), first)), shape=(len(first), part.size))
    passed, now = begin, begin
    while now.nnz:
        now = csr_array(now @ share)
        passed = csr_array(passed + now)
    load = (count @ passed)[tail] * wide / above[tail]
    own = tail < part.n  # twins are counted at the first of them: each has its own link
    load[own] = (wide / above[tail])[own]
    hubs = np.flatnonzero((above == 0) & (np.arange(part.size) >= part.n))
    gets = csc_array(passed)
    least = sum(
        -largest(-gets[:, hubs[first : first + _COLUMNS]].toarray(), count, part.n // 2).sum()
        for first in range(0, len(hubs), _COLUMNS)
    )
    return float(least / (load / wide).max()) if len(rises) else 0.0
