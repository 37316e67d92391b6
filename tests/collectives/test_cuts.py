"""Is a bound the worst of all cuts, on graphs small enough to try them all?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest

from collectives import lower_bound

from .bounded import gpus_of


def small(seed: int) -> nx.Graph:
    """A connected graph of up to five GPUs and three switches, each direction with a bandwidth of its own."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    nodes = [f"gpu{i}" for i in range(rng.integers(2, 6))] + [f"switch{i}" for i in range(rng.integers(0, 4))]
    for node in nodes:
        graph.add_node(node, kind=node[:-1])
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes[:i]):
            if j == i - 1 or rng.random() < 0.4:
                for ends in ((a, b), (b, a)):
                    graph.add_edge(*ends, kind="scale-up", bandwidth=float(rng.integers(1, 6)), latency=0.0)
    return graph


def cuts(graph: nx.DiGraph) -> Iterator[tuple[int, int, float]]:
    """Yield ranks inside, ranks outside and bandwidth outward of every set of nodes."""
    for k in range(1, len(graph)):
        for inside in map(set, itertools.combinations(graph, k)):
            ranks = sum(node.startswith("gpu") for node in inside)
            out = sum(d["bandwidth"] for a, b, d in graph.edges(data=True) if a in inside and b not in inside)
            yield ranks, len(gpus_of(graph)) - ranks, out


@pytest.mark.parametrize("seed", range(8))
def test_collectives_equal_the_worst_of_all_cuts(seed: int) -> None:
    graph = small(seed)
    p, found = len(gpus_of(graph)), list(cuts(graph))
    worst = max(s / b for s, t, b in found if t and s)
    assert lower_bound(graph, "all_gather", float(p), scope="any").seconds == pytest.approx(worst, rel=1e-9)
    worst = max(t / b for s, t, b in found if s and t)
    assert lower_bound(graph, "reduce_scatter", float(p), scope="any").seconds == pytest.approx(worst, rel=1e-9)
    worst = max(1 / b for s, t, b in found if s and t)
    for node in graph:
        graph.nodes[node].update(reduces=True, multicasts=True)
    if all(node.startswith("gpu") for node in graph):  # no switch to reduce: 2 (p-1) messages share all links
        worst = max(worst, 2 * (p - 1) / sum(data["bandwidth"] for _, _, data in graph.edges(data=True)))
    assert lower_bound(graph, "all_reduce", 1.0, scope="any").seconds == pytest.approx(worst, rel=1e-9)
    broadcast = lower_bound(graph, "broadcast", 1.0, scope="any").seconds
    flows = (nx.maximum_flow_value(graph, "gpu0", node, "bandwidth") for node in gpus_of(graph)[1:])
    assert broadcast == pytest.approx(1 / min(flows), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_all_to_all_is_never_below_any_cut(seed: int) -> None:
    graph = small(seed)
    bound = lower_bound(graph, "all_to_all", float(len(gpus_of(graph))), scope="any")
    assert bound.seconds >= max(s * t / b for s, t, b in cuts(graph) if s and t) * (1 - 1e-9)
