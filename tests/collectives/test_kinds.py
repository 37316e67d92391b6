"""Are defaults, roots, rings, pipelining and the choice of the best what they say?"""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import collectives
import topo
from collectives import KINDS, Flows
from topo import InputError

from .shapes import racks, star

LAYER = collectives.MoE(tokens=64, hidden=1024, top_k=2, experts=16)


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=0.0)


def test_defaults_are_the_first_rows() -> None:
    assert {kind: row.default for kind, row in KINDS.items()} == {
        "all_to_all": "direct", "all_to_all_v": "direct", "all_gather": "ring", "reduce_scatter": "ring",
        "all_reduce": "ring", "broadcast": "ring", "reduce": "ring", "gather": "direct", "scatter": "direct",
        "send": "direct", "sendrecv": "direct", "barrier": "dissemination", "moe_dispatch": "direct",
        "moe_combine": "direct",
    }  # fmt: skip


# nccl-tests PERFORMANCE.md and src: busbw / algbw
def test_bus_bandwidth_factors() -> None:
    assert {kind: row.busbw(8) for kind, row in KINDS.items()} == {
        "all_to_all": 7 / 8, "all_to_all_v": 7 / 8, "all_gather": 7 / 8, "reduce_scatter": 7 / 8, "gather": 7 / 8,
        "scatter": 7 / 8, "all_reduce": 14 / 8, "broadcast": 1, "reduce": 1, "send": 1, "sendrecv": 1, "barrier": 0,
        "moe_dispatch": 7 / 8, "moe_combine": 7 / 8,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "gather", "scatter", "all_to_all"])
def test_busbw_is_the_links_where_direct_is_optimal(kind: str) -> None:
    """Nccl-tests' factors make an ideal switch's busbw the rank's link, whatever the number of ranks."""
    for n in (2, 5, 8):
        assert collectives.cost(star(n, 7e9), kind, 1e9, algorithm="direct").busbw == close(7e9)


def test_a_ring_of_1024_ranks_is_two_phases_of_1023_repeats() -> None:
    plan = collectives.schedule("all_reduce", topo.load("hgx-h100-8", 128), 1e9)
    assert [phase.repeats for phase in plan.phases] == [1023, 1023]
    assert [phase.reduces for phase in plan.phases] == [True, False]
    assert all(isinstance(phase.traffic, Flows) and len(phase.traffic.source) < 9000 for phase in plan.phases)
    assert repr(plan) == "Schedule(all_reduce ring, 1024 ranks, 1 GB, 2046 phases)"
    assert plan.assumptions == ("ring: 8 channels, one for every rank of the smallest domain",)


def test_rings_stay_on_their_rails_and_use_every_nic() -> None:
    """Two domains of four on rails: four rings; every rank carries one part out and one in at every step."""
    graph = racks(4, 4, rails=True)
    plan = collectives.schedule("all_gather", graph, 32e6)
    cost = collectives.cost(graph, plan)
    fabric = topo.Fabric.from_graph(graph)
    out = fabric.link_kind == topo.EDGE_KINDS.index("scale-out")
    assert set(cost.loads[out].tolist()) == {7 * 1e6}  # a block is 4 MB, a part of it 1 MB
    with pytest.raises(InputError, match="no path"):
        collectives.cost(graph, "all_gather", 32e6, order=list(range(8)))  # crosses from rail 3 to rail 0


def test_one_channel_uses_one_nic() -> None:
    graph = racks(4, 4)
    one = collectives.cost(graph, "all_gather", 32e6, channels=1)
    assert one.seconds == close(7 * 4e6 / 1e9)
    assert collectives.cost(graph, "all_gather", 32e6).seconds == close(one.seconds / 4)


def test_order_of_a_ring() -> None:
    plan = collectives.schedule("all_gather", star(4), 4e6, order=["gpu2", "gpu0", "gpu3", "gpu1"])
    (phase,) = plan.phases
    assert np.argwhere(phase.n_bytes).tolist() == [[0, 3], [1, 2], [2, 0], [3, 1]]


