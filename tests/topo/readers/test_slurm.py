"""Do Slurm's topologies become trees, rings and tori of their nodes, and are parts and cut files told?"""

from collections import Counter

import networkx as nx
import pytest

import topo
from topo import InputError
from topo.readers._reading import Reading

from .fabric_cases import read_case, read_text, same, text_of

Gb = 1e9 / 8
DEEP = "slurm-tree-tc3.conf"
PARTS = "slurm-tree-tc6.conf"
SEVERAL = """---
- topology: t1
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-04]
      - switch: s2
        nodes: node[05-08]
- topology: t2
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-02]
      - block: b2
        nodes: node[03-08]
- topology: t3
  flat: true
"""
TORUS = """
- topology: topo1
  cluster_default: true
  torus3d:
    toruses:
      - name: pod1
        dims: {x: 4, y: 4, z: 2}
        nodes: node[1-32]
        placements:
          - dims: {x: 2, y: 2, z: 2}
"""


def graph_of(reading: Reading) -> nx.Graph:
    assert reading.graph is not None
    return reading.graph


def tiers(graph: nx.Graph) -> Counter[object]:
    return Counter(data.get("tier") for _, data in graph.nodes(data=True) if data["kind"] == "switch")


def test_three_levels() -> None:
    reading = read_case(DEEP)
    graph = graph_of(reading)
    assert sum(kind == "host" for _, kind in graph.nodes(data="kind")) == 400
    assert tiers(graph) == {"leaf": 20, "spine": 2, "core": 1}
    assert sorted(n for n in graph["leaf100"] if n.startswith("peta")) == [f"peta{i}" for i in range(10000, 10020)]
    assert graph.edges["leaf100", "grp10"]["bandwidth"] == 20 * 400 * Gb
    assert graph.edges["grp11", "root"]["lanes"] == 200
    assert topo.check(graph) == []
    assert topo.measure(graph).oversubscription == dict.fromkeys(topo.measure(graph).oversubscription, 1.0)
    assert any("400 Gb/s per node (assumed" in note for note in reading.notes)


def test_parts_that_nothing_joins_are_told() -> None:
    reading = read_case(PARTS)
    graph = graph_of(reading)
    assert sum(tiers(graph).values()) == 7
    assert sorted(len(part) for part in nx.connected_components(graph)) == [9, 19, 19]
    assert any("3 parts that nothing joins, with 16, 16, 8 nodes" in note for note in reading.notes)
    assert any("disconnected" in str(fault) for fault in topo.check(graph))


def test_a_line_cut_in_the_middle_shows_in_the_size_of_its_leaf() -> None:
    notes = read_text(text_of(DEEP).replace("peta[10340-10359]", "p")).notes
    assert any("leaves hold 1 (leaf117) to 20 nodes" in note for note in notes)
    assert not any("leaves hold" in note for note in read_case(DEEP).notes)


def test_yaml_tree_with_blocks_of_another_topology() -> None:
    reading = read_text(SEVERAL)
    graph = graph_of(reading)
    assert tiers(graph) == {"leaf": 2, "spine": 1}
    assert [graph.nodes[f"node0{i}"]["block"] for i in (1, 2, 3, 8)] == ["b1", "b1", "b2", "b2"]
    assert any("3 topologies; 't1' (tree) is read" in note for note in reading.notes)


def test_the_default_topology_is_read() -> None:
    other = SEVERAL.replace("default: true", "default: x").replace("default: false", "default: true")
    reading = read_text(other)
    assert tiers(graph_of(reading)) == {"leaf": 2, "spine": 1}
    assert "between blocks" in graph_of(reading)
    assert any("what joins the 2 blocks is not stated" in note for note in reading.notes)


def test_conf_and_yaml_of_blocks_agree() -> None:
    conf = "BlockName=b1 Nodes=node[01-02]  # first\nblockname=b2 nodes=node[03-08]\nBlockSizes=2,4\n"
    other = SEVERAL.replace("default: true", "default: x").replace("default: false", "default: true")
    mine, theirs = graph_of(read_text(conf)), graph_of(read_text(other))
    assert dict(mine.nodes(data=True)) == dict(theirs.nodes(data=True))
    assert list(mine.edges(data=True)) == list(theirs.edges(data=True))


