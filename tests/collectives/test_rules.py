"""Do loads and times under every rule agree with walking every path in plain Python?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import collectives
import topo
from topo import Fabric, Hash, InputError

from . import walks
from .random_graphs import FAMILIES, Dice, shuffled, traffic

RTOL = 1e-9
CABLES = {name for name, rule in topo.RULES.items() if rule.cables}


def close(value: float) -> object:
    return pytest.approx(value, rel=RTOL, abs=0.0)


def by_link(fabric: Fabric, loads: np.ndarray, *, cables: Collection[str]) -> dict[tuple, float]:
    """Loads by (from, to), or (from, to, lane) of the kinds of links that are taken cable by cable."""
    seen: Counter = Counter()
    found = {}
    kinds = [topo.EDGE_KINDS[kind] for kind in fabric.link_kind]
    for a, b, kind, load in zip(fabric.source.tolist(), fabric.target.tolist(), kinds, loads.tolist(), strict=True):
        key = (fabric.labels[a], fabric.labels[b])
        found[(*key, seen[key]) if kind in cables else key] = load
        seen[key] += 1
    return found


def ranks_of(graph: nx.Graph) -> list[str]:
    return Fabric.from_graph(graph).rank_labels


def check(graph: nx.Graph, rule: str | Hash, walk: walks.Walk, ranks: list[str], matrix: list[list[float]]) -> None:
    """Compare one phase with the walk, link by link; bytes are conserved at every node."""
    flows = {(a, b): matrix[i][j] for i, a in enumerate(ranks) for j, b in enumerate(ranks)}
    slow = walks.phase_of(graph, flows, walk)
    if slow.unreachable:
        with pytest.raises(InputError, match=f"no path for {len(slow.unreachable)} pairs"):
            collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks, routing=rule)
        flows = {pair: 0.0 if pair in slow.unreachable else n for pair, n in flows.items()}
        matrix = [[flows[a, b] for b in ranks] for a in ranks]
    if not any(n for (a, b), n in flows.items() if a != b):
        return
    routes = topo.route(graph, rule)
    fast = collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks, routing=routes)
    cables = ("scale-out",) if routes.hashing else topo.EDGE_KINDS if rule in CABLES else ()
    loads = by_link(routes.fabric, fast.loads, cables=cables)
    assert {link: load for link, load in loads.items() if load > 1e-9} == {
        link: close(load) for link, load in slow.loads.items() if load > 1e-9
    }
    assert fast.seconds == close(slow.seconds)
    assert fast.bottleneck_kind != "path" or slow.path_seconds == close(slow.seconds)
    balance = dict.fromkeys(graph, 0.0)
    for (a, b, *_), load in loads.items():
        balance[a] -= load
        balance[b] += load
    for (a, b), n_bytes in flows.items():
        balance[a] += n_bytes
        balance[b] -= n_bytes
    assert max(map(abs, balance.values())) <= 1e-9 * sum(flows.values())
    hops = topo.hop_counts(routes)
    at = {label: i for i, label in enumerate(routes.fabric.rank_labels)}
    for a, b in dict.fromkeys(list(flows)[:20]):
        walked = walk(graph, a, b) if a != b else []
        if a != b:
            assert hops[at[a], at[b]] == max((len(links) for links, _ in walked), default=-1)


@pytest.mark.parametrize("rule", ["even", "paths"])
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_equal_splits_on_random_graphs(family: str, rule: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, ranks_of(graph))
    check(graph, rule, {"even": walks.evenly, "paths": walks.by_paths}[rule], ranks, matrix)


def planes_apart(dice: Dice) -> nx.Graph:
    """A design with its planes unfolded and bundles of several lanes, of one rate or several."""
    size = dice.randint(2, 5)
    overrides = {
        "design.domain_size": size,
        "design.gpus_per_host": size,
        "scale_up.lanes": [3, 2],
        "scale_up.planes": 2,
    }
    overrides |= {"scale_out.radix": dice.choice([5, 6, 8]), "scale_out.oversubscription": dice.choice([1.0, 2.0])}
    graph = topo.load("hgx-h100-8", dice.randint(1, 3), overrides, planes=True)
    for _, _, data in graph.edges(data=True):
        if data.get("lanes", 1) > 1 and dice.yes(0.3):
            data["lane_bandwidths"] = [dice.choice([1e9, 2e9]) for _ in range(data["lanes"])]
            data["bandwidth"] = sum(data["lane_bandwidths"])
    return graph


CABLED = {"switches_and_gpus": FAMILIES["switches_and_gpus"], "planes_apart": planes_apart}


@pytest.mark.parametrize("family", CABLED)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9), rule=st.sampled_from(["single", "hash"]))
def test_one_cable_a_hop_on_random_graphs(family: str, seed: int, rule: str) -> None:
    dice = Dice(seed)
    graph = CABLED[family](dice)
    if dice.yes(0.5):
        graph = shuffled(graph, dice)
    assume(not topo.check(graph))
    labels = ranks_of(graph)
    ranks, matrix = traffic(dice, labels)
    if rule == "single":
        check(graph, rule, walks.DestinationModK(graph, labels), ranks, matrix)
    else:
        hashing = Hash(dice.randint(0, 9), dice.randint(1, 4))
        hashed = walks.by_hash(labels, list(graph), hashing.seed, hashing.queue_pairs)

        def walk(graph: nx.Graph, a: str, b: str) -> list:
            return hashed(graph, a, b) if walks.paths(graph, a, b) else []

        check(graph, hashing, walk, ranks, matrix)


SHAPES = {
    "fat_tree": {"k": 4, "oversubscription": [2.0, 1.0]},
    "leaf_spine": {"leaves": 3, "spines": 2, "hosts": 5, "oversubscription": 1.7},
    "dragonfly": {"a": 2, "p": 2, "h": 2, "groups": 3},
    "torus": {"dims": (3, 4), "twist": {(0, 1): 2}},
    "rail_optimised": {"domains": 3, "domain_size": 4, "radix": 4, "oversubscription": 2.0},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", ["even", "paths", "single", "hash"])
def test_built_shapes(shape: str, rule: str) -> None:
    graph = topo.build(shape, **SHAPES[shape])
    labels = ranks_of(graph)
    ranks = Dice(len(graph)).sample(labels, 9)
    walk = {
        "even": walks.evenly,
        "paths": walks.by_paths,
        "single": walks.DestinationModK(graph, labels),
        "hash": walks.by_hash(labels, list(graph), 0, 1),
    }[rule]
    check(graph, rule, walk, ranks, [[1e6 + 1e4 * (i - j) for i in range(9)] for j in range(9)])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**9), rule=st.sampled_from(["ecmp", "dragonfly"]))
def test_a_split_by_capacity_loads_bundles_like_their_cables(seed: int, rule: str) -> None:
    """Lanes get their part of what the bundle carries, whatever their rates; one next hop each, twins or not."""
    dice = Dice(seed)
    graph = planes_apart(dice) if rule == "ecmp" else topo.build("dragonfly", a=2, p=2, h=2, groups=3)
    folded = Fabric.from_graph(graph)
    ranks, matrix = traffic(dice, folded.rank_labels)
    assume(any(map(any, matrix)))
    bundles = by_link(
        folded, collectives.cost(folded, "all_to_all_v", matrix, ranks=ranks, routing=rule).loads, cables=()
    )
    wide = folded.unfolded()
    spread = collectives.cost(wide, "all_to_all_v", matrix, ranks=ranks, routing=rule)
    cables = by_link(wide, spread.loads, cables=topo.EDGE_KINDS)
    for (a, b, lane), load in cables.items():
        part = walks.rate(graph, (a, b, lane)) / graph.edges[a, b]["bandwidth"]
        assert load == pytest.approx(bundles[a, b] * part, rel=RTOL, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_dimension_order_on_tori_and_meshes(seed: int) -> None:
    dice = Dice(seed)
    dims = [dice.choice([1, 3, 4, 5]) for _ in range(dice.choice([2, 3]))]
    dims[0] = 3
    wrap = dice.yes(0.7)
    graph = topo.build("torus", dims=dims, wrap=wrap, bandwidth=1e9, latency=1e-6)
    ranks, matrix = traffic(dice, ranks_of(graph))
    check(graph, "dor", walks.on_torus(dims, wrap), ranks, matrix)


@pytest.mark.parametrize(
    ("dims", "twist"), [((4, 8), {(0, 1): 4}), ((4, 5), {(0, 1): 2}), ((3, 3, 4), {(0, 2): 2, (1, 2): 2})]
)
def test_dimension_order_on_twisted_tori_follows_their_own_links(dims: tuple[int, ...], twist: dict) -> None:
    graph = topo.build("torus", dims=dims, twist=twist, bandwidth=1e9, latency=1e-6)
    ranks = Dice(len(dims)).sample(ranks_of(graph), 9)
    check(graph, "dor", walks.on_torus(dims, True, twist), ranks, [[1e6 * (i + j) for i in range(9)] for j in range(9)])


@pytest.mark.parametrize("parameters", [{"dims": [3, 4], "hosts": 2}, {"dims": [2, 3, 3], "hosts": 1}])
def test_dimension_order_on_hyperx(parameters: dict) -> None:
    graph = topo.build("hyperx", **parameters, bandwidth=1e9, latency=1e-6)
    ranks, matrix = traffic(Dice(1), ranks_of(graph))
    check(graph, "dor", walks.on_hyperx, ranks, matrix)


@pytest.mark.parametrize("parameters", [{"a": 3, "p": 1, "h": 1}, {"a": 2, "p": 2, "h": 2, "groups": 3}])
@pytest.mark.parametrize("rule", ["dragonfly", "valiant"])
def test_dragonflies(parameters: dict[str, int], rule: str) -> None:
    graph = topo.build("dragonfly", **parameters, bandwidth=1e9, latency=1e-6)
    dice = Dice(parameters["a"])
    for link in dice.sample(list(graph.edges), 4):
        graph.edges[link].update(bandwidth=2.5e9, latency=3e-6)
    ranks, matrix = traffic(dice, ranks_of(graph))
    check(graph, rule, {"dragonfly": walks.minimal, "valiant": walks.over_groups}[rule], ranks, matrix)


@pytest.mark.parametrize(
    ("shape", "parameters", "stop"),
    [
        ("torus", {"dims": (3, 4)}, "gpu"),
        ("torus", {"dims": (2, 3), "twist": {(1, 0): 1}}, "gpu"),
        ("hyperx", {"dims": [3, 3], "hosts": 2}, "router"),
        ("slim_fly", {"q": 3, "p": 1}, "router"),
        ("fat_tree", {"k": 4, "oversubscription": [2.0, 1.0]}, "leaf"),
        ("leaf_spine", {"leaves": 3, "spines": 2, "hosts": 2}, "leaf"),
    ],
)
def test_valiant_over_nodes_and_switches(shape: str, parameters: dict, stop: str) -> None:
    graph = topo.build(shape, **parameters, bandwidth=1e9, latency=1e-6)
    dice = Dice(len(graph))
    for link in dice.sample(list(graph.edges), 3):
        graph.edges[link].update(bandwidth=2.5e9, latency=3e-6)
    stops = [node for node in graph if node.startswith(stop)]
    ranks, matrix = traffic(dice, ranks_of(graph)[:9])
    check(graph, "valiant", walks.over_nodes(stops, anywhere), ranks, matrix)


def anywhere(graph: nx.Graph, source: str, target: str) -> list[tuple[list, float]]:
    """Shortest paths from any node to any node through what forwards, split by capacity."""
    inner = [n for n, d in graph.nodes(data=True) if d.get("forwards", d["kind"] == "switch")]
    part = graph.subgraph([*inner, source, target])
    found = [list(nx.utils.pairwise(nodes)) for nodes in nx.all_shortest_paths(part, source, target)]
    return walks.split(found, lambda link: graph.edges[link]["bandwidth"])


PLACED = {
    "dor": topo.build("hyperx", dims=[3, 3], hosts=3),
    "dragonfly": topo.build("dragonfly", a=3, p=3, h=1),
}


@pytest.mark.parametrize("rule", ["ecmp", "even", "paths", "dor", "dragonfly"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_folding_twins_changes_nothing(rule: str, seed: int) -> None:
    dice = Dice(seed)
    graph = PLACED[rule] if rule in PLACED else FAMILIES[dice.choice(list(FAMILIES))](dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, ranks_of(graph))
    assume(any(map(any, matrix)))
    folded = topo.route(graph, rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(topo.RULES, rule, dataclasses.replace(topo.RULES[rule], folds=lambda fabric: False))
        apart = topo.route(graph, rule)
    assert all(c.graph.n_sources == folded.fabric.n_ranks for c in apart.classes)
    assert rule not in PLACED or folded.classes[2].graph.n_sources < folded.fabric.n_ranks
    assert topo.hop_counts(folded).tolist() == topo.hop_counts(apart).tolist()
    matrix = np.where(folded.pair_class[np.ix_(*[[ranks_of(graph).index(r) for r in ranks]] * 2)] < 0, 0.0, matrix)
    assume(matrix.any())
    one, other = (
        collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks, routing=routes) for routes in (folded, apart)
    )
    np.testing.assert_allclose(one.loads, other.loads, rtol=RTOL, atol=1e-9)
    assert one.seconds == close(other.seconds)
    assert one.latency_seconds == close(other.latency_seconds)


# --- numbers known from elsewhere ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["ecmp", "even", "paths", "single"])
@pytest.mark.parametrize(("k", "seconds"), [(4, 0.3), (8, 2.54)])
def test_fat_trees_have_no_contention(k: int, seconds: float, rule: str) -> None:
    """SimGrid 3.32: three levels, every link 50 GB/s, 1e9 bytes a pair over D-mod-k paths: (N - 1) m / NIC."""
    graph = topo.build("fat_tree", k=k, bandwidth="50 GB/s", latency="0 s")
    cost = collectives.cost(graph, "all_to_all", k**3 // 4 * 1e9, routing=rule)
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    assert cost.routing == rule


@pytest.mark.parametrize(
    ("rule", "seconds"),
    # SimGrid 3.32: torus 4x4x4, ties in the plus direction; split both ways; all links carry 2 x 63/64 of the latter
    [("dor", 0.96), ("ecmp", 0.64), ("even", 0.64), ("paths", 0.64), ("valiant", 2 * 63 / 64 * 0.64)],
)
def test_torus(rule: str, seconds: float) -> None:
    graph = topo.build("torus", dims=(4, 4, 4), bandwidth="50 GB/s", latency="0 s")
    cost = collectives.cost(graph, "all_to_all", 64e9, routing=rule)
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    if rule == "dor":  # per ring of four: 1 + 2 hops up, 1 down, 16 messages each
        assert sorted(Counter(np.round(cost.loads / 1e9).tolist()).items()) == [(16.0, 192), (48.0, 192)]


@pytest.mark.parametrize(
    ("twist", "most", "least", "hops"),
    # equal-split shortest paths, unit one message: 1.745 times less on the busiest link of the twisted torus
    [({}, 128.0, 64.0, 8), ({(0, 2): 4, (1, 2): 4}, 220 / 3, 220 / 3, 6)],
)
def test_twisted_torus_under_equal_splits(twist: dict, most: float, least: float, hops: int) -> None:
    fabric = Fabric.from_graph(topo.build("torus", dims=(4, 4, 8), twist=twist, bandwidth="50 GB/s", latency="0 s"))
    for rule in ("ecmp", "even", "paths"):
        routes = topo.route(fabric, rule)
        loads = collectives.cost(fabric, "all_to_all", 128.0, routing=routes).loads
        assert (loads.max(), loads.min()) == (pytest.approx(most, rel=1e-9), pytest.approx(least, rel=1e-9))
        assert topo.hop_counts(routes).max() == hops


def test_single_takes_the_cable_of_the_destination() -> None:
    """A leaf with two spines of two cables: destination d goes by cable d mod 4, and comes down on the same lane."""
    graph = topo.build("leaf_spine", leaves=2, spines=2, hosts=4, lanes=2, bandwidth="50 GB/s", latency="0 s")
    routes = topo.route(graph, "single")
    for d in range(4, 8):
        cost = collectives.cost(graph, "all_to_all_v", [[0, 1e9], [0, 0]], ranks=[0, d], routing=routes)
        used = [routes.fabric.link_label(int(link)) for link in np.flatnonzero(cost.loads)]
        spine, lane = d % 4 // 2, d % 2 + 1
        assert f"leaf0 -> spine{spine} lane {lane}" in used
        assert f"spine{spine} -> leaf1 lane {lane}" in used
    everyone = collectives.cost(graph, "all_to_all", 8e9, routing=routes)
    assert everyone.seconds == pytest.approx(7 / 50, rel=1e-12)


def test_single_counts_spine_10_after_spine_9() -> None:
    graph = topo.build("leaf_spine", leaves=2, spines=12, hosts=12, bandwidth="50 GB/s", latency="0 s")
    routes = topo.route(graph, "single")
    cost = collectives.cost(graph, "all_to_all_v", [[0, 1e9], [0, 0]], ranks=[0, 22], routing=routes)
    assert {routes.fabric.link_label(int(link)) for link in np.flatnonzero(cost.loads)} >= {"leaf0 -> spine10"}


def test_dragonfly_takes_one_global_link_where_shortest_paths_take_two() -> None:
    graph = topo.build("dragonfly", a=4, p=2, h=2, bandwidth="50 GB/s", latency="0 s")
    assert topo.hop_counts(topo.route(graph, "dragonfly")).max() == 5
    minimal, shortest = (collectives.cost(graph, "all_to_all", 72e9, routing=rule) for rule in ("dragonfly", "ecmp"))
    fabric = Fabric.from_graph(graph)
    group = np.array([graph.nodes[label].get("group", -1) for label in fabric.labels])
    a, b = group[fabric.source], group[fabric.target]
    between = (a != b) & (a >= 0) & (b >= 0)
    # 8 GPUs a group send 8 bytes to each of 8 other groups, one global link to each: 64 messages a link
    assert minimal.loads[between].tolist() == [close(64e9)] * 72
    assert shortest.loads[between].sum() > minimal.loads[between].sum()
    assert topo.hop_counts(topo.route(graph, "valiant")).max() == 7


def test_groups_that_share_no_link_are_out_of_reach() -> None:
    """Groups of one half of a Slim Fly are not joined to each other."""
    graph = topo.build("slim_fly", q=5, p=1)
    with pytest.raises(InputError, match=r"no path for \d+ pairs of ranks.* no way under dragonfly"):
        collectives.cost(graph, "all_to_all", 1e9, routing="dragonfly")


@pytest.mark.parametrize("rule", ["dor", "dragonfly"])
def test_rules_that_need_places_say_so(rule: str) -> None:
    graph = topo.build("fat_tree", k=4)
    with pytest.raises(InputError, match="leaf0") as caught:
        topo.route(graph, rule)
    assert caught.value.faults[0].place == "routing"
    one_way = topo.load("gb200-nvl72")  # one switch: there is no choice
    assert topo.route(one_way, rule).rule == rule


def test_tori_on_a_fabric_without_coordinates_are_routed_by_both_rules() -> None:
    """Two rings of five on two leaves of two spines: dor inside, ecmp between, and the result says so."""
    graph, out = nx.Graph(), {"kind": "scale-out", "bandwidth": 1e9, "latency": 0.0}
    for d in range(2):
        ring = topo.build("ring", n=5, bandwidth=1e9, latency=0.0)
        ring = nx.relabel_nodes(ring, {node: f"d{d}/{node}" for node in ring})
        graph.add_nodes_from((node, data | {"rank": 5 * d + data["rank"]}) for node, data in ring.nodes(data=True))
        graph.add_edges_from(ring.edges(data=True))
        graph.add_nodes_from([f"leaf{d}", f"spine{d}"], kind="switch")
        graph.add_edges_from(((node, f"leaf{d}") for node in ring), **out)
    graph.add_edges_from(((f"leaf{d}", f"spine{s}") for d in range(2) for s in range(2)), **out)
    cost = collectives.cost(graph, "all_to_all", 10e6, routing="dor")
    assert "routing dor: nodes of scale-out state no coordinates, so ecmp there" in cost.assumptions
    loads = by_link(Fabric.from_graph(graph), cost.loads, cables=())
    assert loads["leaf0", "spine0"] == loads["leaf0", "spine1"] == close(12.5e6)
    del graph.nodes["d0/gpu0"]["coordinates"]
    with pytest.raises(InputError, match="d0/gpu0 states no coordinates"):
        topo.route(graph, "dor")


def test_a_link_that_failed_sends_dimension_order_the_long_way_round() -> None:
    graph = topo.fail(topo.build("torus", dims=(5, 3), bandwidth=1e9, latency=0.0), links=[("gpu0", "gpu1")])
    routes = topo.route(graph, "dor")
    assert topo.hop_counts(routes)[0, 1] == 4  # down axis 0
    assert topo.hop_counts(routes)[0, 3] == 2
    mesh = topo.fail(topo.build("torus", dims=(3, 3), wrap=False), links=[("gpu0", "gpu1")])
    routes = topo.route(mesh, "dor")
    assert topo.hop_counts(routes)[0, 1] == -1  # never back to axis 0
    assert ("gpu0", "gpu1", "no way under dor") in list(routes.unreachable())