def test_rooted_kinds_say_which_root_was_taken() -> None:
    cost = collectives.cost(star(4), "broadcast", 1e6)
    assert "root: gpu0, the first rank" in cost.assumptions
    assert not any("root" in line for line in collectives.cost(star(4), "broadcast", 1e6, root=2).assumptions)


def test_barrier_has_a_flag_of_its_own() -> None:
    cost = collectives.cost(star(5, 1e9, 1e-6), "barrier")
    assert cost.seconds == close(3 * 2e-6 + 4 * 1.0 / 1e9)
    assert "barrier: flags of 1 byte each" in cost.assumptions
    assert cost.busbw == 0.0


def test_one_rank_sends_nothing() -> None:
    for kind, row in KINDS.items():
        for name in row.algorithms:
            if kind != "send" and name not in (
                "torus",
                "nvls",
                "sharp",
                "hierarchical",
                "rail_aligned",
                "rail_pipelined",
            ):
                size = np.ones((1, 1)) if kind == "all_to_all_v" else LAYER if "moe" in kind else 1e6
                assert collectives.cost(star(3), kind, size, algorithm=name, ranks=1).seconds == 0.0, (kind, name)


# --- pipelined -------------------------------------------------------------------------------------------------------


def test_overlapped_phases_take_their_busiest_link_and_all_latencies() -> None:
    """Hierarchical over 2 x 4, 9 and 1 GB/s: 4 MB out at 1 GB/s against 3 x 8 MB at 9 GB/s, both paths' latencies."""
    graph = racks(4, 4, latency=1e-6)
    phased = collectives.cost(graph, "all_gather", 32e6, algorithm="hierarchical")
    overlapped = collectives.cost(graph, "all_gather", 32e6, algorithm="hierarchical", pipelined=True)
    assert phased.seconds == close(4e6 / 1e9 + 24e6 / 9e9 + 8e-6)
    assert overlapped.seconds == close(4e6 / 1e9 + 8e-6)
    assert (phased.pipelined, overlapped.pipelined) == (False, True)
    np.testing.assert_array_equal(phased.loads, overlapped.loads)


def test_overlap_never_costs_more_and_changes_no_single_phase() -> None:
    graph = racks(3, 5, latency=1e-5)
    for kind, row in KINDS.items():
        for name in row.algorithms:
            if kind in ("send", "all_to_all_v") or name in ("torus", "nvls"):
                continue
            plan = collectives.schedule(kind, graph, LAYER if "moe" in kind else 1e5, algorithm=name)
            phased, overlapped = (collectives.cost(graph, plan, pipelined=on) for on in (False, True))
            assert overlapped.seconds <= phased.seconds * (1 + 1e-12)
            if sum(phase.repeats for phase in plan.phases) == 1:
                assert overlapped.seconds == phased.seconds


# --- the best --------------------------------------------------------------------------------------------------------


def test_the_best_says_what_it_beat_and_by_how_much() -> None:
    graph = star(8, 1e9, 1e-6)
    large, small = (collectives.cost(graph, "all_reduce", size, algorithm="best") for size in (1e9, 1e-3))
    assert large.algorithm == "nvls"
    assert set(large.tried) == set(KINDS["all_reduce"].algorithms) - {"torus", "hierarchical", "sharp"}
    assert (
        large.seconds
        == min(large.tried.values())
        == collectives.cost(graph, "all_reduce", 1e9, algorithm="nvls").seconds
    )
    second = sorted(large.tried.values())[1]
    line = f"best of 8 algorithms that apply: nvls, {second / large.seconds:.4g} times as fast as the next, direct"
    assert large.assumptions[-1] == line
    assert small.tried["ring"] == pytest.approx(7 * small.tried["direct"], rel=1e-6)  # 14 latencies against 2
    assert collectives.cost(graph, "all_reduce", 1e9).tried == {}


def test_algorithms_as_fast_as_each_other_are_said_to_be() -> None:
    best = collectives.cost(star(2), "all_gather", 1e6, algorithm="best")
    assert best.assumptions[-1].endswith(
        f": {best.algorithm}, as fast as the next, {sorted(best.tried, key=best.tried.get)[1]}"
    )


