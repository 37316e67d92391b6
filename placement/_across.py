"""Which domain holds which experts, so that few tokens cross between domains and no GPU is heavy?

Tokens go to a copy in their own domain where there is one. Which domains hold an expert is
a mixed-integer program without GPUs in it: GPUs of a domain are alike. Inside a domain
copies are placed as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import plain
from placement._moves import layer_of
from placement._rules import Gpus
from placement._search import search
from placement._start import start
from serving import PlacementPlan
from topo import Fault, InputError

__all__ = ["AcrossPlacement", "place_across"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Relative gap at which a layer's choice of domains is good enough, and nodes at most: both are deterministic.
_GAP, _NODES = 2e-3, 200
#: Experts x domains up to which that choice is exact.
_EXACT = 1200
#: Looks of a domain's heaviest GPU at its others.
_WORK = 2000
#: What is aimed at inside the balance: part of its slack that a domain may use, and the load of a copy over what a GPU
#: may have. Where GPUs cannot be levelled the next is tried.
_AIMS = ((0.5, 0.95), (0.25, 0.85), (0.25, 0.75), (0.25, 0.65), (1.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class AcrossPlacement:
    """A placement that keeps tokens in their domains, and how few can cross at least.

    Attributes
    ----------
    plan : PlacementPlan or None
        slot_share is the part of all tokens of its expert that a slot gets.
    crossing, bound : (layers,) float
        Tokens that leave their domain, over all, and what no placement is below whose
        heaviest GPU is within `balance`.
    layer_objective : (layers,) float
        Heaviest GPU over the mean.
    balance : float
        What was asked of it.
    status : str
        "feasible" with the gap and the layers above the balance, or "infeasible" and why.
    """

    plan: PlacementPlan | None
    crossing: Floats
    bound: Floats
    layer_objective: Floats
    balance: float
    status: str

    def __repr__(self) -> str:
        if self.plan is None:
            return f"AcrossPlacement({self.status})"
        heavy = f"max/mean load {self.layer_objective.mean():.4f}, worst {self.layer_objective.max():.4f}"
        return f"AcrossPlacement({100 * self.crossing.mean():.2f} % cross; {heavy}; {self.status})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self, leave_out=("plan",))
        return whole | {"plan": self.plan.to_dict() if self.plan else None}


def place_across(
    sources: ArrayLike, gpus: Gpus, *, replicas: int = 0, balance: float = 1.01, work: int = _WORK
) -> AcrossPlacement:  # fmt: skip
    """Place experts so that few tokens leave their domain and no GPU is much heavier than the mean.

    Parameters
    ----------
    sources : (domains, experts) or (layers, domains, experts) array
        Tokens of every expert by the domain they come from, in any unit; domains in
        ascending order of their numbers.
    gpus : Gpus
        With the domain of each; GPUs of a domain alike but for their slots.
    replicas : int, optional
        Spare copies beyond one of each expert.
    balance : float, optional
        Heaviest GPU over the mean to aim at: a larger one lets fewer tokens cross.
    work : int, optional
        Looks of a domain's heaviest GPU at its others.

    Returns
    -------
    AcrossPlacement

    Raises
    ------
    InputError
        Loads that are no numbers, other domains than the GPUs have, too few slots.

    Examples
    --------
    Four experts asked for by one domain each, on two domains of two GPUs: nothing crosses.

    >>> import numpy as np
    >>> sources = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    >>> place_across(sources, Gpus([1] * 4, domain=[0, 0, 1, 1])).crossing.tolist()
    [0.0]
    """
    asked = _require(sources, gpus, replicas, balance)
    copies = asked.shape[2] + replicas
    found = [_layer(row, gpus, copies, balance, work) for row in asked]
    bad = next((each for each in found if isinstance(each, str)), None)
    if bad is not None:
        none = np.zeros(0)
        return AcrossPlacement(None, none, none, none, balance, f"infeasible: {bad}")
    layers = [each for each in found if not isinstance(each, str)]
    expert, rank, share = (np.array([getattr(each, name) for each in layers]) for name in ("expert", "rank", "share"))
    plan = PlacementPlan(expert, rank, np.zeros(len(layers), dtype=np.intp), len(gpus.slots), 1, share)
    crossing = np.array([_crossing(row, each, gpus) for row, each in zip(asked, layers, strict=True)])
    load = asked.sum(axis=1)
    heavy = (plan.gpu_load(load) / gpus.speed).max(axis=1) / (load.sum(axis=1) / gpus.speed[gpus.slots > 0].sum())
    bound = np.minimum([each.bound for each in layers], crossing)
    over = int((heavy > balance * (1 + 1e-9)).sum())
    status = f"feasible, {100 * (crossing.mean() - bound.mean()):.2g} points above the bound"
    status += f"; {over} of {len(layers)} layers heavier than {balance:g}" if over else ""
    return AcrossPlacement(plan, crossing, bound, heavy, balance, status)


@dataclass(frozen=True)
class _Found:
    expert: Ints
    rank: Ints
    share: Floats
    bound: float


def _layer(asked: Floats, gpus: Gpus, copies: int, balance: float, work: int) -> _Found | str:
    """Choose domains, then GPUs; aim lower inside where the result is too heavy."""
    domains = np.unique(gpus.domain)
    pace = np.array([gpus.speed[(gpus.domain == d) & (gpus.slots > 0)].sum() for d in domains])
    slots = np.array([gpus.slots[gpus.domain == d].sum() for d in domains])
    asked = asked / asked.sum() * pace.sum()
    size = gpus.speed.max() * balance
    proof = _domains(asked, pace * balance, slots, copies, size)
    best, least = None, np.inf
    for slack, copy in _AIMS:
        chosen = _domains(asked, pace * (1 + (balance - 1) * slack), slots, copies, size * copy)
        if chosen is None:
            continue
        seats, heavy = _inside(chosen[0], gpus, copies, work, balance, size * copy)
        if heavy < least:
            best, least = seats, heavy
        if heavy <= balance:
            break
    if best is None or proof is None:
        return f"no domains have slots for all experts with the heaviest GPU within {balance:g} of the mean"
    return _Found(*best, proof[1] / float(asked.sum()))


def _domains(
    asked: Floats, most: Floats, slots: Ints, copies: int, size: float, held: Bools | None = None
) -> tuple[Floats, float] | None:  # fmt: skip
    """Return the load of every expert in every domain, zero where it has no copy, and the least that crosses.

    Binaries say which domain holds which expert, integers how many more copies an expert
    has there that is heavier than `size`; tokens without a copy at home go anywhere. Where
    there are many, the relaxation is rounded. `held` says which domains hold what already.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, csc_array

    m, n = asked.shape
    whole, cells = asked.sum(axis=0), m * n
    heavy = np.flatnonzero(np.tile(whole, m) > size)  # cells are domain after domain
    expert, domain, here = np.tile(np.arange(n), m), np.repeat(np.arange(m), n), asked.ravel()
    holds, away, more = np.arange(cells), cells + np.arange(cells), 2 * cells + np.arange(len(heavy))
    rest, all_copies = np.tile(whole, m) - here, np.r_[holds, more]
    parts = [  # rows from 0, columns, values, lower, upper
        (np.r_[expert, expert], np.r_[holds, away], np.r_[here, np.ones(cells)], whole, whole),  # all tokens are served
        (np.r_[holds, holds], np.r_[away, holds], np.r_[np.ones(cells), -rest], -np.inf, np.zeros(cells)),
        (np.r_[domain, domain], np.r_[holds, away], np.r_[here, np.ones(cells)], -np.inf, most),
        (np.r_[domain, domain[heavy]], all_copies, np.ones(len(all_copies)), -np.inf, slots.astype(float)),
        (0 * all_copies, all_copies, np.ones(len(all_copies)), -np.inf, np.full(1, float(copies))),
    ]
    if len(heavy):
        k = np.arange(len(heavy))
        parts.append(
            (np.r_[k, k, k], np.r_[heavy, cells + heavy, more],
             np.r_[here[heavy] - size, np.ones(len(heavy)), np.full(len(heavy), -size)], -np.inf, np.zeros(len(heavy)))
        )  # fmt: skip
    columns = 2 * cells + len(heavy)
    constraints = [
        LinearConstraint(csc_array(coo_array((x, (row.astype(int), column)), shape=(len(high), columns))), low, high)
        for row, column, x, low, high in parts
    ]
    cost = np.zeros(columns)
    cost[away] = 1.0
    upper = np.r_[np.ones(cells), rest, np.full(len(heavy), float(copies))]
    lower = np.zeros(columns)
    if held is not None:
        lower[holds] = upper[holds] = held.ravel()
    exact = cells <= _EXACT and held is None
    integral = np.r_[np.ones(cells), np.zeros(cells), np.ones(len(heavy))] * exact
    options: Any = {"mip_rel_gap": _GAP, "node_limit": _NODES} if exact else {}
    found: Any = milp(cost, constraints=constraints, bounds=Bounds(lower, upper), integrality=integral, options=options)
    if found.x is None:
        return None
    if not exact and held is None:
        held = _rounded(found.x[holds].reshape(m, n), asked, most, slots, copies, size)
        for slack in (1.0, 1.02, 1.05, 1.1, 1.2, 1.5, np.inf):
            served = _domains(asked, slack * most, slots, copies, slack * size, held)
            if served is not None:
                return served[0], max(0.0, float(found.fun))
        return None
    held = (found.x[holds] > 0.5).reshape(m, n)
    load = np.where(held, asked + found.x[away].reshape(m, n), 0.0)
    load *= whole / np.maximum(load.sum(axis=0), 1e-300)
    load[held & (load <= 0)] = 1e-300  # an expert without tokens has its slot all the same
    return load, max(0.0, float(found.mip_dual_bound if exact else found.fun))


