"""How many copies of its tokens does every rank send to every rank of an expert layer?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._distinct import TokenLaw, free_groups, token_law
from collectives._expert_load import expert_shares, experts_in_order, inclusion_shares
from collectives._records import Outer
from collectives._results import plain
from topo import Fabric, Fault, InputError, Ranks

__all__ = ["MoE", "MoETraffic", "moe_traffic"]

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
        every slot, where an expert may have several and each gets an equal part of its
        tokens. By default in order, as equal as they divide.
    expert_load : (experts,) or (ranks, experts) array, optional
        Relative load of the experts, the same from everywhere or by the rank that sends;
        uniform by default.
    limit : int, optional
        A token's experts lie in at most so many groups.
    groups : int or (experts,) int, optional
        Equal groups of neighbouring experts, or the group of each; with a limit and
        without groups the scale-up domains.

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

    def __post_init__(self) -> None:
        """Refuse what cannot be, all at once."""
        faults = [
            Fault(name, value, "must be a whole number, one or more", "Correct it.")
            for name in ("hidden", "top_k", "experts", "limit")
            if not _is_count(value := getattr(self, name)) and not (name == "limit" and value is None)
        ]
        for name in ("dispatch_bytes", "combine_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
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
    law : TokenLaw
        How tokens choose experts.
    domain : (n,) int
        Scale-up domain of every rank, numbered from 0 in the order of ranks.
    assumptions : tuple of str
        What was filled in.
    """

    tokens: Floats
    copies: Floats
    held: Floats
    law: TokenLaw
    domain: Ints
    assumptions: tuple[str, ...]

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


def moe_traffic(graph: nx.Graph[str] | Fabric, moe: MoE, *, ranks: Ranks = None) -> MoETraffic:
    """Return what an expert layer's tokens send where.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        Where the ranks live.
    moe : MoE
        Tokens, experts and how they choose.
    ranks : int or sequence, optional
        As `schedule`.

    Raises
    ------
    InputError
        Arrays of another length, ranks or experts that are not there, loads that tokens
        of so many experts cannot have.

    Examples
    --------
    >>> import topo
    >>> there = moe_traffic(topo.load("gb200-nvl72", 2), MoE(tokens=1, hidden=7168, top_k=8, experts=288))
    >>> round(there.distinct_domains, 4), round(there.other_domains, 4)
    (1.9929, 0.9965)
    """
    fabric = Fabric.from_graph(graph)
    numbers = fabric.rank_numbers(ranks)
    _, first, home = np.unique(fabric.rank_domain[numbers], return_index=True, return_inverse=True)
    return traffic_of(moe, np.argsort(np.argsort(first))[home])


def traffic_of(moe: MoE, domain: Ints) -> MoETraffic:
    """Return the copies between ranks of these domains."""
    n, k = len(domain), moe.top_k
    tokens, (expert, rank) = _tokens(moe.tokens, n), _slots(moe, n)
    held = np.zeros((n, moe.experts))
    np.add.at(held, (rank, expert), (1 / np.bincount(expert, minlength=moe.experts))[expert])
    asked = expert_shares(moe.experts, moe.expert_load, n if _depth(moe.expert_load) == 2 else 1)
    shares = inclusion_shares(asked, k)
    group, limit = _groups(moe, held, domain)
    return MoETraffic(
        tokens, k * shares @ held.T, held, token_law(shares, k, group, limit), domain,
        tuple(_assumed(moe, int((asked > shares * (1 + 1e-9)).sum()))),
    )  # fmt: skip


def _is_count(value: Any) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(1 <= value <= 10**9)


def _depth(load: Any) -> int:
    """Return the number of axes of a load; ragged ones are refused later."""
    try:
        return 1 if load is None else np.ndim(load)
    except ValueError:
        return 1


