"""Does a layout that cannot exist say what would, and are GPUs grouped as it says?"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import serving
import topo
from serving import Layout, Workload
from topo import Fabric, InputError

WORK = Workload(batch_per_gpu=8)


@cache
def fabric(design: str = "gb200-nvl72", domains: int = 2) -> Fabric:
    return Fabric.from_graph(topo.load(design, domains))


def said(*, model: str = "deepseek-v3", work: Workload = WORK, **layout: Any) -> str:
    with pytest.raises(InputError) as error:
        serving.step(fabric(), serving.load_model(model), work, layout=Layout(**layout))
    return str(error.value)


@pytest.mark.parametrize(
    ("layout", "replicas", "stage", "gpus"),
    [({"ep": 72}, 72, 72, 72), ({"ep": 64, "tp": 8}, 8, 64, 64), ({"ep": 32, "dp": 128, "pp": 2}, 128, 128, 256),
     ({"ep": 1, "tp": 8}, 1, 8, 8), ({"ep": 16, "tp": 2, "cp": 4}, 2, 16, 16), ({"ep": 4, "tp": 8}, 1, 8, 8)],
)  # fmt: skip
def test_gpus_are_replicas_times_their_width(layout: dict[str, int], replicas: int, stage: int, gpus: int) -> None:
    found = Layout(**layout)
    assert (found.replicas, found.stage, found.gpus) == (replicas, stage, gpus)


def test_only_what_is_unusual_is_shown() -> None:
    assert repr(Layout(72)) == "Layout(ep=72, pp=1)"
    assert repr(Layout(64, tp=8, shared="spread")) == "Layout(ep=64, pp=1, tp=8, shared='spread')"


@pytest.mark.parametrize(
    ("layout", "cure"),
    [({"ep": 72, "tp": 16}, "ep 64 or 80 would do, or tp 12."), ({"ep": 6, "dp": 8}, "ep 4 or 8 would do."),
     ({"ep": 72, "shared": "spred"}, "Did you mean 'spread'"), ({"ep": 0}, "whole number, one or more"),
     ({"ep": 8, "redundant": -1}, "whole number, zero or more")],
)  # fmt: skip
def test_a_layout_at_odds_with_itself_says_what_would_do(layout: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError) as error:
        Layout(**layout)
    assert cure in str(error.value)


def test_too_many_gpus_say_what_there_is_room_for() -> None:
    assert "needs 216 GPUs and the graph has 144. 3 domains of 72 or pp 2 would do." in said(ep=72, pp=3)
    assert "3 domains of 72 or ep 144 would do." in said(ep=160)
    assert "or ep 140 would do." in said(ep=200, tp=20)


def test_no_more_stages_are_advised_than_there_are_layers() -> None:
    both = said(ep=1, pp=200)
    assert "pp 61 would do." in both
    assert "pp 144" not in both
    assert "3 domains" not in both
    assert "the model has 61 layers" in both
    assert "3 domains of 72" in said(ep=4, pp=50)  # 61 layers would do, 144 GPUs do not


def test_a_prompt_is_not_cut_finer_than_its_tokens() -> None:
    work = Workload("prefill", context=100, cached=96, batch_per_gpu=1)
    assert "cuts a prompt of 4 new tokens. Take at most that many." in said(work=work, ep=8, cp=8)
    serving.step(fabric(), serving.load_model("deepseek-v3"), work, layout=Layout(8, cp=4))


def test_what_does_not_go_with_model_or_phase_is_said() -> None:
    assert "does not divide the 64 attention heads. tp 2 would do." in said(model="gpt-oss-120b", ep=3, tp=3)
    assert "this is no prefill" in said(ep=64, cp=8)
    assert "has no experts" in said(model="llama-3.1-70b", ep=8, redundant=1)
    assert "is more than every GPU holding every expert, 256" in said(ep=2, redundant=257)
    assert "no shared experts as wide" in said(model="mixtral-8x7b", ep=8, shared="spread")


def test_tensor_groups_are_neighbours_and_context_groups_lie_across_them() -> None:
    groups = serving.Groups(fabric(), Layout(16, tp=2, cp=4))
    assert [group.tolist() for group in groups.tensor(0)[:2]] == [[0, 1], [2, 3]]
    assert [group.tolist() for group in groups.context(0)[:2]] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert len(groups.all) == 16
