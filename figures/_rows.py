"""Which switch stands where in the rows of a fabric? Pods and planes side by side, too much elided; in points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import networkx as nx

from figures._page import MARGIN, ROW_LABEL, Frame, Layout, Text
from figures._scene import Level, Scene
from figures._spots import Cell, Spot
from figures._words import abbreviated, shortened, text_width

__all__ = ["MORE", "Rows", "kept", "place_rows", "rows_of", "stood_for"]

MORE = "\0more"  # label of what stands for the elided; no node can be called so
_MOST, _ELIDED, _MOST_PLANES = 12, 8, 16  # switches of a row, and how many are left if there are more
_MOST_COLUMNS = 22.0  # of all pods or planes
_IN_BLOCK = 4
_COLUMN, _LEAST = 38.0, 30.0  # width of one switch within and without pods [points]
_SWITCH, _END = 16.0, 9.0
_MOST_ENDS = 32  # end points under a switch that are drawn each


@dataclass(frozen=True)
class Slot:
    """A place in a row: what is drawn there, the nodes it stands for, centre and width as shares of the row.

    `what` is "switch", "plane" (a cell of its switches) or "more" (elided).
    """

    name: str
    nodes: tuple[str, ...]
    x: float
    width: float
    what: str = "switch"


@dataclass(frozen=True)
class Block:
    """A pod or plane: its name, from where to where as shares of the width, its rows; its nodes if it is elided."""

    label: str
    left: float
    right: float
    rows: tuple[int, int]
    elided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Slots of every row, lowest first, pods or planes, and the width all of it needs [points]."""

    slots: tuple[tuple[Slot, ...], ...]
    blocks: tuple[Block, ...]
    width: float


def kept(n: int, most: int, elided: int) -> list[int]:
    """Return which of n are drawn: all if there are not too many, else the first and the last."""
    return list(range(n)) if n <= most else [*range(elided - 1), n - 1]


def rows_of(scene: Scene) -> Rows:
    """Plan the rows of a scene."""
    name, parts = _parts(scene)
    if len(parts) > 1:
        return _blocked(scene, name, parts)
    slots = tuple(_row(scene, level, row) for row, level in enumerate(scene.levels, start=1))
    widest = max((len(row) for row in slots), default=0)
    return Rows(slots, (), _LEAST * min(widest, _MOST + 1))


def _row(scene: Scene, level: Level, row: int) -> tuple[Slot, ...]:
    planes: dict[tuple[object, object], list[str]] = {}
    for node in level.nodes:
        planes.setdefault((scene.marks[node].domain, scene.marks[node].plane), []).append(node)
    n = len(planes)
    if len(level.nodes) > _MOST and 1 < n <= _MOST_PLANES and all(plane is not None for _, plane in planes):
        return tuple(Slot(f"\0plane {row} {i}", tuple(nodes), (i + 0.5) / n, 1 / n, "plane")
                     for i, nodes in enumerate(planes.values()))  # fmt: skip
    return _spread(level.nodes, kept(len(level.nodes), _MOST, _ELIDED), (0.0, 1.0), f"{row}")


def _spread(nodes: Sequence[str], keep: Sequence[int], span: tuple[float, float], key: str) -> tuple[Slot, ...]:
    """Set the nodes that are kept over a span, before the last of them what stands for the others."""
    named: list[tuple[str, tuple[str, ...], str]] = [(nodes[i], (nodes[i],), "switch") for i in keep]
    if len(keep) < len(nodes):
        shown = set(keep)
        rest = tuple(node for i, node in enumerate(nodes) if i not in shown)
        named.insert(len(named) - 1, (f"{MORE}{key}", rest, "more"))
    step = (span[1] - span[0]) / max(1, len(named))
    return tuple(Slot(name, stood, span[0] + step * (i + 0.5), step, what)
                 for i, (name, stood, what) in enumerate(named))  # fmt: skip


# --- pods and planes -------------------------------------------------------------------------------------------------


def _parts(scene: Scene) -> tuple[str, list[set[str]]]:
    """Return what the fabric falls into: planes that meet nowhere, else pods below the top level."""
    for name, levels in (("plane", scene.levels), ("pod", scene.levels[:-1])):
        inside = {node for level in levels for node in level.nodes}
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(node for level in levels for node in level.nodes)
        graph.add_edges_from(link.ends for link in scene.links if inside.issuperset(link.ends))
        parts = [set(part) for part in nx.connected_components(graph)]
        if len(levels) > 1 and len(parts) > 1 and all(len(part) > 1 for part in parts):
            return name, parts
    return "", []


