"""Where in its box is each GPU, switch and NIC? Pure arithmetic in points, the origin at the box's lower left."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from figures._scene import Group, Link
from figures._words import text_width

__all__ = ["Box", "Spot", "arrange", "is_mesh", "shown", "sides"]

MOST_GPUS = 96
_GAP, _PAD = 4.0, 5.0
_MOST_ON_CIRCLE = 40


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
class Box:
    """A box laid out: its size, its nodes, the frames of its trays, and the x of its two cable channels' inner edge."""

    width: float
    height: float
    spots: dict[str, Spot]
    inner: tuple[float, float]
    trays: tuple[Spot, ...] = ()
    hidden: int = 0
    notes: dict[str, str] = field(default_factory=dict)


def is_mesh(group: Group, links: Iterable[Link]) -> bool:
    """Whether GPUs of a box are wired to each other and to no switch."""
    gpus = set(group.gpus)
    return not group.hubs and any(gpus.issuperset(link.ends) for link in links)


def shown(group: Group) -> tuple[str, ...]:
    """Return the GPUs of a box that are drawn; of very many the first."""
    return group.gpus if len(group.gpus) <= MOST_GPUS else group.gpus[: MOST_GPUS - 4]


def _rows(group: Group) -> list[list[tuple[str | None, str | None]]]:
    """Trays of rows of two GPUs, left and right of the switch."""
    gpus = shown(group)
    hosts: dict[object, list[str]] = {}
    for gpu, host in zip(gpus, group.hosts, strict=False):
        hosts.setdefault(host, []).append(gpu)
    trays = list(hosts.values())
    if max(map(len, trays)) == 1 or (len(trays) == 1 and len(gpus) > 16):
        trays = [list(gpus[i : i + 4]) for i in range(0, len(gpus), 4)]
    halves = [(tray[: (len(tray) + 1) // 2], tray[(len(tray) + 1) // 2 :]) for tray in trays]
    return [list(zip_longest(left, right)) for left, right in halves]


def sides(group: Group, mesh: bool) -> dict[str, int]:
    """Return on which side a node's cables leave its box: -1 left, 1 right; where none, at the top."""
    gpus = shown(group)
    if len(group.nodes) == 1:
        return {}
    if mesh:
        found = {gpu: -1 if i < (len(gpus) + 1) // 2 else 1 for i, gpu in enumerate(gpus)}
    else:
        found = {}
        for left, right in (row for tray in _rows(group) for row in tray):
            found.update({gpu: side for gpu, side in ((left, -1), (right, 1)) if gpu is not None})
    half = (len(group.nics) + 1) // 2
    return found | {nic: -1 if i < half else 1 for i, nic in enumerate(group.nics)}


def arrange(group: Group, mesh: bool, trunks: tuple[int, int], size: float, label: str) -> Box:
    """Lay out a box.

    Parameters
    ----------
    group : Group
        Its nodes.
    mesh : bool
        On a circle rather than in columns.
    trunks : (int, int)
        Bundles of cables that leave on the left and on the right.
    size : float
        Side of a GPU's square [points].
    label : str
        Text for a single switch, set along it if it is long enough.
    """
    core = _circle(group, size) if mesh else _columns(group, size, label)
    channel = [_GAP + 3.0 * min(n, 12) if n else 0.0 for n in trunks]
    nic_side = 9.0 + _GAP if group.nics else 0.0
    left, bottom = _PAD + channel[0] + nic_side, _PAD + _others_height(group)
    width = left + core.width + nic_side + channel[1] + _PAD
    extra = max(0.0, text_width(group.label, 8.0) - width, 20.0 * min(len(group.others), 6) + 2 * _PAD - width) / 2
    left, width = left + extra, width + 2 * extra
    spots = {node: spot.moved(left, bottom) for node, spot in core.spots.items()}
    spots |= _nic_spots(group, left - _GAP - 4.5, left + core.width + _GAP + 4.5, bottom, core.height)
    spots |= _other_spots(group, width)
    inner = (left - nic_side - 1.0, left + core.width + nic_side + 1.0)
    trays = tuple(tray.moved(left, bottom) for tray in core.trays)
    hidden = len(group.gpus) - len(shown(group))
    return Box(width, bottom + core.height + _PAD, spots, inner, trays, hidden, core.notes)


def _columns(group: Group, size: float, label: str) -> Box:
    trays = _rows(group)
    pitch, tray_gap = size + 2.0, 3.0 if len(trays) > 1 else 0.0
    height = pitch * sum(map(len, trays)) + tray_gap * (len(trays) - 1)
    long_enough = len(group.hubs) == 1 and bool(label) and text_width(label, 7.5) < height
    if not group.hubs:
        middle = 2.0 if len(group.gpus) > 1 else -size
    else:
        middle = 2 * _GAP + (14.0 if long_enough else 7.0 if len(group.hubs) == 1 else 7.0 * len(group.hubs) - 3.0)
    width = 2 * size + middle
    spots: dict[str, Spot] = {}
    frames, y = [], height
    for tray in trays:
        tall = pitch * len(tray)
        frames.append(Spot(width / 2, y - tall / 2, width + 3.0, tall + 1.0))
        for left, right in tray:
            y -= pitch
            for gpu, x in ((left, size / 2), (right, width - size / 2)):
                if gpu is not None:
                    spots[gpu] = Spot(x, y + pitch / 2, size, size)
        y -= tray_gap
    wide = (middle - 2 * _GAP - 3.0 * (len(group.hubs) - 1)) / max(1, len(group.hubs))
    for i, hub in enumerate(group.hubs):
        spots[hub] = Spot(size + _GAP + wide / 2 + (wide + 3.0) * i, height / 2, wide, height)
    notes = {group.hubs[0]: label} if long_enough else {}
    return Box(width, height, spots, (0.0, width), tuple(frames) if len(frames) > 1 else (), notes=notes)


def _circle(group: Group, size: float) -> Box:
    """Rank 0 at the top left, on against the clock: no two of a half at one height, so no cable hides another."""
    gpus = shown(group)
    n = len(gpus)
    if n > _MOST_ON_CIRCLE:
        return _grid(gpus, size)
    radius = max(3.0 * size, n * (1.42 * size + 2.0) / (2 * math.pi))
    spots = {}
    for i, gpu in enumerate(gpus):
        turn = math.pi / 2 + 2 * math.pi * (i + 0.5) / n
        spots[gpu] = Spot(
            radius + size / 2 + radius * math.cos(turn), radius + size / 2 + radius * math.sin(turn), size, size
        )
    return Box(2 * radius + size, 2 * radius + size, spots, (0.0, 2 * radius + size))


def _grid(gpus: tuple[str, ...], size: float) -> Box:
    columns, pitch = math.ceil(math.sqrt(len(gpus))), 1.8 * size
    rows = math.ceil(len(gpus) / columns)
    spots = {gpu: Spot(size / 2 + pitch * (i % columns), size / 2 + pitch * (rows - 1 - i // columns), size, size)
             for i, gpu in enumerate(gpus)}  # fmt: skip
    width = pitch * (columns - 1) + size
    return Box(width, pitch * (rows - 1) + size, spots, (0.0, width))


def _nic_spots(group: Group, left: float, right: float, bottom: float, height: float) -> dict[str, Spot]:
    half = (len(group.nics) + 1) // 2
    spots = {}
    for nics, x in ((group.nics[:half], left), (group.nics[half:], right)):
        for i, nic in enumerate(nics):
            spots[nic] = Spot(x, bottom + height * (len(nics) - i - 0.5) / len(nics), 7.0, min(6.0, height / len(nics)))
    return spots


def _others_height(group: Group) -> float:
    return 14.0 * math.ceil(min(len(group.others), 18) / 6)


def _other_spots(group: Group, width: float) -> dict[str, Spot]:
    spots = {}
    for i, node in enumerate(group.others[:18]):
        row, n = i // 6, min(6, len(group.others) - 6 * (i // 6))
        spots[node] = Spot(width * (i % 6 + 0.5) / n, _PAD + 4.0 + 14.0 * row, 14.0, 8.0)
    return spots
