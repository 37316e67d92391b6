"""Which design takes the largest expert layer, and does this model's fit?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from figures._style import BLUE, GREY, ORANGE, TITLE_SIZE, VERMILION, house, measured, own_axes, root_figure, title
from figures._words import counted, shortened
from placement import ExpertLayerBound
from topo import Fault, InputError
from topo.units import format_quantity

__all__ = ["draw_bounds"]

#: Bar of a row, colour, hatch (for print), label, offset from the row's middle.
_BARS = (
    ("one_domain", BLUE, "", "best within one scale-up domain", -0.2),
    ("beyond", ORANGE, "////", "best over several domains", 0.2),
)
_NONE = {"one_domain": "none within one domain", "beyond": "none over several domains"}
_ALL = {
    "all": ("both designs", "all {} designs"),
    "any": ("either design", "any of the {} designs"),
    "each": ("each of 2 designs", "each of {} designs"),
}
_SIZE = 8.5
_NAME = 260.0  # what a name may take of the heading [points]
_HALO = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}


def draw_bounds(
    names: Sequence[str],
    bounds: Sequence[ExpertLayerBound],
    *,
    model_experts: int | None = None,
    model_name: str = "the model",
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest expert layer of each design, in one domain and over several.

    Parameters
    ----------
    names : sequence of str
        Designs, from the top.
    bounds : sequence of ExpertLayerBound
        One per design.
    model_experts : int, optional
        Experts per layer the model itself has; a vertical line. None or 0 without one.
    model_name : str, optional
        For that line and the title.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. A design without a bound carries its reason.

    Raises
    ------
    InputError
        Not one bound per name, or none.

    Examples
    --------
    >>> import topo, serving, placement
    >>> bound = placement.expert_layer_bound(
    ...     topo.load("hgx-h100-8"),
    ...     serving.load_model("deepseek-v3"),
    ...     serving.Workload(batch_per_gpu=114),
    ...     step_budget=20e-3,
    ... )
    >>> ax = draw_bounds(["hgx-h100-8"], [bound], model_experts=256, model_name="deepseek-v3")
    >>> [text.get_text() for text in ax.texts]
    ['32 experts, 1.41 GB, on 8 GPUs', 'a single domain', 'deepseek-v3: 256']
    """
    if len(names) != len(bounds) or not names:
        rule = f"must be one per name, and at least one; there are {len(names)} names"
        raise InputError(Fault("bounds", len(bounds), rule, "Pass as many bounds as names."))
    with house():
        ax = ax or own_axes(7.6, 1.5 + 0.68 * len(names))
        _axis(ax, names, bounds, model_experts)
        for row, bound in enumerate(bounds):
            _row(ax, row, bound, model_experts or None)
        if model_experts:
            _model_line(ax, model_experts, model_name)
        heading = _heading(names, bounds, model_experts, model_name)
        title(ax, heading, pad=24 if ax.get_legend() is None else 40)
    return ax


def _values(bounds: Sequence[ExpertLayerBound], model_experts: int | None) -> list[int]:
    found = [bound.one_domain[0] for bound in bounds] + [bound.beyond[0] for bound in bounds]
    return [value for value in (*found, model_experts or 0) if value > 0]


