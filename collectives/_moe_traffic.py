"""How many copies of its tokens does every rank of an expert layer send to every other?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives._distinct import free_groups
from collectives._expert_load import expert_shares, experts_in_order, inclusion_shares
from collectives._moe import MoE, MoETraffic, is_count
from collectives._plan import Team
from topo import Fabric, Fault, InputError, Ranks
from topo.units import LARGEST

__all__ = ["moe_traffic", "traffic_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
#: Ranks x experts that are held, 800 MB an array.
_MOST_CELLS = 100_000_000


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
    return traffic_of(moe, Team(fabric, fabric.rank_numbers(ranks), 0.0).home)


def traffic_of(moe: MoE, domain: Ints) -> MoETraffic:
    """Return the copies between ranks of these domains."""
    n, k = len(domain), moe.top_k
    if n * moe.experts > _MOST_CELLS:
        rule = f"over {n} ranks are more than the {_MOST_CELLS:,} pairs of both that are followed"
        raise InputError(Fault("experts", moe.experts, rule, "Take fewer."))
    tokens, (expert, rank) = _tokens(moe.tokens, n), _slots(moe, n)
    share = _slot_shares(moe, expert)
    held = np.zeros((n, moe.experts))
    np.add.at(held, (rank, expert), share / np.bincount(expert, share, moe.experts)[expert])
    asked = expert_shares(moe.experts, moe.expert_load, n if _depth(moe.expert_load) == 2 else 1)
    shares = inclusion_shares(asked, k)
    group, limit = _groups(moe, held, domain)
    said = _assumed(moe, int((asked > shares * (1 + 1e-9)).sum()), limit)
    found = MoETraffic(tokens, k * shares @ held.T, held, shares, k, group, limit, domain, tuple(said))
    if moe.limit is not None:
        found.law  # noqa: B018 - loads no choice within the limit has are refused, whatever copies are sent
    return found


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
        found = np.array(np.nan)
    if (
        np.asarray(tokens).dtype == bool
        or found.shape not in ((), (n,))
        or not ((found >= 0) & (found <= LARGEST)).all()
    ):
        rule = f"must be a finite number, zero or more, at most {LARGEST:g}, or {n} of them, one per rank"
        raise InputError(Fault("tokens", tokens, rule, "Correct it."))
    return np.broadcast_to(found, (n,)).astype(np.float64)


def _slots(moe: MoE, n: int) -> tuple[Ints, Ints]:
    """Return expert and rank of every slot."""
    every = np.arange(moe.experts)
    if moe.placement is None:
        return every, experts_in_order(moe.experts, n)
    found = _whole_numbers(moe.placement)
    if found.shape == every.shape:
        expert, rank = every, found
    elif found.ndim == 2 and len(found) == 2:
        expert, rank = found
    else:
        rule = f"must be whole numbers, one for each of {moe.experts} experts, or a pair of lists"
        raise InputError(Fault("placement", moe.placement, rule, "Give the rank of every expert."))
    if not (_within(expert, moe.experts) and _within(rank, n)) or len(np.unique(expert)) < moe.experts:
        rule = f"must give each of {moe.experts} experts one or more of ranks 0 .. {n - 1}"
        raise InputError(Fault("placement", moe.placement, rule, "Count ranks among those that take part."))
    return expert, rank


def _slot_shares(moe: MoE, expert: Ints) -> Floats:
    """Return the relative part of its expert's tokens that every slot gets."""
    if moe.slot_share is None:
        return np.ones(len(expert))
    try:
        found = np.asarray(moe.slot_share, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.shape != expert.shape or not ((found >= 0) & (found <= LARGEST)).all():
        rule = f"must be finite numbers, zero or more, one for each of {len(expert)} slots"
        raise InputError(Fault("slot_share", moe.slot_share, rule, "Give a part for every slot of placement."))
    idle = np.flatnonzero(np.bincount(expert, found, moe.experts) <= 0)
    if len(idle):
        rule = f"leaves the tokens of expert {idle[0]} to no slot"
        raise InputError(Fault("slot_share", moe.slot_share, rule, "Give one of its slots a part."))
    return found


def _within(numbers: Ints, n: int) -> bool:
    return bool(((numbers >= 0) & (numbers < n)).all())


def _whole_numbers(given: Any) -> Ints:
    """Return an array of whole numbers, an empty one for anything else."""
    try:
        found = np.asarray(given)
    except ValueError:  # ragged
        found = np.zeros(0)
    return found.astype(np.intp) if np.issubdtype(found.dtype, np.integer) else np.zeros(0, dtype=np.intp)


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
    elif is_count(moe.groups):
        parts = int(moe.groups)  # type: ignore[arg-type]
        if moe.experts % parts:
            rule = f"do not divide {moe.experts} experts"
            raise InputError(Fault("groups", parts, rule, "Give the group of every expert."))
        group = np.arange(moe.experts) // (moe.experts // parts)
    else:
        group = _whole_numbers(moe.groups)
        if group.shape != (moe.experts,):
            rule = f"must be a whole number, or one for each of {moe.experts} experts"
            raise InputError(Fault("groups", moe.groups, rule, "Correct it."))
    group = np.unique(group, return_inverse=True)[1]
    largest = np.sort(np.bincount(group))[::-1]
    if largest[: moe.limit].sum() < moe.top_k:
        rule = f"leaves fewer than {moe.top_k} experts to choose from"
        raise InputError(Fault("limit", moe.limit, rule, "Allow more groups."))
    return group, min(moe.limit, len(largest))


def _assumed(moe: MoE, capped: int, limit: int) -> Iterable[str]:
    if moe.placement is None:
        yield "experts on ranks in order, as equal as they divide"
    if moe.expert_load is None:
        yield "uniform expert load"
    if capped:
        yield f"{capped} expert loads above 1/top_k = 1/{moe.top_k} are capped: a token goes to an expert once"
    if moe.limit is not None:
        of = "domains" if moe.groups is None else "groups"
        if limit < moe.limit:
            yield f"a limit of {moe.limit} {of} leaves out nothing: there are {limit}"
        yield (
            f"a token takes any {limit} {of} and any {moe.top_k} experts in them, in proportion to their odds; "
            "a router that ranks groups by their best experts reaches more of them"
        )
