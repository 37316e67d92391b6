"""Does folding twins change anything? Loads and times against walking every path of every flow."""

from __future__ import annotations

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import collectives
import topo
from collectives._loads import phase_loads
from topo import Fabric, InputError

from .brute import evaluate, path_class, paths
from .random_graphs import FAMILIES, Dice, shuffled, traffic

RTOL = 1e-9


def link_loads(graph: nx.Graph, loads: np.ndarray) -> dict[tuple[str, str], float]:
    fabric = Fabric.from_graph(graph)
    ends = zip(fabric.source, fabric.target, loads.tolist(), strict=True)
    return {(fabric.labels[a], fabric.labels[b]): load for a, b, load in ends}


def gpus_of(graph: nx.Graph) -> list[str]:
    return [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]


def close(value: float) -> object:
    return pytest.approx(value, rel=RTOL, abs=0.0)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_cost_is_what_walking_every_path_gives(family: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    if dice.yes(0.5):
        graph = shuffled(graph, dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, gpus_of(graph))
    flows = {(a, b): matrix[i][j] for i, a in enumerate(ranks) for j, b in enumerate(ranks)}
    assume(any(flows.values()))
    slow = evaluate(graph, flows)
    if slow.unreachable:
        with pytest.raises(InputError, match=f"no path for {len(slow.unreachable)} pairs"):
            collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks)
        flows = {pair: 0.0 if pair in slow.unreachable else n for pair, n in flows.items()}
        matrix = [[flows[a, b] for b in ranks] for a in ranks]
        assume(any(flows.values()))
    fast = collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks)
    loads = link_loads(graph, fast.loads)
    assert {link: load for link, load in loads.items() if load} == {k: close(v) for k, v in slow.loads.items() if v}
    assert fast.seconds == close(slow.seconds)
    assert fast.bottleneck_kind != "path" or slow.path_seconds == close(slow.seconds)
    assert fast.latency_seconds + fast.bandwidth_seconds == close(slow.seconds)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_product_costs_what_its_matrix_does(family: str, seed: int) -> None:
    """Outer traffic is summed by groups and never written out; that changes nothing."""
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, _ = traffic(dice, gpus_of(graph))
    sent, received = (np.array([dice.choice([0.0, 1e6, 3e6, 3e6]) for _ in ranks]) for _ in range(2))
    assume(sent.any() and received.any())
    block = dice.choice([None, np.array([dice.randint(0, 2) for _ in ranks])])
    product = collectives.Outer(sent, received / 1e3, block)
    assume(product.matrix.any())
    routes = topo.route(graph)
    try:
        plain = collectives.cost(graph, "all_to_all_v", product.matrix, ranks=ranks, routing=routes)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            collectives.cost(graph, "all_to_all_v", product, ranks=ranks, routing=routes)
        return
    folded = collectives.cost(graph, "all_to_all_v", product, ranks=ranks, routing=routes)
    np.testing.assert_allclose(folded.loads, plain.loads, rtol=RTOL, atol=0.0)
    for field in ("seconds", "latency_seconds", "bandwidth_seconds", "busbw"):
        assert getattr(folded, field) == close(getattr(plain, field))
    assert folded.remote_share == pytest.approx(plain.remote_share, rel=RTOL, abs=1e-12)
    assert folded.bottleneck_kind == plain.bottleneck_kind


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_list_of_flows_costs_what_its_matrix_does(family: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, rows = traffic(dice, gpus_of(graph))
    matrix = np.array(rows)
    np.fill_diagonal(matrix, 0.0)
    assume(matrix.any())
    plain = collectives.schedule("all_to_all_v", graph, matrix, ranks=ranks)
    source, target = np.nonzero(matrix)
    flows = collectives.Flows(source, target, matrix[source, target], len(ranks))
    np.testing.assert_array_equal(flows.matrix, matrix)
    listed = replace(plain, phases=(collectives.Phase(flows),))
    try:
        slow = collectives.cost(graph, plain)
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            collectives.cost(graph, listed)
        return
    fast = collectives.cost(graph, listed)
    np.testing.assert_allclose(fast.loads, slow.loads, rtol=RTOL, atol=0.0)
    assert (fast.seconds, fast.remote_share) == (close(slow.seconds), close(slow.remote_share))
    assert (fast.bottleneck, fast.assumptions) == (slow.bottleneck, slow.assumptions)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_hops_and_classes_are_those_of_walking(family: str, seed: int) -> None:
    graph = FAMILIES[family](Dice(seed))
    assume(not topo.check(graph))
    routes = topo.route(graph)
    hops, labels = topo.hop_counts(routes), routes.fabric.rank_labels
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            if a != b:
                walked = paths(graph, a, b)
                assert hops[i, j] == (len(walked[0][0]) if walked else -1)
                kind = int(routes.pair_class[i, j])
                assert (topo.PATH_CLASSES[kind] if kind >= 0 else None) == path_class(graph, a, b)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_bytes_are_conserved_at_every_node(family: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, gpus_of(graph))
    sent = np.array(matrix)
    np.fill_diagonal(sent, 0.0)
    joined = np.array([[bool(i == j or paths(graph, a, b)) for j, b in enumerate(ranks)] for i, a in enumerate(ranks)])
    sent[~joined] = 0.0
    assume(sent.any())
    loads = link_loads(graph, collectives.cost(graph, "all_to_all_v", sent, ranks=ranks).loads)
    balance = dict.fromkeys(graph, 0.0)
    for (a, b), load in loads.items():
        balance[a] -= load
        balance[b] += load
    for i, rank in enumerate(ranks):
        balance[rank] += float(sent[i].sum() - sent[:, i].sum())
    assert max(map(abs, balance.values())) <= 1e-9 * sent.sum()


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_names_and_order_of_nodes_change_nothing(family: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, gpus_of(graph))
    matrix = [
        [n if a == b or paths(graph, a, b) else 0.0 for b, n in zip(ranks, row, strict=True)]
        for a, row in zip(ranks, matrix, strict=True)
    ]
    assume(any(map(any, matrix)))
    names = list(graph)
    renamed = dict(zip(names, dice.sample([f"n{i}" for i in range(len(names))], len(names)), strict=True))
    other = nx.relabel_nodes(shuffled(graph, dice), renamed)
    here = collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks)
    there = collectives.cost(other, "all_to_all_v", matrix, ranks=[renamed[rank] for rank in ranks])
    assert there.seconds == pytest.approx(here.seconds, rel=1e-12)
    mine, its = link_loads(graph, here.loads), link_loads(other, there.loads)
    for (a, b), load in mine.items():
        assert its[renamed[a], renamed[b]] == pytest.approx(load, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), factor=st.sampled_from([0.25, 2.0, 3.0]))
