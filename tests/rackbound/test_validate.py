"""The command validate: the table, the JSON's layout, and the exit code of a model at fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .command import run

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
