"""What does balance cost in tokens that cross between domains? A curve, every point with its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import plain
from placement._across import asked_of, plan_of
from placement._homes import Found, place_layer
from placement._rules import Gpus
from serving import PlacementPlan
from topo import Fault, InputError

__all__ = ["BalanceCurve", "balance_curve"]

Floats = NDArray[np.float64]

#: Heaviest GPU over the mean at the points of a curve, and tries for every copy.
_BALANCES = (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5)
_WORK = 1000


@dataclass(frozen=True, eq=False, repr=False)
class BalanceCurve:
    """Tokens that cross for every balance asked of the heaviest GPU.

    Attributes
    ----------
    balance : (points,) float
        Heaviest GPU over the mean that was allowed, ascending.
    crossing, bound : (points, layers) float
        Tokens that leave their domain, over all, and what no placement within the balance
        is below: infinite where it is proven that there is none within it.
    layer_objective : (points, layers) float
        Heaviest GPU over the mean that was reached; above the balance where none within it was found.
    plans : tuple of PlacementPlan
        One for every point.
    """

    balance: Floats
    crossing: Floats
    bound: Floats
    layer_objective: Floats
    plans: tuple[PlacementPlan, ...]

    @property
    def within(self) -> NDArray[np.bool_]:
        """Whether the balance was reached, (points, layers)."""
        return np.asarray(self.layer_objective <= self.balance[:, None] * (1 + 1e-9))

    def __repr__(self) -> str:
        points = "; ".join(
            f"{balance:g}: {100 * crossing.mean():.1f} %" + ("" if fits.all() else f" ({(~fits).sum()} layers heavier)")
            for balance, crossing, fits in zip(self.balance, self.crossing, self.within, strict=True)
        )
        return f"BalanceCurve({points} cross; {self.crossing.shape[1]} layers)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self, leave_out=("plans",))
        return whole | {"within": plain(self.within), "plans": [plan.to_dict() for plan in self.plans]}


def balance_curve(
    sources: ArrayLike,
    gpus: Gpus,
    *,
    replicas: int = 0,
    balances: Sequence[float] = _BALANCES,
    work: int = _WORK,
) -> BalanceCurve:
    """Place experts for several balances: the heavier a GPU may be, the fewer tokens need cross.

    Parameters
    ----------
    sources, gpus, replicas, work
        As `place_across`.
    balances : sequence of float, optional
        Heaviest GPU over the mean at every point.

    Returns
    -------
    BalanceCurve
        A layer never crosses more at a looser balance than at a tighter one it is within:
        then the plan of the tighter is taken. The bound of a looser balance holds at tighter ones too.

    Raises
    ------
    InputError
        What `place_across` refuses, no balances.

    Examples
    --------
    All tokens come from the first domain: with a GPU half as heavy again as the mean, three
    quarters of the experts may stay there.

    >>> import numpy as np
    >>> sources = np.vstack([np.ones(8), np.zeros(8)])
    >>> curve = balance_curve(sources, Gpus([8, 8], domain=[0, 1]), balances=(1.02, 1.52))
    >>> curve.crossing.ravel().tolist(), curve.bound.round(3).ravel().tolist()
    ([0.5, 0.25], [0.49, 0.24])
    """
    if not len(balances):
        raise InputError(Fault("balances", balances, "must hold one at least", "Give 1.01 for one per cent."))
    asked, pace = asked_of(sources, gpus, replicas, *balances)
    points = np.unique(np.asarray(balances, dtype=float))
    copies = asked.shape[2] + replicas
    rows, layer = np.unique(asked, axis=0, return_inverse=True)  # alike layers are placed once, and alike
    found = [_layer(row, gpus, copies, points, work) for row in rows]
    kept = list(zip(*(found[i] for i in layer.ravel()), strict=True))
    crossing = np.array([[each.crossing for each in layers] for layers in kept]) / pace
    bound = np.array([[each.bound for each in layers] for layers in kept]) / pace
    heaviest = np.array([[each.heaviest for each in layers] for layers in kept])
    within = heaviest <= points[:, None] * (1 + 1e-9)
    bound = np.where(within, np.minimum(bound, crossing), bound)
    return BalanceCurve(points, crossing, bound, heaviest, tuple(plan_of(layers, asked, gpus) for layers in kept))


def _layer(asked: Floats, gpus: Gpus, copies: int, balances: Floats, work: int) -> list[Found]:
    """Place a layer, a balance beginning with what the tighter one gave too; every point has the best within it."""
    points: list[Found] = []
    for balance in balances.tolist():
        points.append(place_layer(asked, gpus, copies, balance, work, points[-1] if points else None))
    bounds = list(accumulate((each.bound for each in reversed(points)), max))[::-1]
    best = [min(points, key=lambda each: (max(each.heaviest, b), each.crossing)) for b in balances.tolist()]
    return [each._replace(bound=bound) for each, bound in zip(best, bounds, strict=True)]
