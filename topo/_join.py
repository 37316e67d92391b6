"""How do host files and a fabric file become one cluster? Each end point of the fabric gives way to its host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import networkx as nx

from topo._check import rank_nodes
from topo._errors import Fault, InputError, suggest
from topo._join_match import Hosts, match_hosts, match_ports, table_of
from topo.readers._reading import Reading

__all__ = ["join"]

#: How a reader of hosts ends the note that its NICs lead nowhere; in a cluster they do.
_ANSWERED = "no scale-out links"
Domains = Literal["blocks"] | Mapping[str, Sequence[str]] | None


def join(
    readings: Reading | Sequence[Reading],
    fabric: Reading,
    hosts: Hosts = None,
    *,
    domains: Domains = None,
    keep: bool = False,
) -> Reading:
    """Return one cluster: every host of a fabric replaced by its own graph, NICs wired to leaf ports.

    Parameters
    ----------
    readings : Reading or sequence of Reading
        Of hosts (graphs with GPUs and NICs), and of forwarding tables.
    fabric : Reading
        Its graph has nodes of kind "host".
    hosts : "all" or mapping, optional
        Which hosts of the fabric a reading stands for: number of the reading or name of its host
        -> name, Slurm list or names; "all": the one reading for all of them. What is not said is
        matched by the host's name, then by the GUIDs of its NICs.
    domains : mapping or "blocks", optional
        Name -> hosts whose scale-up switches are one: the 18 trays of an NVL72. "blocks": by
        the attribute `block` that Slurm's block topology gives hosts.
    keep : bool, optional
        Leave hosts without a reading as end points that are no ranks, rather than refuse.

    Returns
    -------
    Reading
        Kind "join"; labels "host/GPU0", `host` the fabric's name, `rank` in the order of hosts.

    Raises
    ------
    InputError
        Readings and hosts without partner, NICs that cannot be told to ports, domains of hosts
        that have no scale-up switch to share.

    Examples
    --------
    >>> link = {"bandwidth": 50e9, "latency": 0.0}
    >>> host, net = nx.Graph(), nx.Graph()
    >>> host.add_node("GPU0", kind="gpu")
    >>> host.add_node("NIC0", kind="nic")
    >>> host.add_edge("GPU0", "NIC0", kind="pcie", **link)
    >>> net.add_nodes_from(["n1", "n2"], kind="host")
    >>> net.add_node("leaf", kind="switch")
    >>> net.add_edges_from([("n1", "leaf"), ("n2", "leaf")], kind="scale-out", **link)
    >>> join(Reading("host", host), Reading("fabric", net), hosts="all")
    Reading(join: 2 gpus, 2 nics, 1 switch, 4 links; 1 notes)
    """
    given = [readings] if isinstance(readings, Reading) else list(readings)
    parts = [reading.graph for reading in given if reading.graph is not None]
    if fabric.graph is None or not any(data["kind"] == "host" for _, data in fabric.graph.nodes(data=True)):
        rule = "must have a graph with hosts"
        raise InputError(Fault("fabric", fabric.kind, rule, "Give the reading of ibnetdiscover, iblinkinfo or Slurm."))
    sources = [*given, fabric]
    tables = table_of(sources)
    said = [note for reading in sources for note in reading.notes if not note.endswith(_ANSWERED)]
    graph = fabric.graph.copy()
    if parts:
        plan = _Plan(fabric.graph, parts, match_hosts(parts, fabric.graph, hosts, keep), domains)
        graph = plan.cluster()
        said += plan.notes
    graph.graph["assumptions"] = list(dict.fromkeys(
        line for part in (fabric.graph, *parts) for line in part.graph.get("assumptions", ())
        if not line.endswith(_ANSWERED)
    ))  # fmt: skip
    return Reading("join", graph, tuple(dict.fromkeys(said)), sources[tables].routing if tables >= 0 else None)


class _Plan:
    """What goes where: host -> its graph, its domain, its ports; `notes` says how it was told."""

    def __init__(
        self, fabric: nx.Graph[str], parts: Sequence[nx.Graph[str]], taken: Mapping[str, int], domains: Domains
    ) -> None:
        self.fabric, self.taken = fabric, taken
        self.parts = {name: parts[number] for name, number in taken.items()}
        self.domain = _domains(fabric, self.parts, domains)
        self.place = {node: i for i, node in enumerate(fabric)}
        self.nic_of: dict[tuple[str, int], str] = {}
        self.notes: list[str] = []

    def cluster(self) -> nx.Graph[str]:
        """Return the joined graph; nodes in the order of the fabric."""
        graph: nx.Graph[str] = nx.Graph(**{**self.fabric.graph, "chips": self._chips()})
        rank = 0
        for node, data in self.fabric.nodes(data=True):
            if node in self.parts:
                rank = self._add_host(graph, node, rank)
            else:
                graph.add_node(
                    node, **{key: value for key, value in data.items() if data["kind"] != "host" or key != "rank"}
                )
        for host, part in self.parts.items():
            graph.add_edges_from(
                (self._label(host, a), self._label(host, b), dict(data)) for a, b, data in part.edges(data=True)
            )
        self._match_ports(graph)
        for a, b, data in self.fabric.edges(data=True):
            self._wire(graph, a, b, data)
        left = [node for node, data in graph.nodes(data=True) if data["kind"] == "host"]
        if left:
            self.notes.append(f"{len(left)} hosts have no reading and are no ranks: {', '.join(left[:3])}")
        return graph

    def _label(self, host: str, node: str) -> str:
        """Return the label in the cluster; hosts of a domain share its switches."""
        shared = host in self.domain and self.parts[host].nodes[node].get("tier") == "scale-up"
        return f"{self.domain[host] if shared else host}/{node}"

    def _add_host(self, graph: nx.Graph[str], host: str, rank: int) -> int:
        part = self.parts[host]
        order = {node: i for i, node in enumerate(rank_nodes(part))}
        several = len({data.get("domain") for _, data in part.nodes(data=True)} - {None}) > 1
        for node, data in part.nodes(data=True):
            own: dict[str, Any] = {**data, "host": host}
            if "domain" in data:
                own["domain"] = self.domain.get(host, f"{host}/{data['domain']}" if several else host)
            if node in order:
                own["rank"] = rank + order[node]
            label = self._label(host, node)
            if host in self.domain and data.get("tier") == "scale-up":
                del own["host"]
            graph.add_node(label, **own)
        return rank + len(order)

    def _match_ports(self, graph: nx.Graph[str]) -> None:
        """Tell the NIC of every cabled port, and give it the port's LID and GUID."""
        ways: dict[str, int] = {}
        faults: list[Fault] = []
        for host, part in self.parts.items():
            data = self.fabric.nodes[host]
            nics = [(node, found) for node, found in part.nodes(data=True) if found["kind"] == "nic"]
            ports = sorted(self._ports(host))
            if not nics:
                cure = "Give a file that lists NICs (nvidia-smi topo -m on a host that has them, NCCL's XML)."
                faults.append(Fault(f"host {host!r}", 0, "has no NIC in its file to wire to the fabric", cure))
                continue
            try:
                found, how = (
                    match_ports(host, data, nics, ports) if ports else ({}, "even shares: the fabric states no ports")
                )
            except InputError as error:
                faults += error.faults
                continue
            ways[how] = ways.get(how, 0) + 1
            for port, nic in found.items():
                self.nic_of[host, port] = self._label(host, nic)
                for key in ("lids", "port_guids"):
                    if str(port) in data.get(key, {}):
                        graph.nodes[self._label(host, nic)].setdefault(key, {})[str(port)] = data[key][str(port)]
        if faults:
            raise InputError(*faults)
        self.notes += [f"NICs of {n} hosts told to ports by {how}" for how, n in ways.items()]

    def _ports(self, host: str) -> list[int]:
        """Return the ports of a host that have a cable."""
        links = self.fabric[host].items()
        return [pair[self.place[host] > self.place[other]] for other, data in links for pair in data.get("ports", ())]

    def _wire(self, graph: nx.Graph[str], a: str, b: str, data: Mapping[str, Any]) -> None:
        """Add a fabric edge, split over the NICs its lanes end at."""
        if a not in self.parts and b not in self.parts:
            graph.add_edge(a, b, **data)
            return
        lanes = data.get("ports")
        if not lanes:
            pairs: list[tuple[str, str, Any]] = [(x, y, None) for x in self._all_nics(a) for y in self._all_nics(b)]
            rates = [data["bandwidth"] / len(pairs)] * len(pairs)
        else:
            pairs = [(self.nic_of.get((a, p), a), self.nic_of.get((b, q), b), [p, q]) for p, q in lanes]
            rates = data.get("lane_bandwidths") or [data["bandwidth"] / len(lanes)] * len(lanes)
        bundles: dict[tuple[str, str], list[tuple[Any, float]]] = {}
        for (x, y, pair), rate in zip(pairs, rates, strict=True):
            bundles.setdefault((x, y), []).append((pair, rate))
        for (x, y), held in bundles.items():
            own = {key: value for key, value in data.items() if key not in ("ports", "lane_bandwidths")}
            own |= {"bandwidth": sum(rate for _, rate in held), "lanes": len(held)}
            own |= {"ports": [pair for pair, _ in held]} if lanes else {}
            own |= {"lane_bandwidths": [rate for _, rate in held]} if len({rate for _, rate in held}) > 1 else {}
            graph.add_edge(x, y, **own)

    def _all_nics(self, node: str) -> list[str]:
        if node not in self.parts:
            return [node]
        return [self._label(node, nic) for nic, data in self.parts[node].nodes(data=True) if data["kind"] == "nic"]

    def _chips(self) -> dict[str, Any]:
        chips: dict[str, Any] = {}
        for part in self.parts.values():
            for name, numbers in part.graph.get("chips", {}).items():
                if chips.setdefault(name, numbers) != numbers:
                    rule = "has different numbers in different readings"
                    raise InputError(Fault(f"chips.{name}", numbers, rule, "Give the chips names of their own."))
        return chips


