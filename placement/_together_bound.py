"""How few domains must tokens visit at least, when a domain holds so many experts and so much load?

A token that visits few domains has many pairs of its experts in one domain; how many pairs there can be in all is
bounded expert by expert, and by the eigenvalues of the matrix of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["least_visits", "most_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def most_pairs(pairs: Floats, load: Floats, limit: Floats, slots: Ints) -> float:
    """Return what pairs of experts can be in one domain at most, each counted once.

    Parameters
    ----------
    pairs : (experts, experts) float
        How often two experts are chosen by one token; symmetric, the diagonal is not looked at.
    load : (experts,) float
        Of every expert.
    limit, slots : (domains,)
        Load and experts a domain may hold.

    Notes
    -----
    Beside an expert are at most the experts and the load of the largest domain, whatever price
    load has (a Lagrange multiplier: every price is a bound, the lowest counts). And the pairs of
    groups of at most s experts are at most s/2 times the largest eigenvalues' sum (Donath and
    Hoffman, IBM J. Res. Dev. 17 (1973) 420).

    Examples
    --------
    Four experts, 0 with 1 and 2 with 3, in domains of two: all pairs.

    >>> import numpy as np
    >>> pairs = np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]])
    >>> most_pairs(pairs, np.ones(4), np.full(2, 2.0), np.array([2, 2]))
    2.0
    """
    free = np.array(pairs, dtype=float)
    np.fill_diagonal(free, 0.0)
    beside, room = min(int(slots.max()) - 1, len(load) - 1), np.maximum(limit.max() - load, 0.0)
    if beside <= 0:
        return 0.0
    least = np.full(len(load), np.inf)
    scale = free.sum() / max(load.sum(), 1e-300) / len(load)
    for price in scale * np.r_[0.0, 2.0 ** np.arange(-4, 5)]:
        worth = np.maximum(free - price * load, 0.0)
        np.fill_diagonal(worth, 0.0)
        top = np.partition(worth, len(load) - beside, axis=1)[:, len(load) - beside :].sum(axis=1)
        least = np.minimum(least, top + price * room)
    values = np.linalg.eigvalsh(free)[::-1][: len(slots)]
    eigen = float(slots.max()) * np.maximum(values, 0.0).sum()
    return float(min(least.sum(), eigen, free.sum()) / 2)


def least_visits(k: int, pairs: float, domains: int, largest: int) -> float:
    """Return domains a token of k experts visits on average at least, with so many pairs in one domain on average.

    Parameters
    ----------
    k : int
        Experts of a token.
    pairs : float
        Of these, pairs in one domain, on average over tokens at most.
    domains, largest : int
        Domains, and experts the largest holds.

    Notes
    -----
    k experts in v domains have the fewest pairs when spread evenly; that number is convex in v.

    Examples
    --------
    >>> least_visits(4, 0.0, 8, 4), least_visits(4, 2.0, 8, 4), least_visits(4, 6.0, 8, 4)
    (4.0, 2.0, 1.0)
    """
    visits = np.arange(1, min(k, domains) + 1)
    each, more = k // visits, k % visits
    fewest = more * (each + 1) * each / 2 + (visits - more) * each * (each - 1) / 2
    reached = float(np.interp(pairs, fewest[::-1], visits[::-1].astype(float)))
    return max(reached, float(-(-k // largest)))
