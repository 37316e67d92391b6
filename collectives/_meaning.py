"""Does a schedule do what its collective says? Its chunks are followed, every one as a number.

What each rank holds at first is a random 64-bit number; moving copies it, reducing adds it,
wrapping round. At the end the right numbers must stand in the right places: a sum with a
part left out or counted twice differs, but for one case in 2^64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collectives._records import Chunks, Phase, Schedule, Transfers
from topo import Fault

__all__ = ["fingerprints", "verify"]

Numbers = NDArray[np.uint64]
Bools = NDArray[np.bool_]
_CURE = "This is a fault of the algorithm's builder: please report it."


def fingerprints(shape: tuple[int, int]) -> Numbers:
    """Return the same random numbers every time, one for what each rank (row) puts into each chunk."""
    return np.random.default_rng(5).integers(1, 2**64, shape, dtype=np.uint64)


def verify(plan: Schedule) -> list[Fault]:
    """Return what is wrong with a schedule's meaning: chunks missing, misplaced or reduced twice, bytes miscounted.

    Parameters
    ----------
    plan : Schedule
        From `schedule`. An imported algorithm was followed step by step when it was read.

    Returns
    -------
    list of Fault
        Empty if every rank ends with exactly the right chunks, reduced once, and the bytes
        that are costed are those of the chunks moved.

    Examples
    --------
    >>> import topo
    >>> from collectives import schedule
    >>> verify(schedule("all_reduce", topo.load("hgx-h100-8"), 1e9, algorithm="rabenseifner"))
    []
    """
    if plan.content is None:
        return []
    chunks, n = plan.content(), len(plan.ranks)
    parts = fingerprints((n, len(chunks.n_bytes)))
    held, known = _at_first(chunks, parts, n + len(plan.switches))
    for number, phase in enumerate(plan.phases):
        for repeat in range(phase.repeats):
            if phase.carries is None:
                return [Fault(f"phase {number}", plan.algorithm, "does not say which chunks it carries", _CURE)]
            transfers = phase.carries(repeat)
            faults = list(_phase_faults(number, phase, transfers, chunks, known))
            if faults:
                return faults
            _move(held, known, transfers, phase.reduces)
    return list(_end_faults(plan, chunks, parts, held, known))


def _at_first(chunks: Chunks, parts: Numbers, ends: int) -> tuple[Numbers, Bools]:
    """Return what every end holds of every chunk, and whether it holds any."""
    n, count = parts.shape
    own = (chunks.origin == -1) | (chunks.origin == np.arange(n)[:, None])
    held, known = np.zeros((ends, count), dtype=np.uint64), np.zeros((ends, count), dtype=bool)
    held[:n], known[:n] = np.where(own, parts, np.uint64(0)), own
    return held, known


def _move(held: Numbers, known: Bools, transfers: Transfers, reduces: bool) -> None:
    source, target, chunk = transfers
    moved = held[source, chunk]  # as they were before the phase: all of it happens at once
    if reduces:
        np.add.at(held, (target, chunk), moved)
    else:
        held[target, chunk] = moved
    known[target, chunk] = True


def _phase_faults(number: int, phase: Phase, transfers: Transfers, chunks: Chunks, known: Bools) -> Iterator[Fault]:
    source, target, chunk = transfers
    full = chunks.n_bytes[chunk] > 0
    empty = full & ~known[source, chunk]
    if empty.any():
        i = int(np.flatnonzero(empty)[0])
        yield Fault(f"phase {number}", int(chunk[i]), f"is a chunk that end {source[i]} does not hold to send", _CURE)
    if len(np.unique((source * len(known) + target) * len(chunks.n_bytes) + chunk)) < len(chunk):
        yield Fault(f"phase {number}", "chunks", "sends a chunk twice over one flow", _CURE)
    sizes, (ends, _) = chunks.n_bytes[chunk], known.shape
    moved, largest = np.zeros((ends, ends)), np.zeros((ends, ends))
    np.add.at(moved, (source, target), sizes)
    np.maximum.at(largest, (source, target), sizes)
    costed = np.zeros((ends, ends))
    costed[: len(phase.n_bytes), : len(phase.n_bytes)] = phase.n_bytes
    np.fill_diagonal(costed, 0.0)
    # What chunks share is sent once: no more than all of them, no less than the largest.
    least = largest if phase.shares else moved
    if (costed > moved * (1 + 1e-9)).any() or (costed < least * (1 - 1e-9)).any():
        yield Fault(f"phase {number}", "bytes", "costs other bytes than its chunks have", _CURE)


def _end_faults(plan: Schedule, chunks: Chunks, parts: Numbers, held: Numbers, known: Bools) -> Iterator[Fault]:
    rows = np.arange(len(parts))[:, None]
    wanted = (chunks.n_bytes > 0) & ((chunks.goal == -1) | (chunks.goal == rows))
    column = np.arange(len(chunks.origin))
    right = np.where(
        chunks.origin == -1, parts.sum(axis=0, dtype=np.uint64), parts[np.maximum(chunks.origin, 0), column]
    )
    held, known = held[: len(parts)], known[: len(parts)]
    for what, wrong in (("is missing", wanted & ~known), ("is not right", wanted & known & (held != right))):
        if wrong.any():
            row, chunk = np.argwhere(wrong)[0]
            rule = f"{what} at rank {plan.ranks[row]} at the end ({int(wrong.sum())} such)"
            yield Fault(f"{plan.kind} {plan.algorithm}", f"chunk {chunk}", rule, _CURE)
