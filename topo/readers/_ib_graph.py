"""Which graph do the cables of an InfiniBand fabric make? Each cable once, each host by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import networkx as nx

from topo._design import DEFAULTS
from topo._errors import InputError
from topo.readers._ib_names import AGGREGATION, host_name, merged_hosts, natural, switch_names, unique_labels
from topo.readers._infiniband import Device, End, Listing, Wiring, bandwidth_of
from topo.readers._reading import Reading
from topo.readers._tiers import set_tiers
from topo.units import parse_quantity

__all__ = ["reading_of"]

_LATENCY = "scale_out.latency"
_SHOWN = 3


class _Cable(NamedTuple):
    a: End
    b: End
    rate: str


@dataclass(frozen=True)
class _Places:
    """Device -> label; ports of hosts with several adapters -> their number on the host."""

    label: dict[str, str]
    number: dict[End, int]

    def at(self, end: End) -> tuple[str, int]:
        """Return label and port number of an end."""
        return self.label[end.device], self.number.get(end, end.port)


def reading_of(wiring: Wiring) -> Reading:
    """Return the reading of what a file lists; raises everything wrong with it at once."""
    cables = _cables(wiring)
    if not cables and not wiring.faults:
        wiring.fault(1, wiring.kind, "lists no cable that is up", "Give the whole output of the tool.")
    if wiring.faults:
        raise InputError(*wiring.faults)
    cables = _between_nodes(wiring, cables)
    graph, places = _nodes(wiring)
    _add_edges(graph, cables, places)
    if wiring.renamed:
        example, *more = wiring.renamed.values()
        also = f", as for {len(more)} others with two names" if more else ""
        wiring.notes.append(f"{example}: one device by its GUID or LID{also}")
    wiring.notes += set_tiers(graph)
    parts = nx.number_connected_components(graph)
    if parts > 1:
        wiring.notes.append(f"the cables leave {parts} parts that nothing joins")
    if not any(data["kind"] == "host" for _, data in graph.nodes(data=True)):
        wiring.notes.append("no host is listed: nothing to cost until there is one")
    if wiring.down:
        wiring.notes.append(f"{wiring.down} ports are down or hold no cable: left out")
    rates = ", ".join(f"{rate} = {8 * bandwidth_of(rate) / 1e9:.4g} Gb/s" for rate in sorted({c.rate for c in cables}))
    said = [
        f"{_LATENCY} = {DEFAULTS[_LATENCY]} per link (assumed; the file states none)",
        f"bandwidth is the data rate per direction, encoding taken off: {rates}",
    ]
    graph.graph["assumptions"] = said
    return Reading(wiring.kind, graph, (*wiring.notes, *said))


def _cables(wiring: Wiring) -> list[_Cable]:
    """Return every cable once; both ends must say the same of where it leads."""
    listed = _listed(wiring)
    cables: dict[frozenset[End], tuple[Listing, str | None]] = {}
    claimed: dict[End, Listing] = {}
    single = []
    unequal = 0
    for row in listed.values():
        back = listed.get(row.far)
        other = claimed.setdefault(row.far, row)
        if other is not row:
            _contradict(wiring, row, other)
        elif back is None:
            single.append(row)
        elif back.far != row.near:
            _contradict(wiring, row, back)
        rates = {said.rate for said in (row, back) if said and said.rate}
        unequal += len(rates) == 2
        cables.setdefault(frozenset((row.near, row.far)), (row, min(rates, key=bandwidth_of, default=None)))
    if unequal:
        wiring.notes.append(f"the ends of {unequal // 2} cables state different speeds: the slower is taken")
    if single:
        shown = ", ".join(f"{_told(wiring, row.near)} - {_told(wiring, row.far)}" for row in single[:_SHOWN])
        shown += ", ..." if len(single) > _SHOWN else ""
        wiring.notes.append(f"{len(single)} cables are listed from one end only (is the file cut?), taken: {shown}")
    return _rated(wiring, list(cables.values()))


def _listed(wiring: Wiring) -> dict[End, Listing]:
    """Return what each port is listed as wired to; a line may come again."""
    listed: dict[End, Listing] = {}
    repeats = 0
    for row in wiring.listings:
        before = listed.setdefault(row.near, row)
        repeats += before is not row
        if before.far != row.far or (before.rate and row.rate and before.rate != row.rate):
            _contradict(wiring, row, before)
    if repeats:
        wiring.notes.append(f"{repeats} lines say again what earlier lines said: counted once")
    return listed


def _contradict(wiring: Wiring, row: Listing, other: Listing) -> None:
    told, against = (f"{_told(wiring, r.near)} to {_told(wiring, r.far)} {r.rate or ''}".rstrip() for r in (row, other))
    if told == against:  # two devices of one name
        told, against = f"{told} ({row.far.device})", f"{against} ({other.far.device})"
    wiring.fault(row.line, told, f"contradicts line {other.line}, which says {against}", "Take one of the two out.")


def _told(wiring: Wiring, end: End) -> str:
    return f"{wiring.devices[end.device].name or end.device}[{end.port}]"


def _rated(wiring: Wiring, cables: list[tuple[Listing, str | None]]) -> list[_Cable]:
    """Return the cables, those without a rate at the commonest one."""
    known = Counter(rate for _, rate in cables if rate)
    common = wiring.default_rate or max(known, key=lambda rate: (known[rate], rate), default=None)
    unknown = [row for row, rate in cables if not rate]
    if unknown and common is None:
        wiring.fault(unknown[0].line, _told(wiring, unknown[0].near), "no line of the file states a known speed",
                     "Give the whole output, or write the speed after the cables, as 4xNDR.")  # fmt: skip
        return []
    if unknown:
        why = f"what {wiring.kind} takes where none is stated" if wiring.default_rate else "the commonest in the file"
        wiring.notes.append(f"{len(unknown)} cables state no speed that is known: taken as {common} (assumed: {why})")
    return [_Cable(min(row.near, row.far), max(row.near, row.far), rate or str(common)) for row, rate in cables]


def _between_nodes(wiring: Wiring, cables: list[_Cable]) -> list[_Cable]:
    """Return the cables without those to aggregation nodes and without loopbacks; aggregation nodes go."""
    inside = {key for key, d in wiring.devices.items() if d.kind == "CA" and AGGREGATION.search(d.name)}
    kept = []
    loops = 0
    for cable in cables:
        ends = {cable.a.device, cable.b.device}
        loops += len(ends) == 1
        if len(ends) == 2 and not ends & inside:
            kept.append(cable)
        for key in ends - inside if ends & inside else ():
            radix = wiring.devices[key].radix
            wiring.devices[key].radix = radix - 1 if radix else None
    for key in inside:
        del wiring.devices[key]
    if inside:
        wiring.notes.append(
            f"{len(inside)} SHARP aggregation nodes in switches are no hosts: left out, and reduction there not assumed"
        )
    if loops:
        wiring.notes.append(f"{loops} cables lead back to the same device: left out")
    return kept


def _nodes(wiring: Wiring) -> tuple[nx.Graph[str], _Places]:
    """Return the graph without its edges, and where the ends of cables are in it."""
    devices = wiring.devices
    adapters = {key: device.name or key for key, device in devices.items() if device.kind == "CA"}
    groups, notes = merged_hosts(adapters)
    switches = sorted(
        (key for key in devices if key not in adapters), key=lambda key: natural(devices[key].name or key)
    )
    wanted = [_host_names(group, adapters) for group in groups]
    wanted += [(*switch_names(name), f"{name} ({key})") for key in switches for name in [devices[key].name or key]]
    labels = unique_labels(wanted)
    graph: nx.Graph[str] = nx.Graph(schema=1, name=wiring.source.file.replace("\\", "/").rpartition("/")[2])
    label = {
        key: name for name, keys in zip(labels, [*groups, *([key] for key in switches)], strict=True) for key in keys
    }
    places = _Places(label, {})
    for rank, keys in enumerate(sorted(groups, key=lambda keys: natural(label[keys[0]]))):
        graph.add_node(label[keys[0]], kind="host", rank=rank, **_host(keys, devices, places))
    for key in switches:
        device = devices[key]
        known = {"guid": device.guid, "lid": device.lid, "radix": device.radix, "description": device.name}
        if device.name == label[key]:
            del known["description"]
        graph.add_node(label[key], kind="switch", **{name: value for name, value in known.items() if value})
    routers = [label[key] for key in switches if devices[key].kind == "RT"]
    if routers:
        notes.append(f"{len(routers)} routers are taken as switches: {', '.join(routers[:_SHOWN])}")
    wiring.notes += notes
    return graph, places


def _host_names(keys: list[str], adapters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels a host may have, best first."""
    name = adapters[keys[0]]
    return (
        (host_name(name)[0], name, f"{name} ({keys[0]})")
        if len(keys) == 1
        else (host_name(name)[0], f"{host_name(name)[0]} ({keys[0]})")
    )


