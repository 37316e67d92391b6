"""Which paths does each routing rule take? Written down from docs/routing.md in plain Python, pair by pair.

Nothing of the project is used here. A walk returns (links, share) per path of a pair; a link is (a, b), or (a, b, lane)
where the rule keeps a flow on one cable.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import networkx as nx

from .brute import Phase, _hops_left, _next, paths

Link = tuple
Walk = Callable[[nx.Graph, str, str], list[tuple[list[Link], float]]]
KINDS = ("scale-up", "pcie", "scale-out")


def phase_of(graph: nx.Graph, flows: dict[tuple[str, str], float], walk: Walk) -> Phase:
    """Return loads and time of a phase under a rule; `brute.evaluate` for any walk, cables counted apart."""
    phase = Phase()
    for (source, target), n_bytes in flows.items():
        if n_bytes == 0 or source == target:
            continue
        found = walk(graph, source, target)
        if not found:
            phase.unreachable.append((source, target))
        assert not found or abs(sum(share for _, share in found) - 1) < 1e-9
        for links, share in found:
            part = n_bytes * share
            latency = sum(graph.edges[link[:2]]["latency"] for link in links)
            narrowest = min((rate(graph, link) for link in links), default=float("inf"))
            phase.path_seconds = max(phase.path_seconds, latency + part / narrowest)
            for link in links:
                phase.loads[link] += part
                phase.least[link] = min(phase.least.get(link, float("inf")), latency)
    for link, load in phase.loads.items():
        phase.link_seconds = max(phase.link_seconds, load / rate(graph, link) + phase.least[link])
    return phase


def rate(graph: nx.Graph, link: Link) -> float:
    data = graph.edges[link[:2]]
    if len(link) == 2:
        return data["bandwidth"]
    return data.get("lane_bandwidths", [data["bandwidth"] / data.get("lanes", 1)] * data.get("lanes", 1))[link[2]]


# --- fewest hops: even, paths ----------------------------------------------------------------------------------------


def by_paths(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
    """Every path with fewest hops takes the same share."""
    found = [links for links, _ in paths(graph, source, target)]
    return [(links, 1 / len(found)) for links in found]


def evenly(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
    """At every node of the tree of paths each branch takes the same share."""
    return split([links for links, _ in paths(graph, source, target)], lambda link: 1.0)


def split(found: list[list[Link]], weight: Callable[[Link], float]) -> list[tuple[list[Link], float]]:
    """Share a flow over paths, at each branch in proportion to the weight of the next links."""
    after: dict[tuple[Link, ...], set[Link]] = defaultdict(set)
    for links in found:
        for i, link in enumerate(links):
            after[tuple(links[:i])].add(link)

    def share(links: list[Link]) -> float:
        product = 1.0
        for i, link in enumerate(links):
            product *= weight(link) / sum(map(weight, after[tuple(links[:i])]))
        return product

    return [(links, share(links)) for links in found]


# --- single ----------------------------------------------------------------------------------------------------------


def natural(label: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", label)]


class DestinationModK:
    """D-mod-k on graphs without pcie: roles of nodes are their own."""

    def __init__(self, graph: nx.Graph, ranks: Sequence[str]) -> None:
        self.ranks = list(ranks)
        self.plans = {kind: self._levels(graph, kind) for kind in KINDS}

    def _levels(self, graph: nx.Graph, kind: str) -> tuple[dict[str, int], dict[int, int]]:
        """Return level of every node that passes traffic on, and the most up-ports of a level."""
        used = [(a, b) for a, b, d in graph.edges(data=True) if d["kind"] == kind]
        used += [] if graph.is_directed() else [(b, a) for a, b in used]
        inner = {n for n, d in graph.nodes(data=True) if d.get("forwards", d["kind"] == "switch")}
        level: dict[str, int] = {}
        for ways in (used, [(b, a) for a, b in used]):
            ring, distance = set(self.ranks), 0
            reached: set[str] = set()
            while ring:
                ring = {b for a, b in ways if a in ring and b in inner and b not in reached}
                reached |= ring
                for node in ring:
                    level[node] = min(level.get(node, 10**6), distance)
                distance += 1
        up: dict[int, int] = defaultdict(lambda: 1)
        for node in graph:
            of = {-1} if node in self.ranks else set()
            for at in of | ({level[node]} if node in level else set()):
                heads = [b for a, b in used if a == node and b in inner and level[b] > at]
                cables = sum(graph.edges[node, b].get("lanes", 1) for b in heads)
                up[at] = max(up[at], cables)
        return level, up

    def __call__(self, graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
        for kind in KINDS:
            left = _hops_left(graph, kind, (source, None, False), target)
            if (source, None, False) in left:
                return [(list(self._walk(graph, kind, (source, None, False), target, left)), 1.0)]
        return []

    def _walk(self, graph: nx.Graph, kind: str, state: tuple, target: str, left: dict) -> Iterator[Link]:
        level, up = self.plans[kind]
        d = self.ranks.index(target)
        at = -1
        while left[state]:
            node = state[0]
            cables = []
            for after in _next(graph, kind, state):
                if left.get(after, -1) == left[state] - 1:
                    cables += [(after, lane) for lane in range(graph.edges[node, after[0]].get("lanes", 1))]
            cables.sort(key=lambda one: (natural(one[0][0]), one[1]))
            divisor = 1
            for lower in range(-1, min(min(at, -1 if after[0] == target else level[after[0]]) for after, _ in cables)):
                divisor *= up[lower]
            after, lane = cables[(d // divisor) % len(cables)]
            yield node, after[0], lane
            state, at = after, level.get(after[0], -1)


# --- dor -------------------------------------------------------------------------------------------------------------


def on_torus(dims: Sequence[int], wrap: bool = True, twist: dict | None = None) -> Walk:
    """Dimension order as a step vector: fewest steps, of several the largest in dictionary order, axis by axis."""

    def home(point: Sequence[int]) -> tuple[int, ...] | None:
        at = list(point)
        for axis in sorted(range(len(dims)), key=lambda a: (not any(a == w for w, _ in (twist or {})), a)):
            turns, at[axis] = divmod(at[axis], dims[axis])
            if turns and not wrap:
                return None
            for (wrapped, other), shift in (twist or {}).items():
                if wrapped == axis:
                    at[other] += turns * shift
        return tuple(at)

    def walk(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
        at = {tuple(graph.nodes[node]["coordinates"]): node for node in graph}
        begin, end = (graph.nodes[node]["coordinates"] for node in (source, target))
        vectors = itertools.product(*(range(-side, side + 1) for side in dims))
        ending = [v for v in vectors if home([c + s for c, s in zip(begin, v, strict=True)]) == tuple(end)]
        best = max(ending, key=lambda v: (-sum(map(abs, v)), v))
        links, now, point = [], source, list(begin)
        for axis, steps in enumerate(best):
            for _ in range(abs(steps)):
                point[axis] += 1 if steps > 0 else -1
                after = at[home(point)]
                links.append((now, after))
                now = after
        return [(links, 1.0)]

    return walk


def on_hyperx(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
    """Straight to the destination's coordinate, axis by axis."""
    (now,), (last,) = graph[source], graph[target]
    at = {tuple(d["coordinates"]): n for n, d in graph.nodes(data=True) if "coordinates" in d}
    links, point, end = [(source, now)], list(graph.nodes[now]["coordinates"]), graph.nodes[last]["coordinates"]
    for axis, coordinate in enumerate(end):
        if point[axis] != coordinate:
            point[axis] = coordinate
            links.append((now, at[tuple(point)]))
            now = at[tuple(point)]
    return [([*links, (now, target)], 1.0)]


