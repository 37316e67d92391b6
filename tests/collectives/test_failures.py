"""Does one failure cost what a hand says, and do failures called alike do the same?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from collectives import Failure, failures
from collectives._parts import parts_of
from collectives._symmetry import classes_of
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
    assert set(of) == {("switch", 4), ("link", 8), ("lane", 32)}
    # one of four planes: 3/4 of the bandwidth everywhere
    assert of["switch", 4].seconds == pytest.approx(7e9 / 300e9)
    assert of["switch", 4].loss == pytest.approx(7e9 / 300e9 - 7e9 / 400e9)
    # one lane: plane 3 carries nothing of that GPU; the others split by what their own lanes carry
    assert of["lane", 32].seconds == pytest.approx(7e9 / 300e9)
    # a GPU without its link: 7 pairs each way
    assert (of["link", 8].seconds, of["link", 8].unreachable) == (np.inf, 14)
    assert found.worst is of["link", 8]
    assert of["link", 8].pairs[0] == "d0/gpu0 => d0/gpu1"


def test_the_worst_comes_first_and_is_named() -> None:
    graph = topo.load("hgx-h100-8", 2, DRY | {"scale_out.radix": 8})
    found = failures(graph, "all_to_all", 16e9)
    order = [(one.seconds, one.unreachable) for one in found.singles]
    assert order == sorted(order, reverse=True)
    assert repr(found).startswith("Failures(160 ms without; worst Failure(")
    nic = next(one for one in found.singles if one.parts[0][0] == "nic")
    # without its NIC a GPU reaches no GPU of the other box, and GPUs do not relay
    assert (nic.unreachable, nic.parts, nic.alike) == (16, (("nic", "d0/gpu0 - leaf0"),), 16)


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


SMALL = {
    "two boxes": lambda: topo.load("hgx-h100-8", 2, {"design.domain_size": 4, "design.gpus_per_host": 4}),
    "tapered": lambda: topo.load(
        "hgx-h100-8", 3,
        {"design.domain_size": 4, "design.gpus_per_host": 4, "scale_out.radix": 6, "scale_out.oversubscription": 2.0},
    ),
    "uneven": lambda: topo.load("hgx-h100-8", [3, 2], {"design.gpus_per_host": 3}),
    "torus": lambda: topo.build("torus", dims=(3, 4), latency="0 s", bandwidth="50 GB/s"),
    "mesh": mesh,
    "directed": lambda: mesh().to_directed(),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_failures_called_alike_do_the_same(name: str) -> None:
    graph = SMALL[name]()
    folded = failures(graph, "all_to_all", 1e9)
    fabric = Fabric.from_graph(graph)
    every = list(parts_of(graph, fabric, classes_of(fabric, np.arange(fabric.n_ranks))))
    assert len(folded.singles) < len(every)
    assert sum(one.alike for one in folded.singles) == sum(part.count for part in every)
    of = {one.parts[0]: one for one in folded.singles}
    first = {}
    for part in every:
        first.setdefault(part.alike, (part.kind, part.name))
    for part in every:
        edited = topo.fail(graph, **part.given)
        same = of[first[part.alike]]
        if same.unreachable:
            with pytest.raises(InputError, match=r"disconnected|no path"):
                collectives.cost(edited, "all_to_all", 1e9)
        else:
            assert collectives.cost(edited, "all_to_all", 1e9).seconds == pytest.approx(same.seconds, rel=1e-9)


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
    every = list(parts_of(graph, fabric := Fabric.from_graph(graph), classes_of(fabric, np.arange(8))))
    found = failures(graph, "all_to_all", 1e9, routing="single")
    assert found.routing == "single"
    assert len(found.singles) == len(every)


@pytest.mark.parametrize("algorithm", ["ring", "best"])
def test_a_schedule_stays_what_it_is(algorithm: str) -> None:
    graph = topo.build("torus", dims=(2, 3), latency="0 s", bandwidth="50 GB/s")
    found = failures(graph, "all_gather", 6e9, algorithm=algorithm)
    assert found.algorithm == ("ring" if algorithm == "ring" else collectives.cost(
        graph, "all_gather", 6e9, algorithm="best").algorithm)  # fmt: skip
    assert found.seconds == collectives.cost(graph, "all_gather", 6e9, algorithm=algorithm).seconds
    # a torus stays joined
    assert all(one.unreachable == 0 for one in found.singles)


def test_schedules_made_for_their_switches_are_refused() -> None:
    with pytest.raises(InputError, match="made for the switches there are"):
        failures(rack(), "all_reduce", 8e9, algorithm="nvls")


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
    # a switch and three links, two at a time; with two links gone, or the switch, all six pairs are lost
    assert [one.unreachable for one in found.doubles] == [6] * 6


# --- records and refusals --------------------------------------------------------------------------------------------


def test_a_record_is_plain_json() -> None:
    told = failures(rack(), "all_to_all", 8e9, doubles=1).to_dict()
    assert told["singles"][0]["seconds"] == "Infinity"
    assert told["singles"][0]["parts"] == [["link", "d0/gpu0 - d0/switch"]]
    assert told["seed"] == 0
    assert len(told["doubles"]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [({"doubles": -1}, "doubles = -1"), ({"kind": "all_two_all"}, "not a known"), ({"n_bytes": None}, "size")],
)
def test_bad_input_is_refused(words: dict[str, object], says: str) -> None:
    asked = {"kind": "all_to_all", "n_bytes": 1e9} | words
    with pytest.raises(InputError, match=says):
        failures(rack(), asked.pop("kind"), asked.pop("n_bytes"), **asked)


def test_a_fabric_does_not_say_what_can_fail() -> None:
    with pytest.raises(InputError, match="Give the graph itself"):
        failures(Fabric.from_graph(rack()), "all_to_all", 1e9)  # type: ignore[arg-type]
