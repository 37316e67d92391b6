"""Does the explanation see the graph as NCCL does, and say what is picked?"""

from __future__ import annotations

import pytest

import topo
from collectives import explain, load_profile
from collectives._features import bulk_features
from collectives._predict import LAWS
from topo import Fabric, InputError


def test_team_of_a_design() -> None:
    """A domain is what NCCL calls a node: 16 GPUs of two racks are in one."""
    found = explain(topo.load("gb200-nvl72", 2), "all_reduce", 2**30, ranks=16)
    assert (found.n_ranks, found.n_domains, found.profile) == (16, 1, "nccl-model-b200")
    both = explain(topo.load("gb200-nvl72", 2), "all_reduce", 2**30)
    assert (both.n_ranks, both.n_domains, both.pick.algorithm) == (144, 2, "nvls_tree")


def test_bandwidth_comes_from_the_graph() -> None:
    """Half the NVLink: half the bandwidth of every choice in one domain, the same latencies."""
    whole = explain(topo.load("hgx-h100-8"), "all_gather", 2**30)
    half = explain(topo.load("hgx-h100-8", 1, {"scale_up.bandwidth": "225 GB/s"}), "all_gather", 2**30)
    for protocol in ("simple", "ll128"):
        two = [next(one for one in each.choices if one.protocol == protocol) for each in (whole, half)]
        assert two[0].bandwidth == pytest.approx(2 * two[1].bandwidth)
        assert two[0].latency == two[1].latency


def test_nics_of_their_own_count_for_all_gpus() -> None:
    """A graph with NIC nodes, two GPUs a NIC, costs as one with half a NIC a GPU."""
    graph = topo.load("hgx-h100-8", 2)
    direct = explain(graph, "all_reduce", 2**30, profile="nccl-model-a100").pick
    shared = graph.copy()
    gpus = [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]
    for gpu in gpus:
        for leaf in [other for other in graph[gpu] if graph.edges[gpu, other]["kind"] == "scale-out"]:
            data = dict(graph.edges[gpu, leaf])
            shared.remove_edge(gpu, leaf)
            shared.add_node(f"{gpu}.nic", kind="nic", host=graph.nodes[gpu].get("host"))
            shared.add_edge(gpu, f"{gpu}.nic", kind="pcie", bandwidth=64e9, latency=0.0)
            shared.add_edge(f"{gpu}.nic", leaf, **data)
    assert explain(shared, "all_reduce", 2**30, profile="nccl-model-a100").pick == direct


def test_switches_and_reasons() -> None:
    found = explain(topo.load("hgx-h100-8"), "all_reduce", 2**30)
    assert found.switches[0].n_bytes == 8
    assert [switch.n_bytes for switch in found.switches] == sorted(switch.n_bytes for switch in found.switches)
    assert (found.switches[-1].algorithm, found.switches[-1].protocol) == (found.pick.algorithm, found.pick.protocol)
    assert found.why[0].startswith("nvls/simple: 25 us of latency")
    assert "ring/ll has the least latency, 15 us" in found.why[1]
    assert found.to_dict()["choices"][0]["algorithm"] == "nvls"


@pytest.mark.parametrize(
    ("design", "kind", "ranks", "profile", "rule"),
    [
        ("hgx-h100-8", "all_to_all", None, None, "it sends directly"),
        ("hgx-h100-8", "all_reduce", 1, None, "two ranks or more"),
        ("mi300x-8", "all_reduce", None, None, "no GPU that NCCL's tuning model knows"),
        ("hgx-h100-8", "all_reduce", None, "ideal", "profile of the law ideal, not nccl-model"),
    ],
)
def test_refused(design: str, kind: str, ranks: int | None, profile: str | None, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        explain(Fabric.from_graph(topo.load(design)), kind, 1e6, ranks=ranks, profile=profile)


@pytest.mark.parametrize(("domains", "ranks"), [(1, 8), (2, 16), (3, 24)])
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather"])
def test_the_law_predicts_what_is_picked(kind: str, domains: int, ranks: int) -> None:
    """By features of a graph as other profiles have them, or by the graph itself: the same time."""
    graph = topo.load("hgx-h100-8", domains)
    constants = load_profile("nccl-model-h100").constants
    fabric = Fabric.from_graph(graph)
    for size in (2.0**10, 2.0**22, 2.0**33):
        features = bulk_features(fabric, kind, size, fabric.rank_numbers(ranks))
        found = float(LAWS["nccl-model"](constants, features)[0])
        assert found == pytest.approx(explain(graph, kind, size, ranks=ranks).pick.seconds)
