"""How light can one layer's heaviest GPU be at best? Proofs that know nothing of which GPU is which.

Identical GPUs make the plain assignment program hopeless. What is free of that symmetry:
how many copies every expert has, and what any GPU can hold at a load it may not exceed. A
copy larger than half of it is alone of its kind on its GPU and leaves its neighbours what
is left: of those at least one is small, two are smaller still than ... (with two slots this
is Hall's condition of a perfect matching; with more they are cutting-stock patterns seen
from their dual). If no counts of copies satisfy all such conditions, every placement has a
heavier GPU. The linear relaxation proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["copies_bound", "copies_within", "filled_bound", "least_heaviest", "ruled_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Parts of the neighbours' room at which their smallness is counted by size, not by number.
_SLOPES = (0.6, 0.8, 1.0, 1.25, 1.6)
#: Copies are counted one by one down to this part of the load in question, and as weightless below.
_SMALL = 0.06
#: The same where numbers are whole.
_TINY = 0.005
#: What HiGHS is asked: presolving takes longer than it saves here.
_OPTIONS: Any = {"presolve": False}
#: With whole numbers presolve finds most at the root.
_WHOLE: Any = {"node_limit": 2000}
#: Conditions added at a time, rounds of adding, and by how much one must be violated to prove anything.
_ROWS, _ROUNDS, _PROVEN = 16, 24, 1e-5


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


def copies_bound(
    load: Floats, copies: int, gpus: int, slots: int, floor: float, best: float, gap: float, steps: int = 10
) -> float:  # fmt: skip
    """Return a load that the heaviest of alike GPUs reaches where copies share equally.

    Parameters
    ----------
    load : (experts,) float
        Loads.
    copies, gpus, slots : int
        Copies in all, GPUs, slots of each.
    floor, best : float
        What is proven already, and a load that is reached by some placement.
    gap : float
        best / bound - 1 that is good enough.
    steps : int, optional
        Loads to try to refute at most.

    Returns
    -------
    float
        floor or more.

    Examples
    --------
    Three experts of 6 can only be beside one of 1 each; the fourth pair is two of 1, or less.

    >>> import numpy as np
    >>> bound = copies_bound(np.array([6.0, 6.0, 6.0, 1.0, 1.0, 1.0]), 6, 3, 2, 7.0, 7.0, 1e-3)
    >>> round(bound, 1)
    7.0
    """
    low, width, above, below = floor, 4 * gap, 0.0, np.inf  # widths not refuted, and refuted
    for _ in range(steps):
        tried = best / (1 + width)
        if tried <= floor or width < gap:
            break
        if _refuted(load, copies, gpus, slots, tried):
            low, below = tried, width
            if above > gap and below <= 1.5 * above:
                break
        else:
            above = width
        width = 2 * above if below == np.inf else (above + below) / 2 if above else below / 2
    return low


@dataclass(frozen=True)
class _Columns:
    """Every expert's possible numbers of copies: expert, copies, size of one."""

    expert: Ints
    copies: Floats
    size: Floats


def _columns(load: Floats, copies: int, most: float, small: float) -> _Columns:
    """List numbers of copies not above `most`; the last of an expert stands for more, all weightless."""
    n = len(load)
    spare = copies - n + 1
    last = np.clip(np.maximum(np.ceil(load / (small * most)), 5), 1, spare).astype(np.int64)
    many = last + (last < spare)
    expert = np.repeat(np.arange(n), many)
    number = np.arange(len(expert)) - np.repeat(np.cumsum(many) - many, many) + 1
    size = np.where(number > last[expert], 0.0, load[expert] / number)
    kept = size <= most * (1 + 1e-12)
    return _Columns(expert[kept], number[kept].astype(np.float64), size[kept])


@dataclass(frozen=True)
class _Conditions:
    """Copies of size large[i] or more leave their neighbours room[i]: some, by number or by size, are small."""

    large: Floats
    room: Floats
    rank: Ints
    slope: Floats


def _conditions(c: _Columns, slots: int, most: float) -> _Conditions:
    large = np.unique(c.size[c.size >= most / 2])
    kinds = [(rank, 0.0) for rank in range(1, slots)] + [(0, slope) for slope in _SLOPES if slots > 2]
    rank, slope = (np.repeat([kind[i] for kind in kinds], len(large)) for i in (0, 1))
    all_large = np.tile(large, len(kinds))
    return _Conditions(all_large, most - all_large, rank.astype(np.int64), slope)


