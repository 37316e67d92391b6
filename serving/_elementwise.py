"""Which of two is larger: for two numbers a number, for arrays of points one each."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Number", "larger", "smaller"]

Number = TypeVar("Number", float, NDArray[np.float64])


def larger(a: Number | float, b: Number | float) -> Any:
    """Return the larger; a plain number where both are."""
    return np.maximum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)


def smaller(a: Number | float, b: Number | float) -> Any:
    """Return the smaller; a plain number where both are."""
    return np.minimum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else min(a, b)
