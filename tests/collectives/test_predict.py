"""The laws of prediction: what they do at their limits, and that no constant makes a wire faster than it is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import collectives
import topo
from collectives import Bound, MoE, list_profiles, load_profile
from collectives._features import bulk_features, expert_features, scaled
from collectives._predict import LAWS, Features, choice_weights, stacked
from topo import Fabric, InputError

RANKS = np.arange(8)
HGX = Fabric.from_graph(topo.load("hgx-h100-8"))
PAIR = Fabric.from_graph(topo.load("hgx-h100-8", domains=2))
BULK = [name for name in list_profiles() if load_profile(name).law == "collective"]
EXPERT = [name for name in list_profiles() if load_profile(name).law == "expert"]
MIX = MoE(tokens=128, hidden=7168, top_k=8, experts=256)


def seconds(profile: str, kind: str, n_bytes: float, ranks: int = 8, fabric: Fabric = HGX) -> float:
    return collectives.cost(fabric, kind, n_bytes, ranks=ranks, profile=profile).seconds


@cache
def wires(kind: str, ranks: int, fabric: Fabric) -> tuple[Features, Bound]:
    """Features and bound of a gigabyte."""
    team = fabric.rank_numbers(ranks)
    return bulk_features(fabric, kind, 1e9, team), collectives.lower_bound(fabric, kind, 1e9, ranks=team, scope="any")


@pytest.mark.parametrize("name", BULK)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_never_faster_than_the_wires_and_slower_for_more_bytes(name: str, kind: str) -> None:
    sizes = 2.0 ** np.arange(9, 35)
    for ranks, fabric in ((2, HGX), (8, HGX), (16, PAIR)):
        row, bound = wires(kind, ranks, fabric)
        times = LAWS["collective"](load_profile(name).constants, stacked([scaled(row, n / 1e9) for n in sizes]))
        late = 1.0 if kind == "all_to_all" else 0.98  # NCCL's table takes another protocol a little late
        assert (times[1:] > late * times[:-1]).all()
        assert (times > bound.latency_seconds + bound.bandwidth_seconds * sizes / 1e9).all()


@pytest.mark.parametrize("name", EXPERT)
def test_more_tokens_take_longer_and_few_only_latency(name: str) -> None:
    fabric = Fabric.from_graph(topo.load("hgx-h100-8", domains=2))
    profile = load_profile(name)
    for kind in ("moe_dispatch", "moe_combine"):
        row = expert_features(fabric, kind, replace(MIX, tokens=1.0), fabric.rank_numbers(None), profile.copies)
        law = LAWS[profile.law]
        times = law(profile.constants, stacked([scaled(row, n) for n in (1e-9, 1, 16, 256, 4096)]))
        assert (np.diff(times) > 0).all()
        one, two = (law(profile.constants, scaled(row, n))[0] for n in (1e7, 2e7))
        assert two / one == pytest.approx(2, rel=0.01)  # bytes alone count in the end


def test_an_environment_scales_small_sizes_and_leaves_large_ones() -> None:
    slow = load_profile("nccl-hopper").within("nccl 2.20.5 (Azure ND)")
    factor = slow.constants["latency.environment"]
    small, large = (
        collectives.cost(HGX, "all_reduce", n, profile=slow).seconds / seconds("nccl-hopper", "all_reduce", n)
        for n in (512.0, 2.0**34)
    )
    assert small == pytest.approx(factor, rel=0.01)
    assert 1 <= large < 1.01


def test_in_switch_reduction_is_taken_from_five_ranks_up_where_switches_reduce() -> None:
    weights = {
        ranks: choice_weights(bulk_features(HGX, "all_reduce", 2.0**32, np.arange(ranks)))[-1, 0] for ranks in (4, 5, 8)
    }
    assert weights[4] == 0
    assert weights[5] > 0.5
    assert weights[8] > weights[5]
    ampere = Fabric.from_graph(topo.load("hgx-a100-8"))
    assert choice_weights(bulk_features(ampere, "all_reduce", 2.0**32, RANKS))[-1, 0] == 0


def test_an_algorithm_that_is_named_is_taken() -> None:
    free, ring, nvls = (
        collectives.cost(HGX, "all_reduce", 2.0**34, profile="nccl-hopper", algorithm=name).seconds
        for name in (None, "ring", "nvls")
    )
    assert nvls < free < 1.01 * nvls  # the library takes it at this size, and a ring hardly ever
    assert ring > 1.2 * nvls
    small = [collectives.cost(HGX, "all_reduce", 512, profile="nccl-hopper", algorithm=name).seconds
             for name in (None, "nvls")]  # fmt: skip
    assert small[0] != small[1]


def test_both_classes_overlap_almost_as_a_maximum() -> None:
    profile = load_profile("nccl-hopper")
    row = bulk_features(PAIR, "all_to_all", 2.0**34, PAIR.rank_numbers(16))
    law = LAWS["collective"]
    both, up, out = (
        law(profile.constants, each)[0] for each in (row, replace(row, out=np.zeros(1)), replace(row, up=np.zeros(1)))
    )
    assert max(up, out) < both < 1.1 * max(up, out) < up + out


def test_sums_of_a_node_are_ready_before_they_leave_it() -> None:
    """Wires of 3 and 4 ms and nothing else: out in the larger, back in the sum at order 1 and in 5 ms at order 2."""
    none = dict.fromkeys(load_profile("deepep-normal").constants, 0.0)
    plain = dict.fromkeys((name for name in none if "efficiency" in name or "combine" in name or "norm" in name), 1.0)
    constants = {**none, **plain, "scale_out.overlap": 500.0, "token.overlap": 1.0}
    one = np.ones(1)
    row = Features(
        ranks=8 * one, domains=2 * one, hosts=2 * one, rounds=one, n_bytes=0 * one, bandwidth=450e9 * one,
        up=3e-3 * one, out=4e-3 * one, nvls=np.inf * one, exchange=one < 0, combine=one < 0, tokens=0 * one,
    )  # fmt: skip
    assert LAWS["expert"](constants, row)[0] == pytest.approx(4e-3)
    for order, seconds in ((1.0, 7e-3), (2.0, 5e-3)):
        back = LAWS["expert"]({**constants, "scale_out.combine_overlap": order}, replace(row, combine=one > 0))
        assert back[0] == pytest.approx(seconds)


def test_a_cost_says_whose_prediction_it_is_and_its_band() -> None:
    profile = load_profile("nccl-hopper")
    found = collectives.cost(HGX, "all_reduce", 1e9, profile="nccl-hopper")
    assert found.profile == "nccl-hopper"
    assert found.band is not None
    assert found.band[0] == pytest.approx(found.seconds / (1 + profile.band[1]))
    assert found.band[1] == pytest.approx(found.seconds / (1 - profile.band[1]))
    assert found.seconds == pytest.approx(found.latency_seconds + found.bandwidth_seconds)
    assert found.busbw == pytest.approx(1e9 / found.seconds * 1.75)
    assert found.classes["scale-up"].utilisation < 1
    assert "nccl-hopper: " in repr(found)
    ideal = collectives.cost(HGX, "all_reduce", 1e9)
    assert ideal.band is None
    assert ideal.seconds == collectives.cost(HGX, "all_reduce", 1e9, profile=load_profile("ideal")).seconds


def test_an_unseen_chip_and_an_unmeasured_kind_are_said() -> None:
    found = collectives.cost(topo.load("gb200-nvl72"), "broadcast", 1e9, profile="nccl-hopper")
    said = "\n".join(found.assumptions)
    assert "was not fitted on GB200: 20 to 40 % off" in said
    assert "no broadcast was measured" in said
    assert found.band is not None
    assert found.band[0] <= found.seconds / 1.4


def test_no_bytes_take_no_time() -> None:
    found = collectives.cost(HGX, "all_reduce", 0, profile="nccl-hopper")
    assert (found.seconds, found.band) == (0.0, (0.0, 0.0))


@pytest.mark.parametrize(
    ("profile", "kind", "size", "said"),
    [
        ("nccl-hopper", "moe_dispatch", MIX, "not for moe_dispatch"),
        ("deepep-normal", "all_reduce", 1e9, "not for all_reduce"),
        ("deepep-low-latency-rdma", "moe_dispatch", MIX, "the graph has none"),
    ],
)
def test_a_profile_for_something_else_is_refused(profile: str, kind: str, size: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        collectives.cost(HGX, kind, size, profile=profile)  # type: ignore[arg-type]
