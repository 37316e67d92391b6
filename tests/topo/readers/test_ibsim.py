"""Does a net file of ibsim become the fabric that ibnetdiscover found when it ran?"""

import pytest

import topo
from topo import InputError

from .fabric_cases import read_case, read_text, same, text_of

Gb = 1e9 / 8


@pytest.mark.parametrize("net", ["ft2_32", "torus44"])
def test_the_net_is_what_the_tools_discovered(net: str) -> None:
    mine, found = read_case(f"ibsim-{net}.net").graph, read_case(f"ibnetdiscover-sim-{net}.txt").graph
    assert mine is not None
    assert found is not None
    assert list(mine.edges(data=True)) == list(found.edges(data=True))
    assert [data.get("tier") for _, data in mine.nodes(data=True)] == [d.get("tier") for _, d in found.nodes(data=True)]


@pytest.mark.parametrize(
    ("name", "hosts", "switches", "cables"),
    [("ibsim-net.1.txt", 2, 1, 2), ("ibsim-net.txt", 2, 2, 4), ("ibsim-net.2sw2path4hca.txt", 4, 2, 6)],
)
def test_the_examples_of_ibsim(name: str, hosts: int, switches: int, cables: int) -> None:
    reading = read_case(name)
    graph = reading.graph
    assert graph is not None
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert (kinds.count("host"), kinds.count("switch")) == (hosts, switches)
    assert sum(data["lanes"] for _, _, data in graph.edges(data=True)) == cables
    assert topo.check(graph) == []
    assert any("taken as 4xSDR (assumed" in note for note in reading.notes)
    assert same(read_text(text_of(name).replace("\n", "\r\n"), name), reading)


def test_parallel_cables_width_and_speed() -> None:
    graph = read_text(text_of("ibsim-net.txt").replace('"Switch2"[3]', '"Switch2"[3]\tw=12 s=4')).graph
    assert graph is not None
    edge = graph.edges["Switch1", "Switch2"]
    assert (edge["lanes"], edge["ports"], edge["lane_bandwidths"]) == (2, [[3, 3], [4, 4]], [96 * Gb, 8 * Gb])


def test_a_node_without_a_block_is_refused() -> None:
    with pytest.raises(InputError, match="is no node that a Switch or Hca line names"):
        read_text(text_of("ibsim-net.1.txt").replace('Hca\t2 "Hca2"', '# "Hca2"'))
