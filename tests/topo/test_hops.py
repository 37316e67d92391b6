"""Are hops those of a plain walk, on the class that a pair takes?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import PATH_CLASSES, Fabric, hop_counts
from topo._classes import class_graph
from topo._hops import FAR, fewest_hops, hop_histogram

from .halved import random_fabric


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_hops_are_those_of_networkx(seed: int) -> None:
    graph = random_fabric(seed)
    if topo.check(graph):
        return
    for kind in PATH_CLASSES:
        folded = class_graph(Fabric.from_graph(graph), kind)
        plain = nx.DiGraph(zip(folded.tail.tolist(), folded.head.tolist(), strict=True))
        plain.add_nodes_from(range(folded.n_nodes))
        hops = fewest_hops(folded)
        for target in range(folded.n_targets):
            away = nx.single_source_shortest_path_length(plain.reverse(), folded.n_sources + target)
            assert hops[target].tolist() == [away.get(node, FAR) for node in range(folded.n_nodes)]


@pytest.mark.parametrize(
    "graph",
    [
        topo.load("hgx-h100-8", 9), topo.build("torus", dims=(3, 4, 6)), topo.build("bridge_pairs", n=8),
        topo.build("rail_only", domains=4, domain_size=3), topo.build("hybrid_cube_mesh", pcie="16 GB/s"),
        topo.build("fat_tree", k=8),
    ],
    ids=lambda graph: str(graph.graph["name"]),
)  # fmt: skip
def test_the_histogram_counts_every_pair_once(graph: nx.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topo._hops._ROWS", 7)
    monkeypatch.setattr("topo._hops._TARGETS", 5)
    fabric = Fabric.from_graph(graph)
    hops = hop_counts(fabric)
    seen = {int(h): int((hops == h).sum()) for h in np.unique(hops) if h > 0}
    assert hop_histogram([class_graph(fabric, kind) for kind in PATH_CLASSES]) == (seen, int((hops < 0).sum()))
    assert sum(seen.values()) + int((hops < 0).sum()) == fabric.n_ranks * (fabric.n_ranks - 1)
