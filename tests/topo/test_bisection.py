"""Is every bracket around the true bisection, and closed where a formula worked by hand says what it is?"""

from __future__ import annotations

from math import prod
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import Fabric, build, measure, route
from topo._bisection import parts
from topo._bisection_forms import bisection_form
from topo._congestion import proven_bisection
from topo._cuts import part_of, smallest_cut
from topo._halves import smallest_of_all
from topo._hubs import proven_by_hubs
from topo._waves import proven_by_waves

from .halved import every_half, random_fabric, random_tree

# --- every proof against every half ----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([random_fabric, random_tree]))
def test_every_bound_holds(seed: int, draw: Any) -> None:
    graph = draw(seed)
    if topo.check(graph):
        return
    routes = route(graph)
    fabric = routes.fabric
    for number, kind in enumerate(topo.PATH_CLASSES):
        for links, ranks in parts(fabric, kind):
            true, part = every_half(fabric, kind, ranks), part_of(fabric, links, ranks)
            assert smallest_cut(part) >= true * (1 - 1e-9)
            for lower in (proven_bisection(fabric, routes.classes[number], ranks)[0], proven_by_hubs(part)):
                assert lower <= true * (1 + 1e-9)
            assert proven_by_waves(part) <= true
            assert smallest_of_all(part) == (pytest.approx(true, rel=1e-9) if part.symmetric else None)
        if number == 0 and parts(fabric, kind) and len(parts(fabric, kind)) == 1:
            found = measure(routes).bisection[kind]
            assert found.lower <= true * (1 + 1e-9)
            assert found.upper >= true * (1 - 1e-9)


# The theorem on tori and meshes against every half; 15 chips are 6,435 halves.
@pytest.mark.parametrize("sides", [(3,), (7,), (3, 3), (3, 4), (3, 5), (2, 7), (2, 3, 2), (4, 4)])
@pytest.mark.parametrize("wrap", [True, False])
def test_grids(sides: tuple[int, ...], wrap: bool) -> None:
    fabric = Fabric.from_graph(build("torus", dims=sides, wrap=wrap, bandwidth=1.0))
    part = part_of(fabric, *parts(fabric, "scale-up")[0])
    form = bisection_form(part, fabric.coordinates)
    if wrap and 2 in sides:  # such sides are two lanes: no torus of equal links
        assert form is None
    else:
        assert form is not None
        assert form[0] == smallest_of_all(part)


def test_a_hand_number_of_the_theorem() -> None:
    """3 x 5 without wrap: three links across the side of 5, one more at the step. 5 x 5 torus: 2 (5 + 1)."""
    assert measure(build("torus", dims=(3, 5), wrap=False, bandwidth=1.0)).bisection["scale-up"].upper == 4
    width = measure(build("torus", dims=(5, 5), bandwidth=1.0)).bisection["scale-up"]
    assert (width.lower, width.upper, width.method) == (12, 12, "closed form: 5 x 5 torus")
    # 3 x 3 x 3: all 2^27 sides were tried once, slab by slab
    for wrap, wanted in ((True, 26), (False, 13)):
        assert measure(build("torus", dims=(3, 3, 3), wrap=wrap, bandwidth=1.0)).bisection["scale-up"].lower == wanted


# --- a form holds for the graph as it is, not for what it says it was ------------------------------------------------


def test_an_edited_torus_is_none() -> None:
    whole = build("torus", dims=(5, 5), bandwidth=1.0)
    gone = topo.fail(whole, links=[("gpu0", "gpu1")])
    slow = topo.degrade(whole, ("gpu0", "gpu1"), keep=0.5)
    by_hand = whole.copy()
    by_hand.edges["gpu3", "gpu4"]["bandwidth"] = 0.25
    moved = whole.copy()
    moved.remove_edge("gpu0", "gpu1")
    moved.add_edge("gpu0", "gpu12", kind="scale-up", bandwidth=1.0, latency=0.0)
    swapped = whole.copy()
    here, there = (swapped.nodes[node]["coordinates"] for node in ("gpu0", "gpu7"))
    swapped.nodes["gpu0"]["coordinates"], swapped.nodes["gpu7"]["coordinates"] = there, here
    for graph in (gone, slow, by_hand, moved, swapped):
        assert graph.graph["shape"]["name"] == "torus"
        width = measure(graph).bisection["scale-up"]
        assert not width.method.startswith("closed form")
        assert width.lower <= 12
    assert measure(gone).bisection["scale-up"].upper == 11
    assert measure(slow).bisection["scale-up"].upper == 11.5


