"""Are the halves of these ranks few enough to try them all? Then the bisection is exact.

A cut puts every node on one of two sides, the ranks in halves. What need not be tried:

- A rank with one link, as wide as all others': it stands with its switch unless the halves
  come out unequal; every rank too many on one side then costs its link.
- Switches that see only nodes which are tried: each takes the side that is cheaper.
- Twins, nodes joined alike to the same nodes: how many of them are near says all.

Leaves under one set of spines are twins, so 64 of them are 65 tries; a small torus is
every half of its chips.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topo._cuts import Part, hung_ranks, row_keys

__all__ = ["smallest_of_all"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
#: Multiplications up to which all halves are tried: about a second.
_MOST = 400_000_000
_CHUNK = 1 << 16


def smallest_of_all(part: Part) -> float | None:
    """Return the smallest cut between any two halves of the ranks [bytes/s]; None where they are too many.

    None as well where links are not as wide both ways.
    """
    if not part.symmetric:
        return None
    wide = csr_array(part.both / 2)
    ranks, link = hung_ranks(part)
    kept = np.arange(part.n if link else 0, part.size)
    choices = [_tries(wide, kept, ranks, part.n, order) for order in (kept, kept[::-1])]
    found = min((one for one in choices if one is not None), key=lambda one: one.work, default=None)
    return found.smallest(part.n, link) if found is not None and found.work <= _MOST else None


@dataclass(frozen=True, eq=False)
class _Tries:
    """Classes of twins that are tried, and classes of nodes that then choose.

    `count` twins of each class, `ranks` on one of them; `inner` bandwidth between one and
    one of two classes, `outer` from a chooser to one of each class, `times` choosers alike.
    """

    count: Ints
    ranks: Ints
    inner: Floats
    outer: Floats
    times: Ints

    @property
    def work(self) -> int:
        """Multiplications it takes."""
        per_try = len(self.count) * (len(self.times) + (len(self.count) if self.inner.any() else 1))
        return prod(int(n) + 1 for n in self.count) * per_try

    def smallest(self, n: int, link: float) -> float:
        """Return the smallest cut; `link` what a rank on the other side costs, 0 where none may be."""
        shape = tuple(int(k) + 1 for k in self.count)
        tries, whole = prod(shape) // 2 + 1, self.outer @ self.count  # the others are these, sides exchanged
        least = np.inf
        for first in range(0, tries, _CHUNK):
            numbers = np.arange(first, min(first + _CHUNK, tries))
            near = np.stack(np.unravel_index(numbers, shape), axis=1).astype(np.float64)
            cut = ((near @ self.inner) * (self.count - near)).sum(axis=1)
            theirs = near @ self.outer.T
            cut += np.minimum(theirs, whole - theirs) @ self.times
            over = (np.abs(2 * (near @ self.ranks) - n) - n % 2) / 2
            cut += over * link if link else np.where(over > 0, np.inf, 0.0)
            least = min(least, float(cut.min()))
        return least


def _tries(wide: csr_array, kept: Ints, ranks: Ints, n: int, order: Ints) -> _Tries | None:
    """Let switches without ranks choose, as many as see none of each other, taken in an order."""
    chooses = np.zeros(wide.shape[0], dtype=bool)
    for node in order[(order >= n) & (ranks[order] == 0)].tolist():
        chooses[node] = not chooses[wide.indices[wide.indptr[node] : wide.indptr[node + 1]]].any()
    tried, free = kept[~chooses[kept]], kept[chooses[kept]]
    rows = csr_array(wide[tried][:, kept])
    rows.sort_indices()
    members: dict[object, list[int]] = {}
    for node, *key in zip(tried.tolist(), row_keys(rows), ranks[tried].tolist(), strict=True):
        members.setdefault(tuple(key), []).append(node)
    if prod(len(group) + 1 for group in members.values()) > _MOST:
        return None
    first = [group[0] for group in members.values()]
    outer, times = np.unique(wide[free][:, first].toarray(), axis=0, return_counts=True)
    count = np.array([len(group) for group in members.values()], dtype=np.intp)
    return _Tries(count, ranks[first], wide[first][:, first].toarray(), outer, times)
