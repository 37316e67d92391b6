"""How are scale-up domains joined? The default rail-optimised leaf/spine fabric.

Half of a leaf's ports go down. Slot i of every domain goes to a leaf of rail i; with few
domains one leaf serves several neighbouring slots. Leaves meet in spines, with more
leaves than a spine has ports in a third level of cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import networkx as nx

from topo._design import ScaleOut
from topo._errors import Fault, InputError, suggest

__all__ = ["FABRICS", "join_domains"]

Builder = Callable[["nx.Graph[str]", Sequence[Sequence[str]], ScaleOut], None]


def join_domains(
    graph: nx.Graph[str], domains: Sequence[Sequence[str]], spec: ScaleOut, *, file: str | None = None
) -> None:
    """Add the scale-out fabric of `spec` to a graph under construction.

    Parameters
    ----------
    graph : networkx.Graph
        Holds the domains; changed in place.
    domains : sequence of sequence of str
        GPU labels of each domain in slot order; sizes may differ.
    spec : ScaleOut
        NIC rate [bytes/s per direction], latency per link [s], radix, oversubscription.
    """
    if spec.shape not in FABRICS:
        cure = suggest(spec.shape, FABRICS)
        raise InputError(Fault("scale_out.shape", spec.shape, "is not a known fabric", cure, file))
    FABRICS[spec.shape](graph, domains, spec)


def leaf_ports(domains: Sequence[Sequence[str]], down: int) -> list[list[str]]:
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


def require_reach(size: int, domains: int, spec: ScaleOut) -> None:
    """Refuse more domains of `size` GPUs than three levels of switches of this radix reach.

    Raises
    ------
    InputError
        Names a radix that does.
    """
    radix = spec.radix
    while n_leaves(size, domains, radix // 2) > radix * (radix // 2):
        radix += 2 - radix % 2
    if radix != spec.radix:
        rule = f"three levels of switches do not reach {domains * size} GPUs in {domains} domains"
        raise InputError(Fault("scale_out.radix", spec.radix, rule, f"A radix of {radix} does."))


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


def rail_optimised(graph: nx.Graph[str], domains: Sequence[Sequence[str]], spec: ScaleOut) -> None:
    """Join domains rail by rail under leaves, spines and, beyond radix leaves, cores."""
    down = spec.radix // 2
    leaves = leaf_ports(domains, down)
    uplinks = [max(1, math.ceil(len(gpus) / spec.oversubscription - 1e-9)) for gpus in leaves]
    require_reach(max(len(gpus) for gpus in domains), len(domains), spec)
    worst = max(len(gpus) + up for gpus, up in zip(leaves, uplinks, strict=True))
    if len(leaves) > 1 and worst > spec.radix:
        raise InputError(
            Fault("scale_out.oversubscription", spec.oversubscription,
                  f"needs {worst} ports on a leaf of radix {spec.radix}", "Raise it, or the radix.")
        )  # fmt: skip
    names = [f"leaf{i}" for i in range(len(leaves))]
    for name, gpus in zip(names, leaves, strict=True):
        _switch(graph, name, "leaf", spec)
        for gpu in gpus:
            _cable(graph, gpu, name, 1, spec)
            if spec.nic:
                graph.edges[gpu, name]["nic"] = spec.nic
    if len(leaves) == 1:
        return
    if len(leaves) <= spec.radix:
        spines = [f"spine{i}" for i in range(_upper(uplinks, spec.radix))]
        _level(graph, names, uplinks, spines, "spine", spec)
    else:
        _pods(graph, names, uplinks, spec)


def _pods(graph: nx.Graph[str], leaves: list[str], uplinks: list[int], spec: ScaleOut) -> None:
    """Pods of radix/2 leaves; spine j of every pod meets the others in core group j."""
    down = spec.radix // 2
    pods = [range(first, min(first + down, len(leaves))) for first in range(0, len(leaves), down)]
    planes = max(_upper([uplinks[i] for i in pod], down) for pod in pods)
    for p, pod in enumerate(pods):
        spines = [f"pod{p}/spine{j}" for j in range(planes)]
        _level(graph, [leaves[i] for i in pod], [uplinks[i] for i in pod], spines, "spine", spec)
    for j in range(planes):
        spines = [f"pod{p}/spine{j}" for p in range(len(pods)) if f"pod{p}/spine{j}" in graph]
        ups = [sum(data["lanes"] for _, _, data in graph.edges(spine, data=True)) for spine in spines]
        cores = [f"core{j}.{i}" for i in range(_upper(ups, spec.radix))]
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


def _cable(graph: nx.Graph[str], a: str, b: str, lanes: int, spec: ScaleOut) -> None:
    graph.add_edge(a, b, kind="scale-out", bandwidth=lanes * spec.bandwidth, latency=spec.latency, lanes=lanes)


FABRICS: dict[str, Builder] = {"rail_optimised": rail_optimised}
