"""A fixed sequence of chance numbers, the same compiled or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw"]


def draw(dice: NDArray[np.int64], below: int) -> int:
    """Return the next number, of 0 to below - 1 (below 2^23); `dice` holds the state.

    Examples
    --------
    >>> dice = np.array([1])
    >>> [draw(dice, 6) for _ in range(8)]
    [3, 1, 1, 3, 5, 1, 4, 1]
    """
    dice[0] = (dice[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return int(((dice[0] >> 8) * below) >> 23)
