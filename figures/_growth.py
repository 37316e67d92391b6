"""How does the time to cost a collective grow with the topology? Lines over ranks, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from figures._style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, house, own_axes, title
from topo import Fault, InputError

__all__ = ["draw_growth"]

_COLOURS = (VERMILION, BLUE, GREEN, ORANGE, PURPLE)


def draw_growth(
    ranks: ArrayLike,
    seconds: Mapping[str, ArrayLike],
    hurt: Mapping[str, ArrayLike] | None = None,
    *,
    heading: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw computing times against the number of ranks.

    Parameters
    ----------
    ranks : (n,) int
        Ascending.
    seconds : mapping of str to (n,) float
        What is timed -> times [s]; a line each.
    hurt : mapping, optional
        The same with a link failed, under the same names; dashed and hollow.
    heading : str, optional
        The title; by default the times at the most ranks.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one.

    Raises
    ------
    InputError
        Times that do not match the ranks, or are not above zero.

    Examples
    --------
    >>> ax = draw_growth([8, 64], {"routes prepared": [1e-3, 2e-3]})
    >>> ax.get_title(loc="left")
    '64 GPUs: routes prepared 2 ms'
    """
    x, hurt = np.asarray(ranks, dtype=np.float64).ravel(), hurt or {}
    with house():
        ax = ax or own_axes(7.2, 4.2)
        last = []
        for colour, (name, times) in zip(_COLOURS, seconds.items(), strict=False):
            y = _times(name, times, x)
            ax.plot(x, y, color=colour, marker="o", markersize=5, label=name)
            last.append(f"{name} {_time(y[-1])}")
            if name in hurt:
                y = _times(name, hurt[name], x)
                ax.plot(x, y, color=colour, marker="o", markersize=9, markerfacecolor="none", linestyle="--",
                        linewidth=1.0, label=f"{name}, one link failed")  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="GPUs", ylabel="processor time of an all-to-all")
        shown = _apart(x)
        ax.set_xticks(shown, [f"{int(n):,}" for n in shown])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _time(value)))
        ax.grid(axis="y")
        ax.tick_params(axis="x", colors=GREY, labelcolor="black")
        ax.legend(loc="upper left")
        title(ax, heading or f"{int(x[-1]):,} GPUs: {', '.join(last)}")
    return ax


def _times(name: str, times: ArrayLike, x: NDArray[np.float64]) -> NDArray[np.float64]:
    y = np.asarray(times, dtype=np.float64).ravel()
    if not len(x) or y.shape != x.shape or not (y > 0).all():
        rule = f"must be {len(x)} times above zero, one per number of ranks, at least one"
        raise InputError(Fault(f"seconds[{name!r}]", times, rule, "Correct it."))
    return y


def _apart(x: NDArray[np.float64]) -> list[float]:
    """Return the ranks whose labels do not meet: the last, and from there down every four times fewer."""
    shown: list[float] = []
    for n in x[::-1].tolist():
        if not shown or 4 * n <= shown[-1]:
            shown.append(n)
    return shown[::-1]


def _time(seconds: float) -> str:
    """Return a time in its own unit, two figures."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{seconds:.2g} s"
