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

    Where every spare copy goes to experts too heavy for one GPU, the heaviest other expert is whole, and the
    other slots of its GPU hold the lightest of all: experts, or what is left of split ones.

    Examples
    --------
    Of three, 0.9 cannot be split as well: beside it is at least what 1.2 leaves over.

    >>> import numpy as np
    >>> round(filled_bound(np.array([1.2, 0.9, 0.3]), 4, np.array([2, 2]), np.ones(2), 1.0), 6)
    1.05
    """
    able = slots > 0
    if copies != slots.sum() or len(set(slots[able].tolist())) > 1 or len(set(speed[able].tolist())) > 1:
        return floor
    beside, spare, most = int(slots.max()) - 1, copies - len(load), floor / float(speed.max())
    while beside:
        parts = np.maximum(np.ceil(load / most * (1 - 1e-12)), 1)
        whole = parts == 1
        if parts.sum() - len(load) != spare or not whole.any():
            break
        alone = int(np.argmax(np.where(whole, load, -1.0)))
        # What a split expert leaves shrinks as the load grows: where the two meet, or where a copy is set free.
        free = float((load[~whole] / (parts[~whole] - 1)).min()) if spare else np.inf
        low, high = most, max(most, min(free, load[alone] + float(np.sort(np.delete(load, alone))[:beside].sum())))
        for _ in range(60):
            middle = (low + high) / 2
            left = np.where(whole, load, np.maximum(load - (parts - 1) * middle, 0.0))
            need = load[alone] + float(np.sort(np.delete(left, alone))[:beside].sum())
            low, high = (middle, high) if need > middle else (low, middle)
        if low <= most * (1 + 1e-12):
            break
        most = low
        if most >= free * (1 - 1e-9):
            break
    return most * float(speed.max())


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
