"""Where does each device of a host sit, by how near every two are? CPUs, PCIe switches and what hangs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import networkx as nx

from topo.readers._host import add_cpu_links, add_device, add_pcie

__all__ = ["PIX", "PXB", "SAME_CPU", "SYS", "place_devices"]

#: How near two devices are: one PCIe switch; several bridges; one CPU or NUMA node; across.
PIX, PXB, SAME_CPU, SYS = range(4)
Pair = tuple[str, str]


def place_devices(
    graph: nx.Graph[str], devices: Sequence[str], levels: Mapping[Pair, int], homes: Mapping[str, str],
    bandwidth: float, host: str = "host0",
) -> list[str]:  # fmt: skip
    """Add CPUs and PCIe switches to a graph of devices, and PCIe links; return what was assumed.

    Parameters
    ----------
    graph : networkx.Graph
        Holds the devices; changed in place.
    devices : sequence of str
        In order.
    levels : mapping
        Pair of devices -> how near they are, where that is known.
    homes : mapping
        Device -> NUMA node or CPUs, where that is known.
    bandwidth : float
        Of every PCIe link [bytes/s per direction].
    host : str
        Theirs.
    """
    notes: list[str] = []
    sockets = _sockets(devices, levels, homes, notes)
    cpus = []
    for number, socket in enumerate(sockets):
        names = {homes[device]: None for device in socket if device in homes}
        home = next(iter(names)) if names else str(number)
        cpu = f"CPU{home}" if home.isdigit() and f"CPU{home}" not in cpus else f"CPU{number}"
        cpu = cpu if cpu not in cpus else f"CPU{number}b"
        cpus.append(cpu)
        add_device(graph, cpu, "cpu", host)
        _hang(graph, cpu, socket, levels, bandwidth, host)
    _note_uneven(sockets, levels, notes)
    return notes + add_cpu_links(graph, cpus)


def _groups(devices: Sequence[str], pairs: Iterable[Pair]) -> list[list[str]]:
    """Return the devices that pairs join, in order."""
    joined: nx.Graph[str] = nx.Graph()
    joined.add_nodes_from(devices)
    joined.add_edges_from(pair for pair in pairs if pair[0] in joined and pair[1] in joined)
    order = {device: number for number, device in enumerate(devices)}
    return sorted((sorted(part, key=lambda d: order[d]) for part in nx.connected_components(joined)),
                  key=lambda part: order[part[0]])  # fmt: skip


def _sockets(
    devices: Sequence[str], levels: Mapping[Pair, int], homes: Mapping[str, str], notes: list[str]
) -> list[list[str]]:
    """Return the devices of each CPU: those the matrix puts together, else those of one NUMA node."""
    near = [pair for pair, level in levels.items() if level < SYS]
    parts = _groups(devices, near)
    part_of = {device: number for number, part in enumerate(parts) for device in part}
    apart = {frozenset((part_of[a], part_of[b])) for (a, b), level in levels.items() if level == SYS}
    alike = [
        (a, b) for i, a in enumerate(devices) for b in devices[i + 1 :]
        if a in homes and homes[a] == homes.get(b) and frozenset((part_of[a], part_of[b])) not in apart
    ]  # fmt: skip
    merged = _groups(devices, near + alike)
    home_of = {device: number for number, part in enumerate(merged) for device in part}
    if any(home_of[a] == home_of[b] for (a, b), level in levels.items() if level == SYS and part_of[a] != part_of[b]):
        merged = parts
    placed = {device for pair in levels for device in pair} | set(homes)
    lost = [device for device in devices if device not in placed]
    if not lost:
        return merged
    known = [part for part in merged if part[0] in placed]
    first, rest = (known[0], known[1:]) if known else ([], [])
    notes.append(f"the file does not say on which CPU these are: {', '.join(lost)}; the first one taken")
    return [[*first, *lost], *rest]


def _hang(
    graph: nx.Graph[str], cpu: str, socket: Sequence[str], levels: Mapping[Pair, int], bandwidth: float, host: str
) -> None:
    """Hang the devices of a CPU on it: alone, on a switch, or on switches below one."""

    def switch(under: str) -> str:
        label = f"PCIe{sum(node.startswith('PCIe') for node in graph)}"
        add_device(graph, label, "switch", host)
        add_pcie(graph, label, under, bandwidth)
        return label

    within: Callable[[Sequence[str], int], list[list[str]]] = lambda part, most: _groups(  # noqa: E731
        part, [pair for pair, level in levels.items() if level <= most]
    )
    for upper in within(socket, PXB):
        lower = within(upper, PIX)
        above = switch(cpu) if len(lower) > 1 else cpu
        for part in lower:
            below = switch(above) if len(part) > 1 else above
            for device in part:
                add_pcie(graph, device, below, bandwidth)


def _note_uneven(sockets: Sequence[Sequence[str]], levels: Mapping[Pair, int], notes: list[str]) -> None:
    home = {device: number for number, part in enumerate(sockets) for device in part}
    odd = [f"{a} - {b}" for (a, b), level in levels.items() if level == SYS and home[a] == home[b]]
    if odd:
        notes.append(f"across CPUs in the file, but both are near a third device, so on one CPU here: {', '.join(odd)}")
