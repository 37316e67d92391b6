"""Which GPUs hold which experts of one layer, so that few tokens cross and no GPU is heavier than asked?

First which domains, GPUs aside, then GPUs within every domain; where these cannot be level, copies change places
between GPUs of all domains, what crosses and what GPUs have too much weighed against each other.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._homes_bound import Room, least_crossing
from placement._homes_search import anneal, homes_of
from placement._moves import Layer, layer_of
from placement._rules import Gpus
from placement._search import search
from placement._start import start

__all__ = ["Found", "level_domain", "place_layer"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Pair = tuple[float, float]

#: Load of a copy, over what a GPU may have, that the choice of domains aims at: beside a large copy a GPU needs small
#: ones.
_PIECES = (0.95, 0.85)
#: Part of the balance's slack that is left by the choice of domains and of GPUs, and what is left of it at most.
_SPARE, _MARGIN = (0.3, 0.05), (0.01, 0.003)
#: Temperatures over the mean load of an expert, and what load above the limits counts, each at first and at last: of
#: the choice of domains, of GPUs after it, again while a GPU is too heavy, and once
#: none is.
_WARM, _FINE = (0.2, 0.002), (1.0, 10.0)
_FIRST = ((0.03, 0.001), (1.0, 10.0))
_REPAIRS = (((0.03, 0.001), (3.0, 30.0)), ((0.05, 0.001), (10.0, 100.0)), ((0.1, 0.001), (30.0, 300.0)))
_POLISH = ((0.03, 0.001), (3.0, 30.0))
#: Copies are taken for no fewer than these: a few must find their places too.
_FEW = 64
#: Above the bound by this part of all tokens is good enough.
_NEAR = 2e-3


class Found(NamedTuple):
    """One layer: `expert` (gpus, most slots), the number of experts where empty, -1 where there is no slot.

    `share` is (gpus, experts), the load of the copies. What crosses and its bound (infinite: nothing keeps to the
    balance), and the heaviest GPU: all in the unit in which the mean load over speed is one.
    """

    expert: Ints
    share: Floats
    crossing: float
    heaviest: float
    bound: float


def place_layer(
    asked: Floats, gpus: Gpus, copies: int, balance: float, work: int, known: Found | None = None
) -> Found:  # fmt: skip
    """Place a layer.

    Parameters
    ----------
    asked : (domains, experts) float
        Tokens by where they come from; they sum to the speed of all GPUs with slots.
    gpus : Gpus
        Domains in the order of `asked`.
    copies : int
        In all.
    balance : float
        Load over speed that no GPU should exceed.
    work : int
        Tries for every copy.
    known : Found, optional
        For another balance: what to better as well.
    """
    domains = np.unique(gpus.domain)
    pace = np.array([gpus.speed[(gpus.domain == d) & (gpus.slots > 0)].sum() for d in domains])
    slots = np.array([gpus.slots[gpus.domain == d].sum() for d in domains])
    room = Room(pace * balance, slots, copies, float(gpus.speed.max()) * balance)
    found = [_by_domain(asked, gpus, copies, balance, work, piece) for piece in _PIECES]
    found = [
        each if each.heaviest <= balance else _refined(asked, gpus, each, balance, work, *_FIRST) for each in found
    ]
    best = min(found, key=partial(_key, balance))
    bound = least_crossing(asked, room, best.crossing)
    if np.isfinite(bound) and best.heaviest > balance:
        for heat, fine in _REPAIRS:
            best = min(best, _refined(asked, gpus, best, balance, work, heat, fine), key=partial(_key, balance))
            if best.heaviest <= balance:
                break
        best = min(best, _refined(asked, gpus, best, balance, work, *_POLISH), key=partial(_key, balance))
    if known is not None:
        better = _refined(asked, gpus, known, balance, work, *_POLISH)
        best = min(best, known, better, key=partial(_key, balance))
    return best._replace(bound=bound)


def _key(balance: float, found: Found) -> tuple[float, float]:
    return max(found.heaviest, balance), found.crossing


def _below(balance: float, which: int) -> float:
    return balance - min(_SPARE[which] * (balance - 1), _MARGIN[which])


def _refined(asked: Floats, gpus: Gpus, found: Found, balance: float, work: int, heat: Pair, fine: Pair) -> Found:
    """Let copies change places between GPUs of all domains, then level the domains that are too heavy still."""
    n, limit = asked.shape[1], _below(balance, 1)
    place = np.unique(gpus.domain, return_inverse=True)[1]
    layer = homes_of(asked, found.expert, gpus.speed, place, np.minimum(_most(asked, gpus, balance), 1)[place])
    moves = work * max(int(layer.many[:n].sum()), _FEW)
    crossing = anneal(layer, limit, float(gpus.speed.max()) * balance, moves, heat, fine)
    expert, share = layer.expert, layer.share[:, :n]
    for d in range(len(asked)):
        mine = np.flatnonzero(place == d)
        if (share[mine].sum(axis=1) / gpus.speed[mine]).max() > balance:
            level_domain(expert, share, mine, gpus, limit, work)
    return Found(expert, share, crossing, float((share.sum(axis=1) / gpus.speed).max()), 0.0)


def _by_domain(asked: Floats, gpus: Gpus, copies: int, balance: float, work: int, piece: float) -> Found:
    """Choose domains with their GPUs aside, and level the GPUs of each."""
    m, n = asked.shape
    place = np.unique(gpus.domain, return_inverse=True)[1]
    seats = start(asked.sum(axis=0)[None], gpus.slots, gpus.speed, copies, doubled=False).expert[0]
    seats = np.where(np.arange(seats.shape[1]) < gpus.slots[:, None], seats, -1)
    ours, most = [np.flatnonzero(place == d) for d in range(m)], _most(asked, gpus, balance)
    bins = np.full((m, max(seats[mine].size for mine in ours)), -1)
    for d, mine in enumerate(ours):
        bins[d, : seats[mine].size] = np.sort(seats[mine].ravel())[::-1]
    _move_out(bins, most)
    pace = np.bincount(place, weights=gpus.speed * (gpus.slots > 0), minlength=m)
    layer = homes_of(asked, bins, np.maximum(pace, 1e-9), np.arange(m), most)
    size = float(gpus.speed.max()) * balance * piece
    crossing = anneal(layer, _below(balance, 0), size, work * max(copies, _FEW), _WARM, _FINE)
    expert, share = np.full_like(seats, -1), np.zeros((len(seats), n))
    for d, mine in enumerate(ours):
        held = np.flatnonzero(layer.held[d, :n])
        free = np.arange(seats.shape[1]) < gpus.slots[mine, None]
        expert[mine] = np.where(free, n, -1)
        if len(held):
            load, many = layer.share[d, held], int(layer.held[d, :n].sum())
            load = np.maximum(load, 1e-300)
            begun = start(load[None], gpus.slots[mine], gpus.speed[mine], many, doubled=False)
            inner = layer_of(load, begun.expert[0], begun.count[0], gpus.slots[mine], gpus.speed[mine])
            search(inner, _below(balance, 1), 2 * work, True)
            _write(expert, share, inner, mine, held, n)
    return Found(expert, share, crossing, float((share.sum(axis=1) / gpus.speed).max()), 0.0)


def _most(asked: Floats, gpus: Gpus, balance: float) -> Ints:
    """Return copies of an expert a domain may hold, by domain: none where its own tokens alone are too much."""
    place = np.unique(gpus.domain, return_inverse=True)[1]
    able = gpus.slots > 0
    pace, many = (np.bincount(place, weights=x, minlength=len(asked)) for x in (gpus.speed * able, able))
    return np.where(asked > balance * pace[:, None], 0, many[:, None]).astype(np.int64)


def _move_out(bins: Ints, most: Ints) -> None:
    """Exchange copies that are in domains they may not be in, for the first that may come there, in place."""
    n = most.shape[1]
    most = np.pad(most, ((0, 0), (0, 1)), constant_values=bins.size)
    for d, s in np.argwhere((bins >= 0) & (np.take_along_axis(most, np.where(bins < 0, n, bins), axis=1) == 0)):
        e = bins[d, s]
        free = (bins >= 0) & (most[:, e] > (bins == e).sum(axis=1))[:, None] & (most[d][bins] > 0)
        for c, t in np.argwhere(free)[:1]:
            bins[d, s], bins[c, t] = bins[c, t], e


def level_domain(
    expert: Ints, share: Floats, mine: Ints, gpus: Gpus, goal: float, work: int,
    may: Bools | None = None, fixed: Bools | None = None,
) -> None:  # fmt: skip
    """Level the GPUs of a domain, in place; what its experts have there stays.

    Parameters
    ----------
    expert : (gpus, most slots) int
        The number of experts where a slot is empty, -1 where there is none.
    share : (gpus, experts) float
        Loads of the copies.
    mine : (some,) int
        The GPUs of the domain.
    gpus, goal, work
        Slots and speeds; load over speed to reach; looks of the heaviest GPU at others.
    may, fixed : (experts, gpus) and (gpus, most slots) bool, optional
        Which expert may be where, and slots that stay; by default all and none.
    """
    n = share.shape[1]
    seats = expert[mine]
    held = np.unique(seats[(seats >= 0) & (seats < n)])
    local = np.append(np.searchsorted(held, np.arange(n)), len(held))[seats]
    local[(seats < 0) | (seats == n)] = len(held)
    rows = np.arange(len(mine))[:, None]
    parts = np.pad(share[mine][:, held], ((0, 0), (0, 1)))[rows, local]
    load = np.append(share[mine][:, held].sum(axis=0), 0.0)
    count = np.append(np.bincount(local.ravel(), minlength=len(held) + 1)[:-1], 0)
    able = np.tile(gpus.slots[mine] > 0, (len(held) + 1, 1))
    if may is not None:
        able[:-1] &= may[np.ix_(held, mine)]
    stays = seats < 0 if fixed is None else (seats < 0) | fixed[mine]
    inner = Layer(local.astype(np.int64), parts, load, count, gpus.speed[mine], able, stays)
    search(inner, goal, 2 * work, True)
    _write(expert, share, inner._replace(held=seats < 0), mine, held, n)


def _write(expert: Ints, share: Floats, inner: Layer, mine: Ints, held: Ints, n: int) -> None:
    """Copy a domain's layer back."""
    share[mine] = 0.0
    names = np.append(held, n)
    for g, row, parts, gone in zip(mine, inner.expert, inner.share, inner.held, strict=True):
        expert[g, : len(row)] = np.where(gone, -1, names[row])
        full = row < len(held)
        share[g, held[row[full]]] += parts[full]
