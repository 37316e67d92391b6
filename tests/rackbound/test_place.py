"""Does `rackbound place --load` compare, explain, save what engines load, and refuse before it works?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placement import read_plan
from serving import load_model

from .command import run

MODEL = ("--model", "mixtral-8x7b")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps({"rank": 0, "logical_count": np.tile([8, 4, 2, 1, 1, 1, 1, 1], (3, 32, 1)).tolist()}))
    return path


def test_before_and_after(recording: Path) -> None:
    said = run("place", "hgx-h100-8", "--domains", "2", *MODEL, "--load", recording, "--replicas", "8", "--balance",
               "1.3", "--explain")  # fmt: skip
    assert (said.code, said.err) == (0, "")
    words = " ".join(said.out.split())
    parts = (
        "before after change", "bytes between domains", "busiest link", "step, one operation after the other",
        "Heaviest layers", "Experts with most copies", "copies of experts", "load alike from all GPUs",
    )  # fmt: skip
    for part in parts:
        assert part in words
    # Expert 0 alone on a GPU of 16 has 8 of 19 tokens.
    assert f"{8 / 19 * 16:.4f}" in words


def test_a_file_that_an_engine_loads(recording: Path, tmp_path: Path) -> None:
    saved = tmp_path / "map.yaml"
    done = run("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8", "--save", saved, "--format",
               "tensorrt-llm")  # fmt: skip
    assert (done.code, done.err.split()) == (0, ["wrote", str(saved), "(tensorrt-llm)"])
    plan = read_plan(saved, gpus=8, model=load_model("mixtral-8x7b"))
    assert plan.slot_expert.shape == (32, 16)
    again = run("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8", "--current", saved, "--json")
    assert again.answer["results"]["migration"]["copies"] == 0


def test_figures_and_json(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("place", "hgx-h100-8", "--domains", "2", *MODEL, "--load", recording, "--replicas", "8", "--balance",
               "1.3", "--out", out).code == 0  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == [
        "place.json", "placement.png", "placement.svg", "traffic-after.png", "traffic-after.svg", "traffic-before.png",
        "traffic-before.svg",
    ]  # fmt: skip
    assert json.loads((out / "place.json").read_text())["schema"] == "place-load/1"


def test_all_that_is_wrong_is_said_at_once(recording: Path, tmp_path: Path) -> None:
    done = run("place", "hgx-h100-9", *MODEL, "--load", recording, "--pp", "2", "--save", tmp_path / "no" / "file",
               "--format", "trtllm")  # fmt: skip
    assert done.code == 2
    for part in ("hgx-h100-8", "--pp = 2", "--save", "--format = 'trtllm'"):
        assert part in done.err
    other = run("place", "hgx-h100-8", *MODEL, "--loads", recording, "--format", "ascend", "--balance", "1")
    for part in ("--loads", "Give --load", "needs a file to write"):
        assert part in other.err
    assert "balance = 1.0" in run("place", "hgx-h100-8", *MODEL, "--load", recording, "--balance", "1").err
    none = run("place", "hgx-h100-8", *MODEL, "--load", tmp_path / "none.json")
    assert (none.code, none.out) == (2, "")
    assert "is not there" in none.err
