"""Does the waterfall show the operations of a step one after the other, and its totals?"""

from __future__ import annotations

from functools import cache

import pytest
from matplotlib.patches import Rectangle

import figures
import serving
import topo
from serving import Layout, Workload

from .drawn import cropped, overlapping, text_boxes


@cache
def step(ep: int = 144, phase: str = "decode", model: str = "deepseek-v3") -> serving.Step:
    work = Workload(phase=phase, batch_per_gpu=114 if phase == "decode" else 2)
    return serving.step(topo.load("gb200-nvl72", 2), serving.load_model(model), work, layout=Layout(ep))


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_bars_start_where_the_last_ended(phase: str) -> None:
    found = step(phase=phase)
    scale = 1.0 if found.serial >= 1 else 1e3
    ax = figures.draw_step(found, heading="deepseek-v3")
    bars = [bar for bar in ax.patches if isinstance(bar, Rectangle)][: len(found.parts)]
    end = 0.0
    for bar, part in zip(bars, found.parts, strict=True):
        assert bar.get_x() == pytest.approx(end)
        assert bar.get_width() == pytest.approx(part.seconds * scale)
        end += bar.get_width()
    assert end == pytest.approx(found.serial * scale)


def test_names_and_totals_are_there_and_nothing_is_cropped() -> None:
    ax = figures.draw_step(step(), heading="deepseek-v3 on two racks")
    said = set(text_boxes(ax))
    assert {"dispatch", "combine", "one after the other", "two batches in turn", "all overlapped", "20.1 ms"} <= said
    assert ax.get_title(loc="left") == "deepseek-v3 on two racks: 20.1 ms, 43 % of it combine"
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_a_dense_step_has_no_wires() -> None:
    ax = figures.draw_step(step(1, model="llama-3.1-70b"))
    legend = ax.get_legend()
    assert legend is not None
    assert "waits for network" not in [text.get_text() for text in legend.get_texts()]
