"""Is every byte of a collective in its schedule, between the right ranks?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from topo import Fabric, InputError


@pytest.fixture(scope="module")
def rack() -> nx.Graph:
    return topo.load("hgx-h100-8")


@pytest.fixture(scope="module")
def three() -> nx.Graph:
    return topo.load("hgx-h100-8", 3)


def unequal() -> nx.Graph:
    """Domains of three and five GPUs on one leaf."""
    graph = nx.Graph()
    graph.add_node("leaf", kind="switch", tier="leaf")
    for d, size in enumerate((3, 5)):
        graph.add_node(f"up{d}", kind="switch")
        for i in range(size):
            graph.add_node(f"{d}.{i}", kind="gpu")
            graph.add_edge(f"{d}.{i}", f"up{d}", kind="scale-up", bandwidth=1e9, latency=0.0)
            graph.add_edge(f"{d}.{i}", "leaf", kind="scale-out", bandwidth=1e9, latency=0.0)
    return graph


# nccl-tests: "size" of alltoall is the send buffer of one rank, the own chunk included
def test_all_to_all_counts_the_own_chunk(rack: nx.Graph) -> None:
    plan = collectives.schedule("all_to_all", rack, 8e9)
    assert len(plan.phases) == 1
    matrix = plan.phases[0].n_bytes
    assert matrix.shape == (8, 8)
    np.testing.assert_array_equal(matrix, 1e9)
    assert (plan.n_bytes, plan.busbw_factor, plan.kind, plan.algorithm) == (8e9, 7 / 8, "all_to_all", "direct")
    assert plan.ranks.tolist() == list(range(8))


def test_all_to_all_v_takes_its_matrix(rack: nx.Graph) -> None:
    matrix = np.arange(16.0).reshape(4, 4)
    plan = collectives.schedule("all_to_all_v", rack, matrix, ranks=[7, 1, 3, 0])
    np.testing.assert_array_equal(plan.phases[0].n_bytes, matrix)
    assert plan.ranks.tolist() == [7, 1, 3, 0]
    assert plan.n_bytes == 12 + 13 + 14 + 15  # the largest send buffer
    assert plan.busbw_factor == 3 / 4


def sends(plan: collectives.Schedule) -> dict[tuple[int, int], float]:
    (phase,) = plan.phases
    return {(int(plan.ranks[i]), int(plan.ranks[j])): float(phase.n_bytes[i, j]) for i, j in np.argwhere(phase.n_bytes)}


def test_send_goes_from_domain_to_domain(three: nx.Graph) -> None:
    plan = collectives.schedule("send", three, 1e6)
    assert sends(plan) == {(i, i + 8): 1e6 for i in range(16)}
    assert plan.n_bytes == 1e6


def test_send_within_one_domain_takes_two_halves(rack: nx.Graph) -> None:
    assert sends(collectives.schedule("send", rack, 1e6)) == {(i, i + 4): 1e6 for i in range(4)}
    assert sends(collectives.schedule("send", rack, 1e6, ranks=[6, 1, 5, 2])) == {(6, 5): 1e6, (1, 2): 1e6}


def test_send_within_an_odd_domain_has_no_halves(rack: nx.Graph) -> None:
    with pytest.raises(InputError, match=r"\[3, 2\]: send needs two or more stages of equal size"):
        collectives.schedule("send", rack, 1e6, ranks=5)


def test_send_over_the_chosen_ranks(three: nx.Graph) -> None:
    assert sends(collectives.schedule("send", three, 1e6, ranks=12)) == {(i, i + 8): 1e6 for i in range(6)}  # 6 + 6


@pytest.mark.parametrize(
    "stages",
    [[[0, 1], [8, 9], [3, 2]], [["d0/gpu0", "d0/gpu1"], ["d1/gpu0", "d1/gpu1"], ["d0/gpu3", "d0/gpu2"]]],
    ids=["numbers", "labels"],
)
def test_send_between_named_stages(three: nx.Graph, stages: list[list[object]]) -> None:
    plan = collectives.schedule("send", three, 1e6, stages=stages)
    assert sends(plan) == {(0, 8): 1e6, (1, 9): 1e6, (8, 3): 1e6, (9, 2): 1e6}


@pytest.mark.parametrize(
    "stages",
    [
        [[0, 1], [2]],
        [[0]],
        [],
        [[0, 1], [1, 2]],
        [[0, 0], [1, 2]],
        [[], []],
        [[0], ["nobody"]],
        [[0], [99]],
        [2, 2],
        ["d0/gpu0", "d1/gpu0"],
    ],
    ids=repr,
)
def test_bad_stages(three: nx.Graph, stages: list[list[object]]) -> None:
    with pytest.raises(InputError):
        collectives.schedule("send", three, 1e6, stages=stages)


def test_a_stage_is_a_list(three: nx.Graph) -> None:
    with pytest.raises(InputError, match="each a list of ranks"):
        collectives.schedule("send", three, 1e6, stages=[2, 2])  # type: ignore[list-item]


@pytest.mark.parametrize("order", [5, {0, 1}, "d0/gpu0", np.array(3)], ids=repr)
def test_an_order_is_a_list(rack: nx.Graph, order: object) -> None:
    with pytest.raises(InputError, match="must be a list of the ranks in the order of the ring"):
        collectives.schedule("all_reduce", rack, 1e6, order=order)  # type: ignore[arg-type]


def test_numbers_of_numpy_count_rings(rack: nx.Graph) -> None:
    wanted = collectives.schedule("all_reduce", rack, 1e6, channels=2).phases
    found = collectives.schedule("all_reduce", rack, 1e6, channels=np.int64(2)).phases  # type: ignore[arg-type]
    assert [phase.n_bytes.tolist() for phase in found] == [phase.n_bytes.tolist() for phase in wanted]


def test_complex_bytes_are_refused(rack: nx.Graph) -> None:
    with pytest.raises(InputError, match="must be a matrix"):
        collectives.schedule("all_to_all_v", rack, np.ones((8, 8)) * 1j)


@pytest.mark.parametrize(("given", "said"), [(1e9, "1000000000.0"), (np.zeros((3, 3)), r"\(3, 3\)")], ids=str)
def test_what_is_no_matrix_is_named(rack: nx.Graph, given: object, said: str) -> None:
    with pytest.raises(InputError, match=f"n_bytes = {said}: must be a matrix"):
        collectives.schedule("all_to_all_v", rack, given)  # type: ignore[arg-type]


def test_unequal_domains_cannot_send() -> None:
    with pytest.raises(InputError, match="equal size") as caught:
        collectives.schedule("send", unequal(), 1e6)
    assert caught.value.faults[0].value == [3, 5]


def test_one_rank_cannot_send(rack: nx.Graph) -> None:
    with pytest.raises(InputError, match="two or more stages"):
        collectives.schedule("send", rack, 1e6, ranks=1)


@pytest.mark.parametrize(
    ("kind", "near"), [("alltoall", "all_to_all"), ("All_To_All_V", "all_to_all_v"), ("sned", "send")]
)
def test_unknown_kind_suggests(rack: nx.Graph, kind: str, near: str) -> None:
    with pytest.raises(InputError, match=f"Did you mean '{near}'") as caught:
        collectives.schedule(kind, rack, 1e6)
    assert all(known in caught.value.faults[0].cure for known in collectives.KINDS)


def test_takes_a_fabric_and_says_what_it_is(rack: nx.Graph) -> None:
    plan = collectives.schedule("all_to_all", Fabric.from_graph(rack), 8e9)
    assert repr(plan) == "Schedule(all_to_all direct, 8 ranks, 8 GB, 1 phases)"


def test_group_shares_are_what_topo_says() -> None:
    plan = collectives.schedule("all_to_all", unequal(), 1e9, ranks=7)
    homes = Fabric.from_graph(unequal()).rank_domain[plan.ranks]
    assert np.bincount(homes).tolist() == [3, 4]
