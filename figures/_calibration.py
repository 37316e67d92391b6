"""How well do fitted constants meet what was measured? Time over size, and below it the ratio of the two."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from collectives import Calibration, Curve
from figures._style import BLUE, GREEN, GREY, ORANGE, PALE, PURPLE, SKY, VERMILION, house, own_axes, root_figure, title
from topo.units import format_quantity

__all__ = ["draw_calibration"]

_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
_MARKERS = ("o", "s", "^", "D", "v", "P")
#: The panel of ratios shows at least this factor each way, at most that one; what is beyond stands on its edge.
_NARROW, _WIDE = 1.3, 5.0
_TICKS = (0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0)


def draw_calibration(found: Calibration, *, heading: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw measured against fitted times, and below it fitted / measured.

    Parameters
    ----------
    found : Calibration
        What `collectives.calibrate` returns.
    heading : str, optional
        The title; by default how far off the fit is.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one: points are measured, lines fitted. It gives up the
        lower third of its place to the ratios, the figure's last Axes.
    """
    with house():
        ax = ax or own_axes(7.2, 5.6)
        panel = _below(ax)
        for number, (curve, colour) in enumerate(zip(found.curves, cycle(_COLOURS), strict=False)):
            _draw(ax, panel, curve, colour, _MARKERS[number // len(_COLOURS) % len(_MARKERS)])
        ax.set(ylabel="time of one collective", yscale="log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_quantity(float(y), "seconds")))
        ax.legend(loc="upper left", title="points measured, lines fitted", title_fontsize=8.5, alignment="left")
        _finish(panel, _reach(found))
        for each in (ax, panel):
            each.set_xscale("log")
            each.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_quantity(float(x), "bytes")))
            each.xaxis.set_minor_locator(NullLocator())
            each.yaxis.set_minor_locator(NullLocator())
        panel.set_xlim(ax.get_xlim())
        title(ax, heading or _heading(found))
    return ax


def _below(ax: Axes) -> Axes:
    """Return new Axes in the lower third of the place that Axes have, which they leave."""
    figure, spec = root_figure(ax), ax.get_subplotspec()
    if spec is None:
        box = ax.get_position()
        ax.set_position((box.x0, box.y0 + 0.4 * box.height, box.width, 0.6 * box.height))
        return figure.add_axes((box.x0, box.y0, box.width, 0.28 * box.height))
    rows = spec.subgridspec(2, 1, height_ratios=(2.6, 1))
    ax.set_subplotspec(rows[0])
    return figure.add_subplot(rows[1])


def _draw(ax: Axes, panel: Axes, curve: Curve, colour: str, marker: str) -> None:
    order = np.argsort(curve.n_bytes, kind="stable")
    sizes, measured, fitted = (np.array(row)[order] for row in (curve.n_bytes, curve.measured, curve.fitted))
    label = f"{curve.kind}, {curve.n_ranks} ranks in {curve.n_domains} domain{'s' if curve.n_domains > 1 else ''}"
    dots: dict[str, Any] = {"marker": marker, "markerfacecolor": "white", "color": colour}
    ax.plot(sizes, fitted, color=colour)
    ax.plot(sizes, measured, linestyle="none", markersize=4.5, label=label, **dots)
    panel.plot(sizes, np.clip(fitted / measured, 1 / _WIDE, _WIDE), markersize=3.5, linewidth=0.9, **dots)


def _reach(found: Calibration) -> float:
    """Return the factor each way that the panel shows."""
    ratios = [np.abs(np.log(np.array(curve.fitted) / np.array(curve.measured))).max() for curve in found.curves]
    return float(np.clip(np.exp(max(ratios)) * 1.05, _NARROW, _WIDE))


def _finish(panel: Axes, reach: float) -> None:
    panel.axhspan(0.9, 1.1, color=PALE, zorder=0)
    panel.axhline(1, color=GREY, linewidth=0.8)
    panel.set(yscale="log", ylim=(1 / reach, reach), xlabel="size", ylabel="fitted / measured")
    shown = [tick for tick in _TICKS if 1 / reach <= tick <= reach]
    if reach > 2:
        shown = [tick for tick in shown if tick in (0.2, 0.33, 0.5, 1.0, 2.0, 3.0, 5.0)]
    panel.set_yticks(shown, [f"{tick:g}" for tick in shown])


def _heading(found: Calibration) -> str:
    return (
        f"{found.profile.name}: the fit is {found.median:.1%} off at the median, {found.p90:.1%} at the 90th "
        f"percentile of {found.n_rows} rows"
    )
