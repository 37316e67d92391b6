"""Do known numbers come out, and is bad input refused with one clear message?"""

from __future__ import annotations

import dataclasses
import json
import math

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from topo import InputError

from .shapes import star

#: Both latencies off, so that only bandwidth counts.
DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def racks(count: int, size: int, latencies: dict[str, str] = DRY) -> nx.Graph:
    """Racks with 900 GB/s a GPU inside and 50 GB/s NICs, per direction."""
    overrides = {"design.domain_size": size, "design.gpus_per_host": min(size, 4), "scale_up.bandwidth": "900 GB/s"}
    overrides |= {"scale_out.bandwidth": "50 GB/s"} | latencies
    return topo.load("gb200-nvl72", count, overrides)


def rail_only(count: int, size: int) -> nx.Graph:
    """Racks of one switch each; slot i of every rack on a switch of its own, and nothing above."""
    graph = nx.Graph(name="rails")
    for d in range(count):
        graph.add_node(f"up{d}", kind="switch", tier="scale-up")
        for i in range(size):
            graph.add_node(f"d{d}/gpu{i}", kind="gpu", rank=d * size + i)
            graph.add_node(f"rail{i}", kind="switch", tier="leaf")
            graph.add_edge(f"d{d}/gpu{i}", f"up{d}", kind="scale-up", bandwidth=900e9, latency=0.0)
            graph.add_edge(f"d{d}/gpu{i}", f"rail{i}", kind="scale-out", bandwidth=50e9, latency=0.0)
    return graph


# --- one rack --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "seconds"),
    # SimGrid 3.32, fluid model: one ideal switch, 1e9 bytes to each other endpoint at 900e9 bytes/s
    [(8, 0.0077777778), (72, 0.0788888889), (144, 0.1588888889), (288, 0.3188888889)],
)
def test_one_switch(size: int, seconds: float) -> None:
    cost = collectives.cost(racks(1, size), "all_to_all", size * 1e9)
    assert cost.seconds == pytest.approx(seconds, rel=1e-9, abs=5e-11)
    assert cost.seconds == pytest.approx((size - 1) * 1e9 / 900e9, rel=1e-12)
    assert cost.bottleneck_kind == "scale-up"


# SimGrid 3.32: the same with 0.5e-6 s per link, N = 8
def test_one_switch_with_latency() -> None:
    cost = collectives.cost(racks(1, 8, {"scale_up.latency": "0.5 us"}), "all_to_all", 8e9)
    assert cost.seconds == pytest.approx(0.0077787778, abs=5e-11)
    assert cost.latency_seconds == pytest.approx(2 * 0.5e-6, rel=1e-12)


def test_catalogue_rack_adds_two_hops_of_its_latency() -> None:
    cost = collectives.cost(topo.load("gb200-nvl72"), "all_to_all", 72e9)
    assert cost.seconds == pytest.approx(0.07888888888888888 + 2 * 0.43e-6, rel=1e-12)
    assert cost.bandwidth_seconds == pytest.approx(0.07888888888888888, rel=1e-12)
    assert any("scale_up.latency" in line and "assumed" in line for line in cost.assumptions)


def test_full_mesh_is_bound_by_the_pair_not_the_gpu() -> None:
    """MI300X: one 64 GB/s link a pair; all seven busy at once carry 448 GB/s a GPU."""
    graph = topo.load("mi300x-8", overrides=DRY)
    everyone = collectives.cost(graph, "all_to_all", 8e9)
    assert everyone.seconds == pytest.approx(1e9 / 64e9, rel=1e-12)
    assert everyone.busbw == pytest.approx(448e9, rel=1e-12)
    pair = collectives.cost(graph, "send", 1e9, stages=[[0], [1]])
    assert pair.seconds == pytest.approx(1e9 / 64e9, rel=1e-12)


def test_two_halves_of_one_rack() -> None:
    cost = collectives.cost(racks(1, 72), "send", 9e9)
    assert cost.seconds == pytest.approx(0.01, rel=1e-12)
    assert (cost.remote_share, cost.busbw) == (0.0, pytest.approx(900e9, rel=1e-12))


