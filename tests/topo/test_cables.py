"""Do lanes, planes and end ports come apart as they are wired?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from topo import Fabric, InputError


def ends(fabric: Fabric) -> Counter:
    return Counter((fabric.labels[a], fabric.labels[b]) for a, b in zip(fabric.source, fabric.target, strict=True))


@pytest.mark.parametrize("name", ["hgx-a100-8", "hgx-h100-8", "gb200-nvl72"])
@pytest.mark.parametrize("domains", [1, 2])
def test_cables_are_those_of_unfolded_planes(name: str, domains: int) -> None:
    folded = Fabric.from_graph(topo.load(name, domains)).unfolded()
    planes = Fabric.from_graph(topo.load(name, domains, planes=True))
    wide = planes.unfolded()
    assert set(folded.labels) == set(planes.labels)
    assert ends(folded) == ends(wide)
    assert ends(planes).total() <= ends(wide).total() == planes.lanes.sum()
    assert (folded.lanes == 1).all()
    assert folded.rank_labels == planes.rank_labels
    assert folded.chip == planes.chip
    assert folded.domain_sizes.tolist() == planes.domain_sizes.tolist()
    total = Counter()
    for a, b, rate in zip(folded.source, folded.target, folded.bandwidth, strict=True):
        total[folded.labels[a], folded.labels[b]] += rate
    for a, b, rate in zip(planes.source, planes.target, planes.bandwidth, strict=True):
        assert total[planes.labels[a], planes.labels[b]] == pytest.approx(rate)


def test_planes_that_failed_are_left_out() -> None:
    graph = topo.fail(topo.load("hgx-h100-8"), switches=["d0/switch1"])
    fabric = Fabric.from_graph(graph).unfolded()
    switches = {label for label in fabric.labels if "switch" in label}
    assert switches == {"d0/switch0", "d0/switch2", "d0/switch3"}
    assert ends(fabric)["d0/gpu0", "d0/switch0"] == 5


def test_an_unfolded_fabric_is_its_own() -> None:
    fabric = Fabric.from_graph(topo.build("fat_tree", k=4))
    assert fabric.unfolded() is fabric
    wide = Fabric.from_graph(topo.load("hgx-h100-8")).unfolded()
    assert wide.unfolded() is wide


@pytest.mark.parametrize("domains", [1, 3])
def test_split_flows_cost_the_same_cable_by_cable(domains: int) -> None:
    graph = topo.load("hgx-h100-8", domains, {"scale_out.radix": 6})
    fabric = Fabric.from_graph(graph)
    assert fabric.lanes.max() > 1
    folded, wide = (collectives.cost(view, "all_to_all", 24e6) for view in (fabric, fabric.unfolded()))
    assert wide.seconds == pytest.approx(folded.seconds, rel=1e-12)
    for kind, load in folded.classes.items():
        assert wide.classes[kind].n_bytes == pytest.approx(load.n_bytes, rel=1e-12)
        assert wide.classes[kind].busiest_seconds == pytest.approx(load.busiest_seconds, rel=1e-12)


def test_lanes_of_different_rates() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="host")
    graph.add_edge("a", "b", kind="scale-out", bandwidth=3e9, latency=0.0, lanes=2, lane_bandwidths=[1e9, 2e9])
    fabric = Fabric.from_graph(graph).unfolded()
    assert fabric.bandwidth.tolist() == [1e9, 2e9, 1e9, 2e9]
    faster = topo.scale(Fabric.from_graph(graph), kind="scale-out", bandwidth=2.0).unfolded()
    assert faster.bandwidth.tolist() == [2e9, 4e9, 2e9, 4e9]
    assert [fabric.link_label(i) for i in range(4)] == [
        "a -> b lane 1",
        "a -> b lane 2",
        "b -> a lane 1",
        "b -> a lane 2",
    ]


# --- end ports -------------------------------------------------------------------------------------------------------


def rails(hosts: int = 3, *, dual: int = 1) -> nx.Graph:
    """Hosts on a leaf; the first `dual` of them have a second port, on another leaf."""
    graph = nx.Graph(name="rails")
    for h in range(hosts):
        graph.add_node(f"h{h}", kind="host", rank=h, lids={"1": 2 * h + 1} | ({"2": 2 * h + 2} if h < dual else {}))
    graph.add_nodes_from(["leaf0", "leaf1"], kind="switch")
    link = {"kind": "scale-out", "bandwidth": 50e9, "latency": 0.0}
    for h in range(hosts):
        graph.add_edge(f"h{h}", "leaf0", **link, ports=[[1, h + 1]])
        if h < dual:
            graph.add_edge(f"h{h}", "leaf1", **link, ports=[[2, h + 1]])
    graph.add_edge("leaf0", "leaf1", **link, ports=[[30, 31]])
    return graph


def test_every_end_port_is_a_rank() -> None:
    fabric = Fabric.from_graph(rails(3)).by_port()
    assert fabric.rank_labels == ["h0:1", "h0:2", "h1", "h2"]
    assert ends(fabric)["h0:2", "leaf1"] == ends(fabric)["leaf0", "h0:1"] == ends(fabric)["h1", "leaf0"] == 1
    assert ("h0:1", "leaf1") not in ends(fabric)
    assert [fabric.marks.lids[int(node)] for node in fabric.ranks] == [{1: 1}, {2: 2}, {1: 3}, {1: 5}]


def test_cost_over_ports() -> None:
    """Both ports of h0 and h1, h2: four ranks, 1e9 bytes a pair. The trunk carries 3 each way, as does every port."""
    cost = collectives.cost(rails(3), "all_to_all", 4e9, ranks="ports")
    assert cost.n_ranks == 4
    assert cost.seconds == pytest.approx(3 / 50, rel=1e-12)
    assert collectives.cost(rails(3), "all_to_all", 3e9).n_ranks == 3


def test_two_cables_to_one_leaf_are_two_ports() -> None:
    graph = rails(2, dual=0)
    graph.edges["h0", "leaf0"].update(lanes=2, bandwidth=100e9, ports=[[1, 1], [2, 5]])
    fabric = Fabric.from_graph(graph).by_port()
    assert fabric.rank_labels == ["h0:1", "h0:2", "h1"]
    assert fabric.bandwidth.tolist() == [50e9] * 8
    assert topo.hop_counts(fabric).tolist() == (2 - 2 * np.eye(3, dtype=int)).tolist()


def test_no_ports_no_port_ranks() -> None:
    with pytest.raises(InputError, match="ports") as caught:
        collectives.cost(topo.build("fat_tree", k=4), "all_to_all", 1e9, ranks="ports")
    assert caught.value.faults[0].place == "ranks"
    with pytest.raises(InputError, match='only one taken is "ports"'):
        collectives.cost(topo.build("fat_tree", k=4), "all_to_all", 1e9, ranks="gpu0")


def test_the_dual_ported_host_of_a_real_fabric() -> None:
    """144 hosts with 145 linked ports, 47 trunk cables."""
    path = Path(__file__).parents[1] / "data" / "readers-fabric" / "ibnetdiscover-real-144hosts-8sw.topo"
    graph = topo.read(path).graph
    assert graph is not None
    fabric = Fabric.from_graph(graph).by_port()
    assert (Fabric.from_graph(graph).n_ranks, fabric.n_ranks) == (144, 145)
    assert len(fabric.source) == 2 * (145 + 47)
    both = [label for label in fabric.rank_labels if label.endswith((":1", ":2"))]
    assert len(both) == 2
    assert collectives.cost(graph, "all_to_all", 145e6, ranks="ports").n_ranks == 145
