"""Is the default fabric built as published: rails, radix, uplinks, levels, reach?"""

from __future__ import annotations

import math
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import topo
from topo import InputError


def load(domains: int, size: int, radix: int = 64, oversubscription: float = 1.0) -> nx.Graph:
    overrides = {
        "design.domain_size": size,
        "design.gpus_per_host": size,
        "scale_out.radix": radix,
        "scale_out.oversubscription": oversubscription,
    }
    return topo.load("hgx-h100-8", domains, overrides)


def tier(graph: nx.Graph, name: str) -> list[str]:
    return [node for node, data in graph.nodes(data=True) if data.get("tier") == name]


def ports(graph: nx.Graph, node: str, kinds: tuple[str, ...]) -> int:
    """Lanes of a node toward nodes of these kinds or tiers."""
    found = 0
    for _, other, lanes in graph.edges(node, data="lanes"):
        data = graph.nodes[other]
        found += lanes if data["kind"] in kinds or data.get("tier") in kinds else 0
    return found


# --- published sizes -------------------------------------------------------------------------------------------------


def test_two_racks_of_72_take_16_slots_a_leaf() -> None:
    """radix/2 = 32 down ports over 2 domains: 16 neighbouring slots a leaf, 72/16 -> 5 leaves, 3 spines."""
    graph = topo.load("gb200-nvl72", 2)
    assert len(tier(graph, "leaf")) == 5
    for d in range(2):
        for slot in range(72):
            (leaf,) = [b for _, b, kind in graph.edges(f"d{d}/gpu{slot}", data="kind") if kind == "scale-out"]
            assert leaf == f"leaf{slot // 16}"
    assert [ports(graph, leaf, ("gpu",)) for leaf in tier(graph, "leaf")] == [32, 32, 32, 32, 16]
    assert [ports(graph, leaf, ("spine",)) for leaf in tier(graph, "leaf")] == [32, 32, 32, 32, 16]
    assert len(tier(graph, "spine")) == math.ceil(144 / 64)


# arXiv 2505.09343 Table 3, FT2, k = 64: 2,048 endpoints, 96 switches, 2,048 links between switches
def test_2048_gpus_make_the_published_two_level_tree() -> None:
    graph = load(256, 8)
    leaves, spines = tier(graph, "leaf"), tier(graph, "spine")
    assert (len(leaves), len(spines), tier(graph, "core")) == (64, 32, [])
    assert sum(ports(graph, leaf, ("spine",)) for leaf in leaves) == 2048
    assert {ports(graph, leaf, ("gpu",)) for leaf in leaves} == {32}
    assert {ports(graph, spine, ("leaf",)) for spine in spines} == {64}
    assert all(graph.has_edge(leaf, spine) for leaf in leaves for spine in spines)


# arXiv 2505.09343 Table 3, FT3: k^3/4 endpoints, 5k^2/4 switches, k^3/2 links between switches; here k = 8
def test_a_full_three_level_tree() -> None:
    graph = load(32, 4, radix=8)
    counts = [len(tier(graph, name)) for name in ("leaf", "spine", "core")]
    assert counts == [32, 32, 16]
    assert sum(counts) == 5 * 8**2 // 4
    between = sum(ports(graph, spine, ("leaf", "core")) for spine in tier(graph, "spine"))
    assert between == 8**3 // 2
    assert {ports(graph, core, ("spine",)) for core in tier(graph, "core")} == {8}


def test_up_to_32_domains_a_leaf_is_of_one_rail() -> None:
    graph = load(32, 8)
    assert len(tier(graph, "leaf")) == 8
    for leaf in tier(graph, "leaf"):
        slots = {node.partition("/gpu")[2] for node in graph[leaf] if "/gpu" in node}
        assert len(slots) == 1


def test_one_leaf_needs_no_spine() -> None:
    graph = load(2, 8)
    assert (tier(graph, "leaf"), tier(graph, "spine")) == (["leaf0"], [])
    assert ports(graph, "leaf0", ("gpu",)) == 16


def test_one_domain_has_no_fabric() -> None:
    assert not [kind for _, _, kind in topo.load("gb200-nvl72").edges(data="kind") if kind != "scale-up"]


@pytest.mark.parametrize(
    ("oversubscription", "uplinks", "spines"), [(1.0, 32, 8), (2.0, 16, 4), (3.0, 11, 3), (4.0, 8, 2), (32.0, 1, 1)]
)
def test_uplinks_are_used_ports_over_oversubscription(oversubscription: float, uplinks: int, spines: int) -> None:
    graph = load(64, 8, oversubscription=oversubscription)  # 16 leaves of 32 ports
    assert {ports(graph, leaf, ("spine",)) for leaf in tier(graph, "leaf")} == {uplinks}
    assert len(tier(graph, "spine")) == spines
    for leaf in tier(graph, "leaf"):
        lanes = [graph.edges[leaf, spine]["lanes"] for spine in tier(graph, "spine")]
        assert max(lanes) - min(lanes) <= 1


def test_cables_carry_the_rate_of_a_nic() -> None:
    graph = load(64, 8)
    for _, _, data in graph.edges(data=True):
        if data["kind"] == "scale-out":
            assert data["bandwidth"] == data["lanes"] * 50e9
            assert data["latency"] == 0.8e-6


