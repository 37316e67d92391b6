"""Are BookSim's networks wired as BookSim wires them, channel by channel?"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import prod

import networkx as nx
import pytest

from collectives import cost
from topo import InputError, check
from topo.readers._booksim import BOOKSIM
from topo.readers._levels import level_sizes, tree_cables
from topo.readers._reading import Source

from .sim_files import graph_of, kinds, read, source, survives


def configured(text: str) -> nx.Graph[str]:
    return graph_of(BOOKSIM.read(Source("f", text)))


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        BOOKSIM.read(Source("f", text))
    return [(fault.place, fault.rule) for fault in caught.value.faults]


def hosts_below(graph: nx.Graph[str], levels: list[list[str]]) -> list[Counter[frozenset[str]]]:
    """For every level the sets of hosts that its routers reach downwards, each with how many routers reach it."""
    below = {node: frozenset([node]) for node in levels[0]}
    found = []
    for lower, upper in pairwise(levels):
        for router in upper:
            below[router] = frozenset().union(*(below[node] for node in graph[router] if node in set(lower)))
        found.append(Counter(below[router] for router in upper))
    return found


def booksim_fat_tree(k: int, n: int) -> nx.Graph[str]:
    """A fat tree by the channel numbers of BookSim's FatTree: who puts out on a channel meets who takes it in."""
    per_level = k ** (n - 1)
    out, into = {}, {}
    both, one = 2 * k * per_level, k * per_level
    for level in range(n):
        for pos in range(per_level):
            name = f"{level}.{pos}"
            for port in range(k):
                if level < n - 1:
                    out[level * both + pos * k + port] = name
                if level > 0:
                    out[level * both - one + pos * k + port] = name
                for down, far in ((True, level + 1), (False, level - 1)):
                    if (level == n - 1) if down else (level == 0):
                        continue
                    near = k ** (n - 1 - (level if down else level - 1))
                    branch = near // k
                    first = (level + 1) * both - one if down else far * both
                    region = pos // near * near * k + port * branch * k
                    into[first + region + pos % near % branch * k + pos % near // branch] = name
    graph: nx.Graph[str] = nx.Graph((out[channel], into[channel]) for channel in out)
    graph.add_edges_from((f"{n - 1}.{node // k}", f"node{node}") for node in range(k**n))
    return graph


@pytest.mark.parametrize(("k", "n"), [(4, 3), (2, 4), (3, 2)])
def test_a_fat_tree_has_booksims_channels(k: int, n: int) -> None:
    ours = configured(f"topology = fattree;\nk = {k};\nn = {n};\n")
    theirs = booksim_fat_tree(k, n)
    assert ours.number_of_edges() == theirs.number_of_edges() == n * k**n
    nodes = [f"node{i}" for i in range(k**n)]
    per = k ** (n - 1)
    mine = [nodes, *([f"router{level}.{i}" for i in range(per)] for level in range(1, n + 1))]
    other = [nodes, *([f"{level}.{i}" for i in range(per)] for level in reversed(range(n)))]
    assert hosts_below(ours, mine) == hosts_below(theirs, other)


def test_the_shipped_fat_tree() -> None:
    reading = read(BOOKSIM, "booksim-fattree.txt")
    graph = graph_of(reading)
    assert kinds(graph) == {"host": 64, "switch": 48}
    assert check(graph) == []
    assert any("one flit a cycle is read as 1 GB/s" in note for note in reading.notes)
    # a node takes in 63 chunks at one flit a cycle, the nearest over two channels of one cycle
    assert cost(graph, "all_to_all", 64e3).seconds == pytest.approx(63e3 / 1e9 + 2e-9, rel=1e-9)
    assert cost(graph, "send", 1, stages=[["node0"], ["node63"]]).latency_seconds == pytest.approx(6e-9)


def test_the_shipped_dragonfly_has_booksims_global_channels() -> None:
    graph = graph_of(read(BOOKSIM, "booksim-dragonflyconfig.txt"))
    p, a, groups = 4, 8, 33
    assert kinds(graph) == {"host": 1056, "switch": 264}
    assert graph.number_of_edges() == 1056 + groups * a * (a - 1) // 2 + groups * (groups - 1) // 2
    ports = 2 * p - 1 + p
    found = set()
    for router in range(a * groups):
        group, own = divmod(router, a)
        for count in range(p):
            output = own * p + count
            if group > output:
                channel = output * ports * a + (ports - p) * ((group - 1) // p) + (ports - p) + group - 1
            else:
                channel = (output + 1) * ports * a + (ports - p) * (group // p) + (ports - p) + group
            found.add(frozenset((f"router{router}", f"router{channel // ports}")))
    far = {frozenset((u, v)) for u, v, late in graph.edges(data="latency") if late == 100e-9}
    assert far == found


def test_tori_and_meshes_have_a_node_at_every_router() -> None:
    torus = configured("topology = torus;\nk = 4;\nn = 2;\n")
    assert kinds(torus) == {"host": 16, "switch": 16}
    assert torus.edges["router0", "router3"]["latency"] == 2e-9
    assert torus.edges["node5", "router5"]["latency"] == 1e-9
    assert torus.degree("router6") == 5
    mesh = configured("topology = mesh; k = 4; n = 2;\n")
    assert not mesh.has_edge("router0", "router3")
    assert mesh.edges["router0", "router4"]["latency"] == 1e-9
    assert (
        configured("topology = torus; k = 4; n = 2; use_noc_latency = 0;").edges["router0", "router3"]["latency"]
        == 1e-9
    )
    assert configured("topology = torus; k = 2; n = 2;").edges["router0", "router1"]["lanes"] == 2


def test_a_flattened_butterfly_joins_what_differs_in_one_digit() -> None:
    graph = configured("topology = flatfly; k = 3; n = 2; c = 2; use_noc_latency = 0;\n")
    assert kinds(graph) == {"host": 18, "switch": 9}
    assert set(graph["router4"]) == {"node8", "node9", "router3", "router5", "router1", "router7"}


def test_the_shipped_list_of_links() -> None:
    graph = graph_of(read(BOOKSIM, "booksim-anynet_file.txt"))
    assert kinds(graph) == {"host": 9, "switch": 3}
    assert set(graph["router1"]) == {"node3", "node4", "node5", "router0", "router2"}
    assert not graph.is_directed()


def test_latencies_of_a_list_hold_one_way_between_routers_and_both_ways_to_nodes() -> None:
    text = "router 0 node 0 5 router 1 15\nrouter 1 node 1\n"
    reading = BOOKSIM.read(Source("f", text))
    graph = graph_of(reading)
    assert graph.is_directed()
    late = {(a, b): data["latency"] for a, b, data in graph.edges(data=True)}
    assert late["router0", "router1"] == pytest.approx(15e-9)
    assert late["router1", "router0"] == pytest.approx(1e-9)
    assert late["router0", "node0"] == late["node0", "router0"] == pytest.approx(5e-9)
    assert any("one way" in note for note in reading.notes)
    assert not configured(text + "router 1 router 0 15\n").is_directed()


def test_what_is_not_exact_is_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"Read that file: anynet_file\."):
        BOOKSIM.read(source("booksim-anynet-config.txt"))
    assert faults("topology = flatfly;\n")[0][1].startswith("has latencies that follow from BookSim's floor plan")
    assert faults("topology = cmesh;\n")[0] == (
        "line 1 topology", "is a network this reader does not wire exactly as BookSim",
    )  # fmt: skip
    assert faults("topology = torus;\nk = x;\n")[0][0] == "line 2 k"
    assert faults("topology = torus;\nk = 1000;\nn = 3;\n")[0][0] == "line 1 topology"
    for huge in (
        "flatfly;\nk = 999;\nn = 2;\nuse_noc_latency = 0;",
        "dragonflynew;\nk = 40;\nn = 1;",
        "mesh;\nn = 99;",
    ):
        assert "a graph of Python objects holds" in faults(f"topology = {huge}\n")[0][1]
    assert faults("topology = dragonflynew;\nk = 4;\nn = 2;\n")[0][1] == "dragonflynew takes n = 1 only"
    assert faults("topology = torus;\nlink_failures = 2;\n")[0][0] == "line 2 link_failures"
    note = BOOKSIM.read(Source("f", "topology = torus;\nk = 4;\n")).notes
    assert "n = 2: BookSim's default, the file does not say" in note


def test_what_is_wrong_in_a_list_is_said_with_its_line() -> None:
    good = "router 0 node 0 node 1 router 1\nrouter 1 node 2\n"
    assert faults(good + "router 2 node\n")[0][0] == "line 3"
    assert faults(good.replace("node 2", "node 3"))[0][1].startswith("is missing: nodes are numbered")
    assert faults(good + "router 0 node 2\n")[0] == (
        "line 3 node", "is joined to router 1 already, and a node has one router",
    )  # fmt: skip
    assert faults(good + "node 0 node 1\n")[0][1] == "joins two nodes"
    assert faults(good + "router 1 router 1\n")[0][1] == "is joined to itself"


@pytest.mark.parametrize(
    ("down", "up"), [([4, 4], [1, 2]), ([2, 3, 4], [1, 2, 5]), ([3], [2])]
)  # fmt: skip
def test_levels_have_their_ports(down: list[int], up: list[int]) -> None:
    sizes = level_sizes(down, up)
    cables = list(tree_cables(down, up))
    assert sizes[0] == prod(down)
    assert sizes[-1] == prod(up)
    for level in range(len(down)):
        lower = Counter(low for at, low, _ in cables if at == level)
        upper = Counter(high for at, _, high in cables if at == level)
        assert set(lower.values()) == {up[level]}
        assert set(upper.values()) == {down[level]}
        assert (len(lower), len(upper)) == (sizes[level], sizes[level + 1])


@pytest.mark.parametrize("name", ["booksim-anynet_file.txt", "booksim-fattree.txt"])
def test_damaged_files_never_break_it(name: str) -> None:
    survives(BOOKSIM, source(name).text, check)
