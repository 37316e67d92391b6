"""`rackbound failures`: the worst named, pairs cut off named, files written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import run

SMALL = ("hgx-h100-8", "--domains", "4", "--set", "scale_out.oversubscription=2", "--set", "scale_out.radix=8")


def test_the_worst_failure_is_named(tmp_path: Path) -> None:
    found = run("failures", *SMALL, "--doubles", "2", "--out", tmp_path / "lost")
    assert found.code == 0
    assert "worst single failure: switch leaf0: 180 pairs have no path, the first d0/gpu0 => d1/gpu0" in found.out
    assert "Double failures, seed 0" in found.out
    assert "+26.25 ms" in found.out  # one of two spines: twice the time
    assert sorted(path.name for path in (tmp_path / "lost").iterdir()) == [
        "failures.json", "failures.png", "failures.svg",
    ]  # fmt: skip
    whole = json.loads((tmp_path / "lost" / "failures.json").read_text(encoding="utf-8"))
    spine = next(one for one in whole["results"]["singles"] if one["parts"] == [["switch", "spine0"]])
    assert spine["seconds"] == pytest.approx(2 * whole["results"]["seconds"], rel=1e-3)  # latencies stay


def test_bad_input_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    found = run("failures", "nope.toml", "--bytes", "1", "--out", tmp_path / "file")
    assert (found.code, found.out) == (2, "")
    assert [word for word in ("nope.toml", "--bytes", "--out") if word not in found.err] == []
    assert "doubles = -1" in run("failures", "hgx-h100-8", "--doubles", "-1").err
