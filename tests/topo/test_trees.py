"""Are leaf/spine fabrics and fat trees as large, as wired and as fast as published?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from collectives import cost
from topo import InputError

from .wired import alike, fabric, gpus, lanes, ports, switches

# --- published sizes -------------------------------------------------------------------------------------------------


# arXiv 2505.09343, Table 3, k = 64; links without those of end points
@pytest.mark.parametrize(
    ("levels", "endpoints", "n_switches", "links"), [(2, 2048, 96, 2048), (3, 65536, 5120, 131072)], ids=["FT2", "FT3"]
)
def test_published_fat_trees(levels: int, endpoints: int, n_switches: int, links: int) -> None:
    graph = topo.build("fat_tree", k=64, levels=levels)
    assert (len(gpus(graph)), len(switches(graph)), lanes(fabric(graph))) == (endpoints, n_switches, links)
    assert topo.check(graph) == []


# Al-Fares 2008: k^3/4 hosts, 5 k^2/4 switches, 3 k^3/4 links with those of hosts, diameter 6
@pytest.mark.parametrize(("k", "hosts", "n_switches", "links"), [(4, 16, 20, 48), (8, 128, 80, 384)])
def test_three_levels(k: int, hosts: int, n_switches: int, links: int) -> None:
    graph = topo.build("fat_tree", k=k)
    assert (len(gpus(graph)), len(switches(graph)), lanes(graph)) == (hosts, n_switches, links)
    assert topo.hop_counts(graph).max() == 6


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("k", range(2, 13, 2))
def test_closed_forms(k: int, levels: int) -> None:
    graph = topo.build("fat_tree", k=k, levels=levels)
    hosts, between = (k**2 // 2, k**2 // 2) if levels == 2 else (k**3 // 4, k**3 // 2)
    tiers = {"leaf": k, "spine": k // 2, "core": 0} if levels == 2 else dict.fromkeys(("leaf", "spine"), k**2 // 2)
    assert len(gpus(graph)) == hosts
    assert lanes(fabric(graph)) == between
    assert {tier: len(switches(graph, tier)) for tier in tiers} == tiers
    assert len(switches(graph, "core")) == (0 if levels == 2 else k**2 // 4)
    assert {ports(graph, switch) for switch in switches(graph)} == {k}
    assert {ports(graph, gpu) for gpu in gpus(graph)} == {1}
    assert alike(graph, gpus(graph)) or k > 8


@pytest.mark.parametrize("k", [4, 6, 8])
def test_bisection_of_half_the_hosts(k: int) -> None:
    """The cores reach k/2 pods each way over k^3/8 links."""
    graph = topo.build("fat_tree", k=k)
    half = [f"pod{p}/spine{j}" for p in range(k // 2) for j in range(k // 2)]
    up = sum(1 for spine in half for other in graph[spine] if other.startswith("core"))
    assert up == k**3 // 8


# SimGrid 3.32: (N - 1) m / NIC, 1e9 bytes a pair over 50 GB/s
@pytest.mark.parametrize(("k", "seconds"), [(4, 0.3), (8, 2.54)])
def test_all_to_all_is_what_the_nic_takes(k: int, seconds: float) -> None:
    graph = topo.build("fat_tree", k=k, bandwidth="50 GB/s", latency="0 s")
    assert cost(graph, "all_to_all", k**3 / 4 * 1e9).seconds == pytest.approx(seconds, rel=1e-12)


# --- oversubscription ------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(half=st.integers(1, 5), first=st.floats(1, 12), second=st.floats(1, 12), levels=st.sampled_from([2, 3]))
def test_uplinks_are_down_over_oversubscription(half: int, first: float, second: float, levels: int) -> None:
    ratios = [first, second][: levels - 1]
    graph = topo.build("fat_tree", k=2 * half, levels=levels, oversubscription=ratios)
    ups = [math.ceil(half / ratio - 1e-9) for ratio in ratios]
    for leaf in switches(graph, "leaf"):
        assert ports(graph, leaf) == half + ups[0]
    for spine in switches(graph, "spine"):
        assert ports(graph, spine) == (2 * half if levels == 2 else half + ups[1])
    for core in switches(graph, "core"):
        assert ports(graph, core) == 2 * half
    assert len(gpus(graph)) == 2 * half**levels
    assert graph.graph["shape"]["oversubscription"] == [half / up for up in ups]


def test_one_number_is_every_level_and_says_so() -> None:
    graph = topo.build("fat_tree", k=8, oversubscription=2)
    assert [ports(graph, name) for name in ("leaf0", "pod0/spine0", "core0.0")] == [6, 6, 8]
    assert [len(switches(graph, tier)) for tier in ("leaf", "spine", "core")] == [32, 16, 4]
    assert "oversubscription = 2 at both levels, 4 in all" in graph.graph["assumptions"]


def test_uplinks_rounded_up_are_said() -> None:
    graph = topo.build("fat_tree", k=8, levels=2, oversubscription=3)
    assert "oversubscription = 4 / 2 (ports down / up): uplinks are rounded up" in graph.graph["assumptions"]


@pytest.mark.parametrize(("oversubscription", "slower"), [(1, 1.0), (2, 2.0), (4, 4.0)])
def test_oversubscription_slows_what_crosses(oversubscription: int, slower: float) -> None:
    """Of 31 messages 28 leave the leaf: 4 GPUs x 28 messages over 4 / s cables."""
    graph = topo.build("fat_tree", k=8, levels=2, oversubscription=oversubscription, bandwidth="50 GB/s", latency="0 s")
    seconds = cost(graph, "all_to_all", 32e9).seconds
    assert seconds == pytest.approx(max(31 / 50, 28 * slower / 50), rel=1e-12)


# --- leaf and spine --------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    leaves=st.integers(1, 8), spines=st.integers(1, 6), hosts=st.integers(1, 12),
    each=st.one_of(st.integers(1, 4), st.floats(0.3, 6)),
)  # fmt: skip
def test_leaf_spine(leaves: int, spines: int, hosts: int, each: float) -> None:
    given_as = {"lanes": each} if isinstance(each, int) else {"oversubscription": each}
    up = spines * each if isinstance(each, int) else math.ceil(hosts / each - 1e-9)
    if up < spines:
        with pytest.raises(InputError, match=f"a leaf has {up} uplinks and does not reach every spine"):
            topo.build("leaf_spine", leaves=leaves, spines=spines, hosts=hosts, **given_as)
        return
    graph = topo.build("leaf_spine", leaves=leaves, spines=spines, hosts=hosts, **given_as)
    assert topo.check(graph) == []
    assert len(gpus(graph)) == leaves * hosts
    assert lanes(fabric(graph)) == leaves * up
    assert {ports(graph, leaf) for leaf in switches(graph, "leaf")} == {hosts + up}
    spread = [ports(graph, spine) for spine in switches(graph, "spine")]
    assert len(spread) == spines
    assert max(spread) - min(spread) <= 1
    assert fabric(graph).number_of_edges() == leaves * spines
    assert any("do not divide" in line for line in graph.graph["assumptions"]) == bool(up % spines)
    if leaves > 1:
        assert topo.hop_counts(graph).max() == 4


def test_a_leaf_is_non_blocking_by_default() -> None:
    graph = topo.build("leaf_spine", leaves=4, spines=4, hosts=8)
    assert graph.edges["leaf3", "spine2"]["lanes"] == 2
    assert graph.graph["shape"]["oversubscription"] == 1


@pytest.mark.parametrize(
    ("parameters", "place", "rule"),
    [
        ({"lanes": 1, "oversubscription": 2}, "oversubscription", "is not what 8 hosts over 2 uplinks make: 4"),
        ({"oversubscription": 8}, "spines", "a leaf has 1 uplinks"),
        ({"lanes": 4, "radix": 15}, "radix", "a leaf needs 16 ports"),
    ],
)
def test_leaf_spines_that_do_not_exist(parameters: dict[str, object], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        topo.build("leaf_spine", **{"leaves": 3, "spines": 2, "hosts": 8} | parameters)
    assert caught.value.faults[0].place == place
    assert rule in caught.value.faults[0].rule


@pytest.mark.parametrize(
    ("parameters", "place", "rule"),
    [
        ({"k": 5}, "k", "is odd"),
        ({"k": 1}, "k", "two or more"),
        ({"k": 4, "levels": 4}, "levels", "must be 2 or 3"),
        ({"k": 4, "levels": 2.0}, "levels", "must be a whole number, two or more"),
        ({"k": 4, "oversubscription": 0.5}, "oversubscription", "more than k/2 ports up"),
        ({"k": 4, "oversubscription": [1, 2, 3]}, "oversubscription", "one per level below the top: 2"),
        ({"k": 4, "levels": 2, "oversubscription": [1, 2]}, "oversubscription", "one per level below the top: 1"),
    ],
)
def test_fat_trees_that_do_not_exist(parameters: dict[str, object], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        topo.build("fat_tree", **parameters)
    assert caught.value.faults[0].place == place
    assert rule in caught.value.faults[0].rule
