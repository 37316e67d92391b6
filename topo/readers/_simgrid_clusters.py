"""What is inside a <cluster> of SimGrid? A crossbar with or without backbone, a fat tree, a torus, a dragonfly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from xml.etree.ElementTree import Element

from topo._asked import MOST
from topo._errors import suggest
from topo.readers._levels import level_sizes, tree_cables
from topo.readers._platform import Pipe, Platform

__all__ = ["POLICIES", "add_cluster", "add_hub", "radicals", "require_keys"]

#: Sharing policies by the names of all versions.
POLICIES = {"SHARED": "SHARED", "SPLITDUPLEX": "SPLITDUPLEX", "FULLDUPLEX": "SPLITDUPLEX", "FATPIPE": "FATPIPE"}
_KEYS = (
    "id", "prefix", "suffix", "radical", "speed", "power", "core", "bw", "lat", "sharing_policy", "bb_bw", "bb_lat",
    "bb_sharing_policy", "loopback_bw", "loopback_lat", "limiter_link", "topology", "topo_parameters", "router_id",
    "availability_file", "state_file",
)  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """A cluster as its attributes say: name, place for messages, hosts in order, what one link is."""

    name: str
    place: str
    hosts: list[str]
    pipe: Pipe
    parameters: str


def add_cluster(platform: Platform, element: Element, place: str) -> str | None:
    """Build a cluster; return its router, None where SimGrid's routes to it skip the cluster's links."""
    checked, get = platform.checked, element.get
    name, prefix, suffix = get("id", ""), get("prefix", ""), get("suffix", "")
    require_keys(platform, element, _KEYS, place)
    hosts = [f"{prefix}{i}{suffix}" for i in radicals(platform, get("radical", ""), f"{place} radical")]
    policy = _policy(platform, get("sharing_policy", "SPLITDUPLEX"), place)
    rate = checked.rate(f"{place} bw", get("bw", ""))
    pipe = Pipe(rate, checked.time(f"{place} lat", get("lat", "")), policy)
    checked.settle()
    for host in hosts:
        platform.add_host(host, place)
    router = get("router_id") or f"{prefix}{name}_router{suffix}"
    platform.add_router(router, place)
    if get("loopback_bw"):
        platform.notes.append("loopback links are not read: what a host sends itself costs nothing")
    if limiter := get("limiter_link"):
        rule = "bounds what a host sends and receives together in SimGrid; it is not read"
        platform.notes.append(f"limiter_link = {limiter} of cluster {name} {rule}")
    topology = get("topology", "FLAT") or "FLAT"
    if topology == "FLAT":
        add_hub(platform, router, _backbone(platform, element, place))
        for host in hosts:
            platform.join(f"{name}/{host}", host, router, pipe)
        return router
    if topology not in _SHAPES:
        raise checked.refuse(f"{place} topology", topology, "is no topology of a cluster", suggest(topology, _SHAPES))
    if get("bb_bw"):
        checked.fault(f"{place} bb_bw", get("bb_bw"), f"a {topology} cluster has no backbone", "Leave it out.")
    _SHAPES[topology](platform, Cluster(name, place, hosts, pipe, get("topo_parameters", "")))
    platform.graph.remove_node(router)
    return None


def _backbone(platform: Platform, element: Element, place: str) -> Pipe | None:
    if not element.get("bb_bw"):
        return None
    rate = platform.checked.rate(f"{place} bb_bw", element.get("bb_bw", ""))
    late = platform.checked.time(f"{place} bb_lat", element.get("bb_lat", "0"))
    return Pipe(rate, late, _policy(platform, element.get("bb_sharing_policy", "SHARED"), place))


def add_hub(platform: Platform, router: str, backbone: Pipe | None) -> None:
    """Put a cluster's backbone before its router: whatever crosses the cluster passes it once."""
    if backbone is not None:
        platform.entry[router] = f"{router}|in"
        platform.graph.add_node(f"{router}|in", kind="switch", forwards=True)
        platform.edge(f"{router}|in", router, backbone)


def require_keys(platform: Platform, element: Element, known: Sequence[str], place: str) -> None:
    """Note every attribute that SimGrid does not have there: it may be a slip of the pen."""
    for key in element.attrib:
        if key not in known:
            platform.checked.fault(f"{place} {key}", element.get(key), "is no attribute of it", suggest(key, known))