def test_a_scaled_torus_is_still_one() -> None:
    twice = topo.scale(build("torus", dims=(5, 5), bandwidth=1.0), kind="scale-up", bandwidth=2.0)
    assert measure(twice).bisection["scale-up"].lower == 24


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_less_bandwidth_never_gives_more_bisection(seed: int) -> None:
    graph = random_tree(seed)
    if topo.check(graph):
        return
    before = measure(graph).bisection["scale-out"]
    slower = graph.copy()
    edge = list(graph.edges)[seed % graph.number_of_edges()]
    slower.edges[edge]["bandwidth"] *= 0.5
    after = measure(slower).bisection["scale-out"]
    assert before.exact
    assert after.lower <= before.upper * (1 + 1e-9)
    assert after.upper <= before.upper * (1 + 1e-9) or not after.exact


# --- closed forms of every builder, in links of one ------------------------------------------------------------------


def tree(k: int, *ups: int) -> float:
    """Half of the k^levels / 2^(levels - 1) GPUs, narrowed at every level to `ups` of k/2."""
    half = k // 2
    return half ** (1 + len(ups)) * prod(up / half for up in ups)


def odd_leaves(leaves: int, hosts: int, up: int) -> int:
    """Whole leaves on one side, uplinks of the lesser part cut; of the odd leaf half the hosts."""
    return leaves // 2 * min(up, hosts) + (hosts // 2 if leaves % 2 else 0)


