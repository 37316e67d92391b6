"""Where does everything stand? Boxes on the floor, switches in rows above, what is too much elided; in points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from figures._boxes import Box, Spot, arrange, is_mesh, sides
from figures._scene import Group, Level, Link, Scene
from figures._words import abbreviated, captions, counted, describe, shortened, text_width

__all__ = ["Frame", "Layout", "Text", "lay_out"]

_WIDEST, _NARROWEST = 840.0, 450.0  # boxes side by side; what does not fit is elided to _ELIDED
_ELIDED = 620.0
_MOST_SWITCHES, _ELIDED_SWITCHES = 12, 8
_MORE = "\0more"  # label of what stands for the elided; no node can be called so
_MORE_WIDTH = 50.0
_SWITCH = 16.0
_MARGIN = 14.0
_ROW_LABEL = 74.0


@dataclass(frozen=True)
class Text:
    """A text at a point; `width` [points] is the room it has."""

    x: float
    y: float
    text: str
    size: float = 8.0
    ha: str = "center"
    va: str = "center"
    rotation: float = 0.0
    weight: str = "normal"


@dataclass(frozen=True)
class Frame:
    """The outline of a box, or of what stands for several."""

    spot: Spot
    elided: bool = False


@dataclass(frozen=True)
class Layout:
    """Everything placed.

    Attributes
    ----------
    width, height : float
        Of the whole [points]; the lowest `foot` of it is left free for keys.
    spots : dict
        Drawn node, or what stands for elided ones -> rectangle.
    stands_for : dict
        Node -> what is drawn for it.
    level, home, side : dict
        Drawn node -> row (0 are boxes), index of its box, side on which cables leave.
    channels : dict
        Index of box -> x of the inner edges of its two cable channels, y of its top.
    """

    width: float
    height: float
    foot: float
    spots: dict[str, Spot]
    stands_for: dict[str, str]
    level: dict[str, int]
    home: dict[str, int]
    side: dict[str, int]
    channels: dict[int, tuple[float, float, float]]
    frames: tuple[Frame, ...]
    trays: tuple[Spot, ...]
    texts: tuple[Text, ...]


class _Draft:
    """A layout being put together."""

    def __init__(self) -> None:
        self.spots: dict[str, Spot] = {}
        self.stands_for: dict[str, str] = {}
        self.level: dict[str, int] = {}
        self.home: dict[str, int] = {}
        self.side: dict[str, int] = {}
        self.channels: dict[int, tuple[float, float, float]] = {}
        self.frames: list[Frame] = []
        self.trays: list[Spot] = []
        self.texts: list[Text] = []


def lay_out(scene: Scene, foot: float) -> Layout:
    """Place a scene, with `foot` points left free below it."""
    draft = _Draft()
    kept = [_kept(len(level.nodes), _MOST_SWITCHES, _ELIDED_SWITCHES) for level in scene.levels]
    for row, (level, keep) in enumerate(zip(scene.levels, kept, strict=True), start=1):
        draft.stands_for |= {n: n if i in keep else f"{_MORE}{row}" for i, n in enumerate(level.nodes)}
    inside = _inside(scene)
    notes = [describe(group, links, scene.planes) for group, links in zip(scene.groups, inside, strict=True)]
    boxes = _boxes(scene, draft, inside, notes)
    widest_row = max((30.0 * min(len(level.nodes), _MOST_SWITCHES + 1) for level in scene.levels), default=0.0)
    keep = _kept_boxes([box.width for box in boxes])
    lead = _ROW_LABEL if scene.levels else _MARGIN
    needed = sum(boxes[i].width + _MARGIN for i in keep) + (_MORE_WIDTH + _MARGIN if len(keep) < len(boxes) else 0.0)
    room = max(needed, widest_row, _NARROWEST - lead - _MARGIN)
    lines = captions(scene.groups, [bool(box.notes) for box in boxes], notes, bool(scene.links))
    floor = foot + 11.0 * len(lines) + 18.0
    draft.texts += [Text(_MARGIN, floor - 22.0 - 11.0 * i, text, 7.5, "left") for i, text in enumerate(lines)]
    top = _place_boxes(draft, scene.groups, boxes, keep, (lead, room), floor)
    for row, level in enumerate(scene.levels, start=1):
        top = _place_row(draft, level, kept[row - 1], row, (lead, room), top + _clearance(scene, row))
    width = lead + room + _MARGIN
    height = top + 6.0 + _arches(scene, len(scene.levels))
    return Layout(width=width, height=height, foot=foot, spots=draft.spots, stands_for=draft.stands_for,
                  level=draft.level, home=draft.home, side=draft.side, channels=draft.channels,
                  frames=tuple(draft.frames), trays=tuple(draft.trays), texts=tuple(draft.texts))  # fmt: skip


def _inside(scene: Scene) -> list[list[Link]]:
    """Links within each box."""
    home = {node: i for i, group in enumerate(scene.groups) for node in group.nodes}
    found: list[list[Link]] = [[] for _ in scene.groups]
    for link in scene.links:
        a, b = (home.get(node, -1) for node in link.ends)
        if a == b >= 0:
            found[a].append(link)
    return found


def _kept(n: int, most: int, elided: int) -> list[int]:
    """Return which of n are drawn: all if there are not too many, else the first and the last."""
    return list(range(n)) if n <= most else [*range(elided - 1), n - 1]


def _kept_boxes(widths: Sequence[float]) -> list[int]:
    fitting = [sum(total <= room for total in accumulate(width + _MARGIN for width in widths))
               for room in (_WIDEST, _ELIDED)]  # fmt: skip
    return _kept(len(widths), max(4, fitting[0]), max(4, fitting[1]))


def _boxes(scene: Scene, draft: _Draft, inside: Sequence[Sequence[Link]], notes: Sequence[str]) -> list[Box]:
    boxes = []
    size = 15.0 if scene.n_ranks <= 16 else 8.0
    outward = _outward(scene, draft)
    for i, group in enumerate(scene.groups):
        mesh = is_mesh(group, inside[i])
        side = sides(group, mesh)
        trunks = [len({target for node, target in outward[i] if side.get(node) == way}) for way in (-1, 1)]
        draft.side |= side
        boxes.append(arrange(group, mesh, (trunks[0], trunks[1]), size, notes[i]))
    return boxes


def _outward(scene: Scene, draft: _Draft) -> list[list[tuple[str, str]]]:
    """Per box: its node and what is drawn for the other end, of every link that leaves it."""
    home = {node: i for i, group in enumerate(scene.groups) for node in group.nodes}
    found: list[list[tuple[str, str]]] = [[] for _ in scene.groups]
    for link in scene.links:
        for a, b in (link.ends, link.ends[::-1]):
            if a in home and home.get(b) != home[a]:
                found[home[a]].append((a, draft.stands_for.get(b, f"\0box{home.get(b)}")))
    return found


def _clearance(scene: Scene, row: int) -> float:
    """Height of the wires below a row."""
    return (72.0 if row == 1 else 60.0) + _arches(scene, row - 1)


def _arches(scene: Scene, row: int) -> float:
    """Height of the arches above a row, if links join neighbours in it."""
    parts = [level.nodes for level in (scene.levels[row - 1],)] if row else [group.nodes for group in scene.groups]
    place = {node: i if row == 0 else node for i, nodes in enumerate(parts) for node in nodes}
    ends = ((place.get(a), place.get(b)) for a, b in (link.ends for link in scene.links))
    return 34.0 if any(a is not None and b is not None and a != b for a, b in ends) else 0.0


def _place_boxes(
    draft: _Draft, groups: Sequence[Group], boxes: Sequence[Box], keep: Sequence[int], span: tuple[float, float],
    floor: float,
) -> float:  # fmt: skip
    """Stand the boxes on the floor, equally far apart; return the top."""
    elided = len(boxes) - len(keep)
    widths = [boxes[i].width for i in keep] + ([_MORE_WIDTH] if elided else [])
    gap = min(60.0, (span[1] - sum(widths)) / (len(widths) + 1)) if widths else 0.0
    x = span[0] + (span[1] - sum(widths) - gap * (len(widths) - 1)) / 2
    top = max((box.height for box in boxes), default=0.0) + floor
    for place, i in enumerate(keep):
        if elided and place == len(keep) - 1:
            x = _place_elided(draft, groups, keep, x, (floor, top)) + gap
        _place_box(draft, groups[i], boxes[i], i, x, floor)
        x += boxes[i].width + gap
    return top


def _place_box(draft: _Draft, group: Group, box: Box, i: int, x: float, floor: float) -> None:
    draft.frames.append(Frame(Spot(x + box.width / 2, floor + box.height / 2, box.width, box.height)))
    draft.trays += [tray.moved(x, floor) for tray in box.trays]
    draft.channels[i] = (x + box.inner[0], x + box.inner[1], floor + box.height)
    more = f" (+{counted(box.hidden, 'GPU')})" if box.hidden else ""
    draft.texts.append(Text(x + box.width / 2, floor - 9.0, shortened(group.label + more, box.width + 6.0, 8.0)))
    for node, spot in box.spots.items():
        draft.spots[node] = spot.moved(x, floor)
        draft.stands_for[node], draft.level[node], draft.home[node] = node, 0, i
    for node, note in box.notes.items():
        at = draft.spots[node]
        draft.texts.append(Text(at.x, at.y, note, 7.5, rotation=90.0))


def _place_elided(
    draft: _Draft, groups: Sequence[Group], keep: Sequence[int], x: float, span: tuple[float, float]
) -> float:  # fmt: skip
    rest = [group for i, group in enumerate(groups) if i not in set(keep)]
    low, high = span
    spot = Spot(x + _MORE_WIDTH / 2, (low + high) / 2, _MORE_WIDTH, high - low)
    name = f"{_MORE}0"
    draft.frames.append(Frame(spot, elided=True))
    draft.spots[name], draft.level[name] = spot, 0
    draft.stands_for |= {node: name for group in rest for node in group.nodes}
    number, what = counted(len(rest), rest[0].label.split(" ")[0] if " " in rest[0].label else "box").split(" ", 1)
    tall = text_width(f"… {number} more {what}", 8.0) < high - low
    text = f"… {number} more{f' {what}' if tall else ''}"
    draft.texts.append(Text(spot.x, spot.y, text, 8.0 if tall else 7.0, rotation=90.0 if tall else 0.0))
    return x + _MORE_WIDTH


def _place_row(
    draft: _Draft, level: Level, keep: Sequence[int], row: int, span: tuple[float, float], bottom: float
) -> float:  # fmt: skip
    """Set a row of switches over the width; return its top."""
    elided = len(level.nodes) - len(keep)
    names = [level.nodes[i] for i in keep]
    labels, legend = _switch_labels([str(name) for name in names], min(46.0, span[1] / (len(names) + 1) - 8.0))
    if elided:
        names.insert(len(names) - 1, f"{_MORE}{row}")
    slot = span[1] / len(names)
    y = bottom + _SWITCH / 2
    for i, name in enumerate(names):
        spot = Spot(span[0] + slot * (i + 0.5), y, min(46.0, slot - 6.0), _SWITCH)
        draft.spots[name], draft.level[name] = spot, row
        if str(name).startswith(_MORE):
            draft.frames.append(Frame(spot, elided=True))
            more = f"… {elided} more"
            draft.texts.append(Text(spot.x, spot.y, more if text_width(more, 6.8) < spot.w else more[:-5], 7.0))
        else:
            draft.texts.append(Text(spot.x, spot.y, labels.pop(0), 7.5))
    said = [f"{level.count}," if legend else level.count, *([legend] if legend else [])]
    said = [shortened(line, _ROW_LABEL - 8.0, 8.0) for line in said]
    draft.texts.append(Text(_MARGIN, y, "\n".join(said), 8.0, "left"))
    return bottom + _SWITCH


def _switch_labels(names: Sequence[str], room: float) -> tuple[list[str], str]:
    """Return what is written into the switches of a row, their names or what tells these apart, and what that is."""
    if all(text_width(name, 7.5) < room for name in names):
        return list(names), ""
    short, legend = abbreviated(names)
    heads = [shortened(name, room, 7.5) for name in short]
    if len(set(heads)) < len(set(short)):
        heads = [shortened(name[::-1], room, 7.5)[::-1] for name in short]
    return heads, legend
