"""How light can the heaviest of alike GPUs be where copies share equally? Proofs from numbers of copies.

Identical GPUs make the plain assignment program hopeless. What is free of that symmetry: how
many copies every expert has, and what any GPU can hold at a load it may not exceed
(`_conditions`). If no numbers of copies satisfy all conditions, every placement has a heavier
GPU. The linear relaxation proves it; its multipliers go on proving it at heavier loads, which
takes no program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._conditions import Columns, Conditions, columns_of, conditions_of, rows_of, violations

__all__ = ["copies_bound", "copies_within"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Copies are counted one by one down to this part of the load in question, and as weightless below.
_SMALL = 0.06
#: The same where numbers are whole.
_TINY = 0.005
#: With whole numbers presolve finds most at the root.
_WHOLE: Any = {"node_limit": 2000}
#: What HiGHS is asked: presolving takes longer than it saves here.
_OPTIONS: Any = {"presolve": False}
#: Conditions added at a time, rounds of adding, and by how much one must be violated to prove anything.
_ROWS, _ROUNDS, _PROVEN = 16, 24, 1e-5
#: Loads tried by multipliers, and what of a load they must prove.
_TRIES, _SURE = 24, 1e-7


class _Machine(NamedTuple):
    """What copies go to: alike GPUs, slots of each, and copies in all."""

    gpus: int
    slots: int
    copies: int

    @property
    def empty(self) -> float:
        """Slots left free."""
        return float(self.gpus * self.slots - self.copies)


class _Proof(NamedTuple):
    """Multipliers of conditions and the price of a copy: at what loads they refute everything is tried by itself."""

    which: Conditions
    weight: Floats
    price: float

    def refutes(self, load: Floats, m: _Machine, most: float) -> bool:
        """Whether no numbers of copies satisfy the conditions at a load, weighed by these multipliers."""
        c = columns_of(load, m.copies, most, _SMALL)
        begin = np.searchsorted(c.expert, np.arange(len(load)))
        if len(begin) and (begin[-1] >= len(c.expert) or (c.expert[begin] != np.arange(len(load))).any()):
            return True  # an expert is too heavy in any number of copies
        valid = self.which.large >= most / 2
        weight = self.weight[valid]
        cost = weight @ rows_of(c, self.which.some(valid), m.slots, most) + self.price * c.copies
        spare = min(0.0, self.price - weight.sum()) * m.copies  # of weightless ones
        least = np.minimum.reduceat(cost, begin).sum() + spare - self.price * m.copies - weight.sum() * m.empty
        return bool(least > _SURE * max(1.0, weight.sum()))

    def furthest(self, load: Floats, m: _Machine, low: float, high: float) -> float:
        """Return the heaviest load found refuted between two, the lower one if none."""
        if self.refutes(load, m, high):
            return high
        begin = low
        for _ in range(_TRIES):
            middle = (low + high) / 2
            low, high = (middle, high) if self.refutes(load, m, middle) else (low, middle)
            if high - low < 1e-6 * begin:
                break
        return low


def copies_bound(load: Floats, copies: int, gpus: int, slots: int, floor: float, best: float, gap: float) -> float:
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
    m = _Machine(gpus, slots, copies)
    low, high, tried = floor, best, best / (1 + gap)
    known: Conditions | None = None
    while low < tried < high:
        proven, proof = _relaxed(load, m, tried, known)
        if proof is not None:
            known = proof.which
            low = proof.furthest(load, m, tried if proven else low, best if proven else tried)
        if proven:
            low = max(low, tried)
        else:
            high = tried
        if low * (1 + gap) >= best or high <= low * (1 + gap / 2):
            break
        tried = low + (high - low) * 0.3
    return low


def copies_within(load: Floats, copies: int, gpus: int, slots: int, most: float) -> Ints | None:
    """Return numbers of copies of each expert with which no condition forbids a heaviest GPU of `most`.

    None if there are none: then no placement is as light. With two slots a GPU the conditions are Hall's, and
    whole numbers that satisfy them all make pairs. Empty where it is not settled.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    m = _Machine(gpus, slots, copies)
    c = columns_of(load, copies, most, _TINY)
    if len(np.unique(c.expert)) < len(load):
        return None
    every = conditions_of(c, slots, most)
    if not len(every.large):
        return np.zeros(0, dtype=np.int64)
    many, n = len(c.expert), len(load)
    equal, needed = _counted(c, m, n)
    chosen, rows = _spread(every), np.zeros((0, many + 1))
    bounds, whole = Bounds(0.0, np.append(np.ones(many), copies)), np.ones(many + 1, dtype=np.int64)
    for _ in range(_ROUNDS):
        rows = np.vstack([rows, _asked(c, chosen, m, most)])
        found: Any = milp(
            np.zeros(many + 1), integrality=whole, options=_WHOLE, bounds=bounds,
            constraints=[LinearConstraint(equal, needed, needed), LinearConstraint(rows, -np.inf, m.empty)],
        )  # fmt: skip
        if found.x is None:
            return None if found.status == 2 else np.zeros(0, dtype=np.int64)
        chosen = _broken(c, every, found.x, m, most)
        if not len(chosen.large):
            return _filled(np.bincount(c.expert, c.copies * (found.x[:many] > 0.5), n).astype(np.int64), load, copies)
    return np.zeros(0, dtype=np.int64)


