"""`rackbound design compare`: measures side by side."""

from __future__ import annotations

from pathlib import Path

import topo
from rackbound._compare_command import measure_rows

from .command import run


def test_two_designs_side_by_side(tmp_path: Path) -> None:
    out = tmp_path / "compared"
    found = run("design", "compare", "hgx-h100-8", "gb200-nvl72", "--out", out)
    assert found.code == 0
    for text in ("36 scale-up, 5 leaf, 3", "32.4 TB/s", "1.8 TB/s", "172.8 kW", "1: leaf0"):
        assert text in found.out
    assert sorted(path.name for path in out.iterdir()) == [
        "compare.json", "topology-gb200-nvl72.png", "topology-gb200-nvl72.svg",
        "topology-hgx-h100-8.png", "topology-hgx-h100-8.svg",
    ]  # fmt: skip


def test_measures_by_hand() -> None:
    """Half of 72 GPUs send 36 x 900 GB/s; half of 8 MI300X cross 4 x 4 mesh links of 64 GB/s."""
    rack = measure_rows(topo.measure(topo.load("gb200-nvl72")))
    assert rack["scale-up bisection"] == "32.4 TB/s"
    assert rack["switches"] == "18 scale-up"
    assert measure_rows(topo.measure(topo.load("mi300x-8")))["scale-up bisection"] == "1.024 TB/s"


def test_what_is_not_stated_is_said_so() -> None:
    rows = measure_rows(
        topo.measure(topo.load("hgx-h100-8", 2, {"chip.price": "30000 $", "scale_out.nic_price": "100 $"}))
    )
    assert rows["price"] == (
        "481600 $: GPUs, NICs; not stated: scale-up switches, leaf switches, scale-up cables, scale-out cables"
    )
    assert measure_rows(topo.measure(topo.build("ring", n=4)))["power"] == "not stated"


def test_bad_input_is_said_at_once_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    found = run("design", "compare", "hgx-h100", "nope.toml", "--out", tmp_path / "file")
    assert found.code == 2
    assert found.out == ""
    assert [word for word in ("hgx-h100-8", "nope.toml", "--out") if word not in found.err] == []
    assert (tmp_path / "file").read_text() == "mine"
