"""How does every figure look? One palette, one set of sizes, applied inside each verb and nowhere else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

__all__ = ["BLUE", "GREEN", "GREY", "INK", "LOAD", "ORANGE", "PALE", "PURPLE", "SKY", "TITLE_SIZE", "VERMILION",
           "house", "measured", "own_axes", "root_figure", "title"]  # fmt: skip

# The palette of Okabe and Ito (2008), distinct under the common colour blindnesses.
BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
INK, GREY, PALE = "#1A1A1A", "#6B6B6B", "#F1F3F5"

#: Utilisation 0 .. 1. Lightness only falls, so that it reads in grey print too.
LOAD = LinearSegmentedColormap.from_list("load", ["#9FB3C4", "#E8B34B", "#D55E00", "#7A1200"])

TITLE_SIZE = 11.0

_RC: dict[str, Any] = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.0, "axes.titlesize": TITLE_SIZE,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 8.0, "axes.labelsize": 9.0,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY, "axes.linewidth": 0.8,
    "axes.labelcolor": INK, "axes.axisbelow": True, "axes.facecolor": "white", "figure.facecolor": "white",
    "text.color": INK, "xtick.color": GREY, "ytick.color": GREY, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "legend.fontsize": 8.5, "legend.frameon": False,
    "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "lines.linewidth": 1.8, "hatch.linewidth": 0.6,
    "savefig.facecolor": "white", "savefig.dpi": 150, "figure.dpi": 100, "svg.fonttype": "path",
    "svg.hashsalt": "rackbound", "path.simplify": True, "text.usetex": False, "mathtext.fontset": "dejavusans",
    "axes.unicode_minus": True, "axes.formatter.use_locale": False, "text.parse_math": False,
    "figure.constrained_layout.use": False,
}  # fmt: skip

#: Not looks: settings of the session that a figure has no say in (and "backend" would load pyplot).
_LEFT_ALONE = {"backend", "backend_fallback", "interactive", "toolbar", "webagg.open_in_browser", "timezone"}


#: A name in a script that the font lacks is drawn as boxes; the figure says so itself.
_NO_GLYPH = r"Glyph \d+ \(.*\) missing from"


@contextmanager
def house() -> Iterator[None]:
    """Return a context in which the house style holds; outside it nothing is changed."""
    looks: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if key not in _LEFT_ALONE} | _RC
    with matplotlib.rc_context(looks), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH, category=UserWarning)
        yield


def own_axes(width: float, height: float) -> Axes:
    """Return the Axes of a new figure of that size [inches], laid out so that nothing is cropped."""
    return Figure(figsize=(width, height), layout="constrained").subplots()


def root_figure(ax: Axes) -> Figure:
    """Return the figure that Axes lie in, through subfigures."""
    figure = ax.figure
    return figure if isinstance(figure, Figure) else figure.figure


def measured(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text in the house's font [points], of several lines that of the longest."""
    font = FontProperties(size=size, weight=weight)
    return max(float(text_to_path.get_text_width_height_descent(line, font, False)[0]) for line in text.split("\n"))


def title(ax: Axes, text: str, points: float | None = None, size: float = TITLE_SIZE, **where: Any) -> None:
    """Set the title in as few lines as the width of the Axes or that many points allow, of about one length."""
    width = points or ax.get_window_extent().width * 72 / root_figure(ax).dpi
    columns = range(max(20, len(text)), 19, -1)
    folds = list(dict.fromkeys(fill(text, each, break_on_hyphens=False) for each in columns))
    narrow = [lines for lines in folds if measured(lines, size, "bold") <= width] or folds[-1:]
    wrapped = min(narrow, key=lambda lines: (lines.count("\n"), measured(lines, size, "bold")))
    ax.set_title(wrapped, fontsize=size, parse_math=False, **where)
