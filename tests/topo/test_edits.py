"""Does an edit do what fails in the machine, and leave the graph it was given alone?"""

from __future__ import annotations

from copy import deepcopy

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives
import topo
from topo import Fabric, InputError, check, degrade, fail, scale

DOMAINS = {"hgx-h100-8": 4, "gb200-nvl72": 18}


def seconds(graph: nx.Graph) -> float:
    return collectives.cost(graph, "all_to_all", 16e6).seconds


def both(design: str, domains: int = 1) -> tuple[nx.Graph, nx.Graph]:
    return topo.load(design, domains), topo.load(design, domains, planes=True)


def snapshot(graph: nx.Graph) -> object:
    return deepcopy((dict(graph.graph), list(graph.nodes(data=True)), list(graph.edges(data=True))))


# --- planes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("design", "plane"), [(name, k) for name, n in DOMAINS.items() for k in range(n)])
def test_a_plane_fails_alike_folded_and_unfolded(design: str, plane: int) -> None:
    folded, unfolded = (fail(graph, switches=[f"d0/switch{plane}"]) for graph in both(design))
    assert check(folded) == check(unfolded) == []
    assert folded.nodes["d0/switch"]["planes"] == DOMAINS[design] - 1
    assert seconds(folded) == pytest.approx(seconds(unfolded), rel=1e-12)
    lanes = [data["lanes"] for _, _, data in unfolded.edges("d0/gpu0", data=True)]
    assert folded.edges["d0/gpu0", "d0/switch"]["lanes"] == sum(lanes)


def test_one_of_18_chips_is_a_18th_of_the_bandwidth() -> None:
    before = topo.load("gb200-nvl72")
    after = fail(before, switches=["d0/switch7"])
    assert after.edges["d0/gpu9", "d0/switch"]["bandwidth"] == 900e9 * 17 / 18
    idle = {"scale_up.latency": "0 s"}
    whole = topo.load("gb200-nvl72", overrides=idle)
    assert seconds(fail(whole, switches="d0/switch0")) == pytest.approx(seconds(whole) * 18 / 17, rel=1e-12)


@pytest.mark.parametrize(("first", "second"), [(0, 3), (3, 0), (1, 2)])
def test_planes_keep_their_names(first: int, second: int) -> None:
    folded, unfolded = both("hgx-h100-8")
    names = [f"d0/switch{k}" for k in (first, second)]
    for graph in (folded, unfolded):
        one_by_one = fail(fail(graph, switches=names[:1]), switches=names[1:])
        at_once = fail(graph, switches=names)
        assert seconds(one_by_one) == seconds(at_once)
    assert fail(folded, switches=names).nodes["d0/switch"]["plane_lanes"] == [
        0 if k in (first, second) else n for k, n in enumerate((5, 4, 4, 5))
    ]
    assert seconds(fail(folded, switches=names)) == pytest.approx(seconds(fail(unfolded, switches=names)), rel=1e-12)
    with pytest.raises(InputError, match="Nearest: d0/switch"):
        fail(fail(folded, switches=names[:1]), switches=names[:1])


def test_all_planes_are_the_switch() -> None:
    every = fail(topo.load("hgx-h100-8", 2), switches=[f"d0/switch{k}" for k in range(4)])
    whole = fail(topo.load("hgx-h100-8", 2), switches=["d0/switch"])
    assert list(every.edges(data=True)) == list(whole.edges(data=True))
    assert all("domain" not in whole.nodes[f"d0/gpu{i}"] and whole.nodes[f"d1/gpu{i}"]["domain"] == 1 for i in range(8))
    assert check(whole) == []
    assert whole.graph["domains"] == 1


LINK = ("d0/gpu1", "d0/switch2")


@pytest.mark.parametrize(
    "edit",
    [
        lambda graph: fail(graph, links=[LINK]),
        lambda graph: fail(graph, links=LINK),
        lambda graph: fail(graph, lanes={LINK: 1}),
        lambda graph: fail(graph, lanes={LINK[::-1]: 3}),
        lambda graph: fail(graph, lanes={LINK: 4}),
        lambda graph: fail(graph, links=[LINK], switches=["d0/switch1"], gpus=["d0/gpu0"]),
        lambda graph: degrade(graph, LINK, keep=0.25),
    ],
)
def test_a_link_to_one_plane_unfolds_the_switch(edit: object) -> None:
    folded, unfolded = (edit(graph) for graph in both("hgx-h100-8"))  # type: ignore[operator]
    assert list(folded.nodes(data=True)) == list(unfolded.nodes(data=True))
    assert list(folded.edges(data=True)) == list(unfolded.edges(data=True))
    assert "d0/switch" not in folded
    assert check(folded) == []


