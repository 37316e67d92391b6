"""What do trees of switches over end ports look like? Leaves, spines and cores, sized by what hangs on them.

Half of a leaf's ports go down. Rail by rail, slot i of every domain goes to a leaf of rail
i; with few domains one leaf serves several neighbouring slots. Packed, leaves are filled
in order. Leaves meet in spines, with more leaves than a spine has ports in a third level
of cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import networkx as nx

from topo._design import ScaleOut
from topo._errors import Fault, InputError

__all__ = ["leaf_ports", "packed_ports", "plug", "require_reach", "require_trees", "spread", "tree"]

Ports = Sequence[Sequence[str]]


def leaf_ports(domains: Ports, down: int) -> list[list[str]]:
    """Return the GPUs on each leaf of a rail-optimised fabric, leaves in block and rail order."""
    leaves = []
    for first in range(0, len(domains), down):
        block = domains[first : first + down]
        slots_per_leaf = max(1, down // len(block))
        for slot in range(0, max(len(gpus) for gpus in block), slots_per_leaf):
            leaves.append([gpu for gpus in block for gpu in gpus[slot : slot + slots_per_leaf]])
    return leaves


def n_leaves(domain_size: int, domains: int, down: int) -> int:
    """Return how many leaves `leaf_ports` gives equal domains."""
    full, rest = divmod(domains, down)
    return full * domain_size + (-(-domain_size // (down // rest)) if rest else 0)


def packed_ports(domains: Ports, radix: int) -> list[list[str]]:
    """Return the ends on each leaf when leaves are filled in order: all on one switch, if it has the ports."""
    ends = [end for ports in domains for end in ports]
    down = radix if len(ends) <= radix else radix // 2
    return [ends[first : first + down] for first in range(0, len(ends), down)]


def require_reach(domains: Ports, spec: ScaleOut) -> None:
    """Refuse more domains than three levels of switches of this radix reach, rail by rail.

    Raises
    ------
    InputError
        Names a radix that does.
    """
    size = max(len(ports) for ports in domains)
    what = f"{sum(map(len, domains))} GPUs in {len(domains)} domains"
    _require_radix(spec, what, lambda radix: n_leaves(size, len(domains), radix // 2))


def require_trees(n: int, spec: ScaleOut) -> None:
    """Refuse more ends than the levels of a packed tree of this radix reach."""
    _require_radix(spec, f"{n} end ports", lambda radix: 1 if n <= radix else -(-n // (radix // 2)))


def _require_radix(spec: ScaleOut, what: str, leaves: Callable[[int], int]) -> None:
    two = spec.levels == 2
    radix = spec.radix
    while leaves(radix) > radix * (1 if two else radix // 2):
        radix += 2 - radix % 2
    if radix != spec.radix:
        rule = f"{'two' if two else 'three'} levels of switches do not reach {what}"
        cure = f"A radix of {radix} does{', or three levels' if two else ''}."
        raise InputError(Fault("scale_out.radix", spec.radix, rule, cure))


def spread(counts: Sequence[int], bins: int) -> list[list[int]]:
    """Deal each count over the bins, equal up to one.

    A count below the number of bins goes to the first bins, so that any two counts share
    one; what does not divide of the others goes to the emptiest bins.
    """
    rows = [[count // bins + (i < count < bins) for i in range(bins)] for count in counts]
    filled = [sum(column) for column in zip(*rows, strict=True)]
    for count, row in zip(counts, rows, strict=True):
        for i in sorted(range(bins), key=lambda i: filled[i])[: count % bins if count >= bins else 0]:
            row[i] += 1
            filled[i] += 1
    return rows


def _upper(uplinks: Sequence[int], radix: int) -> int:
    """Return how many upper switches take these uplinks: ceil(all / radix), more where one would overflow."""
    bins = math.ceil(sum(uplinks) / radix)
    while max(sum(column) for column in zip(*spread(uplinks, bins), strict=True)) > radix:
        bins += 1
    return bins


def tree(graph: nx.Graph[str], leaves: Sequence[Sequence[str]], spec: ScaleOut, prefix: str) -> None:
    """Add leaves over these ends, spines and, beyond radix leaves or where three levels are asked, cores."""
    above_leaf, above_spine = spec.ratios
    uplinks = [max(1, math.ceil(len(ends) / above_leaf - 1e-9)) for ends in leaves]
    worst = max(len(ends) + up for ends, up in zip(leaves, uplinks, strict=True))
    if len(leaves) > 1 and worst > spec.radix:
        raise InputError(
            Fault("scale_out.oversubscription", spec.oversubscription,
                  f"needs {worst} ports on a leaf of radix {spec.radix}", "Raise it, or the radix.")
        )  # fmt: skip
    names = [f"{prefix}leaf{i}" for i in range(len(leaves))]
    for name, ends in zip(names, leaves, strict=True):
        _switch(graph, name, "leaf", spec)
        for end in ends:
            plug(graph, end, name, spec)
    if len(leaves) == 1:
        return
    if len(leaves) <= spec.radix and spec.levels != 3:
        spines = [f"{prefix}spine{i}" for i in range(_upper(uplinks, spec.radix))]
        _level(graph, names, uplinks, spines, "spine", spec)
    else:
        _pods(graph, names, uplinks, above_spine, spec, prefix)


def _pods(
    graph: nx.Graph[str], leaves: list[str], uplinks: list[int], ratio: float, spec: ScaleOut, prefix: str
) -> None:
    """Pods of radix/2 leaves; spine j of every pod meets the others in core group j."""
    down = spec.radix // 2
    pods = [range(first, min(first + down, len(leaves))) for first in range(0, len(leaves), down)]
    planes = max(_upper([uplinks[i] for i in pod], down) for pod in pods)
    for p, pod in enumerate(pods):
        spines = [f"{prefix}pod{p}/spine{j}" for j in range(planes)]
        _level(graph, [leaves[i] for i in pod], [uplinks[i] for i in pod], spines, "spine", spec)
    for j in range(planes):
        spines = [name for p in range(len(pods)) if (name := f"{prefix}pod{p}/spine{j}") in graph]
        below = [sum(data["lanes"] for _, _, data in graph.edges(spine, data=True)) for spine in spines]
        ups = [max(1, math.ceil(n / ratio - 1e-9)) for n in below]
        cores = [f"{prefix}core{j}.{i}" for i in range(_upper(ups, spec.radix))]
        _level(graph, spines, ups, cores, "core", spec)


def _level(
    graph: nx.Graph[str], lower: list[str], uplinks: list[int], upper: list[str], tier: str, spec: ScaleOut
) -> None:
    """Cable every lower switch's uplinks to the upper ones, and say so where they do not divide."""
    rows = spread(uplinks, len(upper))
    for i, name in enumerate(upper):
        if any(row[i] for row in rows):  # the last pod may not need every spine
            _switch(graph, name, tier, spec)
    uneven = next((count for count in uplinks if count % len(upper)), None)
    if uneven is not None:
        few = uneven // len(upper)
        _say(
            graph,
            f"scale_out: {uneven} uplinks of a {graph.nodes[lower[0]]['tier']} do not divide over {len(upper)} "
            f"{tier} switches ({few} or {few + 1} lanes each): traffic split by local capacity may be blocked there",
        )
    for name, row in zip(lower, rows, strict=True):
        for above, lanes in zip(upper, row, strict=True):
            if lanes:
                _cable(graph, name, above, lanes, spec)


def _say(graph: nx.Graph[str], line: str) -> None:
    said = graph.graph.setdefault("assumptions", [])
    if line not in said:
        said.append(line)


def _switch(graph: nx.Graph[str], name: str, tier: str, spec: ScaleOut) -> None:
    graph.add_node(name, kind="switch", tier=tier, forwards=True, radix=spec.radix, reduces=False, multicasts=False)


def plug(graph: nx.Graph[str], end: str, switch: str, spec: ScaleOut) -> None:
    """Cable one more port of an end to a switch."""
    lanes = graph.edges[end, switch]["lanes"] + 1 if graph.has_edge(end, switch) else 1
    _cable(graph, end, switch, lanes, spec)
    if spec.nic:
        graph.edges[end, switch]["nic"] = spec.nic


def _cable(graph: nx.Graph[str], a: str, b: str, lanes: int, spec: ScaleOut) -> None:
    graph.add_edge(a, b, kind="scale-out", bandwidth=lanes * spec.port_bandwidth, latency=spec.latency, lanes=lanes)
