"""Does one failure cost what a hand says, and do failures called alike do the same?"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from collectives import Failure, MoE, Outer, failures, parts_of
from topo import Fabric, InputError

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def rack(planes: int = 4) -> nx.Graph:
    """Eight GPUs of 400 GB/s under one switch of some planes."""
    lanes = {"scale_up.planes": planes, "scale_up.lanes": [1] * planes, "scale_up.bandwidth": "400 GB/s"}
    return topo.load("hgx-h100-8", 1, {"scale_up.latency": "0 s"} | lanes)


def named(found: collectives.Failures) -> dict[tuple[str, int], Failure]:
    return {(one.parts[0][0], one.alike): one for one in found.singles}


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_one_rack_by_hand() -> None:
    found = failures(rack(), "all_to_all", 8e9)
    assert found.seconds == pytest.approx(7e9 / 400e9)
    of = named(found)
    assert set(of) == {("switch", 4), ("link", 8), ("lane", 32), ("tray", 1)}
    # one of four planes: 3/4 of the bandwidth everywhere
    assert of["switch", 4].seconds == pytest.approx(7e9 / 300e9)
    assert of["switch", 4].loss == pytest.approx(7e9 / 300e9 - 7e9 / 400e9)
    # one lane: plane 3 carries nothing of that GPU; the others split by what their own lanes carry
    assert of["lane", 32].seconds == pytest.approx(7e9 / 300e9)
    # a GPU without its link: 7 pairs each way
    assert (of["link", 8].seconds, of["link", 8].unreachable) == (np.inf, 14)
    assert found.worst is of["link", 8]
    assert of["link", 8].pairs[0] == "d0/gpu0 => d0/gpu1"
    # its one tray is the whole rack: nobody is left
    assert (of["tray", 1].seconds, of["tray", 1].dropped, of["tray", 1].unreachable) == (np.inf, 8, 0)
    assert found.n_parts == 4 + 8 + 32 + 1


def test_a_tray_takes_its_ranks_along() -> None:
    found = failures(topo.load("gb200-nvl72", 1, {"scale_up.latency": "0 s"}), "all_to_all", 72e9)
    tray = next(one for one in found.singles if one.parts[0][0] == "tray")
    # 68 GPUs are left, which still send 72 GB each at 900 GB/s, own chunk kept
    assert (tray.alike, tray.dropped, tray.unreachable) == (18, 4, 0)
    assert tray.seconds == pytest.approx(72e9 * 67 / 68 / 900e9)
    assert tray.loss < 0


def test_the_worst_comes_first_and_is_named() -> None:
    graph = topo.load("hgx-h100-8", 2, DRY | {"scale_out.radix": 8})
    found = failures(graph, "all_to_all", 16e9)
    order = [(one.stopped != "", one.instead, one.unreachable, one.seconds) for one in found.singles]
    assert order == sorted(order, reverse=True)
    assert repr(found).startswith("Failures(160 ms without; worst Failure(")
    nic = next(one for one in found.singles if one.parts[0][0] == "nic")
    # without its NIC a GPU reaches no GPU of the other box directly; a neighbour's NIC, by another algorithm
    assert (nic.unreachable, nic.pairs[0], nic.alike) == (16, "d0/gpu0 => d1/gpu0", 16)
    edited = topo.fail(graph, nics=[("d0/gpu0", "leaf0")])
    best = collectives.cost(edited, "all_to_all", 16e9, algorithm="best")
    assert nic.instead
    assert (nic.algorithm, nic.seconds) == (best.algorithm, best.seconds)
    assert nic.loss == best.seconds - collectives.cost(graph, "all_to_all", 16e9, algorithm=best.algorithm).seconds > 0


def test_scale_up_lost_goes_over_the_nic() -> None:
    found = failures(topo.load("hgx-h100-8", 2, DRY), "all_to_all", 16e9)
    link = next(one for one in found.singles if one.parts[0][0] == "link")
    assert link.seconds == pytest.approx(15e9 / 50e9)  # all 15 messages over one NIC
    assert link.bottleneck.startswith("d0/gpu0 -> ") or link.bottleneck.endswith("-> d0/gpu0")


def test_what_takes_no_part_may_be_lost() -> None:
    found = failures(rack(), "all_to_all", 8e9, ranks=4)
    links = {one.alike: one for one in found.singles if one.parts[0][0] == "link"}
    assert set(links) == {4}  # of those who take part; the others stand apart, and lose nothing
    graph = rack()
    spare = failures(graph, "all_to_all", 8e9, ranks=["d0/gpu0", "d0/gpu1"])
    harmless = [one for one in spare.singles if one.parts == (("link", "d0/gpu2 - d0/switch"),)]
    assert [(one.loss, one.alike) for one in harmless] == [(0.0, 6)]


# --- classes ---------------------------------------------------------------------------------------------------------


def mesh() -> nx.Graph:
    return topo.build("torus", dims=(2, 3), wrap=False, latency="0 s", bandwidth="50 GB/s")


BOXES = {"design.domain_size": 4, "design.gpus_per_host": 2, "scale_up.planes": 2, "scale_up.lanes": [2, 1]}
WIRES = {"latency": "0 s", "bandwidth": "50 GB/s"}
SMALL = {
    "two boxes": lambda: topo.load("hgx-h100-8", 2, BOXES),
    "unfolded": lambda: topo.load("hgx-h100-8", 2, BOXES, planes=True),
    "tapered": lambda: topo.load("hgx-h100-8", 3, BOXES | {
        "design.domain_size": 3, "design.gpus_per_host": 3, "scale_out.radix": 6, "scale_out.oversubscription": 2.0,
    }),
    "uneven": lambda: topo.load("hgx-h100-8", [3, 2], BOXES | {"design.gpus_per_host": 3}),
    "torus": lambda: topo.build("torus", dims=(3, 4), **WIRES),
    "mesh": mesh,
    "directed": lambda: mesh().to_directed(),
    "fat tree": lambda: topo.build("fat_tree", k=4, **WIRES),
    "dragonfly": lambda: topo.build("dragonfly", a=2, p=1, h=1, **WIRES),
    "NIC nodes": lambda: joined(),
}  # fmt: skip


def joined() -> nx.Graph:
    """Three hosts of two GPUs, each with a NIC node of its own, under one switch."""
    graph = nx.Graph()
    graph.add_node("leaf", kind="switch")
    for host in range(3):
        for slot in range(2):
            gpu, nic = f"h{host}/gpu{slot}", f"h{host}/nic{slot}"
            graph.add_node(gpu, kind="gpu", host=host)
            graph.add_node(nic, kind="nic", host=host)
            graph.add_edge(gpu, nic, kind="pcie", bandwidth=64e9, latency=0.0)
            graph.add_edge(nic, "leaf", kind="scale-out", bandwidth=50e9, latency=0.0, lanes=2)
        graph.add_edge(f"h{host}/gpu0", f"h{host}/gpu1", kind="pcie", bandwidth=32e9, latency=0.0)
    return graph


def components(graph: nx.Graph) -> int:
    """Count switches (planes), NICs, links, lanes of links that have several, and hosts, straight from the graph."""
    nodes = dict(graph.nodes(data=True))
    lanes = [graph.edges[edge].get("lanes", 1) for edge in graph.to_undirected().edges]
    ranks = [(name, data) for name, data in nodes.items() if data["kind"] == "gpu"]
    return (
        sum(data.get("planes", 1) for data in nodes.values() if data["kind"] == "switch")
        + sum(data["kind"] == "nic" for data in nodes.values())
        + len(lanes) + sum(n for n in lanes if n > 1)
        + len({data.get("host", name) for name, data in ranks})
    )  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_failures_called_alike_do_the_same(name: str) -> None:
    graph = SMALL[name]()
    folded = failures(graph, "all_to_all", 1e9)
    every = parts_of(graph)
    assert len(folded.singles) < len(every)
    assert folded.n_parts == len(every) == components(graph)
    assert len({(part.kind, part.name) for part in every}) == len(every)
    of = {one.parts[0]: one for one in folded.singles}
    kin: dict[object, list[collectives.Part]] = {}
    for part in every:
        kin.setdefault(part.alike, []).append(part)
    labels = Fabric.from_graph(graph).rank_labels
    for same in kin.values():
        shown = next(of[part.kind, part.name] for part in same if (part.kind, part.name) in of)
        assert shown.alike == len(same)
        for part in same:
            edited = topo.fail(graph, **part.given)
            left = [label for label in labels if label in edited]
            assert len(labels) - len(left) == shown.dropped
            if shown.algorithm == "direct":
                cost = collectives.cost(edited, "all_to_all", 1e9, ranks=left)
                assert cost.seconds == pytest.approx(shown.seconds, rel=1e-9), part
            else:
                with pytest.raises(InputError, match=r"disconnected|no path"):
                    collectives.cost(edited, "all_to_all", 1e9, ranks=left)


def test_lanes_to_planes_of_other_widths_are_not_alike() -> None:
    graph = topo.load("hgx-h100-8")  # 5, 4, 4 and 5 lanes to its planes
    lanes = {one.alike: one for one in failures(graph, "all_to_all", 8e9).singles if one.parts[0][0] == "lane"}
    assert set(lanes) == {8 * 10, 8 * 8}
    # of 18 lanes that carry alike, 4 of 5 or 3 of 4 carry on: what their plane gets is split anew by capacity
    assert lanes[80].parts[0][1] == "0 of d0/gpu0 - d0/switch"
    assert lanes[64].parts[0][1] == "5 of d0/gpu0 - d0/switch"


def test_lanes_of_other_rates_are_not_alike() -> None:
    graph = nx.Graph()
    for name, kind in (("a", "gpu"), ("b", "gpu")):
        graph.add_node(name, kind=kind)
    graph.add_edge("a", "b", kind="scale-up", bandwidth=6e9, latency=0.0, lanes=3, lane_bandwidths=[1e9, 2e9, 3e9])
    found = failures(graph, "all_to_all", 2e9)
    lanes = {one.parts[0][1]: one.seconds for one in found.singles if one.parts[0][0] == "lane"}
    assert lanes == {f"{i} of a - b": pytest.approx(1e9 / rate) for i, rate in enumerate((5e9, 4e9, 3e9))}


def test_hosts_that_share_otherwise_are_not_alike() -> None:
    # a ring of six: hosts of neighbours, and of two that are no neighbours
    graph = topo.build("ring", n=6, **WIRES)
    for host, pair in enumerate([(0, 1), (2, 4), (3, 5)]):
        for k in pair:
            graph.nodes[f"gpu{k}"]["host"] = host
    trays = {part.name: part.alike for part in parts_of(graph) if part.kind == "tray"}
    assert trays["1"] == trays["2"] != trays["0"]


def test_uneven_traffic_tells_links_apart() -> None:
    matrix = np.zeros((8, 8))
    matrix[0, 1], matrix[2, 3] = 2e9, 1e9
    found = failures(rack(), "all_to_all_v", matrix)
    links = {one.parts[0][1]: one for one in found.singles if one.parts[0][0] == "link"}
    assert {name: one.unreachable for name, one in links.items()} == {
        # who sends or receives loses its 14 pairs: a group that fell apart is none
        f"d0/gpu{i} - d0/switch": 14 for i in (0, 1, 2, 3, 4)
    }  # fmt: skip


def test_a_rule_that_symmetry_does_not_bind_has_every_member_tried() -> None:
    graph = SMALL["two boxes"]()
    every = parts_of(graph)
    found = failures(graph, "all_to_all", 1e9, routing="single")
    assert found.routing == "single"
    assert len(found.singles) == len(every)


# --- schedules made anew ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ring", "best"])
def test_what_stays_joined_keeps_its_algorithm(algorithm: str) -> None:
    graph = topo.build("torus", dims=(2, 3), **WIRES)
    found = failures(graph, "all_gather", 6e9, algorithm=algorithm)
    healthy = collectives.cost(graph, "all_gather", 6e9, algorithm=algorithm)
    assert (found.seconds, found.algorithm) == (healthy.seconds, healthy.algorithm)
    assert all(one.unreachable == 0 for one in found.singles)
    if algorithm == "ring":
        assert {one.algorithm for one in found.singles} == {"ring"}


def test_nvls_goes_on_with_the_planes_that_are_left() -> None:
    found = failures(rack(), "all_reduce", 8e9, algorithm="nvls")
    of = named(found)
    # n up and n down, each rank's link at 400 GB/s, (n - 1) n / n ... on 3 of 4 planes
    assert of["switch", 4].seconds == pytest.approx(found.seconds * 4 / 3)
    assert of["switch", 4].algorithm == "nvls"
    # a rank with one lane less: the plane it goes to takes no part of that rank's, the narrowest share binds
    assert of["lane", 32].algorithm == "nvls"
    assert of["link", 8].seconds == np.inf


def test_where_no_switch_reaches_all_another_algorithm_is_taken() -> None:
    two = {"scale_up.planes": 2, "scale_up.lanes": [1, 1], "scale_up.bandwidth": "400 GB/s", "scale_up.latency": "0 s"}
    graph = topo.load("hgx-h100-8", 1, {"design.domain_size": 4} | two, planes=True)
    del graph.nodes["d0/switch1"]["reduces"]  # only one of the planes adds up
    found = failures(graph, "all_reduce", 4e9, algorithm="nvls")
    of = {one.parts[0]: one for one in found.singles}
    lost = of["switch", "d0/switch0"]
    best = collectives.cost(topo.fail(graph, switches=["d0/switch0"]), "all_reduce", 4e9, algorithm="best")
    assert (lost.algorithm, lost.seconds, lost.unreachable) == (best.algorithm, best.seconds, 0)
    assert lost.algorithm != "nvls"
    assert lost.instead
    assert lost.loss == pytest.approx(
        best.seconds - collectives.cost(graph, "all_reduce", 4e9, algorithm=best.algorithm).seconds
    )
    assert of["switch", "d0/switch1"].loss == 0  # nvls does not use it
    assert {one.alike for one in found.singles if one.parts[0][0] == "switch"} == {1}


def test_an_order_that_suits_is_taken() -> None:
    # without host0 or host1 the first two of six ranks are a domain, without host2 or host3 the last two are
    graph = SMALL["two boxes"]()
    found = failures(graph, "all_gather", 8e9, algorithm="recursive_doubling")
    tray = next(one for one in found.singles if one.parts[0][0] == "tray")
    each = [
        collectives.cost(topo.fail(graph, gpus=[f"d{d}/gpu{i}" for i in pair]), "all_gather", 8e9,
                         algorithm="recursive_doubling").seconds
        for d in (0, 1) for pair in ((0, 1), (2, 3))
    ]  # fmt: skip
    assert max(each) > 1.3 * min(each)
    assert (tray.alike, tray.seconds) == (4, pytest.approx(min(each)))
    # what is possible without host2 is without host0: take the other domain first
    other = [f"d1/gpu{i}" for i in range(4)] + ["d0/gpu2", "d0/gpu3"]
    edited = topo.fail(graph, gpus=["d0/gpu0", "d0/gpu1"])
    turned = collectives.cost(edited, "all_gather", 8e9, algorithm="recursive_doubling", ranks=other)
    assert turned.seconds == pytest.approx(tray.seconds)


def test_sizes_of_ranks_that_are_left() -> None:
    graph = topo.load("gb200-nvl72", 1, {"design.domain_size": 8, "scale_up.latency": "0 s"})
    matrix = np.zeros((8, 8))
    matrix[0, 4], matrix[4, 0], matrix[1, 2] = 9e9, 3e9, 1e9
    for traffic in (matrix, Outer(np.array([9e9, 1, 1, 1, 1, 1, 1, 1]), np.ones(8))):
        trays = {one.parts[0][1]: one for one in failures(graph, "all_to_all_v", traffic).singles if one.dropped}
        # without host0 (GPUs 0 to 3) nothing large is left to send; without host1 rank 0 sends less
        assert trays["host0"].seconds < trays["host1"].seconds < 9e9 * 7 / 900e9
    experts = MoE(tokens=np.arange(1, 9) * 1000, hidden=1024, top_k=2, experts=16)
    lost = failures(graph, "moe_dispatch", experts)
    assert sorted(one.dropped for one in lost.singles if one.dropped) == [4, 4]
    placed = MoE(tokens=1000, hidden=1024, top_k=2, experts=16, placement=np.arange(16) % 8)
    assert all(one.seconds == np.inf for one in failures(graph, "moe_dispatch", placed).singles if one.dropped)


def test_a_schedule_that_is_given_stays() -> None:
    plan = collectives.schedule("all_gather", rack(), 8e9)
    found = failures(rack(), plan)
    of = named(found)
    assert of["switch", 4].seconds == pytest.approx(7e9 / 300e9)
    assert (of["tray", 1].seconds, of["tray", 1].stopped) == (np.inf, "8 ranks lost")
    with pytest.raises(InputError, match="made for the switches there are"):
        failures(rack(), collectives.schedule("all_reduce", rack(), 8e9, algorithm="nvls"))


# --- double failures -------------------------------------------------------------------------------------------------


def test_double_failures_are_sampled_from_a_seed() -> None:
    graph = SMALL["two boxes"]()
    found = failures(graph, "all_to_all", 1e9, doubles=6, seed=3)
    assert [one.name for one in failures(graph, "all_to_all", 1e9, doubles=6, seed=3).doubles] == [
        one.name for one in found.doubles
    ]
    assert [one.name for one in failures(graph, "all_to_all", 1e9, doubles=6, seed=4).doubles] != [
        one.name for one in found.doubles
    ]
    assert len({one.name for one in found.doubles}) == 6
    assert all(len(one.parts) == 2 for one in found.doubles)


def test_of_few_pairs_all_are_tried() -> None:
    graph = nx.Graph()
    graph.add_node("switch", kind="switch")
    for i in range(3):
        graph.add_node(f"gpu{i}", kind="gpu")
        graph.add_edge(f"gpu{i}", "switch", kind="scale-up", bandwidth=1e9, latency=0.0)
    found = failures(graph, "all_to_all", 3e9, doubles=100)
    # a switch, three links, three GPUs, two at a time
    assert len(found.doubles) == found.n_doubles == 21
    assert found.worse_doubles == 0
    by_name = {one.name: (one.unreachable, one.dropped) for one in found.doubles}
    assert by_name["link switch - gpu0 and link switch - gpu1"] == (6, 0)
    assert by_name["switch switch and tray gpu0"] == (2, 1)
    assert by_name["link switch - gpu0 and tray gpu0"] == (0, 1)
    # the two that are left still talk: only the GPU and its own link, three times, do no harm
    stopped = 21 - 3
    assert found.stopping_doubles == (stopped / 21, stopped / 21)


def test_two_lanes_of_one_link_may_fail() -> None:
    graph = topo.build("switched", n=2, planes=4, **WIRES)
    found = failures(graph, "all_to_all", 2e9, doubles=10**6)
    of = {one.name: one.seconds for one in found.doubles}
    lanes = [f"lane {i} of gpu0 - switch" for i in range(4)]
    # two lanes of one GPU: two planes left to it; one lane of each GPU: the same plane or two
    assert of[f"{lanes[1]} and {lanes[3]}"] == pytest.approx(1e9 / 25e9)
    assert of[f"{lanes[1]} and lane 1 of gpu1 - switch"] == pytest.approx(1e9 / 37.5e9)
    assert of[f"{lanes[1]} and lane 2 of gpu1 - switch"] == pytest.approx(1e9 / 25e9)
    assert len(of) == found.n_doubles == 16 * 15 // 2


def test_what_a_sample_says_of_the_rest() -> None:
    graph = topo.load("hgx-h100-8", 1, BOXES)
    found = failures(graph, "all_to_all", 8e9, doubles=20, seed=1)
    assert found.n_parts == 2 + 4 + 12 + 2
    assert found.n_doubles == 20 * 19 // 2
    assert 1 - (1 - found.worse_doubles) ** 20 == pytest.approx(0.95)
    every = failures(graph, "all_to_all", 8e9, doubles=found.n_doubles)
    low, high = found.stopping_doubles
    assert low < every.stopping_doubles[0] < high
    # Clopper and Pearson's table: 0 of 20 is 0 to 0.1684
    none = replace(found, doubles=tuple(one for one in every.doubles if np.isfinite(one.seconds))[:20])
    assert none.stopping_doubles == (0.0, pytest.approx(0.1684, abs=1e-4))
    assert failures(graph, "all_to_all", 8e9).stopping_doubles is None


# --- records and refusals --------------------------------------------------------------------------------------------


def test_a_record_is_plain_json() -> None:
    told = failures(rack(), "all_to_all", 8e9, doubles=1).to_dict()
    assert told["singles"][0]["seconds"] == "Infinity"
    assert told["singles"][0]["parts"] == [["link", "d0/gpu0 - d0/switch"]]
    assert told["seed"] == 0
    assert (told["n_parts"], told["n_doubles"]) == (45, 990)
    assert len(told["doubles"]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"doubles": -1}, "doubles = -1"),
        ({"doubles": 1, "seed": None}, "seed = None"),
        ({"seed": [1]}, "seed"),
        ({"kind": "all_two_all"}, "not a known"),
        ({"n_bytes": None}, "size"),
    ],
)
def test_bad_input_is_refused(words: dict[str, object], says: str) -> None:
    asked = {"kind": "all_to_all", "n_bytes": 1e9} | words
    with pytest.raises(InputError, match=says):
        failures(rack(), asked.pop("kind"), asked.pop("n_bytes"), **asked)


def test_a_fabric_does_not_say_what_can_fail() -> None:
    with pytest.raises(InputError, match="Give the graph itself"):
        failures(Fabric.from_graph(rack()), "all_to_all", 1e9)  # type: ignore[arg-type]
