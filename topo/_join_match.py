"""Which host of a fabric does a host file describe, and which NIC is which port? By name, by GUID, or as told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import networkx as nx

from topo._errors import Fault, InputError, suggest
from topo._nodelist import expand_hostlist
from topo.readers._infiniband import guid_text
from topo.readers._reading import Reading

__all__ = ["Hosts", "match_hosts", "match_ports"]

#: What `join` accepts as ``hosts=``: "all", or reading (its number or host name) -> host of the fabric, or several.
Hosts = Literal["all"] | Mapping[int | str, str | Sequence[str]] | None
_SHOWN = 8


def match_hosts(parts: Sequence[nx.Graph[str]], fabric: nx.Graph[str], hosts: Hosts, keep: bool) -> dict[str, int]:
    """Return host of the fabric -> number of the host graph that takes its place.

    Raises
    ------
    InputError
        Everything that finds no partner, by name.
    """
    known = {node: node.partition(".")[0] for node, data in fabric.nodes(data=True) if data["kind"] == "host"}
    faults: list[Fault] = []
    found: dict[str, int] = {}
    for number, graph in enumerate(parts):
        for name in _targets(number, graph, parts, fabric, known, hosts, faults):
            if name not in known:
                faults.append(Fault("hosts", name, "is no host of the fabric", suggest(name, list(known)[:16])))
            elif found.setdefault(name, number) != number:
                rule = f"is given to readings {found[name]} and {number}"
                faults.append(Fault("hosts", name, rule, "Give it to one of them."))
    if isinstance(hosts, Mapping):
        names = {*range(len(parts)), *map(host_name, parts)}
        cure = f"Give 0 .. {len(parts) - 1}, or the host's name in its file."
        faults += [Fault("hosts", key, "is no reading of a host", cure) for key in hosts if key not in names]
    left = [name for name in known if name not in found]
    if left and not keep and not faults:
        rule = f"{len(left)} of {len(known)} hosts of the fabric have no reading: {', '.join(left[:_SHOWN])}"
        cure = 'Give hosts="all" or a map, or keep=True to leave them as end points that are no ranks.'
        faults.append(Fault("fabric", len(left), rule, cure))
    if faults:
        raise InputError(*faults)
    return found


def host_name(graph: nx.Graph[str]) -> str:
    """Return what a host file calls its host."""
    return next(
        (str(data["host"]) for _, data in graph.nodes(data=True) if "host" in data), str(graph.graph.get("name"))
    )


def _targets(
    number: int, graph: nx.Graph[str], parts: Sequence[nx.Graph[str]], fabric: nx.Graph[str], known: Mapping[str, str],
    hosts: Hosts, faults: list[Fault],
) -> list[str]:  # fmt: skip
    """Return the hosts of the fabric that a host graph stands for."""
    name = host_name(graph)
    if hosts == "all":
        if len(parts) > 1 and number == 0:
            cure = "Give a map, or one reading."
            faults.append(Fault("hosts", "all", f"there are {len(parts)} readings of hosts", cure))
        return list(known) if number == 0 else []
    given = hosts.get(number, hosts.get(name)) if isinstance(hosts, Mapping) else None
    if isinstance(given, str):
        return [given] if given in known else expand_hostlist(given, place="hosts")
    if given is not None:
        return list(given)
    same = [name] if name in known else [node for node, short in known.items() if short == name.partition(".")[0]]
    match = same or _owners(graph, fabric, known)
    if len(match) != 1:
        what = "is the name of no host of the fabric, and no NIC states a GUID of one"
        rule = what if not match else f"has NICs whose GUIDs are on {', '.join(match)}"
        cure = f'Say which it is: hosts={{{number}: "{next(iter(known)) if known else "node1"}"}}, or hosts="all".'
        faults.append(Fault(f"readings[{number}]", name, rule, cure))
        return []
    return match


def _owners(graph: nx.Graph[str], fabric: nx.Graph[str], known: Iterable[str]) -> list[str]:
    """Return the hosts of the fabric that have a GUID of the graph's NICs."""
    guids = {
        guid_text(str(data["guid"])) for _, data in graph.nodes(data=True) if data["kind"] == "nic" and "guid" in data
    }
    return [name for name in known if guids & set(_guids(fabric.nodes[name]))]


def _guids(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return GUID -> port numbers of a host: of ports and of whole adapters."""
    ports = list(data.get("port_guids", {}))
    found: dict[str, list[str]] = {}
    if "guid" in data:
        found[data["guid"]] = list(ports)
    for adapter, guid in data.get("guids", {}).items():
        found[guid] = [port for port, name in data["port_names"].items() if name.rpartition("/")[0] == adapter]
    return found | {guid: [port] for port, guid in data.get("port_guids", {}).items()}


def match_ports(
    host: str, data: Mapping[str, Any], nics: Sequence[tuple[str, Mapping[str, Any]]], ports: Sequence[int]
) -> tuple[dict[int, str], str]:
    """Return port number -> NIC of a host, and how it was told.

    Parameters
    ----------
    host : str
        For messages.
    data : mapping
        Attributes of the host in the fabric.
    nics : sequence of (label, attributes)
        In the order of the host file.
    ports : sequence of int
        Ports that have a cable, ascending.
    """
    guids = _guids(data)
    names = {int(port): name.rpartition("/")[0] for port, name in data.get("port_names", {}).items()}
    by_guid = {int(p): nic for nic, nic_data in nics for p in guids.get(guid_text(str(nic_data.get("guid", ""))), ())}
    by_name = {p: nic for p, name in names.items() for nic, nic_data in nics if name in (nic, nic_data.get("nic"))}
    numbered = {p: int(name[4:]) - 1 for p, name in names.items() if name.upper().startswith("HCA-")}
    by_number = {p: nics[i][0] for p, i in numbered.items() if 0 <= i < len(nics)}
    in_order = dict(zip(ports, (nic for nic, _ in nics), strict=False)) if len(nics) == len(ports) else {}
    only = dict.fromkeys(ports, nics[0][0]) if len(nics) == 1 else {}
    ways = (
        ("GUID", by_guid),
        ("name", by_name),
        ("the number of HCA-n", by_number),
        ("order", in_order),
        ("the only NIC", only),
    )
    for how, found in ways:
        if ports and all(port in found for port in ports):
            return {port: found[port] for port in ports}, how
    rule = f"has {len(nics)} NICs in its file and {len(ports)} cabled ports in the fabric, which no GUID or name joins"
    raise InputError(
        Fault(
            f"host {host!r}", [nic for nic, _ in nics][:_SHOWN], rule, "Give a file with the same NICs, or with GUIDs."
        )
    )


def table_of(readings: Sequence[Reading]) -> int:
    """Return the number of the one reading that has forwarding tables, -1 where none has."""
    found = [i for i, reading in enumerate(readings) if reading.routing is not None]
    if len(found) > 1:
        rule = f"{len(found)} of the readings hold forwarding tables"
        raise InputError(Fault("readings", found, rule, "Give one dump of all switches."))
    return found[0] if found else -1
