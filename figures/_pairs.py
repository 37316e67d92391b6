"""How do the GPUs of one server stand that NVLink joins in pairs, or in a cube mesh?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import networkx as nx

from figures._spots import Box, Part, Spot, framed
from figures._words import rates

__all__ = ["bridge_pairs", "cube_mesh", "is_cube_mesh", "is_pairs"]

_MOST = 64
_SQUARE = ((0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (1.0, 0.0))


def _graph(part: Part) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(part.nodes)
    graph.add_edges_from(link.ends for link in part.links)
    return graph


def is_pairs(part: Part) -> bool:
    """Whether every node is joined to one other."""
    return 2 < len(part.nodes) <= _MOST and all(degree == 1 for _, degree in _graph(part).degree)


def bridge_pairs(part: Part) -> Box:
    """Pairs beside each other, in rows."""
    step, order = 1.9 * part.size, {node: i for i, node in enumerate(part.nodes)}
    pairs = sorted((sorted(link.ends, key=lambda node: order[node]) for link in part.links), key=lambda p: order[p[0]])
    columns = min(8, len(pairs))
    spots = {}
    for i, (a, b) in enumerate(pairs):
        x, y = i % columns * (step + 2.4 * part.size), -(i // columns) * 2.2 * part.size
        spots[a], spots[b] = Spot(x, y, part.size, part.size), Spot(x + step, y, part.size, part.size)
    say = f"{len(pairs)} pairs, {rates(link.bandwidth for link in part.links)} in a pair"
    return framed(Box(0.0, 0.0, spots, (0.0, 0.0), say=say), 2.0)


def _squares(part: Part) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return two halves with all six pairs linked, each node of one linked to one of the other."""
    if len(part.nodes) != 8 or len(part.links) != 16:
        return None
    graph = _graph(part)
    if any(degree != 4 for _, degree in graph.degree):
        return None
    first = part.nodes[0]
    for others in combinations(graph[first], 3):
        half = [first, *others]
        rest = [node for node in part.nodes if node not in half]
        if _complete(graph, half) and _complete(graph, rest):
            return tuple(half), tuple(next(iter(set(graph[node]) - set(half))) for node in half)
    return None


def _complete(graph: nx.Graph[str], nodes: Iterable[str]) -> bool:
    return all(graph.has_edge(a, b) for a, b in combinations(nodes, 2))


def is_cube_mesh(part: Part) -> bool:
    """Whether eight GPUs are wired as in a DGX-1."""
    return _squares(part) is not None


def cube_mesh(part: Part) -> Box:
    """Two squares with their diagonals, one behind the other, corners joined: a cube."""
    halves, edge = _squares(part) or ((), ()), 5.0 * part.size
    spots = {}
    for half, (dx, dy) in zip(halves, ((0.0, 0.0), (1.5 * edge, 0.36 * edge)), strict=True):
        for node, (x, y) in zip(half, _SQUARE, strict=True):
            spots[node] = Spot(x * edge + dx, y * edge + dy, part.size, part.size)
    say = f"hybrid cube mesh: {len(part.links)} pairs linked, {rates(link.bandwidth for link in part.links)} per pair"
    return framed(Box(0.0, 0.0, spots, (0.0, 0.0), say=say), 2.0)
