"""Do the closed forms give the published numbers, and does the graph, costed hop by hop, give the closed forms?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collectives
import topo
from collectives import laws

#: Both latencies off, so that only bandwidth counts.
DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def star(n: int, bandwidth: float, kind: str) -> nx.Graph:
    """Ranks under one switch, without latency."""
    tier = "scale-up" if kind == "scale-up" else "leaf"
    graph = nx.Graph(name="star")
    graph.add_node("switch", kind="switch", tier=tier)
    for i in range(n):
        graph.add_node(f"gpu{i}", kind="gpu", rank=i)
        graph.add_edge(f"gpu{i}", "switch", kind=kind, bandwidth=bandwidth, latency=0.0)
    return graph


# --- all-to-all ------------------------------------------------------------------------------------------------------


# SimGrid 3.32, fluid model: 1e9 bytes to each other endpoint at 900e9 bytes/s.
@pytest.mark.parametrize(("n", "seconds"), [(8, 0.0077777778), (72, 0.0788888889), (144, 0.1588888889)])
def test_one_switch(n: int, seconds: float) -> None:
    assert laws.all_to_all_seconds(n, 1e9, 900e9) == pytest.approx(seconds, abs=5e-11)
    assert laws.all_to_all_seconds(n, 1e9, 900e9, 0.5e-6) == pytest.approx(seconds + 1e-6, abs=5e-11)
    assert collectives.cost(star(n, 900e9, "scale-up"), "all_to_all", n * 1e9).seconds == pytest.approx(
        laws.all_to_all_seconds(n, 1e9, 900e9), rel=1e-12
    )


# SimGrid 3.32: R racks of G, 900 and 50 GB/s per endpoint, a non-blocking fabric.
@pytest.mark.parametrize(
    ("racks", "size", "seconds"), [(2, 8, 0.16), (4, 8, 0.48), (8, 8, 1.12), (2, 72, 1.44), (4, 72, 4.32)]
)
def test_racks(racks: int, size: int, seconds: float) -> None:
    law = laws.all_to_all_across_domains_seconds(racks, size, 1e9, 900e9, 50e9)
    assert law == pytest.approx(seconds, rel=1e-12)
    overrides = DRY | {"design.domain_size": size, "design.gpus_per_host": 4, "scale_out.bandwidth": "50 GB/s"}
    graph = topo.load("gb200-nvl72", racks, overrides)
    assert collectives.cost(graph, "all_to_all", racks * size * 1e9).seconds == pytest.approx(law, rel=1e-9)


def test_two_racks_take_18_25_times_as_long_for_twice_the_ranks() -> None:
    two = laws.all_to_all_across_domains_seconds(2, 72, 1e9, 900e9, 50e9)
    assert two / laws.all_to_all_seconds(72, 1e9, 900e9) == pytest.approx(1.44 / (71 / 900), rel=1e-12)
    assert two / laws.all_to_all_seconds(72, 1e9, 900e9) == pytest.approx(18.25, abs=5e-3)


def test_one_rack_is_the_limit_of_the_law_of_racks() -> None:
    assert laws.all_to_all_across_domains_seconds(1, 72, 1e9, 900e9, 50e9) == laws.all_to_all_seconds(72, 1e9, 900e9)


# NVIDIA/nccl-tests#130: N nodes of 8 GPUs, 50 GB/s per GPU.
@pytest.mark.parametrize(("nodes", "busbw"), [(2, 93.75), (4, 64.58), (8, 56.25), (64, 50.69)])
def test_busbw_of_nodes(nodes: int, busbw: float) -> None:
    assert laws.multi_node_all_to_all_busbw(nodes, 8, 50e9) / 1e9 == pytest.approx(busbw, abs=5e-3)


@pytest.mark.parametrize("nodes", [2, 4, 8])
def test_busbw_of_nodes_on_the_graph(nodes: int) -> None:
    cost = collectives.cost(topo.load("hgx-h100-8", nodes, DRY), "all_to_all", 1e9)
    assert cost.busbw == pytest.approx(laws.multi_node_all_to_all_busbw(nodes, 8, 50e9), rel=1e-9)


# --- dispatch and combine (DeepSeek-V3 hardware paper, arXiv 2505.09343, section 2.3.2; 7K = 7000) -------------------


@pytest.mark.parametrize(("bandwidth", "micros"), [(50e9, 120.96), (900e9, 6.72)])
def test_expert_all_to_all(bandwidth: float, micros: float) -> None:
    both = laws.expert_all_to_all_seconds(32, 9, 7000, 1 + 2, bandwidth)
    assert both * 1e6 == pytest.approx(micros, rel=1e-12)
    parts = [laws.expert_all_to_all_seconds(32, 9, 7000, size, bandwidth) for size in (1, 2)]
    assert both == pytest.approx(sum(parts), rel=1e-12)


@pytest.mark.parametrize(("bandwidth", "kind"), [(50e9, "scale-out"), (900e9, "scale-up")])
def test_expert_all_to_all_on_the_graph(bandwidth: float, kind: str) -> None:
    """Every copy over the wire, evenly to the other ranks: the paper's limit, link by link."""
    graph, n = star(32, bandwidth, kind), 32
    others = (np.ones((n, n)) - np.eye(n)) * 32 * 9 * 7000 / (n - 1)
    costs = [collectives.cost(graph, "all_to_all_v", others * size) for size in (1, 2)]
    seconds = sum(cost.seconds for cost in costs)
    assert seconds == pytest.approx(laws.expert_all_to_all_seconds(32, 9, 7000, 3, bandwidth), rel=1e-12)
    assert all(cost.bottleneck_kind == kind for cost in costs)
    # With the own rank among the targets its share needs no wire: (n - 1)/n of the limit.
    own = np.full((n, n), 32 * 9 * 7000 * 3 / n)
    assert collectives.cost(graph, "all_to_all_v", own).seconds == pytest.approx(seconds * (n - 1) / n, rel=1e-12)


