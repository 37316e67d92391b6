"""Does a bill hold what is there, and only the prices and powers that somebody stated?"""

from __future__ import annotations

import networkx as nx
import pytest

import topo
from topo import Bill, InputError, load, measure

STATED = {
    "chip.price": "30000 $", "scale_up.switch_price": "4000 $", "scale_up.switch_power": "100 W",
    "scale_out.switch_price": "20000 $", "scale_out.nic_price": "1500 $", "scale_out.nic_power": "25 W",
    "scale_out.cable_price": "300 $",
}  # fmt: skip


def test_two_racks_by_hand() -> None:
    """144 GPUs, 2 x 18 NVSwitch chips, 5 leaves, 3 spines; a NIC and a cable a GPU, 144 uplinks."""
    assert measure(load("gb200-nvl72", 2, STATED)).bill == {
        "GPUs": Bill(144, 144 * 30e3, 144 * 1200.0),
        "leaf switches": Bill(5, 5 * 20e3, None),
        "scale-up switches": Bill(36, 36 * 4e3, 3600.0),
        "spine switches": Bill(3, 3 * 20e3, None),
        "NICs": Bill(144, 144 * 1500.0, 144 * 25.0),
        "scale-out cables": Bill(288, 288 * 300.0, None),
        "scale-up cables": Bill(144 * 18, None, None),
    }


def test_nothing_stated_is_nothing_counted() -> None:
    bill = measure(topo.build("fat_tree", k=4)).bill
    assert {name: (one.price, one.power) for name, one in bill.items()} == dict.fromkeys(bill, (None, None))
    assert bill["scale-out cables"].units == 48


@pytest.mark.parametrize("planes", [False, True])
def test_planes_are_counted_folded_or_not(planes: bool) -> None:
    graph = load("hgx-h100-8", 1, {"scale_up.switch_price": "1000 $"}, planes=planes)
    assert measure(graph).bill["scale-up switches"] == Bill(4, 4000.0, None)
    assert measure(topo.fail(graph, switches=["d0/switch2"])).bill["scale-up switches"] == Bill(3, 3000.0, None)
    cables = measure(topo.fail(graph, lanes={("d0/gpu0", "d0/switch"): 2} if not planes else None)).bill
    assert cables["scale-up cables"].units == 8 * 18 - (0 if planes else 2)


def test_a_graph_made_by_hand() -> None:
    graph: nx.Graph = nx.Graph(chips={"a": {"price": 3.0, "power": 2.0}})
    graph.add_node("g0", kind="gpu", chip="a")
    graph.add_node("g1", kind="gpu", chip="a", price=5.0)
    graph.add_node("n", kind="nic", price=1.0)
    graph.add_node("s", kind="switch", price=10.0, planes=2)
    for node in ("g0", "g1"):
        graph.add_edge(node, "s", kind="scale-up", bandwidth=1.0, latency=0.0, lanes=4, power=0.5)
    graph.add_edge("g0", "n", kind="pcie", bandwidth=1.0, latency=0.0)
    wanted = {
        "GPUs": Bill(2, 8.0, 4.0), "switches": Bill(2, 20.0, None), "NICs": Bill(1, 1.0, None),
        "pcie cables": Bill(1, None, None), "scale-up cables": Bill(8, None, 4.0),
    }  # fmt: skip
    assert measure(graph).bill == wanted == measure(graph.to_directed()).bill


def test_a_class_that_is_not_stated_whole_has_no_total() -> None:
    graph = topo.build("leaf_spine", leaves=2, spines=1, hosts=2)
    graph.nodes["leaf0"]["price"] = 7.0
    assert measure(graph).bill["leaf switches"] == Bill(2, None, None)


def test_faults() -> None:
    graph = topo.build("leaf_spine", leaves=2, spines=1, hosts=2)
    graph.nodes["leaf0"]["price"] = -1
    graph.edges["gpu0", "leaf0"]["nic_power"] = "25 W"
    graph.nodes["gpu1"]["coordinates"] = "here"
    graph.graph["chips"] = {"a": {"price": float("nan")}}
    assert [fault.place for fault in topo.check(graph)] == [
        "chip 'a' price", "node 'gpu1' coordinates", "node 'leaf0' price", "edge 'gpu0' - 'leaf0' nic_power",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"scale_out\.cable_price"):
        load("gb200-nvl72", 2, {"scale_out.cable_price": "300"})
