"""Is there any placement that keeps to the rules? An exact answer, by a mixed-integer program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._rules import Gpus, Rules, may_of

__all__ = ["Conditions", "Seats", "conditions_of", "seats_near", "seats_under"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


#: Gap and nodes that end the search for what is near: any placement will do.
_NEAR, _NODES = 0.02, 50


class Seats(NamedTuple):
    """A placement of one layer that keeps to the rules.

    `expert` is (gpus, most slots), the number of experts where empty; `fixed` slots hold what is pinned; `may` says
    which expert may be where, those kept together in the domain they have here.
    """

    expert: Ints
    fixed: Bools
    may: Bools


def seats_under(load: Floats, gpus: Gpus, rules: Rules, copies: int) -> Seats | str:
    """Return a placement of all copies under the rules, GPUs about level; or in words the rule that leaves none.

    No GPU gets an expert twice.
    """
    found = _solved(load, gpus, rules, copies)
    return _blamed(load, gpus, rules, copies) if found is None else _seats(*found, gpus, rules)


def seats_near(load: Floats, gpus: Gpus, rules: Rules, copies: int, near: Bools) -> Seats | None:
    """Return the placement under the rules that differs least from another one, (experts, gpus), if one is found."""
    found = _solved(load, gpus, rules, copies, near)
    return None if found is None else _seats(*found, gpus, rules)


def _seats(held: Bools, may: Bools, gpus: Gpus, rules: Rules) -> Seats:
    """Return who sits in which slot."""
    n, most = len(held), int(gpus.slots.max())
    expert, fixed = np.full((len(gpus.slots), most), n), np.zeros((len(gpus.slots), most), dtype=bool)
    for g, row in enumerate(held.T):
        here = np.flatnonzero(row)
        expert[g, : len(here)] = here
        fixed[g, : len(here)] = [(int(e), g) in rules.pins for e in here]
    return Seats(expert, fixed, may)


def _blamed(load: Floats, gpus: Gpus, rules: Rules, copies: int) -> str:
    """Name the rule without which there is a placement, or all of them."""
    n = len(load)
    if rules.apart and copies < 2 * n:
        return f"rules.apart needs two copies of each of the {n} experts, and {copies} are fewer"
    may = may_of(gpus, rules, n)
    for e, g in rules.pins:
        if not may[e, g]:
            return f"rules.pin: expert {e} may not be where it is pinned"
    for name in rules.given:
        without: dict[str, Any] = {name: getattr(Rules(), name)}
        if _solved(load, gpus, replace(rules, **without), copies) is not None:
            return f"no placement of {copies} copies keeps to rules.{name}"
    if _solved(load, gpus, Rules(), copies) is None:
        return f"{copies} copies do not go into the slots without an expert twice on a GPU"
    return f"no placement of {copies} copies keeps to " + " and ".join(f"rules.{name}" for name in rules.given)


class Conditions(NamedTuple):
    """What a placement of one layer keeps to, in whole numbers that are zero or one.

    Columns are the cells (experts, gpus), expert after expert, then for every group the domains it may be in.
    `low` <= `table` @ numbers <= `high`, and numbers are from `least` to `most`.
    """

    table: Any
    low: Floats
    high: Floats
    least: Floats
    most: Floats


def conditions_of(n: int, gpus: Gpus, rules: Rules, copies: int) -> Conditions:
    """Return the conditions of rules and slots: every expert somewhere, none twice on a GPU, all copies."""
    from scipy.sparse import csr_array

    m, domains = len(gpus.slots), np.unique(gpus.domain)
    groups = [list(group) for group in rules.together]
    cells, homes = n * m, len(groups) * len(domains)
    cell = np.arange(cells).reshape(n, m)
    rows: list[tuple[Any, Any, float, float]] = [(cell[:, g], 1.0, 0, int(gpus.slots[g])) for g in range(m)]
    rows.append((cell.ravel(), 1.0, copies, copies))
    rows += [(row, 1.0, 1, m) for row in cell]
    if rules.apart == "gpu":  # no GPU gets an expert twice
        rows += [(row, 1.0, 2, m) for row in cell]
    elif rules.apart:
        zone = getattr(gpus, rules.apart)
        rows += [(row[zone != z], 1.0, 1, m) for z in np.unique(zone) for row in cell]
    for k, group in enumerate(groups):
        home = cells + k * len(domains) + np.arange(len(domains))
        rows.append((home, 1.0, 1, 1))
        for i, d in enumerate(domains):
            ours = cell[np.ix_(group, gpus.domain == d)].ravel()
            rows += [(np.r_[one, home[i]], np.array([1.0, -1.0]), -1, 0) for one in ours]
    at = np.concatenate([np.full(len(columns), i) for i, (columns, *_) in enumerate(rows)])
    weight = np.concatenate([np.broadcast_to(value, len(columns)) for columns, value, *_ in rows])
    columns = np.concatenate([columns for columns, *_ in rows])
    table = csr_array((weight, (at, columns)), shape=(len(rows), cells + homes))
    least, most = np.zeros(cells + homes), np.r_[may_of(gpus, rules, n).ravel().astype(float), np.ones(homes)]
    for e, g in rules.pins:
        least[cell[e, g]] = 1.0
    low, high = (np.array([row[i] for row in rows], dtype=np.float64) for i in (2, 3))
    return Conditions(table, low, high, least, most)


def _solved(
    load: Floats, gpus: Gpus, rules: Rules, copies: int, near: Bools | None = None
) -> tuple[Bools, Bools] | None:  # fmt: skip
    """Return who is where, (experts, gpus), and who may be; None if nothing keeps to the rules."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n, m = len(load), len(gpus.slots)
    c = conditions_of(n, gpus, rules, copies)
    if (c.least > c.most).any():
        return None
    cells, cost = n * m, np.zeros(len(c.least))
    # A level start: loads of the heaviest experts on different GPUs, by a cost that differs from cell to cell.
    level = load[:, None] * (1 + (np.arange(n)[:, None] + np.arange(m)) % m)
    cost[:cells] = (level if near is None else ~near * (1 + load / load.max())[:, None]).ravel()
    limit: Any = {"mip_rel_gap": 1.0} if near is None else {"mip_rel_gap": _NEAR, "node_limit": _NODES}
    found = milp(
        cost / max(float(cost.max()), 1e-300), integrality=np.ones(len(cost), dtype=np.int64),
        bounds=Bounds(c.least, c.most), constraints=LinearConstraint(c.table, c.low, c.high),
        options=limit,
    )  # fmt: skip
    if found.x is None:
        return None
    held, may, domains = found.x[:cells].reshape(n, m) > 0.5, may_of(gpus, rules, n), np.unique(gpus.domain)
    for group, home in zip(rules.together, found.x[cells:].reshape(-1, len(domains)), strict=True):
        may[list(group)] &= gpus.domain == domains[int(home.argmax())]
    return held, may
