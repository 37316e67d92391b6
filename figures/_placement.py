"""Which rack holds which expert, how heavy is every copy, and how level are the GPUs?"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from figures._style import GREY, INK, LOAD, house, measured, own_axes, root_figure, title
from figures._words import counted
from placement import PlanCost
from topo import Fault, InputError

__all__ = ["draw_placement"]

#: Height of the strip of a rack's GPU loads in slots, free rows between racks, and the smallest number of an expert.
_STRIP, _FREE, _SIZE = 1.6, 1.3, 5.0


def draw_placement(placed: PlanCost, *, layer: int = 0, heading: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw one layer's experts on the racks: a column a GPU, a cell a slot, above it the GPU's load.

    Parameters
    ----------
    placed : PlanCost
        From `placement.cost_plan`, or the `before` or `after` of `placement.improve`.
    layer : int, optional
        Which of the layers with experts.
    heading : str, optional
        What it is of; before the answer in the title.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The one passed in, or the new one. The colour of a cell is its copy's load over the mean of a
        GPU; a framed cell holds an expert that other GPUs hold too.

    Raises
    ------
    InputError
        A layer there is not.

    Examples
    --------
    >>> import topo, serving, placement, numpy as np
    >>> model, work = serving.load_model("mixtral-8x7b"), serving.Workload(batch_per_gpu=64)
    >>> loads = placement.ExpertLoads(np.ones((32, 8)), None, None, None, "uniform")
    >>> found = placement.improve(topo.load("hgx-h100-8"), model, work, loads)
    >>> draw_placement(found.after).get_title(loc="left")
    'layer 0: heaviest GPU 1.000 times the mean'
    """
    plan, layers = placed.plan, len(placed.plan.slot_expert)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < layers:
        raise InputError(Fault("layer", layer, f"is none of the {layers} with experts", f"Give 0 to {layers - 1}."))
    expert, rank = plan.slot_expert[layer], plan.slot_rank[layer]
    order = np.argsort(rank, kind="stable")
    expert, rank, share = expert[order], rank[order], plan.shares[layer][order]
    slot = np.arange(len(rank)) - np.searchsorted(rank, rank)
    load = share * placed.expert_load[layer][expert] * plan.ep
    with house():
        domain = placed.domain[layer]
        deep, racks = int(slot.max()) + 1, [np.flatnonzero(domain == d) for d in np.unique(domain)]
        wide = max(map(len, racks))
        step = deep + _STRIP + _FREE
        ax = ax or own_axes(max(6.4, min(15.0, 2.0 + 0.2 * wide)), 1.5 + 0.2 * step * len(racks))
        norm = Normalize(0.0, max(float(load.max()), 1e-12))
        ax.set(xlim=(-0.5, wide - 0.5), ylim=(len(racks) * step - 0.4, -0.2))
        for r, gpus in enumerate(racks):
            _strip(ax, placed.gpu_load[layer][gpus], r * step)
        place = {int(gpu): (i, r * step + _STRIP) for r, gpus in enumerate(racks) for i, gpu in enumerate(gpus)}
        copies = np.bincount(expert)
        for e, g, s, part in zip(expert, rank, slot, load, strict=True):
            x, y = place[int(g)]
            _cell(ax, x, y + s, LOAD(norm(part)), framed=copies[e] > 1)
        _numbers(ax, expert, [(place[int(g)][0], place[int(g)][1] + s) for g, s in zip(rank, slot, strict=True)],
                 norm(load), wide)  # fmt: skip
        _axes(ax, racks, step, deep)
        root_figure(ax).colorbar(ScalarMappable(norm, LOAD), ax=ax, shrink=0.8, pad=0.02,
                                 label="load of a copy over the mean of a GPU")  # fmt: skip
        title(ax, _title(placed, layer, heading))
    return ax


def _strip(ax: Axes, load: NDArray[np.float64], top: float) -> None:
    """Draw a rack's GPU loads as bars; the line is the mean."""
    tall = _STRIP - 0.35
    scale = tall / max(1.5, float(load.max()))
    ax.bar(np.arange(len(load)), -load * scale, 0.8, bottom=top + tall, color=GREY, linewidth=0)
    ax.hlines(top + tall - scale, -0.5, len(load) - 0.5, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    ax.text(-0.6, top + tall - scale, "mean", ha="right", va="center", fontsize=_SIZE + 1, color=GREY)


def _cell(ax: Axes, x: float, y: float, colour: tuple[float, float, float, float], *, framed: bool) -> None:
    ax.add_patch(Rectangle((x - 0.46, y - 0.04), 0.92, 0.92, facecolor=colour, edgecolor=INK if framed else "none",
                           linewidth=0.9 if framed else 0.0))  # fmt: skip


def _numbers(
    ax: Axes, expert: NDArray[np.intp], at: list[tuple[float, float]], dark: NDArray[np.float64], wide: int
) -> None:  # fmt: skip
    """Write experts' numbers into their cells, where they can be read."""
    room = ax.get_window_extent().width * 72 / root_figure(ax).dpi / wide * 0.85
    size = min(8.0, _SIZE * room / measured(str(int(expert.max())), _SIZE))
    if size < _SIZE:
        return
    for e, (x, y), part in zip(expert, at, dark, strict=True):
        ax.text(x, y + 0.45, str(int(e)), ha="center", va="center", fontsize=size,
                color="white" if part > 0.6 else INK)  # fmt: skip


def _axes(ax: Axes, racks: list[NDArray[np.intp]], step: float, deep: int) -> None:
    middles = [r * step + _STRIP + deep / 2 for r in range(len(racks))]
    ax.set_yticks(middles, labels=[f"domain {r}\n{counted(len(gpus), 'GPU')}" for r, gpus in enumerate(racks)])
    ax.set_xlabel("GPU of the domain, and above it its load beside the mean; framed: an expert with several copies")
    ax.tick_params(axis="both", length=0)
    ax.spines[:].set_visible(False)


def _title(placed: PlanCost, layer: int, heading: str | None) -> str:
    heavy = placed.gpu_load[layer].max()
    crossed = (
        f", {100 * placed.crossing[layer]:.1f} % of tokens leave their domain" if placed.domain[layer].any() else ""
    )
    return f"{heading + ', ' if heading else ''}layer {layer}: heaviest GPU {heavy:.3f} times the mean{crossed}"
