"""Are htsim's .topo files wired as htsim wires them?"""

from __future__ import annotations

from itertools import pairwise

import pytest

from collectives import cost
from topo import InputError, build, check, measure
from topo.readers._htsim import HTSIM_TOPO
from topo.readers._reading import Source

from .sim_files import graph_of, kinds, read, source, survives

TINY = "htsim-leaf_spine_tiny.topo"


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        HTSIM_TOPO.read(Source("f", text))
    return [(fault.place, fault.rule) for fault in caught.value.faults]


def test_the_tree_of_1024_is_the_fat_tree_of_16_ports() -> None:
    graph = graph_of(read(HTSIM_TOPO, "htsim-fat_tree_1024.topo"))
    assert kinds(graph) == {"host": 1024, "switch": 320}
    assert check(graph) == []
    same = build("fat_tree", k=16, bandwidth="100 Gb/s", latency="1 us")
    assert sorted(d for _, d in graph.degree()) == sorted(d for _, d in same.degree())
    first, far = range(16), range(512, 528)
    ranks = [*first, *far]
    ours = cost(graph, "all_to_all", 1e6, ranks=[f"host{i}" for i in ranks])
    theirs = cost(same, "all_to_all", 1e6, ranks=[f"gpu{i}" for i in ranks])
    assert ours.seconds == pytest.approx(theirs.seconds, rel=1e-12)


def test_a_leaf_of_eight_hosts_has_two_uplinks() -> None:
    graph = graph_of(read(HTSIM_TOPO, TINY))
    assert kinds(graph) == {"host": 32, "switch": 6}
    assert set(graph["leaf3"]) == {*(f"host{i}" for i in range(24, 32)), "spine0", "spine1"}
    assert graph.edges["leaf0", "spine1"]["bandwidth"] == 12.5e9
    assert measure(graph).oversubscription["leaf"] == 4


def test_bundles_are_lanes_and_cores_serve_their_column() -> None:
    graph = graph_of(read(HTSIM_TOPO, "htsim-zrs.topo"))
    assert kinds(graph) == {"host": 432, "switch": 72 + 72 + 12}
    assert set(graph["core8"]) == {f"spine{pod * 6 + 2}" for pod in range(12)}
    assert graph.edges["spine2", "core8"]["lanes"] == 3
    assert graph.edges["spine2", "core8"]["latency"] == pytest.approx(600e-6)
    assert graph.edges["spine2", "core8"]["bandwidth"] == 37.5e9


def test_the_latency_of_switches_adds_up_on_every_path() -> None:
    text = source(TINY).text.replace("Switch_Latency_ns 0\nOversub", "Switch_Latency_ns 300\nOversub")
    text = text[::-1].replace("Switch_Latency_ns 0"[::-1], "Switch_Latency_ns 700"[::-1], 1)[::-1]
    graph = graph_of(HTSIM_TOPO.read(Source("f", text)))

    def late(*path: str) -> float:
        return sum(graph.edges[a, b]["latency"] for a, b in pairwise(path))

    assert late("host0", "leaf0", "host1") == pytest.approx(2e-6 + 0.3e-6)
    assert late("host0", "leaf0", "spine0", "leaf1", "host8") == pytest.approx(4e-6 + 2 * 0.3e-6 + 0.7e-6)


def test_what_is_wrong_is_said_with_its_line() -> None:
    good = source(TINY).text
    assert faults(good.replace("Radix_Up 2", "Radix_Up 4"))[0][0] == "line 8 tier 0 radix_up"
    assert faults(good.replace("Radix_Down 4", "Radix_Down 3"))[0][0] == "line 15 tier 1 radix_down"
    assert faults(good.replace("Oversubscribed 4", "Oversubscribed 3"))[0][0] == "line 11 tier 0 oversubscribed"
    assert faults(good.replace("Podsize 32", "Podsize 30"))[0] == ("line 3 podsize", "does not divide the 32 nodes")
    assert faults(good.replace("Tiers 2", "Tiers 4"))[0][0] == "line 2 tiers"
    assert faults(good.replace("Radix_Up", "Radix_Upp"))[0] == ("line 8 Radix_Upp", "is no setting here")
    assert faults(good.replace("Radix_Up 2", "Radix_Up two"))[0][0] == "line 8 Radix_Up"
    assert faults(good.replace("Radix_Up 2", "Radix_Down 2"))[0][1] == "is set already on line 7"
    assert "cut off" in faults(good.split("Tier 1")[0])[0][1]
    assert "downlink_latency_ns" not in str(faults("Nodes 4\nTiers 2\nTier 0\n"))


@pytest.mark.parametrize("name", [TINY])
def test_damaged_files_never_break_it(name: str) -> None:
    survives(HTSIM_TOPO, source(name).text, check)
