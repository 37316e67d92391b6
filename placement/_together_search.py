"""Which domain should hold which expert, so that tokens visit few domains?

Simulated annealing over exchanges of two experts; what a token's choices visit is counted, not estimated. Plain Python
on arrays that numba compiles on first use and keeps on disk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement._dice import draw
from topo import Loop

__all__ = ["Chosen", "anneal_groups", "chosen_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Looks at a token beyond which numba is worth its import.
_MUCH = 50_000
#: Temperature at first and at last, over what an expert's tokens visit on average; a unit of load above the limit
#: counts as so many visits.
_HEAT, _FINE = (0.2, 0.01), 10.0


class Chosen(NamedTuple):
    """Tokens and their experts.

    `experts` is (tokens, k), `weight` (tokens,) how often each was seen; `tokens` are all tokens of expert after
    expert, those of expert e from `begin[e]` to `begin[e + 1]`.
    """

    experts: Ints
    weight: Floats
    tokens: Ints
    begin: Ints


def chosen_of(experts: Ints, weight: Floats, n: int) -> Chosen:
    """Return the tokens by expert as well."""
    flat = experts.ravel()
    order = np.argsort(flat, kind="stable")
    begin = np.searchsorted(flat[order], np.arange(n + 1))
    return Chosen(experts.astype(np.int64), weight.astype(float), order // experts.shape[1], begin.astype(np.int64))


def anneal_groups(
    a: Chosen, domain: Ints, load: Floats, limit: Floats, slots: Ints, moves: int, seed: int = 1
) -> None:  # fmt: skip
    """Improve in place the domain of every expert.

    Parameters
    ----------
    a : Chosen
    domain : (experts,) int
        Keeps to the slots.
    load : (experts,) float
        Of every expert.
    limit, slots : (domains,)
        Load that a domain should not exceed, and experts it may hold.
    moves : int
        Tries: what bounds the time, whatever the clock says.
    seed : int, optional
        Of what is tried by chance.
    """
    held = np.bincount(domain, minlength=len(slots))
    seat = np.concatenate([domain, np.repeat(np.arange(len(slots)), slots - held)])
    looks = moves * 2 * max(1, len(a.tokens) // len(domain))
    run = _RUN.run(looks > _MUCH)
    unit = float(a.weight.sum()) / len(domain)
    run(a, seat, np.append(load, 0.0), limit, moves, (unit * _HEAT[0], unit * _HEAT[1]), _FINE, seed)
    domain[:] = seat[: len(domain)]


def _anneal(
    a: Chosen, seat: Ints, load: Floats, limit: Floats, moves: int, heat: tuple[float, float], fine: float, seed: int
) -> None:
    """Exchange the places of two experts, or of an expert and a free slot (numbers from the experts' on)."""
    n, m, dice = len(load) - 1, len(limit), np.array([seed])
    count = np.zeros((len(a.weight), m), dtype=np.int16)
    for t in range(len(a.weight)):
        for k in range(a.experts.shape[1]):
            count[t, seat[a.experts[t, k]]] += 1
    full = np.zeros(m)
    for e in range(n):
        full[seat[e]] += load[e]
    per = a.weight.sum() * a.experts.shape[1] / max(load.sum(), 1e-300)  # choices a unit of load is
    for step in range(moves):
        hot = heat[0] * (heat[1] / heat[0]) ** (step / moves)
        worse = -hot * np.log((draw(dice, 1 << 20) + 1) / (1 << 20))
        e, f = draw(dice, n), draw(dice, len(seat))
        b, c = seat[e], seat[f]
        if b == c:
            continue
        gain = load[e] - load[min(f, n)]
        over = max(0.0, full[b] - gain - limit[b]) - max(0.0, full[b] - limit[b])
        over += max(0.0, full[c] + gain - limit[c]) - max(0.0, full[c] - limit[c])
        cost = fine * per * over
        if cost > worse + 2 * a.weight.sum():
            continue
        cost += _change(a, count, e, f, b, c)
        if f < n and cost <= worse + a.weight.sum():
            cost += _change(a, count, f, e, c, b)
        if cost <= worse:
            _carry(a, count, e, b, c)
            if f < n:
                _carry(a, count, f, c, b)
            seat[e], seat[f] = c, b
            full[b] -= gain
            full[c] += gain


def _change(a: Chosen, count: NDArray[np.int16], e: int, f: int, b: int, c: int) -> float:
    """Return visits more when expert e goes from domain b to c, and f, which may be chosen beside it, from c to b."""
    more = 0.0
    for i in range(a.begin[e], a.begin[e + 1]):
        t = a.tokens[i]
        leaves, comes = count[t, b] == 1, count[t, c] == 0
        if leaves and not comes:  # where f takes its place, nothing changes
            for k in range(a.experts.shape[1]):
                if a.experts[t, k] == f:
                    leaves = False
        if comes:
            more += a.weight[t]
        if leaves:
            more -= a.weight[t]
    return more


def _carry(a: Chosen, count: NDArray[np.int16], e: int, b: int, c: int) -> None:
    for i in range(a.begin[e], a.begin[e + 1]):
        count[a.tokens[i], b] -= 1
        count[a.tokens[i], c] += 1


_RUN = Loop(_anneal, draw, _change, _carry)
