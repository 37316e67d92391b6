"""Does ibnetdiscover's output become the fabric it lists? The real one of 2014, simulated ones, dirty ones."""

import re
from collections import Counter

import networkx as nx
import pytest

import topo
from topo import InputError

from .fabric_cases import read_case, read_text, same, text_of

Gb = 1e9 / 8
REAL = "ibnetdiscover-real-144hosts-8sw.topo"
PORTS = "ibnetdiscover-p-test.out"
TREE = "ibnetdiscover-sim-ft2_32.txt"
LEAF = """Switch\t40 "S-00000000000000a1"\t\t# "leaf1" base port 0 lid 1 lmc 0
[1]\t"H-00000000000000b1"[1](b2) \t\t# "n1 HCA-1" lid 10 4xNDR
[2]\t"H-00000000000000c1"[1](c2) \t\t# "n1 HCA-2" lid 11 4xNDR
[3]\t"S-00000000000000a2"[7]\t\t# "spine 1" lid 2 4xNDR
"""


def graph_of(text: str) -> nx.Graph:
    graph = read_text(text).graph
    assert graph is not None
    return graph


def tiers(graph: nx.Graph) -> Counter[object]:
    return Counter(data.get("tier") for _, data in graph.nodes(data=True) if data["kind"] == "switch")


def cables(graph: nx.Graph, a: str, b: str) -> list[dict[str, object]]:
    """Edges between nodes of two kinds or tiers."""
    says = [{graph.nodes[n]["kind"], graph.nodes[n].get("tier")} for n in graph]
    of = dict(zip(graph, says, strict=True))
    return [d for u, v, d in graph.edges(data=True) if (a in of[u] and b in of[v]) or (b in of[u] and a in of[v])]


def test_the_real_fabric_of_144_hosts() -> None:
    reading = read_case(REAL)
    graph = reading.graph
    assert graph is not None
    assert sum(data["kind"] == "host" for _, data in graph.nodes(data=True)) == 144
    assert tiers(graph) == {"leaf": 6, "spine": 2}
    trunks = cables(graph, "leaf", "spine")
    assert len(trunks) == 12
    assert sum(data["lanes"] for data in trunks) == 47
    assert (graph.edges["ib1", "ib8"]["lanes"], graph.edges["ib1", "ib7"]["lanes"]) == (3, 4)
    host_links = cables(graph, "host", "switch")
    assert sum(data["lanes"] for data in host_links) == 145
    held = [
        sum(data["lanes"] for other, data in graph[s].items() if graph.nodes[other]["kind"] == "host")
        for s in graph if graph.nodes[s]["kind"] == "switch"
    ]  # fmt: skip
    assert sorted(held) == [0, 3, 22, 24, 24, 24, 24, 24]
    assert {data["bandwidth"] / data["lanes"] for data in host_links} == {32 * Gb}
    assert {data["bandwidth"] / data["lanes"] for data in trunks} == {40 * Gb}
    down = sum(data["lanes"] for _, _, data in graph.edges("ib5", data=True) if data["bandwidth"] == 32 * Gb)
    up = [data for _, other, data in graph.edges("ib5", data=True) if graph.nodes[other]["kind"] == "switch"]
    assert down / sum(data["lanes"] for data in up) == 3.0
    assert down * 32 * Gb / sum(data["bandwidth"] for data in up) == pytest.approx(2.4, rel=1e-12)
    assert topo.check(graph) == []
    assert graph.nodes["node143"]["lids"].keys() == {"1", "2"}
    assert any("ib7 holds 3 host ports" in note for note in reading.notes)
    assert any("encoding taken off: 4xFDR10 = 40 Gb/s, 4xQDR = 32 Gb/s" in note for note in reading.notes)


