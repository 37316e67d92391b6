"""How do quantities go with one another? Lines, points, and where on the axes something happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import ArrayLike, NDArray

from figures._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    house,
    measured,
    own_axes,
    root_figure,
    title,
)
from figures._words import shortened
from topo import Fault, InputError

__all__ = ["Line", "draw_lines"]

#: Colour and dashes of the lines in order, told apart in print too.
_LOOKS = (
    (INK, "-"), (BLUE, (0, (5, 2))), (ORANGE, (0, (1, 1.2))), (GREEN, (0, (5, 1.5, 1, 1.5))),
    (VERMILION, (0, (8, 2))), (PURPLE, (0, (3, 1, 1, 1, 1, 1))), (SKY, (0, (2, 2))),
)  # fmt: skip
_MARKERS = "osD^"
_SIZE = 8.5
_COLUMNS = 3
_HALO = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}


@dataclass(frozen=True, eq=False)
class Line:
    """One quantity.

    Parameters
    ----------
    name : str
        In the legend.
    x, y : (n,) array
        Where not finite there is a gap.
    points : bool, optional
        Points instead of a line: what was computed another way.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    points: bool = False


def draw_lines(
    lines: Sequence[Line],
    *,
    xlabel: str,
    ylabel: str,
    heading: str,
    log: str = "xy",
    marks: Mapping[str, float] | None = None,
    levels: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw lines over one axis.

    Parameters
    ----------
    lines : sequence of Line
        The first is drawn strongest.
    xlabel, ylabel, heading : str
        Axes with units, and the answer as title.
    log : {"", "x", "y", "xy"}, optional
        Axes with a logarithmic scale.
    marks, levels : mapping of str to float, optional
        Text -> place on the x-axis and on the y-axis; what is outside is left out.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one.

    Raises
    ------
    InputError
        No lines, or one whose x and y differ in length.

    Examples
    --------
    >>> ax = draw_lines(
    ...     [Line("time", [1, 10, 100], [2, 2, 20])],
    ...     xlabel="batch",
    ...     ylabel="time [ms]",
    ...     heading="Flat, then not",
    ...     marks={"knee": 10},
    ... )
    >>> [text.get_text() for text in ax.texts]
    ['knee']
    """
    _require(lines)
    with house():
        ax = ax or own_axes(7.2, 4.4)
        looks, markers = cycle(_LOOKS), cycle(_MARKERS)
        for number, line in enumerate(lines):
            _points(ax, line, next(markers)) if line.points else _curve(ax, line, *next(looks), strong=number == 0)
        _scales(ax, log)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.grid(axis="both")
        _legend(ax)
        _levels(ax, levels or {})
        _marks(ax, marks or {})
        title(ax, heading, pad=6 + 14 * -(-len(lines) // _COLUMNS))
    return ax


def _require(lines: Sequence[Line]) -> None:
    faults = [Fault("lines", 0, "must be at least one", "Pass what to draw.")] if not lines else []
    for line in lines:
        x, y = np.size(line.x), np.size(line.y)
        if x != y or not x:
            faults.append(Fault(line.name, f"{x} x and {y} y", "must be as many, at least one", "Correct it."))
    if faults:
        raise InputError(*faults)


def _points(ax: Axes, line: Line, marker: str) -> None:
    ax.plot(line.x, _gaps(line), linestyle="", marker=marker, markersize=5, color=VERMILION, markerfacecolor="white",
            markeredgewidth=1.3, label=_name(line), zorder=5, clip_on=False)  # fmt: skip


def _curve(ax: Axes, line: Line, colour: str, dashes: Any, *, strong: bool) -> None:
    ax.plot(line.x, _gaps(line), color=colour, linestyle=dashes, linewidth=2.2 if strong else 1.6, label=_name(line),
            zorder=4 if strong else 3)  # fmt: skip


def _gaps(line: Line) -> NDArray[np.float64]:
    y = np.asarray(line.y, dtype=np.float64).ravel()
    return np.where(np.isfinite(y), y, np.nan)


def _name(line: Line) -> str:
    return shortened(line.name, 260.0, _SIZE)


def _scales(ax: Axes, log: str) -> None:
    for letter, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if letter in log:
            (ax.set_xscale if letter == "x" else ax.set_yscale)("log")
            axis.set_major_locator(LogLocator(numticks=9))
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(FuncFormatter(_plain))
        else:
            axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ax.margins(x=0)
    if "y" not in log:
        ax.set_ylim(bottom=0)


def _plain(value: float, _: int | None = None) -> str:
    """Return a power of ten as people write it.

    >>> _plain(1000.0), _plain(1e6), _plain(0.01), _plain(1e-5)
    ('1,000', '1 M', '0.01', '0.00001')
    """
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:g} {letter}"
    if value >= 1 or value <= 0:
        return f"{value:,g}"
    return np.format_float_positional(value, precision=6, unique=False, fractional=False, trim="-")


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=_COLUMNS, borderaxespad=0.2,
               borderpad=0.2, handlelength=2.6, columnspacing=1.4)  # fmt: skip


def _levels(ax: Axes, levels: Mapping[str, float]) -> None:
    low, high = ax.get_ylim()
    for text, y in levels.items():
        if low <= y <= high:
            ax.axhline(y, color=GREY, linewidth=1.0, linestyle=(0, (6, 2)), zorder=2)
            ax.annotate(text, (1, y), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
                        va="center", color=GREY, fontsize=_SIZE, annotation_clip=False)  # fmt: skip


def _marks(ax: Axes, marks: Mapping[str, float]) -> None:
    """Draw vertical lines, their names in the room above the curves, every other one lower."""
    low, high = ax.get_xlim()
    inside = sorted((x, text) for text, x in marks.items() if low <= x <= high)
    if inside:
        _raise(ax, 0.13)
    for number, (x, text) in enumerate(inside):
        ax.axvline(x, color=VERMILION, linewidth=1.0, linestyle=(0, (2, 2)), zorder=2)
        at = float(ax.transAxes.inverted().transform(ax.transData.transform((x, ax.get_ylim()[0])))[0])
        width = ax.get_window_extent().width * 72 / root_figure(ax).dpi
        left = measured(text, _SIZE) + 6 > (1 - at) * width
        ax.annotate(text, (x, 1), xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
                    xytext=(-3 if left else 3, -2 - 13 * (number % 2)), ha="right" if left else "left",
                    color=VERMILION, fontsize=_SIZE, bbox=_HALO, zorder=6)  # fmt: skip


def _raise(ax: Axes, share: float) -> None:
    """Leave a share of the axis free above what is drawn."""
    low, high = ax.get_ylim()
    if ax.get_yscale() == "log":
        ax.set_ylim(low, high * (high / low) ** (share / (1 - share)))
    else:
        ax.set_ylim(low, high + (high - low) * share / (1 - share))
