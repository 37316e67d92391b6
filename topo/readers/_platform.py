"""Which graph has exactly the routes of a SimGrid platform? Links are resources, routes are lists of them.

A link that is passed one way is an edge; its ends are found by joining what follows what on the
routes. A SHARED link that is passed both ways has one bandwidth for both together: it is one
edge between two nodes of its own, `name|in` and `name|out`, which whoever uses it is connected
to, without latency and as wide. A FATPIPE is not shared: every route has its own, so wide that it
never fills.
At last every route is compared with the fewest hops of the graph; where another path is as
short, the routes are no graph, and the file is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import networkx as nx

from topo._asked import Link, add_cable
from topo.readers._parts import Checked

__all__ = ["Pipe", "Platform", "Way"]


@dataclass(frozen=True)
class Pipe:
    """One link: bandwidth [bytes/s], latency [s], SHARED, SPLITDUPLEX or FATPIPE."""

    bandwidth: float
    latency: float
    policy: str


@dataclass(frozen=True)
class Way:
    """A route: where it stands, its ends, the resources it passes; `direct` if it is told, not composed."""

    place: str
    source: str
    target: str
    pipes: tuple[str, ...]
    direct: bool = True


@dataclass
class Platform:
    """What is built of a platform: the directed graph, links by name, routes, notes.

    `entry` has the node where traffic to a net point arrives, if that is not the net point.
    """

    checked: Checked
    graph: nx.DiGraph[str] = field(default_factory=nx.DiGraph)
    pipes: dict[str, Pipe] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=list)
    entry: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    hosts: int = 0

    def add_host(self, name: str, place: str) -> None:
        """Add an end point."""
        self._add(name, place, kind="host", forwards=False)
        self.hosts += 1

    def add_router(self, name: str, place: str) -> None:
        """Add a net point that sends nothing itself."""
        self._add(name, place, kind="switch", forwards=True)

    def _add(self, name: str, place: str, **data: object) -> None:
        if name in self.graph:
            self.checked.fault(place, name, "is the name of another net point already", "Rename it.")
        self.graph.add_node(name, **data)

    def edge(self, a: str, b: str, pipe: Pipe, lanes: int = 1) -> None:
        """Add one directed edge."""
        wide = self.hosts**2 if pipe.policy == "FATPIPE" else 1
        add_cable(self.graph, a, b, Link("scale-out", pipe.bandwidth * wide, pipe.latency), lanes)

    def join(self, name: str, a: str, b: str, pipe: Pipe, lanes: int = 1) -> None:
        """Join two net points both ways by a link."""
        if pipe.policy == "SHARED":
            self._shared(name, pipe, lanes)
            for end in (a, b):
                self._connect(end, f"{name}|in", pipe, lanes)
                self._connect(f"{name}|out", self.entry.get(end, end), pipe, lanes)
        else:
            self.edge(a, self.entry.get(b, b), pipe, lanes)
            self.edge(b, self.entry.get(a, a), pipe, lanes)

    def _shared(self, name: str, pipe: Pipe, lanes: int = 1) -> None:
        self.graph.add_nodes_from((f"{name}|in", f"{name}|out"), kind="switch", forwards=True)
        self.edge(f"{name}|in", f"{name}|out", pipe, lanes)

    def _connect(self, a: str, b: str, pipe: Pipe, lanes: int = 1) -> None:
        self.edge(a, b, Pipe(pipe.bandwidth, 0.0, pipe.policy), lanes)

    def add_way(self, way: Way) -> None:
        """Add a route; a FATPIPE on it, which nobody shares, is a link of this route alone."""
        pipes = []
        for name in way.pipes:
            pipe = self.pipes.get(name)
            own = f"{name} ({way.source} to {way.target})"
            if pipe is not None and pipe.policy == "FATPIPE":
                self.pipes[own] = pipe
            pipes.append(own if own in self.pipes else name)
        self.ways.append(replace(way, pipes=tuple(pipes)))

    def lay(self) -> None:
        """Wire what the routes pass, and refuse routes that the wires do not have."""
        bare = self.graph
        fault: tuple[str, str, str] | None = None
        for named in (True, False) if self.ways else ():
            self.graph = bare.copy()
            fault = self._wire(named)
            if fault is None:
                return
        if fault is not None:
            self.checked.fault(*fault, _CURE)

    def _wire(self, named: bool) -> tuple[str, str, str] | None:
        """Add the links on routes; return what is wrong with the outcome: place, value, rule."""
        used = dict.fromkeys(pipe for way in self.ways for pipe in way.pipes)
        # A FATPIPE gets nodes of its own too, that the hops of links count alike.
        both = _passed_both_ways(self.ways) | {name for name in used if self.pipes[name].policy == "FATPIPE"}
        points = _Points(self, [pipe for pipe in used if pipe not in both], named)
        for way in self.ways:
            points.follow(way, both)
        for name in used:
            if name in both:
                self._shared(name, self.pipes[name])
                continue
            ends = points.label(f"{name}|in"), points.label(f"{name}|out")
            self.graph.add_nodes_from((end for end in ends if end not in self.graph), kind="switch", forwards=True)
            if self.graph.has_edge(*ends):
                rule = "is beside another link between the same two points, and each is on routes of its own"
                return f"link {name}", name, f"{rule}: a graph would share them"
            self.edge(*ends, self.pipes[name])
        for a, b, name in points.connectors:
            self._connect(points.label(a), points.label(b), self.pipes[name])
        return self._other_path(points, both)

    def _other_path(self, points: _Points, both: set[str]) -> tuple[str, str, str] | None:
        """Return the first route that the fewest hops of the graph do not give, or not alone."""
        walks = [(way, points.walk(way, both)) for way in self.ways if way.direct]
        for _, walk in walks:
            for node in walk[1:-1]:
                self.graph.nodes[node]["forwards"] = True
        reached: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        for way, walk in walks:
            if walk[0] not in reached:
                reached = {walk[0]: _shortest(self.graph, walk[0])}  # routes stand source by source
            hops, ways = reached[walk[0]]
            if hops.get(walk[-1]) != len(walk) - 1 or ways[walk[-1]] != 1:
                rule = "is not the only path with fewest hops in a graph of these links, so no graph has these routes"
                return way.place, " ".join(way.pipes), rule
        return None


_CURE = "This reader takes routes that the fewest hops of a graph give; describe the network as a graph (JSON) instead."


def _passed_both_ways(ways: Sequence[Way]) -> set[str]:
    """Return the links that some routes pass from a to b and others from b to a, a and b what is next to them."""
    passed = set()
    for way in ways:
        steps = [f"@{way.source}", *way.pipes, f"@{way.target}"]
        passed |= set(zip(steps, steps[1:], steps[2:], strict=False))
    return {pipe for before, pipe, after in passed if (after, pipe, before) in passed}


class _Points:
    """Ends of one-way links joined by what follows what; `@name` is a net point.

    With `named` a link called "a -> b" by two net points, as `topo.write` calls it, is told its ends.
    """

    def __init__(self, platform: Platform, one_way: Iterable[str], named: bool) -> None:
        self.platform = platform
        self.up: dict[str, str] = {}
        self.point: dict[str, str] = {}
        self.inside: dict[str, set[str]] = {}
        for name in one_way:
            told = name.split(" -> ")
            known = named and len(told) == 2 and all(end in platform.graph for end in told)
            ends = told if known else ["", ""]
            for end, point in zip((f"{name}|in", f"{name}|out"), ends, strict=True):
                self.up[end] = f"@{point}" if point else end
                self.inside.setdefault(self.up[end], set()).add(name)
        self.connectors: dict[tuple[str, str, str], None] = {}
        self.joined: set[tuple[str, str]] = set()

    def find(self, end: str) -> str:
        while (above := self.up.get(end, end)) != end:
            self.up[end] = self.up.get(above, above)
            end = above
        return end

    def label(self, end: str) -> str:
        """Return the node an end is part of."""
        root = self.find(end)
        return self.point.get(root, root) if not root.startswith("@") else root[1:]

    def ends(self, way: Way) -> list[tuple[str, str, str]]:
        """Return (end, end, link) of every step from one link of a route to the next."""
        tails = [f"@{way.source}", *(f"{pipe}|out" for pipe in way.pipes)]
        target = self.platform.entry.get(way.target, way.target)
        heads = [*(f"{pipe}|in" for pipe in way.pipes), f"@{target}"]
        near = [*way.pipes, way.pipes[-1]] if way.pipes else []
        return list(zip(tails, heads, near, strict=True))

    def follow(self, way: Way, both: set[str]) -> None:
        for tail, head, pipe in self.ends(way):
            if (tail, head) in self.joined:
                continue
            self.joined.add((tail, head))
            fixed = any(end.rpartition("|")[0] in both and not end.startswith("@") for end in (tail, head))
            if fixed or not self._merge(tail, head):
                self.connectors[tail, head, pipe] = None

    def _merge(self, tail: str, head: str) -> bool:
        """Join two ends, unless that makes one of two net points or a loop of a link."""
        a, b = self.find(tail), self.find(head)
        if a == b:
            return True
        names = {self._net_point(end) for end in (a, b)} - {""}
        if len(names) > 1 or self.inside.get(a, set()) & self.inside.get(b, set()):
            return False
        self.up[a] = b
        self.inside[b] = self.inside.pop(a, set()) | self.inside.get(b, set())
        if names:
            self.point[b] = names.pop()
        return True

    def _net_point(self, root: str) -> str:
        return root[1:] if root.startswith("@") else self.point.get(root, "")

    def walk(self, way: Way, both: set[str]) -> list[str]:
        """Return the nodes a route passes."""
        nodes = [way.source]
        for node in (self.label(end) for step in self.ends(way) for end in step[:2]):
            if node != nodes[-1]:
                nodes.append(node)
        return nodes


def _shortest(graph: nx.DiGraph[str], start: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return hops to every node and the number of paths with so few, through nodes that forward."""
    hops, ways = {start: 0}, {start: 1}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node != start and not graph.nodes[node]["forwards"]:
            continue
        for other in graph.successors(node):
            if other not in hops:
                hops[other], ways[other] = hops[node] + 1, 0
                queue.append(other)
            if hops[other] == hops[node] + 1:
                ways[other] += ways[node]
    return hops, ways