def _rounded(part: Floats, asked: Floats, most: Floats, slots: Ints, copies: int, size: float) -> Bools:
    """Return which domain holds what: every expert once, where much of it is and room for it, then what is left."""
    m, n = part.shape
    held, free, left = np.zeros((m, n), dtype=bool), slots.copy(), copies
    worth, whole, weight = part + asked / asked.max(), asked.sum(axis=0), np.zeros(m)
    many = np.maximum(1, np.ceil(whole / size)).astype(int)
    for e in np.repeat(*(x[np.argsort(-whole, kind="stable")] for x in (np.arange(n), np.minimum(many, m)))):
        after = (weight + whole[e] / many[e]) / most
        fits = np.where(after <= 1, np.round(part[:, e], 1) - after / 20, -after)
        d = int(np.where((free > 0) & ~held[:, e], fits, -np.inf).argmax())
        held[d, e] = True
        weight[d] += whole[e] / many[e]
        free[d] -= 1
        left -= 1
    for cell in np.argsort(-worth, axis=None, kind="stable"):
        d, e = divmod(int(cell), n)
        if left and free[d] and not held[d, e]:
            held[d, e] = True
            free[d] -= 1
            left -= 1
    return held


def _inside(
    load: Floats, gpus: Gpus, copies: int, work: int, balance: float, size: float
) -> tuple[tuple[Ints, Ints, Floats], float]:  # fmt: skip
    """Place every domain's copies on its GPUs; return expert, GPU and share of all slots, and the heaviest GPU."""
    whole, least = load.sum(axis=0), np.ceil(load / size * (1 - 1e-9)).sum(axis=1).astype(int)
    ours = [np.flatnonzero(gpus.domain == d) for d in np.unique(gpus.domain)]
    room = np.array([gpus.slots[mine].sum() for mine in ours])
    many = np.minimum(least, room)
    for _ in range(copies - int(many.sum())):
        many[np.argmax(np.where(many < room, (room - many) / room, -1.0))] += 1
    expert, rank, share, heaviest = [], [], [], 0.0
    for row, mine, number in zip(load, ours, many, strict=True):
        held = np.flatnonzero(row > 0)
        if not len(held):
            continue
        slots, speed = gpus.slots[mine], gpus.speed[mine]
        seats = start(row[None, held], slots, speed, int(number), doubled=False)
        layer = layer_of(row[held], seats.expert[0], seats.count[0], slots, speed)
        heaviest = max(heaviest, search(layer, 1 + (balance - 1) * 0.9, work, True))
        gpu, seat = np.nonzero(layer.expert < len(held))
        which = held[layer.expert[gpu, seat]]
        expert.append(which)
        rank.append(mine[gpu])
        share.append(layer.share[gpu, seat] / whole[which])
    return (np.concatenate(expert), np.concatenate(rank), np.concatenate(share)), heaviest