def _domains(fabric: nx.Graph[str], parts: Mapping[str, nx.Graph[str]], domains: Domains) -> dict[str, str]:
    """Return host -> the domain whose scale-up switches it shares."""
    if domains == "blocks":
        found = {name: str(fabric.nodes[name]["block"]) for name in parts if "block" in fabric.nodes[name]}
        if not found:
            rule = "no host of the fabric names its block"
            raise InputError(
                Fault("domains", domains, rule, "Read Slurm's block topology, or give the hosts of each domain.")
            )
    else:
        found, faults = {}, []
        for name, members in (domains or {}).items():
            for host in members:
                if host not in parts:
                    faults.append(
                        Fault(
                            f"domains[{name!r}]", host, "is no host that has a reading", suggest(host, list(parts)[:16])
                        )
                    )
                elif found.setdefault(host, name) != name:
                    faults.append(
                        Fault(f"domains[{name!r}]", host, f"is in domain {found[host]!r} too", "Put it in one.")
                    )
        if faults:
            raise InputError(*faults)
    without = [h for h in found if not any(data.get("tier") == "scale-up" for _, data in parts[h].nodes(data=True))]
    if without:
        rule = "has no scale-up switch that its domain could share"
        raise InputError(
            Fault("domains", without[0], rule, "Leave it out, or give the file of a host with NVLink switches.")
        )
    return found