def test_lanes_of_a_folded_link_fail_from_the_last() -> None:
    folded, unfolded = both("hgx-h100-8")
    hurt = fail(folded, lanes={("d0/gpu0", "d0/switch"): 6})  # 5 of plane 3, one of plane 2
    same = fail(unfolded, lanes={("d0/gpu0", "d0/switch3"): 5, ("d0/gpu0", "d0/switch2"): 1})
    assert list(hurt.edges(data=True)) == list(same.edges(data=True))
    assert [data["lanes"] for *_, data in hurt.edges("d0/gpu0", data=True)] == [5, 4, 3]
    gone = fail(folded, lanes={("d0/gpu0", "d0/switch"): 18})
    assert gone.degree("d0/gpu0") == 0
    assert "d0/switch" in gone


def test_lanes_fail_by_number() -> None:
    folded, unfolded = both("hgx-h100-8")  # 5, 4, 4 and 5 lanes to the planes
    hurt = fail(folded, lanes={("d0/gpu0", "d0/switch"): [0, 5, 6]})
    same = fail(unfolded, lanes={("d0/gpu0", "d0/switch0"): 1, ("d0/gpu0", "d0/switch1"): 2})
    assert list(hurt.edges(data=True)) == list(same.edges(data=True))
    graph = nx.Graph()
    graph.add_nodes_from("ab", kind="gpu")
    graph.add_edge("a", "b", kind="scale-up", bandwidth=6e9, latency=0.0, lanes=3, lane_bandwidths=[1e9, 2e9, 3e9])
    left = fail(graph, lanes={("b", "a"): [0, 2]})
    assert left.edges["a", "b"]["lane_bandwidths"] == [2e9]
    assert left.graph["assumptions"] == ["fail: lanes 2 of b - a"]
    for wrong in ([3], [-1], [], [1, 1], [True], "12", 1.5):
        with pytest.raises(InputError, match="lanes"):
            fail(graph, lanes={("a", "b"): wrong})


def test_an_even_loss_needs_no_unfolding() -> None:
    folded, unfolded = both("hgx-h100-8")
    slow = degrade(folded, ("d0/gpu0", "d0/switch"), keep=0.5)
    for k in range(4):
        unfolded = degrade(unfolded, ("d0/gpu0", f"d0/switch{k}"), keep=0.5)
    assert "d0/switch" in slow
    assert seconds(slow) == pytest.approx(seconds(unfolded), rel=1e-12)


def parallel_planes() -> nx.Graph:
    """Two folded leaves under a folded spine: plane k of a leaf meets plane k of the spine."""
    graph = nx.Graph()
    graph.add_nodes_from([f"gpu{i}" for i in range(4)], kind="gpu")
    graph.add_nodes_from(["leaf0", "leaf1", "spine"], kind="switch", planes=2)
    edge = {"kind": "scale-out", "bandwidth": 2e9, "latency": 1e-6, "lanes": 2}
    graph.add_edges_from([(f"gpu{i}", f"leaf{i // 2}") for i in range(4)], **edge)
    graph.add_edges_from([("leaf0", "spine"), ("leaf1", "spine")], **edge)
    return graph


def test_folded_switches_wired_to_each_other_unfold_together() -> None:
    hurt = fail(parallel_planes(), switches=["spine1"])
    assert {node for node in hurt if "gpu" not in node} == {"leaf00", "leaf01", "leaf10", "leaf11", "spine0"}
    assert sorted(hurt["spine0"]) == ["leaf00", "leaf10"]
    assert sorted(hurt["leaf01"]) == ["gpu0", "gpu1"]
    assert check(hurt) == []


def test_lanes_that_do_not_divide_are_refused() -> None:
    graph = parallel_planes()
    graph.nodes["leaf0"]["planes"] = 3
    with pytest.raises(InputError, match=r"do not divide over planes|has other planes"):
        fail(graph, switches=["leaf00"])
    graph = parallel_planes()
    graph.add_node("leaf01", kind="switch")
    with pytest.raises(InputError, match="also the name of a plane"):
        fail(graph, switches=["leaf00"])


# --- links, NICs, GPUs -----------------------------------------------------------------------------------------------


