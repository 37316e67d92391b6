"""Do the curves show what the records say?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import figures
import placement
import serving
import topo

from .drawn import cropped, labels, overlapping, shown_ticks, text_boxes

WIDTH = np.array([8, 16, 36, 72, 73, 144])
SERIAL = np.array([30.0, 12.0, 9.0, 8.0, 21.0, 20.0]) * 1e-3


@cache
def bound(name: str, domains: int = 2, model: str = "deepseek-v3") -> placement.ExpertLayerBound:
    work = serving.Workload(context=4096, batch_per_gpu=114)
    return placement.expert_layer_bound(
        topo.load(name, domains=domains), serving.load_model(model), work, step_budget=20e-3
    )


def test_step_time_is_drawn_in_milliseconds() -> None:
    ax = figures.draw_step_time(
        WIDTH, SERIAL, SERIAL / 2, all_to_all=SERIAL / 3, fits=WIDTH > 8, budget=15e-3, boundary=72
    )
    by_label = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(by_label["lower bound"].get_ydata(), SERIAL * 500)
    np.testing.assert_allclose(by_label["step time, serial"].get_ydata(), [np.nan, 12, 9, 8, 21, 20])
    np.testing.assert_allclose(by_label["does not fit in memory"].get_ydata()[:1], [30])
    assert {"1 rack", "2 racks", "budget\n15 ms", "off scale: 30 ms at 8 GPUs"} <= set(labels(ax))
    assert ax.get_title(loc="left") == "Leaving the rack: 8 ms at 72 GPUs, 21 ms at 73"
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_the_boundary_stands_at_the_last_gpu_of_a_domain() -> None:
    ax = figures.draw_step_time(WIDTH, SERIAL, boundary=72, domain="domain")
    assert [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1] == [72]
    assert {"1 domain", "2 domains"} <= set(labels(ax))


@pytest.mark.parametrize("boundary", [None, 144, 1000])
def test_without_a_boundary_nothing_is_tinted(boundary: int | None) -> None:
    ax = figures.draw_step_time(WIDTH, SERIAL, boundary=boundary)
    assert ax.patches[:] == []
    assert ax.get_title(loc="left") == "Step time against width"


def test_one_width_is_enough_and_none_is_refused() -> None:
    assert len(figures.draw_step_time([4], [1e-3]).lines) == 1
    with pytest.raises(topo.InputError, match="serial = 0: must have at least one value"):
        figures.draw_step_time([], [])
    with pytest.raises(topo.InputError, match="lower = 2: must have one value per width, 3"):
        figures.draw_step_time([1, 2, 3], [1, 2, 3], [1, 2])


def test_width_curve_marks_the_best_point() -> None:
    found = bound("gb200-nvl72")
    ax = figures.draw_width_curve(found, boundary=72)
    curve = next(line for line in ax.lines if str(line.get_label()).startswith("experts per layer"))
    np.testing.assert_array_equal(curve.get_ydata(), found.curve.n_experts)
    assert f"{found.n_experts:,} experts on {found.width} GPUs,\n{found.experts_per_gpu} on each" in labels(ax)
    assert ax.get_title(loc="left") == f"At most {found.n_experts:,} experts in 20 ms, on 72 GPUs in one rack"
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_a_dense_model_gets_its_reason() -> None:
    ax = figures.draw_width_curve(bound("gb200-nvl72", 1, "llama-3.1-70b"))
    assert labels(ax) == ["llama-3.1-70b is dense: it has no experts"]
    assert ax.get_title(loc="left") == "No experts"


def test_the_axes_passed_in_are_returned() -> None:
    one, two = Figure().subplots(1, 2)
    assert figures.draw_step_time(WIDTH, SERIAL, ax=one) is one
    assert figures.draw_width_curve(bound("hgx-h100-8"), ax=two) is two


# --- what is said stands beside the curve -----------------------------------------------------------------------------


def mixtral() -> Axes:
    racks, model = topo.load("hgx-h100-8", domains=2), serving.load_model("mixtral-8x7b")
    widths, work = range(1, 17), serving.Workload(batch_per_gpu=114)
    steps = [serving.step(racks, model, work, layout=serving.Layout(ep=width)) for width in widths]
    return figures.draw_step_time(
        widths, [step.serial for step in steps], [step.lower for step in steps], budget=20e-3, boundary=8,
        all_to_all=[sum(p.seconds for p in s.parts if p.name in ("dispatch", "combine")) for s in steps],
        fits=[step.fits for step in steps], domain="domain",
    )  # fmt: skip


def steep_at_the_left() -> Axes:
    return figures.draw_step_time(WIDTH, SERIAL, fits=WIDTH > 8, boundary=72)


def steep_at_the_right() -> Axes:
    return figures.draw_step_time([1, 4, 8, 9, 16], [9e-3, 8e-3, 8e-3, 9e-3, 3e-2], fits=[1, 1, 1, 1, 0], boundary=8)


def steep_at_both_ends() -> Axes:
    return figures.draw_step_time([1, 4, 8, 9, 16], [4e-2, 9e-3, 8e-3, 9e-3, 3e-2], fits=[0, 1, 1, 1, 0], boundary=8)


def steep_in_the_first_of_twelve() -> Axes:
    width = np.arange(1, 97)
    return figures.draw_step_time(width, 1e-3 + 5e-2 / width + 2e-5 * width, fits=width > 4, boundary=8)


@pytest.mark.parametrize(
    "draw", [mixtral, steep_at_the_left, steep_at_the_right, steep_at_both_ends, steep_in_the_first_of_twelve]
)
def test_no_note_lies_on_the_curve(draw: Callable[[], Axes]) -> None:
    ax = draw()
    assert overlapping(ax) == []  # draws it
    assert cropped(ax) == []
    notes = {text.get_text(): Text.get_window_extent(text) for text in ax.texts}
    assert any(text.startswith("off scale: ") for text in notes)
    curves = [line.get_xydata() for line in ax.lines if line.get_label() in ("step time, serial", "lower bound")]
    curves += [line.get_xydata() for line in ax.lines if line.get_linestyle() == "--"]
    for curve in curves:
        x, y = ax.transData.transform(curve).T
        at = np.linspace(x[0], x[-1], 4000)
        for text, box in notes.items():
            assert not box.padded(2).count_contains(np.column_stack([at, np.interp(at, x, y)])), text


def test_areas_have_the_colours_of_the_legend() -> None:
    wires = SERIAL / 3
    ax = figures.draw_step_time(WIDTH, SERIAL, all_to_all=wires, boundary=36)  # 4 domains: three tints
    canvas = FigureCanvasAgg(ax.figure.figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    legend = ax.get_legend()
    assert legend is not None
    keys = dict(zip((t.get_text() for t in legend.get_texts()), legend.legend_handles, strict=True))
    for label, share in (("compute and memory", 0.3), ("all-to-all", 0.8)):
        key = keys[label]
        assert isinstance(key, Rectangle)
        assert to_rgb(key.get_facecolor()) == key.get_facecolor()[:3]
        for width in (20, 60, 90, 130):
            at = (width, share * np.interp(width, WIDTH, SERIAL) * 1e3)
            column, row = ax.transData.transform(at).round().astype(int)
            found = pixels[len(pixels) - row, column] / 255
            np.testing.assert_allclose(found, key.get_facecolor()[:3], atol=0.006, err_msg=f"{label} at {width}")


@pytest.mark.parametrize(("domains", "least"), [(2, 2), (12, 12), (16, 15), (48, 5)])
def test_names_of_many_domains_do_not_touch(domains: int, least: int) -> None:
    width = np.arange(1, 8 * domains + 1)
    found = bound("hgx-h100-8")
    curve = replace(found.curve, width=width, n_experts=width * 10, domains=-(-width // 8),
                    memory_experts=np.full(len(width), 20))  # fmt: skip
    for ax in (
        figures.draw_step_time(width, 1e-3 + 1e-5 * width, boundary=8),
        figures.draw_width_curve(replace(found, curve=curve, n_experts=80 * domains, width=8 * domains), boundary=8),
    ):
        extents = text_boxes(ax)
        numbers = {str(n) for n in range(1, domains + 1)}
        named = [text for text in labels(ax) if text.removesuffix(" racks").removesuffix(" rack") in numbers]
        boxes = sorted((box for text in named for box in extents[text] if box.y0 > 200), key=lambda box: box.x0)
        assert named[0] == "1 rack"
        assert len(named) >= least
        assert min(b.x0 - a.x1 for a, b in pairwise(boxes)) > 4
        assert overlapping(ax) == []


@pytest.mark.parametrize("most", [1, 2, 3])
def test_ticks_of_tiny_layers_are_whole(most: int) -> None:
    found = bound("hgx-h100-8")
    curve = replace(found.curve, n_experts=np.minimum(found.curve.n_experts, most))
    ax = figures.draw_width_curve(replace(found, curve=curve, n_experts=most, width=1, experts_per_gpu=most))
    ticks = shown_ticks(ax.yaxis)
    assert len(ticks) == len(set(ticks))
    assert all(value == round(value) for value in ax.get_yticks())
    experts = f"{most} expert{'s' if most > 1 else ''}"
    assert f"{experts} on 1 GPU,\n{most} on each" in labels(ax)
    assert ax.get_title(loc="left").startswith(f"At most {experts} in 20 ms, on 1 GPU ")


def test_one_gpu_is_one() -> None:
    ax = figures.draw_step_time([1, 2], [8e-3, 9e-3], boundary=1)
    assert ax.get_title(loc="left") == "Leaving the rack: 8 ms at 1 GPU, 9 ms at 2"


def test_a_domain_keeps_its_name_where_the_curve_runs_off_the_scale() -> None:
    assert {"1 rack", "2 racks", "off scale: up to 40 ms at 1 GPU"} <= set(labels(steep_at_both_ends()))
