"""Where does everything stand? Boxes on the floor, switches in rows or a network above, too much elided; in points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from figures._boxes import arrange, columns, label, sides
from figures._graph import Link
from figures._page import MARGIN, ROW_LABEL, Frame, Layout, Text
from figures._pictures import picture
from figures._rows import MORE, kept, place_rows, rows_of, stood_for
from figures._scene import Group, Scene
from figures._server import is_server, server
from figures._spots import Box, Part, Spot
from figures._words import captions, counted, describe, shortened, text_width, wrapped

__all__ = ["lay_out"]

_WIDEST, _NARROWEST = 840.0, 450.0  # boxes side by side; what does not fit is elided to _ELIDED
_ELIDED = 620.0
_MORE_WIDTH = 50.0


def lay_out(scene: Scene, foot: float) -> Layout:
    """Place a scene, with `foot` points left free below it."""
    draft = Layout(foot)
    rows, inside = rows_of(scene), _inside(scene)
    draft.stands_for.update(stood_for(rows))
    network = _network(scene)
    boxes = _boxes(scene, draft, inside)
    keep = _kept_boxes([box.width for box in boxes])
    lead = ROW_LABEL if scene.levels else MARGIN
    needed = sum(boxes[i].width + MARGIN for i in keep) + (_MORE_WIDTH + MARGIN if len(keep) < len(boxes) else 0.0)
    room = max(needed, rows.width, network.width if network else 0.0, _NARROWEST - lead - MARGIN)
    lines = captions(scene.groups, boxes, bool(scene.links))
    lines[:0] = [network.say] if network and network.say else []
    lines = [part for line in lines for part in wrapped(line, lead + room - MARGIN, 7.0)]
    floor = foot + 11.0 * len(lines) + (18.0 if boxes else 8.0)
    first = floor - (22.0 if boxes else 12.0)
    draft.texts += [Text(MARGIN, first - 11.0 * i, text, 7.5, "left")
                    for i, text in enumerate(lines)]  # fmt: skip
    top = _place_boxes(draft, scene.groups, boxes, keep, (lead, room), floor)
    if network:
        draft.level.update(dict.fromkeys(network.spots, 1))
        _place(draft, network, len(boxes), lead + (room - network.width) / 2, top + (60.0 if boxes else 0.0))
        top += network.height + (60.0 if boxes else 0.0)
    top = place_rows(draft, scene, rows, (lead, room), top)
    draft.width, draft.height = lead + room + MARGIN, top + 6.0
    return draft


def _inside(scene: Scene) -> list[list[Link]]:
    """Links within each box."""
    home = {node: i for i, group in enumerate(scene.groups) for node in group.nodes}
    found: list[list[Link]] = [[] for _ in scene.groups]
    for link in scene.links:
        a, b = (home.get(node, -1) for node in link.ends)
        if a == b >= 0:
            found[a].append(link)
    return found


def _among(links: Sequence[Link], nodes: Sequence[str]) -> tuple[Link, ...]:
    found = set(nodes)
    return tuple(link for link in links if found.issuperset(link.ends))


def _network(scene: Scene) -> Box | None:
    """Lay out switches that are joined to each other."""
    if not scene.network:
        return None
    links = _among(scene.links, scene.network)
    size = 15.0 if len(scene.network) <= 100 else 9.0
    return picture(Part(scene.network, links, scene.marks, "switch", size, _WIDEST, scene.hanging))


def _kept_boxes(widths: Sequence[float]) -> list[int]:
    fitting = [sum(total <= room for total in accumulate(width + MARGIN for width in widths))
               for room in (_WIDEST, _ELIDED)]  # fmt: skip
    least = 4 if max(widths, default=0.0) < 0.3 * _WIDEST else 2
    return kept(len(widths), max(least, fitting[0]), max(least, fitting[1]))


def _boxes(scene: Scene, draft: Layout, inside: Sequence[Sequence[Link]]) -> list[Box]:
    boxes = []
    size = 15.0 if (scene.n_ranks <= 64 and len(scene.groups) < 3) or scene.n_ranks <= 16 else 8.0
    outward = _outward(scene, draft)
    room = min(560.0, _WIDEST / min(3, max(1, len(scene.groups))) - 20.0)
    for i, group in enumerate(scene.groups):
        direct = () if group.hubs else _among(inside[i], group.gpus)
        note = describe(group, inside[i], scene.planes)
        if not direct and is_server(group, inside[i]):
            core = server(group, inside[i], size, note)
        elif direct:
            kind = scene.kinds[group.gpus[0]]
            core = picture(Part(group.gpus, direct, scene.marks, kind, size, room))
            core = replace(core, say=core.say or note)
        else:
            core = columns(group, size, note)
        side = sides(group, core, bool(direct))
        trunks = [len({target for node, target in outward[i] if side.get(node) == way}) for way in (-1, 1)]
        draft.side |= side
        boxes.append(arrange(group, core, (trunks[0], trunks[1])))
    return boxes


def _outward(scene: Scene, draft: Layout) -> list[list[tuple[str, str]]]:
    """Per box: its node and what is drawn for the other end, of every link that leaves it."""
    home = {node: i for i, group in enumerate(scene.groups) for node in group.nodes}
    found: list[list[tuple[str, str]]] = [[] for _ in scene.groups]
    for link in scene.links:
        for a, b in (link.ends, link.ends[::-1]):
            if a in home and home.get(b) != home[a]:
                found[home[a]].append((a, draft.stands_for.get(b, f"\0box{home.get(b)}")))
    return found


def _place_boxes(
    draft: Layout, groups: Sequence[Group], boxes: Sequence[Box], keep: Sequence[int], span: tuple[float, float],
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


def _place_box(draft: Layout, group: Group, box: Box, i: int, x: float, floor: float) -> None:
    frame = Spot(x + box.width / 2, floor + box.height / 2, box.width, box.height)
    draft.frames.append(Frame(frame))
    if box.sealed:
        name = f"\0box{i}"
        draft.sealed.add(i)
        draft.spots[name], draft.stands_for[name], draft.level[name] = frame, name, 0
    draft.channels[i] = (x + box.inner[0], x + box.inner[1], floor + box.height)
    draft.texts.append(Text(x + box.width / 2, floor - 9.0, shortened(label(group, box.hidden), box.width + 6.0, 8.0)))
    draft.level.update(dict.fromkeys(box.spots, 0))
    _place(draft, box, i, x, floor)


def _place(draft: Layout, box: Box, i: int, x: float, y: float) -> None:
    """Take over what is laid out in a box, its lower left at a point."""
    box = box.moved(x, y)
    draft.spots |= box.spots
    draft.stands_for |= {node: node for node in box.spots} | box.stands_for
    draft.home |= dict.fromkeys(box.spots, i)
    draft.cells |= box.cells
    draft.paths |= box.paths
    if i in draft.channels:
        draft.trays += box.trays
    else:  # no frame around it: its trays are frames
        draft.frames += [Frame(tray, faint=True) for tray in box.trays]
    draft.sheets += box.sheets
    for texts, rotation in ((box.notes, 90.0), (box.texts, 0.0)):
        for node, text in texts.items():
            draft.texts.append(Text(box.spots[node].x, box.spots[node].y, text, 7.5 if rotation else 7.0,
                                    rotation=rotation))  # fmt: skip


def _place_elided(
    draft: Layout, groups: Sequence[Group], keep: Sequence[int], x: float, span: tuple[float, float]
) -> float:  # fmt: skip
    shown = set(keep)
    rest = [group for i, group in enumerate(groups) if i not in shown]
    low, high = span
    spot = Spot(x + _MORE_WIDTH / 2, (low + high) / 2, _MORE_WIDTH, high - low)
    name = f"{MORE}0"
    draft.frames.append(Frame(spot, elided=True))
    draft.spots[name], draft.level[name] = spot, 0
    draft.stands_for |= {node: name for group in rest for node in group.nodes}
    number, what = counted(len(rest), rest[0].label.split(" ")[0] if " " in rest[0].label else "box").split(" ", 1)
    tall = text_width(f"… {number} more {what}", 8.0) < high - low
    text = f"… {number} more{f' {what}' if tall else ''}"
    draft.texts.append(Text(spot.x, spot.y, text, 8.0 if tall else 7.0, rotation=90.0 if tall else 0.0))
    return x + _MORE_WIDTH
