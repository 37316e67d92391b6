"""Which switch of which level is over which node? Fat trees with parallel ports, as SimGrid and BookSim wire them.

A node of level i has one digit per level: below i it counts parents (`up`), from i on children
(`down`); the first digit is the fastest. Two nodes of neighbouring levels are joined if they
differ in the digit between them at most [1]_.

.. [1] E. Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real
   Life Fat Trees", CCIT Report 776, Technion, 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

__all__ = ["level_sizes", "tree_cables"]


def level_sizes(down: Sequence[int], up: Sequence[int]) -> list[int]:
    """Return how many nodes every level has, end points first."""
    return [prod(up[:i]) * prod(down[i:]) for i in range(len(down) + 1)]


def tree_cables(down: Sequence[int], up: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (level, node of the level, node of the level above) of every pair that is joined."""
    for level, size in enumerate(level_sizes(down, up)[:-1]):
        below = prod(up[:level])
        for node in range(size):
            low, rest = node % below, node // below // down[level]
            yield from ((level, node, low + below * (digit + up[level] * rest)) for digit in range(up[level]))