def test_scaling_with_zero_latency(seed: int, factor: float) -> None:
    dice = Dice(seed)
    graph = FAMILIES["designs"](dice)
    nx.set_edge_attributes(graph, 0.0, "latency")
    ranks, matrix = traffic(dice, gpus_of(graph))
    sent = np.array(matrix)
    np.fill_diagonal(sent, 0.0)
    assume(sent.any())
    once = collectives.cost(graph, "all_to_all_v", sent, ranks=ranks)
    more = collectives.cost(graph, "all_to_all_v", factor * sent, ranks=ranks)
    assert more.seconds == close(factor * once.seconds)
    assert more.loads == close(factor * once.loads)
    for _, _, data in graph.edges(data=True):
        data["bandwidth"] *= factor
    assert collectives.cost(graph, "all_to_all_v", sent, ranks=ranks).seconds == close(once.seconds / factor)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), extra=st.floats(1e-7, 1.0))
def test_latency_of_every_link_adds_per_hop(seed: int, extra: float) -> None:
    dice = Dice(seed)
    size = dice.randint(2, 8)
    overrides = {"design.domain_size": size, "design.gpus_per_host": size, "scale_up.latency": "0 s"}
    graph = topo.load("hgx-h100-8", overrides=overrides)
    ranks, matrix = traffic(dice, gpus_of(graph))
    sent = np.array(matrix)
    np.fill_diagonal(sent, 0.0)
    assume(sent.any())
    bare = collectives.cost(graph, "all_to_all_v", sent, ranks=ranks)
    nx.set_edge_attributes(graph, extra, "latency")
    late = collectives.cost(graph, "all_to_all_v", sent, ranks=ranks)
    assert late.seconds == close(bare.seconds + 2 * extra)
    assert late.latency_seconds == close(2 * extra)
    assert late.bandwidth_seconds == close(bare.bandwidth_seconds)


