"""Is a simulated phase never faster than its cost, and as fast where nothing is in the way?"""

from __future__ import annotations

import json
import re
from itertools import combinations, permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import collectives
import topo
from collectives import _simulate
from topo import InputError

from .brute import paths
from .filling import ends_without_barriers
from .random_graphs import FAMILIES, Dice, traffic
from .test_cost import DRY, racks


def random_case(family: str, seed: int) -> tuple[nx.Graph, list[str], list[list[float]]]:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, [node for node, kind in graph.nodes(data="kind") if kind == "gpu"])
    assume(any(size for i, row in enumerate(matrix) for j, size in enumerate(row) if i != j))
    return graph, ranks, matrix


def rule(seed: int) -> Any:
    rules = ["ecmp", "ecmp", "even", "paths", "single", "valiant", topo.Hash(seed % 5, 1), topo.Hash(seed % 5, 3)]
    return rules[seed % len(rules)]


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_cost_is_a_lower_bound(family: str, seed: int) -> None:
    graph, ranks, matrix = random_case(family, seed)
    words: Any = {"ranks": ranks, "routing": rule(seed)}
    try:
        cost = collectives.cost(graph, "all_to_all_v", matrix, **words)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(error.faults[0].rule)):
            collectives.simulate(graph, "all_to_all_v", matrix, **words)
        return
    found = collectives.simulate(graph, "all_to_all_v", matrix, **words)
    assert cost.seconds <= found.seconds * (1 + 1e-9)
    assert found.loads == pytest.approx(cost.loads, rel=1e-9, abs=1e-6 * max(cost.loads))
    # Bytes beyond what a link can carry; over a moment between two events `use` itself is mostly rounding.
    assert ((found.use - 1) * np.diff(found.times, prepend=0.0)[:, None]).max() <= 1e-12 * found.seconds
    assert found.times[-1] == pytest.approx(found.seconds, rel=1e-12)
    # One phase has nothing to wait for; without barriers nothing is folded.
    plain = collectives.simulate(graph, "all_to_all_v", matrix, barriers=False, **words)
    assert plain.flow_ends == pytest.approx(found.flow_ends, rel=1e-9)
    assert plain.loads == pytest.approx(found.loads, rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_paths_are_those_found_by_walking(family: str, seed: int) -> None:
    graph, ranks, matrix = random_case(family, seed)
    try:
        found = collectives.simulate(graph, "all_to_all_v", matrix, ranks=ranks)
    except InputError:
        assume(False)
    fabric = topo.Fabric.from_graph(graph)
    number = {
        (fabric.labels[a], fabric.labels[b]): i
        for i, (a, b) in enumerate(zip(fabric.source, fabric.target, strict=True))
    }
    indptr, links, sizes, late, of_flow = [0], [], [], [], []
    for f, (a, b) in enumerate(zip(found.flow_source.tolist(), found.flow_target.tolist(), strict=True)):
        for path, share in paths(graph, fabric.labels[a], fabric.labels[b]):
            links += [number[link] for link in path]
            indptr.append(len(links))
            sizes.append(share * found.flow_bytes[f])
            late.append(sum(graph.edges[link]["latency"] for link in path))
            of_flow.append(f)
    ends = np.zeros(len(found.flow_ends))
    np.maximum.at(ends, of_flow, collectives.fluid.finish_times(fabric.bandwidth, indptr, links, sizes) + late)
    assert found.flow_ends == pytest.approx(ends, rel=1e-9)
    assert sum(phase.n_subflows for phase in found.phases) == len(of_flow)


# --- known numbers ---------------------------------------------------------------------------------------------------


# SimGrid 3.32: racks of GPUs over NICs and a fabric that does not block; one switch
@pytest.mark.parametrize(
    ("count", "size", "seconds"),
    [(1, 72, 71e9 / 900e9), (2, 8, 0.16), (4, 8, 0.48), (8, 8, 1.12), (2, 72, 1.44), (4, 72, 4.32)],
)
def test_as_its_cost_where_nothing_blocks(count: int, size: int, seconds: float) -> None:
    # One leaf for all: where 32 uplinks spread over 3 spines as 11, 11, 10 two racks of 72 end at 1.464 s.
    graph, n = racks(count, size, DRY | {"scale_out.radix": 1024}), count * size
    found = collectives.simulate(graph, "all_to_all", n * 1e9)
    assert found.seconds == pytest.approx(seconds, rel=1e-9)
    cost = collectives.cost(graph, "all_to_all", n * 1e9)
    assert (found.seconds, found.busbw) == pytest.approx((cost.seconds, cost.busbw), rel=1e-9)
    domain = topo.Fabric.from_graph(graph).domain
    inside = domain[found.flow_source] == domain[found.flow_target]
    assert np.allclose(found.flow_ends[inside], (size - 1) * 1e9 / 900e9, rtol=1e-9, atol=0)


# SimGrid 3.32: one switch, N = 8, 0.5e-6 s per link
def test_latency_is_that_of_the_path() -> None:
    found = collectives.simulate(racks(1, 8, {"scale_up.latency": "0.5 us"}), "all_to_all", 8e9)
    assert found.seconds == pytest.approx(7e9 / 900e9 + 1e-6, rel=1e-12)
    assert found.times[-1] == found.seconds
    assert found.use[0] == pytest.approx(1.0)  # every link is busy until the last byte is sent
    assert found.use[-1] == pytest.approx(0.0)


def test_twice_the_bytes_take_twice_as_long() -> None:
    matrix = np.arange(1, 65, dtype=float).reshape(8, 8) * 1e8
    one, two = (collectives.simulate(racks(2, 4), "all_to_all_v", k * matrix) for k in (1, 2))
    assert two.flow_ends == pytest.approx(2 * one.flow_ends, rel=1e-12)


LATE = 1e-3


def plan(*phases: dict[tuple[int, int], float]) -> collectives.Schedule:
    """Phases of flows among four ranks [GB]."""
    matrices = []
    for flows in phases:
        matrix = np.zeros((4, 4))
        for pair, size in flows.items():
            matrix[pair] = size * 1e9
        matrices.append(collectives.Phase(matrix))
    return collectives.Schedule("mine", "by hand", np.arange(4), 1e9, 1.0, tuple(matrices))


def four() -> nx.Graph:
    graph = nx.Graph()
    graph.add_node("switch", kind="switch")
    for i in range(4):
        graph.add_node(f"gpu{i}", kind="gpu")
        graph.add_edge(f"gpu{i}", "switch", kind="scale-up", bandwidth=1e9, latency=LATE / 2)
    return graph


THREE = plan({(0, 1): 4, (2, 3): 1}, {(3, 2): 2, (1, 0): 1}, {(2, 0): 1})


def test_barriers_add_phases_up() -> None:
    found = collectives.simulate(four(), THREE)
    assert found.seconds == pytest.approx(4 + 2 + 1 + 3 * LATE, rel=1e-12)
    assert found.flow_ends == pytest.approx(np.array([4, 1, 5, 6, 7]) + LATE * np.array([1, 1, 2, 2, 3]), rel=1e-12)
    assert [phase.last for phase in found.phases] == ["gpu0 => gpu1", "gpu3 => gpu2", "gpu2 => gpu0"]
    assert [phase.start for phase in found.phases] == pytest.approx([0, 4 + LATE, 6 + 2 * LATE])


def test_without_barriers_a_rank_waits_for_its_own_flows() -> None:
    found = collectives.simulate(four(), THREE, barriers=False)
    # 2 -> 3 is through at 1 + L, so 3 -> 2 runs until 3 + 2 L, and 2 -> 0 starts then. 1 -> 0 starts at 4 + L. They
    # meet on gpu0's link, when L of the first is left: half a rate each for 2 L, and it is full until 5 + 2 L.
    wanted = [4 + LATE, 1 + LATE, 5 + 3 * LATE, 3 + 2 * LATE, 4 + 4 * LATE]
    assert found.flow_ends == pytest.approx(wanted, rel=1e-12)
    assert found.seconds == pytest.approx(5 + 3 * LATE, rel=1e-12)
    assert [phase.start for phase in found.phases] == pytest.approx([0, 1 + LATE, 3 + 2 * LATE])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(list(permutations(range(4), 2))), st.integers(1, 5)), max_size=5))
