"""What does balance cost in tokens that cross between domains? A line with its bound under it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from figures._style import BLUE, GREY, INK, house, own_axes, title
from placement import BalanceCurve

__all__ = ["draw_balance"]


def draw_balance(curve: BalanceCurve, *, heading: str | None = None, ax: Axes | None = None) -> Axes:
    r"""Draw what crosses against the heaviest GPU, on average over layers.

    Parameters
    ----------
    curve : BalanceCurve
        From `placement.balance_curve`.
    heading : str, optional
        What it is of; before the answer in the title.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. A point is where the heaviest GPU is, on average;
        a hollow one has layers heavier than asked. The bound of a balance is drawn down to the
        next tighter one, as it holds there too; a balance that is proven impossible has none.

    Examples
    --------
    >>> import numpy as np
    >>> from placement import Gpus, balance_curve
    >>> sources = np.vstack([np.ones(8), np.zeros(8)])
    >>> curve = balance_curve(sources, Gpus([8, 8], domain=[0, 1]), balances=(1.02, 1.52))
    >>> draw_balance(curve).get_title(loc="left")
    '50.0 % cross with the heaviest GPU at\n1.00 times the mean, 25.0 % at 1.50'
    """
    crossing, heavy = curve.crossing.mean(axis=1), curve.layer_objective.mean(axis=1)
    bound = curve.bound.mean(axis=1)
    fits, proven = curve.within.all(axis=1), np.isfinite(bound)
    with house():
        ax = ax or own_axes(7.2, 4.2)
        ax.plot(heavy, crossing, color=BLUE, label="placed")
        ax.plot(heavy[fits], crossing[fits], "o", color=BLUE, markersize=6)
        if not fits.all():
            ax.plot(heavy[~fits], crossing[~fits], "o", color=BLUE, markerfacecolor="white", markersize=6,
                    label="placed, some layers heavier than asked")  # fmt: skip
        if proven.any():
            x, y = curve.balance[proven], bound[proven]
            ax.plot(x, y, color=INK, linestyle="--", drawstyle="steps-pre", label="no placement is below")
            ax.fill_between(x, 0, y, step="pre", color=GREY, alpha=0.15, linewidth=0)
        ax.set(xlabel="heaviest GPU over the mean", ylabel="tokens that leave their domain")
        ax.set_ylim(0, 1.15 * max(crossing.max(), 1e-9))
        ax.yaxis.set_major_formatter(PercentFormatter(1))
        ax.grid(axis="y")
        ax.legend(loc="lower left")
        title(ax, f"{heading}: {_answer(crossing, heavy)}" if heading else _answer(crossing, heavy))
    return ax


def _answer(crossing: np.ndarray, heavy: np.ndarray) -> str:
    first = f"{100 * crossing[0]:.1f} % cross with the heaviest GPU at {heavy[0]:.2f} times the mean"
    return first if len(crossing) == 1 else f"{first}, {100 * crossing[-1]:.1f} % at {heavy[-1]:.2f}"
