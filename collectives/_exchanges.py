"""How do ranks exchange blocks without a tree or ring? All at once, pair by pair, or by doubling distances.

A block carries the number of the rank it comes from (all-gather) or goes to; the chunk
of an all-to-all from i to j is number i n + j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from collectives._plan import Plan, Step, Team, blocks
from collectives._records import Outer, Transfers

__all__ = [
    "bruck", "bruck_all_to_all", "direct_all_gather", "direct_all_to_all", "direct_send", "doubling_all_gather",
    "doubling_all_reduce", "neighbours", "pairwise", "pat",
]  # fmt: skip

Ints = NDArray[np.intp]


def _pairs(n: int) -> tuple[Ints, Ints]:
    """Every ordered pair of different ranks."""
    source, target = np.nonzero(~np.eye(n, dtype=bool))
    return source, target


def direct_all_gather(team: Team) -> Plan:
    """Every rank sends its block to all others at once."""

    def carries(_: int) -> Transfers:
        source, target = _pairs(team.n)
        return source, target, source

    sizes = blocks(team)
    return Plan(sizes, (Step(carries, traffic=Outer(sizes, np.ones(team.n))),))


def direct_all_to_all(team: Team) -> Plan:
    """Every rank sends every other its chunk at once."""

    def carries(_: int) -> Transfers:
        source, target = _pairs(team.n)
        return source, target, source * team.n + target

    return Plan(None, (Step(carries, traffic=team.traffic),))


def pairwise(team: Team) -> Plan:
    """In step k every rank sends to the rank k further on."""
    rank = np.arange(team.n)

    def step(k: int) -> Step:
        target = (rank + k) % team.n
        return Step(lambda _: (rank, target, rank * team.n + target))

    return Plan(None, tuple(step(k) for k in range(1, team.n)))


def bruck_all_to_all(team: Team) -> Plan:
    """In step k chunks whose way still has the k-th bit go 2^k ranks on."""
    n = team.n

    def step(distance: int) -> Step:
        way = np.flatnonzero(np.arange(n) & distance)

        def carries(_: int) -> Transfers:
            holder = np.repeat(np.arange(n), len(way))
            source = (holder - np.tile(way & (distance - 1), n)) % n
            return holder, (holder + distance) % n, source * n + (source + np.tile(way, n)) % n

        return Step(carries)

    return Plan(None, tuple(step(distance) for distance in _powers(n)))


def _powers(n: int) -> list[int]:
    return [1 << k for k in range((n - 1).bit_length())]


def bruck(team: Team) -> Plan:
    """All-gather in ceil(lg n) steps: first near and little, last far and much."""
    return _spread(team, _powers(team.n))


def pat(team: Team) -> Plan:
    """Bruck's all-gather with the far steps first, when they carry least; no limit on buffers."""
    return _spread(team, reversed(_powers(team.n)))


def _spread(team: Team, distances: Iterable[int]) -> Plan:
    """Pass on what the target lacks; rank i holds the blocks of ranks i - held."""
    held, steps = np.zeros(1, dtype=np.intp), []
    for distance in distances:
        sent = held[held + distance < team.n]
        steps.append(Step(_shifted(team.n, distance, sent)))
        held = np.concatenate([held, sent + distance])
    return Plan(blocks(team), tuple(steps))


def _shifted(n: int, distance: int, sent: Ints) -> Callable[[int], Transfers]:
    def carries(_: int) -> Transfers:
        source = np.repeat(np.arange(n), len(sent))
        return source, (source + distance) % n, (source - np.tile(sent, n)) % n

    return carries


def doubling_all_gather(team: Team) -> Plan:
    """Partners one bit apart swap all they hold; ranks beyond a power of two hand over first and get all back."""
    core, extra = _folded(team.n)
    steps = [Step(lambda _: (extra, extra - core, extra))] if len(extra) else []
    steps += [Step(_swapped(core, len(extra), k)) for k in range(core.bit_length() - 1)]
    if len(extra):
        steps.append(Step(lambda _: _handed_back(team.n, core)))
    return Plan(blocks(team), tuple(steps))


def _folded(n: int) -> tuple[int, Ints]:
    """Return the largest power of two within n, and the ranks beyond it."""
    core = 1 << (n.bit_length() - 1)
    return core, np.arange(core, n)


def _swapped(core: int, extras: int, k: int) -> Callable[[int], Transfers]:
    def carries(_: int) -> Transfers:
        rank = np.arange(core)
        held = (rank >> k << k)[:, None] + np.arange(1 << k)
        source, block = np.repeat(rank, 1 << k), held.ravel()
        also = block < extras
        source, block = np.concatenate([source, source[also]]), np.concatenate([block, block[also] + core])
        return source, source ^ (1 << k), block

    return carries


def _handed_back(n: int, core: int) -> Transfers:
    target, block = (ends.ravel() for ends in np.meshgrid(np.arange(core, n), np.arange(n), indexing="ij"))
    foreign = target != block
    return target[foreign] - core, target[foreign], block[foreign]


def doubling_all_reduce(team: Team) -> Plan:
    """Partners one bit apart add all they have; ranks beyond a power of two fold in before and get it after."""
    core, extra = _folded(team.n)
    rank, whole, all_of_it = np.arange(core), np.zeros(core, dtype=np.intp), np.zeros(len(extra), dtype=np.intp)

    def step(k: int) -> Step:
        return Step(lambda _: (rank, rank ^ (1 << k), whole), reduces=True)

    steps = [step(k) for k in range(core.bit_length() - 1)]
    if len(extra):
        fold = Step(lambda _: (extra, extra - core, all_of_it), reduces=True)
        steps = [fold, *steps, Step(lambda _: (extra - core, extra, all_of_it))]
    return Plan(np.array([team.n_bytes]), tuple(steps))


def neighbours(team: Team) -> Plan:
    """Every rank sends to the next and receives from the one before, the last to the first."""
    rank = np.arange(team.n)
    step = Step(lambda _: (rank, (rank + 1) % team.n, rank))
    return Plan(np.full(team.n, team.n_bytes), (step,) if team.n > 1 else ())


def direct_send(team: Team) -> Plan:
    """Every sender sends to its receiver at once."""
    assert team.pairs is not None
    source, target = team.pairs
    return Plan(np.full(len(source), team.n_bytes), (Step(lambda _: (source, target, np.arange(len(source)))),))
