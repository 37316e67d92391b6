"""Does the front show what a sweep found?"""

from __future__ import annotations

import pytest

import figures
import serving
import topo
from topo import InputError


def found(batch: list[int]) -> serving.Sweep:
    graphs = {"one": topo.load("hgx-h100-8"), "other": topo.load("hgx-b200-8")}
    work = serving.Workload(batch_per_gpu=1)
    return serving.sweep(graphs, serving.load_model("mixtral-8x7b"), work, ep=[4, 8], batch=batch)


def test_the_front_is_drawn_by_design_with_layouts() -> None:
    swept = found([1, 16, 256])
    ax = figures.draw_pareto(swept, heading="mixtral")
    lines = {line.get_label(): line for line in ax.lines}
    rows = [swept.point(int(i)) for i in swept.front()]
    for name in ("one", "other"):
        assert list(lines[name].get_xdata()) == [swept.point(int(i))["speed"] for i in swept.front(name)]
    assert f"{int(swept.fits.sum())} points that fit" in lines
    assert ax.texts[0].get_text() == f"EP {rows[0]['ep']}, batch {rows[0]['batch']}"
    assert ax.get_title(loc="left").replace("\n", " ").startswith("mixtral: from ")


def test_nothing_that_fits_is_refused() -> None:
    with pytest.raises(InputError, match="no point that fits"):
        figures.draw_pareto(found([10**6]))