@pytest.mark.parametrize("design", ["hgx-a100-8", "hgx-h100-8", "hgx-b200-8", "gb200-nvl72"])
def test_unfolded_planes_cost_the_same(design: str) -> None:
    one = {"design.domain_size": 8}
    folded = collectives.cost(topo.load(design, 2, one), "all_to_all", 16e6)
    unfolded = collectives.cost(topo.load(design, 2, one, planes=True), "all_to_all", 16e6)
    assert unfolded.seconds == close(folded.seconds)
    assert unfolded.classes["scale-up"].n_bytes == close(folded.classes["scale-up"].n_bytes)
    assert unfolded.classes["scale-up"].busiest_seconds == close(folded.classes["scale-up"].busiest_seconds)


def test_one_phase_of_a_hand_sized_graph() -> None:
    """Two GPUs, two switches of 1 and 3 GB/s: 4 GB split 1 : 3, one second each and two hops."""
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="gpu")
    graph.add_nodes_from(["s", "t"], kind="switch")
    for gpu in "ab":
        graph.add_edge(gpu, "s", kind="scale-up", bandwidth=1e9, latency=0.25)
        graph.add_edge(gpu, "t", kind="scale-up", bandwidth=3e9, latency=0.5)
    cost = collectives.cost(graph, "all_to_all_v", [[0, 4e9], [0, 0]])
    loads = link_loads(graph, cost.loads)
    assert loads["a", "s"] == loads["s", "b"] == close(1e9)
    assert loads["a", "t"] == loads["t", "b"] == close(3e9)
    assert loads["b", "s"] == loads["s", "a"] == 0.0
    assert cost.seconds == close(2.0)  # over t: 2 x 0.5 + 1.0