def test_without_barriers_as_in_fractions(phases: list[dict[tuple[int, int], float]]) -> None:
    graph = four()
    nx.set_edge_attributes(graph, 0.0, "latency")
    found = collectives.simulate(graph, plan(*phases), barriers=False)
    flows = [(p, *pair, size * 1e9) for p, phase in enumerate(phases) for pair, size in sorted(phase.items())]
    paths = [[source, 4 + target] for _, source, target, _ in flows]
    assert found.flow_ends == pytest.approx(ends_without_barriers([1e9] * 8, flows, paths), rel=1e-9)


ALGORITHMS = [(kind, name) for kind, row in collectives.KINDS.items() for name in row.algorithms]


@pytest.mark.parametrize(("kind", "algorithm"), ALGORITHMS)
def test_every_algorithm_takes_its_cost_at_least(kind: str, algorithm: str) -> None:
    sizes: Any = np.arange(64.0).reshape(8, 8) * 1e6 if kind == "all_to_all_v" else 64e6
    if kind.startswith("moe"):
        sizes = collectives.MoE(tokens=1024, hidden=4096, top_k=4, experts=32)
    for design, domains in (("hgx-h100-8", 1), ("hgx-h100-8", 2)):
        graph = topo.load(design, domains)
        words: Any = {"algorithm": algorithm, "ranks": 8 if kind == "all_to_all_v" else None}
        try:
            cost = collectives.cost(graph, kind, sizes, pipelined=False, **words)
        except InputError as error:
            with pytest.raises(InputError, match=re.escape(error.faults[0].rule)):
                collectives.simulate(graph, kind, sizes, **words)
            continue
        found = collectives.simulate(graph, kind, sizes, **words)
        assert cost.seconds <= found.seconds * (1 + 1e-9)
        assert found.loads == pytest.approx(cost.loads, rel=1e-9)
        free = collectives.simulate(graph, kind, sizes, barriers=False, **words)
        assert free.loads == pytest.approx(cost.loads, rel=1e-9)