def _filled(count: Ints, load: Floats, copies: int) -> Ints:
    """Give copies that the program took for weightless to the lightest experts."""
    for _ in range(copies - int(count.sum())):
        count[np.argmin(load / np.maximum(count, 1))] += 1
    return count


def _relaxed(load: Floats, m: _Machine, most: float, known: Conditions | None) -> tuple[bool, _Proof | None]:
    """Say whether no numbers of copies, whole or not, satisfy all conditions at a load, and by what multipliers."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    c = columns_of(load, m.copies, most, _SMALL)
    if len(np.unique(c.expert)) < len(load):
        return True, None
    every = conditions_of(c, m.slots, most)
    if not len(every.large):
        return False, None
    many, n = len(c.expert), len(load)
    equal, needed = _counted(c, m, n)
    equal = hstack([equal, csr_array((n + 1, 1))])  # the last: by how much conditions are violated at least
    cost = np.append(np.zeros(many + 1), 1.0)
    bounds = np.array([[0.0, 1.0]] * many + [[0.0, m.copies], [-1.0, m.gpus * m.slots]])
    kept = known if known is None else known.some(known.large >= most / 2)
    chosen = kept if kept is not None and len(kept.large) else _spread(every)
    which, rows = every.some(np.zeros(0, dtype=np.int64)), np.zeros((0, many + 2))
    for _ in range(_ROUNDS):
        which = Conditions(*(np.concatenate(pair) for pair in zip(which, chosen, strict=True)))
        rows = np.vstack([rows, np.hstack([_asked(c, chosen, m, most), np.full((len(chosen.large), 1), -1.0)])])
        program: Any = linprog
        found = program(
            cost, A_ub=csr_array(rows), b_ub=np.full(len(rows), m.empty), A_eq=equal, b_eq=needed, bounds=bounds,
            method="highs", options=_OPTIONS,
        )  # fmt: skip
        if found.x is None:
            return False, None
        weight = -found.ineqlin.marginals
        proof = _Proof(which.some(weight > 0), weight[weight > 0], -float(found.eqlin.marginals[-1]))
        if found.fun > _PROVEN:
            return True, proof
        chosen = _broken(c, every, found.x[:-1], m, most)
        if not len(chosen.large):
            return False, proof
    return False, None


def _counted(c: Columns, m: _Machine, n: int) -> tuple[Any, Floats]:
    """Return what holds of the parts of all columns, and last of weightless copies: each expert once, all copies."""
    from scipy.sparse import csr_array, vstack

    many = len(c.expert)
    once = csr_array((np.ones(many), (c.expert, np.arange(many))), shape=(n, many + 1))
    return vstack([once, csr_array(np.append(c.copies, 1.0)[None, :])]), np.append(np.ones(n), m.copies)


def _asked(c: Columns, which: Conditions, m: _Machine, most: float) -> Floats:
    """Return rows of what columns, and last a weightless copy, ask of the slots left free."""
    return np.hstack([rows_of(c, which, m.slots, most), np.full((len(which.large), 1), -1.0)])


def _spread(every: Conditions) -> Conditions:
    """Return some conditions to begin with."""
    return every.some(np.unique(np.linspace(0, len(every.large) - 1, _ROWS).astype(int)))


def _broken(c: Columns, every: Conditions, found: Floats, m: _Machine, most: float) -> Conditions:
    """Return the conditions that parts of columns and weightless copies violate most."""
    over = violations(c, every, found[:-1], float(found[-1]), m.slots, most) - m.empty
    first = np.argsort(-over, kind="stable")[:_ROWS]
    return every.some(first[over[first] > _PROVEN])
