"""Do routes take the fewest hops and split by capacity?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import topo
from topo import Fabric, InputError, hop_counts, route


def test_two_hops_in_a_rack() -> None:
    for planes in (False, True):
        hops = hop_counts(topo.load("gb200-nvl72", planes=planes))
        assert hops.shape == (72, 72)
        assert (hops == 2 - 2 * np.eye(72)).all()


def test_four_hops_across_racks_two_on_the_same_leaf() -> None:
    """Slot i is on leaf i // 16: the same leaf is two hops away, any other four."""
    hops = hop_counts(topo.load("gb200-nvl72", 2))
    leaf = np.arange(72) // 16
    assert (hops[:72, 72:] == np.where(leaf[:, None] == leaf, 2, 4)).all()
    assert (hops == hops.T).all()


def test_six_hops_over_three_levels() -> None:
    overrides = {"design.domain_size": 4, "design.gpus_per_host": 4, "scale_out.radix": 8}
    hops = hop_counts(topo.load("hgx-h100-8", 32, overrides))
    assert set(hops[0].tolist()) == {0, 2, 4, 6}


def test_one_hop_in_a_full_mesh() -> None:
    assert (hop_counts(topo.load("mi300x-8")) == 1 - np.eye(8)).all()


def test_minus_one_where_no_path_leads() -> None:
    graph = topo.load("hgx-h100-8").to_directed()
    graph.remove_edge("d0/switch", "d0/gpu3")
    hops = hop_counts(graph)
    assert hops[0, 3] == -1
    assert hops[3, 0] == 2
    assert hops[3, 3] == 0


def test_hops_agree_with_networkx_where_every_node_passes() -> None:
    graph = nx.Graph()
    mesh = nx.grid_2d_graph(4, 5)
    for a in mesh:
        graph.add_node(str(a), kind="gpu", forwards=True)
    for a, b in mesh.edges:
        graph.add_edge(str(a), str(b), kind="scale-up", bandwidth=1e9, latency=0.0)
    hops, labels = hop_counts(graph), Fabric.from_graph(graph).rank_labels
    for source, lengths in nx.all_pairs_shortest_path_length(graph):
        for target, length in lengths.items():
            assert hops[labels.index(source), labels.index(target)] == length


def test_shares_follow_the_capacity_of_the_next_edges() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], kind="gpu")
    for switch, (up, down) in {"s": (1e9, 5e9), "t": (2e9, 1e6), "u": (5e9, 1e9)}.items():
        graph.add_node(switch, kind="switch")
        graph.add_edge("a", switch, kind="scale-up", bandwidth=up, latency=0.0)
        graph.add_edge(switch, "b", kind="scale-up", bandwidth=down, latency=0.0)
    routed = route(graph).classes[0]
    shares = routed.share[routed.graph.target_group[1], routed.graph.source_edge[0]]
    assert sorted(shares) == pytest.approx([1 / 8, 2 / 8, 5 / 8])  # downstream capacity is not seen


@pytest.mark.parametrize("name", ["gb200-nvl72", "mi300x-8"])
@pytest.mark.parametrize("domains", [1, 3])
def test_shares_add_up_to_one_at_every_node_on_the_way(name: str, domains: int) -> None:
    for routed in route(topo.load(name, domains, planes=name.startswith("gb"))).classes:
        if not len(routed.graph.tail):
            continue
        total = np.zeros(routed.hops.shape)
        for target in range(len(total)):
            np.add.at(total[target], routed.graph.tail, routed.share[target])
        on_the_way = (routed.hops > 0) & (routed.hops < np.iinfo(routed.hops.dtype).max)
        assert total[on_the_way] == pytest.approx(1.0)
        assert not total[~on_the_way].any()


def test_routes_say_their_rule() -> None:
    routes = route(topo.load("hgx-h100-8", 2))
    assert routes.rule == "ecmp"
    assert repr(routes).startswith("Routes(ecmp, Fabric(hgx-h100-8: 16 ranks in 2 domains")
    assert np.diag(routes.pair_class).tolist() == [-2] * 16
    assert hop_counts(routes).tolist() == hop_counts(routes.fabric).tolist()


def test_unknown_rule_suggests() -> None:
    with pytest.raises(InputError, match="Did you mean 'ecmp'") as caught:
        route(topo.load("hgx-h100-8"), "ecpm")
    assert caught.value.faults[0].place == "routing"


def test_routes_know_what_was_asked_and_of_what() -> None:
    fabric = Fabric.from_graph(topo.load("hgx-h100-8"))
    for rule in ("ecmp", "single", topo.Hash(3, 2)):
        routes = route(fabric, rule)
        assert (routes.asked, routes.given) == (rule, fabric)
        faster = route(topo.scale(routes.given, kind="scale-up", bandwidth=2.0), routes.asked)
        assert (faster.fabric.bandwidth == 2 * routes.fabric.bandwidth).all()
        assert faster.rule == routes.rule
        assert route(fabric, routes) is routes
    with pytest.raises(InputError, match="is for another topology"):
        route(topo.load("hgx-a100-8"), route(fabric, "single"))


def test_too_much_to_route_or_to_write_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = topo.load("gb200-nvl72", 2)
    routes = route(graph)
    monkeypatch.setattr("topo._routing.MOST_RANKS", 100)
    with pytest.raises(InputError, match="more pairs than those of the 100 ranks"):
        hop_counts(routes)
    some = np.arange(100)
    assert set(routes.class_between(some[:, None], some).flat) == {-2, 0, 2}
    monkeypatch.setattr("topo._routing.MOST_CELLS", 20)
    with pytest.raises(InputError, match="shares of traffic, more than the 20"):
        route(graph)


def test_pairs_one_by_one_are_the_whole() -> None:
    """GPU 2 of the second host is off NVLink: its pairs inside the host fall through."""
    routes = route(topo.fail(topo.load("hgx-h100-8", 3), links=[("d1/gpu2", "d1/switch")]))
    source, target = np.random.default_rng(0).integers(0, 24, (2, 50))
    assert (routes.class_between(source, target) == routes.pair_class[source, target]).all()
    fallen = set(zip(*(ends.tolist() for ends in routes.fallen), strict=True))
    assert fallen == {(a, b) for i in range(8) for a, b in ((8 + i, 10), (10, 8 + i)) if i != 2}
