"""Does every bar carry its record's number, and every design without a bar its reason?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

import figures
import placement
import topo

from .drawn import cropped, labels, overlapping, shown_ticks, text_boxes
from .test_curves import bound

NAMES = ["gb200-nvl72", "hgx-h100-8", "mi300x-8"]


def test_bars_are_the_bounds() -> None:
    bounds = [bound(name) for name in NAMES]
    ax = figures.draw_bounds(NAMES, bounds, model_experts=256, model_name="deepseek-v3")
    ends = sorted(round(bar.get_x() + bar.get_width()) for bar in ax.patches)
    assert ends == sorted(n for b in bounds for n, _ in (b.one_domain, b.beyond) if n)
    best = bounds[0]
    assert f"{best.n_experts:,} experts, {best.n_bytes / 1e9:.3g} GB, on {best.width} GPUs" in labels(ax)
    assert "deepseek-v3: 256" in labels(ax)
    assert "none over several domains" in labels(ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == NAMES
    assert ax.get_title(loc="left") == "deepseek-v3's 256 experts are within the bound on 1 of 3 designs"
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_what_has_no_bar_has_a_reason() -> None:
    dense = bound("gb200-nvl72", 1, "llama-3.1-70b")
    nothing = replace(
        bound("gb200-nvl72"), n_experts=0, n_bytes=0.0, width=0, one_domain=(0, 0), beyond=(0, 0),
        status="nothing fits", binding=f"HBM capacity (72 GB usable per GPU) and {'a long reason, ' * 9}cut short",
    )  # fmt: skip
    ax = figures.draw_bounds(["dense", "nothing", "one"], [dense, nothing, bound("gb200-nvl72", 1)])
    assert labels(ax)[0].replace("\n", " ") == f"no experts: {dense.binding}"
    assert labels(ax)[1].startswith("nothing fits: HBM capacity (72 GB usable per GPU)")
    assert "a single domain" in labels(ax)
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_a_row_per_name() -> None:
    for names in (["a", "b"], []):
        with pytest.raises(topo.InputError, match="bounds = 1: must be one per name"):
            figures.draw_bounds(names, [bound("gb200-nvl72")])


def test_the_axes_passed_in_are_returned() -> None:
    ax = Figure().subplots()
    assert figures.draw_bounds(["a"], [bound("gb200-nvl72")], model_experts=256, ax=ax) is ax


def at_most(experts: int, beyond: int = 0, width: int = 8) -> placement.ExpertLayerBound:
    """Return a bound of so many experts in one domain, and so many over several."""
    status = "bounded" if experts else "nothing fits"
    return replace(bound("gb200-nvl72"), n_experts=experts, n_bytes=44e6 * experts, one_domain=(experts, width),
                   beyond=(beyond, 2 * width), status=status)  # fmt: skip


@pytest.mark.parametrize(
    ("experts", "model", "heading"),
    [
        ([300], 256, "m's 256 experts are within the bound on d0"),
        ([32], 256, "m's 256 experts are beyond the bound on d0"),
        ([0], 256, "No expert layer of m fits on d0"),
        ([0, 0], 256, "No expert layer of m fits on either design"),
        ([0, 0, 0], 256, "No expert layer of m fits on any of the 3 designs"),
        ([300, 300], 256, "m's 256 experts are within the bound on both designs"),
        ([300, 300, 300], 256, "m's 256 experts are within the bound on all 3 designs"),
        ([300, 0], 256, "m's 256 experts are within the bound on 1 of 2 designs"),
        ([32, 0], 256, "m's 256 experts are beyond the bound on both designs"),
        ([32, 0, 64], 256, "m's 256 experts are beyond the bound on all 3 designs"),
        ([32], 1, "m's 1 expert is within the bound on d0"),
        ([32], None, "The largest expert layer on d0"),
        ([32, 64], None, "The largest expert layer on each of 2 designs"),
    ],
)
def test_the_heading_is_the_answer(experts: list[int], model: int | None, heading: str) -> None:
    names = [f"d{i}" for i in range(len(experts))]
    ax = figures.draw_bounds(names, [at_most(n) for n in experts], model_experts=model, model_name="m")
    assert ax.get_title(loc="left").replace("\n", " ") == heading


def test_the_heading_of_a_dense_model() -> None:
    dense = bound("gb200-nvl72", 1, "llama-3.1-70b")
    ax = figures.draw_bounds(["a", "b"], [dense, dense], model_name="llama-3.1-70b")
    assert ax.get_title(loc="left") == "llama-3.1-70b is dense: it has no experts"


@pytest.mark.parametrize("experts", [(1, 0), (2, 1), (3, 2), (1, 30)])
def test_ticks_of_tiny_layers_are_whole(experts: tuple[int, int]) -> None:
    ax = figures.draw_bounds(["a"], [at_most(*experts, width=1)])
    ticks = shown_ticks(ax.xaxis)
    assert ticks == sorted(set(ticks), key=ticks.index)
    assert all(value == round(value) for value in ax.get_xticks() if value >= 1)
    assert f"{experts[0]} expert{'s' if experts[0] > 1 else ''}, {44 * experts[0]} MB, on 1 GPU" in labels(ax)


@pytest.mark.parametrize(
    ("experts", "beyond"), [([32, 136, 2808], [0, 96, 1008]), ([32], [0]), ([200], [0]), ([0, 24], [0, 30])]
)
@pytest.mark.parametrize("model", [8, 29, 33, 256, 3000])
def test_labels_and_the_models_line_do_not_meet(experts: list[int], beyond: list[int], model: int) -> None:
    names = [f"d{i}" for i in range(len(experts))]
    bounds = [at_most(n, more) for n, more in zip(experts, beyond, strict=True)]
    ax = figures.draw_bounds(names, bounds, model_experts=model, model_name="deepseek-v3")
    extents = text_boxes(ax)
    (x, _) = ax.transData.transform((model, 0))
    crossed = [text for text in labels(ax) for box in extents[text] if box.x0 - 1 < x < box.x1 + 1]
    assert crossed == [f"deepseek-v3: {model:,}"]
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_long_names_leave_room_for_the_bars() -> None:
    ax = figures.draw_bounds(["n" * 300, "b"], [at_most(32), at_most(64)], model_experts=33, model_name="m" * 300)
    assert cropped(ax) == []
    assert ax.get_window_extent().width > 250
