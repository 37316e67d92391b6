"""Does `rackbound simulate` say when flows end and links are busy, and write it down?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import collectives

from .command import run

DRY = ("--set", "scale_out.latency='0 s'", "--set", "scale_up.latency='0 s'")
HGX = ("simulate", "hgx-h100-8", "all_to_all", "--bytes", "16GB", *DRY)


def test_times_and_use_are_said() -> None:
    out = run(*HGX, "--domains", "2").out
    # 7 GB inside at 450 GB/s, 8 GB outside at 50.
    assert "all_to_all of 16 GB over 16 ranks of hgx-h100-8 x 2: 160 ms, links shared max-min fairly" in out
    assert "240 flows have arrived: p10 15.56 ms, median 160 ms, p90 160 ms, p99 160 ms, last 160 ms" in out
    assert "1 phase with barriers" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["20", "ms", "77.8", "%", "(77.8", "%)", "100", "%", "(100", "%)"] in rows
    assert ["160", "ms", "0", "%", "(0", "%)", "100", "%", "(100", "%)"] in rows


def test_the_answer_and_the_figure_are_written(tmp_path: Path) -> None:
    found = run(*HGX, "--domains", "2", "--algorithm", "rail_aligned", "--out", tmp_path, "--json")
    assert found.err.startswith("wrote simulate.json and 2 figures")
    assert json.loads((tmp_path / "simulate.json").read_text(encoding="utf-8")) == found.answer
    assert {path.name for path in tmp_path.iterdir()} == {"simulate.json", "simulate.png", "simulate.svg"}
    results = found.answer["results"]
    assert results["finish"]["last"] == results["seconds"] == results["phases"][-1]["end"]
    assert len(results["times"]) == len(results["use"]["scale-out"]["mean"]) == 64


def test_phases_are_listed() -> None:
    out = run(*HGX, "--domains", "2", "--algorithm", "pairwise", "--no-barriers").out
    assert "Phases, the 8 longest of 15" in out
    assert "15 phases without barriers" in out


def test_it_lies_above_bounds_and_cost() -> None:
    words = (*HGX, "--domains", "2", "--algorithm", "pairwise")
    found = run(*words, "--json").answer["results"]
    held = found["bracket"]
    assert 0 < held["lower"] <= held["cost"] * (1 + 1e-9) <= held["simulated"] * (1 + 2e-9)
    assert held["simulated"] == found["seconds"]
    assert [phase["simulated"] for phase in held["phases"]] == pytest.approx(
        [phase["end"] - phase["start"] for phase in found["phases"]]
    )
    out = run(*words, "--no-barriers").out
    assert "Bracket: gap" in out
    assert "with a barrier after every phase" in out


def test_what_a_bracket_leaves_out_was_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives._bracket, "MOST_FLOWS", 239)
    found = run(*HGX, "--domains", "2", "--json").answer["results"]
    assert found["bracket"]["simulated"] == found["seconds"]
    assert found["bracket"]["left_out"] == []


def test_other_jobs_slow_it_down(tmp_path: Path) -> None:
    path = tmp_path / "others.json"
    rates: list[list[float]] = [[0.0] * 8 for _ in range(8)]
    rates[0][1] = 225e9  # half of a GPU's scale-up
    path.write_text(json.dumps(rates))
    alone = run(*HGX, "--json").answer["results"]
    shared = run(*HGX, "--background", path, "--json").answer
    # Out of gpu0 14 GB at 450 GB/s less 225, and less on no plane.
    assert (alone["seconds"], shared["results"]["seconds"]) == pytest.approx((14 / 450, 14 / 225))
    assert any("other jobs send 225 GB/s in all" in line for line in shared["assumptions"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[0]]", "must be a matrix of shape (8, 8)"), ("{", "is not JSON"), (None, "No such file"),
        ('{"a": 1}', "must be a matrix of shape (8, 8)"),
    ],
)  # fmt: skip
def test_bad_backgrounds(text: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "others.json"
    if text is not None:
        path.write_text(text)
    found = run(*HGX, "--background", path)
    assert (found.code, found.out) == (2, "")
    assert says in found.err


def test_faults_are_told_at_once(tmp_path: Path) -> None:
    found = run("simulate", "hgx-h100", "all_to_all", "--bytes", "16", "--seed", "1", "--out", tmp_path / "a")
    assert found.code == 2
    for says in ("--bytes = '16'", "hgx-h100-8", "--seed = 1: is for --routing hash"):
        assert says in found.err
    found = run("simulate", "hgx-h100-8", "all_to_all")
    assert "all_to_all needs a size" in found.err


def test_tokens_of_an_expert_layer() -> None:
    layer = ("moe_combine", "--tokens", "9", "--hidden", "64", "--top-k", "2", "--experts", "16", "--domains", "2")
    found = json.loads(run("simulate", "mi300x-8", *layer, "--copies", "per_domain", "--json").out)
    told = json.loads(run("cost", "mi300x-8", *layer, "--copies", "per_domain", "--json").out)
    assert found["results"]["algorithm"] == "per_domain"
    assert found["inputs"]["moe"] == told["inputs"]["moe"]
    assert found["results"]["n_bytes"] == told["results"]["n_bytes"]
    assert found["results"]["seconds"] >= told["results"]["seconds"] * (1 - 1e-9)
    assert "--tokens, --hidden" in run("simulate", "mi300x-8", "moe_combine").err
