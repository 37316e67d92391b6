"""What does a file of BookSim say? Its configuration of a regular network, or an anynet list of links.

BookSim counts flits and cycles: a channel takes one flit a cycle. Here one flit a cycle is 1 GB/s
and one cycle 1 ns; `topo.scale` makes it another. Channels of hosts (injection and ejection) have
the rate of the others. A network that this project cannot wire exactly is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations

import networkx as nx

from topo._asked import MOST, Link, add_cable
from topo._errors import suggest
from topo._tori import Lattice
from topo.readers._levels import level_sizes, tree_cables
from topo.readers._parts import Checked, finished, merged_ways
from topo.readers._reading import Reader, Reading, Source

__all__ = ["BOOKSIM"]

_FLIT, _CYCLE = 1e9, 1e-9
_SETTING = re.compile(r"(?:^|(?<=;))\s*(\w+)\s*=\s*([^;{}]*|\{[^}]*\})\s*;", re.M)
_LINK_LINE = re.compile(r"\s*(?:router|node)\s+\d+(?:\s+(?:router|node)\s+\d+(?:\s+\d+)?)+\s*", re.I)
_DEFAULTS = {"k": 8, "n": 2, "c": 1, "use_noc_latency": 1}
_UNITS = "BookSim counts flits and cycles: one flit a cycle is read as 1 GB/s, one cycle as 1 ns"
_WIRES = "delays inside routers, buffers and virtual channels are not read"

Settings = dict[str, tuple[int, str]]


def _recognises(source: Source) -> bool:
    if re.search(r"^\s*topology\s*=\s*\w+\s*;", source.clean[:100_000], re.M):
        return True
    lines = [line for line in source.lines[:100] if line.strip()]
    return bool(lines) and bool(_LINK_LINE.fullmatch(lines[0]))


def _read(source: Source) -> Reading:
    checked = Checked(source.file)
    if any(_LINK_LINE.fullmatch(line) for line in source.lines[:100]):
        graph, notes = _anynet(checked, source.lines)
    else:
        graph, notes = _configured(checked, _settings(source.clean))
    return finished("booksim-anynet", source.file, graph, [_UNITS, *notes, _WIRES])


# --- configuration files ---------------------------------------------------------------------------------------------


def _settings(text: str) -> Settings:
    """Return the line and value of every setting; the last one counts, as in BookSim."""
    bare = re.sub(r"//[^\n]*", "", text)
    return {m[1]: (bare.count("\n", 0, m.start(1)) + 1, m[2].strip()) for m in _SETTING.finditer(bare)}


def _configured(checked: Checked, settings: Settings) -> tuple[nx.Graph[str], list[str]]:
    line, name = settings.get("topology", (1, ""))
    place = f"line {line} topology"
    if name == "anynet":
        file = settings.get("network_file", (line, ""))[1]
        cure = f"Read that file: {file or 'network_file is missing'}."
        raise checked.refuse(place, name, "has its links in another file", cure)
    if name not in _SHAPES:
        rule = "is a network this reader does not wire exactly as BookSim"
        raise checked.refuse(place, name, rule, f"{suggest(name, _SHAPES)} Or list its links as an anynet file.")
    numbers, notes = {}, []
    for key, default in _DEFAULTS.items():
        at, text = settings.get(key, (0, str(default)))
        numbers[key] = checked.whole(f"line {at} {key}", text, int(key != "use_noc_latency"))
        if not at and key in ("k", "n"):
            notes.append(f"{key} = {default}: BookSim's default, the file does not say")
    checked.settle()
    if numbers["c"] != 1 and name != "flatfly":
        notes.append(f"c = {numbers['c']} means nothing in a {name} of BookSim")
    k, n = numbers["k"], numbers["n"]
    around = k if name == "flatfly" else 1
    if n > 40 or k**n * (numbers["c"] + 1 + n * around) > MOST or (name == "dragonflynew" and k > 23):
        rule = f"means more nodes and links than a graph of Python objects holds: {MOST:,}"
        raise checked.refuse(place, f"k = {k}, n = {n}", rule, "Take a smaller one.")
    if settings.get("link_failures", (0, "0"))[1] not in ("0", ""):
        at, count = settings["link_failures"]
        raise checked.refuse(f"line {at} link_failures", count, "fails links at random", "Set 0, and use topo.fail.")
    return _SHAPES[name](checked, place, numbers), notes


def _routers(n: int, hosts: int) -> nx.Graph[str]:
    """Return n routers with so many hosts each."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((f"node{i}" for i in range(n * hosts)), kind="host", forwards=False)
    graph.add_nodes_from((f"router{i}" for i in range(n)), kind="switch", forwards=True)
    for i in range(n * hosts):
        add_cable(graph, f"node{i}", f"router{i // hosts}", _channel(1))
    return graph


