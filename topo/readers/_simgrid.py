"""What does a SimGrid platform say? Zones of hosts, routers, clusters and links, and the routes over them.

The latency of a route is the sum over its links. Speeds of hosts are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import networkx as nx

from topo._xml import parse_xml
from topo.readers._parts import Checked, finished, merged_ways
from topo.readers._platform import Pipe, Platform, Way
from topo.readers._reading import Reader, Reading, Source
from topo.readers._simgrid_clusters import POLICIES, add_cluster, add_hub, radicals, require_keys

__all__ = ["SIMGRID_XML"]

_ROUTED = {"Full": "told", "Floyd": "composed", "Dijkstra": "composed", "DijkstraCache": "composed"}
_ZONES, _ROUTES = ("zone", "AS"), ("route", "zoneRoute", "ASroute")
_DEEPEST = 50
_ENDS = (*_ZONES, "cluster", "host")
_SILENT = ("prop", "config", "storage", "storage_type", "mstorage", "mount", "disk")
_TRACES = ("trace", "trace_connect")
_LINK_KEYS = ("id", "bandwidth", "latency", "sharing_policy", "bandwidth_file", "latency_file", "state_file", "state")
_BYPASS = ("bypassRoute", "bypassZoneRoute", "bypassASroute")


def _recognises(source: Source) -> bool:
    return bool(re.search(r"<platform\b[^>]*\bversion\s*=", source.clean[:50_000]))


def _read(source: Source) -> Reading:
    checked = Checked(source.file)
    text = re.sub(r"^\s*<\?xml[^>]*\?>", lambda m: "\n" * m[0].count("\n"), source.clean.lstrip("\ufeff"))
    root = parse_xml(text.encode(), source.file)
    platform = Platform(checked)
    zones = _Zones(platform, source.lines)
    for element in root:
        zones.read(element, "Full")
    checked.settle()
    platform.lay()
    checked.settle()
    graph = merged_ways(platform.graph)
    if not platform.hosts:
        raise checked.refuse("platform", 0, "has no host", "Give a platform with hosts or clusters.")
    platform.notes.insert(0, "speeds of hosts are not read: SimGrid's hosts are end points here")
    platform.notes += _notes(platform, graph)
    return finished("simgrid-xml", source.file, graph, platform.notes)


def _notes(platform: Platform, graph: nx.Graph[str]) -> Iterator[str]:
    if any(str(node).endswith("|in") for node in graph):
        yield "a SHARED link has one bandwidth for both ways together: its edge stands between name|in and name|out"
    wide = sorted(name for name, pipe in platform.pipes.items() if pipe.policy == "FATPIPE" and " (" not in name)
    if wide:
        yield (
            f"FATPIPE links never fill ({', '.join(wide[:5])}): given {platform.hosts}^2 times their bandwidth; "
            "that one flow gets no more than their own is not kept"
        )
    alone = [node for node in graph if not graph.degree(node)]
    if alone:
        yield f"{len(alone)} net points are on no route: {', '.join(alone[:5])}"


class _Zones:
    """The walk through the zones of one file."""

    def __init__(self, platform: Platform, lines: list[str]) -> None:
        self.platform, self.checked = platform, platform.checked
        self.line: dict[str, int] = {}
        for number, line in enumerate(lines, 1):
            for _, value in re.findall(r"\b(id|src)\s*=\s*(\"[^\"]*\"|'[^']*')", line):
                self.line.setdefault(value[1:-1], number)
        #: Zone or cluster -> net points by which traffic enters and leaves it; None where SimGrid skips its links.
        self.gates: dict[str, set[str] | None] = {}
        self.with_hosts: set[str] = set()
        self.depth = 0

    def place(self, element: Element, key: str = "id") -> str:
        name = element.get(key, "")
        return f"line {self.line.get(name, 1)} <{element.tag} {name}>"

    def read(self, element: Element, routing: str) -> None:
        """Read one child of a zone (or of the platform) whose routing is given."""
        before, self.depth = self.platform.hosts, self.depth + 1
        if self.depth > _DEEPEST:
            raise self.checked.refuse(self.place(element), self.depth, f"is within more than {_DEEPEST} zones")
        self._read(element, routing)
        self.depth -= 1
        if self.platform.hosts > before:
            self.with_hosts.add(element.get("id", ""))

    def _read(self, element: Element, routing: str) -> None:
        tag, name, place = element.tag, element.get("id", ""), self.place(element)
        if tag in _ZONES:
            self.zone(element)
        elif tag == "cluster":
            router = add_cluster(self.platform, element, place)
            self.gates[name] = set() if router else None
        elif tag == "host":
            self.platform.add_host(name, place)
        elif tag == "router":
            self.platform.add_router(name, place)
        elif tag in ("link", "backbone"):
            self.link(element, place)
        elif tag in _ROUTES and routing in _ROUTED:
            self.route(element, _ROUTED[routing] == "told")
        elif tag in _TRACES:
            self.note_changes()
        elif tag in _BYPASS:
            self.checked.fault(
                self.place(element, "src"), tag, "changes single routes, which is not read", "Leave it out."
            )
        elif tag not in (*_SILENT, *(("host_link", "cabinet") if routing == "Cluster" else ())):
            self.checked.fault(place, tag, f"is not read in a zone of {routing} routing", "Use Full, or a cluster.")

    def zone(self, element: Element) -> None:
        routing = element.get("routing", "Full")
        place = self.place(element)
        self.gates[element.get("id", "")] = set()
        inside = [child for child in element if child.tag in (*_ENDS, "router", "peer")]
        if routing not in (*_ROUTED, "Cluster") and len(inside) > 1:
            rule = "makes routes of coordinates or none at all, which is not read"
            self.checked.fault(f"{place} routing", routing, rule, "Give routes: Full, Floyd, Dijkstra or clusters.")
            return
        for child in element:
            self.read(child, routing)
        self.checked.settle()
        if routing == "Cluster":
            self.cluster_zone(element, place)
        if _ROUTED.get(routing) == "composed":
            self.compose(element, place)
        elif routing == "Full":
            self.note_missing(element)

    def note_missing(self, element: Element) -> None:
        """Say how many pairs of a zone have no route: the graph may join them all the same."""
        names = {child.get("id", "") for child in element if child.tag in _ENDS} & self.with_hosts
        told = {frozenset((child.get("src", ""), child.get("dst", ""))) for child in element if child.tag in _ROUTES}
        missing = len(names) * (len(names) - 1) // 2 - sum(len(pair & names) == 2 for pair in told)
        if missing:
            self.platform.notes.append(
                f"zone {element.get('id')}: {missing} pairs have no route in the file; here they may have a path"
            )

    def cluster_zone(self, element: Element, place: str) -> None:
        """Read a cluster told piece by piece: host_link, cabinet, backbone, router."""
        routers = [child.get("id", "") for child in element if child.tag == "router"]
        if len(routers) > 1:
            self.checked.fault(place, ", ".join(routers), "are several routers of one cluster", "Leave one.")
            return
        router = routers[0] if routers else f"{element.get('id', '')}_router"
        backbone = next((self.platform.pipes.get(c.get("id", "")) for c in element if c.tag == "backbone"), None)
        if not routers:
            self.platform.add_router(router, place)
        add_hub(self.platform, router, backbone)
        for child in element:
            name, where = child.get("id", ""), self.place(child)
            if child.tag == "host_link":
                up, down = child.get("up", ""), child.get("down", "")
                self.way(where, name, router, [up], symmetrical=up == down)
                if up != down:
                    self.way(where, router, name, [down], symmetrical=False)
            elif child.tag == "cabinet":
                rate = self.checked.rate(f"{where} bw", child.get("bw", ""))
                pipe = Pipe(rate, self.checked.time(f"{where} lat", child.get("lat", "")), "SPLITDUPLEX")
                for i in radicals(self.platform, child.get("radical", ""), f"{where} radical"):
                    host = f"{child.get('prefix', '')}{i}{child.get('suffix', '')}"
                    self.platform.add_host(host, where)
                    self.platform.join(f"{name}/{host}", host, router, pipe)

    def link(self, element: Element, place: str) -> None:
        name, policy = element.get("id", ""), element.get("sharing_policy", "SHARED")
        if policy not in POLICIES:
            self.checked.fault(f"{place} sharing_policy", policy, "is not read: SHARED, SPLITDUPLEX and FATPIPE are")
        rate = self.checked.rate(f"{place} bandwidth", element.get("bandwidth", ""))
        pipe = Pipe(rate, self.checked.time(f"{place} latency", element.get("latency", "0")), POLICIES.get(policy, ""))
        require_keys(self.platform, element, _LINK_KEYS, place)
        if any(key.endswith("_file") for key in element.attrib):
            self.note_changes()
        names = [f"{name}_UP", f"{name}_DOWN"] if pipe.policy == "SPLITDUPLEX" else [name]
        for each in names:
            if self.platform.pipes.get(each, pipe) != pipe:
                self.checked.fault(place, name, "is the name of another link already", "Rename it.")
            self.platform.pipes[each] = pipe

    def note_changes(self) -> None:
        self.platform.notes.append("what traces change while SimGrid runs is not read: links are as at the start")

    def route(self, element: Element, told: bool) -> None:
        source, target = element.get("src", ""), element.get("dst", "")
        place = f"{self.place(element, 'src')} to {target}"
        if element.tag != "route":
            ends = self.gate(element, "src", "gw_src", place), self.gate(element, "dst", "gw_dst", place)
            source, target = ends
        pipes = []
        for child in element:
            direction = child.get("direction", "NONE")
            pipes.append(child.get("id", "") + (f"_{direction}" if direction in ("UP", "DOWN") else ""))
        if source != target:
            both = element.get("symmetrical", "YES").upper() != "NO"
            self.way(place, source, target, pipes, symmetrical=both, told=told)

    def gate(self, element: Element, zone: str, gateway: str, place: str) -> str:
        """Return the gateway of a zone's end of a route; more than one of a zone are refused."""
        name, gate = element.get(zone, ""), element.get(gateway, "")
        if name in self.platform.graph:
            return name
        if name not in self.gates:
            self.checked.fault(place, name, "is no zone or net point before this route", "Correct the name.")
            return gate
        gates = self.gates[name]
        if gates is None:
            rule = "is such a cluster that SimGrid's routes out of it skip its links"
            self.checked.fault(place, name, rule, "Use a cluster without topology, or zones with routes.")
            return gate
        gates.add(gate)
        if len(gates) > 1:
            rule = f"has several gateways ({', '.join(sorted(gates))}): which one a route takes no graph says"
            self.checked.fault(place, name, rule, "Give it one gateway.")
        return gate

    def way(
        self, place: str, source: str, target: str, pipes: list[str], *, symmetrical: bool, told: bool = True
    ) -> None:
        """Add a route and, if it is symmetrical, its way back."""
        for end in (source, target):
            if end not in self.platform.graph:
                self.checked.fault(place, end, "is no host or router", "Correct the name; it may be cut off.")
        for name in pipes:
            if name in self.platform.pipes:
                continue
            if f"{name}_UP" in self.platform.pipes:
                self.checked.fault(place, name, "is SPLITDUPLEX: say which way", 'Add direction="UP" or "DOWN".')
            else:
                self.checked.fault(place, name, "is no link", "Correct the name, or add the link.")
        if not pipes:
            self.checked.fault(place, f"{source} to {target}", "has no links", "Give link_ctn elements.")
        self.platform.add_way(Way(place, source, target, tuple(pipes), told))
        if symmetrical:
            back = [_other_way(name) for name in reversed(pipes)]
            self.platform.add_way(Way(place, target, source, tuple(back), told))

    def compose(self, element: Element, place: str) -> None:
        """Check that the fewest links of a zone are the fewest hops of its graph."""
        names = {pipe for way in self.platform.ways if not way.direct for pipe in way.pipes}
        if len({self.platform.pipes[name].policy == "SHARED" for name in names}) > 1:
            rule = "composes routes over SHARED and other links, whose hops differ here"
            self.checked.fault(place, element.get("routing"), rule, "Give all its links one sharing_policy.")
        if any(len(way.pipes) != 1 for way in self.platform.ways if not way.direct):
            rule = "has routes of several links to compose others from, which is not read"
            self.checked.fault(place, element.get("routing"), rule, "Put a router between any two links.")
        self.platform.notes.append(
            f"zone {element.get('id')}: {element.get('routing')} takes one path of fewest links, ecmp here all"
        )


def _other_way(name: str) -> str:
    for end, other in (("_UP", "_DOWN"), ("_DOWN", "_UP")):
        if name.endswith(end):
            return name.removesuffix(end) + other
    return name


SIMGRID_XML = Reader("simgrid-xml", "SimGrid platform XML", _recognises, _read)
