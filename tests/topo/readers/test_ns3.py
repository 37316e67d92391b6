"""Are ns-3 topology texts read as HPCC, ASTRA-sim and SimAI mean them?"""

from __future__ import annotations

import pytest

from collectives import cost
from topo import InputError, check
from topo.readers._ns3 import NS3_TOPOLOGY
from topo.readers._reading import Source

from .sim_files import graph_of, kinds, read, source, survives

SIMAI = "simai-Spectrum-X_16g_8gps_100Gbps_A100"


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        NS3_TOPOLOGY.read(Source("f", text))
    return [(fault.place, fault.rule) for fault in caught.value.faults]


def test_eight_hosts_under_one_switch() -> None:
    graph = graph_of(read(NS3_TOPOLOGY, "ns3-8n-1sw.txt"))
    assert kinds(graph) == {"host": 8, "switch": 1}
    assert check(graph) == []
    assert set(graph["switch8"]) == {f"host{i}" for i in range(8)}
    for _, _, data in graph.edges(data=True):
        assert (data["kind"], data["bandwidth"], data["latency"]) == ("scale-out", 50e9, 0.5e-6)
    # 7 chunks of 1 MB leave every host at 50 GB/s, over two links of 0.5 us
    assert cost(graph, "all_to_all", 8e6).seconds == pytest.approx(7e6 / 50e9 + 1e-6)


def test_simai_nvswitches_make_domains_of_servers() -> None:
    reading = read(NS3_TOPOLOGY, SIMAI)
    graph = graph_of(reading)
    assert kinds(graph) == {"gpu": 16, "switch": 74}
    assert graph.number_of_edges() == 544
    assert check(graph) == []
    assert [graph.nodes[f"gpu{i}"]["domain"] for i in range(16)] == [0] * 8 + [1] * 8
    assert [graph.nodes[f"gpu{i}"]["host"] for i in (0, 7, 8)] == ["server0", "server0", "server1"]
    assert graph.edges["gpu3", "nvswitch16"] == {
        "kind": "scale-up", "bandwidth": 300e9, "latency": pytest.approx(25e-9), "lanes": 1,
    }  # fmt: skip
    assert graph.edges["gpu11", "switch21"]["bandwidth"] == 12.5e9
    assert graph.edges["switch21", "switch89"]["bandwidth"] == 50e9
    assert any("A100 is a name" in note for note in reading.notes)
    # half of a GPU's 16 chunks goes to the other server over 12.5 GB/s
    assert cost(graph, "all_to_all", 16e6).bandwidth_seconds == pytest.approx(8e6 / 12.5e9)


def test_hosts_in_a_ring_pass_nothing_on() -> None:
    reading = read(NS3_TOPOLOGY, "ns3-8nodes-ring.txt")
    graph = graph_of(reading)
    assert kinds(graph) == {"host": 8}
    assert graph.number_of_edges() == 8
    assert not any(forwards for _, forwards in graph.nodes(data="forwards"))
    assert any("passes on" in note for note in reading.notes)


def test_parallel_cables_are_lanes_and_losses_are_said() -> None:
    text = "3 1 3\n2\n2 0 100Gbps 1us 0\n2 1 100Gbps 1us 0.01\n2 1 50Gbps 1us 0\n"
    reading = NS3_TOPOLOGY.read(Source("f", text))
    data = graph_of(reading).edges["host1", "switch2"]
    assert (data["lanes"], data["bandwidth"], data["lane_bandwidths"]) == (2, 150e9 / 8, [12.5e9, 6.25e9])
    assert "1 links have an error rate above zero: losses are not counted" in reading.notes


def test_what_is_wrong_is_said_with_its_line() -> None:
    good = source("ns3-8n-1sw.txt").text
    assert faults("")[0][0] == "line 1"
    assert faults("9 1\n") == [("line 1", "has neither 3 nor 5 counts")]
    (place, rule), = faults("\n".join(good.split("\n")[:6]))  # fmt: skip
    assert place == "line 6"
    assert "4 links and its first line says 8" in rule
    assert faults(good.replace("8 3 400Gbps", "8 30 400Gbps"))[0][0] == "line 6"
    assert faults(good.replace("8 3 400Gbps", "8 3 400Gxps"))[0][0] == "line 6"
    assert faults(good.replace("8 3 400Gbps", "8 8 400Gbps"))[0] == ("line 6", "joins a node to itself")
    assert faults(good.replace("\n8\n", "\n8 7\n"))[0][0] == "line 2"
    assert faults("2000000 1 1\n0\n0 1 1Gbps 1us 0\n") == [("line 1", "nodes are not all joined by 1 links")]
    assert "must be a link" in faults(good.replace("8 3 400Gbps 0.0005ms 0", "8 3 400Gbps"))[0][1]


@pytest.mark.parametrize("name", ["ns3-8n-1sw.txt", "ns3-8nodes-ring.txt"])
def test_damaged_files_never_break_it(name: str) -> None:
    survives(NS3_TOPOLOGY, source(name).text, check)
