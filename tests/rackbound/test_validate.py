"""The command validate: the table, the JSON's layout, and the exit code of a model at fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .command import DATA, run

ROWS = """system,collective,n_gpus,bytes,time_us,library,dtype,scaleup_domains,params
HGX H100-8,all_reduce,8,1048576,30,nccl 2.29,half,1,
A40 pair,all_reduce,2,1048576,30,nccl 2.29,half,1,
"""


def test_table_and_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    text = run("validate", path)
    assert text.code == 0
    assert "1 rows predicted, 1 skipped" in text.out
    assert "1 rows: unknown system A40 pair" in text.out
    results = run("validate", path, "--json").answer["results"]
    assert results["rows"] == 1
    assert results["skipped"] == [{"id": "line 3", "reason": "unknown system A40 pair"}]
    assert results["median"] == results["p90"] == abs(results["predictions"][0]["error"])
    assert set(results["groups"]) == {"all_reduce", "64 KiB to 16 MiB", "one domain"}


def test_a_prediction_below_the_bound_ends_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    monkeypatch.setattr("collectives._validate.predicted_seconds", lambda found: np.full(len(found), 1e-9))
    found = run("validate", path)
    assert found.code == 1
    assert "below what any algorithm needs" in found.err


def test_a_log_needs_its_design() -> None:
    log = DATA / "logs" / "aws-p5-1node-tagged.txt"
    text = run("validate", log, "--design", "hgx-h100-8")
    assert "32 rows predicted, 0 skipped" in text.out
    assert "run of line 4: 8 ranks, told by busbw / algbw" in text.out
    found = run("validate", log)
    assert (found.code, found.out) == (2, "")
    assert "Name it: design= (--design hgx-h100-8)" in found.err
    few = run("validate", DATA / "logs" / "v100-8node-allreduce-old.txt", "--design", "hgx-h100-8", "--domains", "2")
    assert "line 5 = 64: ranks took part, and 2 domains have 16" in few.err


def test_a_profile_of_ones_own_predicts_its_logs_better(tmp_path: Path) -> None:
    log, save = DATA / "logs" / "gcp-a3-ultra.txt", tmp_path / "mine.toml"
    assert run("calibrate", log, "--design", "hgx-h200-8", "--save", save).code == 0
    words = ("validate", log, "--design", "hgx-h200-8", "--json")
    before, after = (run(*words, *more).answer["results"]["median"] for more in ((), ("--profile", save)))
    assert after < 0.02 < before


def test_a_table_names_its_systems(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    found = run("validate", path, "--design", "hgx-h100-8", "--ranks", "8")
    assert (found.code, found.out) == (2, "")
    assert found.err.count("is for a log") == 2
