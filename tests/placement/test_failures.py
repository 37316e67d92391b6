"""Is the layer that a failure leaves the bound of the graph without the part, of GPUs that still reach each other?"""

from __future__ import annotations

from functools import cache

import networkx as nx
import pytest

import placement
import serving
import topo
from collectives import kin_of, parts_of
from placement import BoundFailure, BoundFailures
from serving import Workload
from topo import InputError

STILL = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
WORK = Workload(context=4096, batch_per_gpu=114)
ASKED = {"step_budget": 20e-3}


@cache
def lost(design: str, domains: int, model: str = "deepseek-v3", **words: str) -> BoundFailures:
    return placement.bound_failures(graph(design, domains), serving.load_model(model), WORK, **ASKED, **words)


@cache
def graph(design: str, domains: int) -> nx.Graph:
    return topo.load(design, domains, STILL)


def bound(graph: nx.Graph, model: str = "deepseek-v3", **words: str) -> placement.ExpertLayerBound:
    return placement.expert_layer_bound(graph, serving.load_model(model), WORK, **ASKED, **words)


def named(found: BoundFailures, name: str) -> BoundFailure:
    return next(one for one in found.singles if one.name == name)


# --- by hand: 2,808 experts over 72 GPUs, 39 on each ------------------------------------------------------------------


def test_one_rack_without_a_tray_or_a_switch_chip() -> None:
    found = lost("gb200-nvl72", 1)
    assert (found.n_experts, found.width, found.status) == (2808, 72, "bounded")
    assert {(one.kind, one.alike) for one in found.singles} == {("tray", 18), ("switch", 18)}
    # a tray is 4 GPUs: 68 x 39
    tray = named(found, "host0")
    assert (tray.n_experts, tray.width, tray.loss, tray.dropped) == (68 * 39, 68, 4 * 39, 4)
    assert tray.n_bytes == 68 * 39 * 3 * 7168 * 2048
    assert tray.elsewhere == (68 * 39, 68)  # no other rack
    # a chip of 18 slows the 1.246 ms all-to-all by 1/17, 0.073 ms: of 12.64 ms left for 39.6 experts, 39.4
    chip = named(found, "d0/switch0")
    assert (chip.n_experts, chip.loss) == (2808, 0)
    assert found.worst is tray
    assert repr(found).startswith("BoundFailures(2,808 experts over 72 GPUs without; worst BoundFailure(2,652 experts")


def test_a_second_rack_is_a_spare() -> None:
    found = lost("gb200-nvl72", 2)
    assert found.n_parts == 2 * (18 + 18 + 72) + 5 + 3  # trays, chips and NICs of a rack; leaves, spines
    # the layer's own rack loses a tray; the other would hold it whole
    assert named(found, "host0").elsewhere == (2808, 72)
    assert named(found, "host0").loss == 156
    # trays of the other rack, NICs and fabric do a layer within a rack no harm
    assert {one.kind for one in found.singles if one.loss} == {"tray"}
    assert sum(one.alike for one in found.singles if one.loss) == 18


def test_a_layer_over_two_small_racks_by_hand() -> None:
    # Two domains of 8 with NICs of 200 GB/s; leaves of 8 ports serve two slots of both. Of 20 ms, 1.427 + 4.102 + 0.584
    # go before experts and wires; dispatch (FP8) and combine (BF16) of 58 layers, 114 tokens, 8 copies of 7,168
    # elements send the share r that leaves the smaller part of the group.
    small = STILL | {"design.domain_size": 8, "scale_out.bandwidth": "1.6 Tb/s", "scale_out.radix": 8}
    found = placement.bound_failures(
        topo.load("gb200-nvl72", 2, small), serving.load_model("deepseek-v3"), WORK, **ASKED
    )  # fmt: skip

    def by_hand(one: int, other: int) -> tuple[int, int]:
        wires = 58 * 114 * 8 * 7168 * 3 * (max(one, other) / (one + other)) / 200e9
        left = 20e-3 - 1.427e-3 - 4.102e-3 - 0.584e-3 - wires
        n = int(left * 8e12 / 58 / (3 * 7168 * 2048))
        return n * (one + other), one + other

    assert (found.n_experts, found.width) == by_hand(8, 8) == (544, 16)
    of = {one.name: (one.n_experts, one.width) for one in found.singles}
    assert of["d0/gpu0 - leaf0"] == by_hand(7, 8)
    assert of["leaf0"] == by_hand(6, 6)
    assert of["host0"] == by_hand(4, 8)
    assert of["d0/switch0"] == (544, 16)
    assert named(found, "leaf0").dropped == 0
    assert named(found, "host0").dropped == 4


