"""Is the best split over all paths found, and does folding by symmetry lose nothing?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

import topo
from collectives import lower_bound
from collectives._concurrent_flow import Demand, best_prices, class_networks, time_at, whole_network
from collectives._symmetry import Classes, classes_of
from topo import Fabric

from .bounded import SHAPES, gpus_of
from .brute import _next, path_class
from .random_graphs import FAMILIES, Dice, traffic

Link = tuple[str, str]


def by_paths(graph: nx.Graph, flows: Mapping[Link, float], free: bool) -> float:
    """Return the least time when every flow may split over all its simple paths."""
    columns, pair_of = [], []
    for number, (a, b) in enumerate(flows):
        kind = None if free else path_class(graph, a, b)
        for path in _simple(graph, b, kind, (a, None, False), ()):
            columns.append(path)
            pair_of.append(number)
    edges = list(graph.to_directed().edges)
    wide = graph.to_directed().edges
    at_most = np.zeros((len(edges), len(columns) + 1))
    equal = np.zeros((len(flows), len(columns) + 1))
    for j, path in enumerate(columns):
        for link in path:
            at_most[edges.index(link), j] += 1 / wide[link]["bandwidth"] * 1e9
        equal[pair_of[j], j] = 1.0
    at_most[:, -1] = -1.0
    goal = np.zeros(len(columns) + 1)
    goal[-1] = 1.0
    sizes = np.array(list(flows.values()))
    found = linprog(goal, at_most, np.zeros(len(edges)), equal, sizes / sizes.max())
    return float(found.fun) * sizes.max() / 1e9


def _simple(graph: nx.Graph, target: str, kind: str | None, state: tuple, seen: tuple) -> Iterator[list[Link]]:
    """Yield the links of every walk that stands nowhere twice in the same state."""
    if state[0] == target:
        yield []
        return
    if kind is None:
        onward: Iterator[tuple] = ((node, None, False) for node in graph[state[0]])
    else:
        onward = _next(graph, kind, state)
    for after in onward:
        if after != state and after not in seen:
            for rest in _simple(graph, target, kind, after, (*seen, state)):
                yield [(state[0], after[0]), *rest]


def few_links(family: str, count: int) -> Iterator[tuple[nx.Graph, list[str], list[list[float]], dict[Link, float]]]:
    """Yield graphs of up to 14 links without latency, ranks, matrix and flows between ranks that paths join."""
    for seed in itertools.count():
        dice = Dice(seed)
        graph = FAMILIES[family](dice)
        for _, _, data in graph.edges(data=True):
            data["latency"] = 0.0
        if graph.number_of_edges() > 14 or topo.check(graph):
            continue
        ranks, matrix = traffic(dice, gpus_of(graph))
        pairs = itertools.permutations(range(len(ranks)), 2)
        flows = {(ranks[i], ranks[j]): matrix[i][j] for i, j in pairs if matrix[i][j]}
        if flows and all(path_class(graph, a, b) for a, b in flows):
            yield graph, ranks, matrix, flows
            count -= 1
        if not count:
            return


@pytest.mark.parametrize("family", FAMILIES)
def test_time_is_that_of_the_best_split_over_all_paths(family: str) -> None:
    for graph, ranks, matrix, flows in few_links(family, 5):
        for scope in ("schedule", "any"):
            bound = lower_bound(graph, "all_to_all_v", matrix, ranks=ranks, scope=scope)
            assert bound.seconds == pytest.approx(by_paths(graph, flows, scope == "any"), rel=1e-6)


# --- folding by symmetry ---------------------------------------------------------------------------------------------


def apart(fabric: Fabric) -> Classes:
    """Every node and link a class of its own: the whole program."""
    return Classes(np.arange(len(fabric.labels)), np.arange(len(fabric.source)))


@pytest.mark.parametrize("shape", SHAPES)
def test_folding_by_symmetry_loses_nothing(shape: str) -> None:
    fabric = Fabric.from_graph(SHAPES[shape]())
    n = fabric.n_ranks
    routes = topo.route(fabric)
    n_bytes = np.where(np.eye(n, dtype=bool), 0.0, 1e9)
    parts = [(net, np.where(routes.pair_class == k, n_bytes, 0.0)) for k, net in enumerate(class_networks(fabric))]
    ranks = np.arange(n)
    alike = classes_of(fabric, ranks)
    for flows in (
        Demand(fabric, ranks, ((whole_network(fabric), n_bytes),), alike),
        Demand(fabric, ranks, tuple(part for part in parts if part[1].any()), alike),
    ):
        classes = flows.classes()
        assert classes.link.max() < len(fabric.source) - 1
        folded, whole = best_prices(flows, classes), best_prices(flows, apart(fabric))
        assert folded is not None
        assert whole is not None
        assert time_at(flows, folded) == pytest.approx(time_at(flows, whole), rel=1e-9)


def test_any_prices_prove_no_more_than_the_best() -> None:
    fabric = Fabric.from_graph(SHAPES["tapered"]())
    n_bytes = np.where(np.eye(fabric.n_ranks, dtype=bool), 0.0, 1e9)
    ranks = np.arange(fabric.n_ranks)
    flows = Demand(fabric, ranks, ((whole_network(fabric), n_bytes),), classes_of(fabric, ranks))
    best = best_prices(flows, flows.classes())
    assert best is not None
    for seed in range(20):
        price = np.random.default_rng(seed).random(len(fabric.source))
        assert time_at(flows, price) <= time_at(flows, best) * (1 + 1e-9)