def _blocked(scene: Scene, name: str, parts: Sequence[set[str]]) -> Rows:
    levels = [level for level in scene.levels if any(node in part for part in parts for node in level.nodes)]
    home = {node: i for i, part in enumerate(parts) for node in part}
    members: list[list[list[str]]] = [[[] for _ in levels] for _ in parts]
    for row, level in enumerate(levels):
        for node in level.nodes:
            members[home[node]][row].append(node)
    wide = [min(_IN_BLOCK, max(map(len, rows))) + 0.3 for rows in members]
    fitting = max(2, int((_MOST_COLUMNS - 1.8) / max(wide)))
    keep = kept(len(parts), len(parts) if sum(wide) <= _MOST_COLUMNS else fitting, fitting)
    gap = 1.8 if len(keep) < len(parts) else 0.0
    total = sum(wide[i] for i in keep) + gap
    slots: list[list[Slot]] = [[] for _ in scene.levels]
    blocks, at = [], 0.0
    for i in keep:
        if gap and i == keep[-1]:
            shown = set(keep)
            rest = tuple(n for k, rows in enumerate(members) if k not in shown for row in rows for n in row)
            label = f"… {len(parts) - len(keep)} more {name}s"
            blocks.append(Block(label, at / total, (at + gap) / total, (1, len(levels)), rest))
            at += gap
        span = (at / total, (at + wide[i]) / total)
        blocks.append(Block(f"{name} {i}", *span, (1, len(levels))))
        for row, nodes in enumerate(members[i]):
            inner = (span[0] + 0.12 / total, span[1] - 0.12 / total)
            chosen = kept(len(nodes), int(wide[i]), int(wide[i]) - 1)
            slots[row] += _spread(nodes, chosen, inner, f"{i} {row}")
        at += wide[i]
    for row, level in enumerate(scene.levels[len(levels) :], start=len(levels)):
        slots[row] += _row(scene, level, row + 1)
    return Rows(tuple(map(tuple, slots)), tuple(blocks), _COLUMN * total)


def stood_for(rows: Rows) -> Iterable[tuple[str, str]]:
    """Yield every node and what is drawn for it."""
    for slots in rows.slots:
        for slot in slots:
            yield from ((node, slot.name) for node in slot.nodes)
    for block in rows.blocks:
        yield from ((node, f"{MORE}{block.label}") for node in block.elided)


# --- placed ----------------------------------------------------------------------------------------------------------


def place_rows(draft: Layout, scene: Scene, rows: Rows, span: tuple[float, float], floor: float) -> float:
    """Set the rows over a floor, the pods and planes around them; return the top."""
    top, edges = floor, []
    if scene.hanging and rows.slots:
        elided = [
            Slot(f"{MORE}{b.label}", b.elided, (b.left + b.right) / 2, 1.0, "more") for b in rows.blocks if b.elided
        ]
        top += _hang(draft, scene, [*rows.slots[0], *elided], span, floor)
    for row, slots in enumerate(rows.slots, start=1):
        bottom = top + (30.0 if row == 1 and scene.hanging else 72.0 if row == 1 else 60.0) + _arches(scene, row - 1)
        top = _place_row(draft, scene, slots, row, span, bottom)
        edges.append((bottom, top))
    for block in rows.blocks:
        low, high = edges[block.rows[0] - 1][0], edges[block.rows[1] - 1][1]
        left, wide = span[0] + span[1] * block.left, span[1] * (block.right - block.left)
        if block.elided:
            name = f"{MORE}{block.label}"
            spot = Spot(left + wide / 2, (low + high) / 2, wide - 8.0, high - low)
            draft.spots[name], draft.level[name] = spot, 1
            draft.frames.append(Frame(spot, elided=True))
            draft.texts.append(Text(spot.x, spot.y, block.label, rotation=90.0))
        else:
            spot = Spot(left + wide / 2, (low + high) / 2 + 3.0, wide - 4.0, high - low + 18.0)
            draft.frames.append(Frame(spot, faint=True))
            draft.texts.append(Text(spot.x, (low + high) / 2, block.label, 7.5, halo=True))
    closed = any(block.rows[1] == len(rows.slots) for block in rows.blocks)
    return top + (_arches(scene, len(rows.slots)) if rows.slots else 0.0) + (12.0 if closed else 0.0)


def _arches(scene: Scene, row: int) -> float:
    """Height of the arches above a row, if links join neighbours in it."""
    parts = [scene.levels[row - 1].nodes] if row else [group.nodes for group in scene.groups]
    place = {node: i if row == 0 else node for i, nodes in enumerate(parts) for node in nodes}
    ends = ((place.get(a), place.get(b)) for a, b in (link.ends for link in scene.links))
    return 34.0 if any(a is not None and b is not None and a != b for a, b in ends) else 0.0


