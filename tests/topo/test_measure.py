"""Are the measures those of known machines, and the brackets right on graphs small enough to try every half?"""

from __future__ import annotations

import json
import random
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import Bill, Bisection, Fabric, Links, Ports, load, measure
from topo._weak_points import weak_points

from .halved import random_fabric, wired


def torus(*sides: int) -> nx.Graph:
    grid = nx.grid_graph(list(reversed(sides)), periodic=True)
    names = {node: "g" + ".".join(str(x) for x in np.atleast_1d(node)) for node in grid}
    return wired([(names[a], names[b]) for a, b in grid.edges])


def fat_tree(k: int) -> nx.Graph:
    half, edges = k // 2, []
    for pod in range(k):
        for leaf in range(half):
            edges += [(f"g{pod}.{leaf}.{i}", f"sl{pod}.{leaf}") for i in range(half)]
            edges += [(f"sl{pod}.{leaf}", f"sa{pod}.{j}") for j in range(half)]
        edges += [(f"sa{pod}.{j}", f"sc{j}.{i}") for j in range(half) for i in range(half)]
    return wired(edges, "scale-out")


# --- known machines --------------------------------------------------------------------------------------------------


# 72 GPUs, 18 NVSwitch chips, a link of 50 GB/s from every GPU to every chip; half of 72 x 900 GB/s crosses a cut
def test_gb200_nvl72() -> None:
    found = measure(load("gb200-nvl72"))
    assert (found.gpus, found.domains, found.switches) == (72, 1, {"scale-up": 18})
    assert found.links == {"scale-up": Links(72, 72 * 18)}
    assert (found.hops, found.diameter, found.unreachable) == ({2: 72 * 71}, 2, 0)
    assert found.bisection["scale-up"].exact
    assert found.bisection["scale-up"].upper == 36 * 900e9
    assert found.ports == {"scale-up": Ports(72, None)}
    assert found.bill["GPUs"] == Bill(72, None, 72 * 1200.0)
    assert (found.bill["scale-up switches"], found.bill["scale-up cables"].units) == (Bill(18, None, None), 72 * 18)
    assert found.left_out == {}
    assert (found.weak_nodes, found.weak_links) == ((), ())
    assert repr(found).startswith("Measures(gb200-nvl72: 72 GPUs in 1 domains, 18 switches, at most 2 hops, ")


def test_two_racks_on_a_fabric_without_blocking() -> None:
    found = measure(load("gb200-nvl72", 2))
    assert found.switches == {"scale-up": 36, "leaf": 5, "spine": 3}
    assert found.oversubscription == {"leaf": 1.0}
    assert found.ports["leaf"] == Ports(64, 64)
    width = found.bisection["scale-out"]
    assert (width.lower, width.upper) == (72 * 50e9, 72 * 50e9)
    assert sum(found.hops.values()) == 144 * 143


@pytest.mark.parametrize("ratio", [2.0, 4.0])
def test_oversubscription_is_measured(ratio: float) -> None:
    found = measure(load("gb200-nvl72", 2, {"scale_out.oversubscription": ratio}))
    assert found.oversubscription == {"leaf": ratio}
    width = found.bisection["scale-out"]
    assert width.exact
    assert width.upper < 72 * 50e9


SWITCHED = [name for name in topo.list_designs() if topo.load_design(name).scale_up.shape == "switched"]


@pytest.mark.parametrize("name", SWITCHED)
def test_folded_and_unfolded_measure_alike(name: str) -> None:
    folded, unfolded = (measure(load(name, 1 if name == "vr-nvl576" else 2, planes=planes)) for planes in (False, True))
    assert folded.switches == unfolded.switches
    assert folded.ports == unfolded.ports
    assert {kind: links.lanes for kind, links in folded.links.items()} == {
        kind: links.lanes for kind, links in unfolded.links.items()
    }
    assert folded.hops == unfolded.hops
    for kind, bracket in folded.bisection.items():
        assert unfolded.bisection[kind].upper == pytest.approx(bracket.upper, rel=1e-12)
        assert unfolded.bisection[kind].lower == pytest.approx(bracket.lower, rel=1e-9)


# full mesh of 8: 4 x 4 links of 64 GB/s cross any halves
def test_full_mesh() -> None:
    width = measure(load("mi300x-8")).bisection["scale-up"]
    assert (width.exact, width.upper) == (True, pytest.approx(16 * 64e9))


