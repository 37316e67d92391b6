"""How do nodes stand on a circle? Rings, meshes, random networks; groups of routers, on a circle or in two rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import networkx as nx

from figures._spots import Box, Cell, Part, Path, Point, Spot, blocks, ends_cell, framed
from figures._words import counted, rates, text_width

__all__ = ["circle", "dragonfly", "has_groups", "is_two_sided", "two_rows"]

_MOST_NODES, _MOST_ON_RING, _MOST_GROUPS = 40, 100, 36
_MOST_NAMED = 64  # routers of all groups that are large enough to stand apart
_MOST_IN_GROUP = 16


def circle(part: Part) -> Box:
    """Rank 0 at the top left, on against the clock: no two of a half at one height, so no cable hides another."""
    sparse = len(part.links) <= 1.2 * len(part.nodes)
    units = blocks(part.nodes, _MOST_ON_RING if sparse else _MOST_NODES)
    one, n = len(units) == len(part.nodes), len(units)
    size = (part.size if n <= _MOST_NODES else 7.0) if one else 15.0 if n <= _MOST_NODES else 9.0
    radius = max(3.0 * size, n * ((1.7 if sparse else 1.42) * size + 2.0) / (2 * math.pi))
    box = Box(0.0, 0.0, {}, (0.0, 0.0))
    for i, nodes in enumerate(units):
        way = _way(i, n)
        name = _unit(part, nodes, Spot(radius * way[0], radius * way[1], size, size), box)
        far = radius + size / 2 + 13.0
        ends_cell(part, nodes, (far * way[0], far * way[1]), box)
        if one and part.kind == "switch" and len(part.nodes) <= 100:
            box.texts[name] = str(i)
    ring = sparse and {tuple(sorted((i, (i + 1) % n))) for i in range(n)} == _joined(part, units) and n > 2
    said = "" if one and part.kind != "switch" and not ring else _said(part, "in a ring" if ring else "joined directly")
    return framed(Box(0, 0, box.spots, (0, 0), texts=box.texts, cells=box.cells, stands_for=box.stands_for, say=said))


def _joined(part: Part, units: Sequence[Sequence[str]]) -> set[tuple[int, ...]]:
    """Return the pairs of units with links between them."""
    home = {node: i for i, nodes in enumerate(units) for node in nodes}
    pairs = {tuple(sorted((home[a], home[b]))) for a, b in (link.ends for link in part.links)}
    return {pair for pair in pairs if pair[0] != pair[1]}


def _way(i: int, n: int) -> Point:
    turn = math.pi / 2 + 2 * math.pi * (i + 0.5) / n
    return math.cos(turn), math.sin(turn)


def _unit(part: Part, nodes: Sequence[str], spot: Spot, box: Box) -> str:
    """Place a node, or one cell for several, and return its name."""
    name = nodes[0] if len(nodes) == 1 else f"\0cell {nodes[0]}"
    box.spots[name] = spot
    if len(nodes) > 1:
        text = f"×{len(nodes)}"
        box.cells[name] = Cell(part.kind, text if text_width(text, 7.0) < spot.w else "", 2.5)
        box.stands_for.update(dict.fromkeys(nodes, name))
    return name


def _said(part: Part, how: str) -> str:
    what = counted(len(part.nodes), "GPU" if part.kind == "gpu" else part.kind)
    return f"{what} {how}; {rates(link.bandwidth for link in part.links)} per link"


# --- groups ----------------------------------------------------------------------------------------------------------


def _groups(part: Part) -> list[tuple[str, ...]]:
    found: dict[object, list[str]] = {}
    for node in part.nodes:
        found.setdefault(part.marks[node].group, []).append(node)
    return [tuple(nodes) for nodes in found.values()]


def _quotient(part: Part) -> nx.Graph[int]:
    """Return the groups, those linked that have a link between them."""
    home = {node: i for i, nodes in enumerate(_groups(part)) for node in nodes}
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(home.values())
    graph.add_edges_from((home[a], home[b]) for a, b in (link.ends for link in part.links) if home[a] != home[b])
    return graph


def has_groups(part: Part) -> bool:
    """Whether every node says of which of several groups it is."""
    groups = {part.marks[node].group for node in part.nodes}
    return None not in groups and 1 < len(groups) < len(part.nodes)


def is_two_sided(part: Part) -> bool:
    """Whether the groups stand on two sides, with links only across: a Slim Fly."""
    if not has_groups(part):
        return False
    graph = _quotient(part)
    return len(graph) > 4 and nx.is_bipartite(graph) and nx.is_connected(graph)


def dragonfly(part: Part) -> Box:
    """Set groups on a circle, the routers of each on a small one, what hangs on a group outside of it."""
    groups = _groups(part)
    units = blocks([str(i) for i in range(len(groups))], _MOST_GROUPS)
    largest = max(len(nodes) for nodes in groups)
    apart = len(units) == len(groups) and largest <= _MOST_IN_GROUP
    size = 9.0 if len(part.nodes) <= _MOST_NAMED else 5.0
    small = max(1.3 * size, largest * (1.2 * size + 1.5) / (2 * math.pi)) if apart else 4.0
    half = small + size / 2 + 3.0 if apart else 10.0
    radius = max(2.3 * half, len(units) * (2.9 * half + 4.0) / (2 * math.pi))
    box, trays = Box(0.0, 0.0, {}, (0.0, 0.0)), []
    for i, unit in enumerate(units):
        way = _way(i, len(units))
        x, y = radius * way[0], radius * way[1]
        nodes = [node for group in unit for node in groups[int(group)]]
        if apart:
            trays.append(Spot(x, y, 2 * half, 2 * half))
            for j, node in enumerate(nodes):
                turn = _way(j, len(nodes))
                box.spots[node] = Spot(x + small * turn[0], y + small * turn[1], size, size)
        else:
            _unit(part, nodes, Spot(x, y, 22.0, 13.0), box)
        out = min(half / max(abs(way[0]), 1e-9), half / max(abs(way[1]), 1e-9)) + 13.0
        ends_cell(part, nodes, (x + out * way[0] * 1.1, y + out * way[1]), box)
    many = f", drawn {len(units[0])} at a time" if len(units) < len(groups) else ""
    said = _said(part, f"in {counted(len(groups), 'group')} of {_sizes(groups)}{many}")
    return framed(Box(0, 0, box.spots, (0, 0), trays=tuple(trays), cells=box.cells, stands_for=box.stands_for,
                      say=said))  # fmt: skip


def _sizes(groups: Sequence[Sequence[str]]) -> str:
    low, high = min(map(len, groups)), max(map(len, groups))
    return f"{low}" if low == high else f"{low} to {high}"


def two_rows(part: Part) -> Box:
    """Set groups of two sides in two rows that face each other, what hangs on a group beyond it."""
    groups = _groups(part)
    sides = nx.bipartite.sets(_quotient(part))
    rows = sorted((sorted(side) for side in sides), key=lambda side: side[0])
    most = max(len(row) for row in rows)
    apart = len(part.nodes) <= 100
    pitch = 12.0 if apart else 34.0 if most <= 24 else 22.0
    step = pitch * max(map(len, groups)) + 10.0 if apart else pitch
    shown = [blocks([str(i) for i in row], 36) for row in rows]
    box, trays = Box(0.0, 0.0, {}, (0.0, 0.0)), []
    tall = max(150.0, 0.24 * step * most)
    for row, y, up in ((shown[0], tall, 1.0), (shown[1], 0.0, -1.0)):
        for i, unit in enumerate(row):
            nodes = [node for group in unit for node in groups[int(group)]]
            x = (i - (len(row) - 1) / 2) * step
            if apart:
                trays.append(Spot(x, y + up * 9.0, step - 4.0, 34.0))
                box.spots.update({node: Spot(x + (j - (len(nodes) - 1) / 2) * pitch, y - up * 2.0, 8.0, 8.0)
                                  for j, node in enumerate(nodes)})  # fmt: skip
                _arcs(part, nodes, box, up)
            else:
                _unit(part, nodes, Spot(x, y, pitch - 7.0, 13.0), box)
            ends_cell(part, nodes, (x, y + up * (42.0 if apart else 26.0)), box)
    said = _said(part, f"in two sides of {most} groups of {_sizes(groups)}")
    return framed(Box(0, 0, box.spots, (0, 0), trays=tuple(trays), cells=box.cells, stands_for=box.stands_for,
                      paths=box.paths, say=said))  # fmt: skip


def _arcs(part: Part, nodes: Sequence[str], box: Box, up: float) -> None:
    """Bend links within a group over the routers between."""
    inside = set(nodes)
    for link in part.links:
        if inside.issuperset(link.ends):
            (x0, y), (x1, _) = ((box.spots[node].x, box.spots[node].y) for node in link.ends)
            tall = up * min(20.0, 3.0 + 0.3 * abs(x1 - x0))
            turns = [i / 10 for i in range(11)]
            box.paths[link.ends] = Path((tuple(
                (x0 + (x1 - x0) * t, y + up * 3.0 + tall * math.sin(math.pi * t)) for t in turns),))  # fmt: skip
