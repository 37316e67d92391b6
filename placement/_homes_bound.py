"""How few tokens must cross between domains at least? Prices of slots, of load and of copies.

Which domains hold an expert is free of every other expert once a slot, a unit of load and a copy have a price: then
each expert's cheapest choice is found by enumeration. Whatever the prices, the sum of the cheapest choices, less what
all slots, loads and copies there are would fetch, is below every placement (Lagrangian relaxation).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Room", "Ways", "least_crossing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Steps of the prices at most, and those without a better bound before steps get shorter.
_STEPS, _PATIENCE = 300, 12
#: Steps are no shorter than this part of the first.
_SHORTEST = 1e-3


class Room(NamedTuple):
    """What there is to hold experts, in one layer.

    Attributes
    ----------
    most : (domains,) float
        Load a domain may have.
    slots : (domains,) int
        Copies a domain may hold.
    copies : int
        Copies in all.
    size : float
        Load a copy may have.
    """

    most: Floats
    slots: Ints
    copies: int
    size: float


class _Choice(NamedTuple):
    """What all experts' cheapest homes cost, and the load and copies of every domain."""

    cost: float
    load: Floats
    held: Floats


class Ways(NamedTuple):
    """What a token from each domain costs, (domains,): where its domain has a copy, and where it has none."""

    home: Floats
    away: Floats


def least_crossing(asked: Floats, room: Room, reached: float, steps: int = _STEPS, ways: Ways | None = None) -> float:
    """Return tokens that cross in every placement that keeps to the room, or what they cost.

    Parameters
    ----------
    asked : (domains, experts) float
        Tokens of every expert by the domain they come from.
    room : Room
        In the same unit of load.
    reached : float
        What crosses in some placement, or is hoped for: it sets the length of steps only.
    steps : int, optional
        Looks at all experts' choices.
    ways : Ways, optional
        What tokens cost; by default one that crosses costs 1 and others nothing.

    Returns
    -------
    float
        Zero or more; infinite where prices prove that nothing keeps to the room.
    """
    if np.maximum(1, np.ceil(asked.sum(axis=0) / room.size * (1 - 1e-9))).sum() > min(room.copies, room.slots.sum()):
        return np.inf
    domains = len(room.slots)
    ways = ways or Ways(np.zeros(domains), np.ones(domains))
    gain, dearest = ways.away - ways.home, float(asked.sum(axis=1) @ np.maximum(ways.away, ways.home))
    worth = float(np.abs(gain).max())  # of a token that stays: steps are taken in it
    if worth <= 0 or not np.isfinite(worth):
        return float(asked.sum(axis=1) @ np.minimum(ways.away, ways.home))
    paid = float(asked.sum(axis=1) @ ways.away) / worth
    reached, gain, dearest = reached / worth, gain / worth, dearest / worth
    price = np.zeros(2 * domains + 1)  # of load and of slots by domain, of a copy
    limit = np.r_[room.most, room.slots, room.copies]
    scale = asked.sum() / asked.shape[1]  # a copy is worth about an expert's tokens
    unit = np.r_[np.ones(domains), np.full(domains + 1, scale)]
    best, best_price, part, stale = 0.0, price, 1.0, 0
    for _ in range(steps):
        choice = _cheapest(asked, price, room, gain)
        value = paid + choice.cost - float(price @ limit)
        if value > best * (1 + 1e-6) + 1e-12:
            best, best_price, stale = value, price, 0
        else:
            stale += 1
        if best > dearest * (1 + 1e-9):
            return np.inf
        if part < _SHORTEST:
            break
        if stale >= _PATIENCE:
            part, stale, price = part / 2, 0, best_price
            choice = _cheapest(asked, price, room, gain)
            value = best
        slope = (np.r_[choice.load, choice.held, choice.held.sum()] - limit) * unit
        slope[(price <= 0) & (slope < 0)] = 0.0
        size = float(slope @ slope)
        if size <= 1e-18:
            break
        aim = max(reached, 1.05 * best, 1e-6 * float(asked.sum()))  # nothing has to keep to the room
        price = np.maximum(0.0, price + part * (aim - value) / size * slope * unit)
    return best * worth


