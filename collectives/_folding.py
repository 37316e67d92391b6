"""Which flows are alike? Colour refinement of flows and links, so that a symmetric all-to-all becomes a few rows.

Max-min fair rates depend on nothing but capacities, bytes, starts and who crosses what: if all flows of a class cross
equally many links of every class, and all links of a class are crossed by equally many flows of every class, giving
flows of a class one rate is fair, and fair rates are unique. So a class of links acts as one link with all their
capacity, a class of flows as one flow of all their weight.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["alike", "equitable", "incidence"]

Ints = NDArray[np.intp]
Keys = NDArray[np.uint64]
Paths: TypeAlias = "csr_array[Any, tuple[int, int]]"

#: Rounds after which refinement gives up: long chains without symmetry.
_MOST_ROUNDS = 64


def incidence(n_links: int, indptr: Ints, links: Ints) -> Paths:
    """Return how often each flow (row) crosses each link (column)."""
    paths = csr_array((np.ones(len(links), dtype=np.uint64), links, indptr), shape=(len(indptr) - 1, n_links))
    paths.sum_duplicates()
    return paths


def alike(paths: Paths, of_flow: list[NDArray[np.float64]], of_link: NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Return the class of every flow and of every link.

    Parameters
    ----------
    paths : (flows, links) sparse
        From `incidence`.
    of_flow : list of (flows,) float
        What else tells flows apart: bytes and starts.
    of_link : (links,) float
        Capacities.

    Returns
    -------
    (flows,) int, (links,) int
        Numbers from zero on. Everything is a class of its own where there is little alike.
    """
    back = paths.T
    flow, link = _numbers(sum((_mixed(_bits(x), i) for i, x in enumerate(of_flow)), _zero())), _numbers(_bits(of_link))
    for _ in range(_MOST_ROUNDS):
        before = flow.max(), link.max()
        link = _numbers(_mixed(link, 1) + back @ _mixed(flow, 2))
        flow = _numbers(_mixed(flow, 3) + paths @ _mixed(link, 4))
        if (flow.max(), link.max()) == before:
            return (flow, link) if equitable(paths, flow, link) else _apart(paths)
        if 2 * flow.max() >= len(flow):
            break
    return _apart(paths)


def equitable(paths: Paths, flow: Ints, link: Ints) -> bool:
    """Whether flows of a class cross alike, and links of a class are crossed alike; hashes are no proof."""
    return _rows_alike(paths, flow, link) and _rows_alike(paths.T.tocsr(), link, flow)


def _rows_alike(crossings: Paths, row: Ints, column: Ints) -> bool:
    ones = np.ones(len(column), dtype=np.uint64)
    counts = crossings @ csr_array((ones, (np.arange(len(column)), column)))
    first = np.unique(row, return_index=True)[1]
    return int((counts - counts[first[row]]).count_nonzero()) == 0


def _apart(paths: Paths) -> tuple[Ints, Ints]:
    return np.arange(paths.shape[0]), np.arange(paths.shape[1])


def _zero() -> Keys:
    return np.zeros(1, dtype=np.uint64)


def _bits(x: NDArray[np.float64]) -> Keys:
    return (x + 0.0).view(np.uint64)


def _mixed(x: NDArray[np.generic], salt: int) -> Keys:
    """Scatter whole numbers over 64 bits (the finaliser of splitmix64)."""
    z = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (salt + 1) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _numbers(keys: Keys) -> Ints:
    return np.unique(keys, return_inverse=True)[1].astype(np.intp)
