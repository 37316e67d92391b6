"""What is said of a box, and how short?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from topo.units import format_quantity

if TYPE_CHECKING:
    from figures._graph import Link
    from figures._scene import Group
    from figures._spots import Box

__all__ = ["abbreviated", "captions", "counted", "describe", "rates", "shortened", "text_width", "wrapped"]

_PLURALS = {"leaf": "leaves"}


def counted(n: int, word: str) -> str:
    """Return a number and what it counts: "1 GPU", "2 switches"."""
    more = _PLURALS.get(word, f"{word}{'es' if word.endswith(('ch', 'x')) else 's'}")
    return f"{n:,} {word if n == 1 else more}"


def text_width(text: str, size: float) -> float:
    """Return a safe estimate of the width of a text [points]."""
    return size * sum(1.0 if c in "MWmw%@…" or ord(c) > 0x1100 else 0.8 if c.isupper() else 0.62 for c in text)


def abbreviated(names: Sequence[str]) -> tuple[list[str], str]:
    """Shorten names that differ in their numbers alone to these, and say what they number.

    >>> abbreviated(["pod0/spine0", "pod0/spine1", "pod1/spine0"])
    (['0/0', '0/1', '1/0'], 'pod/spine')
    >>> abbreviated(["left", "right"])
    (['left', 'right'], '')
    """
    parts = [re.split(r"(\d+)", name) for name in names]
    words = parts[0][::2] if parts else []
    if len(names) < 2 or len(words) < 2 or any(part[::2] != words for part in parts):
        return list(names), ""
    joints = ["", *(re.sub(r"\w+", "", word)[:1] or "." for word in words[1:-1]), ""]
    short = ["".join(f"{joint}{n}" for joint, n in zip(joints, part[1::2], strict=False)) for part in parts]
    return short, "".join(words).strip("./-_: ")


def describe(group: Group, inside: Sequence[Link], planes: Mapping[str, int]) -> str:
    """Say how the GPUs of a box are joined and how fast; a folded switch stands for its planes."""
    gpus = set(group.gpus)
    up = [link for link in inside if link.kind == "scale-up" and gpus & set(link.ends)]
    if not up:
        return ""
    if group.hubs:
        each = dict.fromkeys(group.gpus, 0.0)
        for link in up:
            for gpu in gpus & set(link.ends):
                each[gpu] += link.bandwidth
        n = sum(planes[hub] for hub in group.hubs)
        how = counted(n, "switch plane" if n > len(group.hubs) else "switch") if n else "switched"
        return f"{how}, {rates(each.values())} per GPU"
    full = len(up) == len(gpus) * (len(gpus) - 1) // 2
    return (
        f"{'full mesh' if full else counted(len(up), 'direct link')}, {rates(link.bandwidth for link in up)} per pair"
    )


def rates(values: Iterable[float]) -> str:
    """Return bandwidths as one or as a range."""
    found = sorted(set(values))
    low, high = (format_quantity(value, "bandwidth", 3) for value in (found[0], found[-1]))
    return low if low == high else f"{low} .. {high}"


def captions(groups: Sequence[Group], boxes: Sequence[Box], wired: bool) -> list[str]:
    """Return what is said below the boxes: what has no room inside, that of all once."""
    said: dict[str, list[str]] = {}
    for group, box in zip(groups, boxes, strict=True):
        if box.say and not box.notes:
            said.setdefault(box.say, []).append(group.label)
    lines = []
    for note, labels in list(said.items())[:4]:
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        every = len(labels) == len(groups) > 1
        lines.append(f"{'each box' if every else ', '.join(labels[:3]) + more}: {note}")
    if wired:
        lines.append("line width: square root of bandwidth, bundled cables added up")
    return lines


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Return a text in lines of the room they have."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(line, width, size) for line in lines]


def shortened(text: str, width: float, size: float) -> str:
    """Return a text cut to the room it has."""
    if text_width(text, size) <= width:
        return text
    kept = text
    while len(kept) > 2 and text_width(f"{kept}…", size) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"