# --- several racks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "size", "seconds"),
    # SimGrid 3.32, fluid model: R racks x G, 1e9 bytes a pair, NICs of 50e9 bytes/s and a non-blocking fabric
    [(2, 8, 0.16), (4, 8, 0.48), (8, 8, 1.12), (2, 72, 1.44), (4, 72, 4.32)],
)
def test_racks_over_their_nics(count: int, size: int, seconds: float) -> None:
    cost = collectives.cost(racks(count, size), "all_to_all", count * size * 1e9)
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    assert cost.bottleneck_kind == "scale-out"
    assert cost.classes["scale-up"].busiest_seconds == pytest.approx((size - 1) * 1e9 / 900e9, rel=1e-12)


@pytest.mark.parametrize(
    ("count", "size", "seconds"),
    # SimGrid 3.32: one leaf per rack, 2:1 oversubscribed
    [(2, 8, 0.32), (4, 8, 0.96), (8, 8, 2.24), (2, 72, 2.88)],
)
def test_one_leaf_a_rack_two_to_one_oversubscribed(count: int, size: int, seconds: float) -> None:
    graph = nx.Graph()
    graph.add_node("spine", kind="switch", tier="spine")
    for d in range(count):
        graph.add_nodes_from([f"up{d}", f"leaf{d}"], kind="switch")
        graph.add_edge(f"leaf{d}", "spine", kind="scale-out", bandwidth=size * 50e9 / 2, latency=0.0)
        for i in range(size):
            graph.add_node(f"{d}/{i}", kind="gpu")
            graph.add_edge(f"{d}/{i}", f"up{d}", kind="scale-up", bandwidth=900e9, latency=0.0)
            graph.add_edge(f"{d}/{i}", f"leaf{d}", kind="scale-out", bandwidth=50e9, latency=0.0)
    cost = collectives.cost(graph, "all_to_all", count * size * 1e9)
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    assert "spine" in cost.bottleneck


def test_twice_the_ranks_take_18_times_as_long() -> None:
    """72 GPUs in one rack against 2 x 72 over 50 GB/s NICs: 1.44 s / 0.0788888889 s = 18.25."""
    one = collectives.cost(racks(1, 72), "all_to_all", 72e9)
    two = collectives.cost(racks(2, 72), "all_to_all", 144e9)
    assert two.seconds / one.seconds == pytest.approx(18.25, abs=0.005)
    assert two.remote_share == pytest.approx(1 / 2, rel=1e-12)
    assert two.remote_share_of_sent == pytest.approx(72 / 143, rel=1e-12)


def test_latency_across_racks_is_four_hops() -> None:
    graph = racks(2, 72, {"scale_up.latency": "0 s", "scale_out.latency": "1 us"})
    far = collectives.cost(graph, "send", 50e3, stages=[["d0/gpu0"], ["d1/gpu40"]])  # other rails: over a spine
    assert far.seconds == pytest.approx(4e-6 + 1e-6, rel=1e-12)
    near = collectives.cost(graph, "send", 50e3, stages=[["d0/gpu0"], ["d1/gpu0"]])  # the same leaf
    assert near.seconds == pytest.approx(2e-6 + 1e-6, rel=1e-12)


def test_send_from_rack_to_rack() -> None:
    cost = collectives.cost(racks(3, 8), "send", 5e9)
    assert cost.seconds == pytest.approx(0.1, rel=1e-12)
    assert (cost.n_ranks, cost.remote_share) == (24, 1.0)
    assert cost.classes["scale-up"].n_bytes == 0.0


# --- bus bandwidth ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "busbw"),
    # NVIDIA/nccl-tests#130: busbw = b N/(N-1) x (NG-1)/(NG), G = 8, b = 50 GB/s
    [(2, 93.75), (4, 64.58), (8, 56.25), (64, 50.69)],
)
def test_multi_node_all_to_all_busbw(nodes: int, busbw: float) -> None:
    graph = topo.load("hgx-h100-8", nodes, DRY)
    n_bytes = 8 * nodes * 1e6
    cost = collectives.cost(graph, "all_to_all", n_bytes)
    assert cost.busbw / 1e9 == pytest.approx(busbw, abs=0.005)
    exact = 50e9 * nodes / (nodes - 1) * (8 * nodes - 1) / (8 * nodes)
    assert cost.busbw == pytest.approx(exact, rel=1e-12)
    assert cost.algbw == pytest.approx(n_bytes / cost.seconds, rel=1e-12)


