"""Are the folded switches alike, no fewer than can be, and is every link kept?"""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from tests.collectives.random_graphs import FAMILIES, Dice
from topo import PATH_CLASSES, Fabric
from topo._alike import fold_switches
from topo._classes import ClassGraph, class_graph
from topo._congestion import proven_bisection


def both(graph: nx.Graph, kind: str = "scale-out") -> tuple[ClassGraph, ClassGraph]:
    whole = class_graph(Fabric.from_graph(graph), kind)
    return whole, fold_switches(whole)


def through(graph: ClassGraph) -> list[int]:
    """Sizes of the transit nodes, largest last."""
    return sorted(graph.size[graph.n_sources + graph.n_targets :].tolist())


def test_spines_are_one_node_leaves_are_not() -> None:
    whole, folded = both(topo.build("leaf_spine", leaves=4, spines=2, hosts=2))
    assert through(whole) == [1] * 6
    assert through(folded) == [1, 1, 1, 1, 2]
    assert sorted(folded.members.tolist()) == [1] * 8 + [2] * 8  # 4 leaves: from and to GPUs, up and down
    assert sorted(folded.fan.tolist()) == [1] * 12 + [2] * 4  # two links up from a leaf, one down from each spine


def test_a_fat_tree_has_a_spine_per_pod_and_one_core() -> None:
    whole, folded = both(topo.build("fat_tree", k=4))
    assert len(through(whole)) == 20
    assert through(folded) == [1] * 8 + [2] * 4 + [4]


@pytest.mark.parametrize("key", ["bandwidth", "latency"])
def test_an_unequal_link_splits_what_sees_it(key: str) -> None:
    graph = topo.build("fat_tree", k=4)
    graph.edges["pod0/spine0", "core0.0"][key] *= 0.5
    _, folded = both(graph)
    # All spines 0 part from spines 1, and so do their cores; the hurt core stands alone.
    assert through(folded) == [1] * 8 + [1] * 8 + [1, 1, 2]


def test_the_planes_of_a_domain_are_alike() -> None:
    _, folded = both(topo.load("gb200-nvl72", planes=True), "scale-up")
    assert through(folded) == [18]
    assert folded.members.tolist() == [18, 18]


@pytest.mark.parametrize(("rule", "wanted"), [("paths", 2 / 3), ("even", 1 / 2), ("ecmp", 1 / 2)])
def test_alike_switches_further_on_count_as_paths(rule: str, wanted: float) -> None:
    """From s two ways lead on, one over two alike switches and one over a single slow one."""
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="gpu")
    graph.add_nodes_from(["s", "up", "down", "twin0", "twin1", "alone"], kind="switch")
    ways = ["a s", "s up", "s down", "up twin0", "up twin1", "down alone", "twin0 b", "twin1 b", "alone b"]
    for way in ways:
        graph.add_edge(*way.split(), kind="scale-up", bandwidth=1e9 if "alone" in way else 2e9, latency=0.0)
    loads = collectives.cost(graph, "all_to_all_v", [[0, 3e9], [0, 0]], routing=rule).loads
    fabric = Fabric.from_graph(graph)
    over = {fabric.link_label(i): load for i, load in enumerate(loads.tolist())}
    assert over["s -> up"] == pytest.approx(3e9 * wanted)
    assert over["up -> twin0"] == over["twin1 -> b"] == pytest.approx(3e9 * wanted / 2)


def refined(graph: ClassGraph) -> list[int]:
    """Classes by splitting until nothing splits, with counters."""
    groups = graph.n_sources + graph.n_targets
    links = list(zip(graph.tail, graph.head, graph.bandwidth, graph.latency, strict=True))
    found = [min(node, groups) for node in range(graph.n_nodes)]
    for _ in range(graph.n_nodes):
        seen = [
            (
                found[node],
                frozenset(Counter((b, c, found[head]) for tail, head, b, c in links if tail == node).items()),
                frozenset(Counter((b, c, found[tail]) for tail, head, b, c in links if head == node).items()),
            )
            for node in range(graph.n_nodes)
        ]
        found = [node if node < groups else groups + seen.index(seen[node]) for node in range(graph.n_nodes)]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_random_graphs_fold_as_far_as_they_may_and_keep_every_link(family: str) -> None:
    alike = 0
    for seed in range(12):
        graph = FAMILIES[family](Dice(seed))
        if topo.check(graph):
            continue
        for kind in PATH_CLASSES:
            whole, folded = both(graph, kind)
            assert folded.n_nodes == len(set(refined(whole)))
            assert folded.size.sum() == whole.n_nodes
            assert folded.members.sum() == len(whole.tail)
            assert (np.diff(folded.tail) >= 0).all()
            assert folded.through_link.tolist() == whole.through_link.tolist()
            assert folded.bandwidth[folded.through_edge].tolist() == whole.bandwidth[whole.through_edge].tolist()
            kept = np.unique(folded.through_edge)
            assert np.bincount(folded.through_edge)[kept].tolist() == folded.members[kept].tolist()
            assert (folded.fan == np.round(folded.fan)).all()
            alike += int(folded.n_nodes < whole.n_nodes)
    assert alike or family == "hosts"


@pytest.mark.parametrize("cells", [60_000_000, 0], ids=["pair by pair", "summed over sources"])
@pytest.mark.parametrize("family", ["designs", "levels", "switches_and_gpus"])
def test_the_proven_bisection_is_that_of_single_switches(
    family: str, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topo._congestion._CELLS", cells)
    found = 0
    for seed in range(25):
        graph = FAMILIES[family](Dice(seed))
        if topo.check(graph):
            continue
        folded = topo.route(graph)
        with monkeypatch.context() as patch:
            patch.setattr("topo._routing.fold_switches", lambda graph: graph)
            whole = topo.route(graph)
        ranks = np.arange(folded.fabric.n_ranks)
        for one, two in zip(folded.classes, whole.classes, strict=True):
            if len(ranks) > 1 and len(one.graph.tail):
                lower = proven_bisection(folded.fabric, one, ranks)
                assert lower[0] == pytest.approx(proven_bisection(whole.fabric, two, ranks)[0], rel=1e-9)
                found += lower[0] > 0 and one.graph.n_nodes < two.graph.n_nodes
    assert found