def _axis(ax: Axes, names: Sequence[str], bounds: Sequence[ExpertLayerBound], model_experts: int | None) -> None:
    values = _values(bounds, model_experts)
    ax.set_xlabel("experts in one layer")
    if not values:
        ax.set(xlim=(0, 1), xticks=[])
    elif max(values) > 12 * min(values):
        low = 10.0 ** (len(str(min(values))) - 1) / (2 if min(values) < 2 * 10 ** (len(str(min(values))) - 1) else 1)
        ax.set_xscale("log")
        ax.set_xlabel("experts in one layer (log scale)")
        ax.set_xlim(low, max(values) * (max(values) / low) ** 0.62)
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_xlim(0, max(values) * 1.75)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_yticks(range(len(names)), labels=[shortened(str(name), 160.0, 8.5) for name in names], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")


def _row(ax: Axes, row: int, bound: ExpertLayerBound, line: float | None) -> None:
    if not bound.n_experts:
        _note(ax, row, textwrap.shorten(f"{bound.status}: {bound.binding}", 110, placeholder=" ..."), line)
        return
    per_expert = bound.n_bytes / bound.n_experts
    for name, colour, hatch, label, offset in _BARS:
        experts, width = getattr(bound, name)
        if experts:
            ax.barh(row + offset, experts - ax.get_xlim()[0], 0.36, left=ax.get_xlim()[0], color=colour, hatch=hatch,
                    edgecolor="white", linewidth=0, label=label)  # fmt: skip
            size = format_quantity(experts * per_expert, "bytes", 3)
            _beside(
                ax, experts, row + offset, f"{counted(experts, 'expert')}, {size}, on {counted(width, 'GPU')}", line
            )
        else:
            single = name == "beyond" and bound.scale_out_needed is None
            _note(ax, row + offset, "a single domain" if single else _NONE[name], line)
    _legend(ax)


def _points(ax: Axes, low: float, high: float) -> float:
    """Return how far apart two values of the x-axis are [points]."""
    (a, _), (b, _) = ax.transData.transform([(low, 0.0), (high, 0.0)])
    return float((b - a) * 72 / root_figure(ax).dpi)


def _beside(ax: Axes, x: float, y: float, text: str, line: float | None) -> None:
    """Label a bar at its end; what would lie over the model's line stands beyond it, led to by a hairline."""
    if line is not None and x < line and measured(text, _SIZE) + 10.0 > _points(ax, x, line):
        ax.hlines(y, x, line, color=GREY, linewidth=0.6, linestyle=(0, (1, 2)))
        x = line
    _label(ax, x, y, text)


def _note(ax: Axes, y: float, text: str, line: float | None) -> None:
    """Say why there is no bar, on the side of the model's line on which there is room for it."""
    low, high = ax.get_xlim()
    x, room = low, _points(ax, low, high)
    wrapped = textwrap.fill(text, 62)
    if line is not None and measured(wrapped, _SIZE) + 10.0 > _points(ax, low, line):
        x, room = max(((low, _points(ax, low, line)), (line, _points(ax, line, high))), key=lambda side: side[1])
        wrapped = textwrap.fill(text, min(62, max(12, int((room - 10.0) / (0.58 * _SIZE)))))
    _label(ax, x, y, wrapped, color=GREY, style="italic")


def _label(ax: Axes, x: float, y: float, text: str, **looks: Any) -> None:
    ax.annotate(text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=_SIZE, bbox=_HALO,
                zorder=4, **looks)  # fmt: skip


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    first = dict(reversed(list(zip(labels, handles, strict=True))))
    order = [label for *_, label, _ in _BARS if label in first]
    ax.legend([first[label] for label in order], order, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2,
              borderaxespad=1.9, borderpad=0.0, handlelength=1.4, columnspacing=1.6)  # fmt: skip


def _model_line(ax: Axes, experts: int, name: str) -> None:
    ax.axvline(experts, color=VERMILION, linewidth=1.4, linestyle=(0, (6, 2)), zorder=3)
    text = f"{shortened(name, 220.0, _SIZE)}: {experts:,}"
    left = _points(ax, ax.get_xlim()[0], experts) < measured(text, _SIZE) / 2  # else it would leave the axes
    ax.annotate(text, (experts, 1), xycoords=("data", "axes fraction"), xytext=(-4 if left else 0, 2),
                textcoords="offset points", ha="left" if left else "center", color=VERMILION,
                fontsize=_SIZE)  # fmt: skip


def _heading(names: Sequence[str], bounds: Sequence[ExpertLayerBound], model_experts: int | None, name: str) -> str:
    n, name = len(bounds), shortened(name, _NAME, TITLE_SIZE)
    if all(bound.status == "no experts" for bound in bounds):
        return f"{name} is dense: it has no experts"
    if not any(bound.n_experts for bound in bounds):
        return f"No expert layer of {name} fits on {_all_of(names, 'any')}"
    if not model_experts:
        return f"The largest expert layer on {_all_of(names, 'each')}"
    within = sum(bound.n_experts >= model_experts for bound in bounds)
    where = f"{within} of {n} designs" if 0 < within < n else _all_of(names, "all")
    experts = f"{counted(model_experts, 'expert')} {'is' if model_experts == 1 else 'are'}"
    return f"{name}'s {experts} {'within' if within else 'beyond'} the bound on {where}"


def _all_of(names: Sequence[str], word: str) -> str:
    """Return the one design by its name, of more how many they are."""
    if len(names) == 1:
        return shortened(str(names[0]), _NAME, TITLE_SIZE)
    two, more = _ALL[word]
    return two if len(names) == 2 else more.format(len(names))
