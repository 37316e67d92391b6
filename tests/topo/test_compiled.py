"""Loops give the same whether compiled or not, and are compiled when that pays."""

import sys

import numpy as np
import pytest
from numpy.typing import NDArray

import topo
from topo import Loop


def _sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros(len(values))
    for i in range(len(values)):
        found[i] = _add(found[i - 1] if i else 0.0, values[i])
    return found


def _add(a: float, b: float) -> float:
    return a + b / 3


def test_both_give_the_same_numbers() -> None:
    """Rounding included: numba takes no shortcuts."""
    values = np.random.default_rng(1).random(1000)
    assert (Loop(_sums, _add).run(True)(values) == _sums(values)).all()


def test_what_takes_long_in_small_calls_is_compiled_by_and_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is small; together they take longer than numba's import."""
    loop, clock = Loop(_sums, _add), iter(np.arange(0.0, 100.0, 0.05))
    monkeypatch.setattr(topo._compiled, "perf_counter", lambda: next(clock))
    plain = 0
    while loop.run(False) == loop._timed and plain < 50:
        assert loop.run(False)(np.ones(2)).tolist() == [1 / 3, 2 / 3]
        plain += 1
    assert plain == 5
    assert loop.run(False)(np.ones(2)).tolist() == [1 / 3, 2 / 3]


def test_without_numba_it_is_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba is optional at run time."""
    monkeypatch.setitem(sys.modules, "numba", None)
    assert Loop(_sums, _add).run(True) is _sums
