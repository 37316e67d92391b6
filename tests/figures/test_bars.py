"""Does every bar carry its record's number, and every design without a bar its reason?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

import figures
import topo

from .drawn import cropped, labels, overlapping
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
