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
#: Better placements that are looked for, one after the other.
_ROUNDS = 12


class Lightest(NamedTuple):
    """What the program found.

    `held` is (experts, gpus), or None where nothing was found that is lighter than what was known. No placement's
    heaviest GPU is below `bound`, load over speed.
    """

    held: Bools | None
    bound: float


def columns_of(n: int, gpus: int, copies: int) -> int:
    """Return the size of the program: how many numbers it settles, about."""
    return n * gpus * (1 + min(gpus, copies - n + 1))


def lightest(
    load: Floats, gpus: Gpus, rules: Rules, copies: int, *, least: float, best: float, gap: float, nodes: int
) -> Lightest:  # fmt: skip
    """Return the lightest placement of one layer whose copies share equally, if it is lighter than what is known.

    An expert has one of so many copies, and what a copy weighs goes with that. Whether any placement is within a
    load is a program of whole numbers alone, of which HiGHS prints nothing; it is asked until none is.

    Parameters
    ----------
    load : (experts,) float
        Loads, not all zero.
    gpus, rules, copies
        As `seats_under`, which has found a placement.
    least, best : float
        Load over speed that is proven, and that some placement reaches.
    gap : float
        best / bound - 1 that is good enough.
    nodes : int
        Of the tree that is searched at most, each time: what bounds the time.

    Examples
    --------
    >>> import numpy as np
    >>> found = lightest(
    ...     np.array([3.0, 1.0]), Gpus([1, 2]), Rules(), 3, least=2.0, best=4.0, gap=1e-4, nodes=99
    ... )
    >>> found.held.tolist(), round(found.bound, 2)
    ([[True, True], [False, True]], 2.5)
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array

    n, m = len(load), len(gpus.slots)
    unit, kinds = float(load.sum() / gpus.speed[gpus.slots > 0].sum()), min(m, copies - n + 1)
    c = conditions_of(n, gpus, rules, copies)
    blocks, low, high = _conditions(c, n, m, kinds)
    weight, alike = _on_gpus(load / unit, gpus.speed, kinds), _alike(gpus, rules, c, n)
    blocks += [[None, None, weight], *([[None, None, weight[alike] - weight[alike + 1]]] if len(alike) else [])]
    table: Any = block_array(blocks).tocsr()
    lower, upper = np.zeros(table.shape[1]), np.ones(table.shape[1])
    lower[: len(c.least)], upper[: len(c.least)] = c.least, c.most
    held = None
    for _ in range(_ROUNDS):
        tried = best / (1 + gap)
        if tried <= least:
            break
        most = np.full(m, tried / unit)
        found: Any = milp(
            np.zeros(len(lower)), integrality=np.ones(len(lower), dtype=np.int64), bounds=Bounds(lower, upper),
            constraints=LinearConstraint(
                table,
                np.concatenate([*low, np.full(m, -np.inf), np.zeros(len(alike))]),
                np.concatenate([*high, most, np.full(len(alike), np.inf)]),
            ),
            options={"node_limit": nodes},
        )  # fmt: skip
        if found.status == 2:
            return Lightest(held, max(least, tried * (1 - _WRONG)))
        if found.x is None:
            break
        some = found.x[: n * m].reshape(n, m) > 0.5
        reached = float(((some * (load / some.sum(axis=1))[:, None]).sum(axis=0) / gpus.speed).max())
        if reached >= best:
            break
        held, best = some, reached
    return Lightest(held, least)


def _conditions(c: Conditions, n: int, m: int, kinds: int) -> tuple[list[list[Any]], list[Floats], list[Floats]]:
    """Return conditions on cells and homes, experts' kinds (one of so many copies), and cells by kind."""
    from scipy.sparse import eye_array, kron

    cells = n * m
    of_kind, each = eye_array(kinds * cells), kron(eye_array(kinds * n), np.ones((1, m)))
    blocks: list[list[Any]] = [
        [c.table, None, None],
        [_padded(-eye_array(cells), c), None, kron(np.ones((1, kinds)), eye_array(cells))],  # of one kind
        [None, kron(np.ones((1, kinds)), eye_array(n)), None],
        [None, -kron(np.diag(np.arange(1.0, kinds + 1)), eye_array(n)), each],  # as many as the kind says
        [None, -kron(eye_array(kinds * n), np.ones((m, 1))), of_kind],
    ]
    low = [c.low, np.zeros(cells), np.ones(n), np.zeros(kinds * n), np.full(kinds * cells, -1.0)]
    return blocks, low, [c.high, np.zeros(cells), np.ones(n), np.zeros(kinds * n), np.zeros(kinds * cells)]


def _padded(table: Any, c: Conditions) -> Any:
    """Return a table of cells with columns of nothing for the homes behind."""
    from scipy.sparse import csr_array, hstack

    return hstack([table, csr_array((table.shape[0], len(c.least) - table.shape[1]))])


def _on_gpus(load: Floats, speed: Floats, kinds: int) -> Any:
    """Return what cells by kind weigh on each GPU, load over speed: (gpus, kinds x experts x gpus)."""
    from scipy.sparse import csr_array

    n, m = len(load), len(speed)
    copy = load / np.arange(1, kinds + 1)[:, None]
    where = np.tile(np.arange(m), kinds * n), np.arange(kinds * n * m)
    return csr_array(((copy[:, :, None] / speed).ravel(), where), shape=(m, kinds * n * m))


def _alike(gpus: Gpus, rules: Rules, c: Conditions, n: int) -> Ints:
    """Return the GPUs that the next one could change names with, for all rules."""
    m = len(gpus.slots)
    zone = [gpus.host] if rules.apart == "host" else [gpus.domain] if rules.apart == "domain" or rules.together else []
    zone += [gpus.domain] if rules.together else []
    cells = [what[: n * m].reshape(n, m) for what in (c.least, c.most)]
    kind = np.vstack([gpus.slots, gpus.speed, *zone, *cells])
    return np.flatnonzero((kind[:, 1:] == kind[:, :-1]).all(axis=0))
