"""Are files complete, in place, and the same twice?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import collectives
import figures
import topo


def topology() -> Axes:
    graph = topo.load("gb200-nvl72", domains=2)
    return figures.draw_topology(graph, collectives.cost(graph, "all_to_all", 1e9))


def step_time() -> Axes:
    return figures.draw_step_time([1, 2, 4], np.array([3.0, 2.0, 4.0]), budget=3.0, boundary=2)


@pytest.mark.parametrize("draw", [topology, step_time])
def test_same_input_same_bytes(draw: type, tmp_path: Path) -> None:
    first = figures.save(draw(), tmp_path / "a" / "drawing", ["png", "svg", "pdf"])
    with matplotlib.rc_context({"font.size": 20, "savefig.dpi": 50, "svg.hashsalt": "other", "axes.grid": True}):
        second = figures.save(draw(), tmp_path / "b" / "drawing", ["png", "svg", "pdf"])
    assert [path.name for path in first] == ["drawing.png", "drawing.svg", "drawing.pdf"]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes(), a.name
    again = figures.save(draw().figure.figure, tmp_path / "a" / "drawing", ["svg"])  # over what is there
    assert again[0].read_bytes() == first[1].read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["drawing.pdf", "drawing.png", "drawing.svg"]


def test_saving_twice_changes_nothing(tmp_path: Path) -> None:
    ax = step_time()
    first, second = (figures.save(ax, tmp_path / name, ["svg"])[0].read_bytes() for name in "ab")
    assert first == second


def test_a_dot_in_the_name_is_kept(tmp_path: Path) -> None:
    assert figures.save(step_time(), str(tmp_path / "gpt-3.5"), ["png"]) == [tmp_path / "gpt-3.5.png"]


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(topo.InputError, match=r"--out = '.*file.x\.png': cannot be written: ") as caught:
        figures.save(step_time(), tmp_path / "file" / "x")
    assert caught.value.faults[0].place == "--out"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_name_that_is_a_folder_leaves_no_part_behind(tmp_path: Path) -> None:
    (tmp_path / "x.png").mkdir()
    with pytest.raises(topo.InputError, match="cannot be written"):
        figures.save(step_time(), tmp_path / "x", ["png"])
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]


@pytest.mark.parametrize("name", ["x" * 300, "日" * 100, f"{'x' * 300}/x"])
def test_a_name_too_long_is_refused_with_the_cure(name: str, tmp_path: Path) -> None:
    with pytest.raises(topo.InputError, match=r"cannot be written: .* Give it a shorter name\.") as caught:
        figures.save(step_time(), tmp_path / name, ["png"])
    assert caught.value.faults[0].place == "--out"
    assert list(tmp_path.iterdir()) == []


def test_the_longest_name_that_fits_is_written(tmp_path: Path) -> None:
    for name in ("x" * 251, "日" * 83):
        assert figures.save(step_time(), tmp_path / name, ["png"]) == [tmp_path / f"{name}.png"]


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(topo.InputError, match="Did you mean 'svg'"):
        figures.save(step_time(), tmp_path / "x", ["png", "svgz"])
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_figure_is_saved(tmp_path: Path) -> None:
    figure = Figure()
    figure.subplots().plot([1, 2])
    assert figures.save(figure, tmp_path / "own", ["png"])[0].stat().st_size > 1000


def test_pyplot_is_not_touched_and_settings_stay(tmp_path: Path) -> None:
    code = (
        "import sys, matplotlib, topo, figures; before = dict(matplotlib.rcParams.copy());"
        f"figures.save(figures.draw_topology(topo.load('hgx-h100-8')), {str(tmp_path / 'x')!r});"
        "assert dict(matplotlib.rcParams.copy()) == before; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_figure_of_pyplot_is_closed(tmp_path: Path) -> None:
    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    figures.save(figures.draw_step_time([1, 2], [1.0, 2.0], ax=ax), tmp_path / "x", ["png"])
    assert not pyplot.fignum_exists(figure.number)