def test_least_latency_counts_only_flows_over_the_link() -> None:
    """A near flow on a busy link lowers the link's start: load / bandwidth + least latency."""
    graph = nx.DiGraph()
    graph.add_nodes_from(["far", "near", "end"], kind="gpu")
    graph.add_node("s", kind="switch")
    graph.add_edge("far", "s", kind="scale-up", bandwidth=1e12, latency=1.0)
    graph.add_edge("near", "s", kind="scale-up", bandwidth=1e12, latency=0.1)
    graph.add_edge("s", "end", kind="scale-up", bandwidth=1e9, latency=0.0)
    ranks = ["far", "near", "end"]
    both = collectives.cost(graph, "all_to_all_v", [[0, 0, 1e9], [0, 0, 1e9], [0, 0, 0]], ranks=ranks)
    assert both.seconds == close(2.1)  # the link: 2 GB at 1 GB/s after 0.1 s; far's own path: 1 + 1
    assert both.bottleneck == "s -> end"
    late = collectives.cost(graph, "all_to_all_v", [[0, 0, 1.2e9], [0, 0, 1e6], [0, 0, 0]], ranks=ranks)
    assert late.seconds == close(2.2)  # far's own path: 1 + 1.2, the link 0.1 + 1.201
    assert (late.bottleneck, late.bottleneck_kind) == ("far => end", "path")


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_folding_alike_switches_changes_nothing(family: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    rule = dice.choice(["ecmp", "even", "paths"])
    folded = topo.route(graph, rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topo._routing.fold_switches", lambda whole: whole)
        whole = topo.route(graph, rule)
    assert (folded.pair_class == whole.pair_class).all()
    assert (topo.hop_counts(folded) == topo.hop_counts(whole)).all()
    ranks, matrix = traffic(dice, gpus_of(graph))
    sent = np.where(folded.pair_class[np.ix_(*[folded.fabric.rank_numbers(ranks)] * 2)] >= 0, matrix, 0.0)
    assume(sent.any())
    one, two = (phase_loads(routes, routes.fabric.rank_numbers(ranks), sent) for routes in (folded, whole))
    np.testing.assert_allclose(one.loads, two.loads, rtol=RTOL, atol=0.0)
    np.testing.assert_allclose(one.least_latency, two.least_latency, rtol=RTOL, atol=0.0)
    assert one.path.seconds == close(two.path.seconds)


#: Shapes with several end points a switch, for rules that go by places.
PLACED = {
    "dor": ("hyperx", {"dims": (3, 2), "hosts": 3, "lanes": [1, 2]}),
    "dragonfly": ("dragonfly", {"a": 3, "p": 2, "h": 1}),
}


@pytest.mark.parametrize("rule", [name for name, rule in topo.RULES.items() if rule.alike or name in PLACED])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_folding_ranks_and_switches_changes_nothing(rule: str, seed: int) -> None:
    """Every rule that folds, on graphs with failed and uneven links and loads, against one node for every role."""
    dice = Dice(seed)
    shape, parameters = PLACED.get(rule, ("", {}))
    graph = topo.build(shape, **parameters) if shape else FAMILIES[dice.choice(list(FAMILIES))](dice)
    assume(not topo.check(graph))
    links = [(a, b) for a, b in graph.edges if "gpu" not in (graph.nodes[a]["kind"], graph.nodes[b]["kind"])]
    graph = topo.fail(graph, links=dice.sample(links, min(len(links), dice.choice([0, 1, 2]))))
    for a, b in dice.sample(list(graph.edges), dice.choice([0, 1, 3])) if shape else ():
        graph.edges[a, b][dice.choice(["bandwidth", "latency"])] *= 0.5
    assume(not topo.check(graph))
    folded = topo.route(graph, rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(topo.RULES, rule, replace(topo.RULES[rule], folds=lambda fabric: False, alike=False))
        whole = topo.route(graph, rule)
    assert all((c.graph.members == 1).all() and not c.graph.source_edge.size for c in whole.classes)
    assert (folded.pair_class == whole.pair_class).all()
    assert (topo.hop_counts(folded) == topo.hop_counts(whole)).all()
    labels, matrix = traffic(dice, gpus_of(graph))
    ranks = folded.fabric.rank_numbers(labels)
    joined = folded.pair_class[np.ix_(ranks, ranks)] >= 0
    sent = np.where(joined, matrix, 0.0)
    flows: list[np.ndarray | collectives.Outer] = [sent]
    if joined[~np.eye(len(ranks), dtype=bool)].all():
        flows.append(
            collectives.Outer(np.array([dice.choice([0.0, 2.0, 2.0]) for _ in ranks]), sent.max(initial=1, axis=0))
        )
    for one in flows:
        a, b = (phase_loads(routes, ranks, one) for routes in (folded, whole))
        np.testing.assert_allclose(a.loads, b.loads, rtol=RTOL, atol=0.0)
        np.testing.assert_allclose(a.least_latency, b.least_latency, rtol=RTOL, atol=0.0)
        assert a.path.seconds == close(b.path.seconds)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_work_in_small_runs_and_compiled_gives_the_same(family: str, seed: int) -> None:
    """What does not fit at once is worked on in runs of ranks; long loops are compiled."""
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, _ = traffic(dice, gpus_of(graph))
    product = collectives.Outer(np.full(len(ranks), 2e6), np.array([dice.choice([0.0, 0.5, 1.0]) for _ in ranks]))
    routes = topo.route(graph)
    numbers = routes.fabric.rank_numbers(ranks)
    pairs = routes.pair_class[np.ix_(numbers, numbers)]
    assume((pairs >= 0).any() and not (pairs == -1).any())
    one = phase_loads(routes, numbers, product)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collectives._traffic.CELLS", 7)
        patch.setattr("topo._paths.MUCH", 0)
        patch.setattr("collectives._flows.MUCH", 0)
        two = phase_loads(topo.route(graph), numbers, product)
    np.testing.assert_allclose(one.loads, two.loads, rtol=RTOL, atol=0.0)
    np.testing.assert_allclose(one.least_latency, two.least_latency, rtol=RTOL, atol=0.0)
    assert one.path.seconds == close(two.path.seconds)


def test_a_product_over_planes_that_do_not_meet_is_refused_with_the_pairs_counted() -> None:
    """Rails: 3 domains x 4 slots; only ranks of one domain or one slot are joined."""
    graph = topo.build("rail_only", domains=3, domain_size=4, latency="1 us")
    with pytest.raises(InputError, match=r"no path for 72 pairs of ranks, the first d0/gpu0 to d1/gpu1"):
        collectives.cost(graph, "all_to_all", 1e9)  # 12 x (11 - 3 - 2)
    one_rail = [f"d{d}/gpu2" for d in range(3)]
    assert collectives.cost(graph, "all_to_all", 3e9, ranks=one_rail).seconds == close(2e9 / 50e9 + 2e-6)