@pytest.mark.parametrize("number", [np.float32(1e9), np.float64(1e9), np.int32(10**9), 10**9], ids=repr)
def test_sizes_are_numbers_of_any_width(number: object) -> None:
    assert (
        collectives.cost(star(4), "all_reduce", number).seconds == collectives.cost(star(4), "all_reduce", 1e9).seconds
    )


@pytest.mark.parametrize("number", [10**400, -(10**400), np.float32("inf"), float("nan"), True, "1"], ids=lambda _: "")
def test_sizes_that_are_none(number: object) -> None:
    with pytest.raises(InputError, match="finite number of bytes") as caught:
        collectives.cost(star(4), "all_reduce", number)
    assert len(str(caught.value)) < 100


def test_a_name_in_a_list_is_no_algorithm() -> None:
    with pytest.raises(InputError, match="is not an algorithm of all_reduce"):
        collectives.cost(star(4), "all_reduce", 1e6, algorithm=["ring"])


def test_the_best_where_only_relaying_has_paths() -> None:
    graph = racks(4, 4, rails=True)
    with pytest.raises(InputError, match=r"24 pairs of ranks, the first 0\.0 to 1\.1.*rail_pipelined"):
        collectives.cost(graph, "all_to_all", 8e6)
    best = collectives.cost(graph, "all_to_all", 8e6, algorithm="best")
    assert set(best.tried) == {"hierarchical", "rail_aligned", "rail_pipelined"}
    assert best.algorithm == "rail_pipelined"


def test_the_best_of_none_says_why() -> None:
    with pytest.raises(InputError, match="ranks"):
        collectives.cost(star(4), "all_reduce", 1e6, algorithm="best", ranks=9)
    with pytest.raises(InputError, match="is not a known collective"):
        collectives.cost(star(4), "allreduce", 1e6, algorithm="best")


@pytest.mark.parametrize(
    ("kind", "words", "place"),
    [
        ("all_reduce", {"algorithm": "rign"}, "algorithm"),
        ("all_reduce", {"algorithm": 3}, "algorithm"),
        ("all_reduce", {"root": 1}, "root"),
        ("broadcast", {"root": "nobody"}, "root"),
        ("broadcast", {"root": 3, "ranks": [0, 1]}, "root"),
        ("all_reduce", {"channels": 0}, "channels"),
        ("all_reduce", {"channels": 2, "algorithm": "direct"}, "channels"),
        ("all_reduce", {"channels": 1, "order": [0, 1, 2, 3]}, "channels"),
        ("all_reduce", {"order": [0, 1, 2]}, "order"),
        ("all_reduce", {"order": [[0, 1, 2, 3], [0, 1]]}, "order"),
        ("all_reduce", {"order": []}, "order"),
        ("all_reduce", {"order": ["gpu0", "zz"]}, "order"),
        ("send", {"stages": [[0], ["zz"]]}, "stages"),
    ],
    ids=str,
)
def test_bad_words_are_refused(kind: str, words: dict[str, object], place: str) -> None:
    with pytest.raises(InputError) as caught:
        collectives.cost(star(4), kind, 1e6, **words)
    assert caught.value.faults[0].place == place


def test_a_schedule_knows_no_best() -> None:
    with pytest.raises(InputError, match=r"Ask collectives\.cost"):
        collectives.schedule("all_reduce", star(4), 1e6, algorithm="best")


def test_a_switch_without_the_link_is_another_topology() -> None:
    plan = collectives.schedule("all_reduce", star(4), 1e6, algorithm="nvls")
    with pytest.raises(InputError, match="Make the schedule for this topology"):
        collectives.cost(racks(2, 2), plan)


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_runs_and_names_every_kind_and_algorithm() -> None:
    page = Path(__file__).parents[2] / "docs" / "collectives.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
    text = page.read_text()
    names = {name for kind, row in KINDS.items() for name in (kind, *row.algorithms)}
    assert {name for name in names if name not in text} == set()