# --- dragonfly and Valiant -------------------------------------------------------------------------------------------


def minimal(graph: nx.Graph, source: str, target: str, start: str | None = None) -> list[tuple[list[Link], float]]:
    """Of all simple paths with at most one link between groups those with fewest hops, split by capacity."""
    begin = start or source
    group = nx.get_node_attributes(graph, "group")
    routers = [node for node, data in graph.nodes(data=True) if data["kind"] == "switch"]
    inner = graph.subgraph([*routers, begin, target])
    found = []
    for nodes in nx.all_simple_paths(inner, begin, target, cutoff=5):
        between = [group[a] != group[b] for a, b in itertools.pairwise(nodes) if a in group and b in group]
        if sum(between) <= 1:
            found.append(list(itertools.pairwise(nodes)))
    fewest = min(map(len, found), default=0)
    return split([links for links in found if len(links) == fewest], lambda link: graph.edges[link]["bandwidth"])


def over_groups(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
    """To a group drawn at random, to whichever router of it is met first, and minimally on."""
    group = nx.get_node_attributes(graph, "group")
    names = sorted(set(group.values()))
    (own,) = graph[source]
    whole = []
    for drawn in names:
        if group[own] == drawn:
            first = [([(source, own)], 1.0)]
        else:
            inner = graph.subgraph([n for n in group if group[n] == group[own]])
            to = [
                [*itertools.pairwise([source, own, *nodes[1:], after])]
                for router in inner for nodes in [nx.shortest_path(inner, own, router)]
                for after in graph[router] if group.get(after) == drawn
            ]  # fmt: skip
            fewest = min(map(len, to))
            first = split([links for links in to if len(links) == fewest], lambda link: graph.edges[link]["bandwidth"])
        for links, share in first:
            for more, rest in minimal(graph, source, target, start=links[-1][1]):
                whole.append((links + more, share * rest / len(names)))
    return whole


def over_nodes(stops: Sequence[str], half: Walk) -> Walk:
    """To a stop drawn at random and on from there; a stop that is the source or the target costs no hop."""

    def walk(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
        whole = []
        for stop in stops:
            to = [([], 1.0)] if stop == source else half(graph, source, stop)
            on = [([], 1.0)] if stop == target else half(graph, stop, target)
            whole += [(a + b, p * q / len(stops)) for a, p in to for b, q in on]
        return whole

    return walk


# --- tables and hashes -----------------------------------------------------------------------------------------------


def by_hash(ranks: Sequence[str], nodes: Sequence[str], seed: int, queue_pairs: int) -> Walk:
    """Over scale-out each queue pair takes next cable number hash mod n; `nodes` numbers nodes."""

    def mix(word: int, value: int) -> int:
        word = (word + value + 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    def walk(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
        taken: dict[tuple[Link, ...], float] = defaultdict(float)
        kind = next(k for k in KINDS if (source, None, False) in _hops_left(graph, k, (source, None, False), target))
        if kind != "scale-out":
            return paths(graph, source, target)
        left = _hops_left(graph, kind, (source, None, False), target)
        for pair in range(queue_pairs):
            word = mix(mix(mix(seed, ranks.index(source)), ranks.index(target)), pair)
            state, links = (source, None, False), []
            while left[state]:
                onward = [after for after in _next(graph, kind, state) if left.get(after, -1) == left[state] - 1]
                onward.sort(key=lambda after: natural(after[0]))
                cables = [(a, lane) for a in onward for lane in range(graph.edges[state[0], a[0]].get("lanes", 1))]
                after, lane = cables[mix(word, nodes.index(state[0])) % len(cables)]
                hop = state[0], after[0]
                links.append((*hop, lane) if graph.edges[hop]["kind"] == kind else hop)
                state = after
            taken[tuple(links)] += 1 / queue_pairs
        return [(list(links), share) for links, share in taken.items()]

    return walk
