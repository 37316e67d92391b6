"""In which order do labels stand? As people count: node2 before node10."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["label_order", "natural"]


def natural(label: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts node2 before node10.

    Examples
    --------
    >>> sorted(["spine10", "spine9", "core1.2"], key=natural)
    ['core1.2', 'spine9', 'spine10']
    """
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d+|\D+", label)]


def label_order(labels: Sequence[str]) -> NDArray[np.intp]:
    """Return the place of every label among all of them."""
    place = np.empty(len(labels), dtype=np.intp)
    place[sorted(range(len(labels)), key=lambda i: natural(labels[i]))] = np.arange(len(labels))
    return place
