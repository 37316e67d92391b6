"""Which GPU holds which expert? The heaviest GPU as light as can be, with a proof how light that is.

Every GPU has a number of slots. Small layers are solved exactly as a mixed-integer
program; larger ones by a greedy start and swaps, held against a lower bound that holds
for any placement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ExpertSolution", "load_bound", "place_experts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Largest layer given to the mixed-integer solver: experts x GPUs.
EXACT_CELLS = 16 * 8
#: Relative gap at which the exact solver's answer counts as proven, and its nodes: both are
#: deterministic, the clock is not.
PROVEN = 1e-9
NODE_LIMIT = 500_000


@dataclass(frozen=True, eq=False)
class ExpertSolution:
    """One layer's placement.

    Attributes
    ----------
    rank : (experts,) int
        GPU of every expert.
    heaviest : float
        Load of the heaviest GPU, in the units of the loads.
    bound : float
        No placement has a lighter heaviest GPU.
    method : str
        "milp" or "greedy".
    stopped : str
        Why the exact solver stopped early; empty when it did not.
    """

    rank: Ints
    heaviest: float
    bound: float
    method: str
    stopped: str = ""


def place_experts(load: Floats, gpus: int, slots: int, time_limit: float | None = None) -> ExpertSolution:
    """Place one layer's experts on GPUs with equal slots.

    Parameters
    ----------
    load : (experts,) float
        Load of every expert.
    gpus, slots : int
        GPUs, and experts each may hold; gpus x slots is at least the number of experts.
    time_limit : float, optional
        For the exact solver [s].

    Returns
    -------
    ExpertSolution
        With heaviest >= bound; equal when proven optimal.

    Examples
    --------
    >>> import numpy as np
    >>> place_experts(np.array([3.0, 3.0, 2.0, 2.0, 2.0]), 2, 3).heaviest
    6.0
    """
    start = _swapped(load, _greedy(load, gpus, slots), gpus)
    heaviest = _heaviest(load, start, gpus)
    bound = load_bound(load, gpus, slots)
    if heaviest <= bound * (1 + 1e-12) or len(load) * gpus > EXACT_CELLS:
        return ExpertSolution(start, heaviest, min(bound, heaviest), "greedy")
    return _exact(load, gpus, slots, time_limit, ExpertSolution(start, heaviest, bound, "greedy"))


def load_bound(load: Floats, gpus: int, slots: int) -> float:
    """Return a load that the heaviest GPU of every placement reaches.

    The mean; the heaviest expert; for every j the j lightest of the (j - 1) gpus + 1
    heaviest experts, since some GPU holds j of those; and, where slots are scarce, the
    lightest experts a GPU must hold beside the heaviest one.

    Examples
    --------
    >>> import numpy as np
    >>> load_bound(np.array([3.0, 3.0, 3.0]), 2, 2)
    6.0
    """
    falling = np.sort(load)[::-1]
    n = len(falling)
    bounds = [float(load.sum()) / gpus, float(falling[0])]
    for j in range(2, -(-n // gpus) + 1):
        among = falling[: (j - 1) * gpus + 1]
        bounds.append(float(among[-j:].sum()))
    least_held = max(1, n - (gpus - 1) * slots)
    bounds.append(float(falling[0] + falling[::-1][: least_held - 1].sum()) if least_held < n else float(load.sum()))
    return max(bounds)


def _greedy(load: Floats, gpus: int, slots: int) -> Ints:
    """Heaviest expert first onto the lightest GPU with a free slot."""
    rank = np.empty(len(load), dtype=np.intp)
    weight, free = np.zeros(gpus), np.full(gpus, slots)
    for expert in np.argsort(-load, kind="stable"):
        gpu = int(np.argmin(np.where(free > 0, weight, math.inf)))
        rank[expert] = gpu
        weight[gpu] += load[expert]
        free[gpu] -= 1
    return rank


def _swapped(load: Floats, rank: Ints, gpus: int) -> Ints:
    """Swap an expert of the heaviest GPU for a lighter one elsewhere while that lowers the maximum."""
    rank = rank.copy()
    for _ in range(4 * len(load)):
        weight = np.bincount(rank, weights=load, minlength=gpus)
        top = int(np.argmax(weight))
        mine, others = np.flatnonzero(rank == top), np.flatnonzero(rank != top)
        if not len(others):
            break
        gain = load[mine][:, None] - load[others][None, :]
        after = np.maximum(weight[top] - gain, weight[rank[others]][None, :] + gain)
        i, j = np.unravel_index(int(np.argmin(after)), after.shape)
        if after[i, j] >= weight[top] * (1 - 1e-12):
            break
        a, b = mine[i], others[j]
        rank[a], rank[b] = rank[b], rank[a]
    return rank


def _heaviest(load: Floats, rank: Ints, gpus: int) -> float:
    return float(np.bincount(rank, weights=load, minlength=gpus).max())


def _why_stopped(status: int) -> str:
    """Say in words why HiGHS stopped before its proof (1: a limit; other codes are unexpected)."""
    return "the clock stopped the exact solver" if status == 1 else f"the exact solver stopped at {NODE_LIMIT} nodes"


def _exact(load: Floats, gpus: int, slots: int, time_limit: float | None, start: ExpertSolution) -> ExpertSolution:
    """Minimise z over binaries x[expert, gpu]: one GPU each, slots kept, every GPU's load at most z."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = len(load)
    scale = float(load.sum()) or 1.0
    cells = n * gpus
    once = np.hstack([np.kron(np.eye(n), np.ones((1, gpus))), np.zeros((n, 1))])
    kept = np.hstack([np.kron(np.ones((1, n)), np.eye(gpus)), np.zeros((gpus, 1))])
    below = np.hstack([np.kron(load[None, :] / scale, np.eye(gpus)), -np.ones((gpus, 1))])
    cost = np.zeros(cells + 1)
    cost[-1] = 1.0
    upper = np.ones(cells + 1)
    # GPUs are alike: expert i needs none beyond the first i + 1.
    for i in range(min(n, gpus)):
        upper[i * gpus + i + 1 : (i + 1) * gpus] = 0.0
    upper[-1] = start.heaviest / scale
    lower = np.zeros(cells + 1)
    lower[-1] = start.bound / scale
    options: Any = {"mip_rel_gap": PROVEN, "node_limit": NODE_LIMIT}
    if time_limit is not None:
        options["time_limit"] = time_limit
    result = milp(
        cost, integrality=np.append(np.ones(cells), 0), bounds=Bounds(lower, upper), options=options,
        constraints=[LinearConstraint(once, 1, 1), LinearConstraint(kept, -np.inf, slots),
                     LinearConstraint(below, -np.inf, 0)],
    )  # fmt: skip
    stopped = "" if result.status == 0 else _why_stopped(result.status)
    dual = getattr(result, "mip_dual_bound", None)
    bound = start.bound if dual is None or not math.isfinite(dual) else max(start.bound, float(dual) * scale)
    if result.x is None:
        return ExpertSolution(start.rank, start.heaviest, min(bound, start.heaviest), "greedy", stopped)
    rank = np.argmax(result.x[:-1].reshape(n, gpus), axis=1).astype(np.intp)
    heaviest = _heaviest(load, rank, gpus)
    if heaviest >= start.heaviest:
        rank, heaviest = start.rank, start.heaviest
    proven = result.status == 0 and heaviest - bound <= 1e-6 * heaviest
    return ExpertSolution(rank, heaviest, heaviest if proven else min(bound, heaviest), "milp", stopped)
