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
    assert "worst of 686 single failures: switch leaf0: 180 pairs without a path, first d0/gpu0 => d1/gpu0" in found.out
    assert "rail_pipelined takes 18.75 ms, +3.751 ms" in found.out  # by the other GPUs' NICs
    assert "2 of 234,955, seed 0. With 95 % confidence" in found.out
    assert "fewer than 78 % are worse than the worst here" in found.out  # 1 - 0.05^(1/2)
    assert "+26.25 ms" in found.out  # one of two spines: twice the time
    assert sorted(path.name for path in (tmp_path / "lost").iterdir()) == [
        "failures.json", "failures.png", "failures.svg",
    ]  # fmt: skip
    whole = json.loads((tmp_path / "lost" / "failures.json").read_text(encoding="utf-8"))
    spine = next(one for one in whole["results"]["singles"] if one["parts"] == [["switch", "spine0"]])
    assert spine["seconds"] == pytest.approx(2 * whole["results"]["seconds"], rel=1e-3)  # latencies stay


def test_in_network_schedules_and_trays() -> None:
    found = run("failures", "gb200-nvl72", "all_reduce", "--algorithm", "nvls", "--domains", "1")
    lines = {line.split("  ")[0].strip(): line for line in found.out.splitlines()}
    assert "+66.27 us" in lines["switch d0/switch0"]  # 1 of 18 planes
    assert "4 ranks fewer" in lines["tray host0"]
    assert "142 pairs without a path" in lines["link d0/gpu0 - d0/switch"]
    assert "simulated, links shared" in found.out  # the bracket of what is lost from


LAYER = ("moe_dispatch", "--tokens", "128", "--hidden", "7168", "--top-k", "8", "--experts", "256")


def test_failures_of_an_expert_layer() -> None:
    found = run("failures", "hgx-h100-8", *LAYER, "--copies", "per_domain", "--json")
    assert found.code == 0
    whole = json.loads(found.out)
    assert (whole["inputs"]["bytes"], whole["inputs"]["moe"]["experts"]) == (None, 256)
    assert whole["results"]["algorithm"] == "per_domain"
    told = run("cost", "hgx-h100-8", *LAYER, "--copies", "per_domain", "--domains", "2", "--json")
    assert whole["results"]["seconds"] == json.loads(told.out)["results"]["seconds"]
    refused = run("failures", "hgx-h100-8", *LAYER[:1])
    assert refused.code == 2
    assert "--tokens, --hidden, --top-k, --experts" in refused.err


def test_a_barrier_has_flags_and_nothing_may_be_sent() -> None:
    whole = json.loads(run("failures", "mi300x-8", "--domains", "1", "barrier", "--json").out)
    assert (whole["inputs"]["bytes"], whole["results"]["n_bytes"]) == (None, 8.0)
    assert run("failures", "mi300x-8", "--domains", "1", "--bytes", "0B").code == 0


def test_all_double_failures_of_a_small_one() -> None:
    found = run("failures", "mi300x-8", "--domains", "1", "--doubles", "99", "--set", "design.domain_size=4")
    assert "These are all: " in found.out


def test_long_tables_are_cut() -> None:
    found = run("failures", "mi300x-8", "--domains", "1", "--doubles", "45")
    assert "and 5 more that are no worse: --json has all" in found.out


def test_the_layer_a_failure_leaves(tmp_path: Path) -> None:
    asked = ("bound", "gb200-nvl72", "--model", "deepseek-v3", "--domains", "1", "--failures")
    found = run(*asked, "--out", tmp_path / "lost")
    assert found.code == 0
    assert "at most 2,808 experts (123.7 GB a layer) over 72 GPUs with nothing failed" in found.out
    assert "worst of 36 single failures: tray host0: 2,652 over 68, 156 experts fewer" in found.out
    assert sorted(path.name for path in (tmp_path / "lost").iterdir()) == [
        "failures.json", "failures.png", "failures.svg",
    ]  # fmt: skip
    dense = run("bound", "hgx-h100-8", "--model", "llama-3.1-70b", "--failures")
    assert "no experts: llama-3.1-70b is dense" in dense.out


def test_bad_input_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    found = run("failures", "nope.toml", "--bytes", "1", "--out", tmp_path / "file")
    assert (found.code, found.out) == (2, "")
    assert [word for word in ("nope.toml", "--bytes", "--out") if word not in found.err] == []
    assert "doubles = -1" in run("failures", "hgx-h100-8", "--doubles", "-1").err
