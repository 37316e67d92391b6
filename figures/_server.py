"""How do the GPUs and NICs of a server hang on its PCIe switches and CPUs? A tree, the scale-up switches above."""

from __future__ import annotations

from collections.abc import Sequence

from figures._graph import Link
from figures._scene import Group
from figures._spots import Box, Spot, framed

__all__ = ["is_server", "server"]

_GAP, _ROW = 4.0, 32.0
_MOST = 64


def _attached(group: Group, links: Sequence[Link]) -> dict[str, list[str]]:
    """Return the PCIe switches and CPUs that have GPUs or NICs, with them, GPUs first."""
    leaves, others = (*group.gpus, *group.nics), set(group.others)
    above: dict[str, str] = {}
    for link in links:
        for a, b in (link.ends, link.ends[::-1]):
            if b in others and a not in others:
                above.setdefault(a, b)
    found: dict[str, list[str]] = {}
    for leaf in leaves:
        if leaf in above:
            found.setdefault(above[leaf], []).append(leaf)
    return found


def is_server(group: Group, links: Sequence[Link]) -> bool:
    """Whether all GPUs and NICs hang on one of several PCIe switches or CPUs each."""
    found = _attached(group, links)
    n = sum(map(len, found.values()))
    return len(found) > 1 and n == len(group.gpus) + len(group.nics) and len(group.nodes) <= _MOST


def server(group: Group, links: Sequence[Link], size: float, say: str) -> Box:
    """Lay out a server: GPUs and NICs over the switch or CPU they hang on, the rest of PCIe below that."""
    spots: dict[str, Spot] = {}
    x, row, tree = 0.0, [], _attached(group, links)
    for node, leaves in tree.items():
        left = x
        for leaf in leaves:
            w = size if leaf in group.gpus else 9.0
            spots[leaf] = Spot(x + w / 2, 0.0, w, w if leaf in group.gpus else 8.0)
            x += w + _GAP
        spots[node] = Spot((left + x - _GAP) / 2, -_ROW, 16.0, 9.0)
        row.append(node)
        x += 3 * _GAP
    width, y = x - 4 * _GAP, -_ROW
    near: dict[str, set[str]] = {node: set() for node in group.nodes}
    for link in links:
        near[link.ends[0]].add(link.ends[1])
        near[link.ends[1]].add(link.ends[0])
    while row:
        below = {node: [n for n in row if n in near[node]] for node in group.others if node not in spots}
        nodes = [node for node, on in below.items() if on] or list(below)
        nodes.sort(key=lambda node: sum(spots[n].x for n in below[node]) / max(1, len(below[node])))
        y, step = y - 0.8 * _ROW, width / max(1, len(nodes))
        spots |= {node: Spot(step * (i + 0.5), y, 16.0, 9.0) for i, node in enumerate(nodes)}
        row = nodes
    for i, hub in enumerate(group.hubs):
        spots[hub] = Spot(width / 2, 26.0 + 13.0 * i, width, 8.0)
    return framed(Box(0.0, 0.0, spots, (0.0, 0.0), say=say, sealed=True), 2.0)
