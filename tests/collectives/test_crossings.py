"""Do schedules find their way between domains over the wires there are, whatever rails, NICs or domains lack?"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from collectives import KINDS, MoE
from collectives._crossings import crossings, planes_of
from collectives._plan import Team
from topo import Fabric, InputError

from .random_graphs import Dice, designs, hosts, levels, switches_and_gpus
from .shapes import racks
from .test_meaning import size_of

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
RELAYING = ("ring", "hierarchical", "rail_aligned", "rail_pipelined", "per_domain")
BOUND = ("all_reduce", "broadcast", "all_to_all")
UNEVEN = [(2, 4), (4, 4, 1, 3), (4, 2, 3), (3, 3, 3), (1, 2)]


def without(graph: nx.Graph, *gpus: str) -> nx.Graph:
    """Return the graph without the NICs of some GPUs."""
    lost = [edge for edge in graph.edges(gpus) if graph.edges[edge]["kind"] == "scale-out"]
    assert len(lost) == len(gpus)
    return topo.fail(graph, links=lost)


def all_kinds_work(graph: nx.Graph, kinds: tuple[str, ...] = tuple(KINDS)) -> None:
    """Every kind has an algorithm with paths, every relaying one means what it says, none beats the bound."""
    fabric = Fabric.from_graph(graph)
    n, even = fabric.n_ranks, len(set(fabric.domain_sizes.tolist())) == 1
    for kind in kinds:
        if kind == "send" and not even:
            continue
        size = size_of(kind, n)
        best = collectives.cost(fabric, kind, size, algorithm="best")
        assert set(best.tried) & set(RELAYING), kind
        for name in set(best.tried) & set(RELAYING):
            plan = collectives.schedule(kind, fabric, size, algorithm=name)
            assert collectives.verify(plan) == [], (kind, name)
        if kind in BOUND:
            assert collectives.lower_bound(fabric, kind, size, scope="any").seconds <= best.seconds * (1 + 1e-9)


@pytest.mark.parametrize("domains", UNEVEN, ids=str)
def test_rails_of_uneven_domains(domains: tuple[int, ...]) -> None:
    all_kinds_work(topo.load("hgx-h100-8", domains, {"scale_out.shape": "rail_only"}))


@pytest.mark.parametrize("shape", ["rail_only", "rail_optimised"])
def test_a_lost_nic(shape: str) -> None:
    """Seven NICs of eight: a ring has 7/8 of its channels; of 64 chunks one NIC has 10, as 64/7 is more than 9."""
    whole = topo.load("hgx-h100-8", 2, DRY | {"scale_out.shape": shape})
    graph = without(whole, "d0/gpu3")
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "broadcast"):
        seconds = [collectives.cost(each, kind, 16e9).seconds for each in (whole, graph)]
        assert seconds[1] == pytest.approx(seconds[0] * 8 / 7, rel=1e-9), kind
    best = collectives.cost(graph, "all_to_all", 16e9, algorithm="best")
    assert (best.algorithm, best.seconds) == ("rail_pipelined", pytest.approx(10 * 1e9 / 50e9))
    layer = MoE(64, 512, 4, 32)
    assert set(collectives.cost(graph, "moe_dispatch", layer, algorithm="best").tried) == {
        "per_domain", "rail_aligned", "rail_pipelined",
    }  # fmt: skip
    with pytest.raises(InputError, match=r"first d0/gpu0 to d1/gpu1|d0/gpu3"):
        collectives.cost(graph, "all_to_all", 16e9)


def test_uneven_rings_by_hand() -> None:
    """Two GPUs and four on two rails: two channels, each with half of 2 x 5/6 of the size over every NIC."""
    graph = topo.load("hgx-h100-8", (2, 4), DRY | {"scale_out.shape": "rail_only"})
    assert collectives.cost(graph, "all_reduce", 12e9).seconds == pytest.approx(2 * 5 / 6 * 12e9 / 2 / 50e9)


def test_rings_of_three_even_domains_use_every_rail_once() -> None:
    """Out of every GPU one channel, into every GPU one: as many as there are NICs."""
    graph = racks(4, 4, 4, rails=True)
    fabric = Fabric.from_graph(graph)
    found = collectives.cost(graph, "all_gather", 12e9)
    out = found.loads[fabric.link_kind == topo.EDGE_KINDS.index("scale-out")]
    np.testing.assert_allclose(out, 11e9 / 4, rtol=1e-12)
    assert any("4 channels over rails" in line for line in found.assumptions)


def test_channels_over_rails_as_asked() -> None:
    plan = collectives.schedule("all_gather", racks(4, 4, 4, rails=True), 12e9, channels=2)
    assert collectives.verify(plan) == []
    assert len(plan.content().n_bytes) == 12 * 2


def test_one_way_out_of_a_domain_is_no_ring() -> None:
    graph = without(racks(2, 3, rails=True), "0.1")
    with pytest.raises(
        InputError, match=r"enters and leaves every domain at ranks of its own.*'ring'|'ring'.*ranks of its own"
    ):
        collectives.cost(graph, "all_reduce", 1e6)
    assert collectives.cost(graph, "all_reduce", 1e6, algorithm="best").algorithm == "hierarchical"


def chain() -> nx.Graph:
    """Three domains on two rails: the first lost rail 0, the last has no other; all goes through the second."""
    return without(racks(2, 2, 1, rails=True), "0.0")


def test_a_domain_between_two_that_share_no_rail() -> None:
    all_kinds_work(chain())
    fabric = Fabric.from_graph(chain())
    ways = crossings(Team(fabric, np.arange(5), 0.0))
    assert ways.depth.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert ways.exit[:, 2].tolist() == [2, 2, 2, 2, 4]  # 1.0 is the only one on rail 0 beside 2.0
    found = collectives.cost(chain(), "all_to_all", 5e6, algorithm="hierarchical")
    assert len(found.phases) == 5  # in, across, in, across, in


def test_domains_no_wires_join() -> None:
    graph = racks(2, 2, rails=True)
    graph.add_node("bridge", kind="cpu")
    graph.add_edge("bridge", "0.0", kind="pcie", bandwidth=1e9, latency=0.0)
    graph.add_edge("bridge", "leaf0", kind="pcie", bandwidth=1e9, latency=0.0)
    graph = topo.fail(graph, links=[("0.0", "leaf0"), ("0.1", "leaf1")])
    with pytest.raises(InputError, match=r"no wires lead from ranks .* in the domain of 0\.0 to those of 1\.0"):
        collectives.schedule("all_to_all", graph, 1e6, algorithm="hierarchical")


def test_planes_pass_nics_and_pcie() -> None:
    """GPUs behind shared NICs are all on the one plane; on rails each is on its own; hosts by themselves are none."""
    shared = Fabric.from_graph(topo.load("hgx-a100-8", 2, {"scale_out.gpus_per_nic": 4}))
    assert planes_of(shared).tolist() == [[True]] * 16
    rails = Fabric.from_graph(topo.load("hgx-h100-8", (2, 3), {"scale_out.shape": "rail_only"}))
    assert planes_of(rails).astype(int).tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize("family", [switches_and_gpus, hosts, designs, levels], ids=lambda family: family.__name__)
def test_planes_join_the_ranks_that_routes_join(family: Callable[[Dice], nx.Graph]) -> None:
    """Worked out apart: parts of scale-out and PCIe here, shortest ways hop by hop there."""
    whole = [graph for graph in (family(Dice(seed)) for seed in range(12)) if not topo.check(graph)]
    assert len(whole) > 8
    for graph in whole:
        fabric = Fabric.from_graph(graph)
        everyone, home, planes = np.arange(fabric.n_ranks), fabric.rank_domain, planes_of(fabric)
        routed = topo.route(fabric).class_between(everyone[:, None], everyone) != -1
        apart = home[:, None] != home
        shared = (planes[:, None] & planes).any(axis=2)
        np.testing.assert_array_equal(shared[apart], routed[apart])


def test_ranks_of_one_host_without_scale_up_are_joined_by_pcie() -> None:
    """Two GPUs with a cable each to a PCIe switch are domains of their own, and need no fabric."""
    graph = nx.Graph(name="workstation")
    graph.add_node("pcie", kind="switch", host="a")
    for i in range(4):
        graph.add_node(f"gpu{i}", kind="gpu", host="a")
        graph.add_edge(f"gpu{i}", "pcie", kind="pcie", bandwidth=32e9, latency=0.0)
    all_kinds_work(graph, ("all_reduce", "all_to_all", "broadcast"))


@pytest.mark.parametrize("seed", range(6))
def test_any_wires_that_hold_together(seed: int) -> None:
    dice = np.random.default_rng(seed)
    while True:
        graph = racks(*dice.integers(1, 5, dice.integers(2, 5)), rails=bool(dice.integers(4)))
        wires = [edge for *edge, kind in graph.edges(data="kind") if kind == "scale-out"]
        graph = topo.fail(graph, links=[tuple(wires[i]) for i in dice.permutation(len(wires))[: dice.integers(0, 4)]])
        graph.remove_nodes_from([node for node in list(graph) if not graph.degree(node)])
        if nx.is_connected(graph):
            break
    all_kinds_work(graph, ("all_reduce", "all_gather", "broadcast", "reduce", "scatter", "all_to_all", "moe_combine"))
