"""Where does the time of one step go?"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from figures._style import BLUE, GREY, INK, ORANGE, PALE, SKY, VERMILION, house, own_axes, title
from figures._words import shortened
from serving import Step
from topo.units import format_quantity

__all__ = ["draw_step"]

#: What an operation waits for: colour, hatch for print.
_LOOKS = {"compute": (BLUE, ""), "memory": (SKY, "...."), "network": (VERMILION, "////")}
#: Totals below the operations, as `Step.times` calls them.
_TOTALS = {
    "serial": "one after the other",
    "two_batch": "two batches in turn",
    "lower": "all overlapped",
}
_SIZE = 8.5
_NAME = 190.0  # what a name may take beside the axis [points]


def draw_step(step: Step, *, heading: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the operations of a step as a waterfall, and below it the totals with more or less overlap.

    Parameters
    ----------
    step : Step
        From `serving.step`.
    heading : str, optional
        What the step is of; before the answer in the title.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. A bar starts where the one above ends; the dark line in it
        is the time of what it hides.

    Examples
    --------
    >>> import topo, serving
    >>> found = serving.step(
    ...     topo.load("gb200-nvl72"), serving.load_model("deepseek-v3"), serving.Workload(batch_per_gpu=114)
    ... )
    >>> draw_step(found, heading="deepseek-v3").get_title(loc="left")
    'deepseek-v3: 8.89 ms, 46 % of it attention and KV cache'
    """
    with house():
        ax = ax or own_axes(8.0, 1.7 + 0.34 * (len(step.parts) + len(_TOTALS)))
        unit, scale = ("s", 1.0) if step.serial >= 1 else ("ms", 1e3) if step.serial >= 1e-3 else ("us", 1e6)
        _bars(ax, step, scale)
        _axis(ax, step, scale, unit)
        longest = max(step.parts, key=lambda part: part.seconds)
        share = f"{100 * longest.seconds / step.serial:.0f} % of it {longest.name}"
        before = f"{shortened(heading, 260.0, 11.0)}: " if heading else ""
        title(ax, f"{before}{format_quantity(step.serial, 'seconds', 3)}, {share}", pad=26)
    return ax


def _bars(ax: Axes, step: Step, scale: float) -> None:
    start = 0.0
    for row, part in enumerate(step.parts):
        colour, hatch = _LOOKS[part.resource]
        ax.barh(row, part.seconds * scale, 0.66, left=start * scale, color=colour, hatch=hatch, edgecolor="white",
                linewidth=0)  # fmt: skip
        other = sorted((part.compute_seconds, part.memory_seconds, part.network_seconds))[1]
        if other > 0:
            ax.hlines(row + 0.24, start * scale, (start + other) * scale, color=INK, linewidth=1.4)
        start += part.seconds
        _label(ax, start * scale, row, format_quantity(part.seconds, "seconds", 3))
    for row, name in enumerate(_TOTALS, len(step.parts)):
        colour = ORANGE if name == step.time else GREY
        ax.barh(row, step.times[name] * scale, 0.66, color=colour, linewidth=0)
        _label(ax, step.times[name] * scale, row, format_quantity(step.times[name], "seconds", 3))


def _label(ax: Axes, x: float, y: float, text: str) -> None:
    ax.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=_SIZE)


def _axis(ax: Axes, step: Step, scale: float, unit: str) -> None:
    names = [shortened(part.name, _NAME, _SIZE) for part in step.parts] + list(_TOTALS.values())
    ax.set_yticks(range(len(names)), labels=names, parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.axhspan(len(step.parts) - 0.5, len(names), color=PALE, zorder=0)
    ax.set_xlim(0, step.serial * scale * 1.14)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ax.set_xlabel(f"time of one pass through all layers [{unit}]")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    waits = dict.fromkeys(part.resource for part in step.parts)
    handles = [*(Patch(facecolor=_LOOKS[name][0], hatch=_LOOKS[name][1], edgecolor="white", linewidth=0,
                       label=f"waits for {name}") for name in waits),
               Line2D([], [], color=INK, linewidth=1.4, label="hidden")]  # fmt: skip
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, borderaxespad=0.4, borderpad=0.0,
              handlelength=1.4, columnspacing=1.2)  # fmt: skip
