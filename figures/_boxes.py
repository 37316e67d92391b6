"""Where in its box is each GPU, switch and NIC? Pure arithmetic in points, the origin at the box's lower left."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import zip_longest

from figures._scene import Group
from figures._spots import Box, Spot
from figures._words import counted, text_width

__all__ = ["arrange", "columns", "label", "sides"]

MOST_GPUS = 96
_GAP, _PAD = 4.0, 5.0


def _shown(group: Group) -> tuple[str, ...]:
    """Return the GPUs of a box that are drawn; of very many the first."""
    return group.gpus if len(group.gpus) <= MOST_GPUS else group.gpus[: MOST_GPUS - 4]


def _rows(group: Group) -> list[list[tuple[str | None, str | None]]]:
    """Trays of rows of two GPUs, left and right of the switch."""
    gpus = _shown(group)
    hosts: dict[object, list[str]] = {}
    for gpu, host in zip(gpus, group.hosts, strict=False):
        hosts.setdefault(host, []).append(gpu)
    trays = list(hosts.values())
    if max(map(len, trays)) == 1 or (len(trays) == 1 and len(gpus) > 16):
        trays = [list(gpus[i : i + 4]) for i in range(0, len(gpus), 4)]
    halves = [(tray[: (len(tray) + 1) // 2], tray[(len(tray) + 1) // 2 :]) for tray in trays]
    return [list(zip_longest(left, right)) for left, right in halves]


def sides(group: Group, core: Box, mesh: bool) -> dict[str, int]:
    """Return on which side a node's cables leave its box: -1 left, 1 right; where none, at the top."""
    if len(group.nodes) == 1 or core.sealed:
        return {}
    gpus = [gpu for gpu in group.gpus if gpu in core.spots]
    if mesh:
        found = {gpu: -1 if i < (len(gpus) + 1) // 2 else 1 for i, gpu in enumerate(gpus)}
    else:
        found = {gpu: -1 if core.spots[gpu].x < core.width / 2 else 1 for gpu in gpus}
    half = (len(group.nics) + 1) // 2
    return found | {nic: -1 if i < half else 1 for i, nic in enumerate(group.nics)}


def label(group: Group, hidden: int) -> str:
    """Return what is written below a box: its name, and how many of its GPUs are not drawn."""
    return group.label + (f" (+{counted(hidden, 'GPU')})" if hidden else "")


def arrange(group: Group, core: Box, trunks: tuple[int, int]) -> Box:
    """Put the rest of a box around its GPUs: NICs at the sides, PCIe and CPUs below, cable channels.

    Parameters
    ----------
    group : Group
        Its nodes.
    core : Box
        Its GPUs and scale-up switches laid out.
    trunks : (int, int)
        Bundles of cables that leave on the left and on the right.
    """
    group = replace(group, nics=tuple(nic for nic in group.nics if nic not in core.spots),
                    others=tuple(node for node in group.others if node not in core.spots))  # fmt: skip
    channel = [_GAP + 3.0 * min(n, 12) if n else 0.0 for n in trunks]
    nic_side = 9.0 + _GAP if group.nics else 0.0
    left, bottom = _PAD + channel[0] + nic_side, _PAD + _others_height(group)
    width = left + core.width + nic_side + channel[1] + _PAD
    extra = (
        max(
            0.0, text_width(label(group, core.hidden), 8.0) - width, 20.0 * min(len(group.others), 6) + 2 * _PAD - width
        )
        / 2
    )
    left, width = left + extra, width + 2 * extra
    inner = (left - nic_side - 1.0, left + core.width + nic_side + 1.0)
    core = core.moved(left, bottom)
    spots = core.spots | _nic_spots(group, left - _GAP - 4.5, left + core.width + _GAP + 4.5, bottom, core.height)
    spots |= _other_spots(group, width)
    return replace(core, width=width, height=bottom + core.height + _PAD, spots=spots, inner=inner)


def columns(group: Group, size: float, note: str) -> Box:
    """Lay out GPUs in trays on both sides of their switches; `note` is set along a single long one."""
    trays = _rows(group)
    pitch, tray_gap = size + 2.0, 3.0 if len(trays) > 1 else 0.0
    height = pitch * sum(map(len, trays)) + tray_gap * (len(trays) - 1)
    long_enough = len(group.hubs) == 1 and bool(note) and text_width(note, 7.5) < height
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
    notes = {group.hubs[0]: note} if long_enough else {}
    hidden = len(group.gpus) - len(_shown(group))
    return Box(width, height, spots, (0.0, width), tuple(frames) if len(frames) > 1 else (), hidden, notes, say=note)


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
