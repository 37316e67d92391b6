"""What is a drawing made of? Rectangles, lines, cells that stand for several nodes; in points, y upward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from figures._graph import Link, Mark
from figures._words import text_width

__all__ = ["Box", "Cell", "Part", "Path", "Point", "Spot", "blocks", "ends_cell", "framed"]

Point = tuple[float, float]
Line = tuple[Point, ...]


@dataclass(frozen=True)
class Spot:
    """A rectangle by its centre and size [points]."""

    x: float
    y: float
    w: float
    h: float

    def moved(self, x: float, y: float) -> Spot:
        """Return it shifted."""
        return Spot(self.x + x, self.y + y, self.w, self.h)


@dataclass(frozen=True)
class Path:
    """Along which lines a link runs: one, or two stubs; `twisted` if it goes round a torus and comes back shifted."""

    lines: tuple[Line, ...]
    twisted: bool = False

    def moved(self, x: float, y: float) -> Path:
        """Return it shifted."""
        return replace(self, lines=_shifted(self.lines, x, y))


@dataclass(frozen=True)
class Cell:
    """What stands for several nodes of a kind: the text in it, and how deep a block it is drawn as [points]."""

    kind: str
    text: str
    depth: float = 0.0


@dataclass(frozen=True)
class Box:
    """A drawing laid out.

    Attributes
    ----------
    spots : dict
        Drawn node or cell -> rectangle.
    inner : (float, float)
        x of the inner edges of two cable channels.
    trays, sheets : tuple
        Pale rectangles and polygons behind.
    hidden : int
        GPUs not drawn.
    notes, texts : dict
        Drawn node -> text along it, upright in it.
    cells, stands_for : dict
        Cell -> what it is; node -> the cell that stands for it.
    paths : dict
        Ends of a link -> its lines, where these are not straight from node to node.
    say : str
        What is to be said of it.
    sealed : bool
        Whether cables leave it from its frame, not from each node.
    """

    width: float
    height: float
    spots: dict[str, Spot]
    inner: tuple[float, float]
    trays: tuple[Spot, ...] = ()
    hidden: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)
    paths: dict[tuple[str, str], Path] = field(default_factory=dict)
    sheets: tuple[Line, ...] = ()
    say: str = ""
    sealed: bool = False

    def moved(self, x: float, y: float) -> Box:
        """Return it with everything in it shifted."""
        held: dict[Path, Path] = {}
        paths = {ends: held.setdefault(path, path.moved(x, y)) for ends, path in self.paths.items()}
        return replace(
            self, spots={node: spot.moved(x, y) for node, spot in self.spots.items()}, paths=paths,
            trays=tuple(tray.moved(x, y) for tray in self.trays), sheets=_shifted(self.sheets, x, y),
        )  # fmt: skip


@dataclass(frozen=True)
class Part:
    """What is to be drawn: nodes of one kind in order, the links between them, the end points that hang on each.

    `size` is the side of a node [points] where there is room, `room` the width there is.
    """

    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    marks: Mapping[str, Mark]
    kind: str
    size: float
    room: float
    ends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _shifted(lines: Iterable[Line], x: float, y: float) -> tuple[Line, ...]:
    return tuple(tuple((px + x, py + y) for px, py in line) for line in lines)


def framed(box: Box, margin: float = 0.0) -> Box:
    """Return a box shifted to the origin, as large as what is in it."""
    spots = [*box.spots.values(), *box.trays]
    points = [point for path in set(box.paths.values()) for line in path.lines for point in line]
    points += [point for sheet in box.sheets for point in sheet]
    points += [(s.x + way * s.w / 2, s.y + way * s.h / 2) for s in spots for way in (-1, 1)]
    low = [min(point[i] for point in points) - margin for i in (0, 1)]
    high = [max(point[i] for point in points) + margin for i in (0, 1)]
    width, height = high[0] - low[0], high[1] - low[1]
    return replace(box.moved(-low[0], -low[1]), width=width, height=height, inner=(0.0, width))


def blocks(nodes: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """Return the nodes in order, in equal blocks, no more than that many."""
    size = -(-len(nodes) // most)
    return [tuple(nodes[i : i + size]) for i in range(0, len(nodes), size)]


def ends_cell(part: Part, nodes: Iterable[str], at: Point, box: Box) -> None:
    """Place what hangs on these nodes: one end point as itself, several as a cell that says how many."""
    ends = [end for node in nodes for end in part.ends.get(node, ())]
    if not ends:
        return
    name, text = (ends[0], "") if len(ends) == 1 else (f"\0ends {ends[0]}", f"×{len(ends)}")
    box.spots[name] = Spot(*at, max(8.0, text_width(text, 7.0) + 2.0), 10.0 if text else 8.0)
    if text:
        box.cells[name] = Cell("gpu", text)
        box.stands_for.update(dict.fromkeys(ends, name))
