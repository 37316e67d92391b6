"""Do relays stand on the target's rail, whatever leaves a rail is made of?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from collectives import Flows, laws

from .shapes import racks

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def crossings(graph: nx.Graph, plan: collectives.Schedule) -> set[tuple[str, str]]:
    """Sender and receiver of every flow between domains."""
    fabric = topo.Fabric.from_graph(graph)
    labels, homes = fabric.rank_labels, fabric.rank_domain
    pairs = {(a, b) for phase in plan.phases for a, b in np.argwhere(phase.n_bytes).tolist()}
    return {(labels[a], labels[b]) for a, b in pairs if homes[a] != homes[b]}


@pytest.mark.parametrize(
    ("domains", "plain"), [(8, True), (16, True), (12, False)], ids=["a leaf", "two leaves", "shared leaves"]
)
@pytest.mark.parametrize("name", ["rail_aligned", "rail_pipelined"])
def test_rails_as_products_are_their_chunks_summed(domains: int, plain: bool, name: str) -> None:
    """Where every slot has leaves of its own no pair is listed; bytes and time are those of listing all."""
    graph = topo.load("hgx-h100-8", domains, {"scale_out.radix": 16})
    rng = np.random.default_rng(domains)
    n = 8 * domains
    product = collectives.Outer(rng.choice([0.0, 1e6, 2e6], n), rng.choice([0.0, 1.0, 3.0], n))
    for traffic in (product, collectives.Outer(np.full(n, 1e6), np.ones(n))):
        plan = collectives.schedule("all_to_all_v", graph, traffic, algorithm=name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("collectives._domains._products", lambda team: None)
            listed = collectives.schedule("all_to_all_v", graph, traffic, algorithm=name)
        assert all(isinstance(phase.traffic, Flows) for phase in listed.phases)
        assert all(isinstance(phase.traffic, tuple) for phase in plan.phases) == plain
        for one, two in zip(plan.phases, listed.phases, strict=True):
            np.testing.assert_allclose(one.n_bytes, two.n_bytes, rtol=1e-12)
        fast, slow = (collectives.cost(graph, each) for each in (plan, listed))
        np.testing.assert_allclose(fast.loads, slow.loads, rtol=1e-9)
        assert (fast.seconds, fast.latency_seconds) == pytest.approx((slow.seconds, slow.latency_seconds), rel=1e-9)
        for share in ("remote_share", "remote_share_of_sent"):
            assert getattr(fast, share) == pytest.approx(getattr(slow, share), rel=1e-9)
        assert collectives.verify(plan) == collectives.verify(listed) == []


def leaf_of(graph: nx.Graph, gpu: str) -> str:
    (leaf,) = (node for node, edge in graph[gpu].items() if edge["kind"] == "scale-out")
    return leaf


@pytest.mark.parametrize("domains", [8, 16, 12])
def test_rails_of_several_leaves(domains: int) -> None:
    """Boxes of eight, leaves of eight ports down: beyond eight boxes a rail has two leaves and crosses spines.

    With twelve the last four boxes share leaves of two slots each.
    """
    graph = topo.load("hgx-h100-8", domains, DRY | {"scale_out.radix": 16})
    plan = collectives.schedule("all_to_all", graph, domains * 8e9, algorithm="rail_aligned")
    same_leaf = {leaf_of(graph, a) == leaf_of(graph, b) for a, b in crossings(graph, plan)}
    same_slot = {a.split("/")[1] == b.split("/")[1] for a, b in crossings(graph, plan)}
    assert (same_leaf, same_slot) == {
        8: ({True}, {True}), 16: ({True, False}, {True}), 12: ({True, False}, {True, False}),
    }[domains]  # fmt: skip
    for a, b in crossings(graph, plan):
        assert leaf_of(graph, a) == leaf_of(graph, b) or a.split("/")[1] == b.split("/")[1]
    law = laws.rail_aligned_all_to_all_seconds(domains, 8, 1e9, 450e9, 50e9)
    phased = collectives.cost(graph, plan)
    if domains == 12:  # the last leaves have fewer lanes to some spines, and less to carry over them than directly
        assert "spine" in phased.bottleneck
        assert law < phased.seconds < collectives.cost(graph, "all_to_all", domains * 8e9).seconds
    else:
        assert phased.seconds == pytest.approx(law, rel=1e-12)


@pytest.mark.parametrize(("domains", "radix"), [(3, 64), (6, 4)])
def test_rail_only_fabrics(domains: int, radix: int) -> None:
    """One switch a rail, and a tree of them a rail: a plain all-to-all has no paths, a relayed one has."""
    graph = topo.build(
        "rail_only", domains=domains, domain_size=4, radix=radix, bandwidth="50 GB/s", latency="0 s",
        scale_up_bandwidth="900 GB/s", scale_up_latency="0 s",
    )  # fmt: skip
    with pytest.raises(topo.InputError, match="no path"):
        collectives.cost(graph, "all_to_all", 1e9)
    n_bytes = domains * 4 * 1e6
    for name, law in (
        ("rail_aligned", laws.rail_aligned_all_to_all_seconds(domains, 4, 1e6, 900e9, 50e9)),
        ("rail_pipelined", laws.rail_aligned_all_to_all_seconds(domains, 4, 1e6, 900e9, 50e9, pipelined=True)),
        ("hierarchical", laws.hierarchical_all_to_all_seconds(domains, 4, 1e6, 900e9, 50e9)),
    ):
        found = collectives.cost(graph, "all_to_all", n_bytes, algorithm=name)
        assert found.seconds == pytest.approx(law, rel=1e-12), name


def test_neighbouring_slots_on_one_leaf_send_themselves() -> None:
    """Two NVL72: sixteen slots a leaf, five rails; only what is for another of the five is relayed."""
    graph = topo.load("gb200-nvl72", 2, DRY)
    plan = collectives.schedule("all_to_all", graph, 144e6, algorithm="rail_aligned")
    assert {leaf_of(graph, a) == leaf_of(graph, b) for a, b in crossings(graph, plan)} == {True}
    relayed = plan.phases[0]
    assert isinstance(relayed.traffic, Flows)
    assert relayed.traffic.n_bytes.sum() == pytest.approx(144 * 72 * 1e6 - 2 * 2 * (4 * 16**2 + 8**2) / 2 * 1e6)
    found = collectives.cost(graph, plan)
    assert found.classes["scale-out"].busiest_seconds == pytest.approx(72e6 / 50e9)  # as without relays


def test_domains_with_rails_that_others_lack() -> None:
    """Three and five slots on rails of their own: what is for a missing rail is handed on in its own domain."""
    graph = racks(3, 5, rails=True)
    for name in ("rail_aligned", "rail_pipelined"):
        plan = collectives.schedule("all_to_all", graph, 8e6, algorithm=name)
        assert collectives.verify(plan) == []
        loads = collectives.cost(graph, plan).loads
        out = topo.Fabric.from_graph(graph).link_kind == topo.EDGE_KINDS.index("scale-out")
        # 15 chunks of 1 MB each way, every one over two cables of the fabric
        assert loads[out].sum() == pytest.approx(2 * 15 * 2 * 1e6)


def test_who_takes_part_relays() -> None:
    """Ranks 0 and 1 of one box, 1 and 2 of the other: only slot 1 is on both sides."""
    graph = topo.load("hgx-h100-8", 2, DRY)
    plan = collectives.schedule("all_to_all", graph, 4e6, ranks=[0, 1, 9, 10], algorithm="rail_aligned")
    assert collectives.verify(plan) == []
    ranks = {int(plan.ranks[row]) for phase in plan.phases for row in np.unique(phase.traffic.source)}
    assert ranks <= {0, 1, 9, 10}
