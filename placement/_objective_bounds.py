"""What is no placement below, for each objective by itself?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement._certificates import least_heaviest, ruled_bound
from placement._homes_bound import Room, least_crossing
from placement._link_times import LinkTimes
from placement._rules import Gpus

__all__ = ["crossing_bound", "heaviest_bound", "link_bound", "moved_bound"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Steps of the links' prices, and how far a step goes.
_STEPS, _PACE = 60, 4.0


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
    domains = np.unique(gpus.domain)
    able = gpus.slots > 0
    total, pace = float(asked.sum()), float(gpus.speed[able].sum())
    mean = total / pace
    most = np.array([float(gpus.speed[(gpus.domain == d) & able].sum()) for d in domains]) * mean
    most = np.minimum(most * heaviest, total) if np.isfinite(heaviest) else np.full(len(domains), total)
    size = min(float(gpus.speed.max()) * mean * heaviest, total)
    slots = np.array([int(gpus.slots[gpus.domain == d].sum()) for d in domains])
    found = least_crossing(asked, Room(most, slots, copies, size), reached * total)
    return min(found / total, reached)


def link_bound(asked: Floats, links: LinkTimes, copies: int, time: Floats) -> float:
    """Return a time that the busiest link reaches.

    Whatever weights links get that sum to one, their weighted time is no more than the busiest's. It is the sum over
    experts of what tokens pay on the way to a GPU: at least what they pay where one copy is placed best, and where
    there are several at least what each domain's tokens pay on their cheapest way. Weights are then shifted to the
    links that this relaxed placement loads most.

    Parameters
    ----------
    asked : (domains, experts) float
        Parts of all tokens.
    links : LinkTimes
        As the placement's.
    copies : int
        In all.
    time : (links,) float
        Of some placement: where weights begin.
    """
    table = np.zeros((len(links.indptr) - 1, len(links.labels)))
    table[np.repeat(np.arange(len(table)), np.diff(links.indptr)), links.link] = links.seconds
    shape, spare, best = (asked.shape[0], links.gpus), copies - asked.shape[1], 0.0
    if not time.any():
        return 0.0
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
