"""What can fail? Every link, lane, NIC, switch and tray of a graph, and which of them are alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import networkx as nx
import numpy as np

from collectives._symmetry import Classes, classes_of, tied
from topo import NODE_KINDS, Fabric, Ranks, Routing, fail

__all__ = ["Part", "kin_of", "parts_of", "some_of", "without"]

#: Rules that treat alike what symmetry cannot tell apart; under others every part is tried.
_FAIR = ("ecmp", "even", "paths")
#: Parts that are alike of which one after the other is tried where the order of ranks matters.
_MOST_TRIED = 4


@dataclass(frozen=True, eq=False)
class Part:
    """One thing that can fail.

    Attributes
    ----------
    kind : {"switch", "nic", "link", "lane", "tray"}
        A plane of a folded switch is a switch. A NIC is a node, or where it has none of
        its own the scale-out link of a GPU or host. A tray is a host's GPUs and NICs; a
        GPU or host of its own where no host is stated.
    name : str
        Its name, or its ends.
    alike : tuple
        Equal for parts that symmetry does not tell apart.
    given : dict
        What `topo.fail` calls it.
    """

    kind: str
    name: str
    alike: tuple[Any, ...]
    given: dict[str, Any]

    def __repr__(self) -> str:
        return f"Part({self.kind} {self.name})"


def parts_of(graph: nx.Graph[str], ranks: Ranks = None, classes: Classes | None = None) -> tuple[Part, ...]:
    """Return everything that can fail, one by one, in the order of nodes, links and hosts.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        The topology. In a DiGraph both directions of a link are one part.
    ranks : int or sequence, optional
        Those taking part, as `cost`: parts near them are told from parts near others.
    classes : Classes, optional
        Of nodes and links, where they are known.

    Examples
    --------
    >>> import topo
    >>> parts_of(topo.load("mi300x-8"))[-1]
    Part(tray host0)
    """
    fabric = Fabric.from_graph(graph)
    alike = classes or classes_of(fabric, fabric.rank_numbers(ranks))
    return (*_switches_and_nics(graph, fabric, alike), *_cables(graph, fabric, alike), *_trays(graph, fabric, alike))


def kin_of(parts: Sequence[Part], routing: Routing = "ecmp") -> list[list[Part]]:
    """Return parts that are alike together; under routing rules that symmetry does not bind each alone.

    Examples
    --------
    >>> import topo
    >>> [(kin[0], len(kin)) for kin in kin_of(parts_of(topo.load("mi300x-8")))]
    [(Part(link d0/gpu0 - d0/gpu1), 28), (Part(tray host0), 1)]
    """
    found: dict[object, list[Part]] = {}
    for part in parts:
        found.setdefault(part.alike if isinstance(routing, str) and routing in _FAIR else part, []).append(part)
    return list(found.values())


def some_of(kin: list[Part]) -> list[Part]:
    """Return a few of parts that are alike, evenly spread, the first included."""
    return kin[:: max(1, -(-len(kin) // _MOST_TRIED))]


def without(graph: nx.Graph[str], parts: Sequence[Part]) -> nx.Graph[str]:
    """Return a graph without some parts."""
    given: dict[str, Any] = {}
    for word, value in (item for part in parts for item in part.given.items()):
        if word != "lanes":
            given[word] = [*given.get(word, ()), *value]
            continue
        gone = given.setdefault("lanes", {})
        for link, numbers in value.items():
            gone[link] = [*gone.get(link, ()), *numbers]
    return fail(graph, **given)


def _switches_and_nics(graph: nx.Graph[str], fabric: Fabric, classes: Classes) -> Iterator[Part]:
    for number, node in enumerate(graph):
        alike, kind = int(classes.node[number]), graph.nodes[node]["kind"]
        if kind == "nic":
            yield Part("nic", node, ("nic", alike), {"nics": [node]})
        elif kind == "switch":
            planes = fabric.plane_lanes[number]
            for k, width in enumerate(planes):
                name = node if len(planes) == 1 else f"{node}{k}"
                if width:
                    yield Part("switch", name, ("switch", alike, width), {"switches": [name]})


def _cables(graph: nx.Graph[str], fabric: Fabric, classes: Classes) -> Iterator[Part]:
    ends = zip(fabric.source.tolist(), fabric.target.tolist(), classes.link.tolist(), strict=True)
    link_class = {(fabric.labels[a], fabric.labels[b]): number for a, b, number in ends}
    planes = dict(zip(fabric.labels, fabric.plane_lanes, strict=True))
    done = set()
    for a, b, data in graph.edges(data=True):
        if (b, a) not in done:
            done.add((a, b))
            both = tuple(sorted(link_class[way] for way in ((a, b), (b, a)) if way in link_class))
            yield from _cable(graph, (a, b), data, both, max(planes[a], planes[b], key=len))


def _cable(
    graph: nx.Graph[str], link: tuple[str, str], data: dict[str, Any], both: tuple[int, ...], planes: tuple[int, ...]
) -> Iterator[Part]:
    """Yield a link and its lanes; lanes are alike if of one rate and to planes of one width."""
    ways = [way for way in (link, link[::-1]) if graph.has_edge(*way)] if graph.is_directed() else [link]
    is_nic = data["kind"] == "scale-out" and any(graph.nodes[end]["kind"] in ("gpu", "host") for end in link)
    kind, name = "nic" if is_nic else "link", " - ".join(link)
    yield Part(kind, name, (kind, both), {"nics" if is_nic else "links": ways})
    lanes = int(data.get("lanes", 1))
    rates = data.get("lane_bandwidths") or [0] * lanes
    upto = [total * lanes // sum(planes) for total in accumulate(planes)]
    for i in range(lanes if lanes > 1 else 0):
        width = planes[int(np.searchsorted(upto, i, side="right"))]
        alike = ("lane", both, tuple(rates), rates[i], width)
        yield Part("lane", f"{i} of {name}", alike, {"lanes": {way: [i] for way in ways}})


def _trays(graph: nx.Graph[str], fabric: Fabric, classes: Classes) -> Iterator[Part]:
    """Yield every host with its GPUs and NICs; alike if their members are, told apart also by who shares a host."""
    kinds = {name: NODE_KINDS.index(name) for name in ("gpu", "host", "nic")}
    held = np.flatnonzero(np.isin(fabric.node_kind, list(kinds.values())) & (fabric.host >= 0))
    trays: dict[int, list[int]] = {}
    for node in held.tolist():
        trays.setdefault(int(fabric.host[node]), []).append(node)
    pairs = np.array([(a, b) for tray in trays.values() for a in tray for b in tray if a != b], dtype=np.intp)
    tail, head = pairs.reshape(-1, 2).T
    colour = tied(classes, fabric, tail, head, np.zeros(len(tail), dtype=np.intp)).node
    ranks = set(fabric.ranks.tolist())
    alone = [[node] for node in fabric.ranks.tolist() if fabric.host[node] < 0]
    for tray in (*(tray for tray in trays.values() if ranks & set(tray)), *alone):
        labels = [fabric.labels[node] for node in tray]
        nics = [label for label in labels if graph.nodes[label]["kind"] == "nic"]
        host = graph.nodes[labels[0]].get("host")
        alike = ("tray", *sorted(colour[tray].tolist()))
        given = {"gpus": [label for label in labels if label not in nics], "nics": nics}
        yield Part("tray", labels[0] if host is None else str(host), alike, given)