def test_a_box_that_is_one_tray() -> None:
    found = lost("hgx-h200-8", 2)
    tray = named(found, "host0")
    assert (tray.n_experts, tray.width, tray.n_bytes, tray.binding) == (0, 0, 0.0, "nothing fits")
    assert (tray.loss, tray.elsewhere) == (found.n_experts, (found.n_experts, 8))
    assert found.worst is tray


# --- against the plain bound ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [{}, {"overlap": "full"}])
@pytest.mark.parametrize(("design", "domains"), [("hgx-h200-8", 1), ("mi355x-8", 2)])
def test_the_bound_is_that_of_the_graph_without_the_part(design: str, domains: int, words: dict[str, str]) -> None:
    whole, model = graph(design, domains), "mixtral-8x7b"
    found, before = lost(design, domains, model=model, **words), bound(whole, model, **words)
    assert (found.n_experts, found.width, found.n_bytes) == (before.n_experts, before.width, before.n_bytes)
    assert found.binding == before.binding
    parts = {part.name: part for part in parts_of(whole) if part.kind in ("nic", "switch", "tray")}
    assert found.n_parts == len(parts)
    for one in found.singles:
        part = parts[one.name]
        edited = topo.fail(whole, **part.given)
        try:
            least = bound(edited, model, **words)
        except InputError:  # ranks without a path: the plain bound refuses
            continue
        assert one.elsewhere[0] >= least.n_experts
        if domains == 1:
            assert (one.n_experts, one.width) == (least.n_experts, least.width)


@pytest.mark.parametrize("design", ["hgx-h200-8", "mi355x-8"])
def test_every_member_of_a_class_leaves_the_same(design: str) -> None:
    whole, model = graph(design, 1), serving.load_model("mixtral-8x7b")
    found = placement.bound_failures(whole, model, WORK, **ASKED)
    for kin in kin_of([part for part in parts_of(whole) if part.kind == "switch"]):
        left = {bound(topo.fail(whole, **part.given), "mixtral-8x7b").n_experts for part in kin}
        one = next(one for one in found.singles if one.name in {part.name for part in kin})
        assert left == {one.n_experts}
        assert one.alike == len(kin)


# --- no layer, and refusals -------------------------------------------------------------------------------------------


def test_no_layer_loses_nothing() -> None:
    dense = lost("hgx-h200-8", 1, model="llama-3.1-70b")
    assert (dense.singles, dense.status, dense.worst) == ((), "no experts", None)
    hasty = placement.bound_failures(graph("hgx-h200-8", 1), serving.load_model("mixtral-8x7b"), WORK, step_budget=1e-6)
    assert (hasty.singles, hasty.status) == ((), "nothing fits")
    assert "step budget of 1 us" in hasty.binding
    assert repr(hasty) == f"BoundFailures(nothing fits: {hasty.binding})"


def test_bad_input_is_refused() -> None:
    model = serving.load_model("mixtral-8x7b")
    with pytest.raises(InputError, match="Give the graph itself"):
        placement.bound_failures(topo.Fabric.from_graph(graph("hgx-h200-8", 1)), model, WORK, **ASKED)
    with pytest.raises(InputError, match="step_budget"):
        placement.bound_failures(graph("hgx-h200-8", 1), model, WORK, step_budget=0)


def test_a_record_is_plain_json() -> None:
    told = lost("gb200-nvl72", 1).to_dict()
    assert told["n_parts"] == 36
    assert told["singles"][0]["name"] == "host0"
    assert told["singles"][0]["elsewhere"] == [2652, 68]
