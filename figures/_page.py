"""What is on the page? Rectangles, texts and frames placed, and which node is drawn by what; in points."""

from __future__ import annotations

from dataclasses import dataclass, field

from figures._spots import Cell, Path, Point, Spot

__all__ = ["MARGIN", "ROW_LABEL", "Frame", "Layout", "Text"]

MARGIN, ROW_LABEL = 14.0, 74.0  # around everything; what the names of rows take at the left


@dataclass(frozen=True)
class Text:
    """A text at a point; `halo` if it may stand on lines."""

    x: float
    y: float
    text: str
    size: float = 8.0
    ha: str = "center"
    va: str = "center"
    rotation: float = 0.0
    halo: bool = False


@dataclass(frozen=True)
class Frame:
    """The outline of a box, or of what stands for several; `faint` that of a pod or plane."""

    spot: Spot
    elided: bool = False
    faint: bool = False


@dataclass
class Layout:
    """Everything placed.

    Attributes
    ----------
    width, height : float
        Of the whole [points]; the lowest `foot` of it is left free for keys.
    below : float
        What keys take below that, where one row does not hold them.
    spots : dict
        Drawn node, or what stands for several -> rectangle.
    stands_for : dict
        Node -> what is drawn for it.
    level, home, side : dict
        Drawn node -> row (0 are boxes), index of its box, side on which cables leave.
    channels : dict
        Index of box -> x of the inner edges of its two cable channels, y of its top.
    sealed : set
        Indices of boxes that cables leave from their frame.
    cells, paths : dict
        Cell -> what it stands for; ends of a link -> its lines.
    """

    foot: float
    width: float = 0.0
    height: float = 0.0
    below: float = 0.0
    spots: dict[str, Spot] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)
    level: dict[str, int] = field(default_factory=dict)
    home: dict[str, int] = field(default_factory=dict)
    side: dict[str, int] = field(default_factory=dict)
    channels: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    sealed: set[int] = field(default_factory=set)
    cells: dict[str, Cell] = field(default_factory=dict)
    paths: dict[tuple[str, str], Path] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    trays: list[Spot] = field(default_factory=list)
    sheets: list[tuple[Point, ...]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
