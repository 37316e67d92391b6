"""What is asked of the model, and how is it laid out?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving._dtypes import dtype_bytes
from topo import Fault, InputError, suggest

__all__ = ["Layout", "Workload"]

Ints = NDArray[np.intp]

PHASES = ("decode",)
COPIES = ("direct", "per_gpu", "per_domain")
EXPERT_ROUTINGS = ("free",)
EXPERT_READS = ("distinct", "all")
#: Larger counts of sequences or tokens are a slip of the pen.
LARGEST = 10**12


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
    copies : {"direct", "per_gpu", "per_domain"}, optional
        One copy of a token for each of its experts, for each different GPU they are on, or
        for each different domain, handed on inside; results come back alike.
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
        for name in ("attention_arithmetic", "router"):
            if not isinstance(getattr(self, name), bool):
                faults.append(Fault(name, getattr(self, name), "must be True or False", "Correct it."))
        reserve = self.hbm_reserve
        if isinstance(reserve, bool) or not isinstance(reserve, int | float) or not 0 <= reserve < 1:
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
    if value > LARGEST:
        return [Fault(name, value, f"is more than {LARGEST:,}", "Give what one deployment has.")]
    return []
