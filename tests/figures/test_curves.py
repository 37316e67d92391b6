"""Do the curves show what the records say?"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures
import placement
import serving
import topo

from .drawn import cropped, labels, overlapping

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
    assert {"1 rack", "2 racks", "budget\n15 ms", "off scale: up to 30 ms, at 8 GPUs"} <= set(labels(ax))
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
