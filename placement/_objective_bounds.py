"""What is no placement below, for each objective by itself?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement._certificates import least_heaviest, ruled_bound
from placement._homes_bound import Room, Ways, least_crossing
from placement._link_times import LinkTimes
from placement._rules import Gpus

__all__ = ["crossing_bound", "heaviest_bound", "link_bound", "moved_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Steps of the links' prices, and how far a step goes.
_STEPS, _PACE = 60, 4.0
#: Links that get a weight: loaded as much, over the most loaded, or as a power of the time they are busy.
_LOADED, _SHARP = (0.99, 0.8), 8


def heaviest_bound(asked: Floats, gpus: Gpus, copies: int, may: Bools) -> tuple[float, str]:
    """Return the heaviest GPU over the mean, and what it comes from; `may` is (experts, gpus)."""
    load, pace = asked.sum(axis=0), float(gpus.speed[gpus.slots > 0].sum())
    found, why = least_heaviest(load, copies, gpus.slots, gpus.speed)
    if not may[:, gpus.slots > 0].all():
        ruled = ruled_bound(load, may, gpus.speed)
        found, why = (ruled, "the rules") if ruled > found * (1 + 1e-9) else (found, why)
    return found * pace / float(load.sum()), why


def crossing_bound(asked: Floats, gpus: Gpus, copies: int, heaviest: float, reached: float) -> float:
    """Return the part of all tokens that crosses where no GPU is above `heaviest` over the mean, infinite for any."""
    total = float(asked.sum())
    found = least_crossing(asked, _room(asked, gpus, copies, heaviest), reached * total)
    return min(found / total, reached)


def _room(asked: Floats, gpus: Gpus, copies: int, heaviest: float) -> Room:
    """Return what domains may hold where no GPU is above `heaviest` over the mean."""
    domains, able, total = np.unique(gpus.domain), gpus.slots > 0, float(asked.sum())
    mean = total / float(gpus.speed[able].sum())
    most = np.array([float(gpus.speed[(gpus.domain == d) & able].sum()) for d in domains]) * mean
    most = np.minimum(most * heaviest, total) if np.isfinite(heaviest) else np.full(len(domains), total)
    slots = np.array([int(gpus.slots[gpus.domain == d].sum()) for d in domains])
    return Room(most, slots, copies, min(float(gpus.speed.max()) * mean * heaviest, total))


def link_bound(
    asked: Floats, links: LinkTimes, gpus: Gpus, copies: int, heaviest: float, time: Floats
) -> float:  # fmt: skip
    """Return a time that the busiest link reaches.

    Whatever weights links get that sum to one, their weighted time is no more than the busiest's. It is the sum over
    experts of what tokens pay on the way to a GPU. Two relaxations say how little that can be: domains have room for
    so many copies and so much load, and tokens go the cheapest way within and from their domain (`least_crossing`);
    or any expert may be on any GPU, with one copy where it is placed best, and where there are several each domain's
    tokens on their cheapest way.

    Parameters
    ----------
    asked : (domains, experts) float
        Parts of all tokens.
    links : LinkTimes
        As the placement's.
    gpus : Gpus
        What experts go to.
    copies : int
        In all.
    heaviest : float
        What no GPU is above, over the mean; infinite for any.
    time : (links,) float
        Of some placement: where weights begin.
    """
    table = np.zeros((len(links.indptr) - 1, len(links.labels)))
    table[np.repeat(np.arange(len(table)), np.diff(links.indptr)), links.link] = links.seconds
    if not time.any():
        return 0.0
    room = _room(asked, gpus, copies, heaviest)
    weighed = [_crossed(asked, table, room, links.domain, weight) for weight in _weights(asked, table, links, time)]
    return max(*weighed, _spread(asked, table, links.gpus, copies, time))


def _weights(asked: Floats, table: Floats, links: LinkTimes, time: Floats) -> list[Floats]:
    """Return weights of links to try: those between domains that even traffic loads most, and those that are busy."""
    away = links.domain != np.arange(len(asked))[:, None]
    even = asked.sum(axis=1)[:, None] * away / np.maximum(away.sum(axis=1), 1)[:, None]
    loaded = even.ravel() @ table
    found = [(loaded >= part * loaded.max()).astype(float) for part in _LOADED] if loaded.any() else []
    return [weight / weight.sum() for weight in (*found, (time / time.max()) ** _SHARP)]


def _crossed(asked: Floats, table: Floats, room: Room, domain: Ints, weight: Floats) -> float:
    """Return what all tokens pay at least where domains have so much room."""
    price = (table @ weight).reshape(len(asked), -1)
    home = domain == np.arange(len(asked))[:, None]
    ways = Ways(*(np.where(which, price, np.inf).min(axis=1) for which in (home, ~home)))
    if not np.isfinite(ways.away).all():  # one domain
        return float(asked.sum(axis=1) @ ways.home)
    found = least_crossing(asked, room, 0.0, ways=ways)
    return found if np.isfinite(found) else 0.0


def _spread(asked: Floats, table: Floats, gpus: int, copies: int, time: Floats) -> float:
    """Return the most that weights make tokens pay at least where any expert may be on any GPU.

    Weights are shifted to the links that such a placement loads most.
    """
    shape, spare, best = (asked.shape[0], gpus), copies - asked.shape[1], 0.0
    weight = np.maximum(time, 1e-3 * time.max()) ** 4
    weight /= weight.sum()
    for step in range(_STEPS):
        price = (table @ weight).reshape(shape)
        alone = asked.T @ price
        cheapest = asked * price.min(axis=1)[:, None]
        saved = alone.min(axis=1) - cheapest.sum(axis=0)
        several = np.argsort(-saved, kind="stable")[:spare]
        best = max(best, float(alone.min(axis=1).sum() - saved[several].sum()))
        flow, gpu = np.zeros(shape), alone.argmin(axis=1)
        gpu_of = np.tile(gpu, (shape[0], 1))
        gpu_of[:, several] = price.argmin(axis=1)[:, None]
        for d in range(shape[0]):
            flow[d] = np.bincount(gpu_of[d], asked[d], minlength=shape[1])
        busy = flow.ravel() @ table
        weight = weight * np.exp(_PACE / np.sqrt(step + 1) * busy / max(float(busy.max()), 1e-300))
        weight /= weight.sum()
    return best


def moved_bound(now: Bools, gpus: Gpus, copies: int, may: Bools) -> int:
    """Return the copies that are new at least; `now` is (gpus, experts)."""
    stay = np.minimum((now & may.T).sum(axis=1), gpus.slots).sum()
    return int(max(0, copies - stay))
