"""Numbers and arrays of points alike: which of two is larger, and what is no number of positions?"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topo import Fault, InputError

__all__ = ["Number", "larger", "require_positions", "smaller"]

Number = TypeVar("Number", float, NDArray[np.float64])


def larger(a: Number | float, b: Number | float) -> Any:
    """Return the larger; a plain number where both are."""
    return np.maximum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)


def smaller(a: Number | float, b: Number | float) -> Any:
    """Return the smaller; a plain number where both are."""
    return np.minimum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else min(a, b)


def require_positions(context: Number | float, least: int = 0) -> None:
    """Refuse what is no number of positions, of arrays any."""
    try:
        known = np.asarray(context, dtype=np.float64)
        fine = bool(np.all((known >= least) & (known < np.inf)))
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise InputError(Fault("context", context, f"must be positions, a finite number from {least} on", "Give 4096."))
