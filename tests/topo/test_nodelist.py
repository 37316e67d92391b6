"""Do Slurm node lists name the ranks they mean, and are suggested nodes the closest there are?"""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives
import topo
from topo import InputError
from topo._nodelist import expand_hostlist, hostlist, nodelist, suggest_nodes


def fabric(held: tuple[int, ...], spines: int = 1) -> nx.Graph:
    """Leaves with so many hosts each, all joined by every spine."""
    graph: nx.Graph = nx.Graph()
    link = {"kind": "scale-out", "bandwidth": 50e9, "latency": 0.0}
    for leaf, n in enumerate(held):
        for i in range(n):
            graph.add_node(f"n{leaf}-{i}", kind="host")
            graph.add_edge(f"n{leaf}-{i}", f"leaf{leaf}", **link)
    for leaf in range(len(held)):
        for spine in range(spines):
            graph.add_edge(f"leaf{leaf}", f"spine{spine}", **link | {"bandwidth": 25e9})
    for node in graph:
        graph.nodes[node].setdefault("kind", "switch")
    return graph


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[001-003,022]", ["n001", "n002", "n003", "n022"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("rack[1-2]n[01-02]", ["rack1n01", "rack1n02", "rack2n01", "rack2n02"]),
        ("a[1-2]-ib, login", ["a1-ib", "a2-ib", "login"]),
    ],
)
def test_hostlists(text: str, names: list[str]) -> None:
    assert expand_hostlist(text) == names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n[1-", "bracket"), ("n1]", "bracket"), ("n[[1-2]]", "bracket"), ("n[2-1]", "backwards"),
        ("n[a-b]", "number"), ("n[]", "number"), ("n[1-010]", "leading zeros"), ("n[08-9]", "leading zeros"),
        ("", "name"), ("a,,b", "name"), ("a b", "name"), ("n[1-9999999]", "longer than"),
        ("n[1-2000]x[1-2000]", "longer than"), ("n[1-99]" * 4, "longer than"),
    ],
)  # fmt: skip
def test_what_is_no_hostlist(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        expand_hostlist(text)


@given(st.lists(st.from_regex(r"(n|rack[0-9]-)[0-9]{1,3}(-ib)?|login", fullmatch=True), min_size=1, unique=True))
def test_names_survive_their_list(names: list[str]) -> None:
    assert sorted(expand_hostlist(hostlist(names))) == sorted(names)


def test_nodes_select_hosts_and_the_gpus_on_them() -> None:
    assert nodelist(fabric((2, 2)), "n1-0,n0-[0-1]") == ["n0-0", "n0-1", "n1-0"]
    gpus = nodelist(topo.load("hgx-h100-8", domains=4), "host[1-2]")
    assert gpus == [f"d{d}/gpu{i}" for d in (1, 2) for i in range(8)]
    with pytest.raises(InputError, match="2 of 3 names are no host of this graph: n7-1, n7-2"):
        nodelist(fabric((2, 2)), "n0-0,n7-[1-2]")


def test_an_allocation_is_costed() -> None:
    graph = fabric((4, 4, 4))
    near = collectives.cost(graph, "all_to_all", 1e9, ranks=nodelist(graph, "n0-[0-3]"))
    far = collectives.cost(graph, "all_to_all", 1e9, ranks=nodelist(graph, "n0-[0-1],n1-0,n2-0"))
    assert near.seconds == pytest.approx(1e9 * 3 / 4 / 50e9)  # each host sends three quarters of its bytes
    assert far.seconds == pytest.approx(1e9 * (2 * 2) / 4 / 25e9)  # two hosts send to two others over one uplink


def test_the_tightest_leaves_are_suggested() -> None:
    graph = fabric((4, 2, 3))
    assert suggest_nodes(graph, 3) == ["n2-0", "n2-1", "n2-2"]
    assert suggest_nodes(graph, 2) == ["n1-0", "n1-1"]
    assert suggest_nodes(graph, 6) == ["n0-0", "n0-1", "n0-2", "n0-3", "n1-0", "n1-1"]
    assert suggest_nodes(graph, 2, free="n0-0,n1-0,n2-[1-2]") == ["n2-1", "n2-2"]


def test_near_leaves_come_before_far_ones() -> None:
    graph = fabric((2, 2), spines=2)
    other = nx.relabel_nodes(graph, lambda node: f"x{node}")
    graph.update(other)
    graph.add_edge("spine0", "core", kind="scale-out", bandwidth=1e9, latency=0.0)
    graph.add_edge("xspine0", "core", kind="scale-out", bandwidth=1e9, latency=0.0)
    graph.nodes["core"]["kind"] = "switch"
    assert suggest_nodes(graph, 3, free="n0-0,xn0-[0-1],xn1-0") == ["xn0-0", "xn0-1", "xn1-0"]


def test_what_cannot_be_suggested() -> None:
    with pytest.raises(InputError, match="from 1 to 4"):
        suggest_nodes(fabric((2, 2)), 5)
    with pytest.raises(InputError, match="is no host of this graph"):
        suggest_nodes(fabric((2, 2)), 1, free=["nope"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_as_few_leaves_as_brute_force(held: list[int], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, sum(held)))
    fewest = next(k for k in range(1, len(held) + 1) if any(sum(c) >= n for c in combinations(held, k)))
    chosen = suggest_nodes(fabric(tuple(held)), n)
    assert len(chosen) == n
    assert len({name.split("-")[0] for name in chosen}) == fewest