# nccl-tests PERFORMANCE.md: alltoall (n-1)/n, sendrecv 1
def test_busbw_factors() -> None:
    graph = racks(1, 8)
    assert collectives.schedule("all_to_all", graph, 1e9).busbw_factor == 7 / 8
    assert collectives.schedule("all_to_all", graph, 1e9, ranks=4).busbw_factor == 3 / 4
    assert collectives.schedule("send", graph, 1e9).busbw_factor == 1.0
    assert collectives.cost(graph, "all_to_all", 8e9).busbw == pytest.approx(900e9, rel=1e-12)


# --- reachability ----------------------------------------------------------------------------------------------------


def test_rail_only_names_a_pair_that_nothing_joins() -> None:
    with pytest.raises(InputError, match="no path") as caught:
        collectives.cost(rail_only(2, 4), "all_to_all", 8e9)
    (fault,) = caught.value.faults
    assert "24 pairs" in fault.rule  # 2 x 4 ranks, 3 wrong rails in the other rack
    assert "d0/gpu0 to d1/gpu1" in fault.rule


def test_rail_only_carries_what_stays_on_its_rails() -> None:
    cost = collectives.cost(rail_only(2, 4), "send", 5e9)
    assert cost.seconds == pytest.approx(0.1, rel=1e-12)
    matrix = [[1e6 if a // 4 == b // 4 or a % 4 == b % 4 else 0.0 for b in range(8)] for a in range(8)]
    assert collectives.cost(rail_only(2, 4), "all_to_all_v", matrix).seconds == pytest.approx(1e6 / 50e9, rel=1e-12)


def test_one_way_cables() -> None:
    graph = racks(1, 4).to_directed()
    graph.remove_edge("d0/switch", "d0/gpu3")
    with pytest.raises(InputError, match="no path for 3 pairs of ranks, the first d0/gpu0 to d0/gpu3"):
        collectives.cost(graph, "all_to_all", 4e9)
    sends = np.ones((4, 4)) * 1e9
    sends[:, 3] = 0.0
    assert collectives.cost(graph, "all_to_all_v", sends).seconds == pytest.approx(3e9 / 900e9, rel=1e-12)


def test_pairs_of_a_host_without_scale_up_are_counted() -> None:
    graph = nx.Graph()
    graph.add_node("bridge", kind="switch", host="h")
    for i in range(4):
        graph.add_node(f"gpu{i}", kind="gpu", host="h")
        graph.add_edge(f"gpu{i}", "bridge", kind="pcie", bandwidth=25e9, latency=1e-6)
    graph.add_edge("gpu0", "gpu1", kind="scale-up", bandwidth=50e9, latency=1e-6)
    cost = collectives.cost(graph, "all_to_all", 4e9)
    assert [line for line in cost.assumptions if "10 ordered pairs" in line]  # 12 less gpu0 <-> gpu1
    assert set(cost.classes) == {"scale-up", "pcie"}
    assert cost.classes["scale-up"].n_bytes == 2e9


# --- sizes, kinds, ranks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [-1e-9, -1e9, math.nan, math.inf, -math.inf, 1e31, "1 GB", True, None, [1e9]], ids=repr
)
@pytest.mark.parametrize("kind", ["all_to_all", "send"])
def test_size_must_be_finite_and_zero_or_more(kind: str, size: object) -> None:
    with pytest.raises(InputError) as caught:
        collectives.cost(racks(1, 4), kind, size)
    (fault,) = caught.value.faults
    assert fault.place == "n_bytes"
    assert fault.cure


@pytest.mark.parametrize(
    "matrix",
    [np.ones((3, 4)), np.ones((3, 3)), np.ones(4), 1e9, np.ones((4, 4, 1)), [[1, 2], [3]], [["x"] * 4] * 4],
    ids=["3x4", "3x3", "vector", "scalar", "cube", "ragged", "text"],
)
def test_matrix_must_be_square_over_the_ranks(matrix: object) -> None:
    with pytest.raises(InputError) as caught:
        collectives.cost(racks(1, 4), "all_to_all_v", matrix)
    assert caught.value.faults[0].place == "n_bytes"


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e31])
def test_matrix_must_hold_sizes(value: float) -> None:
    matrix = np.ones((4, 4))
    matrix[1, 2] = value
    with pytest.raises(InputError, match="finite bytes, zero or more"):
        collectives.cost(racks(1, 4), "all_to_all_v", matrix)


