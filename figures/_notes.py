"""What is said in a figure of curves, and where is there room for it? Domains, a budget, what runs off the scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from figures._style import GREY, INK, VERMILION, measured, root_figure
from figures._words import counted

__all__ = ["level_line", "mark_domains", "off_scale"]

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
Span = tuple[float, float]

_HALO = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
_DOMAIN_SIZE, _NOTE_SIZE = 9.0, 8.0
_BAND = 36.0  # of the Axes' top that notes and the names of domains take [points]
_APART = 8.0  # between two texts, and between a text and a line [points]


def level_line(ax: Axes, y: float, text: str) -> None:
    """Draw a level, its name beyond the end of the axis."""
    ax.axhline(y, color=VERMILION, linewidth=1.2, linestyle=(0, (6, 2)))
    ax.annotate(text, (1, y), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
                va="center", color=VERMILION, fontsize=8.5, annotation_clip=False)  # fmt: skip


def mark_domains(ax: Axes, boundary: int | None, domain: str, curve: Curve) -> list[Span]:
    """Tint what lies beyond one domain, say how many domains it takes, and return from where to where each goes."""
    last = float(curve[0].max())
    if not boundary or boundary >= last:
        return [(0.0, last)]
    spans = list(pairwise([*range(0, int(np.ceil(last)), boundary), last]))
    for i, (low, high) in enumerate(spans[1:], start=1):
        ax.axvspan(low, high, color=VERMILION, alpha=min(0.05 * i, 0.2), linewidth=0, zorder=0)
        ax.axvline(low, color=INK if i == 1 else GREY, linewidth=1.1 if i == 1 else 0.6)
    _name_domains(ax, spans, domain, curve)
    return spans


def _name_domains(ax: Axes, spans: Sequence[Span], domain: str, curve: Curve) -> None:
    flat = (curve[0], np.zeros_like(curve[1]))  # in Axes so low that the curve leaves no room, it is written over
    for text, middle in _domain_names(ax, spans, domain, curve) or _domain_names(ax, spans, domain, flat):
        ax.annotate(text, (middle, 1), xycoords=("data", "axes fraction"), xytext=(0, -19),
                    textcoords="offset points", ha="center", va="top", fontsize=_DOMAIN_SIZE, bbox=_HALO,
                    zorder=4)  # fmt: skip


def _domain_names(ax: Axes, spans: Sequence[Span], domain: str, curve: Curve) -> list[tuple[str, float]]:
    """Return "1 rack", "2 racks", ... with their x; later ones as bare numbers if the words are wider than a domain."""
    unit, end = _points(ax)[0] / ax.get_xlim()[1], 0.0
    named: list[tuple[str, float]] = []
    for number, span in enumerate(spans, start=1):
        text = counted(number, domain)
        if named and measured(text, _DOMAIN_SIZE) + _APART > (span[1] - span[0]) * unit:
            text = str(number)
        half = (measured(text, _DOMAIN_SIZE) + _APART) / 2 / unit
        low, high = _clear(ax, curve, span, _BAND, under=True)
        middle = (low + high) / 2
        if high - low < 2 * half:
            middle = max(sum(span) / 2, half)
            low, high = _clear(ax, curve, (middle - half, middle + half), _BAND, under=True)
        if high - low >= 1.999 * half and middle - half >= end - _APART / 2 / unit:
            named.append((text, middle))
            end = middle + half
    return named


def off_scale(ax: Axes, curve: Curve, spans: Sequence[Span]) -> None:
    """Say how far up a curve goes, next to where it leaves the Axes but not on it, in one domain if there is room."""
    x, y = curve
    high = np.flatnonzero(y > ax.get_ylim()[1])
    if not len(high):
        return
    worst = high[np.argmax(y[high])]
    text = f"off scale: {'up to ' if len(high) > 1 else ''}{y[worst]:.0f} ms at {counted(int(x[worst]), 'GPU')}"
    last = ax.get_xlim()[1]
    need = (measured(text, _NOTE_SIZE) + 2 * _APART) * last / _points(ax)[0]
    stretches = [_clear(ax, curve, span, 18.0) for span in spans]
    whole = _clear(ax, curve, (0.0, last), 18.0)
    fitting = [s for s in stretches if s[1] - s[0] >= need] or [whole]
    low, top = min(fitting, key=lambda s: min(abs(s[0] - x[worst]), abs(s[1] - x[worst])))
    left = low if low >= x[worst] else top - need
    ax.annotate(text, (min(max(left, 0.0), last - need), 1), xycoords=("data", "axes fraction"), xytext=(_APART, -4),
                textcoords="offset points", va="top", color=GREY, fontsize=_NOTE_SIZE, bbox=_HALO,
                zorder=4)  # fmt: skip


def _points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the Axes [points], at the least: a layout yet to come makes our own only larger."""
    extent, dpi = ax.get_window_extent(), root_figure(ax).dpi
    return extent.width * 72 / dpi, extent.height * 72 / dpi


def _clear(ax: Axes, curve: Curve, span: Span, below: float, under: bool = False) -> Span:
    """Return the longest stretch of a span in which the curve leaves the uppermost points, that many, free.

    It passes below them, or, with `under`, it may also run above the Axes.
    """
    at = np.linspace(*span, 501)
    top = ax.get_ylim()[1]
    y = np.interp(at, *curve, left=0.0, right=0.0)
    free = ~(y > top * (1.0 - below / _points(ax)[1])) | (under & (y > 1.05 * top))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], free, [False])).astype(int)))
    stretches = [(float(at[a]), float(at[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return max(stretches, key=lambda s: s[1] - s[0], default=(span[0], span[0]))
