"""How do loops over arrays run fast? As they are where there is little to do, compiled by numba where there is much."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["MUCH", "compiled"]

F = TypeVar("F", bound=Callable[..., Any])

#: Steps of a loop (about a microsecond each) above which numba is worth its import.
MUCH = 10_000


@cache
def compiled(function: F, *parts: Callable[..., Any]) -> F:
    """Return a function of arrays compiled by numba, once and kept on disk; as it is where numba is not installed.

    Parameters
    ----------
    function : callable
        Plain Python on arrays, of what numba understands.
    *parts : callable
        Functions that it calls.

    Examples
    --------
    >>> import numpy as np
    >>> from topo._paths import _by_hops
    >>> compiled(_by_hops)(np.array([2, 0, 1], dtype=np.int16)).tolist()
    [1, 2, 0]
    """
    try:
        numba, extending = import_module("numba"), import_module("numba.extending")
    except ImportError:
        return function
    for part in parts:
        extending.register_jitable(part)
    fast: F = numba.njit(cache=True, error_model="numpy")(function)
    return fast
