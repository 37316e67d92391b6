"""What must reach whom, whatever the algorithm?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives._records import Schedule
from collectives._symmetry import Classes, members, told_apart
from topo import Fabric, Fault, InputError

__all__ = ["Meaning", "meaning_of", "needs_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Ranks of different classes whose own needs are looked at, narrowest first.
_MOST_NEEDS = 64


@dataclass(frozen=True, eq=False)
class Meaning:
    """Bytes that a collective moves.

    Attributes
    ----------
    distinct : (n, n) float
        From one rank (row) to one other.
    spread : (n,) float
        Of every rank, to all others.
    summed : (n,) float
        Of the sum over all, to every rank.
    reduced : float
        Of the sum over all, to all.
    """

    distinct: Floats
    spread: Floats
    summed: Floats
    reduced: float


def meaning_of(plan: Schedule) -> Meaning:
    """Return what the chunks of a schedule mean.

    Raises
    ------
    InputError
        A schedule that does not say, or one of copies that share tokens.
    """
    if plan.kind in ("moe_dispatch", "moe_combine"):
        rule = f"{plan.kind} sends copies of tokens, which one algorithm merges and another does not"
        raise InputError(Fault("scope", "any", rule, "Give the kind and the tokens in the place of the schedule."))
    if plan.content is None:
        rule = "does not say what must reach whom, only how one algorithm does it"
        raise InputError(Fault("schedule", repr(plan), rule, "Give the kind and n_bytes."))
    chunks, n = plan.content(), len(plan.ranks)
    one, only = chunks.origin >= 0, chunks.goal >= 0
    distinct = np.zeros((n, n))
    np.add.at(distinct, (chunks.origin[one & only], chunks.goal[one & only]), chunks.n_bytes[one & only])
    np.fill_diagonal(distinct, 0.0)
    spread = np.bincount(chunks.origin[one & ~only], chunks.n_bytes[one & ~only], n)
    summed = np.bincount(chunks.goal[~one & only], chunks.n_bytes[~one & only], n)
    return Meaning(distinct, spread.astype(float), summed.astype(float), float(chunks.n_bytes[~one & ~only].sum()))


def needs_of(fabric: Fabric, ranks: Ints, meaning: Meaning, alike: Classes) -> Iterator[Floats]:
    """Yield bytes from rank to rank, (n, n), that any algorithm must move, each set by itself.

    What is spread is looked at one target at a time: what it lacks of all others is all
    different. What is summed, one source at a time: every sum waits for its part. What is
    reduced, one pair at a time.
    """
    if meaning.distinct.any():
        yield meaning.distinct
    if meaning.spread.any():
        for target in _narrowest(fabric, ranks, meaning.spread, alike):
            yield _into(target, meaning.spread)
    if meaning.summed.any():
        for source in _narrowest(fabric, ranks, meaning.summed, alike):
            yield _into(source, meaning.summed).T
    if meaning.reduced:
        first = np.zeros(len(ranks))
        first[:1] = meaning.reduced
        for other in _narrowest(fabric, ranks, first, alike):
            yield from (_into(other, first), _into(other, first).T)


def _into(target: int, n_bytes: Floats) -> Floats:
    matrix = np.zeros((len(n_bytes), len(n_bytes)))
    matrix[:, target] = n_bytes
    matrix[target, target] = 0.0
    return matrix


def _narrowest(fabric: Fabric, ranks: Ints, n_bytes: Floats, alike: Classes) -> list[int]:
    """Return one rank of every class, those with the narrowest links first."""
    star = np.repeat(n_bytes[:, None], len(ranks), axis=1)
    np.fill_diagonal(star, 0.0)
    nodes = fabric.ranks[ranks]
    first = members(told_apart(alike, fabric, ranks, star).node[nodes])[0]
    into = np.bincount(fabric.target, fabric.bandwidth, len(fabric.labels))[nodes]
    out = np.bincount(fabric.source, fabric.bandwidth, len(fabric.labels))[nodes]
    narrow = first[np.argsort(np.minimum(into, out)[first], kind="stable")]
    return [int(i) for i in narrow[:_MOST_NEEDS]]
