"""Does every engine's map say where the experts are, read as its own loader reads it?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from placement import PLAN_FORMATS, place, read_plan, rebalance_experts, write_plan
from serving import Layout, PlacementPlan, load_model
from topo import InputError

DATA = Path(__file__).parent.parent / "data" / "expert-load"
LOADS = np.array([[8.0, 4, 2, 1, 1, 1], [1, 1, 1, 9, 5, 3]])


def placed(sharing: str = "equal") -> PlacementPlan:
    """Two layers with experts of three, 6 experts and 2 copies on 4 GPUs."""
    plan = place(LOADS, 4, replicas=2, sharing=sharing, work=50).plan
    assert plan is not None
    return PlacementPlan(plan.slot_expert, plan.slot_rank, np.zeros(3, dtype=np.intp), 4, 1, plan.slot_share)


@pytest.mark.parametrize("format", PLAN_FORMATS)
def test_what_is_written_is_read_back(format: str, tmp_path: Path) -> None:
    plan, path = placed(), tmp_path / "map"
    write_plan(plan, path, format)
    gpus = 4 if format in ("tensorrt-llm", "vllm", "sglang") else None
    back = read_plan(path, gpus=gpus)
    assert back.ep == 4
    at = slice(1, None) if format == "sglang" else slice(None)  # that has a row for the dense layer too
    assert back.phy2log[at].tolist() == plan.phy2log.tolist()
    assert sorted(tmp_path.iterdir()) == [path]


def test_ascend_map_of_vllm_ascend(tmp_path: Path) -> None:
    """Its own test file: two devices of five slots, experts 7 and 2 on both; written again it is the same."""
    plan = read_plan(DATA / "ascend-expert_map.json")
    assert plan.phy2log.tolist() == [[7, 2, 0, 3, 5, 6, 1, 4, 7, 2]]
    assert plan.logcnt.tolist() == [[1, 1, 2, 1, 1, 1, 1, 2]]
    write_plan(plan, tmp_path / "map.json", "ascend")
    assert json.loads((tmp_path / "map.json").read_text()) == json.loads((DATA / "ascend-expert_map.json").read_text())


def test_tensorrt_llm_yaml_as_its_generator_writes_it(tmp_path: Path) -> None:
    """Its keys are the layers' numbers in the model; DeepSeek-V3's begin at 3."""
    model = load_model("deepseek-v3")
    phy2log, _, _ = rebalance_experts(np.arange(1.0, 257)[None].repeat(58, 0), 288, 1, 1, 36)
    plan = PlacementPlan(
        phy2log.astype(np.intp), np.tile(np.repeat(np.arange(36), 8), (58, 1)), np.zeros(61, np.intp), 36, 1
    )
    assert write_plan(plan, tmp_path / "map.yaml", "tensorrt-llm", model=model) == ()
    data = yaml.safe_load((tmp_path / "map.yaml").read_text())
    assert list(data) == ["initial_global_assignments", "num_slots", "layer_updates_per_iter"]
    assert list(data["initial_global_assignments"]) == list(range(3, 61))
    assert data["initial_global_assignments"][3] == phy2log[0].tolist()
    assert (data["num_slots"], data["layer_updates_per_iter"]) == (288, 0)
    back = read_plan(tmp_path / "map.yaml", gpus=36, model=model)
    assert back.slot_expert.shape == (58, 288)
    assert len(back.layer_stage) == 61


def test_tensorrt_llm_of_another_dumper(tmp_path: Path) -> None:
    """Block style, keys out of order, what else a configuration may hold."""
    (tmp_path / "map.yaml").write_text(
        "num_slots: 4\ninitial_global_assignments:\n  4:\n  - 1\n  - 0\n  - 2\n  - 2\n  3: [0, 1,\n    2, 0]\nx: y\n"
    )
    assert read_plan(tmp_path / "map.yaml", gpus=2).slot_expert.tolist() == [[0, 1, 2, 0], [1, 0, 2, 2]]


def test_sglang_rows_are_all_layers_of_the_model(tmp_path: Path) -> None:
    notes = write_plan(placed(), tmp_path / "map.json", "sglang")
    rows = json.loads((tmp_path / "map.json").read_text())["physical_to_logical_map"]
    assert rows[0] == [0, 1, 2, 3, 4, 5, 0, 1]
    assert rows[1:] == placed().phy2log.tolist()
    assert notes == ("the 2 layers with experts are the last of 3",)


def test_vllm_line_says_its_sizes(tmp_path: Path) -> None:
    write_plan(placed(), tmp_path / "map.jsonl", "vllm")
    line = json.loads((tmp_path / "map.jsonl").read_text())
    assert (line["record_type"], line["version"]) == ("eplb_initial_mapping", 1)
    assert (line["num_redundant_experts"], line["num_slots"]) == (2, 8)
    assert list(line["initial_global_assignments"]) == ["0", "1"]


def test_what_a_format_cannot_say_is_said(tmp_path: Path) -> None:
    model = load_model("mixtral-8x7b")
    assert "no shares" in write_plan(placed("weighted"), tmp_path / "a", "sglang")[-1]
    assert write_plan(placed("weighted"), tmp_path / "a") == ()
    assert read_plan(tmp_path / "a").slot_share is not None
    with pytest.raises(InputError, match="mixtral-8x7b has 32"):
        write_plan(placed(), tmp_path / "b", "tensorrt-llm", model=model)
    uneven = place(LOADS, 4, replicas=1, work=5).plan
    assert uneven is not None
    with pytest.raises(InputError, match=r"1 to 2 slots a GPU.*Place 2, 6, 10"):
        write_plan(uneven, tmp_path / "b", "ascend")
    with pytest.raises(InputError, match="Did you mean 'ascend'"):
        write_plan(placed(), tmp_path / "b", "ascent")
    with pytest.raises(InputError, match="cannot be written"):
        write_plan(placed(), tmp_path / "none" / "b")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("text", "gpus", "said"),
    [
        ('{"phy2log": [[0, 1]]}', None, "Give gpus="), ('{"phy2log": [[0, 1, 0]]}', 2, "do not share 3 slots"),
        ('{"phy2log": [[0, 2, 2, 0]]}', 2, "expert 1 = 'layer 0': has no slot"),
        ('{"phy2log": [[0, 999999999]]}', 2, "more than the 2 slots"), ('{"phy2log": [[0, -1]]}', 2, "Count from"),
        ('{"phy2log": [[0, 1.5]]}', 2, "whole numbers"), ('{"phy2log": [[0, 1], [0]]}', 1, "whole numbers"),
        ('{"phy2log": [[0, 1]], "num_gpus": 2}', 1, "are 2 in the file"), ('{"weight": [[1]]}', 1, "known format"),
        ('{"initial_global_assignments": {"a": [0]}}', 1, "no whole placement"), ("hello", 1, "known format"),
        ('{"layer_list": [{"device_list": [{"device_id": 0}]}]}', 1, "no whole placement"),
        ('{"layer_list": []}', None, "whole numbers"), ('{"phy2log": [[0, 1]]}', 0, "one or more"),
        ('{"slot_expert": [[0]]}', None, "schema"),
    ],
)  # fmt: skip
def test_refused(text: str, gpus: int | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "map").write_text(text)
    with pytest.raises(InputError, match=said):
        read_plan(tmp_path / "map", gpus=gpus)


def test_a_contiguous_plan_of_a_model_fits_its_rows(tmp_path: Path) -> None:
    model = load_model("deepseek-v3")
    plan = PlacementPlan.contiguous(256, model.moe_layer_mask, Layout(ep=64))
    write_plan(plan, tmp_path / "map.json", "sglang", model=model)
    back = read_plan(tmp_path / "map.json", gpus=64, model=model)
    assert back.slot_expert.tolist() == plan.slot_expert.tolist()