def _cheapest(asked: Floats, price: Floats, room: Room, gain: Floats) -> _Choice:
    """Return every expert's cheapest homes at these prices, with a host among them for tokens from elsewhere.

    Costs are beside that of all tokens away; a token that stays in domain d saves gain[d].
    """
    m, n = asked.shape
    work, slot = price[:m], price[m : 2 * m] + price[-1]
    whole = asked.sum(axis=0)
    big = np.ceil(whole / room.size * (1 - 1e-9)) > 1
    extra = asked * (work[None, :, None] - gain[None, :, None] - work[:, None, None])  # (hosts, domains, experts)
    extra[:, asked > room.most[:, None]] = np.inf  # these tokens alone are too much for the domain
    base = whole * work[:, None]
    fixed = slot[:, None] + extra[:, :, ~big]
    joins = np.zeros((m, m, n), dtype=bool)
    joins[:, :, ~big] = fixed < 0
    joins[np.arange(m), np.arange(m)] = True
    base[:, ~big] += np.where(joins[:, :, ~big], fixed, 0.0).sum(axis=1)
    if big.any():
        cost, chosen = _cheapest_big(asked[:, big], extra[:, :, big], slot, room.size)
        base[:, big] += cost
        joins[:, :, big] = chosen
    host = base.argmin(axis=0)
    held = joins[host, :, np.arange(n)].T  # (domains, experts)
    many = np.where(held, np.maximum(1, np.ceil(asked / room.size * (1 - 1e-9))), 0.0)
    if big.any():
        missing = np.ceil(whole[big] / room.size * (1 - 1e-9)) - many[:, big].sum(axis=0)
        many[slot.argmin(), big] += np.maximum(missing, 0)
    local = np.where(held, asked, 0.0)
    away = whole - local.sum(axis=0)
    load = local.sum(axis=1) + np.bincount(host, weights=away, minlength=m)
    return _Choice(float(base.min(axis=0).sum()), load, many.sum(axis=1))


def _cheapest_big(asked: Floats, extra: Floats, slot: Floats, size: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Do the same for experts that need several copies: by the copies still missing, domain after domain.

    A home needs the copies that its own tokens fill; what all homes lack goes to the cheapest domain, a home or not.
    Returns (hosts, experts) costs and (hosts, domains, experts) homes.
    """
    m, n = asked.shape
    need = np.ceil(asked.sum(axis=0) / size * (1 - 1e-9)).astype(int)
    least = np.maximum(1, np.ceil(asked / size * (1 - 1e-9))).astype(int)
    missing = np.arange(need.max() + 1)
    rest = np.maximum(0, missing[None] - least[..., None])  # (domains, experts, missing)
    value = np.broadcast_to(missing * slot.min(), (m, n, len(missing)))
    joined = np.zeros((m, m, n, len(missing)), dtype=bool)
    for d in range(m - 1, -1, -1):
        after = np.take_along_axis(value, np.broadcast_to(rest[d], value.shape), axis=2)
        join = (extra[:, d] + least[d] * slot[d])[..., None] + after
        joined[d] = join < value
        joined[d, d] = True
        value = np.where(joined[d], join, value)
    cost = np.take_along_axis(value, np.broadcast_to(need[None, :, None], (m, n, 1)), axis=2)[..., 0]
    chosen, left = np.zeros((m, m, n), dtype=bool), np.broadcast_to(need, (m, n))
    hosts, experts = np.arange(m)[:, None], np.arange(n)[None]
    for d in range(m):
        chosen[:, d] = joined[d][hosts, experts, left]
        left = np.where(chosen[:, d], np.maximum(0, left - least[d]), left)
    return cost, chosen
