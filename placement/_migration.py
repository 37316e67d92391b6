"""What does it take to get from one placement to another: which copies of experts move, how many bytes, how long?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import cost, plain
from placement._rules import Gpus
from serving import PlacementPlan
from topo import Fabric, Fault, InputError

__all__ = ["Migration", "migrate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Migration:
    """The way from one placement to another.

    Attributes
    ----------
    plan : PlacementPlan
        The other one, alike GPUs of a domain renamed in every layer so that least moves.
    copies : int
        Copies of experts that come to a GPU without them.
    n_bytes, across_bytes : float
        Weights sent, and those of them that cross between domains [bytes].
    traffic : (gpus, gpus) float
        Sent from and to [bytes].
    seconds : float or None
        All at once over the graph, if one was given [s].
    bottleneck : str
        The link or GPU that takes longest.
    """

    plan: PlacementPlan
    copies: int
    n_bytes: float
    across_bytes: float
    traffic: Floats
    seconds: float | None
    bottleneck: str

    def __repr__(self) -> str:
        took = "" if self.seconds is None else f", {self.seconds:.3g} s by {self.bottleneck}"
        return (
            f"Migration({self.copies} copies, {self.n_bytes / 1e9:.4g} GB, {self.across_bytes / 1e9:.4g} across{took})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self, leave_out=("plan",))
        return whole | {"plan": self.plan.to_dict()}


def migrate(
    before: PlacementPlan,
    after: PlacementPlan,
    expert_bytes: float,
    *,
    gpus: Gpus | None = None,
    rename: bool = True,
    graph: nx.Graph[str] | Fabric | None = None,
) -> Migration:
    """Return what moves between two placements, each copy from a GPU that has it.

    Parameters
    ----------
    before, after : PlacementPlan
        Of the same layers and GPUs, of one stage.
    expert_bytes : float
        Weights of an expert [bytes].
    gpus : Gpus, optional
        Their domains: GPUs take each other's names within one only. One by default.
    rename : bool, optional
        Whether GPUs of a domain may take each other's names at all: not where the plan is for these very GPUs.
    graph : networkx.Graph or Fabric, optional
        To tell how long it takes.

    Raises
    ------
    InputError
        Plans of other layers or GPUs, or of several stages.

    Examples
    --------
    Two GPUs that change names move nothing.

    >>> import numpy as np
    >>> one, stage = np.array([[0, 1, 2, 3]]), np.zeros(1, dtype=int)
    >>> before = PlacementPlan(one, np.array([[0, 0, 1, 1]]), stage, 2, 1)
    >>> migrate(before, PlacementPlan(one, np.array([[1, 1, 0, 0]]), stage, 2, 1), 44e6).copies
    0
    """
    if (before.ep, len(before.slot_expert)) != (after.ep, len(after.slot_expert)):
        raise InputError(
            Fault("after", repr(after), f"is not for the GPUs and layers of {before!r}", "Place for those.")
        )
    if before.pp != 1 or after.pp != 1:
        plan = before if before.pp != 1 else after
        raise InputError(Fault("plan", repr(plan), "has several stages", "Give each stage's layers as a plan."))
    if not expert_bytes > 0:
        raise InputError(Fault("expert_bytes", expert_bytes, "must be above zero [bytes]", "Give model.expert_bytes."))
    domain = np.zeros(before.ep, dtype=np.int64) if gpus is None else gpus.domain
    n = int(max(before.slot_expert.max(initial=-1), after.slot_expert.max(initial=-1))) + 1
    traffic, rank = np.zeros((before.ep, before.ep)), after.slot_rank.copy()
    for layer in range(len(rank)):
        had, has = (_holds(plan, layer, n) for plan in (before, after))
        name = _names(had, has, domain) if rename else np.arange(len(had))
        rank[layer] = name[after.slot_rank[layer]]
        _send(had, has[np.argsort(name)], domain, traffic, expert_bytes)
    off = traffic.sum()
    across = traffic[domain[:, None] != domain].sum()
    found = None if graph is None or not off else cost(graph, "all_to_all_v", traffic)
    return Migration(
        replace(after, slot_rank=rank, loads=None), round(off / expert_bytes), float(off), float(across), traffic,
        None if graph is None else found.seconds if found else 0.0, str(found.bottleneck) if found else "nothing",
    )  # fmt: skip


def _holds(plan: PlacementPlan, layer: int, n: int) -> NDArray[np.bool_]:
    held = np.zeros((plan.ep, n), dtype=bool)
    held[plan.slot_rank[layer], plan.slot_expert[layer]] = True
    return held


def _names(had: NDArray[np.bool_], has: NDArray[np.bool_], domain: Ints) -> Ints:
    """Return the GPU that each GPU of the new layer had better be: most experts there already, same domain."""
    from scipy.optimize import linear_sum_assignment

    name = np.arange(len(had))
    for d in np.unique(domain):
        ours = np.flatnonzero(domain == d)
        new, old = linear_sum_assignment(has[ours].astype(float) @ had[ours].T.astype(float), maximize=True)
        name[ours[new]] = ours[old]
    return name


def _send(
    had: NDArray[np.bool_], has: NDArray[np.bool_], domain: Ints, traffic: Floats, expert_bytes: float
) -> None:  # fmt: skip
    """Add what every GPU lacks: from its domain if an expert is there, and from who has sent least."""
    for gpu, expert in zip(*np.nonzero(has & ~had), strict=True):
        holders = np.flatnonzero(had[:, expert])
        if not len(holders):
            raise InputError(Fault("before", int(expert), "is an expert that no GPU holds", "Give a whole plan."))
        near = holders[domain[holders] == domain[gpu]]
        holders = near if len(near) else holders
        traffic[holders[traffic[holders].sum(axis=1).argmin()], gpu] += expert_bytes
