"""What is said of a box, and how short?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from figures._scene import Group, Link
from topo.units import format_quantity

__all__ = ["captions", "describe", "shortened"]


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
        word = "switch plane" if n > len(group.hubs) else "switch"
        how = f"{n} {word}{_plural(word, n)}" if n else "switched"
        return f"{how}, {_range(each.values())} per GPU"
    full = len(up) == len(gpus) * (len(gpus) - 1) // 2
    return f"{'full mesh' if full else f'{len(up)} direct links'}, {_range(link.bandwidth for link in up)} per pair"


def _range(values: Iterable[float]) -> str:
    found = sorted(set(values))
    low, high = (format_quantity(value, "bandwidth", 3) for value in (found[0], found[-1]))
    return low if low == high else f"{low} .. {high}"


def _plural(word: str, n: int) -> str:
    return "" if n == 1 else "es" if word.endswith("ch") else "s"


def captions(groups: Sequence[Group], inside: Sequence[bool], notes: Sequence[str], wired: bool) -> list[str]:
    """Return what is said below the boxes: notes that have no room inside, those of all once."""
    said: dict[str, list[str]] = {}
    for group, room, note in zip(groups, inside, notes, strict=True):
        if note and not room:
            said.setdefault(note, []).append(group.label)
    lines = []
    for note, labels in list(said.items())[:4]:
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        every = len(labels) == len(groups) > 1
        lines.append(f"{'each box' if every else ', '.join(labels[:3]) + more}: {note}")
    if wired:
        lines.append("line width: square root of bandwidth, bundled cables added up")
    return lines


def shortened(text: str, width: float, size: float) -> str:
    """Return a text cut to the room it has."""
    most = max(3, int(width / (0.58 * size)))
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