def _crossing(asked: Floats, found: _Found, gpus: Gpus) -> float:
    """Return the part of the tokens whose domain has no copy of their expert."""
    domains = np.unique(gpus.domain)
    holds = np.zeros(asked.shape, dtype=bool)
    holds[np.searchsorted(domains, gpus.domain[found.rank]), found.expert] = True
    return float(asked[~holds].sum() / asked.sum())


def _require(sources: ArrayLike, gpus: Gpus, replicas: int, balance: float) -> Floats:
    """Refuse what cannot be; return (layers, domains, experts), a layer without tokens uniform."""
    try:
        asked = np.array(sources, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(Fault("sources", "array", "must be numbers", "Correct it.")) from None
    asked = asked[None] if asked.ndim == 2 else asked
    m = len(np.unique(gpus.domain))
    faults = []
    if asked.ndim != 3 or asked.shape[1] != m or 0 in asked.shape:
        rule = f"must have shape ({m}, experts) or (layers, {m}, experts): a row for each domain of the GPUs"
        faults.append(Fault("sources", asked.shape, rule, "Correct it."))
    elif not np.isfinite(asked).all() or (asked < 0).any():
        faults.append(Fault("sources", "array", "must be finite, zero or more", "Correct it."))
    elif asked.shape[2] + replicas > gpus.slots.sum():
        rule = f"are {int(gpus.slots.sum())} in all, fewer than the {asked.shape[2] + replicas} copies"
        faults.append(Fault("gpus.slots", "array", rule, "Give more slots, or fewer replicas."))
    if isinstance(replicas, bool) or not isinstance(replicas, int | np.integer) or replicas < 0:
        faults.append(Fault("replicas", replicas, "must be a whole number, zero or more", "Correct it."))
    if isinstance(balance, bool) or not isinstance(balance, int | float) or not 1 < balance < np.inf:
        faults.append(Fault("balance", balance, "must be above one", "Give 1.01 for one per cent."))
    if faults:
        raise InputError(*faults)
    asked[~asked.any(axis=(1, 2))] = 1.0
    return asked