def _tokens(tokens: Any, n: int) -> Floats:
    try:
        found = np.asarray(tokens, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(2, np.nan)
    if found.shape not in ((), (n,)) or not (np.isfinite(found).all() and (found >= 0).all()):
        rule = f"must be a finite number, zero or more, or {n} of them, one per rank"
        raise InputError(Fault("tokens", tokens, rule, "Correct it."))
    return np.broadcast_to(found, (n,)).astype(np.float64)


def _slots(moe: MoE, n: int) -> tuple[Ints, Ints]:
    """Return expert and rank of every slot."""
    every = np.arange(moe.experts)
    if moe.placement is None:
        return every, experts_in_order(moe.experts, n)
    expert, rank = _whole_numbers("placement", moe.placement, ((moe.experts,), (2, -1)), every)
    if not (_within(expert, moe.experts) and _within(rank, n)) or len(np.unique(expert)) < moe.experts:
        rule = f"must give each of {moe.experts} experts one or more of ranks 0 .. {n - 1}"
        raise InputError(Fault("placement", "array", rule, "Count ranks among those that take part."))
    return expert, rank


def _within(numbers: Ints, n: int) -> bool:
    return bool(((numbers >= 0) & (numbers < n)).all())


def _whole_numbers(place: str, given: Any, shapes: Iterable[tuple[int, ...]], every: Ints) -> tuple[Ints, Ints]:
    """Read whole numbers, one per expert or with the experts they are for."""
    try:
        found = np.asarray(given)
        wrong = not np.issubdtype(found.dtype, np.integer)
    except ValueError:
        wrong = True
    fits = not wrong and any(
        len(shape) == found.ndim and all(m in (-1, size) for m, size in zip(shape, found.shape, strict=True))
        for shape in shapes
    )
    if not fits:
        rule = f"must be whole numbers, one for each of {len(every)} experts" + ", or a pair of lists" * (
            place != "groups"
        )
        raise InputError(Fault(place, given, rule, "Correct it."))
    return (every, found.astype(np.intp)) if found.ndim == 1 else (found[0].astype(np.intp), found[1].astype(np.intp))


def _groups(moe: MoE, held: Floats, domain: Ints) -> tuple[Ints, int]:
    """Return the group of every expert and how many groups a token's experts may lie in."""
    if moe.limit is None:
        group = free_groups(moe.experts)
        return group, int(group[-1]) + 1
    if moe.groups is None:
        there = np.zeros((int(domain.max()) + 1, moe.experts), dtype=bool)
        np.logical_or.at(there, domain, held > 0)
        if (there.sum(axis=0) > 1).any():
            rule = "are domains, and an expert has slots in several"
            raise InputError(Fault("groups", None, rule, "Give the group of every expert."))
        group = np.argmax(there, axis=0)
    elif _is_count(moe.groups):
        parts = int(moe.groups)  # type: ignore[arg-type]
        if moe.experts % parts:
            rule = f"do not divide {moe.experts} experts"
            raise InputError(Fault("groups", parts, rule, "Give the group of every expert."))
        group = np.arange(moe.experts) // (moe.experts // parts)
    else:
        group = _whole_numbers("groups", moe.groups, ((moe.experts,),), np.arange(moe.experts))[1]
    group = np.unique(group, return_inverse=True)[1]
    largest = np.sort(np.bincount(group))[::-1]
    if largest[: moe.limit].sum() < moe.top_k:
        rule = f"leaves fewer than {moe.top_k} experts to choose from"
        raise InputError(Fault("limit", moe.limit, rule, "Allow more groups."))
    return group, min(moe.limit, len(largest))


def _assumed(moe: MoE, capped: int) -> Iterable[str]:
    if moe.placement is None:
        yield "experts on ranks in order, as equal as they divide"
    if moe.expert_load is None:
        yield "uniform expert load"
    if capped:
        yield f"{capped} expert loads above 1/top_k = 1/{moe.top_k} are capped: a token goes to an expert once"
    if moe.limit is not None:
        of = "domains" if moe.groups is None else "groups"
        yield f"a token takes any {moe.limit} {of} and any {moe.top_k} experts in them, in proportion to their odds"
