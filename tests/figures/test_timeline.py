"""Is every stair a class's use, and every step of the grey line an arrival?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import collectives
import figures
import topo
from topo import InputError

from .drawn import cropped, overlapping


def one_link_each() -> nx.Graph:
    """Two GPUs with scale-up, a third over the fabric: 1 GB/s everywhere."""
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b", "c"], kind="gpu")
    graph.add_nodes_from(["plane", "leaf"], kind="switch")
    graph.add_edges_from([("a", "plane"), ("b", "plane")], kind="scale-up", bandwidth=1e9, latency=0.0)
    graph.add_edges_from([(gpu, "leaf") for gpu in "abc"], kind="scale-out", bandwidth=1e9, latency=0.0)
    return graph


def found() -> collectives.Timeline:
    """a sends 1 GB to b and 4 GB to c."""
    return collectives.simulate(one_link_each(), "all_to_all_v", [[0, 1e9, 4e9], [0, 0, 0], [0, 0, 0]])


def test_use_is_that_of_each_class() -> None:
    ends, use = found().intervals(4)
    assert ends == pytest.approx([1, 2, 3, 4])
    assert use["scale-up"].mean == pytest.approx([0.5, 0, 0, 0])  # two of four directed links, one second long
    assert use["scale-up"].most == pytest.approx([1, 0, 0, 0])
    assert use["scale-out"].mean == pytest.approx([1 / 3] * 4)  # two of six
    assert found().finish(0.5, 1.0) == pytest.approx([1.0, 4.0])
    _, halves = found().intervals(2)
    assert halves["scale-up"].most == pytest.approx([0.5, 0])
    assert collectives.simulate(one_link_each(), "all_to_all", 1e9, ranks=1).intervals(4)[1] == {}
    assert collectives.simulate(one_link_each(), "all_to_all", 1e9, ranks=1).finish(0.5) == []


def test_any_number_of_intervals_adds_up_to_the_bytes() -> None:
    told = collectives.simulate(topo.load("gb200-nvl72", 2), "all_to_all", 1e9)
    for n in (1, 7, 100):
        ends, use = told.intervals(n)
        for number, kind in enumerate(use):
            mine = told.link_kind == number
            carried = use[kind].mean.sum() * ends[0] * told.bandwidth[mine].sum()
            assert carried == pytest.approx(told.loads[mine].sum(), rel=1e-9)


def test_the_figure_shows_it() -> None:
    ax = figures.draw_timeline(found(), name="three")
    assert ax.get_title(loc="left") == "three: all_to_all_v takes 4 s, scale-out is 33.3 % in use"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "scale-up", "scale-out", "flows that have arrived",
    ]  # fmt: skip
    tint, line = ax.patches[0].get_data(), ax.patches[1].get_data()
    assert np.asarray(tint.values)[[0, 59, 60, -1]] == pytest.approx([1, 1, 0, 0])
    assert np.asarray(line.values)[[0, 59, 60, -1]] == pytest.approx([0.5, 0.5, 0, 0])
    assert line.edges[-1] == pytest.approx(4.0)
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(InputError, match="sends nothing"):
        figures.draw_timeline(collectives.simulate(one_link_each(), "all_to_all", 1e9, ranks=1))


def test_the_axes_passed_in_are_returned() -> None:
    ax = Figure().subplots()
    assert figures.draw_timeline(found(), ax=ax) is ax
