"""When does each flow end if the links share their capacity max-min fairly?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._sharing import shared
from topo import Fault, InputError, together

__all__ = ["finish_times"]

Floats = NDArray[np.float64]


def finish_times(
    capacity: ArrayLike, path_indptr: ArrayLike, path_links: ArrayLike, n_bytes: ArrayLike, start: ArrayLike = 0.0
) -> Floats:
    """Return the end of every flow under max-min fair sharing.

    The rates of all flows grow together until a link is full; its flows keep what they
    have, the others grow on (progressive filling). Rates are worked out again whenever
    flows start or end. There is no latency in it: callers add that of the path.

    Parameters
    ----------
    capacity : (links,) float
        Per directed link, zero or more [bytes/s].
    path_indptr : (flows + 1,) int
        Row f's links are ``path_links[path_indptr[f]:path_indptr[f + 1]]``.
    path_links : (crossings,) int
        Rows of capacity. A flow that crosses a link twice takes its rate there twice.
    n_bytes : (flows,) float
        Zero or more [bytes].
    start : float or (flows,) float, optional
        [s].

    Returns
    -------
    (flows,) float
        End times [s]: the start where there is nothing to send or no link to cross,
        infinite over a link without capacity. Exact but for rounding (1e-9).

    Raises
    ------
    InputError
        Numbers that are not finite, negative ones, links that are not there.

    References
    ----------
    D. Bertsekas and R. Gallager, Data Networks, 2nd ed., 1992, section 6.5.2.

    Examples
    --------
    Two flows share link 0; the second also crosses the narrow link 1.

    >>> finish_times([10e9, 2e9], [0, 1, 3], [0, 0, 1], [8e9, 4e9])
    array([1., 2.])
    """
    capacities, sizes, starts, indptr, links = together(
        partial(_array, "capacity", capacity, np.float64),
        partial(_array, "n_bytes", n_bytes, np.float64),
        partial(_array, "start", start, np.float64),
        partial(_array, "path_indptr", path_indptr),
        partial(_array, "path_links", path_links),
    )
    faults = [
        *_bad_numbers("capacity", capacities, least=0.0),
        *_bad_numbers("n_bytes", sizes, least=0.0),
        *_bad_numbers("start", starts),
        *_bad_rows("path_indptr", indptr, len(sizes), links.size),
        *_bad_links("path_links", links, capacities.size),
    ]
    if starts.shape not in ((1,), sizes.shape):
        rule = f"must be one number or {sizes.size}, one a flow"
        faults.append(Fault("start", f"{starts.size} numbers", rule, "Give one start, or one for every flow."))
    if faults:
        raise InputError(*faults)
    whole = indptr.astype(np.intp), links.astype(np.intp)
    return shared(capacities, *whole, sizes, np.broadcast_to(starts, sizes.shape)).ends


def _array(place: str, x: ArrayLike, dtype: type | None = None) -> NDArray[Any]:
    try:
        return np.atleast_1d(np.asarray(x, dtype=dtype))
    except (TypeError, ValueError):
        raise InputError(Fault(place, x, "must be a list of numbers", "Give numbers, all in one row.")) from None


def _bad_numbers(place: str, x: Floats, least: float = -np.inf) -> Iterator[Fault]:
    if x.ndim != 1:
        yield Fault(place, f"{x.ndim} dimensions", "must be a list of numbers", "Flatten it.")
    bad = np.flatnonzero(~(np.isfinite(x) & (x >= least)))
    if len(bad):
        rule = "must be finite" if least < 0 else "must be finite and not negative"
        yield Fault(f"{place}[{bad[0]}]", float(x.flat[bad[0]]), rule, f"Correct {len(bad)} of {x.size} numbers.")


def _bad_rows(place: str, indptr: NDArray[np.generic], n_flows: int, n_crossings: int) -> Iterator[Fault]:
    if indptr.dtype.kind not in "iu" or indptr.shape != (n_flows + 1,):
        value = f"{indptr.size} numbers of type {indptr.dtype}"
        yield Fault(place, value, f"must be {n_flows + 1} whole numbers, one more than flows", "Count rows from 0.")
    elif indptr[0] != 0 or indptr[-1] != n_crossings or (np.diff(indptr.astype(np.intp)) < 0).any():
        rule = f"must start at 0, never fall, and end at {n_crossings}, the length of path_links"
        yield Fault(place, indptr[:8].tolist(), rule, "Each row begins where the last one ends.")


def _bad_links(place: str, links: NDArray[np.generic], n_links: int) -> Iterator[Fault]:
    if links.size and (links.dtype.kind not in "iu" or links.ndim != 1):
        yield Fault(place, f"type {links.dtype}", "must be a list of whole numbers", "Give rows of capacity.")
    elif links.size and (int(links.min()) < 0 or int(links.max()) >= n_links):
        rule = f"must lie in 0 .. {n_links - 1}, the rows of capacity"
        yield Fault(place, [int(links.min()), int(links.max())], rule, "Correct it; these are its least and largest.")
