"""What does speed for a user cost in tokens per GPU?"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from figures._style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, house, own_axes, title
from figures._words import counted
from serving import Sweep
from topo import Fault, InputError

__all__ = ["draw_pareto"]

_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
#: Points beside the front that are drawn, so that a million do not make a file of 50 MB.
_CLOUD = 4000

#: How the operations of a step share time, in short.
_RULES = {
    "lower": "all overlapped", "two_batch": "two batches in turn", "serial": "one operation after the other",
    "lecture": "the lecture's max", "scaling_book": "the scaling book's sum",
}  # fmt: skip


def draw_pareto(sweep: Sweep, *, heading: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw tokens per second of a GPU against what a user sees: all points that fit, and the fronts.

    Parameters
    ----------
    sweep : Sweep
        From `serving.sweep`.
    heading : str, optional
        What was swept; before the answer in the title.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one; the front of each design in its colour.

    Raises
    ------
    InputError
        Nothing fits.

    Examples
    --------
    >>> import topo, serving
    >>> work, model = serving.Workload(batch_per_gpu=1), serving.load_model("mixtral-8x7b")
    >>> found = serving.sweep(topo.load("hgx-h100-8"), model, work, ep=[4, 8], batch=[1, 8, 64, 512])
    >>> draw_pareto(found).get_title(loc="left")
    'From 241.9 tokens/s per user to 4,365 tokens/s per GPU'
    """
    front = [sweep.point(int(i)) for i in sweep.front()]
    if not front:
        raise InputError(Fault("sweep", repr(sweep), "has no point that fits", "Sweep other layouts or batches."))
    with house():
        ax = ax or own_axes(7.6, 4.8)
        _cloud(ax, sweep)
        for name, colour in zip(sweep.axes["design"], _colours(len(sweep.axes["design"])), strict=True):
            rows = [sweep.point(int(i)) for i in sweep.front(name)]
            if rows:
                x, y = ([row[key] for row in rows] for key in ("speed", "tokens_per_gpu"))
                ax.plot(x, y, color=colour, marker="o", markersize=3, linewidth=1.1, label=name, zorder=3)
        _name_some(ax, sweep, front)
        per_user = "tokens/s per user" if (sweep.tokens_per_user[sweep.fits] > 0).any() else "passes/s"
        rule = f"predicted for {sweep.profile}" if sweep.time == "engine" else f"ideal software, {_RULES[sweep.time]}"
        ax.set(xscale="log", yscale="log", xlabel=f"{per_user} [1/s] ({rule})", ylabel="tokens/s per GPU [1/s]")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        ax.grid(which="major")
        ax.legend(loc="lower left")
        said = f"From {front[0]['speed']:,.4g} {per_user} to {front[-1]['tokens_per_gpu']:,.0f} tokens/s per GPU"
        title(ax, f"{heading}: {said[0].lower()}{said[1:]}" if heading else said)
    return ax


def _colours(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]


def _cloud(ax: Axes, sweep: Sweep) -> None:
    """Draw what fits, thinned evenly; where it ends is drawn by the front."""
    there = np.flatnonzero(sweep.fits.ravel())
    shown = there[:: max(1, len(there) // _CLOUD)]
    x, y = sweep.speed.ravel()[shown], sweep.tokens_per_gpu.ravel()[shown]
    label = counted(len(there), "point") + " that fit"
    ax.plot(x, y, marker=".", markersize=2.2, linestyle="", color="#C9CED3", label=label, zorder=1, rasterized=True)


def _name_some(ax: Axes, sweep: Sweep, front: list[dict[str, Any]]) -> None:
    """Write the layout beside the ends and beside points a quarter of the way, as drawn, from each other."""
    names = [name for name in ("ep", "tp", "pp", "batch") if len(sweep.axes[name]) > 1] or ["ep"]
    drawn = np.log([[row["speed"], row["tokens_per_gpu"]] for row in front])
    far = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(drawn, axis=0).T))])
    for i in dict.fromkeys(int(np.argmin(abs(far - one))) for one in np.linspace(0, far[-1], 5)):
        said = ", ".join(f"{name.upper() if name != 'batch' else name} {front[i][name]}" for name in names)
        ax.annotate(said, (front[i]["speed"], front[i]["tokens_per_gpu"]), xytext=(5, 5), textcoords="offset points",
                    fontsize=7.5, color=GREY, zorder=5)  # fmt: skip