# --- distinct targets of a token -------------------------------------------------------------------------------------

GROUPS = {"64 GPUs of 4": [4] * 64, "8 nodes of 32": [32] * 8, "2 racks of 128": [128] * 2}
UNEVEN = [4] * 40 + [3] * 32  # 256 experts on 72 GPUs


# Exact: sum over groups of 1 - C(E - e, k) / C(E, k); top-8 of 256 without replacement.
@pytest.mark.parametrize(("groups", "distinct"), [*zip(GROUPS, [7.6758, 5.2947, 1.9930], strict=True)])
def test_distinct_groups(groups: str, distinct: float) -> None:
    assert laws.expected_distinct_groups(256, GROUPS[groups], 8) == pytest.approx(distinct, abs=5e-5)


def test_distinct_groups_is_not_the_law_with_replacement() -> None:
    with_replacement = 64 * (1 - (1 - 1 / 64) ** 8)
    assert with_replacement == pytest.approx(7.576, abs=5e-4)
    assert laws.expected_distinct_groups(256, [4] * 64, 8) > 7.6


@pytest.mark.parametrize("sizes", [*GROUPS.values(), UNEVEN], ids=[*GROUPS, "72 GPUs of 4 or 3"])
def test_distinct_groups_by_sampling(sizes: Sequence[int]) -> None:
    rng = np.random.default_rng(2505)
    home = np.repeat(np.arange(len(sizes)), sizes)
    draws = home[np.argsort(rng.random((20_000, 256)), axis=1)[:, :8]]
    distinct = 1 + (np.diff(np.sort(draws, axis=1), axis=1) > 0).sum(axis=1)
    error = distinct.std() / np.sqrt(len(distinct))
    assert distinct.mean() == pytest.approx(laws.expected_distinct_groups(256, sizes, 8), abs=4 * error)


