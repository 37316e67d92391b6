"""What does an expert layer send? The records of its tokens and of their copies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._distinct import TokenLaw, token_law
from collectives._records import Outer
from collectives._results import plain
from topo import Fault, InputError
from topo.units import LARGEST

__all__ = ["MoE", "MoETraffic", "is_count"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class MoE:
    """An expert layer's tokens: what moe_dispatch and moe_combine take in the place of bytes.

    Parameters
    ----------
    tokens : float or (ranks,) array
        Tokens of every rank.
    hidden : int
        Elements of a token.
    top_k : int
        Different experts a token goes to.
    experts : int
        Routed experts.
    dispatch_bytes, combine_bytes : float, optional
        Of an element on its way to the experts and back [bytes]; FP8 and BF16 by default.
    placement : (experts,) int, or a pair of (slots,) int, optional
        Rank of every expert, counted among those that take part; or expert and rank of
        every slot, where an expert may have several. By default in order, as equal as they
        divide.
    expert_load : (experts,) or (ranks, experts) array, optional
        Relative load of the experts, the same from everywhere or by the rank that sends;
        uniform by default.
    limit : int, optional
        A token's experts lie in at most so many groups.
    groups : int or (experts,) int, optional
        Equal groups of neighbouring experts, or the group of each; with a limit and
        without groups the scale-up domains.
    slot_share : (slots,) array, optional
        Part of its expert's tokens that every slot of a pair `placement` gets, those of an
        expert in proportion; equal by default.

    Raises
    ------
    InputError
        Everything that cannot be.

    Examples
    --------
    >>> MoE(tokens=128, hidden=7168, top_k=8, experts=256, limit=4, groups=8).top_k
    8
    """

    tokens: float | ArrayLike
    hidden: int
    top_k: int
    experts: int
    dispatch_bytes: float = 1.0
    combine_bytes: float = 2.0
    placement: Any = None
    expert_load: ArrayLike | None = None
    limit: int | None = None
    groups: int | ArrayLike | None = None
    slot_share: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be, all at once."""
        faults = [
            Fault(name, value, "must be a whole number, one or more", "Correct it.")
            for name in ("hidden", "top_k", "experts", "limit")
            if not is_count(value := getattr(self, name)) and not (name == "limit" and value is None)
        ]
        for name in ("dispatch_bytes", "combine_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
                faults.append(
                    Fault(name, value, "must be finite bytes of an element, zero or more", "Give 2 for BF16.")
                )
        if not faults and self.top_k > self.experts:
            rule = f"is more than the {self.experts} experts: a token goes to different ones"
            faults.append(Fault("top_k", self.top_k, rule, "Correct it."))
        if self.groups is not None and self.limit is None:
            faults.append(Fault("groups", "given", "limit nothing without a limit", "Give limit too, or leave it out."))
        if faults:
            raise InputError(*faults)


@dataclass(frozen=True, eq=False)
class MoETraffic:
    """Copies of tokens between ranks, whatever a copy weighs.

    Arrays over senders have one row if every rank's tokens choose alike.

    Attributes
    ----------
    tokens : (n,) float
        Tokens of every rank.
    copies : (1 or n, n) float
        Copies of a token for the experts on each rank, on average.
    held : (n, experts) float
        Part of every expert's tokens that goes to the rank.
    shares : (1 or n, experts) float
        Part of the copies that goes to each expert.
    top_k : int
        Different experts of a token.
    group : (experts,) int
        Group of every expert.
    limit : int
        Groups a token's experts lie in at most.
    domain : (n,) int
        Scale-up domain of every rank, numbered from 0 in the order of ranks.
    assumptions : tuple of str
        What was filled in.
    """

    tokens: Floats
    copies: Floats
    held: Floats
    shares: Floats
    top_k: int
    group: Ints
    limit: int
    domain: Ints
    assumptions: tuple[str, ...]

    @cached_property
    def law(self) -> TokenLaw:
        """How tokens choose experts; direct copies do not ask."""
        return token_law(self.shares, self.top_k, self.group, self.limit)

    @cached_property
    def to_gpu(self) -> Floats:
        """Chance that a token has an expert on each rank, (1 or n, n)."""
        return self.law.hit(1 - self.held)

    @cached_property
    def to_domain(self) -> Floats:
        """Chance that a token has an expert in each domain, (1 or n, domains)."""
        held = np.zeros((int(self.domain.max()) + 1, self.held.shape[1]))
        np.add.at(held, self.domain, self.held)
        return self.law.hit(np.maximum(0.0, 1 - held))

    @property
    def distinct_gpus(self) -> float:
        """Different GPUs a token goes to, its own among them, on average."""
        return self._mean(np.broadcast_to(self.to_gpu.sum(axis=1), self.tokens.shape))

    @property
    def distinct_domains(self) -> float:
        """Different domains a token goes to, its own among them, on average."""
        return self._mean(np.broadcast_to(self.to_domain.sum(axis=1), self.tokens.shape))

    @property
    def other_gpus(self) -> float:
        """Of the different GPUs those that are not its own: copies over a wire."""
        n = len(self.tokens)
        return self.distinct_gpus - self._mean(np.broadcast_to(self.to_gpu, (n, n)).diagonal())

    @property
    def other_domains(self) -> float:
        """Of the different domains those that are not its own: copies over scale-out."""
        n = len(self.tokens)
        there = np.broadcast_to(self.to_domain, (n, self.to_domain.shape[1]))
        return self.distinct_domains - self._mean(there[np.arange(n), self.domain])

    def _mean(self, of_rank: Floats) -> float:
        total = float(self.tokens.sum())
        return float(self.tokens @ of_rank) / total if total else 0.0

    def traffic(self, copies: Floats, token_bytes: float) -> Outer | Floats:
        """Return bytes from rank to rank for copies of a token, (1 or n, n)."""
        sent = self.tokens * token_bytes
        return Outer(sent, copies[0]) if len(copies) == 1 else sent[:, None] * copies

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: distinct targets of a token and copies from rank to rank."""
        names = ("distinct_gpus", "distinct_domains", "other_gpus", "other_domains", "tokens", "copies", "to_gpu",
                 "to_domain", "assumptions")  # fmt: skip
        return {name: plain(getattr(self, name)) for name in names}


def is_count(value: Any) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(1 <= value <= 10**9)