def radicals(platform: Platform, text: str, place: str) -> list[int]:
    """Return the numbers of a radical such as 0-15,20."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise platform.checked.refuse(place, text, "must be numbers and ranges, like 0-15,20")
        if len(found) + last - first + 1 + platform.hosts > MOST // 3:
            raise platform.checked.refuse(place, text, f"makes more than {MOST // 3:,} hosts", "Take fewer.")
        found += range(first, last + 1)
    return found


def _policy(platform: Platform, text: str, place: str) -> str:
    if text not in POLICIES:
        platform.checked.fault(f"{place} sharing_policy", text, "is not read", suggest(text, POLICIES))
    return POLICIES.get(text, "SHARED")


def _numbers(platform: Platform, cluster: Cluster, layout: str) -> list[list[int]]:
    """Return topo_parameters, lists between semicolons; `layout` shows how many of each."""
    rows = [row.split(",") for row in cluster.parameters.split(";")]
    place = f"{cluster.place} topo_parameters"
    want = [len(row.split(",")) for row in layout.split(";")]
    if len(rows) != len(want) or any(len(row) != n for row, n in zip(rows, want, strict=True) if "..." not in layout):
        raise platform.checked.refuse(place, cluster.parameters, f"must be like {layout}")
    found = [[platform.checked.whole(place, text, 1, 10_000) for text in row] for row in rows]
    platform.checked.settle()
    return found


def _require_hosts(platform: Platform, cluster: Cluster, wanted: int) -> None:
    if len(cluster.hosts) != wanted:
        rule = f"makes {len(cluster.hosts)} hosts, and topo_parameters {cluster.parameters} needs {wanted}"
        raise platform.checked.refuse(f"{cluster.place} radical", len(cluster.hosts), rule)


def _fat_tree(platform: Platform, cluster: Cluster) -> None:
    (levels, *_), down, up, cables = _numbers(platform, cluster, "levels;down,...;up,...;cables,...")
    if any(len(row) != levels for row in (down, up, cables)):
        rule = f"must list {levels} numbers of children, parents and cables each, as its first number says"
        raise platform.checked.refuse(f"{cluster.place} topo_parameters", cluster.parameters, rule)
    _require_hosts(platform, cluster, prod(down))
    sizes = level_sizes(down, up)
    if sum(size * parents for size, parents in zip(sizes, up, strict=False)) > MOST:
        raise platform.checked.refuse(f"{cluster.place} topo_parameters", cluster.parameters, "makes too many links")
    for level, size in enumerate(sizes[1:], 1):
        for i in range(size):
            platform.add_router(f"{cluster.name}/switch{level}.{i}", cluster.place)
    for level, low, high in tree_cables(down, up):
        below = f"{cluster.name}/switch{level}.{low}" if level else cluster.hosts[low]
        above = f"{cluster.name}/switch{level + 1}.{high}"
        platform.join(f"{cluster.name}/{level}.{low}-{high}", below, above, _times(cluster.pipe, cables[level]))
        _count(platform, below, above, cables[level])
    platform.notes.append("SimGrid routes fat trees by D-mod-k, the routing rule single")


def _torus(platform: Platform, cluster: Cluster) -> None:
    sides = _numbers(platform, cluster, "x,...")[0]
    _require_hosts(platform, cluster, prod(sides))
    for rank, host in enumerate(cluster.hosts):
        platform.graph.nodes[host]["forwards"] = True
        for axis, side in enumerate(sides):
            stride = prod(sides[:axis])
            at = rank // stride % side
            if side > 2 or (side == 2 and at == 0):  # SimGrid's routes take one of the two links of a side of 2
                other = cluster.hosts[rank + (1 if at + 1 < side else 1 - side) * stride]
                platform.join(f"{cluster.name}/{host}-{other}", host, other, cluster.pipe)
    platform.notes.append("SimGrid routes a torus in dimension order, the routing rule dor")


def _dragonfly(platform: Platform, cluster: Cluster) -> None:
    (groups, blue), (chassis, black), (blades, green), (nodes, *_) = _numbers(platform, cluster, "g,l;c,l;b,l;n")
    _require_hosts(platform, cluster, groups * chassis * blades * nodes)
    size = chassis * blades
    if groups * size * (blades + chassis + groups) > MOST:
        raise platform.checked.refuse(f"{cluster.place} topo_parameters", cluster.parameters, "makes too many links")
    if groups > blades:
        rule = f"SimGrid's links between groups stand on the first {groups} blades of a chassis, and it has {blades}"
        raise platform.checked.refuse(f"{cluster.place} topo_parameters", cluster.parameters, rule)
    names = [f"{cluster.name}/router{i}" for i in range(groups * size)]
    for name in names:
        platform.add_router(name, cluster.place)

    def cable(a: int, b: int, count: int) -> None:
        platform.join(f"{names[a]}-{b}", names[a], names[b], _times(cluster.pipe, count))
        _count(platform, names[a], names[b], count)

    for i, host in enumerate(cluster.hosts):
        platform.join(f"{cluster.name}/{host}", host, names[i // nodes], cluster.pipe)
    for first in range(0, groups * size, blades):
        for i, j in combinations(range(blades), 2):
            cable(first + i, first + j, green)
    for group in range(groups):
        for i, j in combinations(range(chassis), 2):
            for blade in range(blades):
                cable(group * size + i * blades + blade, group * size + j * blades + blade, black)
    for i, j in combinations(range(groups), 2):
        cable(i * size + j, j * size + i, blue)
    platform.notes.append(
        "SimGrid routes a dragonfly green, black, blue, green, black; other shortest paths are taken too"
    )


def _times(pipe: Pipe, lanes: int) -> Pipe:
    return replace(pipe, bandwidth=pipe.bandwidth * lanes)


def _count(platform: Platform, a: str, b: str, lanes: int) -> None:
    """Say how many cables a link of two directions stands for."""
    for ends in ((a, b), (b, a)):
        if platform.graph.has_edge(*ends):
            platform.graph.edges[ends]["lanes"] = lanes


_SHAPES: dict[str, Callable[[Platform, Cluster], None]] = {
    "FAT_TREE": _fat_tree, "TORUS": _torus, "DRAGONFLY": _dragonfly,
}  # fmt: skip
