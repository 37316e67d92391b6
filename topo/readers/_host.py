"""How does what a file says of one host become a graph? Devices, PCIe, scale-up links, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import networkx as nx

from topo._asked import Link, add_cable, add_switch
from topo._check import scale_up_components
from topo._design import DEFAULTS
from topo._errors import Fault, InputError
from topo.readers._chips import Chip
from topo.readers._reading import Reading
from topo.units import parse_quantity

__all__ = ["Pair", "add_cpu_links", "add_device", "add_links", "add_pcie", "domains_of", "finish", "new_host"]

Pair = tuple[str, str]

#: Most links a GPU of a product that is not named can have, by what its pairs show.
_USUAL, _MOST = 18, 36
#: Between two CPUs: NCCL's figure for two sockets of Sapphire Rapids (its SRP_QPI_BW) [bytes/s].
_SOCKETS = 22e9
_UP_LATENCY = parse_quantity(DEFAULTS["scale_up.latency"], "seconds")
_PCIE_LATENCY = 0.5e-6
_LATENCY_NOTE = f"latencies, {_UP_LATENCY * 1e6:g} us a link: assumed, the file states none"


def new_host() -> nx.Graph[str]:
    """Return an empty graph with the attributes every graph has."""
    graph: nx.Graph[str] = nx.Graph(schema=1, chips={}, assumptions=[])
    return graph


def add_device(graph: nx.Graph[str], label: str, kind: str, host: str = "host0", **data: Any) -> None:
    """Add a GPU, NIC, CPU or PCIe switch; what is None is left out."""
    known = {key: value for key, value in data.items() if value is not None}
    graph.add_node(label, kind=kind, host=host, forwards=kind == "switch", **known)


def add_pcie(graph: nx.Graph[str], a: str, b: str, bandwidth: float) -> None:
    """Join two devices by PCIe [bytes/s per direction]."""
    add_cable(graph, a, b, Link("pcie", bandwidth, _PCIE_LATENCY))


def add_cpu_links(graph: nx.Graph[str], cpus: Iterable[str]) -> list[str]:
    """Join every two CPUs of a host; return what was assumed."""
    pairs = list(combinations(cpus, 2))
    for a, b in pairs:
        add_pcie(graph, a, b, _SOCKETS)
    what = f"each two of the CPUs or NUMA nodes are joined at {_SOCKETS / 1e9:g} GB/s per direction: assumed"
    return [f"{what} (NCCL's figure for two sockets of Sapphire Rapids)"] if pairs else []


def domains_of(
    cells: Mapping[Pair, int], most: int | None, file: str, place: str
) -> list[tuple[Mapping[str, int], Mapping[Pair, int]]]:
    """Tell switched scale-up domains from direct links, by how many links a GPU can have.

    Parameters
    ----------
    cells : mapping
        Pair of GPUs -> links between them as the file counts them, one or more.
    most : int or None
        Links the GPU has; None where its product is not known.
    file, place : str
        For messages.

    Returns
    -------
    list of (lanes, pairs)
        Per domain: links of every GPU to its switch and no pairs, or no lanes and the
        pairs that are wired directly.

    Raises
    ------
    InputError
        More links than the GPU has, but no switch that would show such pairs.
    """
    only: nx.Graph[str] = nx.Graph(list(cells))
    limit = most or (_USUAL if max(cells.values(), default=0) <= _USUAL else _MOST)
    found: list[tuple[Mapping[str, int], Mapping[Pair, int]]] = []
    for part in nx.connected_components(only):
        own = {pair: n for pair, n in cells.items() if pair[0] in part}
        sums = {gpu: sum(n for pair, n in own.items() if gpu in pair) for gpu in only if gpu in part}
        if max(sums.values()) <= limit:
            found.append(({}, own))
            continue
        lanes = {gpu: max(n for pair, n in own.items() if gpu in pair) for gpu in sums}
        every = len(own) == len(part) * (len(part) - 1) // 2
        if not every or any(n != min(lanes[a], lanes[b]) for (a, b), n in own.items()):
            gpu = max(sums, key=lambda gpu: sums[gpu])
            rule = f"{gpu} would have {sums[gpu]} links, more than {limit}, and the pairs are not those of one switch"
            raise InputError(Fault(place, sums[gpu], rule, "Give the file as the tool wrote it.", file))
        found.append((lanes, {}))
    return found


def add_links(graph: nx.Graph[str], domains: Iterable[tuple[Mapping[str, int], Mapping[Pair, int]]], chip: Chip) -> int:
    """Add scale-up links and switches of `domains_of`; return the number of switched domains."""
    link = Link("scale-up", chip.rate, _UP_LATENCY)
    switched = 0
    for lanes, pairs in domains:
        if lanes:
            label = f"NVSwitch{switched}"
            host = graph.nodes[next(iter(lanes))]["host"]
            add_switch(graph, label, "scale-up", host=host)
            graph.nodes[label].update(reduces=chip.reduces, multicasts=chip.reduces)
            switched += 1
        for gpu, n in lanes.items():
            add_cable(graph, gpu, label, link, n)
        for (a, b), n in pairs.items():
            add_cable(graph, a, b, link, n)
    return switched


def finish(graph: nx.Graph[str], kind: str, notes: Iterable[str]) -> Reading:
    """Return the reading of a host: domains numbered, GPUs without scale-up links and NICs without a fabric noted."""
    said = [*notes]
    lone = []
    parts = scale_up_components(graph)
    for number, part in enumerate(parts):
        for node in part:
            graph.nodes[node]["domain"] = number
        gpus = [node for node in part if graph.nodes[node]["kind"] == "gpu"]
        lone += gpus if len(part) == 1 else []
    if len(lone) < sum(data["kind"] == "gpu" for _, data in graph.nodes(data=True)):
        said += [f"{gpu} has no scale-up link: reached over PCIe" for gpu in lone]
    elif len(lone) > 1:
        said.append("no scale-up links: the GPUs reach each other over PCIe")
    nics = [node for node, data in graph.nodes(data=True) if data["kind"] == "nic"]
    if nics:
        said.append(f"what the NICs ({len(nics)}) are cabled to is not in the file: no scale-out links")
    said.append(_LATENCY_NOTE)
    return Reading(kind, graph, tuple(dict.fromkeys(said)))
