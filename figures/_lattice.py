"""Where does a chip of a grid stand? Tori, meshes, hypercubes and HyperX, in the plane, of too many chips in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from figures._graph import Link
from figures._spots import Box, Cell, Part, Path, Point, Spot, ends_cell, framed
from figures._words import rates

__all__ = ["is_lattice", "lattice"]

_MOST = {1: 24, 2: 320, 3: 200}  # cells of so many axes
_MOST_DEEP = 64  # cells of more axes than three
_TALLEST = 520.0
_MOST_ARCS = 6  # routers of a row in which every link is an arc


@dataclass(frozen=True)
class Grid:
    """A lattice cut to blocks: axes longer than one, their sides, sides of a block, which have every pair linked."""

    axes: tuple[int, ...]
    sides: tuple[int, ...]
    block: tuple[int, ...]
    full: tuple[bool, ...]
    at: dict[str, tuple[int, ...]]

    @property
    def cells(self) -> tuple[int, ...]:
        """Blocks along every axis."""
        return tuple(-(-n // b) for n, b in zip(self.sides, self.block, strict=True))

    def cell(self, node: str) -> tuple[int, ...]:
        """Return the block that a node is in."""
        return tuple(c // b for c, b in zip(self.at[node], self.block, strict=True))


def is_lattice(part: Part) -> bool:
    """Whether every node says where it stands, no two alike, and most of the places are taken."""
    found = [part.marks[node].coordinates for node in part.nodes]
    points = {at for at in found if at is not None}
    if len(points) < len(part.nodes) or len(points) < 2 or len({len(at) for at in points}) != 1:
        return False
    sides = [len(set(values)) for values in zip(*points, strict=True)]
    ring = sum(side > 1 for side in sides) == 1 and len(part.links) >= len(part.nodes)
    return bool(part.links) and math.prod(sides) <= 4 * len(points) and not ring


def lattice(part: Part) -> Box:
    """Lay out a lattice."""
    grid = _grid(part)
    one, deep = math.prod(grid.block) == 1, sum(n > 1 for n in grid.cells) > 2
    size = _size(grid.cells, grid.block, part)
    vectors = _vectors(grid.cells, size, bool(part.ends))
    box = Box(0.0, 0.0, {}, (0.0, 0.0), say=_said(part, grid), sealed=True)
    members: dict[tuple[int, ...], list[str]] = {}
    for node in part.nodes:
        members.setdefault(grid.cell(node), []).append(node)
    for cell, nodes in members.items():
        name = nodes[0] if one else f"\0cell {nodes[0]}"
        box.spots[name] = spot = Spot(*_point(cell, vectors), size, size)
        if not one:
            box.stands_for.update(dict.fromkeys(nodes, name))
            box.cells[name] = Cell(part.kind, "" if deep else f"×{len(nodes)}", 4.0 if deep else 2.5)
        down = (0.0, -size / 2 - 5.0) if deep else (-0.8 * size, -0.95 * size)
        ends_cell(part, nodes, (spot.x + down[0], spot.y + down[1]), box)
    for link in part.links:
        if (path := _path(link, grid, vectors, size)) is not None:
            box.paths[link.ends] = path
    sheets = _sheets(grid.cells, vectors, size) if len(grid.cells) == 3 and deep and set(grid.cells) != {2} else ()
    return framed(replace(box, sheets=sheets), 3.0)


def _grid(part: Part) -> Grid:
    points = [part.marks[node].coordinates or () for node in part.nodes]
    values = [sorted(set(column)) for column in zip(*points, strict=True)]
    axes = tuple(axis for axis, found in enumerate(values) if len(found) > 1)
    place = {axis: {value: i for i, value in enumerate(values[axis])} for axis in axes}
    at = {
        node: tuple(place[axis][point[axis]] for axis in axes) for node, point in zip(part.nodes, points, strict=True)
    }
    sides = tuple(len(values[axis]) for axis in axes)
    steps: list[set[int]] = [set() for _ in axes]
    for a, b in (link.ends for link in part.links):
        moved = [(i, abs(p - q)) for i, (p, q) in enumerate(zip(at[a], at[b], strict=True)) if p != q]
        if len(moved) == 1:  # else it is a wrap that shifts other axes
            steps[moved[0][0]].add(moved[0][1])
    full = tuple(bool(step - {0, 1, n - 1}) for step, n in zip(steps, sides, strict=True))
    return Grid(axes, sides, _block(sides, part), full, at)


def _block(sides: tuple[int, ...], part: Part) -> tuple[int, ...]:
    """Return the sides of the smallest block by which a lattice fits: cubes, of many short axes the fastest ones."""
    fast = ((*sides[:gone], *(1,) * (len(sides) - gone)) for gone in range(len(sides) if len(sides) > 3 else 0))
    thin = [n <= 4 and 8 * n < max(sides) for n in sides]  # so short an axis stays as it is
    cubes = (tuple(1 if keep else min(edge, n) for keep, n in zip(thin, sides, strict=True))
             for edge in range(1, max(sides) + 1))  # fmt: skip
    return next((block for block in chain(fast, cubes) if _fits(sides, block, part)), sides)


def _fits(sides: tuple[int, ...], block: tuple[int, ...], part: Part) -> bool:
    cells = [-(-n // b) for n, b in zip(sides, block, strict=True)]
    longer = sum(n > 1 for n in cells)
    if math.prod(cells) > _MOST.get(longer, _MOST_DEEP):
        return longer == 0
    vectors = _vectors(cells, _size(cells, block, part), bool(part.ends))
    reach = [sum(abs(v[i]) * (n - 1) for v, n in zip(vectors, cells, strict=True)) for i in (0, 1)]
    return (reach[0] <= part.room and reach[1] <= _TALLEST) or math.prod(cells) <= 8


def _size(cells: Sequence[int], block: Sequence[int], part: Part) -> float:
    """Return the side of a node or block [points]."""
    if sum(n > 1 for n in cells) < 3:
        return part.size if math.prod(block) == 1 else 15.0
    return 13.0 if math.prod(block) > 1 or len(part.nodes) <= 32 else 7.0


def _vectors(cells: Sequence[int], size: float, ends: bool) -> list[Point]:
    """Return the step of every axis: right and down, with a third axis right, back and up, with more nested."""
    longer = sorted((axis for axis, n in enumerate(cells) if n > 1), key=lambda axis: (-cells[axis], axis))
    vectors: list[Point] = [(0.0, 0.0)] * len(cells)
    pitch = (3.3 if ends else 2.4) * size
    if len(longer) < 3:
        for axis, vector in zip(longer, ((pitch, 0.0), (0.0, -pitch)), strict=False):
            vectors[axis] = vector
        return vectors
    across, back, up = longer[0], *sorted(longer[1:3])
    n, step = cells[back], size + (14.0 if ends else 4.0)
    vectors[across] = (max(n * step, 3.5 * size), 0.0)
    vectors[back] = (vectors[across][0] / n, step)
    vectors[up] = (0.0, step * (n - 1) + max(24.0, 2.6 * size) + (8.0 if ends else 0.0))
    reach = [sum(vectors[a][i] * (cells[a] - 1) for a in (across, back, up)) for i in (0, 1)]
    for place, axis in enumerate(longer[3:]):
        i = place % 2
        step = reach[i] + 3.0 * size
        skew = 0.12 * reach[1 - i]  # else lines of this axis would run over nodes
        vectors[axis] = (step, skew) if i == 0 else (skew, step)
        reach[i] += step * (cells[axis] - 1)
        reach[1 - i] += skew * (cells[axis] - 1)
    return vectors


def _point(cell: Sequence[int], vectors: Sequence[Point]) -> Point:
    return (sum(c * v[0] for c, v in zip(cell, vectors, strict=True)),
            sum(c * v[1] for c, v in zip(cell, vectors, strict=True)))  # fmt: skip


def _axis(link: Link, grid: Grid, steps: Sequence[int]) -> int | None:
    """Return along which axis a link runs: as it says, else the one in which its ends differ, or differ by all."""
    moved = [i for i, step in enumerate(steps) if step]
    if link.axis in grid.axes and grid.axes.index(link.axis) in moved:
        return grid.axes.index(link.axis)
    around = [i for i in moved if abs(steps[i]) == grid.sides[i] - 1]
    return moved[0] if len(moved) == 1 else around[0] if around else None


def _path(link: Link, grid: Grid, vectors: Sequence[Point], size: float) -> Path | None:
    """Return the lines of a link, None if it goes straight from node to node."""
    a, b = link.ends
    steps = [q - p for p, q in zip(grid.at[a], grid.at[b], strict=True)]
    axis = _axis(link, grid, steps)
    if axis is None or grid.cell(a) == grid.cell(b) or grid.cells[axis] < 2:
        return None
    twisted = any(step for i, step in enumerate(steps) if i != axis)
    if steps[axis] < 0:
        a, b = b, a
    low, high = _point(grid.cell(a), vectors), _point(grid.cell(b), vectors)
    flat = sum(n > 1 for n in grid.cells) < 3
    if grid.full[axis]:
        return _among(grid, axis, grid.cell(a), grid.cell(b), vectors, size, flat)
    if abs(steps[axis]) == 1 and not twisted:
        return None
    if flat:
        return Path((_slant(low, high, vectors[axis], size) if twisted else _loop(low, high, size),), twisted)
    return Path(_stubs(low, high, vectors[axis], size, twisted), twisted)


def _among(
    grid: Grid, axis: int, a: tuple[int, ...], b: tuple[int, ...], vectors: Sequence[Point], size: float, flat: bool
) -> Path | None:  # fmt: skip
    """Of a row with every pair linked: an arc over what lies between, one bar where there are many."""
    apart = b[axis] - a[axis]
    if flat and grid.cells[axis] <= _MOST_ARCS:
        tall = size * 0.5 + 3.0 + 0.45 * size * (apart - 2)
        return _arc(_point(a, vectors), _point(b, vectors), tall) if apart > 1 else None
    first, last = list(a), list(a)
    first[axis], last[axis] = 0, grid.cells[axis] - 1
    low, high = _point(first, vectors), _point(last, vectors)
    n = _beside(low, high)[1]
    return Path(tuple(tuple((x + n[0] * way, y + n[1] * way) for x, y in (low, high)) for way in (-1.5, 1.5)))


def _beside(low: Point, high: Point) -> tuple[Point, Point]:
    """Return the direction from low to high and the one across it, up or to the right."""
    length = math.dist(low, high)
    u = ((high[0] - low[0]) / length, (high[1] - low[1]) / length)
    n = (-u[1], u[0])
    return u, n if n[0] + n[1] > 0 else (-n[0], -n[1])


def _arc(low: Point, high: Point, tall: float) -> Path:
    _, n = _beside(low, high)
    turn = [(i / 12, tall * math.sin(math.pi * i / 12) ** 0.6) for i in range(13)]
    return Path((tuple((low[0] + (high[0] - low[0]) * t + n[0] * h, low[1] + (high[1] - low[1]) * t + n[1] * h)
                       for t, h in turn),))  # fmt: skip


def _loop(low: Point, high: Point, size: float) -> tuple[Point, ...]:
    """Out of the end of a row, back beside it, in at its beginning."""
    u, n = _beside(low, high)
    radius = 0.6 * size
    points = []
    for end, way in ((high, 1.0), (low, -1.0)):
        turns = [math.pi * (i / 8) for i in range(9)]
        for turn in turns if way > 0 else reversed(turns):
            out, side = way * (size / 2 + radius * math.sin(turn)), radius * (1 - math.cos(turn))
            points.append((end[0] + u[0] * out + n[0] * side, end[1] + u[1] * out + n[1] * side))
    return tuple(points)


def _slant(low: Point, high: Point, step: Point, size: float) -> tuple[Point, ...]:
    """Out of the end of a row, across to the beginning of another, and in."""
    length = math.hypot(*step)
    u = (step[0] / length, step[1] / length)
    out = [(end[0] + way * u[0] * r * size, end[1] + way * u[1] * r * size)
           for end, way in ((high, 1.0), (low, -1.0)) for r in ((0.5, 1.1) if way > 0 else (1.1, 0.5))]  # fmt: skip
    return tuple(out)


def _stubs(low: Point, high: Point, step: Point, size: float, twisted: bool) -> tuple[tuple[Point, ...], ...]:
    """Return a hook at each end, pointing to where the link goes on at the other side; bent only if it comes back."""
    length = math.hypot(*step)
    u = (step[0] / length, step[1] / length)
    n = (-u[1], u[0]) if u[0] - u[1] >= 0 else (u[1], -u[0])
    long, bent = (1.25 if twisted else 1.0) * size, 0.0 if twisted else 0.55 * size
    turns = [math.pi / 2 * i / 6 for i in range(7)]
    return tuple(
        tuple((end[0] + way * u[0] * (size / 2 + long * math.sin(t)) + n[0] * bent * (1 - math.cos(t)),
               end[1] + way * u[1] * (size / 2 + long * math.sin(t)) + n[1] * bent * (1 - math.cos(t))) for t in turns)
        for end, way in ((high, 1.0), (low, -1.0))
    )  # fmt: skip


def _sheets(cells: Sequence[int], vectors: Sequence[Point], size: float) -> tuple[tuple[Point, ...], ...]:
    """Return a pale parallelogram behind every layer of three axes."""
    up = next(axis for axis, v in enumerate(vectors) if v[0] == 0.0)
    across = next(axis for axis, v in enumerate(vectors) if v[1] == 0.0)
    back = 3 - up - across
    m, sheets = size * 0.9, []
    reach = math.hypot(*vectors[back])
    lean = (vectors[back][0] / reach * m, vectors[back][1] / reach * m)
    for layer in range(cells[up]):
        corners = []
        for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)):
            at = [0, 0, 0]
            at[up], at[across], at[back] = layer, i * (cells[across] - 1), j * (cells[back] - 1)
            x, y = _point(at, vectors)
            corners.append((x + (2 * i - 1) * m + (2 * j - 1) * lean[0], y + (2 * j - 1) * lean[1]))
        sheets.append(tuple(corners))
    return tuple(sheets)


def _said(part: Part, grid: Grid) -> str:
    """Say sides, whether it wraps, how it twists, how large a block is, and how fast a link."""
    turns: dict[int, set[tuple[int, ...]]] = {}
    for link in part.links:
        steps = [q - p for p, q in zip(*(grid.at[node] for node in link.ends), strict=True)]
        axis = _axis(link, grid, steps)
        if axis is not None and abs(steps[axis]) == grid.sides[axis] - 1 > 1:
            turn = [step if steps[axis] < 0 else -step for step in steps]
            others = (step % n if i != axis else 0 for i, (step, n) in enumerate(zip(turn, grid.sides, strict=True)))
            turns.setdefault(axis, set()).add(tuple(others))
    size, nodes = " x ".join(str(n) for n in grid.sides), "GPUs" if part.kind == "gpu" else "switches"
    if any(grid.full):
        bars = any(f and n > _MOST_ARCS for f, n in zip(grid.full, grid.cells, strict=True)) or len(grid.cells) > 2
        name = f"{size}, {'a double line joins every pair of its row' if bars else 'every row fully joined'}"
    elif set(grid.sides) == {2}:
        name = {1: "a pair", 2: "2 x 2"}.get(len(grid.sides), f"hypercube of {len(grid.sides)} dimensions")
    elif len(grid.sides) == 1:
        name = f"line of {size} {nodes}"
    else:
        open_ends = [axis for axis, n in enumerate(grid.sides) if n > 2 and axis not in turns]
        name = f"{size} {'torus' if not open_ends else 'mesh'}"
        if open_ends and turns:
            name += f" that wraps on axis {', '.join(str(grid.axes[axis]) for axis in sorted(turns))}"
    shifts = sorted({(axis, other, shift[other]) for axis, found in turns.items() for shift in found
                     for other in range(len(shift)) if shift[other]})  # fmt: skip
    ways: dict[tuple[int, int], list[str]] = {}
    for axis, other, shift in shifts:
        ways.setdefault((other, shift), []).append(str(grid.axes[axis]))
    for (other, shift), axes in ways.items():
        name += f", wraps of axis {' and '.join(axes)} shift axis {grid.axes[other]} by {shift}"
    if math.prod(grid.block) > 1:
        sides = " x ".join(str(b) for b in grid.block) if len(grid.sides) < 4 else f"{math.prod(grid.block)}"
        least = "" if not any(n % b for n, b in zip(grid.sides, grid.block, strict=True)) else " at most"
        name += f"; each block{least}: {sides}{'' if len(grid.sides) < 4 else ' ' + nodes}"
    return f"{name}; {rates(link.bandwidth for link in part.links)} per link"