def test_distinct_groups_by_counting_every_choice() -> None:
    sizes, home = [3, 1, 2], [0, 0, 0, 1, 2, 2]
    choices = [len({home[e] for e in chosen}) for chosen in combinations(range(6), 3)]
    assert laws.expected_distinct_groups(6, sizes, 3) == pytest.approx(sum(choices) / len(choices), rel=1e-12)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8).filter(any), st.data())
def test_distinct_groups_stays_in_its_limits(sizes: list[int], data: st.DataObject) -> None:
    n = sum(sizes)
    k = data.draw(st.integers(1, n))
    distinct = laws.expected_distinct_groups(n, sizes, k)
    there = sum(size > 0 for size in sizes)
    assert 1 - 1e-12 <= distinct <= min(k, there) + 1e-12
    assert laws.expected_distinct_groups(n, [1] * n, k) == pytest.approx(k)
    assert laws.expected_distinct_groups(n, sizes, n) == pytest.approx(there)


# --- a pipeline of racks (R. Pope on the Dwarkesh podcast, 2026, at 51:08 and 52:29) ---------------------------------


@pytest.mark.parametrize(
    ("n_activated", "layers", "slowdown", "passes", "ratio"),
    [(8, 1, 8.0, 2.0, 2.0), (16, 1, 8.0, 2.0, 4.0), (32, 1, 8.0, 2.0, 8.0), (8, 1, 8.0, 1.0, 1.0),
     (8, 1, 18.0, 2.0, 16 / 18),  # 900 against 50 GB/s
     (8, 1, 8.0, 1.5, 1.5),  # FP8 dispatch and BF16 combine against a BF16 send
     (8, 4, 8.0, 2.0, 8.0)],
)  # fmt: skip
def test_the_lectures_ratio(n_activated: float, layers: float, slowdown: float, passes: float, ratio: float) -> None:
    assert laws.scale_up_to_scale_out_time(n_activated, layers, slowdown, passes) == pytest.approx(ratio, rel=1e-12)


def test_the_lecture_wants_2_x_activated_x_layers_of_8() -> None:
    assert laws.scale_up_to_scale_out_time(8, 1) == 2 * 8 * 1 / 8
    assert laws.scale_up_to_scale_out_time(4, 1) == 1.0  # the least that keeps the rack's own wires the busier ones


@pytest.mark.parametrize("n_activated", [8, 32])
@pytest.mark.parametrize("nic", ["50 GB/s", "112.5 GB/s"], ids=["18 x slower", "8 x slower"])
@pytest.mark.parametrize(("sizes", "passes"), [((2, 2), 2.0), ((1, 2), 1.5)], ids=["BF16 both ways", "FP8 dispatch"])
def test_the_lectures_ratio_hop_by_hop(n_activated: int, nic: str, sizes: tuple[int, int], passes: float) -> None:
    """Dispatch and combine in one rack over the send to the next, both link by link.

    Copies go evenly to all 72 GPUs; the 1/72 that meets the sender needs no wire, so that of n_activated copies
    n_activated x 71/72 are sent. That is the number of activated experts the law has to be given.
    """
    graph = topo.load("gb200-nvl72", 2, DRY | {"scale_out.bandwidth": nic})
    fabric = topo.Fabric.from_graph(graph)
    rack, n, token = fabric.group(72), 72, 7168
    copies = np.full((n, n), 100 * n_activated * token / n)
    inside = sum(collectives.cost(fabric, "all_to_all_v", copies * size, ranks=rack).seconds for size in sizes)
    send = collectives.cost(fabric, "send", 100 * token * 2)  # BF16; one copy, rank i to rank i of the next rack
    assert send.bottleneck_kind in ("scale-out", "path")
    slowdown = 900e9 / topo.units.parse_quantity(nic, "bandwidth")
    law = laws.scale_up_to_scale_out_time(n_activated * 71 / 72, 1, slowdown, passes)
    assert inside / send.seconds == pytest.approx(law, rel=1e-9)
