"""Which failure costs most, in time or in experts?"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from collectives import Failure, Failures
from figures._style import BLUE, GREY, VERMILION, house, own_axes, title
from figures._words import counted, shortened
from placement import BoundFailures
from topo import Fault, InputError
from topo.units import format_quantity

__all__ = ["draw_bound_failures", "draw_failures"]

_SIZE = 8.5


def draw_failures(failures: Failures, *, name: str = "", most: int = 12, ax: Axes | None = None) -> Axes:
    """Draw what each single failure makes of a collective's time, the worst first.

    Parameters
    ----------
    failures : Failures
        What `collectives.failures` returns.
    name : str, optional
        Of the design, for the title.
    most : int, optional
        Bars at most; the title says how many there are.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. A failure that stops the collective has a bar across the whole width.

    Raises
    ------
    InputError
        Nothing can fail, or no bar is asked for.

    Examples
    --------
    >>> import topo, collectives
    >>> found = collectives.failures(topo.load("mi300x-8"), "all_to_all", 8e9)
    >>> draw_failures(found, name="mi300x-8").get_title(loc="left")
    'mi300x-8: one failed link cuts 2 pairs off'
    """
    worst = _require_bars(failures, most)
    shown = failures.singles[:most]
    with house():
        ax = ax or own_axes(7.6, 1.6 + 0.32 * max(5, len(shown)))
        finite = [one.seconds for one in shown if np.isfinite(one.seconds)]
        width = 1.45 * max([failures.seconds, *finite]) * 1e3
        ax.set(xlim=(0, width), xlabel=f"{failures.kind} [ms]")
        for row, one in enumerate(shown):
            _bar(ax, row, one, width, failures.algorithm)
        _frame(ax, [(one.name, one.alike) for one in shown], failures.seconds * 1e3)
        title(ax, _heading(failures, name, worst), pad=22)
    return ax


def draw_bound_failures(failures: BoundFailures, *, name: str = "", most: int = 12, ax: Axes | None = None) -> Axes:
    """Draw what each single failure leaves of the largest expert layer, the worst first.

    Parameters
    ----------
    failures : BoundFailures
        What `placement.bound_failures` returns.
    name : str, optional
        Of the design, for the title.
    most : int, optional
        Bars at most.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. A pale bar behind is the largest layer anywhere,
        spare domains included.

    Raises
    ------
    InputError
        Nothing can fail, or no bar is asked for.

    Examples
    --------
    >>> import topo, placement, serving
    >>> work = serving.Workload(context=4096, batch_per_gpu=114)
    >>> found = placement.bound_failures(
    ...     topo.load("gb200-nvl72"), serving.load_model("deepseek-v3"), work, step_budget=20e-3
    ... )
    >>> draw_bound_failures(found).get_title(loc="left")
    'one failed tray: 2,808 experts become 2,652'
    """
    worst = _require_bars(failures, most)
    shown = failures.singles[:most]
    with house():
        ax = ax or own_axes(7.6, 1.6 + 0.32 * max(5, len(shown)))
        longest = max([failures.n_experts, *(max(one.n_experts, one.elsewhere[0]) for one in shown)])
        spares = any(one.elsewhere[0] > one.n_experts for one in shown)
        ax.set(xlim=(0, (1.75 if spares else 1.4) * longest), xlabel="experts of the largest layer")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        for row, one in enumerate(shown):
            spare = one.elsewhere[0] > one.n_experts
            if spare:
                ax.barh(row, one.elsewhere[0], 0.62, color=BLUE, alpha=0.25, linewidth=0)
            ax.barh(row, one.n_experts, 0.62, color=BLUE, linewidth=0)
            text = f"{one.n_experts:,} over {one.width}" if one.n_experts else "none"
            text += f", elsewhere {one.elsewhere[0]:,} over {one.elsewhere[1]}" if spare else ""
            _say(ax, row, max(one.n_experts, one.elsewhere[0]), text)
        _frame(ax, [(f"{one.kind} {one.name}", one.alike) for one in shown], failures.n_experts)
        where = f"{shortened(name, 200.0, 11.0)}: " if name else ""
        what = f"one failed {worst.kind}: {failures.n_experts:,} experts become {worst.n_experts:,}"
        title(ax, where + (what if worst.loss > 0 else "no single failure takes an expert"), pad=22)
    return ax


def _require_bars(failures: Failures | BoundFailures, most: int) -> Any:
    """Return the worst failure; refuse to draw none."""
    if failures.worst is None or most < 1:
        rule = "needs a failure to draw, and a bar to draw it with"
        raise InputError(Fault("failures", repr(failures), rule, "Give a graph with links, and most=12."))
    return failures.worst


def _frame(ax: Axes, parts: list[tuple[str, int]], without: float) -> None:
    """Name the bars, and mark where nothing failed."""
    ax.set_ylim(len(parts) - 0.45, -0.55)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    labels = [f"{shortened(part, 190.0, _SIZE)} ({alike:,})" for part, alike in parts]
    ax.set_yticks(range(len(parts)), labels=labels, parse_math=False)
    ax.set_ylabel("one failed part (how many are alike)")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.axvline(without, color=GREY, linewidth=1.2, linestyle=(0, (6, 2)), zorder=3)
    ax.annotate("nothing failed", (without, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                textcoords="offset points", ha="center", color=GREY, fontsize=_SIZE)  # fmt: skip


def _say(ax: Axes, row: int, at: float, text: str) -> None:
    halo = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    ax.annotate(text, (at, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=_SIZE, bbox=halo,
                zorder=4)  # fmt: skip


def _bar(ax: Axes, row: int, one: Failure, width: float, own: str) -> None:
    cut = bool(one.stopped)
    length = width if cut else one.seconds * 1e3
    ax.barh(row, length, 0.62, color=VERMILION if cut else BLUE, hatch="////" if cut else "", edgecolor="white",
            linewidth=0)  # fmt: skip
    text = one.stopped or format_quantity(one.seconds, "seconds", 3)
    text += f" by {one.algorithm}" if one.algorithm not in ("", own) else ""
    text += f", {counted(one.unreachable, 'pair')} cut off" if one.unreachable and not cut else ""
    text += f", {counted(one.dropped, 'rank')} fewer" if one.dropped and not cut else ""
    _say(ax, row, 0 if cut else length, text)


def _heading(failures: Failures, name: str, worst: Failure) -> str:
    where = f"{shortened(name, 200.0, 11.0)}: " if name else ""
    what = f"{where}one failed {worst.parts[0][0]}"
    if worst.unreachable:
        return f"{what} cuts {counted(worst.unreachable, 'pair')} off"
    if worst.stopped:
        return f"{what} stops {failures.kind}"
    if not worst.loss > 0 and not worst.instead:
        return f"{where}no single failure costs any time"
    return f"{what} takes {failures.kind} from {_short(failures.seconds)} to {_short(worst.seconds)}"


def _short(seconds: float) -> str:
    return format_quantity(seconds, "seconds", 3)
