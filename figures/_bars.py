"""Which design takes the largest expert layer, and does this model's fit?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from figures._style import BLUE, GREY, ORANGE, VERMILION, house, own_axes, title
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
        Experts per layer the model itself has; a vertical line. None or 0 for a dense model.
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
            _row(ax, row, bound)
        if model_experts:
            _model_line(ax, model_experts, model_name)
        title(ax, _heading(bounds, model_experts, model_name), pad=24 if ax.get_legend() is None else 40)
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
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_yticks(range(len(names)), labels=names)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")


def _row(ax: Axes, row: int, bound: ExpertLayerBound) -> None:
    if not bound.n_experts:
        reason = textwrap.shorten(f"{bound.status}: {bound.binding}", 110, placeholder=" ...")
        _note(ax, row, textwrap.fill(reason, 62))
        return
    per_expert = bound.n_bytes / bound.n_experts
    for name, colour, hatch, label, offset in _BARS:
        experts, width = getattr(bound, name)
        if experts:
            ax.barh(row + offset, experts - ax.get_xlim()[0], 0.36, left=ax.get_xlim()[0], color=colour, hatch=hatch,
                    edgecolor="white", linewidth=0, label=label)  # fmt: skip
            size = format_quantity(experts * per_expert, "bytes", 3)
            _beside(ax, experts, row + offset, f"{experts:,} experts, {size}, on {width} GPU{'s' if width > 1 else ''}")
        else:
            single = name == "beyond" and bound.scale_out_needed is None
            _note(ax, row + offset, "a single domain" if single else _NONE[name])
    _legend(ax)


def _beside(ax: Axes, x: float, y: float, text: str) -> None:
    ax.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5, bbox=_HALO, zorder=4
    )


def _note(ax: Axes, y: float, text: str) -> None:
    ax.annotate(text, (ax.get_xlim()[0], y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5,
                color=GREY, style="italic", bbox=_HALO, zorder=4)  # fmt: skip


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    first = dict(reversed(list(zip(labels, handles, strict=True))))
    order = [label for *_, label, _ in _BARS if label in first]
    ax.legend([first[label] for label in order], order, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2,
              borderaxespad=1.9, borderpad=0.0, handlelength=1.4, columnspacing=1.6)  # fmt: skip


def _model_line(ax: Axes, experts: int, name: str) -> None:
    ax.axvline(experts, color=VERMILION, linewidth=1.4, linestyle=(0, (6, 2)), zorder=3)
    ax.annotate(f"{name}: {experts:,}", (experts, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                textcoords="offset points", ha="center", color=VERMILION, fontsize=8.5)  # fmt: skip


def _heading(bounds: Sequence[ExpertLayerBound], model_experts: int | None, name: str) -> str:
    if not model_experts:
        return f"{name} has no experts"
    count = sum(bound.n_experts >= model_experts for bound in bounds)
    many = f"{count} of {len(bounds)} designs" if len(bounds) > 1 else ("this design" if count else "no width of it")
    return f"{name}'s {model_experts:,} experts are within the bound on {many}"
