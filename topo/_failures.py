"""What exactly failed? Names of links, planes, NICs and GPUs looked up, everything unknown said at once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import networkx as nx

from topo._errors import Fault, InputError
from topo._planes import folded_planes, is_folded, lane_count, plane_names

__all__ = ["Failures", "Link", "failures"]

Link = tuple[str, str]
_MOST_SAID = 4


@dataclass
class Failures:
    """What failed, in names of the graph once the switches of `unfold` are unfolded."""

    links: list[Link] = field(default_factory=list)
    lanes: dict[Link, frozenset[int]] = field(default_factory=dict)
    planes: list[tuple[str, int]] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    unfold: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)


def failures(
    graph: nx.Graph[str], links: Iterable[Link], lanes: Mapping[Link, int | Collection[int]], switches: Iterable[str],
    nics: Iterable[str | Link], gpus: Iterable[str],
) -> Failures:  # fmt: skip
    """Look up everything that is said to fail.

    Raises
    ------
    InputError
        All names, links and numbers that the graph does not have.
    """
    look = _Lookup(graph)
    one_link = isinstance(links, tuple) and len(links) == 2 and all(isinstance(end, str) for end in links)
    given: dict[str, list[Any]] = {
        "links": [links] if one_link else list(links), "lanes": list(lanes.items()),
        "switches": _listed(switches), "nics": _listed(nics), "gpus": _listed(gpus),
    }  # fmt: skip
    for link in given["links"]:
        look.link("links", link)
    for link, count in given["lanes"]:
        look.lane(link, count)
    for switch in given["switches"]:
        look.switch(switch)
    for nic in given["nics"]:
        look.nic(nic)
    for gpu in given["gpus"]:
        look.node("gpus", gpu, ("gpu", "host"))
    if look.faults:
        raise InputError(*look.faults)
    look.found.said += [_said(what, things) for what, things in given.items() if things]
    return look.found


def _said(what: str, things: list[Any]) -> str:
    if what == "lanes":
        texts = [f"{count if isinstance(count, int) else len(count)} of {' - '.join(link)}" for link, count in things]
    else:
        texts = [thing if isinstance(thing, str) else " - ".join(thing) for thing in things]
    more = f", ... ({len(texts)} in all)" if len(texts) > _MOST_SAID else ""
    return f"fail: {what} {', '.join(texts[:_MOST_SAID])}{more}"


def _listed(names: Iterable[Any]) -> list[Any]:
    """Return names as a list; one name may stand alone."""
    return [names] if isinstance(names, str) else list(names)


class _Lookup:
    """Names of one graph, what was found of them, and what was not."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self.graph, self.planes = graph, plane_names(graph)
        self.found, self.faults = Failures(), list[Fault]()

    def fault(self, place: str, value: object, rule: str, known: Iterable[str]) -> None:
        names = list(known)
        near = difflib.get_close_matches(str(value), names, n=3, cutoff=0.3) or names[:3]
        cure = f"Nearest: {', '.join(near)}." if near else "There is none."
        self.faults.append(Fault(place, value, rule, cure))

    def of_kind(self, *kinds: str) -> list[str]:
        return [node for node, data in self.graph.nodes(data=True) if data["kind"] in kinds]

    def kind(self, name: str) -> str | None:
        return str(self.graph.nodes[name]["kind"]) if self.graph.has_node(name) else None

    def node(self, place: str, name: str, kinds: tuple[str, ...]) -> None:
        if self.kind(name) in kinds:
            self.found.nodes.append(name)
        else:
            self.fault(place, name, f"is no {' or '.join(kinds)} of this graph", self.of_kind(*kinds))

    def switch(self, name: str) -> None:
        if name in self.graph or name not in self.planes:
            if self.kind(name) == "switch":
                self.found.nodes.append(name)
            else:
                known = [*self.of_kind("switch"), *self.planes]
                self.fault("switches", name, "is no switch, and no plane of one, of this graph", known)
            return
        switch, plane = self.planes[name]
        self.found.planes.append((switch, plane))
        if any(is_folded(self.graph.nodes[other]) for other in nx.all_neighbors(self.graph, switch)):
            self.found.unfold.add(switch)

    def nic(self, name: str | Link) -> None:
        if not isinstance(name, str):
            self.link("nics", name)
            return
        if self.kind(name) == "nic":
            self.found.nodes.append(name)
            return
        ends = [(name, other) for other in nx.all_neighbors(self.graph, name)] if name in self.graph else []
        ends += [(b, a) for a, b in ends] if self.graph.is_directed() else []
        own = [end for end in ends if self.graph.has_edge(*end) and self.graph.edges[end]["kind"] == "scale-out"]
        if self.kind(name) in ("gpu", "host") and own:
            self.found.links += own
        else:
            known = self.of_kind("nic") or self.of_kind("gpu", "host")
            self.fault("nics", name, "is no NIC, and no GPU with scale-out links, of this graph", known)

    def link(self, place: str, link: Link) -> Link | None:
        """Note a link by its ends in the folded or the unfolded graph; return it as the folded graph has it."""
        if not (isinstance(link, tuple | list) and len(link) == 2 and all(isinstance(end, str) for end in link)):
            self.faults.append(Fault(place, link, "is not a pair of labels", "Write ('d0/gpu0', 'd0/switch')."))
            return None
        a, b = (end if end in self.graph else self.planes.get(end, (end, 0))[0] for end in link)
        if not self.graph.has_edge(a, b):
            here = [f"{x} - {y}" for x, y in self.graph.edges if {x, y} & {a, b}]
            rule = "is no link of this graph"
            self.fault(place, " - ".join(link), rule, here or [f"{x} - {y}" for x, y in self.graph.edges])
            return None
        self.found.unfold |= {end for end, named in ((a, link[0]), (b, link[1])) if end != named}
        if place != "lanes":
            self.found.links.append((link[0], link[1]))
        return a, b

    def lane(self, link: Link, which: int | Collection[int]) -> None:
        folded = self.link("lanes", link)
        if folded is None:
            return
        of = lane_count(self.graph.edges[folded])
        for end, named in zip(folded, link, strict=True):
            if end != named:
                weights = folded_planes(self.graph.nodes[end])
                of = of * weights[self.planes[named][1]] // sum(weights)
        place = f"lanes[{' - '.join(link)!r}]"
        if isinstance(which, list | tuple | set | frozenset):
            numbers = frozenset(which)
            if not numbers or len(numbers) < len(which) or not all(_whole(i) and 0 <= i < of for i in numbers):
                rule = f"must be different numbers of the link's {of} lanes, from 0 to {of - 1}"
                self.faults.append(Fault(place, which, rule, "Correct it."))
        elif _whole(which) and 1 <= which <= of:
            numbers = frozenset(range(of - which, of))
        else:
            rule, numbers = f"must be a whole number from 1 to the link's {of} lanes", frozenset()
            self.faults.append(Fault(place, which, rule, "Correct it."))
        if len(numbers) < of:
            self.found.unfold |= {end for end in folded if is_folded(self.graph.nodes[end])}
        self.found.lanes[link[0], link[1]] = numbers


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
