"""Which experts are chosen together, and so should be in one domain, that a token visits few?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import plain
from placement._rules import Gpus
from placement._together_bound import least_visits, most_pairs
from placement._together_search import anneal_groups, chosen_of
from topo import Fault, InputError

__all__ = ["ExpertGroups", "domain_visits", "group_experts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Exchanges tried for every expert.
_WORK = 400
#: What is left of the balance at most, and part of its slack that is.
_MARGIN = (0.001, 0.03)


@dataclass(frozen=True, eq=False, repr=False)
class ExpertGroups:
    """Experts in groups, one for each domain.

    Attributes
    ----------
    domain : (experts,) int
        Number of the domain of every expert, as the GPUs have it.
    visits, visits_bound : float or None
        Domains whose experts a token chooses, on average, and what no groups are below;
        None where only counts of pairs are known.
    apart, apart_bound : float
        Pairs of experts of one token that are in two domains, over all, and what no groups are below.
    heaviest : float
        Load over speed of the heaviest domain, over the mean.
    balance : float
        What was asked of it.
    """

    domain: Ints
    visits: float | None
    visits_bound: float | None
    apart: float
    apart_bound: float
    heaviest: float
    balance: float

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Experts of every domain, for `Rules(together=)`."""
        return tuple(tuple(np.flatnonzero(self.domain == d).tolist()) for d in np.unique(self.domain))

    def __repr__(self) -> str:
        visits = f"{self.visits:.3f} domains a token, {self.visits_bound:.3f} at least; " if self.visits else ""
        heavy = f"heaviest domain {self.heaviest:.4f}"
        heavy += "" if self.heaviest <= self.balance * (1 + 1e-9) else f", above the {self.balance:g} asked"
        apart = f"{100 * self.apart:.1f} % of pairs apart, {100 * self.apart_bound:.1f} % at least"
        return f"ExpertGroups({visits}{apart}; {heavy})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self)
        return whole | {"groups": [list(group) for group in self.groups]}


def group_experts(
    gpus: Gpus,
    choices: ArrayLike | None = None,
    *,
    pairs: ArrayLike | None = None,
    n_experts: int | None = None,
    balance: float = 1.05,
    work: int = _WORK,
) -> ExpertGroups:
    """Put experts that tokens choose together into one domain, with domains about as heavy as each other.

    Parameters
    ----------
    gpus : Gpus
        With the domain, slots and speed of each: a domain takes load in proportion to its speed.
    choices : (tokens, k) array of int, optional
        Experts of every token of one layer, as recorded.
    pairs : (experts, experts) array, optional
        Instead: how often two experts were chosen by one token, symmetric; on the diagonal how
        often each was chosen (all zero: in proportion to its pairs).
    n_experts : int, optional
        With `choices`: experts there are; by default those up to the highest chosen.
    balance : float, optional
        Heaviest domain over the mean.
    work : int, optional
        Exchanges tried for every expert: what bounds the time, whatever the clock says.

    Returns
    -------
    ExpertGroups
        `Rules(together=found.groups)` holds `place` to them.

    Raises
    ------
    InputError
        Neither or both of `choices` and `pairs`, experts that are not there or twice in a
        token, too few slots.

    Examples
    --------
    Half of the tokens choose experts 0 and 2, the others 1 and 3.

    >>> gpus = Gpus([1] * 4, domain=[0, 0, 1, 1])
    >>> found = group_experts(gpus, [[0, 2], [3, 1], [2, 0], [1, 3]])
    >>> found.groups, found.visits, found.visits_bound
    (((0, 2), (1, 3)), 1.0, 1.0)
    """
    if (choices is None) == (pairs is None):
        raise InputError(Fault("choices", "array", "or pairs must be given, and not both", "Give one of them."))
    if pairs is None:
        experts = _choices(choices, n_experts)
        n = int(experts.max()) + 1 if n_experts is None else n_experts
        weight = np.ones(len(experts))
        load = np.bincount(experts.ravel(), minlength=n).astype(float)
    else:
        experts, weight, load = _pairs(pairs)
        n = len(load)
    names = np.unique(gpus.domain)
    slots = np.array([gpus.slots[gpus.domain == d].sum() for d in names])
    pace = np.array([gpus.speed[(gpus.domain == d) & (gpus.slots > 0)].sum() for d in names])
    faults = []
    if n > slots.sum():
        rule = f"are {int(slots.sum())} in all, fewer than the {n} experts"
        faults.append(Fault("gpus.slots", "array", rule, "Give more slots."))
    if isinstance(balance, bool) or not 1 <= balance < np.inf:
        faults.append(Fault("balance", balance, "must be one or more", "Give 1.05 for five per cent."))
    if faults:
        raise InputError(*faults)
    limit = balance * load.sum() * pace / pace.sum()
    left = min(_MARGIN[0], _MARGIN[1] * (balance - 1)) * load.sum() / pace.sum()
    domain = _dealt(load, slots, pace)
    anneal_groups(chosen_of(experts, weight, n), domain, load, limit - left * pace, slots, work * n)
    return _found(experts, weight, load, domain, names, slots, pace, limit, balance, pairs is None)


