"""Which grids have a bisection by theorem? Tori and meshes of any sides, all links alike.

The grid is read off the graph: the ranks fill a box of `coordinates`, and its links are
those of the torus or mesh on that box and no others. A graph that was edited, or that
only says it is a torus, is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from topo._cuts import Part

__all__ = ["FORMS", "bisection_form"]


def mesh(sides: Sequence[int]) -> int:
    """Return the bisection width of a mesh without wrap, in links.

    With sides k_1 >= k_2 >= ... and e the first that is even (the last if none is), the sum
    over i = 1 .. e of k_{i+1} k_{i+2} ...: a plane across the longest side where that is
    even; else planes with a step down in the middle, and across the step the same again.

    References
    ----------
    .. [1] J. Arjona Aroca, A. Fernandez Anta, "Bisection (Band)Width of Product Networks with
       Application to Data Centers", TAMC 2012, arXiv 1202.6291.

    Examples
    --------
    >>> mesh([4, 6]), mesh([3, 5]), torus([3, 5])
    (4, 4, 8)
    """
    longest = sorted(sides, reverse=True)
    even = [i for i, side in enumerate(longest) if side % 2 == 0]
    last = even[0] if even else len(longest) - 1
    return sum(prod(longest[i + 1 :]) for i in range(last + 1))


def torus(sides: Sequence[int]) -> int:
    """Return the bisection width of a torus whose sides are three or more, in links: twice the mesh's [1]_."""
    return 2 * mesh(sides)


#: Name -> links in the bisection, of the sides.
FORMS: dict[str, Callable[[Sequence[int]], int]] = {"torus": torus, "mesh": mesh}


def bisection_form(part: Part, coordinates: Sequence[tuple[int, ...]]) -> tuple[float, str] | None:
    """Return the bisection [bytes/s] of a torus or mesh and its name; None for anything else.

    Parameters
    ----------
    part : Part
        Ranks and links of one class.
    coordinates : sequence of tuple of int
        Of every rank; the same number of axes each.
    """
    axes = len(coordinates[0])
    if part.size > part.n or not axes or any(len(point) != axes for point in coordinates):
        return None
    at = np.array(coordinates, dtype=np.intp)
    sides = [int(side) for side in at.max(axis=0) + 1 if side > 1]
    at = at[:, at.max(axis=0) > 0]
    if at.min(initial=0) < 0 or prod(sides) != part.n or len(np.unique(at, axis=0)) < part.n:
        return None
    if not sides or (part.bandwidth != part.bandwidth[0]).any():
        return None
    apart = np.abs(at[part.tail] - at[part.head])
    step = apart.max(axis=1)
    wraps = (apart == np.array(sides) - 1).any(axis=1) & (step > 1)
    if (np.count_nonzero(apart, axis=1) != 1).any() or (~wraps & (step != 1)).any():
        return None
    counts = {"torus": 2 * part.n * len(sides), "mesh": sum(2 * part.n * (side - 1) // side for side in sides)}
    name = next((name for name, count in counts.items() if len(step) == count and wraps.any() == (name == "torus")), "")
    if not name or (name == "torus" and min(sides) < 3):
        return None
    shape = " x ".join(str(side) for side in sides)
    return FORMS[name](sides) * float(part.bandwidth[0]), f"{shape} {name}"
