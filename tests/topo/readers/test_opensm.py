"""Do OpenSM's tables, walked cable by cable, give the loads an independent program counted?"""

import json
from collections import Counter

import networkx as nx
import pytest

from topo import InputError
from topo.readers._reading import Tables

from .fabric_cases import read_case, read_text, same, text_of

ORACLE = json.loads(text_of("opensm/link_load_oracle.json"))


def tables_of(name: str) -> Tables:
    reading = read_case(f"opensm/{name}")
    assert reading.graph is None
    assert reading.routing is not None
    return reading.routing


def walk(graph: nx.Graph, tables: Tables) -> tuple[Counter[tuple[str, int]], Counter[int]]:
    """Return routes per directed cable between switches, and pairs by hops, of all ordered pairs of end ports."""
    cable = {}
    for a, b, data in graph.edges(data=True):
        for p, q in data["ports"]:
            cable[a, p], cable[b, q] = (b, q), (a, p)
    guid = {node: data["guid"] for node, data in graph.nodes(data=True) if data["kind"] == "switch"}
    ends = [(n, int(p), lid) for n, d in graph.nodes(data=True) if d["kind"] == "host" for p, lid in d["lids"].items()]
    loads = Counter({at: 0 for at, to in cable.items() if at[0] in guid and to[0] in guid})
    hops = Counter[int]()
    for source, port, _ in ends:
        for target, target_port, lid in ends:
            if (source, port) == (target, target_port):
                continue
            at, steps = cable[source, port], 1
            while at[0] in guid:
                out = (at[0], tables.next_port[guid[at[0]]][lid])
                loads.update([out] if out in loads else [])
                at, steps = cable[out], steps + 1
            assert at == (target, target_port)
            hops[steps] += 1
    return loads, hops


@pytest.mark.parametrize("case", sorted(ORACLE))
def test_routes_per_cable(case: str) -> None:
    net = "ft2_32" if case.startswith("ft2_32") else "torus44"
    graph = read_case(f"ibnetdiscover-sim-{net}.txt").graph
    loads, hops = walk(graph, tables_of(f"{case}.lfts.dump"))
    told = ORACLE[case]
    assert len(loads) == told["sw_sw_directed_links"]
    assert max(loads.values()) == told["max_routes_on_sw_sw_link"]
    assert min(loads.values()) == told["min_routes_on_sw_sw_link"]
    assert sum(loads.values()) / len(loads) == told["mean_routes_on_sw_sw_link"]
    assert {str(n): count for n, count in hops.items()} == told["hop_histogram"]


def test_three_forms_of_the_same_tables() -> None:
    dump, walked = tables_of("ft2_32_minhop.lfts.dump"), tables_of("ft2_32_minhop.dump_lfts.txt")
    assert (walked.next_port, walked.names, walked.lids) == (dump.next_port, dump.names, dump.lids)
    tree, fdbs = tables_of("ft2_32_ftree.lfts.dump"), tables_of("ft2_32_ftree.fdbs")
    assert fdbs.next_port == tree.next_port
    assert tree.names["0x0000000000200004"] == "leaf01"
    assert tree.lids[1] == ("0x0000000000100001", "node001")
    assert fdbs.lids[2] == ("0x0000000000200000", "")


def test_missing_routes_are_told() -> None:
    notes = " / ".join(read_case("opensm/ft2_32_ftree.fdbs").notes)
    assert "4 of 12 switches lack 12 routes to some of the 44 LIDs" in notes
    assert "12 entries are UNREACHABLE" in notes


def test_a_dump_cut_after_a_block_tells_which_switch_is_missing() -> None:
    text = text_of("opensm/ft2_32_minhop.lfts.dump")
    notes = read_text(text[: text.rindex("Unicast")]).notes
    assert any("1 switches have no tables in the file (is it cut?): leaf08" in note for note in notes)


def test_shuffled_rows_are_told() -> None:
    lines = text_of("opensm/ft2_32_ftree.fdbs").split("\n")
    lines[10], lines[60] = lines[60], lines[10]
    assert any("out of order" in note for note in read_text("\n".join(lines)).notes)
    assert not any("out of order" in note for note in read_case("opensm/ft2_32_ftree.fdbs").notes)


def test_list_of_links_is_the_fabric_discovered() -> None:
    assert same(read_case("opensm/ft2_32.subnet.lst"), read_case("ibnetdiscover-sim-ft2_32.txt"))


@pytest.mark.parametrize("name", ["ft2_32_minhop.lfts.dump", "ft2_32_minhop.dump_lfts.txt", "ft2_32_ftree.fdbs"])
def test_the_same_tables(name: str) -> None:
    text, clean = text_of(f"opensm/{name}"), tables_of(name)
    for dirty in (text.replace("\n", "\r\n"), text + text, text.upper().replace("0X", "0x"), f"$ dump\n{text}\n$ "):
        read = read_text(dirty).routing
        assert read is not None
        assert read.next_port == clean.next_port


def test_what_is_refused() -> None:
    text = text_of("opensm/ft2_32_minhop.dump_lfts.txt")
    with pytest.raises(InputError, match="contradicts port"):
        read_text(text + text.replace("0x0001 005", "0x0001 006"))
    with pytest.raises(InputError, match="says how many LIDs the block has, and it has 43"):
        read_text(text.replace("0x0001 005 :", "# 0x0001 005 :"))
    with pytest.raises(InputError, match="cannot be read as an entry"):
        read_text(text.replace("0x0001 005", "0x0001 5"))
    with pytest.raises(InputError, match="as owner of LID 1 before"):
        read_text(text.replace("0x0000000000100001", "0x0000000000100009", 1))
    with pytest.raises(InputError, match="no switch is named before it"):
        read_text(text.split("\n", 3)[3])


def test_cut_tables_are_part_of_the_whole() -> None:
    name = "ft2_32_minhop.lfts.dump"
    text, whole = text_of(f"opensm/{name}"), tables_of(name)
    for end in range(120, len(text), len(text) // 60):
        read = read_text(text[:end], name).routing
        assert read is not None
        for guid, row in read.next_port.items():
            assert row.items() <= whole.next_port[guid].items()
