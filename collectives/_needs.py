"""What must reach whom, whatever the algorithm? One row per collective."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from collectives._symmetry import Classes, members, told_apart
from topo import Fabric

__all__ = ["DISTINCT", "NEEDS", "ROOTED", "needs_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Ranks of different classes whose own needs are looked at, narrowest first.
_MOST_NEEDS = 64


def _one(n: int, source: int, target: int, n_bytes: float) -> Floats:
    matrix = np.zeros((n, n))
    matrix[source, target] = n_bytes
    return matrix


def _into(n: int, target: int, n_bytes: float) -> Floats:
    matrix = np.zeros((n, n))
    matrix[:, target] = n_bytes
    matrix[target, target] = 0.0
    return matrix


#: Collective -> (ranks, n bytes, root, a rank) -> what must reach, or leave, that rank whatever is done. A bound of
#: each alone is a bound: a target's data are all different, or, of a sum, must all be waited for.
NEEDS: dict[str, Callable[[int, float, int, int], list[Floats]]] = {
    "all_gather": lambda n, size, root, i: [_into(n, i, size / n)],
    "reduce_scatter": lambda n, size, root, i: [_into(n, i, size / n).T],
    "broadcast": lambda n, size, root, i: [_one(n, root, i, size)],
    "reduce": lambda n, size, root, i: [_one(n, i, root, size)],
    "all_reduce": lambda n, size, root, i: [_one(n, root, i, size), _one(n, i, root, size)],
}
#: Collectives of distinct data that `schedule` need not know: (ranks, n bytes, root) -> bytes from row to column.
DISTINCT: dict[str, Callable[[int, float, int], Floats]] = {
    "all_to_all": lambda n, size, root: np.where(np.eye(n, dtype=bool), 0.0, size / n),
    "gather": lambda n, size, root: _into(n, root, size / n),
    "scatter": lambda n, size, root: _into(n, root, size / n).T,
    "sendrecv": lambda n, size, root: np.roll(np.eye(n), 1, axis=1) * size * (n > 1),
}
ROOTED = ("broadcast", "reduce", "gather", "scatter")


def needs_of(fabric: Fabric, kind: str, size: float, ranks: Ints, root: int, alike: Classes) -> Iterator[Floats]:
    """Yield what one rank of every class needs, those with the narrowest links first."""
    n = len(ranks)
    rooted = kind in ("broadcast", "reduce", "all_reduce")
    classes = told_apart(alike, fabric, ranks, _into(n, root, 1.0)) if rooted else alike
    nodes = fabric.ranks[ranks]
    first = members(classes.node[nodes])[0]
    into = np.bincount(fabric.target, fabric.bandwidth, len(fabric.labels))[nodes]
    out = np.bincount(fabric.source, fabric.bandwidth, len(fabric.labels))[nodes]
    narrow = first[np.argsort(np.minimum(into, out)[first], kind="stable")]
    for i in narrow[(narrow != root) | (not rooted)][:_MOST_NEEDS]:
        yield from NEEDS[kind](n, size, root, int(i))