def _channel(cycles: int) -> Link:
    return Link("scale-out", _FLIT, cycles / 1e9)


def _grid(wrap: bool) -> Callable[[Checked, str, dict[str, int]], nx.Graph[str]]:
    def build(_checked: Checked, _place: str, numbers: dict[str, int]) -> nx.Graph[str]:
        k, n = numbers["k"], numbers["n"]
        graph = _routers(k**n, 1)
        channel = _channel(2 if wrap and numbers["use_noc_latency"] == 1 else 1)
        for a, b, _ in Lattice((k,) * n, (wrap,) * n, {}, tuple(range(n))).steps():
            ends = f"router{a}", f"router{b}"
            add_cable(graph, *ends, channel, graph.edges[ends]["lanes"] + 1 if graph.has_edge(*ends) else 1)
        return graph

    return build


def _fattree(_checked: Checked, _place: str, numbers: dict[str, int]) -> nx.Graph[str]:
    k, n = numbers["k"], numbers["n"]
    down, up = [k] * n, [1] + [k] * (n - 1)
    graph = _routers(0, 1)
    sizes = level_sizes(down, up)
    graph.add_nodes_from((f"node{i}" for i in range(sizes[0])), kind="host", forwards=False)
    for level, size in enumerate(sizes[1:], 1):
        graph.add_nodes_from((f"router{level}.{i}" for i in range(size)), kind="switch", forwards=True)
    for level, low, high in tree_cables(down, up):
        below = f"router{level}.{low}" if level else f"node{low}"
        add_cable(graph, below, f"router{level + 1}.{high}", _channel(1))
    return graph


def _dragonfly(checked: Checked, place: str, numbers: dict[str, int]) -> nx.Graph[str]:
    if numbers["n"] != 1:
        raise checked.refuse(place, f"n = {numbers['n']}", "dragonflynew takes n = 1 only")
    p = numbers["k"]
    a, groups = 2 * p, 2 * p * p + 1
    graph = _routers(a * groups, p)
    for group in range(groups):
        for i, j in combinations(range(a), 2):
            add_cable(graph, f"router{group * a + i}", f"router{group * a + j}", _channel(10))
    for i, j in combinations(range(groups), 2):
        add_cable(graph, f"router{i * a + (j - 1) // p}", f"router{j * a + i // p}", _channel(100))
    return graph


