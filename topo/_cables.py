"""What does a fabric look like cable by cable? Lanes, switch planes and end ports each on their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topo._check import EDGE_KINDS
from topo._errors import Fault, InputError
from topo._marks import Marks

if TYPE_CHECKING:
    from topo._fabric import Fabric

__all__ = ["by_port", "unfolded"]

Ints = NDArray[np.intp]


def unfolded(fabric: Fabric, kind: str | None = None) -> Fabric:
    """Return the fabric with one directed link per cable, switch planes as switches of their own.

    Given a kind of edge, links of others stay bundles, and switches on them folded.
    """
    apart = np.ones(len(fabric.lanes), dtype=bool) if kind is None else fabric.link_kind == EDGE_KINDS.index(kind)
    lanes = np.where(apart, fabric.lanes, 1)
    bundled = set(fabric.source[~apart].tolist()) | set(fabric.target[~apart].tolist())
    planes = {node: lanes for node, lanes in _planes(fabric).items() if node not in bundled}
    if not planes and (lanes == 1).all() and (fabric.marks.cables or not fabric.marks.ports):
        return fabric
    count = np.ones(len(fabric.labels), dtype=np.intp)
    count[list(planes)] = [len(lanes) for lanes in planes.values()]
    first = np.cumsum(count) - count
    row = np.repeat(np.arange(len(fabric.source)), lanes)
    lane = np.arange(len(row)) - np.repeat(np.cumsum(lanes) - lanes, lanes)
    tail, head = first[fabric.source[row]], first[fabric.target[row]]
    for link in np.flatnonzero(np.isin(fabric.source, list(planes)) | np.isin(fabric.target, list(planes))).tolist():
        ends = int(fabric.source[link]), int(fabric.target[link])
        cables = slice(*np.searchsorted(row, [link, link + 1]))
        plane = _plane_of_lane(planes[ends[0] if ends[0] in planes else ends[1]], int(fabric.lanes[link]))
        tail[cables] += plane if ends[0] in planes else 0
        head[cables] += plane if ends[1] in planes else 0
    names = [
        f"{label}{k}" if node in planes else label
        for node, label in enumerate(fabric.labels) for k in planes.get(node, (0,))
    ]  # fmt: skip
    wide = _with_nodes(fabric, np.repeat(np.arange(len(count)), count), tuple(names), first[fabric.ranks])
    return _with_links(wide, row, lane, tail, head, apart[row])


def by_port(fabric: Fabric) -> Fabric:
    """Return the fabric with every end port a rank: an end point of several ports is a node for each.

    Raises
    ------
    InputError
        A graph whose edges state no `ports`.
    """
    fabric = unfolded(fabric)
    port_of = _ports_of_ranks(fabric)
    found: dict[int, list[int]] = {int(node): [] for node in fabric.ranks}
    for node, port in sorted(set(port_of.values())):
        found[node].append(port)
    # An end point without a cable stays as it is and is no rank; so does everything else.
    parts = [(node, port) for node in range(len(fabric.labels)) for port in found.get(node) or [0]]
    place = {part: i for i, part in enumerate(parts)}
    names = tuple(fabric.labels[n] + (f":{port}" if len(found.get(n, ())) > 1 else "") for n, port in parts)
    ranks = np.array([place[node, port] for node in fabric.ranks.tolist() for port in found[node]], dtype=np.intp)
    first = np.array([place[node, (found.get(node) or [0])[0]] for node in range(len(fabric.labels))], dtype=np.intp)
    tail, head = first[fabric.source], first[fabric.target]
    for (link, side), part in port_of.items():
        (head if side else tail)[link] = place[part]
    wide = _with_nodes(fabric, np.array([node for node, _ in parts], dtype=np.intp), names, ranks)
    lids = {
        i: lids if node not in found else {port: lids[port]}
        for i, (node, port) in enumerate(parts)
        if (lids := fabric.marks.lids.get(node)) and (node not in found or port in lids)
    }
    every = np.arange(len(tail))
    wide = replace(wide, marks=replace(wide.marks, lids=lids))
    return _with_links(wide, every, np.zeros_like(every), tail, head, np.ones(len(every), dtype=bool))


def _ports_of_ranks(fabric: Fabric) -> dict[tuple[int, int], tuple[int, int]]:
    """Return (directed link, 0 for its tail or 1 for its head) -> (rank's node, its port), for all ends at ranks."""
    ports, ends = fabric.marks.ports, {int(node) for node in fabric.ranks}
    found = {
        (link, side): (node, ports[link][0][side] if link in ports else -1)
        for link, pair in enumerate(zip(fabric.source.tolist(), fabric.target.tolist(), strict=True))
        for side, node in enumerate(pair)
        if node in ends
    }
    if not found or any(port < 0 for _, port in found.values()):
        rule = "needs edges that state the ports they join (`ports`), as topo.read gives them"
        raise InputError(Fault("ranks", "ports", rule, "Read the fabric from its file, or take ranks by name."))
    return found


def _planes(fabric: Fabric) -> dict[int, dict[int, int]]:
    """Return folded switch -> plane -> its lanes, of those whose links all say which lane goes to which plane."""
    rows = {
        node: {k: lanes for k, lanes in enumerate(row) if lanes}
        for node, row in enumerate(fabric.plane_lanes) if len(row) > 1
    }  # fmt: skip
    for ends in (fabric.source, fabric.target):
        for node in [int(node) for node in np.unique(ends[np.isin(ends, list(rows))])]:
            if (fabric.lanes[ends == node] % sum(rows[node].values())).any():
                del rows[node]
    return rows


def _plane_of_lane(planes: dict[int, int], lanes: int) -> Ints:
    """Return which of a switch's planes each lane of a link goes to: plane by plane."""
    per_plane = np.array(list(planes.values())) * (lanes // sum(planes.values()))
    return np.repeat(np.arange(len(planes)), per_plane)


def _with_nodes(fabric: Fabric, origin: Ints, labels: tuple[str, ...], ranks: Ints) -> Fabric:
    """Return the fabric with nodes that each stand for, or are part of, the one they come from."""
    copies: dict[int, list[int]] = {}
    for node, old in enumerate(origin.tolist()):
        copies.setdefault(old, []).append(node)
    old_rank = {int(node): r for r, node in enumerate(fabric.ranks)}
    marks = fabric.marks
    return replace(
        fabric,
        labels=labels,
        node_kind=fabric.node_kind[origin],
        forwards=fabric.forwards[origin],
        reduces=fabric.reduces[origin],
        multicasts=fabric.multicasts[origin],
        domain=fabric.domain[origin],
        host=fabric.host[origin],
        tier=tuple(fabric.tier[old] for old in origin.tolist()),
        plane_lanes=tuple((1,) if len(copies[old]) > 1 else fabric.plane_lanes[old] for old in origin.tolist()),
        radix=fabric.radix[origin],
        ranks=ranks,
        chip=tuple(fabric.chip[old_rank[int(origin[node])]] for node in ranks.tolist()),
        coordinates=tuple(fabric.coordinates[old_rank[int(origin[node])]] for node in ranks.tolist()),
        marks=replace(
            marks,
            coordinates={new: at for old, at in marks.coordinates.items() for new in copies[old]},
            group={new: group for old, group in marks.group.items() for new in copies[old]},
            guid={new: guid for old, guid in marks.guid.items() for new in copies[old]},
            lids={new: lids for old, lids in marks.lids.items() for new in copies[old]},
        ),
    )


def _with_links(fabric: Fabric, row: Ints, lane: Ints, tail: Ints, head: Ints, apart: NDArray[np.bool_]) -> Fabric:
    """Return the fabric with links that are each one lane of the one they come from, or where not apart all of it."""
    marks, lanes = fabric.marks, np.where(apart, fabric.lanes[row], 1)
    bandwidth = fabric.bandwidth[row] / lanes
    axis: dict[int, int] = {}
    ports: dict[int, list[tuple[int, int]]] = {}
    parts = {link: marks.parts[old] for link, old in enumerate(row.tolist()) if old in marks.parts and not apart[link]}
    names: list[str] = []
    for link, (old, k) in enumerate(zip(row.tolist(), lane.tolist(), strict=True)):
        if old in marks.parts and apart[link]:
            bandwidth[link] = fabric.bandwidth[old] * marks.parts[old][k]
        if old in marks.axis:
            axis[link] = marks.axis[old]
        a, b = fabric.labels[tail[link]], fabric.labels[head[link]]
        if old in marks.ports and not apart[link]:
            ports[link] = marks.ports[old]
        if old in marks.ports and apart[link]:
            ports[link] = [marks.ports[old][k]]
            names.append(f"{a}[{ports[link][0][0]}] -> {b}[{ports[link][0][1]}]")
        else:
            names.append(f"{a} -> {b}" + (f" lane {k + 1}" if lanes[link] > 1 else ""))
    return replace(
        fabric,
        source=tail,
        target=head,
        bandwidth=bandwidth,
        latency=fabric.latency[row],
        link_kind=fabric.link_kind[row],
        lanes=np.where(apart, 1, fabric.lanes[row]),
        marks=Marks(
            marks.coordinates, marks.group, marks.guid, marks.lids, axis, ports, parts, tuple(names), marks.shape
        ),
    )  # fmt: skip
