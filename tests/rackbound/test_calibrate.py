"""`rackbound calibrate`: a profile written, a figure drawn, and what the logs do not tell said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collectives import load_profile

from .command import DATA, run

LOG = DATA / "logs" / "aws-p5-1node-tagged.txt"


def test_a_profile_is_fitted_and_written(tmp_path: Path) -> None:
    save, out = tmp_path / "my-cluster.toml", tmp_path / "out"
    found = run("calibrate", LOG, "--design", "hgx-h100-8", "--save", save, "--out", out)
    assert found.code == 0
    assert "all_reduce, 8 ranks, 1 domain" in found.out
    assert "exchange.base" in found.err
    assert f"predict with --profile {save}" in found.err
    profile = load_profile(save)
    assert profile.name == "my-cluster"
    assert profile.band == load_profile("nccl-hopper").band
    assert sorted(path.name for path in out.iterdir()) == ["calibrate.json", "calibration.png", "calibration.svg"]
    whole = json.loads((out / "calibrate.json").read_text(encoding="utf-8"))
    assert whole["results"]["median"] < whole["results"]["start_median"]
    assert whole["results"]["profile"]["constants"] == pytest.approx(profile.constants, rel=1e-5)


def test_domains_follow_from_the_ranks(tmp_path: Path) -> None:
    found = run("calibrate", DATA / "logs" / "v100-8node-allreduce-old.txt", "--design", "hgx-h100-8", "--json")
    assert found.answer["results"]["curves"][0]["n_domains"] == 8
    assert found.answer["inputs"]["domains"] is None
    few = run("calibrate", DATA / "logs" / "v100-8node-allreduce-old.txt", "--design", "hgx-h100-8", "--domains", "2")
    assert (few.code, few.out) == (2, "")
    assert "the graph has 16" in few.err


def test_bad_input_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    found = run(
        "calibrate", tmp_path / "none.txt", "--design", "hgx-h100-8", "--save", "x.yaml", "--out", tmp_path / "file"
    )
    assert (found.code, found.out) == (2, "")
    assert [word for word in ("none.txt", "--save", "--out") if word not in found.err] == []
