"""Is a curve the cost at every size, and are groups alike as fast?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import topo
from collectives import Outer, cost
from serving._alike import Alike
from serving._wires import Curve, curve_of

SLOW = {"scale_out.latency": "40 us"}
RNG = np.random.default_rng(5)
SHAPE = RNG.uniform(0, 1, 24)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("all_reduce", {"algorithm": "ring"}), ("all_reduce", {"algorithm": "rabenseifner"}),
        ("all_to_all", {"algorithm": "bruck"}), ("all_gather", {"algorithm": "direct"}),
        ("send", {}), ("all_to_all_v", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pipelined", [None, True])
def test_a_curve_is_the_cost_at_any_size(kind: str, words: dict[str, Any], pipelined: bool | None) -> None:
    """Latencies of scale-out and rates of scale-up bind by turns, so that curves have several pieces."""
    routes = topo.route(topo.load("hgx-h100-8", 3, SLOW))

    def asked(size: float) -> Any:
        traffic = Outer(SHAPE * size, SHAPE[::-1]) if kind == "all_to_all_v" else size
        return cost(routes.fabric, kind, traffic, routing=routes, pipelined=pipelined, **words)

    curve = curve_of(asked, routes.fabric)
    sizes = 10 ** RNG.uniform(0, 11, 8)
    found = curve(sizes)
    costs = [asked(float(size)) for size in sizes]
    assert found.seconds == pytest.approx([one.seconds for one in costs], rel=1e-9)
    assert found.bandwidth_seconds == pytest.approx([one.bandwidth_seconds for one in costs], rel=1e-9)


def test_pieces_between_two_others_are_found() -> None:
    """A curve by hand: 3 s, then 1 + n, then 2 n: pieces meet at 2 and 1; the middle one never leads."""

    class Phase:
        repeats = 1

        def __init__(self, n: float, lines: list[tuple[float, float]]) -> None:
            at = max(lines, key=lambda line: line[0] + line[1] * n)
            self.latency_seconds, self.bandwidth_seconds = at[0], at[1] * n
            self.seconds = self.latency_seconds + self.bandwidth_seconds

    class Told:
        pipelined, loads = False, np.zeros(0)

        def __init__(self, n: float, lines: list[tuple[float, float]]) -> None:
            self.phases = (Phase(n, lines),)

    class Wired:
        bandwidth = np.ones(0)

    lines = [(5.0, 0.0), (4.0, 0.5), (3.5, 0.6), (1.0, 1.0), (0.0, 1.1)]
    asked: list[float] = []

    def probe(n: float) -> Any:
        asked.append(n)
        return Told(n, lines)

    wired: Any = Wired()
    curve: Curve = curve_of(probe, wired)
    sizes = np.linspace(0.1, 30, 500)
    assert curve(sizes).seconds == pytest.approx([max(a + b * n for a, b in lines) for n in sizes])
    assert len(asked) <= 2 * len(lines) + 1


def test_nothing_sent_takes_no_time() -> None:
    routes = topo.route(topo.load("hgx-h100-8"))
    curve = curve_of(lambda size: cost(routes.fabric, "all_reduce", size, routing=routes), routes.fabric)
    assert curve(np.array([0.0, 1e-3])).seconds.tolist() == [0.0, pytest.approx(curve(np.array([1.0])).seconds[0])]


def test_groups_alike_are_as_fast_in_any_fabric() -> None:
    small, large = (topo.route(topo.load("gb200-nvl72", n)) for n in (1, 2))
    groups = [np.arange(8), np.arange(40, 48), np.arange(80, 88)]
    keys = {Alike(large).key(group) for group in groups} | {Alike(small).key(groups[0])}
    assert len(keys) == 1
    times = [cost(large.fabric, "all_reduce", 3e6, ranks=group, routing=large).seconds for group in groups]
    times.append(cost(small.fabric, "all_reduce", 3e6, ranks=groups[0], routing=small).seconds)
    assert all(a == pytest.approx(b, rel=1e-12) for a, b in pairwise(times))


def test_groups_over_domains_or_on_a_torus_or_by_number_are_only_like_themselves() -> None:
    two = topo.route(topo.load("gb200-nvl72", 2))
    torus = topo.route(topo.build("torus", dims=(4, 4), bandwidth=1e11, latency=1e-6))
    numbered = topo.route(topo.load("hgx-h100-8"), "single")
    for routes, size in ((two, 0), (torus, 4), (numbered, 4)):
        groups = [np.arange(68, 76), np.arange(60, 76)] if not size else [np.arange(size), np.arange(size, 2 * size)]
        assert len(Alike(routes).unlike(groups)) == 2


def test_groups_joined_pair_by_pair_are_as_fast() -> None:
    mesh = topo.route(topo.load("mi300x-8", 2))
    groups = [np.array([0, 3]), np.array([4, 5]), np.array([9, 15])]
    assert len(Alike(mesh).unlike(groups)) == 1
    times = [cost(mesh.fabric, "all_reduce", 3e6, ranks=group, routing=mesh).seconds for group in groups]
    assert times == pytest.approx([times[0]] * 3, rel=1e-12)
    slower = topo.route(topo.degrade(topo.load("mi300x-8"), tuple(mesh.fabric.rank_labels[:2]), keep=0.5))
    assert len(Alike(slower).unlike([np.array([0, 1]), np.array([2, 3])])) == 2


def test_a_slower_link_makes_a_group_unlike() -> None:
    graph = topo.load("hgx-h100-8", 2)
    edge = next((a, b) for a, b, data in graph.edges(data=True) if data["kind"] == "scale-up")
    slower = topo.route(topo.degrade(graph, edge, keep=0.5))
    assert len(Alike(slower).unlike([np.arange(8), np.arange(8, 16)])) == 2
