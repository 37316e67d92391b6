"""What share of a layer's tokens does each expert get, and what share can it get?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topo import Fault, InputError

__all__ = ["expert_shares", "experts_in_order", "inclusion_shares"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def expert_shares(n_experts: int, expert_load: Any, rows: int) -> Floats:
    """Return the share of the tokens each expert gets, (rows, experts), rows summing to one.

    Parameters
    ----------
    n_experts : int
        Routed experts of a layer.
    expert_load : None, (experts,) or (rows, experts) array
        Any non-negative weights; None is uniform.
    rows : int
        MoE layers, or ranks that tokens come from.

    Raises
    ------
    InputError
        Wrong shape, negative or non-finite loads, a row without any.
    """
    if expert_load is None:
        return np.full((rows, n_experts), 1 / n_experts)
    try:
        load = np.atleast_2d(np.asarray(expert_load, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):  # ragged, or not numbers
        raise InputError(Fault("expert_load", expert_load, "must be an array of numbers", "Correct it.")) from None
    if load.shape not in ((1, n_experts), (rows, n_experts)):
        rule = f"must have shape ({n_experts},) or ({rows}, {n_experts})"
        raise InputError(Fault("expert_load", load.shape, rule, "Give one number per expert, once or in every row."))
    if (wrong := ~np.isfinite(load) | (load < 0)).any():
        row, expert = np.argwhere(wrong)[0].tolist()
        rule = f"is the load of expert {expert} in row {row}, and must be finite, zero or more"
        raise InputError(Fault("expert_load", float(load[row, expert]), rule, "Correct it."))
    if not (some := load.any(axis=1)).all():
        rule = f"has no load in row {int(np.argmin(some))}"
        raise InputError(Fault("expert_load", 0.0, rule, "Give some expert load in every row."))
    shares: Floats = np.broadcast_to(load / load.sum(axis=1, keepdims=True), (rows, n_experts))
    if not math.isclose(float(shares.sum()), rows, rel_tol=1e-9):
        raise InputError(Fault("expert_load", "array", "overflows when normalised", "Scale it."))
    return shares


def inclusion_shares(shares: Floats, top_k: int) -> Floats:
    """Return shares of the copies that tokens with top_k different experts can have.

    Parameters
    ----------
    shares : (rows, experts) float
        Rows summing to one.
    top_k : int
        Different experts of a token.

    Returns
    -------
    (rows, experts) float
        No share above 1 / top_k: a token goes to an expert once. What is over goes to
        the other experts in proportion; rows still sum to one.

    Raises
    ------
    InputError
        Fewer experts with load than a token needs.

    Examples
    --------
    >>> import numpy as np
    >>> inclusion_shares(np.array([[0.8, 0.1, 0.1]]), 2)
    array([[0.5 , 0.25, 0.25]])
    """
    if (shares > 0).sum(axis=1).min(initial=top_k) < top_k:
        rule = f"must give load to at least {top_k} experts of every row: a token goes to {top_k} different ones"
        raise InputError(Fault("expert_load", int((shares > 0).sum(axis=1).min()), rule, "Give more experts load."))
    most = 1 / top_k
    capped = shares.copy()
    for row in capped:
        while (over := row > most * (1 + 1e-12)).any():
            full = over | (row >= most * (1 - 1e-12))
            row[full] = most
            row[~full] *= (1 - full.sum() * most) / row[~full].sum()
    return capped


def experts_in_order(n_experts: int, n_ranks: int) -> Ints:
    """Return the rank of every expert when they lie in order, as equal as they divide, (experts,) int.

    Examples
    --------
    >>> experts_in_order(5, 3).tolist()
    [0, 1, 1, 2, 2]
    """
    # Counted along the ranks, what does not divide is spread over the domains.
    return np.repeat(np.arange(n_ranks), np.diff(np.arange(n_ranks + 1) * n_experts // n_ranks))
