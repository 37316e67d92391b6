"""What is asked of the model, and how is it laid out? Workload, Layout, PlacementPlan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving._dtypes import dtype_bytes
from topo import Fault, InputError, suggest

__all__ = ["Layout", "PlacementPlan", "Workload"]

Ints = NDArray[np.intp]

PHASES = ("decode",)
COPIES = ("direct",)
EXPERT_ROUTINGS = ("free",)
EXPERT_READS = ("distinct", "all")


@dataclass(frozen=True)
class Workload:
    """What one step has to do.

    Parameters
    ----------
    phase : {"decode"}
        One new token per sequence.
    context : int
        Tokens in every sequence's KV cache.
    batch : int, optional
        Sequences over the whole expert-parallel group (constant total batch).
    batch_per_gpu : int, optional
        Sequences on every GPU (constant per GPU). One of the two is given.
    kv_dtype, dispatch_dtype, combine_dtype : str, optional
        Of KV cache and attention arithmetic, and of the two all-to-alls.
    copies : {"direct"}, optional
        Direct: one copy of a token for each of its experts.
    expert_routing : {"free"}, optional
        Free: a model's group limit is not used.
    expert_read : {"distinct", "all"}, optional
        Which expert weights a step reads: those of the expected distinct experts hit,
        or all of them as in the lecture.
    attention_arithmetic : bool, optional
        Whether attention arithmetic takes time (the lecture leaves it out).
    router : bool, optional
        Whether the router's weights take time.
    hbm_reserve : float, optional
        Part of HBM kept free.

    Examples
    --------
    >>> Workload(context=4096, batch_per_gpu=114).kv_dtype
    'bf16'
    """

    phase: str = "decode"
    context: int = 4096
    batch: int | None = None
    batch_per_gpu: int | None = None
    kv_dtype: str = "bf16"
    dispatch_dtype: str = "fp8"
    combine_dtype: str = "bf16"
    copies: str = "direct"
    expert_routing: str = "free"
    expert_read: str = "distinct"
    attention_arithmetic: bool = True
    router: bool = False
    hbm_reserve: float = 0.10

    def __post_init__(self) -> None:
        """Refuse what cannot be, all at once."""
        faults = [
            Fault(name, getattr(self, name), "is not known", suggest(str(getattr(self, name)), known))
            for name, known in (
                ("phase", PHASES), ("copies", COPIES),
                ("expert_routing", EXPERT_ROUTINGS), ("expert_read", EXPERT_READS),
            )
            if getattr(self, name) not in known
        ]  # fmt: skip
        for name in ("kv_dtype", "dispatch_dtype", "combine_dtype"):
            try:
                dtype_bytes(getattr(self, name), name)
            except InputError as error:
                faults += error.faults
        if (self.batch is None) == (self.batch_per_gpu is None):
            given = "both" if self.batch is not None else "neither"
            faults.append(Fault("batch, batch_per_gpu", given, "exactly one of the two is needed", "Give one."))
        for name in ("context", "batch", "batch_per_gpu"):
            faults += _whole(name, getattr(self, name), optional=name != "context")
        if not 0 <= self.hbm_reserve < 1:
            faults.append(
                Fault("hbm_reserve", self.hbm_reserve, "must lie in 0 .. 1, 1 excluded", "Give a part, as 0.1.")
            )
        if faults:
            raise InputError(*faults)

    def batch_of(self, ranks: int) -> Ints:
        """Return the sequences on each GPU of a group: equal up to one, (ranks,) int."""
        if self.batch_per_gpu is not None:
            return np.full(ranks, self.batch_per_gpu, dtype=np.intp)
        assert self.batch is not None
        share, extra = divmod(self.batch, ranks)
        return np.where(np.arange(ranks) < extra, share + 1, share).astype(np.intp)

    @property
    def batch_policy(self) -> str:
        """Which of the two is constant when a width varies, in words."""
        if self.batch_per_gpu is not None:
            return f"{self.batch_per_gpu} sequences per GPU"
        return f"{self.batch:,} sequences over the group"


@dataclass(frozen=True)
class Layout:
    """How the model is cut: attention data-parallel and experts spread over `ep` GPUs, `pp` stages.

    Parameters
    ----------
    ep : int
        GPUs over which the experts of a layer are spread; attention is replicated on them.
    pp : int, optional
        Pipeline stages, each an own group of ep GPUs.
    """

    ep: int
    pp: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        faults = [*_whole("ep", self.ep), *_whole("pp", self.pp)]
        if faults:
            raise InputError(*faults)


def _whole(name: str, value: Any, optional: bool = False) -> list[Fault]:
    if value is None and optional:
        return []
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        return [Fault(name, value, "must be a whole number, one or more", "Correct it.")]
    return []


@dataclass(frozen=True, eq=False, repr=False)
class PlacementPlan:
    """Which GPU holds which expert, and which stage which layer.

    Attributes
    ----------
    slot_expert : (MoE layers, slots) int
        Expert in each slot.
    slot_rank : (MoE layers, slots) int
        GPU of each slot, counted within the stage's group of `ep` GPUs.
    layer_stage : (layers,) int
        Pipeline stage of every layer, ascending.
    ep, pp : int
        The layout the plan is for.
    """

    slot_expert: Ints
    slot_rank: Ints
    layer_stage: Ints
    ep: int
    pp: int

    def __repr__(self) -> str:
        layers, slots = self.slot_expert.shape
        layout = f"{self.ep} GPUs, {len(self.layer_stage)} layers in {self.pp} stages"
        return f"PlacementPlan({layers} MoE layers x {slots} experts on {layout})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "ep": self.ep, "pp": self.pp, "slot_expert": self.slot_expert.tolist(),
            "slot_rank": self.slot_rank.tolist(), "layer_stage": self.layer_stage.tolist(),
        }  # fmt: skip

    @classmethod
    def contiguous(cls, n_experts: int, mask: tuple[bool, ...], layout: Layout) -> PlacementPlan:
        """Return the plain plan: experts in order, as equal as they divide, layers cut evenly.

        Examples
        --------
        >>> import numpy as np
        >>> plan = PlacementPlan.contiguous(256, (True,), Layout(ep=72))
        >>> [int(k) for k in np.unique(np.bincount(plan.slot_rank[0]), return_counts=True)[1]]
        [32, 40]
        """
        # Counted along the ranks, what does not divide is spread over the domains.
        counts = np.diff(np.arange(layout.ep + 1) * n_experts // layout.ep)
        rank = np.repeat(np.arange(layout.ep), counts)
        moe = sum(mask)
        stage = np.arange(len(mask)) * layout.pp // max(1, len(mask))
        expert = np.arange(n_experts)
        return cls(np.tile(expert, (moe, 1)), np.tile(rank, (moe, 1)), stage, layout.ep, layout.pp)


def expert_shares(n_experts: int, expert_load: Any, layers: int) -> NDArray[np.float64]:
    """Return the share of a layer's tokens each expert gets, (layers, experts), rows summing to one.

    Parameters
    ----------
    n_experts : int
        Routed experts of a layer.
    expert_load : None, (experts,) or (layers, experts) array
        Any non-negative weights; None is uniform.
    layers : int
        MoE layers.

    Raises
    ------
    InputError
        Wrong shape, negative or non-finite loads, a layer without any.
    """
    if expert_load is None:
        return np.full((layers, n_experts), 1 / n_experts)
    try:
        load = np.atleast_2d(np.asarray(expert_load, dtype=np.float64))
    except (TypeError, ValueError):  # ragged, or not numbers
        raise InputError(Fault("expert_load", expert_load, "must be an array of numbers", "Correct it.")) from None
    if load.shape not in ((1, n_experts), (layers, n_experts)):
        rule = f"must have shape ({n_experts},) or ({layers}, {n_experts})"
        raise InputError(Fault("expert_load", load.shape, rule, "One number per expert of every MoE layer."))
    if not np.isfinite(load).all() or (load < 0).any() or not (load.sum(axis=1) > 0).all():
        raise InputError(
            Fault("expert_load", "array", "must be finite, zero or more, with some load in every layer", "Correct it.")
        )
    shares: NDArray[np.float64] = np.broadcast_to(load / load.sum(axis=1, keepdims=True), (layers, n_experts))
    if not math.isclose(float(shares.sum()), layers, rel_tol=1e-9):
        raise InputError(Fault("expert_load", "array", "overflows when normalised", "Scale it."))
    return shares


def inclusion_shares(shares: NDArray[np.float64], top_k: int) -> NDArray[np.float64]:
    """Return shares of a layer's copies that tokens with top_k different experts can have.

    Parameters
    ----------
    shares : (layers, experts) float
        Rows summing to one.
    top_k : int
        Different experts of a token.

    Returns
    -------
    (layers, experts) float
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
        rule = f"must give load to at least {top_k} experts of every layer: a token goes to {top_k} different ones"
        raise InputError(Fault("expert_load", int((shares > 0).sum(axis=1).min()), rule, "Give more experts load."))
    most = 1 / top_k
    capped = shares.copy()
    for row in capped:
        while (over := row > most * (1 + 1e-12)).any():
            full = over | (row >= most * (1 - 1e-12))
            row[full] = most
            row[~full] *= (1 - full.sum() * most) / row[~full].sum()
    return capped
