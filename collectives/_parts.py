"""What can fail? Every link, lane, NIC and switch of a graph, and which of them are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx

from collectives._symmetry import Classes
from topo import Fabric

__all__ = ["Part", "parts_of"]


@dataclass(frozen=True, eq=False)
class Part:
    """One thing that can fail.

    Attributes
    ----------
    kind : {"switch", "nic", "link", "lane"}
        A plane of a folded switch is a switch. A NIC is a node, or where it has none of
        its own the scale-out link of a GPU or host.
    name : str
        Its name, or its ends.
    alike : tuple
        Equal for parts that symmetry does not tell apart.
    count : int
        Parts it stands for: the lanes of one link, the planes of one switch.
    given : dict
        What `topo.fail` calls it.
    """

    kind: str
    name: str
    alike: tuple[Any, ...]
    count: int
    given: dict[str, Any]


def parts_of(graph: nx.Graph[str], fabric: Fabric, classes: Classes) -> Iterator[Part]:
    """Yield everything that can fail, in the order of nodes and links."""
    for number, node in enumerate(graph):
        alike, kind = int(classes.node[number]), graph.nodes[node]["kind"]
        if kind == "nic":
            yield Part("nic", node, ("nic", alike), 1, {"nics": [node]})
        elif kind == "switch":
            yield from _planes(node, fabric.plane_lanes[number], alike)
    ends = zip(fabric.source.tolist(), fabric.target.tolist(), classes.link.tolist(), strict=True)
    link_class = {(fabric.labels[a], fabric.labels[b]): number for a, b, number in ends}
    done = set()
    for a, b, data in graph.edges(data=True):
        if (b, a) not in done:
            done.add((a, b))
            both = tuple(sorted(link_class[way] for way in ((a, b), (b, a)) if way in link_class))
            yield from _cable(graph, (a, b), data, both)


def _planes(node: str, lanes: tuple[int, ...], alike: int) -> Iterator[Part]:
    if len(lanes) == 1:
        yield Part("switch", node, ("switch", alike), 1, {"switches": [node]})
        return
    for width in sorted(set(lanes) - {0}):
        name = f"{node}{lanes.index(width)}"
        yield Part("switch", name, ("switch", alike, width), lanes.count(width), {"switches": [name]})


def _cable(graph: nx.Graph[str], link: tuple[str, str], data: dict[str, Any], both: tuple[int, ...]) -> Iterator[Part]:
    ways = [way for way in (link, link[::-1]) if graph.has_edge(*way)] if graph.is_directed() else [link]
    is_nic = data["kind"] == "scale-out" and any(graph.nodes[end]["kind"] in ("gpu", "host") for end in link)
    kind, name = "nic" if is_nic else "link", " - ".join(link)
    yield Part(kind, name, (kind, both), 1, {"nics" if is_nic else "links": ways})
    lanes = int(data.get("lanes", 1))
    if lanes > 1:
        rates = tuple(data.get("lane_bandwidths") or ())
        yield Part("lane", name, ("lane", both, rates), lanes, {"lanes": dict.fromkeys(ways, 1)})