def test_zero_bytes_take_no_time() -> None:
    """Nothing is sent, as NCCL returns at once; a barrier still has its flags."""
    nothing = collectives.MoE(tokens=0, hidden=8, top_k=2, experts=8)
    for kind, row in collectives.KINDS.items():
        size = np.zeros((8, 8)) if kind == "all_to_all_v" else nothing if kind.startswith("moe") else 0
        for name in row.algorithms:
            if name in ("torus", "nvls", "sharp"):
                continue
            cost = collectives.cost(racks(2, 4), kind, size, algorithm=name)
            assert (cost.seconds > 0) == (kind == "barrier"), (kind, name)
            assert cost.algbw == 0 or kind == "barrier"
    for name, wires in (("nvls", "scale-up"), ("sharp", "scale-out")):
        assert collectives.cost(star(4, kind=wires), "all_reduce", 0, algorithm=name).seconds == 0.0


def test_what_a_rank_keeps_costs_nothing() -> None:
    cost = collectives.cost(racks(1, 4), "all_to_all_v", np.eye(4) * 1e9)
    assert cost.seconds == cost.algbw == 0.0
    assert cost.bottleneck_kind == "none"
    assert not cost.loads.any()


def test_uneven_matrix_is_bound_by_the_busiest_gpu() -> None:
    matrix = np.zeros((4, 4))
    matrix[0, 1], matrix[2, 1], matrix[3, 2] = 4e9, 5e9, 1e9
    cost = collectives.cost(racks(1, 4), "all_to_all_v", matrix)
    assert cost.seconds == pytest.approx(9e9 / 900e9, rel=1e-12)
    assert cost.bottleneck == "d0/switch -> d0/gpu1"


def test_matrix_of_a_uniform_all_to_all_is_the_all_to_all() -> None:
    graph = racks(2, 8)
    even = collectives.cost(graph, "all_to_all", 16e9)
    matrix = collectives.cost(graph, "all_to_all_v", np.full((16, 16), 1e9))
    assert (matrix.seconds, matrix.busbw, matrix.n_bytes) == (even.seconds, even.busbw, even.n_bytes)
    np.testing.assert_array_equal(matrix.loads, even.loads)


def test_unknown_kind_suggests() -> None:
    with pytest.raises(InputError, match="Did you mean 'all_to_all'"):
        collectives.cost(racks(1, 4), "alltoall", 1e9)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"routing": "ecpm"}, "routing"),
        ({"profile": "idael"}, "profile"),
        ({"algorithm": "dircet"}, "algorithm"),
        ({"ranks": 5}, "ranks"),
        ({"ranks": 0}, "ranks"),
        ({"ranks": -1}, "ranks"),
        ({"ranks": ["d0/gpu9"]}, "ranks"),
        ({"ranks": [0, 4]}, "ranks"),
        ({"ranks": [-1]}, "ranks"),
        ({"ranks": [0, 0]}, "ranks"),
        ({"ranks": []}, "ranks"),
        ({"ranks": 2.5}, "ranks"),
        ({"ranks": True}, "ranks"),
        ({"ranks": [0, 1.5]}, "ranks"),
        ({"ranks": math.nan}, "ranks"),
        ({"stages": [[0], [1]]}, "stages"),
    ],
    ids=repr,
)
def test_bad_words_are_refused(words: dict[str, object], place: str) -> None:
    with pytest.raises(InputError) as caught:
        collectives.cost(racks(1, 4), "all_to_all", 1e9, **words)
    assert caught.value.faults[0].place == place