def _place_row(
    draft: Layout, scene: Scene, slots: Sequence[Slot], row: int, span: tuple[float, float], bottom: float
) -> float:  # fmt: skip
    """Set a row of switches over the width; return its top."""
    y, level = bottom + _SWITCH / 2, scene.levels[row - 1]
    least = span[1] * min(slot.width for slot in slots)
    named = [str(slot.name) for slot in slots if slot.what == "switch"]
    labels, legend = _labels(named, min(46.0, least - 8.0))
    for slot in slots:
        spot = Spot(span[0] + span[1] * slot.x, y, min(46.0, span[1] * slot.width - 6.0), _SWITCH)
        draft.spots[slot.name], draft.level[slot.name] = spot, row
        if slot.what == "switch":
            draft.texts.append(Text(spot.x, spot.y, labels.pop(0), 7.5))
        elif slot.what == "plane":
            kind = "scale-up" if scene.marks[slot.nodes[0]].level > 1 else "switch"
            draft.cells[slot.name] = Cell(kind, f"{scene.marks[slot.nodes[0]].plane}: ×{len(slot.nodes)}", 4.0)
            legend = f"in {len(slots)} planes"
        else:
            draft.frames.append(Frame(spot, elided=True))
            more = f"… {len(slot.nodes)} more"
            draft.texts.append(Text(spot.x, spot.y, more if text_width(more, 6.8) < spot.w else more[:-5], 7.0))
    said = [f"{level.count}," if legend else level.count, *([legend] if legend else [])]
    if text_width(said[0], 8.0) > ROW_LABEL - 8.0:
        said[:1] = said[0].rsplit(" ", 1)
    said = [shortened(line, ROW_LABEL - 8.0, 8.0) for line in said]
    draft.texts.append(Text(MARGIN, y, "\n".join(said), 8.0, "left"))
    return bottom + _SWITCH


def _labels(names: Sequence[str], room: float) -> tuple[list[str], str]:
    """Return what is written into the switches of a row, their names or what tells these apart, and what that is."""
    if all(text_width(name, 7.5) < room for name in names):
        return list(names), ""
    short, legend = abbreviated(names)
    heads = [shortened(name, room, 7.5) for name in short]
    if len(set(heads)) < len(set(short)):
        heads = [shortened(name[::-1], room, 7.5)[::-1] for name in short]
    return heads, legend


def _hang(draft: Layout, scene: Scene, slots: Sequence[Slot], span: tuple[float, float], floor: float) -> float:
    """Set the end points of each switch below it: each of a few, a count of many; return the height they take."""
    hung = [tuple(end for node in slot.nodes for end in scene.hanging.get(node, ())) for slot in slots]
    most = max((len(ends) for slot, ends in zip(slots, hung, strict=True) if slot.what == "switch"), default=0)
    large = 13.0 if scene.n_ranks <= 64 else _END
    room = span[1] * min(slot.width for slot in slots) - 5.0
    down = -(-min(most, _MOST_ENDS) // max(1, min(8, int(room / (large + 2.0)))))
    across = -(-min(most, _MOST_ENDS) // max(1, down))
    height = down * (large + 2.0) + 3.0
    for slot, ends in zip(slots, hung, strict=True):
        x = span[0] + span[1] * slot.x
        if slot.what == "switch" and 0 < len(ends) <= _MOST_ENDS:
            _tray(draft, ends, (x, floor + height), across, large)
        elif ends:
            name = f"\0hang {slot.name}"
            draft.spots[name] = Spot(x, floor + height - 6.0, max(14.0, text_width(f"×{len(ends):,}", 7.0) + 2.0), 11.0)
            draft.cells[name], draft.level[name] = Cell("gpu", f"×{len(ends):,}"), 0
            draft.stands_for |= dict.fromkeys(ends, name)
    return height


def _tray(draft: Layout, ends: Sequence[str], top: tuple[float, float], across: int, size: float) -> None:
    """Set end points in rows below a point, a tray around several."""
    step, n = size + 2.0, min(across, len(ends))
    for i, end in enumerate(ends):
        at = top[0] + (i % n - (n - 1) / 2) * step, top[1] - 1.5 - (i // n + 0.5) * step
        draft.spots[end], draft.level[end], draft.stands_for[end] = Spot(*at, size, size), 0, end
    if len(ends) > 1:
        down = -(-len(ends) // n)
        tray = Spot(top[0], top[1] - 1.5 - down * step / 2, n * step + 3.0, down * step + 3.0)
        name = f"\0hang {ends[0]}"
        draft.trays.append(tray)
        draft.spots[name], draft.level[name] = tray, 0
        draft.stands_for |= dict.fromkeys(ends, name)
