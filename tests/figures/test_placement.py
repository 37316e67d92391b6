"""Is every slot a cell on its GPU, coloured by its load, and can everything be read?"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import figures
import placement
import serving
import topo
from figures._style import LOAD
from topo import InputError

from .drawn import cropped, labels, overlapping

MODEL, WORK = serving.load_model("mixtral-8x7b"), serving.Workload(batch_per_gpu=64)


@cache
def found() -> placement.Improvement:
    asked = np.repeat([[[1.0, 1, 1, 1, 8, 7, 6, 5], [8, 7, 6, 5, 1, 1, 1, 1]]], 32, axis=0)
    loads = placement.ExpertLoads(asked.sum(axis=1), None, asked, None, "tensorrt-llm")
    return placement.improve(topo.load("hgx-h100-8", 2), MODEL, WORK, loads, replicas=8, balance=1.3)


def test_a_cell_for_every_slot() -> None:
    after = found().after
    ax = figures.draw_placement(after, layer=3, heading="mine")
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_height() == 0.92]
    assert len(cells) == 16
    load = after.expert_load[3][after.plan.slot_expert[3]] * after.plan.shares[3]
    heaviest = [cell for cell in cells if cell.get_facecolor() == LOAD(1.0)]
    assert len(heaviest) == np.isclose(load, load.max()).sum()
    framed = (after.plan.logcnt[3][after.plan.slot_expert[3]] > 1).sum()
    assert sum(cell.get_linewidth() > 0 for cell in cells) == framed
    numbers = [int(label) for label in labels(ax) if label != "mean"]
    assert sorted(numbers) == sorted(after.plan.slot_expert[3].tolist())
    assert ax.get_title(loc="left").replace("\n", " ") == (
        "mine, layer 3: heaviest GPU 1.200 times the mean, 13.3 % of tokens leave their domain"
    )


def test_bars_are_the_loads_of_gpus() -> None:
    before = found().before
    ax = figures.draw_placement(before)
    bars = [-patch.get_height() for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_width() == 0.8]
    assert np.array(bars) / max(bars) == pytest.approx(before.gpu_load[0] / before.gpu_load[0].max())


def test_all_can_be_read() -> None:
    for one in (found().before, found().after):
        ax = figures.draw_placement(one)
        assert cropped(ax) == []
        assert overlapping(ax) == []


@pytest.mark.parametrize("layer", [-1, 32, True, 1.0])
def test_a_layer_there_is_not(layer: int) -> None:
    with pytest.raises(InputError, match="Give 0 to 31"):
        figures.draw_placement(found().after, layer=layer)