def test_remaining_gpus_stay_in_order() -> None:
    hurt = fail(topo.load("hgx-h100-8", 2), gpus=["d0/gpu3", "d1/gpu0"])
    assert Fabric.from_graph(hurt).rank_labels == [
        f"d{d}/gpu{i}" for d in range(2) for i in range(8) if (d, i) not in ((0, 3), (1, 0))
    ]
    assert check(hurt) == []


def test_a_gpu_without_scale_up_links_is_off_its_domain() -> None:
    hurt = fail(topo.load("hgx-h100-8", 2), links=[("d0/switch", "d0/gpu3")])
    assert "domain" not in hurt.nodes["d0/gpu3"]
    assert [hurt.nodes[f"d0/gpu{i}"].get("domain") for i in range(8)] == [0, 0, 0, None, 0, 0, 0, 0]
    assert check(hurt) == []
    assert sorted(Fabric.from_graph(hurt).domain_sizes) == [1, 7, 8]
    assert topo.hop_counts(hurt)[3, 0] == 2  # over the leaf


def test_a_domain_in_two_parts_keeps_its_id_in_the_larger() -> None:
    mesh = topo.load("mi300x-8", 2)
    cut = [(f"d0/gpu{i}", f"d0/gpu{j}") for i in range(3) for j in range(3, 8)]
    hurt = fail(mesh, links=cut)
    assert [hurt.nodes[f"d0/gpu{i}"].get("domain") for i in range(8)] == [None] * 3 + [0] * 5
    assert check(hurt) == []


def test_a_nic_is_an_edge_or_a_node() -> None:
    graph = topo.load("hgx-h100-8", 2)
    hurt = fail(graph, nics=["d0/gpu2"])
    assert list(hurt["d0/gpu2"]) == ["d0/switch"]
    assert list(fail(graph, nics=[("d0/gpu2", "leaf0")]).edges) == list(hurt.edges)
    one_way = fail(graph.to_directed(), nics=["d0/gpu2"])
    assert set(nx.all_neighbors(one_way, "d0/gpu2")) == {"d0/switch"}
    graph.add_node("nic0", kind="nic")
    graph.add_edge("nic0", "leaf0", kind="scale-out", bandwidth=1e9, latency=0.0)
    assert "nic0" not in fail(graph, nics="nic0")


def test_a_directed_link_is_one_direction() -> None:
    graph = topo.load("hgx-h100-8", 2).to_directed()
    hurt = fail(graph, links=[("d0/gpu0", "leaf0")])
    assert not hurt.has_edge("d0/gpu0", "leaf0")
    assert hurt.has_edge("leaf0", "d0/gpu0")
    slow = degrade(graph, ("d0/gpu0", "leaf0"))
    assert slow.edges["d0/gpu0", "leaf0"]["bandwidth"] == slow.edges["leaf0", "d0/gpu0"]["bandwidth"] / 2


def test_a_cut_graph_is_a_result() -> None:
    hurt = fail(topo.load("hgx-h100-8", 2), switches=["leaf0"])
    assert [fault.rule for fault in check(hurt)] == ["is disconnected: 2 parts with 8, 8 ranks"]
    again = fail(hurt, gpus=["d0/gpu0"])
    assert [fault.rule for fault in check(again)] == ["is disconnected: 2 parts with 7, 8 ranks"]


def test_lanes_of_different_rates_and_ports() -> None:
    graph = nx.Graph()
    graph.add_nodes_from("ab", kind="gpu")
    graph.add_edge(
        "a", "b", kind="scale-up", bandwidth=6e9, latency=0.0, lanes=3,
        lane_bandwidths=[1e9, 2e9, 3e9], ports=[[1, 2], [3, 4], [5, 6]],
    )  # fmt: skip
    left = fail(graph, lanes={("b", "a"): 1}).edges["a", "b"]
    assert (left["bandwidth"], left["lanes"]) == (3e9, 2)
    assert (left["lane_bandwidths"], left["ports"]) == ([1e9, 2e9], [[1, 2], [3, 4]])
    assert degrade(graph, ("a", "b")).edges["a", "b"]["lane_bandwidths"] == [5e8, 1e9, 1.5e9]


def test_edits_are_said() -> None:
    hurt = fail(topo.load("hgx-h100-8", 2), switches=["d0/switch1"], lanes={("d0/gpu0", "leaf0"): 1})
    hurt = degrade(hurt, ("d0/gpu1", "leaf0"), keep=0.5)
    assert hurt.graph["assumptions"][-3:] == [
        "fail: lanes 1 of d0/gpu0 - leaf0", "fail: switches d0/switch1", "degrade: d0/gpu1 - leaf0 keeps 0.5",
    ]  # fmt: skip


