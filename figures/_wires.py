"""Along which lines do the links run? Cables of one box to one switch are gathered into a bundle."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from figures._graph import Link
from figures._page import Layout
from figures._scene import Scene
from figures._spots import Path, Point, Spot

__all__ = ["Wire", "run"]

Key = tuple[str, int]  # a drawn node and 0, or a box's name and the side its cables leave on


@dataclass(frozen=True)
class Wire:
    """A line, and what it stands for: kind, bandwidth per direction [bytes/s] of all its links, the busiest's use.

    `trunk`: it does not go straight to a switch in its box; `elided`: it ends at what stands for several
    nodes; `room`: width [points] at which it would run into its neighbour; `twisted`: it
    goes round a torus and comes back shifted.
    """

    points: tuple[Point, ...]
    kind: str
    bandwidth: float
    utilisation: float | None
    trunk: bool = False
    elided: bool = False
    room: float = math.inf
    twisted: bool = False


def run(scene: Scene, layout: Layout) -> list[Wire]:
    """Return the lines of a scene that is laid out."""
    wires: list[Wire] = []
    within: dict[tuple[str, str] | Path, list[Link]] = {}
    bundles: dict[tuple[Key, Key], list[Link]] = {}
    for link in scene.links:
        ends = [layout.stands_for.get(node) for node in link.ends]
        a, b = ends
        if a is None or b is None or a == b:
            continue
        if a in layout.home and layout.home.get(a) == layout.home.get(b):
            within.setdefault(layout.paths.get(link.ends) or ((a, b) if (b, a) not in within else (b, a)), []).append(
                link
            )
        else:
            keys = (_key(layout, a), _key(layout, b))
            if _level(layout, keys[0]) > _level(layout, keys[1]):
                keys = keys[::-1]
            bundles.setdefault(keys if keys[::-1] not in bundles else keys[::-1], []).append(link)
    lanes = _Hubs(scene)
    for way, links in within.items():
        if isinstance(way, Path):
            wires += [_wire(line, links, trunk=True, twisted=way.twisted) for line in way.lines]
        else:
            points, room = lanes.inside(layout, *way)
            wires.append(_wire(points, links, room=room, trunk=not set(way) & set(lanes.number)))
    return wires + _bundled(layout, bundles)


def _wire(points: Iterable[Point], links: list[Link], **more: Any) -> Wire:
    uses = [link.utilisation for link in links if link.utilisation is not None]
    return Wire(tuple(points), links[0].kind, sum(link.bandwidth for link in links), max(uses, default=None), **more)


def _key(layout: Layout, node: str) -> Key:
    side = layout.side.get(node, 0)
    if layout.home.get(node) in layout.sealed:
        return f"\0box{layout.home[node]}", 0
    return (f"\0box{layout.home[node]}", side) if side else (node, 0)


class _Hubs:
    """How a GPU's links to the switches of its box are told apart: one height per switch."""

    def __init__(self, scene: Scene) -> None:
        self.number = {hub: (i, len(group.hubs)) for group in scene.groups for i, hub in enumerate(group.hubs)}

    def inside(self, layout: Layout, a: str, b: str) -> tuple[tuple[Point, Point], float]:
        """Return the line of a link within a box, level to a switch, else straight; and how wide it may be."""
        if a in self.number and b not in self.number:
            a, b = b, a
        at, to = layout.spots[a], layout.spots[b]
        if b in self.number and at.x > to.x - to.w / 2 and at.x < to.x + to.w / 2:
            return ((at.x, at.y), (at.x, to.y)), math.inf  # straight up to a bar above
        if b not in self.number or a in self.number or layout.side.get(a, 0) == 0:
            return ((at.x, at.y), (to.x, to.y)), math.inf
        i, n = self.number[b]
        pitch = min(2.2, 0.9 * at.h / n)
        y = at.y + (i - (n - 1) / 2) * pitch
        way = math.copysign(1.0, to.x - at.x)
        return ((at.x + way * at.w / 2, y), (to.x - way * to.w / 2, y)), math.inf if n == 1 else 0.6 * pitch


