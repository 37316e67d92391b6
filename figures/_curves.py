"""What does one more GPU do? Step time, and the largest expert layer, against the width of the group."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import ArrayLike, NDArray

from figures._notes import level_line, mark_domains, off_scale
from figures._style import BLUE, GREY, ORANGE, SKY, VERMILION, house, own_axes, title
from figures._words import counted
from placement import ExpertLayerBound
from topo import Fault, InputError

__all__ = ["draw_step_time", "draw_width_curve"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ROOM = 1.015  # the axis ends a little beyond the widest group


def draw_step_time(
    width: ArrayLike,
    serial: ArrayLike,
    lower: ArrayLike | None = None,
    *,
    all_to_all: ArrayLike | None = None,
    fits: ArrayLike | None = None,
    budget: float | None = None,
    boundary: int | None = None,
    domain: str = "rack",
    heading: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the time of a step against the width of its expert-parallel group.

    Parameters
    ----------
    width : (n,) int
        GPUs of the group, ascending.
    serial : (n,) float
        Step time if only a kernel's own traffic overlaps [s], `Step.serial`.
    lower : (n,) float, optional
        Step time if everything overlaps [s], `Step.lower`.
    all_to_all : (n,) float, optional
        Dispatch and combine, a part of `serial` [s]; shaded.
    fits : (n,) bool, optional
        Whether it fits in memory, `Step.fits`; where not, the line is dashed and hollow.
    budget : float, optional
        Time a step may take [s]; a horizontal line.
    boundary : int, optional
        GPUs of one scale-up domain; wider groups are tinted and labelled "2 racks", ...
    domain : str, optional
        What a scale-up domain is called, "rack" or "domain".
    heading : str, optional
        The title; by default it says what the first step beyond the boundary costs.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one.

    Raises
    ------
    InputError
        Arrays of different lengths, or none.

    Examples
    --------
    >>> ax = draw_step_time([36, 72, 144], [9e-3, 8e-3, 20e-3], budget=15e-3, boundary=72)
    >>> ax.get_title(loc="left")
    'Leaving the rack: 8 ms at 72 GPUs, 20 ms at 144'
    """
    x = np.asarray(width, dtype=np.float64).ravel()
    y = _column("serial", serial, len(x)) * 1e3
    held = np.ones(len(x), bool) if fits is None else _column("fits", fits, len(x)).astype(bool)
    with house():
        ax = ax or own_axes(7.2, 4.2)
        top = _ceiling(y, held, budget)
        if all_to_all is not None:
            _shade(ax, x, y, _column("all_to_all", all_to_all, len(x)) * 1e3)
        if lower is not None:
            ax.plot(x, _column("lower", lower, len(x)) * 1e3, color=SKY, linestyle=(0, (1, 1)), label="lower bound")
        _with_gaps(ax, x, y, held, "step time, serial")
        ax.set(xlim=_limits(x), ylim=(0, top), xlabel="GPUs in the expert-parallel group", ylabel="step time [ms]")
        if budget is not None:
            level_line(ax, budget * 1e3, f"budget\n{budget * 1e3:g} ms")
        off_scale(ax, (x, y), mark_domains(ax, boundary, domain, (x, y)))
        _finish(ax, heading or _step_heading(x, y, boundary, domain))
    return ax


def draw_width_curve(
    bound: ExpertLayerBound, *, boundary: int | None = None, domain: str = "rack", ax: Axes | None = None
) -> Axes:
    """Draw the largest expert layer against the width of its group, best point marked.

    Parameters
    ----------
    bound : ExpertLayerBound
        What `placement.expert_layer_bound` returns; its `curve` is drawn.
    boundary : int, optional
        GPUs of one scale-up domain; by default the widest group the curve has in one.
    domain : str, optional
        What a scale-up domain is called, "rack" or "domain".
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. Without a curve (a dense model) the reason stands in it.

    Examples
    --------
    >>> import topo, serving, placement
    >>> bound = placement.expert_layer_bound(
    ...     topo.load("hgx-h100-8", domains=2),
    ...     serving.load_model("deepseek-v3"),
    ...     serving.Workload(batch_per_gpu=114),
    ...     step_budget=20e-3,
    ... )
    >>> draw_width_curve(bound, domain="domain").get_title(loc="left")
    'At most 32 experts in 20 ms, on 8 GPUs in one domain'
    """
    curve, budget = bound.curve, f"{bound.step_budget * 1e3:g} ms"
    with house():
        ax = ax or own_axes(7.2, 4.2)
        if not bound.n_experts:
            return _only_text(ax, bound.status, bound.binding)
        x, y = curve.width.astype(float), curve.n_experts.astype(float)
        ceiling = x * curve.memory_experts
        ax.plot(x, ceiling, color=GREY, linestyle=(0, (1, 1)), linewidth=1.2, label="what memory alone would hold")
        ax.plot(x, y, color=BLUE, label=f"experts per layer within {budget}")
        ax.set(xlim=_limits(x), ylim=(0, 1.4 * y.max()), xlabel="GPUs in the expert-parallel group", ylabel="experts")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        one = int(curve.width[curve.domains == 1].max(initial=0)) or None
        mark_domains(ax, boundary if boundary is not None else one, domain, (x, y))
        _mark_best(ax, bound)
        where = f"in one {domain}" if bound.width == bound.one_domain[1] else f"over several {domain}s"
        most, on = counted(bound.n_experts, "expert"), counted(bound.width, "GPU")
        _finish(ax, f"At most {most} in {budget}, on {on} {where}")
    return ax