def test_ports_pair_up_as_edges_give_their_ends() -> None:
    graph = read_case(REAL).graph
    assert graph is not None
    ((a, b),) = [(a, b) for a, b in graph.edges if {a, b} == {"node121", "ib5"}]
    assert ((a, b), graph.edges[a, b]["ports"]) == (("node121", "ib5"), [[1, 1]])
    assert graph.edges["ib5", "ib8"]["ports"] == [[21, 26], [23, 28], [25, 30], [27, 32]]
    assert (graph.nodes["ib5"]["guid"], graph.nodes["ib5"]["lid"]) == ("0xf4521400000265a0", 128)
    host = graph.nodes["node121"]
    assert (host["lids"], host["port_guids"], host["guid"]) == (
        {"1": 105}, {"1": "0x24be050000010031"}, "0x24be050000010030",
    )  # fmt: skip


def test_port_list() -> None:
    reading = read_case(PORTS)
    graph = reading.graph
    assert graph is not None
    assert sorted(graph) == ["ib-l1s01", "ib-l1s04", "ib-l2s01", "ib-l2s07", "node001", "node002", "node101"]
    assert graph.number_of_edges() == 4
    assert {data["bandwidth"] for _, _, data in graph.edges(data=True)} == {100 * Gb}
    told = " / ".join(reading.notes)
    assert "2 ports are down" in told
    assert "1 cables are listed from one end only" in told
    assert "3 parts" in told
    assert any("disconnected" in str(fault) for fault in topo.check(graph))


def test_simulated_tree_and_torus() -> None:
    tree = read_case(TREE).graph
    torus = read_case("ibnetdiscover-sim-torus44.txt").graph
    assert tree is not None
    assert torus is not None
    assert tiers(tree) == {"leaf": 8, "spine": 4}
    assert {data["bandwidth"] for _, _, data in tree.edges(data=True)} == {8 * Gb}
    assert tree.number_of_edges() == 32 + 8 * 4
    assert tiers(torus) == {None: 16}
    switches = torus.subgraph([n for n, d in torus.nodes(data=True) if d["kind"] == "switch"])
    assert nx.is_isomorphic(switches, nx.grid_2d_graph(4, 4, periodic=True))


def test_adapters_of_one_host_are_one_host() -> None:
    reading = read_text(LEAF)
    graph = reading.graph
    assert graph is not None
    assert list(graph) == ["n1", "leaf1", "spine 1"]
    assert graph.nodes["n1"]["lids"] == {"1": 10, "2": 11}
    assert graph.nodes["n1"]["port_names"] == {"1": "HCA-1/1", "2": "HCA-2/1"}
    assert graph.edges["n1", "leaf1"]["ports"] == [[1, 1], [2, 2]]
    assert graph.edges["n1", "leaf1"]["bandwidth"] == 800 * Gb
    assert any("several adapters" in note for note in reading.notes)


def test_names_that_tell_nobody_apart_are_not_merged() -> None:
    for name in ("localhost HCA-1", "MT25408 ConnectX Mellanox Technologies", "n1 HCA-2"):
        reading = read_text(LEAF.replace("n1 HCA-1", name).replace("n1 HCA-2", name))
        assert reading.graph is not None
        assert sum(kind == "host" for _, kind in reading.graph.nodes(data="kind")) == 2
        assert any("names do not tell hosts apart" in note for note in reading.notes)


def test_aggregation_nodes_are_no_hosts_and_take_no_port() -> None:
    aggregation = '[41]\t"H-00000000000000d1"[1](d2) \t\t# "Mellanox Technologies Aggregation Node" lid 14 4xHDR\n'
    reading = read_text(LEAF.replace("40 ", "41 ", 1) + aggregation)
    assert reading.graph is not None
    assert "n1" in reading.graph
    assert len(reading.graph) == 3
    assert reading.graph.nodes["leaf1"]["radix"] == 40
    assert any("SHARP" in note for note in reading.notes)


def test_cables_of_different_rates_between_two_nodes() -> None:
    graph = graph_of(LEAF.replace("lid 11 4xNDR", "lid 11 2xNDR"))
    edge = graph.edges["n1", "leaf1"]
    assert edge["lane_bandwidths"] == [400 * Gb, 200 * Gb]
    assert edge["bandwidth"] == 600 * Gb
    assert topo.check(graph) == []