FORMS: list[tuple[str, dict[str, Any], str, float]] = [
    *(("switched", {"n": n, "planes": p}, "scale-up", n // 2) for n, p in ((2, 1), (7, 3), (72, 18))),
    *(("full_mesh", {"n": n}, "scale-up", (n // 2) * (n - n // 2) / (n - 1)) for n in (2, 5, 8, 13)),
    *(("ring", {"n": n}, "scale-up", 2) for n in (2, 3, 8, 101)),
    *(("hypercube", {"dim": d}, "scale-up", 2 ** (d - 1)) for d in (1, 3, 6)),
    ("torus", {"dims": (4, 6, 2)}, "scale-up", 2 * 48 // 6),
    ("torus", {"dims": (4, 4, 8)}, "scale-up", 2 * 128 // 8),
    ("torus", {"dims": (4, 8), "bandwidth": [1.0, 5.0]}, "scale-up", 16),  # 2 x 8 thin links, not 2 x 4 of 5
    ("torus", {"dims": (6, 5), "wrap": [False, True]}, "scale-up", 5),
    ("torus", {"dims": (7, 5, 3), "wrap": False}, "scale-up", 15 + 3 + 1),
    ("torus", {"dims": (9, 7)}, "scale-up", 2 * (7 + 1)),
    ("ultraserver", {"bandwidth": (2.0, 2.0, 1.0)}, "scale-up", 2 * 16),
    ("hybrid_cube_mesh", {}, "scale-up", 6),
    ("two_level", {}, "scale-up", 192 * 14),
    ("two_level", {"nodes": 6, "l2": 4}, "scale-up", 3 * 7 * 4),
    *(("fat_tree", {"k": k}, "scale-out", tree(k, k // 2, k // 2)) for k in range(4, 17, 2)),
    *(("fat_tree", {"k": k, "levels": 2}, "scale-out", tree(k, k // 2)) for k in (2, 6, 16)),
    *(("fat_tree", {"k": 16, "oversubscription": (8 / a, 8 / b)}, "scale-out", tree(16, a, b))
      for a, b in ((8, 4), (4, 8), (4, 2), (2, 2))),
    *(("leaf_spine", {"leaves": n, "spines": 3, "hosts": m, "lanes": k}, "scale-out", odd_leaves(n, m, 3 * k))
      for n, m, k in ((4, 6, 2), (5, 6, 2), (8, 12, 2), (7, 12, 1), (9, 16, 2), (2, 4, 4))),
    ("rail_optimised", {"domains": 4, "domain_size": 8, "radix": 8}, "scale-out", 16),
    ("rail_optimised", {"domains": 16, "domain_size": 8, "radix": 8}, "scale-out", 64),
    ("rail_optimised", {"domains": 32, "domain_size": 8, "oversubscription": 2.0}, "scale-out", 64),
    ("rail_only", {"domains": 4, "domain_size": 8, "scale_up_bandwidth": 9.0}, "scale-up", 36),
    ("rail_only", {"domains": 4, "domain_size": 8}, "scale-out", 0),
    ("rail_only", {"domains": 4, "domain_size": 1}, "scale-out", 2),
    ("rail_only", {"domains": 4, "domain_size": 3}, "scale-out", 2),  # a rail each, the third in halves
    ("multi_plane_fat_tree", {"planes": 2, "k": 4}, "scale-out", 0),
    ("multi_plane_fat_tree", {"planes": 1, "k": 8}, "scale-out", tree(8, 4)),
    *(("hyperx", {"dims": d, "hosts": h, "lanes": k}, "scale-out", min(prod(d) * h / 2, prod(d) * min(d) * k / 4))
      for d, h, k in (((4, 4), 1, 1), ((4, 4), 8, 1), ((6, 4), 9, 2), ((8,), 3, 1))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "parameters", "kind", "wanted"), FORMS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_closed_forms(shape: str, parameters: dict[str, Any], kind: str, wanted: float) -> None:
    width = measure(build(shape, **{"bandwidth": 1.0} | parameters)).bisection[kind]
    assert (width.lower, width.upper) == (pytest.approx(wanted, rel=1e-9), pytest.approx(wanted, rel=1e-9))
    assert width.exact


# 16 x 72 at radix 64: 36 leaves, 32 uplinks each over 18 spines, two lanes to some and one to others
def test_uplinks_that_do_not_divide_cost_bisection() -> None:
    width = measure(topo.load("gb200-nvl72", 16)).bisection["scale-out"]
    assert (width.method, width.upper) == ("exact: every half tried", 520 * 50e9)


def test_a_bracket_says_so() -> None:
    width = measure(build("dragonfly", a=4, p=2, h=2, bandwidth=1.0)).bisection["scale-out"]
    assert width.method.startswith("bracket")
    assert width.lower < width.upper <= 22
    assert width.lower == int(width.lower)  # a cut is a whole number of equal links


# --- hosts with NICs -------------------------------------------------------------------------------------------------


def test_bracket_holds_on_hosts_with_nics() -> None:
    graph = nx.Graph()
    graph.add_node("sl", kind="switch", tier="leaf")
    for h in range(2):
        graph.add_node(f"c{h}", kind="cpu", host=f"h{h}")
        graph.add_node(f"n{h}", kind="nic", host=f"h{h}")
        for i in range(2):
            graph.add_node(f"g{h}.{i}", kind="gpu", host=f"h{h}")
            graph.add_edge(f"g{h}.{i}", f"c{h}", kind="pcie", bandwidth=4.0, latency=0.0)
        graph.add_edge(f"c{h}", f"n{h}", kind="pcie", bandwidth=4.0, latency=0.0)
        graph.add_edge(f"n{h}", "sl", kind="scale-out", bandwidth=3.0, latency=0.0)
    found = measure(graph)
    assert found.bisection["scale-out"].upper == every_half(Fabric.from_graph(graph), "scale-out", np.arange(4)) == 3.0
    assert found.bisection["scale-out"].exact
    assert (found.bisection["pcie"].upper, found.bisection["pcie"].ranks) == (4.0, 2)


@pytest.mark.parametrize("seed", range(30))
def test_sums_over_sources_prove_less_but_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_fabric(seed)
    if topo.check(graph):
        return
    routes = route(graph)
    for number, kind in enumerate(topo.PATH_CLASSES):
        for _, ranks in parts(routes.fabric, kind):
            full, _ = proven_bisection(routes.fabric, routes.classes[number], ranks)
            with monkeypatch.context() as patch:
                patch.setattr("topo._congestion._CELLS", 0)
                rough, how = proven_bisection(routes.fabric, routes.classes[number], ranks)
            assert rough <= full * (1 + 1e-9)
            assert full == 0 or "summed" in how
