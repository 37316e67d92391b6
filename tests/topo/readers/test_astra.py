"""Do ASTRA-sim's network files give ASTRA-sim's times?"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

import topo
from collectives import cost
from topo import InputError, build, check, write
from topo.readers._astra import ASTRA_SIM
from topo.readers._reading import Source

from .sim_files import graph_of, kinds, read, source, survives

GB = 2**30
RING = "topology: [ Ring ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        ASTRA_SIM.read(Source("f", text))
    return [(fault.place, fault.rule) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("name", "found", "links"),
    [
        ("astra-HGX-H100-validated.yml", {"gpu": 8, "switch": 1}, 8),
        ("astra-Ring_16npus.yml", {"gpu": 16}, 16),
        ("astra-Ring_4npus.yml", {"gpu": 4}, 4),
        ("astra-net-FullyConnected.yml", {"gpu": 16}, 120),
        ("astra-net-Ring.yml", {"gpu": 16}, 16),
        ("astra-net-Switch.yml", {"gpu": 16, "switch": 1}, 16),
        ("astra-hgx_h100_32gpu.json", {"gpu": 32, "switch": 4}, 64),
        ("astra-old-Ring_FullyConnected_Switch.json", {"gpu": 32, "switch": 16}, 16 + 2 * 56 + 32),
    ],
)
def test_every_file_is_wired(name: str, found: dict[str, int], links: int) -> None:
    graph = graph_of(read(ASTRA_SIM, name))
    assert kinds(graph) == found
    assert graph.number_of_edges() == links
    assert check(graph) == []


@pytest.mark.parametrize(
    ("name", "nanoseconds"),
    [("astra-net-Ring.yml", 21_031), ("astra-net-FullyConnected.yml", 20_031), ("astra-net-Switch.yml", 20_531)],
)
def test_one_message_takes_what_the_unit_tests_of_astra_sim_say(name: str, nanoseconds: int) -> None:
    """1 MiB from NPU 1 to 4; three, one and two hops."""
    graph = graph_of(read(ASTRA_SIM, name))
    sent = cost(graph, "send", 2**20, stages=[["gpu1"], ["gpu4"]])
    assert int(sent.seconds * 1e9) == nanoseconds


def test_the_validated_hgx_has_its_numbers() -> None:
    graph = graph_of(read(ASTRA_SIM, "astra-HGX-H100-validated.yml"))
    data = graph.edges["gpu7", "dim1/switch0"]
    assert (data["kind"], data["bandwidth"], data["latency"]) == ("scale-up", 400 * GB, 936.25e-9)


def test_the_first_dimension_is_the_fastest_and_scale_up() -> None:
    reading = read(ASTRA_SIM, "astra-old-Ring_FullyConnected_Switch.json")
    graph = graph_of(reading)
    assert set(graph["gpu5"]) == {"gpu4", *(f"gpu{i}" for i in (1, 3, 7, 9, 11, 13, 15)), "dim3/switch5"}
    assert graph.edges["gpu4", "gpu5"]["kind"] == "scale-up"
    assert graph.edges["gpu5", "gpu15"]["bandwidth"] == 25 * GB
    assert set(graph["dim3/switch5"]) == {"gpu5", "gpu21"}
    assert graph.nodes["gpu5"]["domain"] == 2
    assert any("first dimension" in note for note in reading.notes)


def test_rings_alone_are_a_torus() -> None:
    text = "topology: [ Ring, Ring ]\nnpus_count: [ 4, 4 ]\nbandwidth: [ 50, 50 ]\nlatency: [ 500, 500 ]\n"
    graph = graph_of(ASTRA_SIM.read(Source("f", text)))
    same = build("torus", dims=(4, 4), bandwidth=50.0 * GB, latency="500 ns")
    assert cost(graph, "all_to_all", 1e6).seconds == cost(same, "all_to_all", 1e6).seconds


@pytest.mark.parametrize(
    "graph",
    [
        build("switched", n=8, planes=4, bandwidth="450 GB/s"),
        build("full_mesh", n=6, bandwidth="300 GB/s"),
        build("ring", n=7, bandwidth="70 GB/s"),
        build("rail_only", domains=4, domain_size=8),
        topo.load("hgx-h100-8", domains=4),
    ],
    ids=["switch", "mesh", "ring", "rails", "hgx"],
)
def test_what_this_project_writes_costs_the_same(tmp_path: Path, graph: nx.Graph[str]) -> None:
    text = write(graph, tmp_path / "net.yml").read_text()
    back = graph_of(ASTRA_SIM.read(Source("net.yml", text)))
    ours, theirs = topo.Fabric.from_graph(graph).rank_labels, topo.Fabric.from_graph(back).rank_labels
    size = 8 if len(ours) > 8 else len(ours)
    for among in (slice(0, size), slice(None, None, size)):  # a domain, and one GPU of every domain
        if len(ours[among]) > 1:
            there = cost(graph, "all_to_all", 1e8, ranks=ours[among]).seconds
            assert cost(back, "all_to_all", 1e8, ranks=theirs[among]).seconds == pytest.approx(there, rel=1e-11)
    assert write(back, tmp_path / "again.yml").read_text() == text


def test_what_is_wrong_is_said_with_its_line() -> None:
    assert faults(RING.replace("Ring", "Rign")) == [("line 1 topology[0]", "is no building block of ASTRA-sim")]
    assert faults(RING.replace("[ 16 ]", "[ 16, 2 ]"))[0][0] == "line 1 topology"
    assert faults(RING.replace("[ 16 ]", "[ -16 ]"))[0][0] == "line 2 npus_count[0]"
    assert faults(RING.replace("50.0", "fast"))[0][0] == "line 3 bandwidth[0]"
    assert faults(RING.replace("500.0", "-1"))[0][0] == "line 4 latency[0]"
    assert faults(RING.replace("bandwidth:", "bandwith:"))[0] == ("line 3", "is no key of a network file")
    assert "cut off" in faults("topology: [ Ring ]\nnpus_count: [ 16 ]\n")[0][1]
    assert faults("topology: [ Ring\nnpus_count: [ 16 ]\n")[0][0].startswith("line ")
    assert faults(RING.replace("16", "3000000"))[0][0] == "line 2 npus_count"
    bomb = "topology: &a [ Ring, Ring ]\nnpus_count: [ *a, *a ]\n"
    assert "aliases are refused" in faults(bomb)[0][1]
    assert faults(RING + "#" * 300_000)[0][0] == "line 1"
    old = source("astra-old-Ring_FullyConnected_Switch.json").text
    assert faults(old.replace('"nic-latency": [0', '"nic-latency": [5'))[0][0] == "line 10 nic-latency"
    assert "multiple of 7" in faults(old.replace("[2, 7, 1]", "[2, 8, 1]"))[0][1]


@pytest.mark.parametrize("name", ["astra-net-Ring.yml", "astra-hgx_h100_32gpu.json"])
def test_damaged_files_never_break_it(name: str) -> None:
    survives(ASTRA_SIM, source(name).text, check)
