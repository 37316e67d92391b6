"""Does iblinkinfo's output become the fabric it lists, whole, cut, without headers, one line a port?"""

import pytest

from topo import InputError

from .fabric_cases import read_case, read_text, same, text_of

Gb = 1e9 / 8
CUT = "iblinkinfo-real-4ca-cut.txt"
TREE = "iblinkinfo-sim-ft2_32.txt"
LINES = """\
0x00000000000000a1 "     sw1"  4    3[  ] ==( 4X 53.125 Gbps Active/LinkUp)==> 0x00000000000000b2  15    1[  ] "n2" ( )
0x00000000000000a1 "     sw1"  4   17[  ] ==( 4X 53.125 Gbps Active/LinkUp)==> 0x00000000000000c2   5    1[  ] "n1" ( )
0x00000000000000a1 "     sw1"  4   18[  ] ==(   Down/ Polling)==>    [  ] "" ( )
0x00000000000000b1 "      n2" 15    1[  ] ==( 4X 53.125 Gbps Active/LinkUp)==> 0x00000000000000a1   4    3[  ] "sw1" ( )
"""


def test_the_cut_real_file() -> None:
    reading = read_case(CUT)
    graph = reading.graph
    assert graph is not None
    assert list(graph) == ["gpu-node-0", "gpu-node-1", "gpu-node-2", "gpu-node-3", "ibswitch1"]
    assert [graph.edges[f"gpu-node-{i}", "ibswitch1"]["ports"] for i in range(4)] == [
        [[1, 1]],
        [[1, 2]],
        [[1, 4]],
        [[1, 3]],
    ]
    assert {data["bandwidth"] for _, _, data in graph.edges(data=True)} == {100 * Gb}
    assert graph.nodes["gpu-node-2"]["lids"] == {"1": 5}
    told = " / ".join(reading.notes)
    assert "line 14 is '...'" in told
    assert "SHARP aggregation nodes" in told
    assert "one end only" in told


def test_the_simulated_tree_is_that_of_ibnetdiscover() -> None:
    mine, theirs = read_case(TREE).graph, read_case("ibnetdiscover-sim-ft2_32.txt").graph
    assert mine is not None
    assert theirs is not None
    assert list(mine.edges(data=True)) == list(theirs.edges(data=True))
    for node, data in theirs.nodes(data=True):
        unknown = {"radix"} | ({"guid"} if data["kind"] == "host" else set())  # iblinkinfo does not say
        assert mine.nodes[node] == {key: value for key, value in data.items() if key not in unknown}


def test_one_line_a_port() -> None:
    reading = read_text(LINES)
    graph = reading.graph
    assert graph is not None
    assert any("3 nodes are taken as hosts or switches by their ports: sw1, n2, n1" in note for note in reading.notes)
    assert [(n, d["kind"]) for n, d in graph.nodes(data=True)] == [("n1", "host"), ("n2", "host"), ("sw1", "switch")]
    assert graph.edges["n2", "sw1"]["ports"] == [[1, 3]]
    assert graph.edges["n1", "sw1"]["bandwidth"] == 200 * Gb


def test_ports_without_headers_are_told_apart_by_lid() -> None:
    headless = "\n".join(line for line in text_of(TREE).split("\n") if not line.startswith(("CA", "Switch")))
    mine, theirs = read_text(headless), read_case(TREE)
    assert mine.graph is not None
    assert theirs.graph is not None
    assert list(mine.graph.edges(data=True)) == list(theirs.graph.edges(data=True))
    assert any("without the line that names their node" in note for note in mine.notes)


def test_two_adapters_back_to_back() -> None:
    text = """CA: MT25408 ConnectX Mellanox Technologies:
      0x0002c90300002779      4    1[  ] ==( 4X           5.0 Gbps Active/  LinkUp)==>       3    1[  ] "kvm mlx4_0" ( )
CA: hostname mlx4_0:
  0x0002c90300002f79  3    1[  ] ==( 4X 5.0 Gbps Active/LinkUp)==> 4 1[  ] "MT25408 ConnectX Mellanox Technologies" ( )
      0x0002c90300002f7a      0    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""
    reading = read_text(text)
    assert reading.graph is not None
    assert list(reading.graph) == ["MT25408 ConnectX Mellanox Technologies", "hostname"]
    assert any("'hostname mlx4_0' is 'kvm mlx4_0' to its neighbour" in note for note in reading.notes)


def test_two_ports_of_one_adapter_are_one_host() -> None:
    text = """CA: n1 HCA-1:
      0x00000000000000b2      7    1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>   4    1[  ] "sw1" ( )
      0x00000000000000b3      8    2[  ] ==( 4X 25.78125 Gbps Initialize/  LinkUp)==>   4    2[  ] "sw1" ( )
"""
    reading = read_text(text)
    assert reading.graph is not None
    assert [(n, d["kind"]) for n, d in reading.graph.nodes(data=True)] == [("n1", "host"), ("sw1", "switch")]
    assert reading.graph.edges["n1", "sw1"]["ports"] == [[1, 1], [2, 2]]
    assert reading.graph.nodes["n1"]["lids"] == {"1": 7, "2": 8}
    assert any("1 ports are up but not Active" in note for note in reading.notes)


@pytest.mark.parametrize("name", [CUT, TREE])
def test_the_same_reading(name: str) -> None:
    text, clean = text_of(name), read_case(name)
    assert same(read_text(text.replace("\n", "\r\n"), name), clean)
    assert same(read_text(text + text, name), clean)
    assert same(read_text(text.replace("0x", "0X").upper().replace("0X", "0x"), name), read_text(text.upper(), name))


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="contradicts line"):
        read_text(text_of(TREE).replace('    7[  ] "leaf01"', '    6[  ] "leaf01"'))
    with pytest.raises(InputError, match="tells no ends apart"):
        read_text(LINES.replace(" 15 ", "  0 "))
    with pytest.raises(InputError, match="belongs to"):
        read_text(LINES + LINES.replace("000a1", "000d1").replace("sw1", "sw2"))


def test_cut_anywhere() -> None:
    text = text_of(TREE)
    whole = read_case(TREE).graph
    assert whole is not None
    for end in range(150, len(text), len(text) // 100):
        reading = read_text(text[:end], TREE)
        assert reading.graph is not None
        for a, b, data in reading.graph.edges(data=True):
            assert (data["ports"], data["bandwidth"]) == (whole.edges[a, b]["ports"], whole.edges[a, b]["bandwidth"])
        complete = set(reading.graph.edges) == set(whole.edges)
        assert complete or any("one end only" in note or "is cut" in note for note in reading.notes)