def test_a_graph_with_faults_is_refused_whole() -> None:
    graph = racks(1, 4)
    graph.edges["d0/gpu0", "d0/switch"]["bandwidth"] = math.nan
    graph.edges["d0/gpu1", "d0/switch"]["latency"] = -1.0
    with pytest.raises(InputError) as caught:
        collectives.cost(graph, "all_to_all", 1e9)
    assert len(caught.value.faults) == 2


def test_disconnected_graph() -> None:
    graph = nx.union(racks(1, 4), nx.relabel_nodes(racks(1, 4), lambda name: f"other/{name}"))
    for node, data in graph.nodes(data=True):
        data.pop("rank", None)
        data["domain"] = node.startswith("other")
    with pytest.raises(InputError, match="is disconnected: 2 parts"):
        collectives.cost(graph, "all_to_all", 1e9)


# --- the record ------------------------------------------------------------------------------------------------------


def test_ranks_choose_who_takes_part() -> None:
    graph = racks(2, 8)
    half = collectives.cost(graph, "all_to_all", 8e9, ranks=8)
    assert (half.n_ranks, half.remote_share) == (8, 0.0)
    spread = collectives.cost(graph, "all_to_all", 10e9, ranks=10)  # 5 + 5
    assert spread.seconds == pytest.approx(5e9 / 50e9, rel=1e-12)
    named = collectives.cost(graph, "all_to_all", 2e9, ranks=["d1/gpu3", "d0/gpu3"])
    assert named.seconds == pytest.approx(1e9 / 50e9, rel=1e-12)


def test_one_rank_sends_nothing() -> None:
    cost = collectives.cost(racks(1, 4), "all_to_all", 1e9, ranks=1)
    assert (cost.seconds, cost.busbw, cost.n_ranks) == (0.0, 0.0, 1)


def test_routes_and_schedule_can_be_worked_out_before() -> None:
    graph = racks(2, 8)
    routes = topo.route(graph)
    plan = collectives.schedule("all_to_all", graph, 16e9)
    plain = collectives.cost(graph, "all_to_all", 16e9)
    for again in (
        collectives.cost(graph, plan),
        collectives.cost(graph, plan, routing=routes),
        collectives.cost(topo.Fabric.from_graph(graph), "all_to_all", 16e9),
    ):
        assert again.to_dict() == plain.to_dict()
    with pytest.raises(InputError, match="a Schedule has its own"):
        collectives.cost(graph, plan, 16e9)
    with pytest.raises(InputError, match="needs a size"):
        collectives.cost(graph, "all_to_all")


def test_arguments_are_left_as_they_were() -> None:
    graph, matrix = racks(2, 4), np.ones((8, 8))
    before = nx.node_link_data(graph, edges="edges")
    collectives.cost(graph, "all_to_all_v", matrix)
    assert nx.node_link_data(graph, edges="edges") == before
    assert (matrix == 1).all()


def test_record() -> None:
    cost = collectives.cost(racks(2, 8), "all_to_all", 16e9)
    assert repr(cost).startswith("Cost(160 ms, busbw 93.75 GB/s: all_to_all over 16 ranks, bound by scale-out ")
    document = json.loads(json.dumps(cost.to_dict(), allow_nan=False))
    assert document["seconds"] == cost.seconds
    assert {
        "routing": "ecmp",
        "algorithm": "direct",
        "profile": "ideal",
        "kind": "all_to_all",
    }.items() <= document.items()
    assert document["classes"]["scale-out"]["utilisation"] <= 1.0
    assert "loads" not in document
    with pytest.raises(dataclasses.FrozenInstanceError):
        cost.seconds = 0.0
    assert cost.latency_seconds + cost.bandwidth_seconds == cost.seconds


def test_utilisation_of_a_full_class_is_one() -> None:
    cost = collectives.cost(racks(1, 72), "all_to_all", 72e9)
    assert cost.classes["scale-up"].utilisation == pytest.approx(1.0, rel=1e-12)
    assert cost.classes["scale-up"].n_bytes == pytest.approx(2 * 72 * 71e9, rel=1e-12)