def _host(keys: list[str], devices: Mapping[str, Device], places: _Places) -> dict[str, Any]:
    """Return the attributes of a host; ports of several adapters are numbered on."""
    ends = [End(key, number) for key in keys for number in sorted(devices[key].ports)]
    if len(keys) > 1:
        places.number.update((end, i) for i, end in enumerate(ends, 1))
    ports = {str(places.at(end)[1]): devices[end.device].ports[end.port] for end in ends}
    found: dict[str, Any] = {
        "lids": {port: lid for port, (lid, _) in ports.items() if lid},
        "port_guids": {port: guid for port, (_, guid) in ports.items() if guid},
    }
    if len(keys) == 1:
        found["guid"] = devices[keys[0]].guid
    else:
        names = {key: host_name(devices[key].name)[1] for key in keys}
        found["port_names"] = {str(places.at(end)[1]): f"{names[end.device]}/{end.port}" for end in ends}
        found["guids"] = {names[key]: devices[key].guid for key in keys if devices[key].guid}
    return {name: value for name, value in found.items() if value}


def _add_edges(graph: nx.Graph[str], cables: list[_Cable], places: _Places) -> None:
    """Add one edge per pair of nodes; `ports` in the order in which `graph.edges` gives the ends."""
    order = {node: i for i, node in enumerate(graph)}
    bundles: dict[tuple[str, str], list[tuple[int, int, float]]] = {}
    for cable in cables:
        (a, p), (b, q) = sorted((places.at(cable.a), places.at(cable.b)), key=lambda at: order[at[0]])
        bundles.setdefault((a, b), []).append((p, q, bandwidth_of(cable.rate)))
    latency = parse_quantity(DEFAULTS[_LATENCY], "seconds")
    for a, b in sorted(bundles, key=lambda pair: (order[pair[0]], order[pair[1]])):
        lanes = sorted(bundles[a, b])
        rates = [rate for _, _, rate in lanes]
        differ = {"lane_bandwidths": rates} if len(set(rates)) > 1 else {}
        graph.add_edge(a, b, kind="scale-out", bandwidth=sum(rates), latency=latency, lanes=len(lanes),
                       ports=[[p, q] for p, q, _ in lanes], **differ)  # fmt: skip
