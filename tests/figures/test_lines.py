"""Are lines, points, marks and levels where the numbers say, and is everything legible?"""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures
import topo

from .drawn import cropped, labels, overlapping, shown_ticks

BATCH = np.geomspace(1, 1e5, 51)
LINES = [
    figures.Line("a pass, whichever is the longer", BATCH, np.maximum(1.0, BATCH / 2e3)),
    figures.Line("weights", BATCH, np.ones(51)),
    figures.Line("compute", BATCH, BATCH / 2e3),
    figures.Line("KV cache", BATCH, BATCH / 1e3),
    figures.Line("our step", [64, 1024], [2.0, 2.5], points=True),
]
AXES = {"xlabel": "sequences", "ylabel": "time [ms]", "heading": "Flat up to the knee, then a line " * 3}


def test_lines_and_points_are_what_was_passed() -> None:
    ax = figures.draw_lines(LINES, **AXES)
    drawn = {line.get_label(): line for line in ax.lines}
    for line in LINES:
        np.testing.assert_allclose(drawn[line.name].get_xdata(), line.x)
        np.testing.assert_allclose(drawn[line.name].get_ydata(), line.y)
    assert drawn["our step"].get_linestyle() == "None"
    looks = {(drawn[line.name].get_color(), str(drawn[line.name].get_linestyle())) for line in LINES[:4]}
    assert len(looks) == 4


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_marks_and_levels_are_legible(log: str) -> None:
    marks = {"knee 2,000": 2000.0, "a rack of them": 30_000.0, "the last": 9.9e4, "outside": 1e7}
    ax = figures.draw_lines(LINES, **AXES, log=log, marks=marks, levels={"budget:\n20 ms": 20.0, "above": 1e9})
    assert set(labels(ax)) == {"knee 2,000", "a rack of them", "the last", "budget:\n20 ms"}
    assert cropped(ax) == []
    if "x" in log:  # on a linear axis these marks lie too close together
        assert overlapping(ax) == []
    at = {float(line.get_xdata()[0]) for line in ax.lines if len(set(line.get_xdata())) == 1}  # type: ignore[arg-type]
    assert at == {2000.0, 30_000.0, 9.9e4}


def test_marks_stand_above_the_curves() -> None:
    ax = figures.draw_lines(LINES, **AXES, marks={"knee": 5e4})
    low, high = np.log(ax.get_ylim())
    assert np.log(100) < low + 0.88 * (high - low)  # the highest point of the lines is 100


def test_ticks_are_written_as_people_write_them() -> None:
    ax = figures.draw_lines([figures.Line("y", [1e-3, 1e6], [1e-5, 1e9])], **AXES)
    assert shown_ticks(ax.xaxis)[-1] == "1 M"
    assert shown_ticks(ax.yaxis)[0] == "0.00001"


def test_a_gap_where_there_is_no_number() -> None:
    ax = figures.draw_lines([figures.Line("y", [1, 2, 3], [1.0, np.inf, np.nan])], **AXES, log="")
    np.testing.assert_array_equal(np.isnan(ax.lines[0].get_ydata()), [False, True, True])


def test_what_cannot_be_drawn_is_refused_all_at_once() -> None:
    with pytest.raises(topo.InputError, match="lines = 0: must be at least one"):
        figures.draw_lines([], **AXES)
    wrong = [figures.Line("a", [1, 2], [1]), figures.Line("b", [], [])]
    with pytest.raises(topo.InputError, match=r"a = '2 x and 1 y'(.|\n)*b = '0 x and 0 y'"):
        figures.draw_lines(wrong, **AXES)


def test_the_axes_passed_in_are_returned() -> None:
    one = Figure().subplots()
    assert figures.draw_lines(LINES, **AXES, ax=one) is one