def test_a_nic_is_the_name_of_an_edge() -> None:
    graph = topo.load("hgx-h100-8", 2, {"scale_out.nic": "CX-7"})
    assert graph.edges["d0/gpu0", "leaf0"]["nic"] == "CX-7"


# --- any fabric ------------------------------------------------------------------------------------------------------

shapes = {
    "domains": st.integers(2, 40),
    "size": st.integers(1, 24),
    "radix": st.integers(2, 24),
    "oversubscription": st.sampled_from([1.0, 1.0, 1.5, 2.0, 3.0, 4.0, 5.5, 8.0]),
}


def built(domains: int, size: int, radix: int, oversubscription: float) -> nx.Graph:
    try:
        return load(domains, size, radix, oversubscription)
    except InputError as error:
        if [fault.place for fault in error.faults] == ["scale_out.radix"]:
            assume(False)  # too large, another test
        raise


@settings(max_examples=150, deadline=None)
@given(**shapes)
def test_any_fabric_is_right(domains: int, size: int, radix: int, oversubscription: float) -> None:
    graph = built(domains, size, radix, oversubscription)
    assert topo.check(graph) == []
    assert nx.is_connected(graph), "every switch is cabled to the rest"
    for node, data in graph.nodes(data=True):
        if data.get("tier") in ("leaf", "spine", "core"):
            assert ports(graph, node, ("gpu", "switch")) <= radix, node
    leaves = tier(graph, "leaf")
    assert sum(ports(graph, leaf, ("gpu",)) for leaf in leaves) == domains * size
    for leaf in leaves:
        down = ports(graph, leaf, ("gpu",))
        assert down <= radix // 2
        if len(leaves) > 1:
            assert ports(graph, leaf, ("spine",)) == math.ceil(down / oversubscription - 1e-9)
    for spine in tier(graph, "spine"):
        above = ports(graph, spine, ("core",))
        assert above in (0, ports(graph, spine, ("leaf",)))
        assert bool(above) == bool(tier(graph, "core"))
    assert len(leaves) > radix or not tier(graph, "core")


@settings(max_examples=80, deadline=None)
@given(**shapes)
def test_hops_are_two_inside_and_even_across(domains: int, size: int, radix: int, oversubscription: float) -> None:
    assume(domains * size <= 300)
    graph = built(domains, size, radix, oversubscription)
    hops = topo.hop_counts(graph)
    home = np.arange(domains * size) // size
    inside = (home[:, None] == home) & ~np.eye(len(home), dtype=bool)
    assert set(hops[inside].tolist()) <= {2}
    assert (hops == hops.T).all()
    across = hops[home[:, None] != home]
    assert (across % 2 == 0).all()
    levels = 3 if tier(graph, "core") else 2 if tier(graph, "spine") else 1
    assert set(across.tolist()) <= set(range(2, 2 * levels + 1, 2)), "up, then down: no path turns upward again"


@pytest.mark.parametrize(
    ("domains", "size", "radix", "oversubscription", "most"),
    [(29, 5, 18, 2.0, 4), (75, 25, 64, 5.5, 4), (13, 17, 11, 1.0, 6)],
    ids=[
        "leaves of 4 and 1 uplinks, 5 spines",
        "leaves of 4 and 2 uplinks, 6 spines",
        "pods of few leaves under cores",
    ],
)
def test_small_switches_share_one_above(
    domains: int, size: int, radix: int, oversubscription: float, most: int
) -> None:
    assert topo.hop_counts(load(domains, size, radix, oversubscription)).max() == most


@settings(max_examples=60, deadline=None)
@given(domains=st.integers(2, 150), size=st.integers(1, 16), radix=st.integers(2, 9))
def test_too_large_names_a_radix_that_works(domains: int, size: int, radix: int) -> None:
    try:
        load(domains, size, radix)
    except InputError as error:
        (fault,) = error.faults
        assert (fault.place, fault.value, fault.file) == ("scale_out.radix", radix, "hgx-h100-8")
        assert f"do not reach {domains * size} GPUs in {domains} domains" in fault.rule
        named = int(re.fullmatch(r"A radix of (\d+) does\.", fault.cure)[1])
        assert named > radix
        assert topo.check(load(domains, size, named)) == []
        if named - 2 > radix:
            with pytest.raises(InputError):
                load(domains, size, named - 2)


def test_undersubscription_that_a_leaf_cannot_hold() -> None:
    with pytest.raises(InputError, match="needs 96 ports on a leaf of radix 64") as caught:
        load(64, 8, oversubscription=0.5)
    assert caught.value.faults[0].place == "scale_out.oversubscription"


def test_unknown_fabric_suggests() -> None:
    with pytest.raises(InputError, match="Did you mean 'rail_optimised'"):
        topo.load("gb200-nvl72", 2, {"scale_out.shape": "rail_optimized"})


def test_same_design_same_graph() -> None:
    one, two = (nx.node_link_data(topo.load("gb200-nvl72", 3), edges="edges") for _ in range(2))
    assert one == two