# --- what is refused -------------------------------------------------------------------------------------------------


def test_everything_unknown_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        fail(
            topo.load("hgx-h100-8", 2), links=[("d0/gpu0", "d1/gpu0"), "d0/gpu0"], gpus=["d0/gpu9", "leaf0"],
            switches=["d0/switch4", "d0/gpu0"], nics=["d0/switch", "nic7"], lanes={("d0/gpu0", "d0/switch1"): 5},
        )  # fmt: skip
    texts = [str(fault) for fault in caught.value.faults]
    assert len(texts) == 9
    assert all("Nearest: " in text or "lanes" in text or "pair of labels" in text for text in texts)
    assert any("d0/switch4" in text and "d0/switch3" in text for text in texts)
    assert any("from 1 to the link's 4 lanes" in text for text in texts)


@pytest.mark.parametrize("keep", [0, -0.5, 1.5, float("nan"), True, "0.5"])
def test_keep_is_a_part(keep: object) -> None:
    with pytest.raises(InputError, match="keep"):
        degrade(topo.load("hgx-h100-8"), ("d0/gpu0", "d0/switch"), keep=keep)  # type: ignore[arg-type]


@pytest.mark.parametrize("edit", [lambda g: fail(g, gpus=["d0/gpu0"]), lambda g: degrade(g, ("d0/gpu0", "d0/switch"))])
def test_a_fabric_and_a_faulty_graph_are_refused_with_the_cure(edit: object) -> None:
    graph = topo.load("hgx-h100-8")
    with pytest.raises(InputError, match="Edit the graph, then take"):
        edit(Fabric.from_graph(graph))  # type: ignore[operator]
    graph.edges["d0/gpu0", "d0/switch"]["bandwidth"] = -1
    with pytest.raises(InputError, match="above zero"):
        edit(graph)  # type: ignore[operator]


# --- laws ------------------------------------------------------------------------------------------------------------


@st.composite
def edits(draw: st.DrawFn) -> tuple[nx.Graph, dict[str, object], bool]:
    name = draw(st.sampled_from(["hgx-h100-8", "mi300x-8"]))
    graph = topo.load(name, draw(st.integers(1, 2)), planes=draw(st.booleans()))
    if draw(st.booleans()):
        graph = graph.to_directed()
    edges = sorted(graph.edges)
    links = draw(st.lists(st.sampled_from(edges), max_size=4))
    lanes = {edge: draw(st.integers(1, graph.edges[edge].get("lanes", 1))) for edge in draw(
        st.lists(st.sampled_from(edges), max_size=3))}  # fmt: skip
    gpus = draw(st.lists(st.sampled_from([n for n, k in graph.nodes(data="kind") if k == "gpu"]), max_size=6))
    known = [n for n, k in graph.nodes(data="kind") if k == "switch"]
    switches = draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
    return graph, {"links": links, "lanes": lanes, "gpus": gpus, "switches": switches}, draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(edits())
def test_an_edit_never_mutates_and_stays_a_topology(case: tuple[nx.Graph, dict[str, object], bool]) -> None:
    graph, what, slow = case
    before = snapshot(graph)
    hurt = fail(graph, **what)
    if slow:
        hurt = degrade(scale(hurt, kind="scale-up", bandwidth=0.5), next(iter(hurt.edges))) if hurt.size() else hurt
    assert snapshot(graph) == before
    assert type(hurt) is type(graph)
    severed = ("disconnected", "one way only", "no node of kind")  # all that is left to find fault with
    assert all(any(words in fault.rule for words in severed) for fault in check(hurt))
    hurt.graph["assumptions"].append("mine")
    hurt.graph["chips"].clear()
    for node in hurt:
        hurt.nodes[node].clear()
    assert snapshot(graph) == before


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from([f"d0/switch{k}" for k in range(4)]), max_size=3, unique=True), st.randoms())
def test_relabelling_and_copying_never_change_the_answer(planes: list[str], dice: object) -> None:
    graph = topo.load("hgx-h100-8", 2, planes=True)
    names = [f"n{i}" for i in range(len(graph))]
    dice.shuffle(names)  # type: ignore[attr-defined]
    relabel = dict(zip(graph, names, strict=True))
    other = nx.relabel_nodes(graph.copy(), relabel)
    hurt = fail(graph, switches=planes)
    assert seconds(fail(other, switches=[relabel[name] for name in planes])) == pytest.approx(seconds(hurt), rel=1e-12)