def _found(
    experts: Ints, weight: Floats, load: Floats, domain: Ints, names: Ints, slots: Ints, pace: Floats, limit: Floats,
    balance: float, recorded: bool,
) -> ExpertGroups:  # fmt: skip
    """Measure the groups, and bound them."""
    n, k = len(load), experts.shape[1]
    both = np.zeros((n, n))
    for i in range(k):
        for j in range(i):
            np.add.at(both, (experts[:, i], experts[:, j]), weight)
    both += both.T
    whole, same = both.sum() / 2, both[domain[:, None] == domain].sum() / 2
    full = np.bincount(domain, weights=load, minlength=len(slots)) / np.where(pace > 0, pace, 1.0)  # or none is there
    heaviest = float(full.max() / (load.sum() / pace.sum()))
    most = most_pairs(both, load, np.maximum(limit, heaviest / balance * limit), slots)
    visits, least = None, None
    if recorded:
        visits = domain_visits(experts, domain)
        least = min(visits, least_visits(k, most / weight.sum(), len(slots), int(slots.max())))
    apart = 1 - same / whole if whole else 0.0
    bound = min(apart, 1 - most / whole) if whole else 0.0
    return ExpertGroups(names[domain], visits, least, float(apart), max(0.0, float(bound)), heaviest, balance)


def domain_visits(choices: ArrayLike, domain: ArrayLike) -> float:
    """Return how many domains a token's experts are in, on average.

    Parameters
    ----------
    choices : (tokens, k) array of int
        Experts of every token.
    domain : (experts,) array of int
        Domain of every expert.

    Raises
    ------
    InputError
        Experts that are not there or twice in a token.

    Examples
    --------
    >>> domain_visits([[0, 1], [0, 2]], [0, 0, 1])
    1.5
    """
    where = np.asarray(domain)
    seen = np.sort(where[_choices(choices, len(where))], axis=1)
    return float(1 + (seen[:, 1:] != seen[:, :-1]).sum() / len(seen))


def _dealt(load: Floats, slots: Ints, pace: Floats) -> Ints:
    """Return a domain for every expert: heaviest first to the lightest with a free slot."""
    domain, full, free = np.zeros(len(load), dtype=np.int64), np.zeros(len(slots)), slots.copy()
    for e in np.argsort(-load, kind="stable"):
        d = int(np.where(free > 0, (full + load[e]) / np.maximum(pace, 1e-300), np.inf).argmin())
        domain[e] = d
        full[d] += load[e]
        free[d] -= 1
    return domain


def _choices(choices: ArrayLike | None, n: int | None) -> Ints:
    try:
        rows = np.asarray(choices)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    faults = []
    if rows.ndim != 2 or 0 in rows.shape or not np.issubdtype(rows.dtype, np.integer):
        faults.append(Fault("choices", "array", "must be whole numbers of shape (tokens, k)", "Correct it."))
    elif rows.min() < 0 or (n is not None and rows.max() >= n):
        wrong = int(rows.min() if rows.min() < 0 else rows.max())
        limit = "zero or more" if n is None else f"one of 0 to {n - 1}"
        faults.append(Fault("choices", wrong, f"is no expert: it must be {limit}", "Count from 0."))
    elif (np.diff(np.sort(rows, axis=1), axis=1) == 0).any():
        token = int((np.diff(np.sort(rows, axis=1), axis=1) == 0).any(axis=1).argmax())
        faults.append(Fault("choices", token, "is a token with an expert twice", "Give every expert once."))
    if faults:
        raise InputError(*faults)
    return rows.astype(np.int64)


def _pairs(pairs: ArrayLike | None) -> tuple[Ints, Floats, Floats]:
    """Return pairs as tokens of two experts, how often each was seen, and loads."""
    try:
        both = np.asarray(pairs, dtype=np.float64)
    except (TypeError, ValueError):
        both = np.zeros((0, 1))
    square = both.ndim == 2 and both.shape[0] == both.shape[1] and len(both) > 1
    if not square or not np.isfinite(both).all() or (both < 0).any() or not np.allclose(both, both.T, rtol=1e-9):
        rule = "must be symmetric, (experts, experts), finite, zero or more"
        raise InputError(Fault("pairs", "array", rule, "Add its transpose where each pair is counted once."))
    load = both.diagonal().copy()
    if not load.any():
        load = both.sum(axis=1) if both.any() else np.ones(len(both))
    first, second = np.nonzero(np.triu(both, 1))
    if not len(first):
        first, second = np.array([0]), np.array([1])
    return np.stack([first, second], axis=1), both[first, second], load