@pytest.mark.parametrize(
    ("rate", "data"),
    [("1xSDR", 2), ("4xSDR", 8), ("4xDDR", 16), ("4xQDR", 32), ("4xFDR10", 40), ("12xQDR", 96), ("4xEDR", 100),
     ("2xHDR", 100), ("4xHDR", 200), ("4xNDR", 400), ("4xXDR", 800)],
)  # fmt: skip
def test_data_rate(rate: str, data: float) -> None:
    assert graph_of(LEAF.replace("4xNDR", rate)).edges["leaf1", "spine 1"]["bandwidth"] == data * Gb


def test_fdr_is_64_of_66_bits() -> None:
    bandwidth = graph_of(LEAF.replace("4xNDR", "4xFDR")).edges["leaf1", "spine 1"]["bandwidth"]
    assert bandwidth / Gb == pytest.approx(54.5, rel=1e-3)


def test_a_speed_that_is_not_known_is_assumed_and_said() -> None:
    reading = read_text(LEAF.replace("lid 11 4xNDR", "lid 11 4x???"))
    assert reading.graph is not None
    assert reading.graph.edges["n1", "leaf1"]["bandwidth"] == 800 * Gb
    assert any("1 cables state no speed that is known: taken as 4xNDR" in note for note in reading.notes)
    with pytest.raises(InputError, match="no line of the file states a known speed"):
        read_text(LEAF.replace("4xNDR", "4x???"))


def test_ends_that_state_different_speeds_give_the_slower() -> None:
    back = """Switch\t40 "S-00000000000000a2"\t\t# "spine 1" base port 0 lid 2 lmc 0
[7]\t"S-00000000000000a1"[3]\t\t# "leaf1" lid 1 4xHDR
"""
    reading = read_text(LEAF + back)
    assert reading.graph is not None
    assert reading.graph.edges["leaf1", "spine 1"]["bandwidth"] == 200 * Gb
    assert any("the slower is taken" in note for note in reading.notes)


def test_a_router_and_a_third_level() -> None:
    more = """Switch\t40 "S-00000000000000a2"\t\t# "spine 1" base port 0 lid 2 lmc 0
[8]\t"S-00000000000000a3"[1]\t\t# "core1" lid 3 4xNDR
[9]\t"R-00000000000000e1"[1](e2) \t\t# "rt1" lid 4 4xNDR
"""
    reading = read_text(LEAF + more)
    assert reading.graph is not None
    assert [reading.graph.nodes[n].get("tier") for n in ("leaf1", "spine 1", "core1")] == ["leaf", "spine", "core"]
    assert reading.graph.nodes["rt1"]["kind"] == "switch"
    assert any("routers are taken as switches: rt1" in note for note in reading.notes)


def test_modules_of_a_director_keep_their_names_apart() -> None:
    text = LEAF.replace('"leaf1"', '"MF0;core:CS7500/L01/U1"').replace('"spine 1"', '"MF0;core:CS7500/S01/U1"')
    assert list(graph_of(text)) == ["n1", "core/L01/U1", "core/S01/U1"]


# --- dirty files -----------------------------------------------------------------------------------------------------


def shouted(text: str) -> str:
    return re.sub(r"(?<=[-(x])[0-9a-f]{6,16}(?=[\"() ])", lambda found: found[0].upper(), text)


@pytest.mark.parametrize("name", [REAL, TREE, PORTS])
@pytest.mark.parametrize(
    "dirty",
    [
        lambda text: text.replace("\n", "\r\n"),
        shouted,
        lambda text: text + text,
        lambda text: "$ ibnetdiscover\n\x1b[32m" + text + "\x1b[0m\nuser@host:~$ \n",
        lambda text: text.replace("\n", "\n   "),
        lambda text: "\n\n".join(reversed(text.split("\n\n"))) + "\n",
    ],
    ids=["crlf", "upper case", "twice", "session", "indented", "blocks in another order"],
)
def test_the_same_reading(name: str, dirty: object) -> None:
    assert callable(dirty)
    assert same(read_text(dirty(text_of(name)), name), read_case(name))


