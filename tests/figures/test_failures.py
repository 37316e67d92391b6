"""Is every bar a failure's time, and is a cut told from a delay?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

import collectives
import figures
import placement
import serving
import topo
from topo import InputError

from .drawn import cropped, labels, overlapping, shown_ticks

TAPERED = {"scale_out.oversubscription": 2.0, "scale_out.radix": 8}


@cache
def found() -> collectives.Failures:
    return collectives.failures(topo.load("hgx-h100-8", 4, TAPERED), "all_to_all", 1e9)


def test_bars_are_the_times() -> None:
    failures = found()
    ax = figures.draw_failures(failures, name="hgx-h100-8")
    lengths = [bar.get_width() for bar in ax.patches]
    for one, length in zip(failures.singles, lengths, strict=True):
        assert length == pytest.approx(one.seconds * 1e3 if np.isfinite(one.seconds) else ax.get_xlim()[1])
    assert ax.get_title(loc="left") == "hgx-h100-8: one failed switch cuts 180 pairs off"
    assert labels(ax)[:3] == [
        "18.8 ms by rail_pipelined, 180 pairs cut off", "18.8 ms by rail_pipelined, 48 pairs cut off", "52.5 ms",
    ]  # fmt: skip
    assert labels(ax)[9] == "17.5 ms, 8 ranks fewer"
    assert shown_ticks(ax.yaxis)[0] == "switch leaf0 (8)"
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_a_delay_is_said_with_both_times() -> None:
    failures = replace(found(), singles=tuple(one for one in found().singles if not one.instead))
    title = figures.draw_failures(failures).get_title(loc="left")
    assert title == "one failed switch takes all_to_all from 26.3 ms to 52.5 ms"
    harmless = replace(failures, singles=tuple(one for one in failures.singles if not one.loss))
    assert figures.draw_failures(harmless).get_title(loc="left") == "no single failure costs any time"


def test_another_algorithm_and_a_stop_are_said() -> None:
    first, *others = found().singles
    lost = {"seconds": np.inf, "loss": np.inf, "algorithm": "", "instead": False, "pairs": ()}
    gone = replace(first, unreachable=0, dropped=8, **lost)
    cut = replace(gone, unreachable=180, dropped=0)
    ax = figures.draw_failures(replace(found(), singles=(gone, cut, *others)))
    assert ax.get_title(loc="left") == "one failed switch stops all_to_all"
    assert labels(ax)[:2] == ["8 ranks lost", "180 pairs without a path"]
    assert [bar.get_width() == ax.get_xlim()[1] for bar in ax.patches[:3]] == [True, True, False]
    took = replace(first, unreachable=0, pairs=())
    title = figures.draw_failures(replace(found(), singles=(took, *others))).get_title(loc="left")
    assert title == "one failed switch takes all_to_all from 26.3 ms to 18.8 ms"


def test_only_the_worst_are_drawn() -> None:
    ax = figures.draw_failures(found(), most=2)
    assert len(ax.patches) == 2
    assert cropped(ax) == []


def test_bars_of_a_bound_are_its_experts() -> None:
    work = serving.Workload(context=4096, batch_per_gpu=114)
    rack = topo.load("hgx-h200-8", 2)
    lost = placement.bound_failures(rack, serving.load_model("deepseek-v3"), work, step_budget=20e-3)
    ax = figures.draw_bound_failures(lost, name="hgx-h200-8")
    widths = [bar.get_width() for bar in ax.patches]
    assert widths[:6] == [88, 0, 88, 80, 88, 80]  # pale: in the other box
    assert ax.get_title(loc="left") == "hgx-h200-8: one failed tray: 88 experts become 0"
    assert labels(ax)[:3] == [
        "none, elsewhere 88 over 8",
        "80 over 8, elsewhere 88 over 8",
        "80 over 8, elsewhere 88 over 8",
    ]
    assert shown_ticks(ax.yaxis)[0] == "tray host0 (1)"
    assert cropped(ax) == []
    assert overlapping(ax) == []
    harmless = replace(lost, singles=tuple(one for one in lost.singles if not one.loss))
    assert figures.draw_bound_failures(harmless).get_title(loc="left") == "no single failure takes an expert"
    with pytest.raises(InputError, match="needs a failure to draw"):
        figures.draw_bound_failures(replace(lost, singles=()))
    ax = Figure().subplots()
    assert figures.draw_bound_failures(lost, ax=ax) is ax


def test_nothing_to_draw_is_refused() -> None:
    for failures, most in ((replace(found(), singles=()), 12), (found(), 0)):
        with pytest.raises(InputError, match="needs a failure to draw"):
            figures.draw_failures(failures, most=most)


def test_the_axes_passed_in_are_returned() -> None:
    ax = Figure().subplots()
    assert figures.draw_failures(found(), ax=ax) is ax