# torus with an even longest side n of N nodes: 2 N / n links
@pytest.mark.parametrize("sides", [(4,), (8,), (4, 4), (4, 6), (4, 4, 4), (4, 4, 8)])
def test_even_torus(sides: tuple[int, ...]) -> None:
    found = measure(torus(*sides))
    width = found.bisection["scale-up"]
    wanted = 2 * int(np.prod(sides)) // max(sides)
    assert (width.lower, width.upper) == (pytest.approx(wanted), wanted)
    assert found.diameter == sum(side // 2 for side in sides)


# fat tree k: k^3/4 hosts, 5 k^2/4 switches, 3 k^3/4 links, host diameter 6, bisection k^3/8
@pytest.mark.parametrize("k", [4, 6, 8])
def test_fat_tree(k: int) -> None:
    found = measure(fat_tree(k))
    assert (found.gpus, sum(found.switches.values()), found.links["scale-out"].edges) == (
        k**3 // 4, 5 * k * k // 4, 3 * k**3 // 4,
    )  # fmt: skip
    assert found.diameter == 6
    width = found.bisection["scale-out"]
    assert (width.lower, width.upper) == (k**3 / 8, k**3 / 8)


def test_the_worst_domain_is_measured() -> None:
    graph = topo.fail(load("hgx-h100-8", 2), switches=["d1/switch0"])
    width = measure(graph).bisection["scale-up"]
    assert (width.upper, width.first, width.ranks) == (pytest.approx(4 * 450e9 * 13 / 18), "d1/gpu0", 8)


def test_unequal_ends() -> None:
    star = wired([(f"g{i}", "s") for i in range(6)])
    for i, rate in enumerate((5.0, 1.0, 4.0, 2.0, 3.0, 9.0)):
        star.edges[f"g{i}", "s"]["bandwidth"] = rate
    assert measure(star).bisection["scale-up"].upper == 1 + 2 + 3


def test_a_fabric_in_two_halves_has_no_bisection() -> None:
    graph = wired([("g0", "s0"), ("g1", "s0"), ("g2", "s1"), ("g3", "s1")], "scale-out")
    graph.add_edges_from([("g0", "g2"), ("g2", "g1"), ("g1", "g3")], kind="scale-up", bandwidth=1.0, latency=0.0)
    nx.set_node_attributes(graph, {f"g{i}": False for i in range(4)}, "forwards")
    found = measure(graph)
    width = found.bisection["scale-out"]
    assert (width.lower, width.upper) == (0.0, 0.0)
    assert found.unreachable == 2  # g0 and g3: two relays apart


def test_levels_of_trees() -> None:
    taper = measure(topo.build("fat_tree", k=8, oversubscription=(2.0, 4.0)))
    assert taper.oversubscription == {"leaf": 2.0, "spine": 4.0}
    assert taper.ports == {"leaf": Ports(6, 8), "spine": Ports(5, 8), "core": Ports(8, 8)}
    assert measure(topo.build("multi_plane_fat_tree", planes=2, k=4)).oversubscription == {"leaf": 1.0}
    assert measure(topo.build("dragonfly", a=4, p=2, h=2)).oversubscription == {}


def test_a_rank_on_a_spine_leaves_the_levels_as_they_are() -> None:
    graph = topo.build("leaf_spine", leaves=4, spines=2, hosts=6, lanes=1)
    graph.add_node("gateway", kind="gpu", rank=24)
    graph.add_edge("gateway", "spine0", kind="scale-out", bandwidth=1e9, latency=0.0)
    assert measure(graph).oversubscription == {"leaf": 3.0}
    for _, data in graph.nodes(data=True):
        data.pop("tier", None)
    assert measure(graph).oversubscription == {"": 6.0}  # without tiers spine0 stands as near as a leaf


def test_ports_are_those_of_the_switch_that_is_fullest_for_its_radix() -> None:
    graph = topo.build("leaf_spine", leaves=2, spines=1, hosts=4, radix=16)
    graph.nodes["leaf1"]["radix"] = 8
    graph.remove_node("gpu7")
    assert measure(graph).ports["leaf"] == Ports(7, 8)  # not 8 of 16


def test_levels_of_one_tier_are_told_apart() -> None:
    edges = [(f"g{i}", f"s{i // 4}") for i in range(8)] + [("s0", "s2"), ("s1", "s2"), ("s2", "s3")]
    assert measure(wired(edges)).oversubscription == {"spine level 1": 4.0, "spine level 2": 2.0}


# --- single points of failure ----------------------------------------------------------------------------------------


def test_weak_points() -> None:
    graph = wired([("g0", "s0"), ("g1", "s0"), ("s0", "s1"), ("g2", "s1"), ("g3", "s1")], "scale-out")
    found = measure(graph)
    assert found.weak_nodes == ("s0", "s1")
    assert ("s0", "s1") in found.weak_links
    assert len(found.weak_links) == 5
    graph.edges["s0", "s1"]["lanes"] = 2
    graph.nodes["s0"]["planes"] = 2
    found = measure(graph)
    assert found.weak_nodes == ("s1",)
    assert len(found.weak_links) == 4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_weak_points_are_what_breaks_it(seed: int) -> None:
    dice = random.Random(seed)
    n = dice.randint(3, 9)
    tree = [(f"{'gs'[i % 2 > 0]}{i}", f"{'gs'[j % 2 > 0]}{j}") for i in range(1, n) for j in [dice.randrange(i)]]
    graph = wired(
        tree + [(a, b) for a, b in combinations(sorted({x for e in tree for x in e}), 2) if dice.random() < 0.1]
    )
    fabric = Fabric.from_graph(graph)
    nodes, links = weak_points(fabric)
    gpus = {node for node, kind in graph.nodes(data="kind") if kind == "gpu"}

    def broken(left: nx.Graph) -> bool:
        return sum(bool(part & gpus) for part in nx.connected_components(left)) > 1

    assert [fabric.labels[i] for i in nodes] == [v for v in graph if broken(graph.subgraph(set(graph) - {v}))]
    wanted = [{a, b} for a, b in graph.edges if broken(nx.restricted_view(graph, [], [(a, b)]))]
    assert sorted(sorted(fabric.labels[i] for i in pair) for pair in links) == sorted(sorted(pair) for pair in wanted)


# --- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_copying_relabelling_and_order_change_nothing(seed: int) -> None:
    graph = random_fabric(seed)
    if topo.check(graph):
        return
    for rank, node in enumerate([n for n, kind in graph.nodes(data="kind") if kind == "gpu"]):
        graph.nodes[node]["rank"] = rank
    wanted = measure(graph).to_dict()
    assert measure(graph.copy()).to_dict() == wanted == measure(Fabric.from_graph(graph)).to_dict()
    dice = random.Random(seed)
    nodes, edges = list(graph.nodes(data=True)), list(graph.edges(data=True))
    dice.shuffle(nodes)
    dice.shuffle(edges)
    names = {node: f"x{i}" for i, (node, _) in enumerate(nodes)}
    other = graph.__class__()
    other.add_nodes_from((names[node], data) for node, data in nodes)
    other.add_edges_from((names[a], names[b], data) for a, b, data in edges)
    got = measure(other).to_dict()
    for key in ("gpus", "domains", "switches", "links", "hops", "diameter", "oversubscription", "ports"):
        assert got[key] == pytest.approx(wanted[key]) if key == "oversubscription" else got[key] == wanted[key]
    assert sorted(got["weak_nodes"]) == sorted(names[node] for node in wanted["weak_nodes"])
    for kind, bracket in wanted["bisection"].items():
        assert got["bisection"][kind]["lower"] == pytest.approx(bracket["lower"], rel=1e-9)
        assert got["bisection"][kind]["upper"] == pytest.approx(bracket["upper"], rel=1e-9)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_bisection_scales_with_bandwidth(factor: float) -> None:
    graph = load("hgx-h100-8", 3)
    before, after = (measure(topo.scale(graph, kind="scale-out", bandwidth=f)).bisection for f in (1.0, factor))
    assert after["scale-out"].upper == pytest.approx(factor * before["scale-out"].upper)
    assert after["scale-out"].lower == pytest.approx(factor * before["scale-out"].lower)
    assert after["scale-up"] == before["scale-up"]


def test_a_directed_copy_measures_the_same() -> None:
    graph = load("hgx-h100-8", 2)
    one, two = measure(graph).to_dict(), measure(graph.to_directed()).to_dict()
    assert one == two


def test_one_gpu() -> None:
    graph = nx.Graph(chips={"a": {"power": 10.0, "price": 3.0}})
    graph.add_node("g", kind="gpu", chip="a")
    found = measure(graph)
    assert (found.gpus, found.hops, found.diameter, found.bisection) == (1, {}, 0, {})
    assert found.bill == {"GPUs": Bill(1, 3.0, 10.0)}


def test_too_many_to_route(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topo._measure.MOST_RANKS", 100)
    graph = topo.build("fat_tree", k=8, bandwidth=1.0)
    found = measure(graph)
    assert (found.hops, found.unreachable, found.diameter) == ({}, None, None)
    assert list(found.left_out) == ["hops", "unreachable", "diameter"]  # the bisection is proven without routes
    assert (found.switches, found.bisection["scale-out"].lower) == ({"leaf": 32, "spine": 32, "core": 16}, 64)
    assert "hops" not in repr(found)
    assert "not by routes" in measure(topo.build("dragonfly", a=4, p=4, h=2)).bisection["scale-out"].method


def test_records_are_plain_data() -> None:
    found = measure(load("hgx-h100-8", 2))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["bisection"]["scale-up"]["upper"] == 4 * 450e9
    assert data["weak_nodes"] == ["leaf0"]
    assert data["hops"] == {"2": 240}
    assert str(Bisection(1e9, 2e9, "", 2, "a")) == "1 GB/s to 2 GB/s"
