"""What does a phase cost, worked out the slow way? Walks every path of every flow on the plain graph.

Nothing of the project is used here. The rules are those of the design: the first path class in which a path exists;
fewest hops within it; at each hop a split in proportion to the bandwidth of the next edges; a NIC passes traffic only
between its host and the fabric, a CPU only from pcie to pcie, a GPU only if it `forwards`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import networkx as nx

Link = tuple[str, str]
#: A node, the kind of the edge that led to it (None at the source), whether the flow has been on the fabric.
State = tuple[str, str | None, bool]


@dataclass
class Phase:
    """Loads [bytes] and least path latency [s] per directed link, slowest path and slowest link [s]."""

    loads: dict[Link, float] = field(default_factory=lambda: defaultdict(float))
    least: dict[Link, float] = field(default_factory=dict)
    path_seconds: float = 0.0
    link_seconds: float = 0.0
    unreachable: list[Link] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return max(self.path_seconds, self.link_seconds)


def evaluate(graph: nx.Graph, flows: Mapping[Link, float]) -> Phase:
    """Return loads and time of a phase in which each (source, target) pair moves its bytes."""
    phase = Phase()
    for (source, target), n_bytes in flows.items():
        if n_bytes == 0 or source == target:
            continue
        found = paths(graph, source, target)
        if not found:
            phase.unreachable.append((source, target))
        for links, share in found:
            part = n_bytes * share
            latency = sum(graph.edges[link]["latency"] for link in links)
            narrowest = min(graph.edges[link]["bandwidth"] for link in links)
            phase.path_seconds = max(phase.path_seconds, latency + part / narrowest)
            for link in links:
                phase.loads[link] += part
                phase.least[link] = min(phase.least.get(link, float("inf")), latency)
    for link, load in phase.loads.items():
        phase.link_seconds = max(phase.link_seconds, load / graph.edges[link]["bandwidth"] + phase.least[link])
    return phase


def paths(graph: nx.Graph, source: str, target: str) -> list[tuple[list[Link], float]]:
    """Return every fewest-hop path of the pair's class as its links and its share of the flow."""
    start: State = (source, None, False)
    for kind in ("scale-up", "pcie", "scale-out"):
        left = _hops_left(graph, kind, start, target)
        if start in left:
            return list(_walk(graph, kind, start, target, left))
    return []


def path_class(graph: nx.Graph, source: str, target: str) -> str | None:
    """Return the class of a pair, None if no path leads."""
    for kind in ("scale-up", "pcie", "scale-out"):
        if (source, None, False) in _hops_left(graph, kind, (source, None, False), target):
            return kind
    return None


def _walk(
    graph: nx.Graph, kind: str, state: State, target: str, left: dict[State, int]
) -> Iterator[tuple[list[Link], float]]:
    node = state[0]
    if left[state] == 0:
        yield [], 1.0
        return
    onward = [after for after in _next(graph, kind, state) if left.get(after, -1) == left[state] - 1]
    total = sum(graph.edges[node, after[0]]["bandwidth"] for after in onward)
    for after in onward:
        share = graph.edges[node, after[0]]["bandwidth"] / total
        for links, rest in _walk(graph, kind, after, target, left):
            yield [(node, after[0]), *links], share * rest


def _hops_left(graph: nx.Graph, kind: str, start: State, target: str) -> dict[State, int]:
    """Return the fewest hops to the target from every state that can be reached and can reach it."""
    before: dict[State, list[State]] = {start: []}
    todo = [start]
    while todo:
        state = todo.pop()
        if state[0] == target:
            continue
        for after in _next(graph, kind, state):
            if after not in before:
                before[after] = []
                todo.append(after)
            before[after].append(state)
    ring = [state for state in before if state[0] == target]
    left = dict.fromkeys(ring, 0)
    while ring:
        outer = []
        for state in ring:
            for earlier in before[state]:
                if earlier not in left:
                    left[earlier] = left[state] + 1
                    outer.append(earlier)
        ring = outer
    return left


def _next(graph: nx.Graph, kind: str, state: State) -> Iterator[State]:
    node, came, been_out = state
    for after, edge in graph[node].items():
        goes = edge["kind"]
        if goes not in {"scale-out": ("pcie", "scale-out")}.get(kind, (kind,)):
            continue
        if goes == "scale-out" and been_out and came == "pcie":
            continue  # a flow goes out once: home, fabric, the other host
        if came is None or _passes(graph.nodes[node], came, goes):
            yield after, goes, been_out or goes == "scale-out"


def _passes(node: Mapping[str, object], came: str, goes: str) -> bool:
    kind = node["kind"]
    if kind == "nic":
        return came != goes and "scale-up" not in (came, goes)
    if kind == "cpu":
        return came == goes == "pcie"
    if came != goes:
        return False  # only a NIC stands between a host and the fabric
    if goes == "pcie" and kind != "switch":
        return False
    return bool(node.get("forwards", kind == "switch"))
