"""Which domain holds which experts, so that few tokens cross between domains and no GPU is heavy?

Tokens go to a copy in their own domain where there is one; the others go to any copy. Domains are chosen by simulated
annealing, the bound comes from prices of slots, load and copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import plain
from placement._homes import Found, place_layer
from placement._rules import Gpus
from serving import PlacementPlan
from topo import Fault, InputError

__all__ = ["AcrossPlacement", "asked_of", "place_across", "plan_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Tries for every copy; parts of all tokens that are one and the same.
_WORK, _SAME = 1000, 1e-9
#: A looser balance is tried where it is this part of the heaviest GPU reached before.
_NEARLY = 0.96


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
    layer_balance : (layers,) float
        What every layer was placed for: `balance`, or one of `looser`.
    status : str
        "feasible" with the gap and the layers above the balance, or "infeasible" and why.
    """

    plan: PlacementPlan | None
    crossing: Floats
    bound: Floats
    layer_objective: Floats
    balance: float
    layer_balance: Floats
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
    sources: ArrayLike, gpus: Gpus, *, replicas: int = 0, balance: float = 1.01, looser: Sequence[float] = (),
    work: int = _WORK,
) -> AcrossPlacement:  # fmt: skip
    """Place experts so that few tokens leave their domain and no GPU is much heavier than the mean.

    Parameters
    ----------
    sources : (domains, experts) or (layers, domains, experts) array
        Tokens of every expert by the domain they come from, in any unit; domains in
        ascending order of their numbers.
    gpus : Gpus
        With the domain, slots and speed of each.
    replicas : int, optional
        Spare copies beyond one of each expert.
    balance : float, optional
        Heaviest GPU over the mean to aim at: a larger one lets fewer tokens cross.
    looser : sequence of float, optional
        For layers in which the balance is not had: the next of these that can be is aimed at.
    work : int, optional
        Tries for every copy: what bounds the time, whatever the clock says.

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
    asked, pace = asked_of(sources, gpus, replicas, balance, *looser)
    copies = asked.shape[2] + replicas
    found, allowed = zip(*(_layer(row, gpus, copies, (balance, *looser), work) for row in asked), strict=True)
    layer_balance = np.array(allowed)
    lost = [i for i, each in enumerate(found) if not np.isfinite(each.bound)]
    if lost:
        none, most = np.zeros(0), allowed[lost[0]]
        rule = f"layer {lost[0]} has no placement in these slots with the heaviest GPU within {most:g} of the mean"
        return AcrossPlacement(None, none, none, none, balance, none, f"infeasible: {rule}")
    plan = plan_of(found, asked, gpus)
    crossing = np.array([each.crossing for each in found]) / pace
    heavy = (plan.gpu_load(asked.sum(axis=1)) / gpus.speed).max(axis=1)
    bound = np.minimum([each.bound / pace for each in found], crossing)
    above, over = crossing.mean() - bound.mean(), int((heavy > layer_balance * (1 + 1e-9)).sum())
    status = f"feasible, {100 * above:.2g} points above the bound" if above > _SAME or over else "optimal"
    for most in np.unique(layer_balance[layer_balance > balance]):
        status += f"; {int((layer_balance == most).sum())} of {len(found)} layers at {most:g}"
    status += f"; {over} of {len(found)} layers heavier than {layer_balance.max():g}" if over else ""
    return AcrossPlacement(plan, crossing, bound, heavy, balance, layer_balance, status)


def _layer(asked: Floats, gpus: Gpus, copies: int, balances: Sequence[float], work: int) -> tuple[Found, float]:
    """Place a layer for the first balance; where a GPU is heavier, for looser ones that are near what was reached."""
    balance, *looser = sorted({balances[0], *(more for more in balances if more > balances[0])})
    found = place_layer(asked, gpus, copies, balance, work)
    for more in looser:
        if found.heaviest <= balance * (1 + 1e-9):
            break
        if more >= _NEARLY * found.heaviest:
            found, balance = place_layer(asked, gpus, copies, more, work, found), more
    return found, balance


def plan_of(found: Sequence[Found], asked: Floats, gpus: Gpus) -> PlacementPlan:
    """Return the plan of layers as they were found."""
    expert, rank, share = (np.array(part) for part in zip(*map(_slots, found, asked.sum(axis=1)), strict=True))
    return PlacementPlan(expert, rank, np.zeros(len(found), dtype=np.intp), len(gpus.slots), 1, share)


def _slots(found: Found, whole: Floats) -> tuple[Ints, Ints, Floats]:
    """Return expert, GPU and share of every copy, GPU after GPU; shares of an expert sum to one."""
    gpu, seat = np.nonzero((found.expert >= 0) & (found.expert < len(whole)))
    expert = found.expert[gpu, seat]
    load = found.share[gpu, expert]
    total = np.bincount(expert, weights=load, minlength=len(whole))
    copies = np.bincount(expert, minlength=len(whole))
    share = np.where(
        total[expert] > 0, load / np.where(total > 0, total, 1.0)[expert], 1 / np.maximum(copies, 1)[expert]
    )
    return expert, gpu, share


def asked_of(sources: ArrayLike, gpus: Gpus, replicas: int, *balances: float) -> tuple[Floats, float]:
    """Refuse what cannot be; return (layers, domains, experts) tokens and what they sum to: all GPUs' speed.

    A layer without tokens is uniform.
    """
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
    faults += [
        Fault("balance", balance, "must be above one", "Give 1.01 for one per cent.")
        for balance in balances
        if isinstance(balance, bool) or not isinstance(balance, int | float) or not 1 < balance < np.inf
    ]
    if faults:
        raise InputError(*faults)
    asked[~asked.any(axis=(1, 2))] = 1.0
    pace = float(gpus.speed[gpus.slots > 0].sum())
    return asked / asked.sum(axis=(1, 2), keepdims=True) * pace, pace
