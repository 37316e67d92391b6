"""How light can one layer's heaviest GPU be at best? Bounds in closed form and by one linear program.

They know nothing of which GPU is which; tighter ones, from whole numbers of copies, are in `_copies_bound`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["filled_bound", "least_heaviest", "ruled_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: Loads that fill whole GPUs but for this part do so: what `least_heaviest` is short of.
_EVEN = 1e-11


def least_heaviest(load: Floats, copies: int, slots: Ints, speed: Floats) -> tuple[float, str]:
    """Return a load over speed that the heaviest GPU of every placement reaches, and what it comes from.

    The mean over all GPUs, and the heaviest expert in as many parts as there are copies
    for: both hold for equal and for any other shares.

    Examples
    --------
    >>> import numpy as np
    >>> least_heaviest(np.array([9.0, 1.0, 1.0]), 4, np.array([2, 2]), np.ones(2))
    (5.5, 'the mean load')
    """
    pace = speed[slots > 0]
    mean = float(load.sum() / pace.sum())
    few, many = mean, float(load.max() / pace.max())
    if _needed(load, few * pace.max(), len(pace)) <= copies:
        return mean, "the mean load"
    for _ in range(60):
        middle = (few + many) / 2
        few, many = (few, middle) if _needed(load, middle * pace.max(), len(pace)) <= copies else (middle, many)
    return few, "too few copies of the heaviest experts"


def _needed(load: Floats, most: float, gpus: int) -> float:
    """Return the copies needed where none may be above `most`; infinite where an expert had to be twice on a GPU."""
    parts = np.maximum(np.ceil(load / most * (1 - 1e-12)), 1)
    return math.inf if parts.max() > gpus else float(parts.sum())


def filled_bound(load: Floats, copies: int, slots: Ints, speed: Floats, floor: float) -> float:
    """Return a load that the heaviest of alike GPUs reaches where copies fill all slots, `floor` or more.

    Where every spare copy goes to experts too heavy for one GPU, all experts have as many copies as they need and no
    more. The GPUs of an expert then hold all of it, and in their other slots at least the lightest of all: experts,
    or what is left of split ones.

    Examples
    --------
    Of five, 0.95 cannot be split as well: beside it is at least what 1.2 leaves over.

    >>> import numpy as np
    >>> slots, speed = np.array([2, 2, 2]), np.ones(3)
    >>> round(filled_bound(np.array([1.2, 0.95, 0.4, 0.25, 0.2]), 6, slots, speed, 1.0), 6)
    1.075

    On the two GPUs of 1.98 are 0.02 and 0.03 too, or more.

    >>> round(filled_bound(np.array([1.98, 0.02, 0.03, 0.4, 0.4]), 6, slots, speed, 0.99), 6)
    1.015
    """
    able = slots > 0
    if copies != slots.sum() or len(set(slots[able].tolist())) > 1 or len(set(speed[able].tolist())) > 1:
        return floor
    beside, spare, most = int(slots.max()) - 1, copies - len(load), floor / float(speed.max())
    while beside:
        parts = np.maximum(np.ceil(load / most * (1 - _EVEN)), 1)
        if parts.sum() - len(load) != spare:
            break
        # What a split expert leaves shrinks as the load grows: where the two meet, or where a copy is set free.
        split = parts > 1
        free = float((load[split] / (parts[split] - 1)).min()) if spare else np.inf
        low, high = most, max(most, min(free, _fullest(load, parts, most, beside)))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _fullest(load, parts, middle, beside) > middle else (low, middle)
        if low <= most * (1 + 1e-12):
            break
        most = low
        if most >= free * (1 - 1e-9):
            break
    return most * float(speed.max())


def _fullest(load: Floats, parts: Floats, most: float, beside: int) -> float:
    """Return the mean load of the GPUs of the expert that needs most, the lightest in their other slots."""
    left = np.maximum(load - (parts - 1) * most, 0.0)  # the least of an expert's copies, where none is above
    order = np.argsort(left, kind="stable")
    place, sums = np.empty(len(load), dtype=np.int64), np.append(0.0, np.cumsum(left[order]))
    place[order] = np.arange(len(load))
    others = (parts * beside).astype(np.int64)
    inside = place < others  # the expert itself is not beside itself
    some = sums[np.minimum(others + inside, len(load))] - inside * left
    return float(np.where(others < len(load), (load + some) / parts, 0.0).max())


def ruled_bound(load: Floats, may: NDArray[np.bool_], speed: Floats) -> float:
    """Return a load over speed that the heaviest GPU reaches if experts may be on some GPUs only.

    Experts are shared out among those at will; GPUs that may hold the same are one.

    Examples
    --------
    >>> import numpy as np
    >>> bound = ruled_bound(np.array([3.0, 1.0]), np.array([[True, False], [True, True]]), np.ones(2))
    >>> round(bound, 6)
    3.0
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    kinds, kind = np.unique(may, axis=1, return_inverse=True)
    pace = np.bincount(kind.ravel(), weights=speed)
    expert, where = np.nonzero(kinds)
    many, column = len(expert), np.arange(len(expert))
    whole = csr_array((np.ones(many), (expert, column)), shape=(len(load), many + 1))
    inside = csr_array((np.ones(many), (where, column)), shape=(len(pace), many))
    program: Any = linprog
    found = program(
        np.append(np.zeros(many), 1.0), A_eq=whole, b_eq=load,
        A_ub=hstack([inside, csr_array(-pace[:, None])]), b_ub=np.zeros(len(pace)),
    )  # fmt: skip
    return float(found.fun) * (1 - 1e-9) if found.status == 0 else 0.0