def _bundled(layout: Layout, bundles: dict[tuple[Key, Key], list[Link]]) -> list[Wire]:
    """Return per bundle its trunk, and the tap of every link into it."""
    channels = _channels(layout, bundles)
    ports = _ports(layout, bundles, channels)
    wires = []
    for pair, links in bundles.items():
        ends = []
        for key, other in (pair, pair[::-1]):
            if key[1] == 0:
                ends.append([ports[key, other]])
                continue
            x = channels[key, other]
            top = layout.channels[int(key[0].removeprefix("\0box"))][2]
            spots = [layout.spots[node] for node in _members(layout, links, key)]
            wires += [_wire(((spot.x + key[1] * spot.w / 2, spot.y), (x, spot.y)), [link])
                      for spot, link in zip(spots, links, strict=True)]  # fmt: skip
            ends.append([(x, min(spot.y for spot in spots)), (x, top)])
        elided = any(key[1] == 0 and key[0] not in layout.stands_for for key in pair)
        wires.append(_wire([*ends[0], *_arc(layout, pair, ends), *reversed(ends[1])], links, trunk=True, elided=elided))
    return wires


def _members(layout: Layout, links: list[Link], key: Key) -> list[str]:
    """Return each link's end that belongs to a key."""
    return [next(node for node in link.ends if node in layout.home and _key(layout, node) == key) for link in links]


def _channels(layout: Layout, bundles: dict[tuple[Key, Key], list[Link]]) -> dict[tuple[Key, Key], float]:
    """Give every bundle that leaves a box an x in the channel: the lower it starts, the farther out, so none cross."""
    found: dict[Key, list[tuple[float, int, Key]]] = {}
    for i, (pair, links) in enumerate(bundles.items()):
        for key, other in (pair, pair[::-1]):
            if key[1]:
                lowest = min(layout.spots[node].y for node in _members(layout, links, key))
                found.setdefault(key, []).append((-lowest, i, other))
    xs = {}
    for key, rows in found.items():
        inner = layout.channels[int(key[0].removeprefix("\0box"))][0 if key[1] < 0 else 1]
        pitch = 3.0 * min(1.0, 12 / len(rows))
        for place, (_, _, other) in enumerate(sorted(rows, key=lambda row: row[:2])):
            xs[key, other] = inner + key[1] * (3.0 + pitch * place)
    return xs


def _ports(
    layout: Layout, bundles: dict[tuple[Key, Key], list[Link]], channels: dict[tuple[Key, Key], float]
) -> dict[tuple[Key, Key], Point]:  # fmt: skip
    """Spread the lines of a node over its edge that faces them, in the order of where they come from."""
    found: dict[tuple[Key, bool], list[tuple[float, int, Key]]] = {}
    for i, pair in enumerate(bundles):
        for key, other, low in ((*pair, True), (*pair[::-1], False)):
            if key[1] == 0:
                level = [_level(layout, k) for k in (key, other)]
                up = level[1] > level[0] or level[0] == level[1]
                x = channels[other, key] if other[1] else layout.spots[other[0]].x
                found.setdefault((key, up if low or level[0] == level[1] else False), []).append((x, i, other))
    ports = {}
    for (key, up), rows in found.items():
        spot: Spot = layout.spots[key[0]]
        for place, (_, _, other) in enumerate(sorted(rows, key=lambda row: row[:2])):
            x = spot.x + 0.86 * spot.w * ((place + 0.5) / len(rows) - 0.5)
            ports[key, other] = (x, spot.y + (spot.h if up else -spot.h) / 2)
    return ports


def _level(layout: Layout, key: Key) -> int:
    return layout.level.get(key[0], 0)


def _arc(layout: Layout, pair: tuple[Key, Key], ends: list[list[Point]]) -> list[Point]:
    """Return an arch between neighbours of one row, which would else be hidden behind those between them."""
    if _level(layout, pair[0]) != _level(layout, pair[1]):
        return []
    (x0, y0), (x1, y1) = ends[0][-1], ends[1][-1]
    high = min(26.0, 8.0 + abs(x1 - x0) / 14)
    steps = [(i / 12, math.sin(math.pi * i / 12)) for i in range(1, 12)]
    return [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t + high * s) for t, s in steps]
