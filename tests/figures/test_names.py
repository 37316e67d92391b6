"""Is a name drawn as it is written, whatever it is written in?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import figures
from figures._style import house

from .drawn import labels
from .test_curves import bound

NAMES = ["$x^2$ $\\frac{1$", "日本語"]


def old_axes() -> Axes:
    """Return Axes that had ticks, a title and labels before we draw."""
    figure = Figure()
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1])
    ax.set_title("$x^2$", loc="left")
    figure.draw_without_rendering()
    return ax


def topology(name: str, ax: Axes | None) -> Axes:
    graph: nx.Graph[str] = nx.Graph(name=name)
    for gpu in "abcd":
        graph.add_node(gpu, kind="gpu", rack=f"{name} {gpu}")
        graph.add_edge(gpu, name, kind="scale-out", bandwidth=1e9, latency=0.0)
    graph.nodes[name].update(kind="switch", tier="leaf")
    return figures.draw_topology(graph, ax=ax)


def bars(name: str, ax: Axes | None) -> Axes:
    found = bound("gb200-nvl72")
    none = replace(found, n_experts=0, one_domain=(0, 0), beyond=(0, 0), status="nothing fits", binding=name)
    return figures.draw_bounds([name, "b"], [found, none], model_experts=256, model_name=name, ax=ax)


def step_time(name: str, ax: Axes | None) -> Axes:
    return figures.draw_step_time([1, 2, 4], [3.0, 2.0, 4.0], boundary=2, domain=name, heading=name, ax=ax)


def width_curve(name: str, ax: Axes | None) -> Axes:
    return figures.draw_width_curve(bound("gb200-nvl72"), boundary=72, domain=name, ax=ax)


def dense(name: str, ax: Axes | None) -> Axes:
    found = replace(bound("gb200-nvl72", 1, "llama-3.1-70b"), binding=f"{name} is dense", status=name)
    return figures.draw_width_curve(found, ax=ax)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("draw", [topology, bars, step_time, width_curve, dense])
def test_a_name_is_drawn_as_it_is_written(
    draw: Callable[[str, Axes | None], Axes], name: str, own: bool, tmp_path: Path
) -> None:  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = draw(name, None if own else old_axes())
        files = figures.save(ax, tmp_path / "x", ["png", "svg", "pdf"])
    assert all(file.stat().st_size > 1000 for file in files)
    named = [text for text in (*ax.texts, ax._left_title, *ax.get_yticklabels())  # type: ignore[attr-defined]
             if name[:4] in text.get_text()]  # fmt: skip
    assert named
    assert not any(text.get_parse_math() for text in named)


def test_only_the_missing_glyph_is_silent() -> None:
    with house(), pytest.warns(UserWarning, match="something else"):
        warnings.warn("something else", stacklevel=1)
    with house():
        warnings.warn("Glyph 26085 (\\N{CJK UNIFIED IDEOGRAPH-65E5}) missing from font(s) DejaVu Sans.", stacklevel=1)


def test_a_users_own_powers_of_ten_stay_typeset(tmp_path: Path) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    right.loglog([1, 1e6], [1, 1e6])
    figures.draw_step_time([1, 2], [1.0, 2.0], ax=left)
    figures.save(figure, tmp_path / "x", ["png"])
    assert all(label.get_parse_math() for label in right.get_xticklabels())


def test_nothing_of_ours_needs_mathtext() -> None:
    found = bound("gb200-nvl72")
    axes = [
        figures.draw_bounds(["a", "b"], [found, bound("hgx-h100-8")], model_experts=256),
        figures.draw_step_time([1, 2, 10**6], [1e-9, 2.0, 1e9]),
        figures.draw_width_curve(found),
    ]
    for ax in axes:
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]
        ticks = [tick.get_text() for axis in (ax.xaxis, ax.yaxis) for tick in axis.get_ticklabels(which="both")]
        ticks += [axis.get_offset_text().get_text() for axis in (ax.xaxis, ax.yaxis)]
        assert [text for text in (*ticks, *labels(ax)) if "$" in text] == []
