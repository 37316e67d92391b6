"""Does the figure of a calibration show what was measured and what was fitted?"""

from __future__ import annotations

from datetime import date

import numpy as np
from matplotlib.figure import Figure

import figures
from collectives import Calibration, Curve, Profile

from .drawn import cropped, overlapping

SIZES = tuple(2**k for k in range(10, 31, 2))
MEASURED = tuple(1e-5 + size / 4e11 for size in SIZES)


def calibration(factors: tuple[float, ...] = (1.02, 0.93)) -> Calibration:
    profile = Profile(name="mine", version=1, law="collective", source="logs", fitted=date(2026, 12, 1))
    curves = tuple(
        Curve(
            "log.txt", "all_reduce", 8 * (i + 1), i + 1, SIZES, MEASURED, tuple(factor * t for t in MEASURED), MEASURED
        )
        for i, factor in enumerate(factors)
    )
    return Calibration(profile, "start", curves, (), ())


def test_points_are_measured_and_lines_fitted() -> None:
    ax = figures.draw_calibration(calibration())
    legend = ax.get_legend()
    assert legend is not None
    assert [len(line.get_xdata()) for line in ax.lines] == [len(SIZES)] * 4
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 1.02 * np.array(MEASURED))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), MEASURED)
    assert (ax.lines[0].get_marker(), ax.lines[1].get_linestyle()) == ("None", "None")
    assert ax.get_title(loc="left").replace("\n", " ") == (
        "mine: the fit is 4.5% off at the median, 7.0% at the 90th percentile of 22 rows"
    )
    assert {"all_reduce, 8 ranks in 1 domain", "all_reduce, 16 ranks in 2 domains"} <= {
        text.get_text() for text in legend.get_texts()
    }
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_the_panel_shows_the_ratio_and_no_less_than_it() -> None:
    panel = figures.draw_calibration(calibration((1.02, 2.0, 9.0))).figure.axes[-1]
    ratios = [line.get_ydata()[0] for line in panel.lines[:3]]
    np.testing.assert_allclose(ratios, [1.02, 2.0, 5.0])  # nine stands on the edge
    assert panel.get_ylim()[1] >= 5.0
    narrow = figures.draw_calibration(calibration()).figure.axes[-1]
    assert narrow.get_ylim()[1] == 1.3


def test_axes_of_ones_own_share_their_place() -> None:
    """Left of two: the neighbour keeps its place; without a grid the place is split."""
    left, right = Figure(figsize=(10, 5), layout="constrained").subplots(1, 2)
    assert figures.draw_calibration(calibration(), ax=left) is left
    assert cropped(left) == []
    assert left.get_position().y0 > right.get_position().y0 + 0.2
    alone = Figure().add_axes((0.2, 0.2, 0.7, 0.7))
    figures.draw_calibration(calibration(), ax=alone)
    assert alone.get_position().y0 > alone.figure.axes[-1].get_position().y1
