"""Which drawing fits what this part of a graph is? The first row of the table that says it does."""

from __future__ import annotations

from collections.abc import Callable

from figures._circle import circle, dragonfly, has_groups, is_two_sided, two_rows
from figures._lattice import is_lattice, lattice
from figures._pairs import bridge_pairs, cube_mesh, is_cube_mesh, is_pairs
from figures._spots import Box, Part

__all__ = ["PICTURES", "picture"]

#: Name, whether it fits, how it is laid out. A node's own attributes come first, then how it is wired.
PICTURES: tuple[tuple[str, Callable[[Part], bool], Callable[[Part], Box]], ...] = (
    ("lattice", is_lattice, lattice),
    ("two sides of groups", is_two_sided, two_rows),
    ("circle of groups", has_groups, dragonfly),
    ("cube mesh", is_cube_mesh, cube_mesh),
    ("pairs", is_pairs, bridge_pairs),
    ("circle", lambda part: True, circle),
)


def picture(part: Part) -> Box:
    """Lay out nodes that are joined directly."""
    return next(draw(part) for _, fits, draw in PICTURES if fits(part))