def _flatfly(checked: Checked, place: str, numbers: dict[str, int]) -> nx.Graph[str]:
    if numbers["use_noc_latency"] == 1:
        rule = "has latencies that follow from BookSim's floor plan, which is not read"
        raise checked.refuse(place, "flatfly", rule, "Set use_noc_latency = 0: one cycle a channel.")
    k, n = numbers["k"], numbers["n"]
    graph = _routers(k**n, numbers["c"])
    for stride in (k**axis for axis in range(n)):
        for router in (r for r in range(k**n) if r // stride % k == 0):
            for i, j in combinations(range(k), 2):
                add_cable(graph, f"router{router + i * stride}", f"router{router + j * stride}", _channel(1))
    return graph


_SHAPES: dict[str, Callable[[Checked, str, dict[str, int]], nx.Graph[str]]] = {
    "torus": _grid(True), "mesh": _grid(False), "fattree": _fattree, "dragonflynew": _dragonfly, "flatfly": _flatfly,
}  # fmt: skip


# --- anynet files ----------------------------------------------------------------------------------------------------


def _anynet(checked: Checked, lines: list[str]) -> tuple[nx.Graph[str], list[str]]:
    home: dict[int, tuple[int, int]] = {}
    ways: dict[tuple[int, int], int] = {}
    routers: set[int] = set()
    stated: set[tuple[int, int]] = set()
    for number, line in enumerate(lines, 1):
        for (kind, i), (other, j), cycles in _links(checked, f"line {number}", line):
            routers |= {n for what, n in ((kind, i), (other, j)) if what == "router"}
            if kind == other == "router":
                ways[i, j] = cycles or 1
                ways.setdefault((j, i), 1)
                stated |= {(i, j)} if cycles else set()
                continue
            node, router = (i, j) if kind == "node" else (j, i)
            if home.setdefault(node, (router, cycles or 1))[0] != router:
                rule = f"is joined to router {home[node][0]} already, and a node has one router"
                checked.fault(f"line {number} node", node, rule)
            home[node] = (router, cycles or 1)
    for what, seen in (("node", set(home)), ("router", routers)):
        if seen != set(range(len(seen))):
            missing = min(set(range(len(seen))) - seen)
            rule = f"is missing: {what}s are numbered from 0 without gaps. The file may be cut off"
            checked.fault(f"line {len(lines)}", f"{what} {missing}", rule, "Give the whole file.")
    checked.settle()
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from((f"node{i}" for i in range(len(home))), kind="host", forwards=False)
    graph.add_nodes_from((f"router{i}" for i in range(len(routers))), kind="switch", forwards=True)
    for node, (router, cycles) in sorted(home.items()):
        add_cable(graph, f"node{node}", f"router{router}", _channel(cycles))
        add_cable(graph, f"router{router}", f"node{node}", _channel(cycles))
    for (i, j), cycles in ways.items():
        add_cable(graph, f"router{i}", f"router{j}", _channel(cycles))
    notes = [] if all((j, i) in stated for i, j in stated) else [
        "a latency between routers holds one way, as in BookSim: the way back that is not stated is one cycle"
    ]  # fmt: skip
    if any(cycles > 1 for cycles in ways.values()):
        notes.append("BookSim routes by the least cycles, this project by the fewest hops: they can differ here")
    return merged_ways(graph), notes


End = tuple[str, int]


def _links(checked: Checked, place: str, line: str) -> Iterator[tuple[End, End, int]]:
    """Yield the links of one line: end, end, cycles (0 where they are not stated)."""
    words = line.lower().split()
    if not words:
        return
    if not _LINK_LINE.fullmatch(line):
        rule = "must be like: router 0 node 0 node 1 router 1 15"
        checked.fault(place, line.strip()[:80], rule, "Correct that line; it may be cut off.")
        return
    pairs = re.findall(r"(router|node)\s+(\d+)(?:\s+(\d+))?", line.lower())
    ends = [(kind, checked.whole(place, number)) for kind, number, _ in pairs]
    for (kind, i), (*_, cycles) in zip(ends[1:], pairs[1:], strict=True):
        if kind == ends[0][0] == "node":
            checked.fault(place, f"node {ends[0][1]} node {i}", "joins two nodes", "Join each to a router.")
        elif ends[0][0] == "node" and cycles:
            checked.fault(
                place, cycles, "BookSim takes no latency on a line that starts with a node", "Start with router."
            )
        elif (kind, i) == ends[0]:
            checked.fault(place, f"router {i}", "is joined to itself")
        else:
            yield ends[0], (kind, i), checked.whole(place, cycles, 1) if cycles else 0


BOOKSIM = Reader("booksim-anynet", "BookSim configuration or anynet file", _recognises, _read)
