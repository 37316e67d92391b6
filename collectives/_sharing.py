"""What must be worked out, and what follows from it? Folds alike flows, groups those of one path, fills, unfolds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from collectives._filling import Filled, System, fill
from collectives._folding import Paths, alike, incidence

__all__ = ["Gates", "gated", "shared"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class Gates(NamedTuple):
    """What flows wait for: `of_flow` is the gate a flow starts at.

    A gate opens at its time at the earliest, and when every flow that leads to it
    (``next_gate[next_ptr[f]:next_ptr[f + 1]]``) has ended, its delay later.
    """

    of_flow: Ints
    time: Floats
    next_ptr: Ints
    next_gate: Ints
    delay: Floats


def shared(capacity: Floats, indptr: Ints, links: Ints, n_bytes: Floats, start: Floats, samples: int = 0) -> Filled:
    """Return when flows end, as `fluid.finish_times`, and what links carried by sampled times."""
    ends = start.copy()
    has_link = np.diff(indptr) > 0
    paths = incidence(len(capacity), indptr, links)
    stuck = (paths @ (capacity == 0).astype(np.uint64) > 0) & (n_bytes > 0)
    ends[stuck] = np.inf
    real = np.flatnonzero(has_link & (n_bytes > 0) & ~stuck)
    if not len(real):
        return Filled(ends, np.zeros(0), np.zeros((0, len(capacity))))
    paths, n_bytes, start = paths[real], n_bytes[real], start[real]
    flow, link = alike(paths, [n_bytes, start], capacity)
    (_, of_class, weight), (_, of_link, size) = (
        np.unique(x, return_index=True, return_counts=True) for x in (flow, link)
    )
    times, gate = np.unique(start[of_class], return_inverse=True)
    none = np.zeros(len(of_class) + 1, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(len(of_class))
    filled = _fill_grouped(
        capacity[of_link] * size, _by_class(paths[of_class], link), n_bytes[of_class],
        weight, Gates(gate, times - times[0], *none), samples,
    )  # fmt: skip
    ends[real] = times[0] + filled.ends[flow]
    return Filled(ends, times[0] + filled.times, (filled.carried / size)[:, link])


def gated(
    capacity: Floats, indptr: Ints, links: Ints, n_bytes: Floats, gates: Gates, samples: int = 0
) -> tuple[Filled, Floats]:
    """Return when flows end that wait for each other, and when gates open; all cross links and have bytes."""
    paths, opened = incidence(len(capacity), indptr, links), gates.time.copy()
    filled = _fill_grouped(capacity, paths, n_bytes, np.ones(len(n_bytes)), gates._replace(time=opened), samples)
    return filled, opened


def _by_class(paths: Paths, link: Ints) -> Paths:
    """Return how often flows cross links of each class."""
    ones = np.ones(len(link), dtype=np.uint64)
    found = paths @ csr_array((ones, (np.arange(len(link)), link)))
    found.sort_indices()
    return found


def _fill_grouped(
    capacity: Floats, paths: Paths, n_bytes: Floats, weight: NDArray[np.generic], gates: Gates, samples: int
) -> Filled:
    """Put flows of one gate and path into one group, in the order of their bytes; `gates.time` gets when they open."""
    group = _same_rows(paths, gates.of_flow)
    order = np.lexsort((n_bytes, group))
    flow_ptr = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
    first = order[flow_ptr[:-1]]
    rows = paths[first]
    count = np.diff(gates.next_ptr)[order]
    next_ptr = np.concatenate([[0], np.cumsum(count)])
    follows = np.repeat(gates.next_ptr[order] - next_ptr[:-1], count) + np.arange(next_ptr[-1])
    system = System(
        capacity, rows.indptr.astype(np.intp), rows.indices.astype(np.intp), rows.data.astype(np.float64),
        flow_ptr, n_bytes[order], weight[order].astype(np.float64),
        np.searchsorted(gates.of_flow[first], np.arange(len(gates.time) + 1)), gates.time,
        np.bincount(gates.next_gate, minlength=len(gates.time)),
        next_ptr, gates.next_gate[follows], gates.delay[order],
    )  # fmt: skip
    filled = fill(system, samples)
    ends = np.empty_like(filled.ends)
    ends[order] = filled.ends
    return filled._replace(ends=ends)


def _same_rows(paths: Paths, gate: Ints) -> Ints:
    """Return a number for every flow, the same for the same gate and row, ascending with the gate."""
    number, length = gate, np.diff(paths.indptr)
    for k in range(int(length.max())):
        there = np.flatnonzero(length > k)
        at = paths.indptr[there] + k
        for column in (paths.indices[at].astype(np.intp), paths.data[at].astype(np.intp)):
            part = np.zeros(len(gate), dtype=np.intp)
            part[there] = column + 1
            number = np.unique(number * (int(part.max()) + 1) + part, return_inverse=True)[1]
    return number
