"""Which placement of one small layer has the lightest heaviest GPU there is? An exact program, rules and all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._ruled_seats import Conditions, conditions_of
from placement._rules import Gpus, Rules

__all__ = ["Lightest", "columns_of", "lightest"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: What programs are wrong by at most, relatively: HiGHS keeps to its conditions within 1e-6.
_WRONG = 3e-6


class Lightest(NamedTuple):
    """What the program found.

    `share` is (experts, gpus), the loads of copies on the GPUs that have `held` one; None where nothing was found
    that is lighter than what was known. No placement's heaviest GPU is below `bound`, load over speed.
    """

    held: Bools | None
    share: Floats | None
    bound: float


def columns_of(n: int, gpus: int, copies: int, equal: bool) -> int:
    """Return the size of the program: how many numbers it settles, about."""
    return n * gpus * (1 + (min(gpus, copies - n + 1) if equal else 1))


def lightest(
    load: Floats, gpus: Gpus, rules: Rules, copies: int, *, equal: bool, least: float, best: float, nodes: int
) -> Lightest:  # fmt: skip
    """Return the lightest placement of one layer, if it is lighter than what is known.

    Where copies share equally, an expert has one of so many copies, and what a copy weighs goes with that. Otherwise
    tokens are shared out among the copies there are.

    Parameters
    ----------
    load : (experts,) float
        Loads, not all zero.
    gpus, rules, copies
        As `seats_under`, which has found a placement.
    equal : bool
        Whether copies of an expert share equally.
    least, best : float
        Load over speed that is proven, and that some placement reaches.
    nodes : int
        Of the tree that is searched at most: what bounds the time.

    Examples
    --------
    >>> import numpy as np
    >>> found = lightest(
    ...     np.array([3.0, 1.0]), Gpus([1, 2]), Rules(), 3, equal=True, least=2.0, best=4.0, nodes=99
    ... )
    >>> found.share.tolist(), round(found.bound, 3)
    ([[1.5, 1.5], [0.0, 1.0]], 2.5)
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array

    n, m = len(load), len(gpus.slots)
    unit = float(load.sum() / gpus.speed[gpus.slots > 0].sum())
    rules_of = conditions_of(n, gpus, rules, copies)
    kinds = min(m, copies - n + 1) if equal else 1
    blocks, low, high = (_equal if equal else _weighted)(rules_of, n, m, kinds)
    _levels(blocks, low, high, _on_gpus(load / unit, gpus.speed, kinds, equal), _alike(gpus, rules, rules_of, n))
    table: Any = block_array(blocks).tocsr()
    head, numbers = len(rules_of.least) + (n * kinds if equal else 0), table.shape[1]
    lower, upper = np.zeros(numbers), np.ones(numbers)
    lower[: len(rules_of.least)], upper[: len(rules_of.least)] = rules_of.least, rules_of.most
    lower[-1], upper[-1] = least / unit * (1 - _WRONG), best / unit * (1 - _WRONG)
    found: Any = milp(
        np.arange(numbers) == numbers - 1,
        integrality=(np.arange(numbers) < head).astype(np.int64),
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(table, np.concatenate(low), np.concatenate(high)),
        options={"node_limit": nodes, "mip_rel_gap": 1e-6},
    )  # fmt: skip
    known = found.mip_dual_bound
    proven = best if found.status == 2 else least if known is None else known * unit
    bound = max(least, min(proven, best) * (1 - _WRONG))
    if found.x is None:
        return Lightest(None, None, bound)
    held = found.x[: n * m].reshape(n, m) > 0.5
    share = held / held.sum(axis=1, keepdims=True)
    if not equal:
        part = np.maximum(found.x[head:-1].reshape(n, m), 0.0) * held
        share = part / part.sum(axis=1, keepdims=True)
    return Lightest(held, load[:, None] * share, bound)