def within(cut: nx.Graph, whole: nx.Graph) -> bool:
    """Whether every cable of a cut file is one of the whole file, at its rate."""

    def lanes(graph: nx.Graph) -> set[tuple[object, ...]]:
        return {
            (*sorted([(u, p), (v, q)]), data["bandwidth"] / data["lanes"])
            for u, v, data in graph.edges(data=True) for p, q in data["ports"]
        }  # fmt: skip

    return lanes(cut) <= lanes(whole)


@pytest.mark.parametrize("name", [TREE, PORTS])
def test_cut_anywhere(name: str) -> None:
    text = text_of(name)
    whole = read_case(name).graph
    assert whole is not None
    for end in range(200, len(text), max(1, len(text) // 120)):
        try:
            reading = read_text(text[:end], name)
        except (InputError, ValueError):  # ValueError: nothing recognises so short a text
            continue
        assert reading.graph is not None
        assert within(reading.graph, whole)
        complete = set(reading.graph.edges) == set(whole.edges)
        assert complete or any("one end only" in note or "is cut" in note for note in reading.notes)


def test_any_line_left_out() -> None:
    lines = text_of(TREE).split("\n")
    whole = read_case(TREE).graph
    assert whole is not None
    for i, line in enumerate(lines[:-1]):
        if not line.startswith(("[", "Switch", "Ca")) or i % 3:
            continue
        left = "\n".join(lines[:i] + lines[i + 1 :])
        if not line.startswith("["):
            with pytest.raises(InputError):
                read_text(left, TREE)
            continue
        reading = read_text(left, TREE)
        assert reading.graph is not None
        assert set(reading.graph.edges) == set(whole.edges)
        assert any("1 cables are listed from one end only" in note for note in reading.notes)


def test_contradictions_are_refused_with_both_lines() -> None:
    text = text_of(TREE).replace('[5]\t"S-0000000000200000"[8]', '[5]\t"S-0000000000200000"[7]')
    with pytest.raises(InputError) as caught:
        read_text(text, TREE)
    assert {fault.file for fault in caught.value.faults} == {TREE}
    assert any("contradicts line" in fault.rule for fault in caught.value.faults)
    with pytest.raises(InputError, match="cannot be read as a port and its cable"):
        read_text(LEAF.replace('[2]\t"H-', "[2]\tH-"))
    with pytest.raises(InputError, match="without the Switch or Ca line"):
        read_text(LEAF.split("\n", 1)[1] + LEAF)
    with pytest.raises(InputError, match="another lid"):
        read_text(LEAF + LEAF.replace("port 0 lid 1", "port 0 lid 9"))


def test_switches_alone_have_no_host() -> None:
    reading = read_text("".join(line for line in LEAF.splitlines(keepends=True) if "n1" not in line))
    assert any("no host is listed" in note for note in reading.notes)


def test_headers_alone_are_no_fabric() -> None:
    with pytest.raises(InputError, match="lists no cable that is up"):
        read_text(LEAF.split("\n")[0] + "\n")


def test_many_devices_with_two_names_are_one_note() -> None:
    text = text_of("ibnetdiscover-sim-ft2_32.txt")
    renamed = re.sub(r'(# lid \d+ lmc 0 )"leaf', r'\1"other', text)
    assert renamed != text
    notes = [note for note in read_text(renamed).notes if "by its GUID" in note]
    assert len(notes) == 1
    assert notes[0].endswith("one device by its GUID or LID, as for 7 others with two names")


def test_a_contradiction_between_devices_of_one_name_tells_them_apart() -> None:
    other = LEAF.replace("00b1", "00e1").replace("(b2)", "(e2)").replace("00c1", "00f1").replace("(c2)", "(f2)")
    with pytest.raises(InputError, match=r"00e1\)': contradicts line 2, which says .*00b1\)"):
        read_text(LEAF + other)
