"""Do the weakest numbers of a group count, and is a chip without numbers refused?"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import topo
from serving import chip_numbers
from topo import Fabric, InputError


def mixed(chips: dict[str, dict[str, Any]], names: list[str]) -> Fabric:
    """GPUs of the chips named, under one switch."""
    graph = nx.Graph(name="mixed", chips=chips)
    graph.add_node("switch", kind="switch", tier="scale-up")
    for i, chip in enumerate(names):
        graph.add_node(f"gpu{i}", kind="gpu", rank=i, chip=chip)
        graph.add_edge(f"gpu{i}", "switch", kind="scale-up", bandwidth=450e9, latency=0.0)
    return Fabric.from_graph(graph)


OLD: dict[str, Any] = {"hbm_bytes": 80e9, "hbm_bandwidth": 4e12, "flops": {"bf16": 1e15, "fp8": 2e15}}
NEW: dict[str, Any] = {"hbm_bytes": 192e9, "hbm_bandwidth": 3e12, "flops": {"bf16": 2e15, "fp4": 9e15}}


def test_one_chip_gives_its_numbers() -> None:
    fabric = Fabric.from_graph(topo.load("gb200-nvl72"))
    chip = chip_numbers(fabric, np.arange(72))
    # ai-dynamo/aiconfigurator@095f58a systems/*.yaml
    assert (chip.hbm_bytes, chip.hbm_bandwidth) == (189471 * 2**20, 8e12)
    assert chip.flops == {"bf16": 2.5e15, "fp8": 5e15, "fp4": 10e15}
    assert chip.notes == ()


def test_of_two_chips_the_weakest_of_each_counts() -> None:
    chip = chip_numbers(mixed({"old": OLD, "new": NEW}, ["old", "new", "old"]), np.arange(3))
    assert (chip.hbm_bytes, chip.hbm_bandwidth) == (80e9, 3e12)
    assert chip.flops == {"bf16": 1e15}  # a rate one of them lacks is no rate of the group
    assert "new, old" in chip.notes[0]


def test_only_the_ranks_taken_count() -> None:
    chip = chip_numbers(mixed({"old": OLD, "new": NEW}, ["old", "new", "new"]), np.array([1, 2]))
    assert chip.hbm_bytes == 192e9
    assert chip.notes == ()


def test_a_missing_rate_falls_back_and_says_so() -> None:
    chip = chip_numbers(Fabric.from_graph(topo.load("hgx-a100-8")), np.arange(8))
    # NVIDIA A100: 312 TFLOP/s dense BF16 and no FP8
    assert chip.rate("fp8") == chip.rate("bf16") == chip.rate("mxfp4") == 312e12
    assert chip.fallbacks({"bf16"}) == []
    (said,) = chip.fallbacks({"bf16", "fp8"})
    assert "fp8" in said
    assert "bf16 rate" in said


def test_int4_weights_are_multiplied_at_16_bits_and_that_is_no_fallback() -> None:
    chip = chip_numbers(Fabric.from_graph(topo.load("gb200-nvl72")), np.arange(72))
    assert chip.rate("int4") == 2.5e15
    assert chip.fallbacks({"int4", "mxfp4", "fp8"}) == []


@pytest.mark.parametrize("missing", ["hbm_bytes", "hbm_bandwidth", "flops"])
def test_a_chip_without_numbers_is_refused(missing: str) -> None:
    bare = {key: value for key, value in OLD.items() if key != missing}
    with pytest.raises(InputError, match="has no numbers in this graph") as caught:
        chip_numbers(mixed({"bare": bare}, ["bare", "bare"]), np.arange(2))
    assert caught.value.faults[0].place == "chips['bare']"


def test_every_chip_without_numbers_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        chip_numbers(mixed({"old": OLD}, ["old", "x", "y"]), np.arange(3))
    assert [fault.value for fault in caught.value.faults] == ["x", "y"]


@pytest.mark.parametrize("ranks", [[], [-1], [72], 3, None, [0.5], "x", [[0, 1]], [True]])
def test_a_group_that_is_none_is_refused(ranks: Any) -> None:
    graph = topo.load("gb200-nvl72")
    assert chip_numbers(graph, [0, 71]).hbm_bandwidth == 8e12
    with pytest.raises(InputError, match="one or more ranks, from 0 to 71"):
        chip_numbers(graph, ranks)