def _equal(c: Conditions, n: int, m: int, kinds: int) -> tuple[list[list[Any]], list[Floats], list[Floats]]:
    """Return conditions on cells and homes, experts' kinds (one of so many copies), cells by kind, the heaviest GPU."""
    from scipy.sparse import eye_array, kron

    cells = n * m
    of_kind, each = eye_array(kinds * cells), kron(eye_array(kinds * n), np.ones((1, m)))
    blocks: list[list[Any]] = [
        [c.table, None, None, None],
        [_padded(-eye_array(cells), c), None, kron(np.ones((1, kinds)), eye_array(cells)), None],  # of one kind
        [None, kron(np.ones((1, kinds)), eye_array(n)), None, None],
        [None, -kron(np.diag(np.arange(1.0, kinds + 1)), eye_array(n)), each, None],  # as many as the kind says
        [None, -kron(eye_array(kinds * n), np.ones((m, 1))), of_kind, None],
    ]
    low = [c.low, np.zeros(cells), np.ones(n), np.zeros(kinds * n), np.full(kinds * cells, -1.0)]
    return blocks, low, [c.high, np.zeros(cells), np.ones(n), np.zeros(kinds * n), np.zeros(kinds * cells)]


def _weighted(c: Conditions, n: int, m: int, kinds: int) -> tuple[list[list[Any]], list[Floats], list[Floats]]:
    """Return conditions on cells and homes, parts of tokens by cell, the heaviest GPU."""
    from scipy.sparse import eye_array, kron

    one = eye_array(n * m)
    blocks: list[list[Any]] = [
        [c.table, None, None],
        [_padded(-one, c), one, None],  # tokens go to copies only
        [None, kron(eye_array(n), np.ones((1, m))), None],
    ]
    return blocks, [c.low, np.full(n * m, -1.0), np.ones(n)], [c.high, np.zeros(n * m), np.ones(n)]


def _padded(table: Any, c: Conditions) -> Any:
    """Return a table of cells with columns of nothing for the homes behind."""
    from scipy.sparse import csr_array, hstack

    return hstack([table, csr_array((table.shape[0], len(c.least) - table.shape[1]))])


def _on_gpus(load: Floats, speed: Floats, kinds: int, equal: bool) -> Any:
    """Return what cells by kind weigh on each GPU, load over speed: (gpus, kinds x experts x gpus)."""
    from scipy.sparse import csr_array

    n, m = len(load), len(speed)
    copy = load / np.arange(1, kinds + 1)[:, None] if equal else load[None]
    where = np.tile(np.arange(m), kinds * n), np.arange(kinds * n * m)
    return csr_array(((copy[:, :, None] / speed).ravel(), where), shape=(m, kinds * n * m))


def _levels(blocks: list[list[Any]], low: list[Floats], high: list[Floats], weight: Any, alike: Ints) -> None:
    """Add that no GPU is above the heaviest, and that of two alike the first is the heavier: one of many mirrored."""
    from scipy.sparse import csr_array

    empty = [None] * (len(blocks[0]) - 2)
    blocks.append([*empty, weight, csr_array(-np.ones((weight.shape[0], 1)))])
    low.append(np.full(weight.shape[0], -np.inf))
    high.append(np.zeros(weight.shape[0]))
    if len(alike):
        blocks.append([*empty, weight[alike] - weight[alike + 1], None])
        low.append(np.zeros(len(alike)))
        high.append(np.full(len(alike), np.inf))


def _alike(gpus: Gpus, rules: Rules, c: Conditions, n: int) -> Ints:
    """Return the GPUs that the next one could change names with, for all rules."""
    m = len(gpus.slots)
    zone = [gpus.host] if rules.apart == "host" else [gpus.domain] if rules.apart == "domain" or rules.together else []
    zone += [gpus.domain] if rules.together else []
    cells = [what[: n * m].reshape(n, m) for what in (c.least, c.most)]
    kind = np.vstack([gpus.slots, gpus.speed, *zone, *cells])
    return np.flatnonzero((kind[:, 1:] == kind[:, :-1]).all(axis=0))
