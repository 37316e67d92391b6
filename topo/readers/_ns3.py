"""What does the topology text of ns-3 based simulators say? HPCC's and ASTRA-sim's header, and SimAI's.

The first line counts nodes, switches and links; SimAI's counts GPUs of a server and NVSwitches
as well and names the GPU. The second line lists the switches, NVSwitches first. Then one line a
link: two nodes, rate, delay, error rate. All lines are full duplex.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from topo._asked import Link
from topo.readers._parts import Checked, add_lane, finished
from topo.readers._reading import Reader, Reading, Source

__all__ = ["NS3_TOPOLOGY"]

_HEADER = re.compile(r"\d+ +\d+ +\d+(?: +\d+ +\d+(?: +\S+)?)?")
_LINK = re.compile(r"\d+\s+\d+\s+[0-9.]+(?:[KMGTkmgt]i?)?[bB]ps\s+[0-9.eE+-]+[mun]?s\b.*")
_FIELDS = {3: "nodes switches links", 5: "nodes gpus_per_server nvswitches switches links"}
_NO_RELAY = "no host or GPU passes on traffic of others, as in HPCC's routing: two that no switch joins have no path"


@dataclass(frozen=True)
class _Head:
    """What the first two lines say: the nodes that are NVSwitches and other switches, and counts."""

    nodes: int
    links: int
    per_server: int | None
    gpu: str
    nvswitches: frozenset[int]
    switches: frozenset[int]


def _recognises(source: Source) -> bool:
    lines = [line.strip() for line in source.lines[:2000] if line.strip()]
    return bool(lines) and bool(_HEADER.fullmatch(lines[0])) and any(_LINK.fullmatch(line) for line in lines[1:])


def _read(source: Source) -> Reading:
    checked = Checked(source.file)
    rows = [(n, line.split()) for n, line in enumerate(source.lines, 1) if line.strip() and line.strip()[0] != "#"]
    if not rows:
        raise checked.refuse("line 1", "", "is empty where the counts of nodes and links stand")
    head, body = _head(checked, rows)
    if len(body) != head.links:
        rule = f"the file has {len(body)} links and its first line says {head.links}: it is cut off or miscounted"
        raise checked.refuse(f"line {rows[-1][0]}", len(body), rule, "Give the whole file, or correct the count.")
    if head.nodes > 2 * head.links:
        raise checked.refuse(f"line {rows[0][0]}", head.nodes, f"nodes are not all joined by {head.links} links")
    graph: nx.Graph[str] = nx.Graph()
    for i in range(head.nodes):
        graph.add_node(_label(head, i), **_node(head, i))
    lossy = _add_links(checked, graph, head, body)
    checked.settle()
    notes = list(_notes(graph, head, lossy))
    return finished("ns3-topology", source.file, graph, notes, **({"chips": {head.gpu: {}}} if head.gpu else {}))


def _head(checked: Checked, rows: list[tuple[int, list[str]]]) -> tuple[_Head, list[tuple[int, list[str]]]]:
    line, fields = rows[0]
    place = f"line {line}"
    known = len(fields) if len(fields) in _FIELDS else 5 if len(fields) == 6 else None
    if known is None:
        cure = f"Give {' or '.join(_FIELDS.values())} (and the type of GPU)."
        raise checked.refuse(place, " ".join(fields), "has neither 3 nor 5 counts", cure)
    names = _FIELDS[known].split()
    counts = [checked.whole(f"{place} {name}", text) for name, text in zip(names, fields, strict=False)]
    nodes, links = counts[0], counts[-1]
    per_server, nv, others = (counts[1], counts[2], counts[3]) if known == 5 else (None, 0, counts[1])
    checked.settle()
    listed: list[int] = []
    end = 1
    while len(listed) < nv + others and end < len(rows):
        listed += [checked.whole(f"line {rows[end][0]}", text, 0, max(nodes - 1, 0)) for text in rows[end][1]]
        end += 1
    if len(listed) != nv + others or len(set(listed)) != len(listed):
        rule = f"the line after the counts must list {nv + others} different switches, as the first line says"
        raise checked.refuse(f"line {rows[min(1, len(rows) - 1)][0]}", " ".join(map(str, listed[:12])), rule)
    gpu = fields[5] if len(fields) == 6 else ""
    return _Head(nodes, links, per_server, gpu, frozenset(listed[:nv]), frozenset(listed[nv:])), rows[end:]


def _label(head: _Head, i: int) -> str:
    if i in head.nvswitches:
        return f"nvswitch{i}"
    return f"switch{i}" if i in head.switches else f"{'host' if head.per_server is None else 'gpu'}{i}"


def _node(head: _Head, i: int) -> dict[str, object]:
    if i in head.nvswitches:
        return {"kind": "switch", "forwards": True, "tier": "scale-up"}
    if i in head.switches:
        return {"kind": "switch", "forwards": True}
    if head.per_server is None:
        return {"kind": "host", "forwards": False}
    host = {"host": f"server{i // head.per_server}"} if head.per_server else {}
    return {"kind": "gpu", "forwards": False, **host, **({"chip": head.gpu} if head.gpu else {})}


def _add_links(checked: Checked, graph: nx.Graph[str], head: _Head, rows: list[tuple[int, list[str]]]) -> int:
    """Add every link; return how many of them lose packets."""
    lossy = 0
    for line, fields in rows:
        place = f"line {line}"
        if len(fields) != 5:
            checked.fault(place, " ".join(fields), "must be a link: two nodes, rate, delay, error rate")
            continue
        a, b = (checked.whole(place, text, 0, head.nodes - 1) for text in fields[:2])
        rate, delay = checked.rate(place, fields[2]), checked.time(place, fields[3])
        lossy += checked.number(place, fields[4], zero=True) > 0
        if a == b:
            checked.fault(place, a, "joins a node to itself")
            continue
        kind = "scale-up" if head.nvswitches & {a, b} else "scale-out"
        add_lane(graph, _label(head, a), _label(head, b), Link(kind, rate, delay))
    return lossy


def _notes(graph: nx.Graph[str], head: _Head, lossy: int) -> Iterator[str]:
    up: nx.Graph[str] = nx.Graph((a, b) for a, b, data in graph.edges(data=True) if data["kind"] == "scale-up")
    for domain, part in enumerate(nx.connected_components(up)):
        for node in part:
            graph.nodes[node]["domain"] = domain
    if head.per_server is None:
        yield "the nodes that are no switches are read as hosts: the file does not say how many GPUs they have"
    else:
        yield f"host of a GPU: {head.per_server} GPUs a server, numbered in order"
    if head.per_server and head.per_server > 1 and not head.nvswitches:
        yield "no NVSwitches: what joins the GPUs of a server is not in the file, so they are no scale-up domain"
    if head.gpu:
        yield f"GPU {head.gpu} is a name here: memory and FLOP/s are not in the file"
    if lossy:
        yield f"{lossy} links have an error rate above zero: losses are not counted"
    if any(graph.nodes[a]["kind"] == graph.nodes[b]["kind"] != "switch" for a, b in graph.edges):
        yield _NO_RELAY


NS3_TOPOLOGY = Reader("ns3-topology", "topology text of ns-3 (HPCC, ASTRA-sim) or SimAI", _recognises, _read)