def test_torus_runs_x_fastest() -> None:
    graph = graph_of(read_text(TORUS))
    assert nx.is_isomorphic(graph, nx.grid_graph([4, 4, 2], periodic=True))
    assert graph.nodes["node2"]["coordinates"] == [1, 0, 0]
    assert graph.nodes["node19"]["coordinates"] == [2, 0, 1]
    assert graph.edges["node1", "node4"]["lanes"] == 1
    assert graph.edges["node1", "node17"]["lanes"] == 2
    assert int(topo.hop_counts(graph).max()) == 2 + 2 + 1


def test_ring() -> None:
    text = "- topology: r\n  ring:\n    rings:\n      - ring: r0\n        nodes: n[1-8]\n"
    graph = graph_of(read_text(text))
    assert nx.is_isomorphic(graph, nx.cycle_graph(8))
    assert int(topo.hop_counts(graph).max()) == 4


def test_continued_lines_case_and_order() -> None:
    text = text_of(PARTS)
    clean = read_case(PARTS)
    assert same(read_text(text.replace(" Nodes=", " \\\n    NODES=").replace("SwitchName", "switchname"), PARTS), clean)
    assert same(read_text(text.replace("\n", "\r\n"), PARTS), clean)
    assert same(read_text("\n".join(reversed(text.split("\n"))) + "\n", PARTS), clean)
    assert same(read_text(text + text, PARTS), clean)


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ("node[1-8]", "node[1-8", "bracket that does not close"),
        ("node[1-8]", "node[8-1]", "runs backwards"),
        ("Nodes=node[9-16]", "Nodes=node[8-16]", "is a node of leafA2 and of leafA1"),
        ("SwitchName=leafA1 ", "SwitchName=leafX ", "names 1 switches that no entry states, leafA1"),
        ("Nodes=node[1-8]", "Noodes=node[1-8]", "is no key=value"),
        ("SwitchName=leafC Nodes=node[33-40]", "SwitchName=leafC Switches=leafC", "are above themselves"),
        ("SwitchName=leafC ", "SwitchName=leafB1 ", "is stated otherwise by"),
        ("SwitchName=leafC ", "BlockName=leafC ", "stand in one file"),
        ("SwitchName=leafC ", "", "needs SwitchName or BlockName"),
    ],
)
def test_what_conf_is_refused(wrong: str, right: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_text(text_of(PARTS).replace(wrong, right))


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ("{x: 4, y: 4, z: 2}", "{x: 4, y: 4, z: 3}", "nodes do not fill 4 x 4 x 3"),
        ("{x: 4, y: 4, z: 2}", "{x: 4, y: 4}", "must be a whole number"),
        ("{x: 4, y: 4, z: 2}", "7", "must be keys and values"),
        ("node[1-32]", "node[1-31],node1", "stands in two places"),
        ("nodes: node[1-32]", "nodes: 010", "must be a name"),
        ("toruses:", "toruses: [", "is not valid YAML"),
        ("- name: pod1\n        dims: {x: 4, y: 4, z: 2}", "  name: pod1", "must be a list"),
    ],
)
def test_what_yaml_is_refused(wrong: str, right: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_text(TORUS.replace(wrong, right))


def test_flat_says_nothing_of_wires() -> None:
    with pytest.raises(InputError, match="say nothing about wiring"):
        read_text("- topology: t\n  flat: true\n")


def test_cut_files_are_refused_or_say_so() -> None:
    text = text_of(DEEP)
    whole = graph_of(read_case(DEEP))
    start = text.index("SwitchName=grp10")
    for end in range(start, len(text) - 1, 7):
        try:
            reading = read_text(text[:end], DEEP)
        except InputError:
            continue
        assert set(graph_of(reading).edges) == set(whole.edges) or any("may be cut" in note for note in reading.notes)