def _rows(c: _Columns, which: _Conditions, slots: int, most: float) -> Floats:
    """Return what a copy of every size asks of (above zero) or gives to each condition."""
    tiny = 1e-12 * most
    size, large = c.size[None, :], c.size >= which.large[:, None] - tiny
    room, rank = which.room[:, None], which.rank[:, None]
    by_number = (slots - rank) * large - 1.0 * (size <= room / np.maximum(rank, 1) + tiny)
    mean = np.maximum(which.slope[:, None] * room / (slots - 1), tiny)
    by_size = (large * ((slots - 1) * mean - most + size) - np.maximum(mean - size, 0)) / mean
    return np.asarray(np.where(rank > 0, by_number, by_size) * c.copies)


def _refuted(load: Floats, copies: int, gpus: int, slots: int, most: float) -> bool:
    """Say whether no numbers of copies, whole or not, satisfy all conditions at a load of `most`."""
    return copies_within(load, copies, gpus, slots, most, whole=False) is None


def copies_within(
    load: Floats, copies: int, gpus: int, slots: int, most: float, *, whole: bool = True
) -> Ints | None:  # fmt: skip
    """Return numbers of copies of each expert with which no condition forbids a heaviest GPU of `most`.

    None if there are none: then no placement is as light. With two slots a GPU the conditions are Hall's, and
    whole numbers that satisfy them all make pairs. Empty where it is not settled.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    c = _columns(load, copies, most, _TINY if whole else _SMALL)
    if len(np.unique(c.expert)) < len(load):
        return None
    conditions = _conditions(c, slots, most)
    if not len(conditions.large):
        return np.zeros(0, dtype=np.int64)
    many, n = len(c.expert), len(load)
    empty = gpus * slots - copies
    once = csr_array((np.ones(many), (c.expert, np.arange(many))), shape=(n, many + 2))
    in_all = csr_array(np.append(c.copies, [1.0, 0.0])[None, :])
    cost, lower = np.zeros(many + 2), np.zeros(many + 2)
    cost[-1], lower[-1] = 1.0, -1.0
    upper = np.append(np.ones(many), [copies, gpus * slots])
    if whole:  # nothing may be above: a program of whole numbers alone, of which HiGHS prints nothing
        cost[-1], lower[-1], upper[-1] = 0.0, 0.0, 0.0
    chosen = np.unique(np.linspace(0, len(conditions.large) - 1, _ROWS).astype(int))
    rows = np.zeros((0, many + 2))
    for _ in range(_ROUNDS):
        picked = _Conditions(*(field[chosen] for field in vars(conditions).values()))
        new = np.hstack([_rows(c, picked, slots, most), np.tile([-1.0, -1.0], (len(chosen), 1))])
        rows = np.vstack([rows, new])
        matrix = vstack([once, in_all, csr_array(rows)]).tocsc()
        low = np.concatenate([np.ones(n), [copies], np.full(len(rows), -np.inf)])
        high = np.concatenate([np.ones(n), [copies], np.full(len(rows), float(empty))])
        found: Any = milp(
            cost, integrality=np.full(many + 2, int(whole)), options=_WHOLE if whole else _OPTIONS,
            constraints=LinearConstraint(matrix, low, high), bounds=Bounds(lower, upper),
        )  # fmt: skip
        if found.x is None or found.fun > _PROVEN:
            return None if found.status == 2 or found.x is not None else np.zeros(0, dtype=np.int64)
        over = _violations(c, conditions, found.x[:-1], slots, most) - empty
        chosen = np.argsort(-over, kind="stable")[:_ROWS]
        chosen = chosen[over[chosen] > _PROVEN]
        if not len(chosen):
            return _filled(np.bincount(c.expert, c.copies * (found.x[:many] > 0.5), n).astype(np.int64), load, copies)
    return np.zeros(0, dtype=np.int64)


def _filled(count: Ints, load: Floats, copies: int) -> Ints:
    """Give copies that the program took for weightless to the lightest experts."""
    for _ in range(copies - int(count.sum())):
        count[np.argmin(load / np.maximum(count, 1))] += 1
    return count


def _violations(c: _Columns, which: _Conditions, found: Floats, slots: int, most: float) -> Floats:
    """Return how much each condition asks beyond what it is given: sums over sizes in order."""
    order = np.argsort(c.size, kind="stable")
    size, amount = c.size[order], (c.copies * found[:-1])[order]
    below, weight = (np.concatenate([[0.0], np.cumsum(part)]) for part in (amount, amount * size))
    tiny = 1e-12 * most
    at = np.searchsorted(size, which.large - tiny)
    large, large_weight = below[-1] - below[at], weight[-1] - weight[at]
    small = below[np.searchsorted(size, which.room / np.maximum(which.rank, 1) + tiny, side="right")]
    by_number = (slots - which.rank) * large - small
    mean = np.maximum(which.slope * which.room / (slots - 1), tiny)
    under = np.searchsorted(size, mean)
    by_size = (((slots - 1) * mean - most) * large + large_weight - (mean * below[under] - weight[under])) / mean
    return np.asarray(np.where(which.rank > 0, by_number, by_size) - found[-1])
