"""Which links are busy when, and who arrives last?"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from collectives import Timeline
from figures._style import BLUE, GREEN, GREY, INK, ORANGE, house, own_axes, title
from figures._words import shortened
from topo import Fault, InputError
from topo.units import format_quantity

__all__ = ["draw_timeline"]

_COLOURS = {"scale-up": BLUE, "scale-out": ORANGE, "pcie": GREEN}
#: Strokes tell classes apart where colour does not.
_STROKES = {"scale-up": "-", "scale-out": (0, (6, 1.5)), "pcie": (0, (2, 1.5))}
_INTERVALS = 240
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def draw_timeline(timeline: Timeline, *, name: str = "", ax: Axes | None = None) -> Axes:
    """Draw how busy every class of links is while a collective runs.

    Parameters
    ----------
    timeline : Timeline
        What `collectives.simulate` returns.
    name : str, optional
        Of the design, for the title.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. A line is a class's part in use, its edge that of
        its busiest link; the grey line is the part of flows that have arrived.

    Raises
    ------
    InputError
        Nothing is sent.

    Examples
    --------
    >>> import topo, collectives
    >>> found = collectives.simulate(topo.load("hgx-h100-8", 2), "all_to_all", 16e9)
    >>> draw_timeline(found, name="hgx-h100-8").get_title(loc="left")
    'hgx-h100-8: all_to_all takes 160 ms, scale-out is 100 % in use'
    """
    if not len(timeline.times):
        raise InputError(Fault("timeline", repr(timeline), "sends nothing", "Give more than one rank, and bytes."))
    ends, classes = timeline.intervals(_INTERVALS)
    scale, unit = next((row for row in _SCALES if row[0] <= ends[-1]), _SCALES[-1])
    edges = np.concatenate([[0.0], ends]) / scale
    with house():
        ax = ax or own_axes(7.6, 3.6)
        for kind, use in classes.items():
            if use.most.max() > 0:
                ax.stairs(use.most, edges, color=_COLOURS[kind], alpha=0.18, fill=True, linewidth=0, zorder=1)
                ax.stairs(use.mean, edges, color=_COLOURS[kind], linestyle=_STROKES[kind], linewidth=1.8, label=kind)
        arrived = np.sort(timeline.flow_ends) / scale
        ax.ecdf(arrived, color=GREY, linewidth=1.2, linestyle=":", label="flows that have arrived")
        ax.set(xlim=(0, edges[-1] * 1.01), ylim=(0, 1.04), xlabel=f"time [{unit}]", ylabel="part in use")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.xaxis.set_major_locator(MaxNLocator(7))
        ax.grid(axis="y")
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=4, labelcolor=INK, borderaxespad=0)
        ax.annotate("tint: a class's busiest link", (1, 1), xycoords="axes fraction", xytext=(0, 4),
                    textcoords="offset points", ha="right", color=GREY, fontsize=8)  # fmt: skip
        title(ax, _heading(timeline, name), pad=18)
    return ax


def _heading(timeline: Timeline, name: str) -> str:
    where = f"{shortened(name, 200.0, 11.0)}: " if name else ""
    _, whole = timeline.intervals(1)
    busy = max(whole, key=lambda kind: whole[kind].mean[0])
    time = format_quantity(timeline.seconds, "seconds", 3)
    return f"{where}{timeline.kind} takes {time}, {busy} is {100 * whole[busy].mean[0]:.3g} % in use"