# A ring of 8 sends an eighth of the buffer to the next one, 14 times.
@pytest.mark.parametrize("barriers", [True, False])
def test_all_reduce(barriers: bool) -> None:
    graph = topo.load("hgx-h100-8", overrides={"scale_up.bandwidth": "450 GB/s", "scale_up.latency": "1 us"})
    found = collectives.simulate(graph, "all_reduce", 8e9, algorithm="ring", barriers=barriers)
    assert found.seconds == pytest.approx(14 * (1e9 / 450e9 + 2e-6), rel=1e-12)
    assert len(found.phases) == 14
    best = collectives.simulate(graph, "all_reduce", 8e9, algorithm="best")
    assert best.algorithm == "nvls"
    assert any("cuts chunks finely" in line for line in best.assumptions)


def test_phases_alike_are_worked_out_alike() -> None:
    one = plan({(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 0): 1}).phases[0]
    ring = collectives.Schedule("mine", "ring", np.arange(4), 4e9, 1.0, (one,) * 3)
    for barriers in (True, False):
        found = collectives.simulate(four(), ring, barriers=barriers)
        assert found.seconds == pytest.approx(3 * (1 + LATE), rel=1e-12)
        assert found.loads.max() == pytest.approx(3e9)


# --- the record ------------------------------------------------------------------------------------------------------


def test_record() -> None:
    found = collectives.simulate(racks(2, 8), "all_to_all", 16e9)
    assert repr(found) == (
        "Timeline(160 ms, busbw 93.75 GB/s: all_to_all over 16 ranks, 1 phases with barriers, "
        f"240 flows on {found.phases[0].n_subflows} paths, routing ecmp)"
    )
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["seconds"] == found.seconds
    assert told["phases"][0]["n_flows"] == 240
    assert "use" not in told


def test_nothing_is_sent() -> None:
    found = collectives.simulate(four(), plan({(0, 0): 1}, {}))
    assert (found.seconds, found.busbw, len(found.times), found.loads.tolist()) == (0.0, 0.0, 0, [0.0] * 8)
    assert collectives.simulate(four(), plan({}), barriers=False).seconds == 0.0
    assert collectives.simulate(four(), "all_reduce", 1e9, ranks=1).phases == ()
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("barriers", [True, False])
def test_one_rank_without_links(barriers: bool) -> None:
    graph = nx.Graph()
    graph.add_node("alone", kind="gpu")
    assert collectives.simulate(graph, "all_to_all", 1e9, barriers=barriers).seconds == 0.0
    assert collectives.bracket(graph, "all_reduce", 1e9).simulated == 0.0


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="needs a size"):
        collectives.simulate(four(), "all_to_all")
    with pytest.raises(InputError, match="a Schedule has its own"):
        collectives.simulate(four(), THREE, 1e9)
    monkeypatch.setattr(_simulate, "MOST", 11)
    with pytest.raises(InputError, match="splits 12 flows over 12 paths"):
        collectives.simulate(four(), "all_to_all", 1e9)


def test_valiant_over_more_stops_than_ranks() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="gpu")
    for switch in ("x", "y", "z"):
        graph.add_node(switch, kind="switch")
        graph.add_edges_from([("a", switch), ("b", switch)], kind="scale-up", bandwidth=1e9, latency=0.0)
    for verb in (collectives.cost, collectives.simulate):
        found = verb(graph, "all_to_all", 6e9, routing="valiant")
        assert found.seconds == pytest.approx(1.0)
        assert found.loads == pytest.approx(np.full(12, 1e9))


def test_valiant_over_ranks_that_forward() -> None:
    graph = nx.Graph()
    graph.add_nodes_from("abcd", kind="gpu", forwards=True)
    graph.add_edges_from(combinations("abcd", 2), kind="scale-up", bandwidth=1e9, latency=0.0)
    found = collectives.simulate(graph, "all_to_all_v", [[0, 4e9], [0, 0]], ranks=["a", "b"], routing="valiant")
    # A quarter over each of c and d, a quarter each "over" a and b: half of it straight.
    assert sorted(found.loads[found.loads > 0]) == pytest.approx([1e9, 1e9, 1e9, 1e9, 2e9])
    assert found.seconds == pytest.approx(2.0)
