"""How do loops over arrays run fast? As they are where there is little to do, compiled by numba where there is much."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["MUCH", "Loop"]

P = ParamSpec("P")
R = TypeVar("R")

#: Steps of a loop (about a microsecond each) above which numba is worth its import.
MUCH = 10_000
#: What that import and the loading of a loop take [s].
_PRICE = 0.2


class Loop(Generic[P, R]):
    """A loop over arrays: plain Python until that has taken as long as loading numba does, then compiled.

    Compiled code is kept on disk. Where numba is not installed it is plain Python always. numba may take no
    shortcut in arithmetic, so when it is called changes no number.

    Parameters
    ----------
    function : callable
        Plain Python on arrays, of what numba understands.
    *parts : callable
        Functions that it calls, each after those that it calls itself.

    Examples
    --------
    >>> import numpy as np
    >>> from topo._paths import _by_hops
    >>> Loop(_by_hops).run(True)(np.array([2, 0, 1], dtype=np.int16)).tolist()
    [1, 2, 0]
    """

    def __init__(self, function: Callable[P, R], *parts: Callable[..., Any]) -> None:
        self.plain, self._parts, self._spent = function, parts, 0.0
        self._fast: Callable[P, R] | None = None

    def run(self, much: bool) -> Callable[P, R]:
        """Return what to call; `much` says that this call alone is worth compiling."""
        if much or self._spent > _PRICE:
            self._fast = self._fast or self._compiled()
            return self._fast
        return self._timed

    def _timed(self, *args: P.args, **named: P.kwargs) -> R:
        start = perf_counter()
        found = self.plain(*args, **named)
        self._spent += perf_counter() - start
        return found

    def _compiled(self) -> Callable[P, R]:
        try:
            numba, extending = import_module("numba"), import_module("numba.extending")
        except ImportError:
            return self.plain
        for part in self._parts:
            extending.register_jitable(part)
        fast: Callable[P, R] = numba.njit(cache=True, error_model="numpy", nogil=True)(self.plain)
        return fast
