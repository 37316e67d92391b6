"""What does a .topo file of htsim say? A fat tree of two or three tiers, one block of settings a tier.

A tier's downlinks lead to the tier below (tier 0: to the hosts) and have its speed and latency,
both ways. The number of switches follows from speeds and oversubscription, as htsim computes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import networkx as nx

from topo._asked import MOST, Link, add_cable, add_switch
from topo._errors import suggest
from topo.readers._parts import Checked, finished
from topo.readers._reading import Reader, Reading, Source

__all__ = ["HTSIM_TOPO"]

_HEAD = ("nodes", "tiers", "podsize")
#: key -> value where the file leaves it out; None where htsim needs it.
_TIER: dict[str, int | None] = {
    "downlink_speed_gbps": None, "radix_down": None, "radix_up": 0, "bundle": 1, "oversubscribed": 1,
    "downlink_latency_ns": None, "switch_latency_ns": 0,
}  # fmt: skip
#: Of hosts, and of cables between two tiers.
_MOST = MOST // 3
_QUEUES = ("queue_down", "queue_up")
_NAMES = ("leaf", "spine", "core")


@dataclass
class _Tier:
    """Settings of one tier, each with the line it stands on."""

    line: int
    given: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __getitem__(self, key: str) -> int:
        return self.given[key][0] if key in self.given else int(_TIER[key] or 0)


def _recognises(source: Source) -> bool:
    words = {line.split()[0].lower() for line in source.lines[:200] if line.strip()}
    return {"nodes", "tier"} <= words and bool(words & {"podsize", "tiers", "downlink_speed_gbps"})


def _read(source: Source) -> Reading:
    checked = Checked(source.file)
    head, tiers, queues = _settings(checked, source.lines)
    checked.settle()
    for key in _HEAD:
        if key not in head:
            checked.fault("header", key, "is missing: nodes, tiers and podsize come before the first tier", "Add it.")
    checked.settle()
    n = head["tiers"][0]
    if n not in (2, 3):
        raise checked.refuse(f"line {head['tiers'][1]} tiers", n, "must be 2 or 3, as in htsim")
    for i in range(n):
        missing = [
            key for key, default in _TIER.items() if i in tiers and default is None and key not in tiers[i].given
        ]
        for key in missing if i in tiers else ["its block"]:
            line = f"line {tiers[i].line} " if i in tiers else ""
            checked.fault(f"{line}tier {i}", key, "is missing: the file may be cut off", "Add it.")
    if extra := [i for i in tiers if i >= n]:
        checked.fault(f"line {tiers[extra[0]].line}", extra[0], f"is a tier beyond the {n} of the header")
    checked.settle()
    graph = _tree(checked, head["nodes"][0], head["podsize"], [tiers[i] for i in range(n)])
    notes = ["Nodes are read as hosts: the file does not say how many GPUs they have"]
    if any(tier["switch_latency_ns"] for tier in tiers.values()):
        notes.append("half of a switch's latency is on each link at it: sums between hosts are as in htsim")
    if queues:
        notes.append("queue sizes are not read")
    return finished("htsim-topo", source.file, graph, notes)


def _settings(checked: Checked, lines: list[str]) -> tuple[dict[str, tuple[int, int]], dict[int, _Tier], bool]:
    """Return the header, the tiers and whether queue sizes stand there."""
    head: dict[str, tuple[int, int]] = {}
    tiers: dict[int, _Tier] = {}
    into, queues = head, False
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key, place = words[0].lower(), f"line {number} {words[0]}"
        if key in _QUEUES:
            queues = True
        elif key != "tier" and key not in (_TIER if tiers else _HEAD):
            checked.fault(place, line.strip(), "is no setting here", suggest(key, _TIER if tiers else (*_HEAD, "tier")))
        elif len(words) < 2 or (len(words) > 2 and not words[2].startswith("#")):
            checked.fault(place, line.strip(), "must be a name and one whole number")
        elif key == "tier":
            tier = checked.whole(place, words[1], 0, 2)
            if tier in tiers:
                checked.fault(place, tier, f"is set already from line {tiers[tier].line} on", "Give every tier once.")
            into = tiers.setdefault(tier, _Tier(number)).given
        elif key in into:
            checked.fault(place, words[1], f"is set already on line {into[key][1]}", "Give it once.")
        else:
            into[key] = checked.whole(place, words[1], int(key != "switch_latency_ns"), _MOST), number
    return head, tiers, queues


def _tree(checked: Checked, nodes: int, podsize: tuple[int, int], tiers: list[_Tier]) -> nx.Graph[str]:
    per_pod, per_tor = podsize[0], tiers[0]["radix_down"]
    pods, rest = divmod(nodes, per_pod)
    if rest:
        raise checked.refuse(f"line {podsize[1]} podsize", per_pod, f"does not divide the {nodes} nodes")
    if per_pod % per_tor:
        raise checked.refuse(_place(tiers, 0, "radix_down"), per_tor, f"does not divide the pod size {per_pod}")
    if tiers[0]["bundle"] != 1:
        raise checked.refuse(_place(tiers, 0, "bundle"), tiers[0]["bundle"], "htsim gives a host one link")
    tors = per_pod // per_tor
    aggs, cables = _above(checked, tiers, 1, nodes, pods)
    if len(tiers) == 2 and pods != 1:
        raise checked.refuse(f"line {podsize[1]} podsize", per_pod, f"must be the {nodes} nodes where tiers is 2")
    cores = _above(checked, tiers, 2, cables, 1)[0] if len(tiers) == 3 else 0
    checked.settle()
    _check_ports(checked, tiers, pods, tors, aggs, cores)
    checked.settle()
    return _wired(tiers, nodes, pods, (tors, aggs, cores))


def _wired(tiers: list[_Tier], nodes: int, pods: int, switches: tuple[int, int, int]) -> nx.Graph[str]:
    """Return the tree of so many switches: leaves and spines of a pod, cores of all."""
    tors, aggs, cores = switches
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((f"host{i}" for i in range(nodes)), kind="host", forwards=False)
    for name, count in zip(_NAMES, (tors * pods, aggs * pods, cores), strict=True):
        for i in range(count):
            add_switch(graph, f"{name}{i}", name)
    links = [_link(tiers, tier) for tier in range(len(tiers))]
    for i in range(nodes):
        add_cable(graph, f"host{i}", f"leaf{i // tiers[0]['radix_down']}", links[0])
    for leaf in range(tors * pods):
        for agg in range(leaf // tors * aggs, (leaf // tors + 1) * aggs):
            add_cable(graph, f"leaf{leaf}", f"spine{agg}", links[1], tiers[1]["bundle"])
    for core in range(cores):
        for pod in range(pods):
            add_cable(graph, f"spine{pod * aggs + core % aggs}", f"core{core}", links[2], tiers[2]["bundle"])
    return graph


def _place(tiers: list[_Tier], tier: int, key: str) -> str:
    return f"line {tiers[tier].given.get(key, (0, tiers[tier].line))[1]} tier {tier} {key}"


def _above(checked: Checked, tiers: list[_Tier], tier: int, cables: int, pods: int) -> tuple[int, int]:
    """Return how many switches a pod has in a tier, and how many cables lead down from all of them."""
    below = tiers[tier - 1]
    speed = tiers[tier]["downlink_speed_gbps"] * below["oversubscribed"]
    up, rest = divmod(cables * below["downlink_speed_gbps"], speed)
    if rest or not up:
        rule = f"{cables} downlinks of tier {tier - 1} at this oversubscription make no whole number of uplinks"
        raise checked.refuse(_place(tiers, tier - 1, "oversubscribed"), below["oversubscribed"], rule)
    each, rest = divmod(up, pods * tiers[tier]["radix_down"])
    if rest or not each or up > _MOST:
        rule = f"{up} uplinks of tier {tier - 1} fill no whole number of switches in each of {pods} pods"
        raise checked.refuse(_place(tiers, tier, "radix_down"), tiers[tier]["radix_down"], rule)
    return each, up


def _check_ports(checked: Checked, tiers: list[_Tier], pods: int, tors: int, aggs: int, cores: int) -> None:
    """Refuse a file whose port counts say something else than the wiring htsim makes of it."""
    used = [(0, "radix_up", aggs * tiers[1]["bundle"]), (1, "radix_down", tors * tiers[1]["bundle"])]
    if cores:
        bundle = tiers[2]["bundle"]
        used += [(1, "radix_up", cores // aggs * bundle), (2, "radix_down", pods * bundle)]
        if cores % aggs:
            rule = f"the {cores} core switches do not divide over {aggs} switches of tier 1 in a pod"
            checked.fault(_place(tiers, 2, "radix_down"), tiers[2]["radix_down"], rule)
    for tier, key, ports in used:
        if tiers[tier][key] != ports:
            rule = f"but htsim wires {ports} cables there, as speeds, oversubscription and bundles say"
            checked.fault(_place(tiers, tier, key), tiers[tier][key], rule, "Correct one of them.")


def _link(tiers: list[_Tier], tier: int) -> Link:
    switches = tiers[tier]["switch_latency_ns"] + (tiers[tier - 1]["switch_latency_ns"] if tier else 0)
    latency = (tiers[tier]["downlink_latency_ns"] + switches / 2) / 1e9
    return Link("scale-out", tiers[tier]["downlink_speed_gbps"] * 1e9 / 8, latency)


HTSIM_TOPO = Reader("htsim-topo", ".topo file of htsim", _recognises, _read)