def _column(name: str, values: ArrayLike, n: int) -> Floats:
    column = np.asarray(values, dtype=np.float64).ravel()
    if len(column) != n or n == 0:
        rule = f"must have one value per width, {n}" if n else "must have at least one value"
        raise InputError(Fault(name, len(column), rule, "Pass arrays of one length."))
    return column


def _ceiling(y: Floats, held: Bools, budget: float | None) -> float:
    """Top of the time axis: what fits fills it; what does not fit may run out of it, and is noted."""
    shown = y[held & np.isfinite(y)] if (held & np.isfinite(y)).any() else y[np.isfinite(y)]
    highest = max(float(shown.max(initial=0.0)), (budget or 0.0) * 1e3)
    return 1.25 * highest or 1.0


def _limits(x: Floats) -> tuple[float, float]:
    return 0.0, float(x.max()) * _ROOM


def _shade(ax: Axes, x: Floats, y: Floats, wires: Floats) -> None:
    """Fill the areas, opaque: a tint behind them must not change the colours that the legend explains."""
    looks: dict[str, Any] = {"linewidth": 0, "zorder": 1}
    ax.fill_between(x, 0, y - wires, color=_pale(BLUE, 0.12), label="compute and memory", **looks)
    ax.fill_between(x, y - wires, y, color=_pale(ORANGE, 0.45), label="all-to-all", **looks)


def _pale(colour: str, share: float) -> tuple[float, ...]:
    return tuple(1.0 - share * (1.0 - part) for part in to_rgb(colour))


def _with_gaps(ax: Axes, x: Floats, y: Floats, held: Bools, label: str) -> None:
    """Draw a line, dashed and hollow where it does not hold."""
    few = len(x) <= 40
    ax.plot(x, np.where(held, y, np.nan), color=BLUE, marker="o" if few else "", markersize=4.5, label=label)
    if held.all():
        return
    edge = ~held | np.append(~held[1:], False) | np.insert(~held[:-1], 0, False)  # up to the first point that holds
    ax.plot(x, np.where(edge, y, np.nan), color=BLUE, linestyle=(0, (3, 2)), linewidth=1.3)
    hollow = {"color": BLUE, "linestyle": "", "marker": "o", "markerfacecolor": "white", "markersize": 4.5}
    ax.plot(x, np.where(held, np.nan, y), label="does not fit in memory", **hollow)  # type: ignore[arg-type]


def _mark_best(ax: Axes, bound: ExpertLayerBound) -> None:
    ax.plot([bound.width], [bound.n_experts], marker="o", color=VERMILION, markersize=7, linestyle="", zorder=5)
    left = bound.width > ax.get_xlim()[1] / 2
    text = f"{counted(bound.n_experts, 'expert')} on {counted(bound.width, 'GPU')},\n{bound.experts_per_gpu} on each"
    ax.annotate(text, (bound.width, bound.n_experts), xytext=(-9 if left else 9, 4), textcoords="offset points",
                ha="right" if left else "left", va="bottom", color=VERMILION, fontsize=8.5)  # fmt: skip


def _step_heading(x: Floats, y: Floats, boundary: int | None, domain: str) -> str:
    inside, beyond = (np.flatnonzero(x <= (boundary or 0)), np.flatnonzero(x > (boundary or np.inf)))
    if not len(inside) or not len(beyond):
        return "Step time against width"
    a, b = inside[-1], beyond[0]
    return f"Leaving the {domain}: {y[a]:.3g} ms at {counted(int(x[a]), 'GPU')}, {y[b]:.3g} ms at {x[b]:g}"


def _only_text(ax: Axes, status: str, reason: str) -> Axes:
    ax.set_axis_off()
    ax.text(0.5, 0.5, fill(reason, 64), transform=ax.transAxes, ha="center", va="center", color=GREY)
    title(ax, status[0].upper() + status[1:])
    return ax


def _finish(ax: Axes, heading: str) -> None:
    """Put the legend between title and data, where it covers neither."""
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=9))
    ax.set_axisbelow("line")  # over the areas, under the curves
    ax.grid(axis="y")
    handles, labels = ax.get_legend_handles_labels()
    columns = 3
    ax.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, borderaxespad=0.2,
              borderpad=0.2, handlelength=1.6, columnspacing=1.4)  # fmt: skip
    title(ax, heading, pad=6 + 14 * -(-len(handles) // columns))
