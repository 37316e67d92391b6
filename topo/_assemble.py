"""Which graph does a design make? Its domains side by side, their NICs, and the fabric that joins them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx

from topo._asked import MOST
from topo._bill import state_units
from topo._check import scale_up_components
from topo._design import Design, ScaleOut
from topo._errors import Fault, InputError
from topo._joins import join_domains, require_room
from topo._shapes import SHAPES, build_domain

__all__ = ["assemble", "require_sizes"]

#: Larger graphs are refused rather than built for hours.
MOST_GPUS = 1_000_000


@dataclass(frozen=True)
class _Unit:
    """One built domain on local labels, its parts joined by scale-up, its hosts and GPUs in slot order."""

    graph: nx.Graph[str]
    part: dict[str, int]
    parts: int
    hosts: dict[str, int]
    gpus: list[str]


def require_sizes(design: Design, sizes: Sequence[int]) -> None:
    """Refuse domains of sizes that the design's shape does not have, and more GPUs than are built.

    Raises
    ------
    InputError
        With the rule that is broken.
    """
    usual = design.design.domain_size
    other = next((size for size in sizes if size != usual), None)
    shape = design.scale_up.shape
    if other is not None and not SHAPES[shape].any_size:
        rule = f"a {shape} of this design has {usual} GPUs"
        raise InputError(Fault("domains", list(sizes), rule, "Give a number of domains."))
    if sum(sizes) > MOST_GPUS:
        place, value = "domains x design.domain_size", f"{len(sizes)} x {max(sizes)}"
        rule = f"makes {sum(sizes)} GPUs, more than the {MOST_GPUS} this version builds"
        raise InputError(Fault(place, value, rule, "Take fewer."))
    out = design.scale_out
    if out is not None and len(sizes) > 1 and sum(sizes) * out.nics_per_gpu * out.ports_per_nic > MOST:
        place, value = "scale_out.nics_per_gpu x ports_per_nic", f"{out.nics_per_gpu} x {out.ports_per_nic}"
        rule = f"means more end ports than the {MOST:,} links that a graph of Python objects holds"
        raise InputError(Fault(place, value, rule, "Take fewer."))


def assemble(design: Design, sizes: Sequence[int], planes: bool) -> nx.Graph[str]:
    """Return the graph of domains of these sizes.

    Parameters
    ----------
    design : Design
        Validated.
    sizes : sequence of int
        GPUs of every domain.
    planes : bool
        Unfold parallel switch planes.
    """
    graph: nx.Graph[str] = nx.Graph(
        schema=1, name=design.design.name, domains=len(sizes), chips={design.chip.name: _chip(design)},
        assumptions=_said(design, len(sizes)), sources=dict(design.sources),
    )  # fmt: skip
    units = {size: _unit(design, size, planes) for size in dict.fromkeys(sizes)}
    ends = _ends(design, [units[size] for size in sizes]) if len(sizes) > 1 else []
    if design.scale_out is not None and ends:
        require_room([[label for group in ports for label in group.ports] for ports in ends], design.scale_out)
    ranks = parts = hosts = 0
    for d, size in enumerate(sizes):
        unit = units[size]
        _add_unit(graph, design, unit, d, ranks, parts, hosts)
        ranks, parts, hosts = ranks + size, parts + unit.parts, hosts + len(unit.hosts)
    graph.graph["assumptions"] += _built_in(units)
    if design.scale_out is not None and ends:
        _add_nics(graph, ends, design.scale_out)
        join_domains(graph, [[label for group in ports for label in group.ports] for ports in ends], design.scale_out)
    state_units(graph, design)
    return graph


def _unit(design: Design, size: int, planes: bool) -> _Unit:
    local = build_domain(design.scale_up, size, planes=planes)
    gpus = [node for node, data in local.nodes(data=True) if data["kind"] == "gpu"]
    if design.scale_up.host_block:
        _block_hosts(local, design.scale_up.host_block)
    _count_hosts(local, gpus, design)
    components = [part for part in scale_up_components(local) if any("gpu" in node for node in part)]
    part = {node: number for number, nodes in enumerate(components) for node in nodes}
    names = dict.fromkeys(str(data["host"]) for _, data in local.nodes(data=True) if data.get("host") is not None)
    return _Unit(local, part, len(components), {name: i for i, name in enumerate(names)}, gpus)


def _count_hosts(local: nx.Graph[str], gpus: Sequence[str], design: Design) -> None:
    """Give neighbours a host where `design.gpus_per_host` alone says so; refuse another number than the shape has."""
    per_host, usual = design.design.gpus_per_host, design.design.domain_size
    built = Counter(local.nodes[gpu].get("host") for gpu in gpus)
    if per_host is None:
        return
    if None in built:
        if per_host <= usual:
            nx.set_node_attributes(local, {gpu: f"host{slot // per_host}" for slot, gpu in enumerate(gpus)}, "host")
    elif len(gpus) == usual and max(built.values()) != per_host:
        own = max(built.values())
        rule = f"a host of this {design.scale_up.shape} has {own} GPUs"
        raise InputError(Fault("design.gpus_per_host", per_host, rule, f"Write {own}, or leave it out."))


def _block_hosts(local: nx.Graph[str], block: Sequence[int]) -> None:
    """Give the chips of every block of a grid one host, hosts in the order of their first chips."""
    found: dict[tuple[int, ...], str] = {}
    for _, data in local.nodes(data=True):
        sides = [*block, *[1] * len(data["coordinates"])]
        place = tuple(c // side for c, side in zip(data["coordinates"], sides, strict=False))
        data["host"] = found.setdefault(place, f"host{len(found)}")


def _add_unit(graph: nx.Graph[str], design: Design, unit: _Unit, d: int, ranks: int, parts: int, hosts: int) -> None:
    """Add domain d; `ranks`, `parts` and `hosts` have been given out before it."""
    per_host, rank = design.design.gpus_per_host, ranks
    for node, data in unit.graph.nodes(data=True):
        extra: dict[str, Any] = {"domain": parts + unit.part[node]} if node in unit.part else {}
        if design.design.domain_is_rack:
            extra["rack"] = d
        if data.get("host") is not None:
            extra["host"] = f"host{hosts + unit.hosts[data['host']]}"
        if data["kind"] == "gpu":
            extra |= {"rank": rank, "chip": design.chip.name}
            if per_host and not unit.hosts:
                extra["host"] = f"host{rank // per_host}"
            rank += 1
        graph.add_node(f"d{d}/{node}", **{**data, **extra})
    graph.add_edges_from((f"d{d}/{a}", f"d{d}/{b}", dict(data)) for a, b, data in unit.graph.edges(data=True))


def _built_in(units: dict[int, _Unit]) -> list[str]:
    """Return what the builders of the domains assumed."""
    return list(dict.fromkeys(line for unit in units.values() for line in unit.graph.graph.get("assumptions", ())))


def _chip(design: Design) -> dict[str, Any]:
    numbers = asdict(design.chip)
    del numbers["name"]
    return {key: value for key, value in numbers.items() if value is not None}


def _said(design: Design, domains: int) -> list[str]:
    """Return what the design assumes, without what no link of this graph has."""
    unused = "scale_out." if domains == 1 else "\0"
    return [line for line in design.assumptions if not line.startswith(unused) or line.endswith(": overridden")]


# --- NICs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """GPUs that share one or several NICs; `nic` is the node of a shared one."""

    gpus: list[str]
    host: str | None
    nic: str | None
    ports: list[str]


def _ends(design: Design, units: Sequence[_Unit]) -> list[list[_Group]]:
    """Return the NICs of every domain in slot order, with a label per port."""
    spec = design.scale_out
    if spec is None:
        return []
    found, ranks, hosts = [], 0, 0
    for d, unit in enumerate(units):
        names = [(f"d{d}/{gpu}", _host(design, unit, gpu, ranks + slot, hosts)) for slot, gpu in enumerate(unit.gpus)]
        found.append(_groups(names, d, spec))
        ranks, hosts = ranks + len(unit.gpus), hosts + len(unit.hosts)
    return found


def _host(design: Design, unit: _Unit, gpu: str, rank: int, hosts: int) -> str | None:
    if unit.hosts:
        return f"host{hosts + unit.hosts[unit.graph.nodes[gpu]['host']]}"
    per_host = design.design.gpus_per_host
    return f"host{rank // per_host}" if per_host else None


def _groups(gpus: Sequence[tuple[str, str | None]], d: int, spec: ScaleOut) -> list[_Group]:
    k = spec.gpus_per_nic
    if k == 1:
        return [_Group([gpu], host, None, [gpu] * (spec.nics_per_gpu * spec.ports_per_nic)) for gpu, host in gpus]
    by_host: dict[str | None, list[str]] = {}
    for gpu, host in gpus:
        by_host.setdefault(host, []).append(gpu)
    shared = [(host, mine[i : i + k]) for host, mine in by_host.items() for i in range(0, len(mine), k)]
    return [
        _Group(mine, host, f"d{d}/nic{i}", [f"d{d}/nic{i}"] * spec.ports_per_nic)
        for i, (host, mine) in enumerate(shared)
    ]


def _add_nics(graph: nx.Graph[str], ends: Sequence[Sequence[_Group]], spec: ScaleOut) -> None:
    """Add shared NICs as nodes, each on the pcie edges of its GPUs."""
    rate = spec.pcie_bandwidth or spec.bandwidth
    for group in (group for groups in ends for group in groups):
        if group.nic is None:
            continue
        host = {} if group.host is None else {"host": group.host}
        graph.add_node(group.nic, kind="nic", forwards=True, **host)
        for gpu in group.gpus:
            graph.add_edge(gpu, group.nic, kind="pcie", bandwidth=rate, latency=0.0, lanes=1)
