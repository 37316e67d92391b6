"""Which ranks do the nodes of a Slurm list hold, and which free nodes lie closest together?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product

import networkx as nx

from topo._check import rank_nodes
from topo._errors import Fault, InputError, suggest

__all__ = ["expand_hostlist", "hostlist", "leaves_of", "nodelist", "suggest_nodes"]

#: A list of more names is refused rather than written out.
_MOST = 1_000_000
_CURE = "Write names and ranges as Slurm does: n[001-020,022],login1 or rack[1-2]n[01-04]."


def expand_hostlist(text: str, *, place: str = "nodelist", file: str | None = None) -> list[str]:
    """Return the names of a Slurm hostlist expression, in its order.

    Parameters
    ----------
    text : str
        As ``scontrol show hostlist`` writes it; several brackets in a name give every combination.
    place, file : str, optional
        Where the text stands, for the message.

    Raises
    ------
    InputError
        Brackets that do not close or are nested, ranges that run backwards or mix widths, no name
        at all, or more than a million names.

    Examples
    --------
    >>> expand_hostlist("n[08-10,12],rack[1-2]x[0-1]")
    ['n08', 'n09', 'n10', 'n12', 'rack1x0', 'rack1x1', 'rack2x0', 'rack2x1']
    """

    def refuse(value: str, rule: str) -> InputError:
        return InputError(Fault(place, value, rule, _CURE, file))

    if not re.fullmatch(r"(?:[^\[\]]|\[[^\[\]]*\])*", text):
        raise refuse(text[:80], "has a bracket that does not close, or one inside another")
    names: list[str] = []
    for name in (found.strip() for found in re.findall(r"(?:[^,\[]|\[[^\]]*\])+|(?<=,)(?=,|$)|^(?=,|$)", text)):
        if not name or re.search(r"[\s\"'=]", re.sub(r"\[.*?\]", "", name)):
            raise refuse(text[:80], f"has {name!r} where a node's name should be")
        parts = [
            _numbers(part, refuse) if part.startswith("[") else [part]
            for part in re.findall(r"\[[^\]]*\]|[^\[]+", name)
        ]
        count = len(names)
        for part in parts:
            count = len(names) + max(1, count - len(names)) * len(part)
            if count > _MOST:
                raise refuse(name[:80], f"makes the list longer than {_MOST} names")
        names += map("".join, product(*parts))
    return names


def _numbers(bracket: str, refuse: Callable[[str, str], InputError]) -> Sequence[str]:
    """Return the numbers of "[01-03,7]" as text."""
    numbers: list[str] = []
    for item in bracket[1:-1].split(","):
        found = re.fullmatch(r"\s*([0-9]+)(?:-([0-9]+))?\s*", item)
        if not found:
            raise refuse(bracket[:80], f"has {item!r} where a number or a range of numbers should be")
        low, high = found[1], found[2] or found[1]
        if int(low) > int(high):
            raise refuse(bracket[:80], f"has a range that runs backwards, {item.strip()}")
        if len(low) != len(high) and ((low[0] == "0" and len(low) > 1) or high[0] == "0"):
            raise refuse(
                bracket[:80], f"has a range of which one end has leading zeros of another width, {item.strip()}"
            )
        if int(high) - int(low) + len(numbers) >= _MOST:
            raise refuse(bracket[:80], f"makes the list longer than {_MOST} names")
        numbers += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return numbers


def hostlist(names: Iterable[str]) -> str:
    """Return names as one Slurm hostlist expression; `expand_hostlist` gives them back, sorted by number.

    Examples
    --------
    >>> hostlist(["n08", "n09", "n10", "n12", "login"])
    'n[08-10,12],login'
    """
    groups: dict[tuple[str, int, str], list[int]] = {}
    for name in names:
        found = re.fullmatch(r"(.*?)([0-9]+)([^0-9]*)", name)
        before, digits, after = found.groups() if found else (name, "", "")
        groups.setdefault((before, len(digits), after), []).extend([int(digits)] if digits else [])
    texts = []
    for (before, width, after), numbers in groups.items():
        runs: list[list[int]] = []
        for number in sorted(set(numbers)):
            if runs and runs[-1][1] == number - 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        parts = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs]
        inside = parts[0] if len(runs) == 1 and runs[0][0] == runs[0][1] else f"[{','.join(parts)}]" if parts else ""
        texts.append(f"{before}{inside}{after}")
    return ",".join(texts)


def nodelist(graph: nx.Graph[str], text: str) -> list[str]:
    """Return the ranks on the nodes of a Slurm list, for ``ranks=`` of every verb.

    Parameters
    ----------
    graph : networkx.Graph
        Its hosts, or the `host` of its GPUs, bear the names of the list.
    text : str
        A Slurm hostlist expression, ``"n[001-016]"``.

    Returns
    -------
    list of str
        Labels of the ranks in rank order.

    Raises
    ------
    InputError
        A list that cannot be read, or names that no rank of the graph has.

    Examples
    --------
    >>> from topo import load
    >>> nodelist(load("hgx-h100-8", domains=4), "host[1-2]")[::8]
    ['d1/gpu0', 'd2/gpu0']
    """
    names = dict.fromkeys(expand_hostlist(text))
    ranks = ranks_by_host(graph)
    missing = [name for name in names if name not in ranks]
    if missing:
        rule = f"{len(missing)} of {len(names)} names are no host of this graph: {', '.join(missing[:8])}"
        raise InputError(Fault("nodelist", text[:80], rule, suggest(missing[0], list(ranks)[:16])))
    chosen = {rank for name in names for rank in ranks[name]}
    return [rank for rank in rank_nodes(graph) if rank in chosen]


def ranks_by_host(graph: nx.Graph[str]) -> dict[str, list[str]]:
    """Return host name -> its ranks; a rank without a host is one by its label."""
    found: dict[str, list[str]] = {}
    for node in rank_nodes(graph):
        host = graph.nodes[node].get("host")
        found.setdefault(node if host is None else str(host), []).append(node)
    return found


def suggest_nodes(graph: nx.Graph[str], n: int, free: str | Iterable[str] | None = None) -> list[str]:
    """Return n free hosts under the fewest leaf switches, those leaves close to each other.

    Parameters
    ----------
    graph : networkx.Graph
        Hosts, or GPUs that name their `host`, wired to switches by scale-out edges.
    n : int
        Number of hosts.
    free : str or iterable of str, optional
        A Slurm list or the names of hosts that may be taken; all if left out.

    Returns
    -------
    list of str
        Names of hosts in rank order. Among choices of as few leaves: fewest hops between their
        hosts, then the fewest free hosts left over on them. The search starts at every leaf and
        takes nearest or fullest ones first: near the best, not proven to be it.

    Raises
    ------
    InputError
        More hosts than are free, or names that are no host.

    Examples
    --------
    >>> from topo import load
    >>> suggest_nodes(load("hgx-h100-8", domains=8), 2, free="host[1,4-7]")
    ['host1', 'host4']
    """
    hosts = ranks_by_host(graph)
    names = (
        list(hosts) if free is None else list(dict.fromkeys(expand_hostlist(free) if isinstance(free, str) else free))
    )
    missing = [name for name in names if name not in hosts]
    if missing:
        raise InputError(Fault("free", missing[0], "is no host of this graph", suggest(missing[0], list(hosts)[:16])))
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= len(names):
        raise InputError(
            Fault("n", n, f"must be a whole number from 1 to {len(names)}, the free hosts", "Ask for fewer.")
        )
    groups = _by_leaves(graph, names)
    hops = _hops(graph, list(groups))
    choices = (taken for seed in groups for taken in _choices(groups, hops, seed, n))
    best = min(choices, key=lambda taken: _cost(groups, hops, taken))
    place = {name: i for i, name in enumerate(hosts)}
    return sorted((name for leaves, k in best.items() for name in groups[leaves][:k]), key=place.__getitem__)


def leaves_of(graph: nx.Graph[str], names: Iterable[str]) -> list[str]:
    """Return the switches that hosts are wired to, by name; a host that no switch is wired to stands for itself.

    Examples
    --------
    >>> from topo import load
    >>> leaves_of(load("hgx-h100-8", domains=2), ["host0"])
    ['leaf0']
    """
    return sorted(frozenset().union(*_by_leaves(graph, names)))


Leaves = frozenset[str]


def _by_leaves(graph: nx.Graph[str], names: Iterable[str]) -> dict[Leaves, list[str]]:
    """Return the switches that a host's own nodes are wired to -> the hosts wired to just these."""
    wired: dict[str, set[str]] = {name: set() for name in names}
    for node, data in graph.nodes(data=True):
        name = str(data.get("host", node))
        if name in wired and data["kind"] != "switch":
            wired[name] |= {other for other, edge in graph[node].items()
                            if edge["kind"] == "scale-out" and graph.nodes[other]["kind"] == "switch"}  # fmt: skip
    groups: dict[Leaves, list[str]] = {}
    for name, leaves in wired.items():
        groups.setdefault(frozenset(leaves or {name}), []).append(name)
    return groups


def _hops(graph: nx.Graph[str], groups: list[Leaves]) -> dict[tuple[Leaves, Leaves], int]:
    """Return the hops from any leaf of one group to any of another; parts not joined are farther than any path."""
    found = {}
    ends = frozenset().union(*groups)
    passing = graph.subgraph(
        [n for n, data in graph.nodes(data=True) if data["kind"] == "switch" or n in ends or data.get("forwards")]
    ).copy()
    for leaves in groups:
        step = {node: i for i, layer in enumerate(nx.bfs_layers(passing, leaves)) for node in layer}
        for other in groups:
            found[leaves, other] = min(step.get(leaf, len(graph)) for leaf in other)
    return found


def _choices(
    groups: dict[Leaves, list[str]], hops: dict[tuple[Leaves, Leaves], int], seed: Leaves, n: int
) -> Iterator[dict[Leaves, int]]:
    """Yield two ways of taking n hosts from a group on: nearest first, and fullest first."""
    others = sorted(
        (group for group in groups if group != seed), key=lambda group: (-len(groups[group]), sorted(group))
    )
    for order in (sorted(others, key=lambda group: hops[seed, group]), others):
        taken: dict[Leaves, int] = {}
        for group in (seed, *order):
            left = n - sum(taken.values())
            taken[group] = min(left, len(groups[group]))
            if taken[group] == left:
                fits = [
                    g for g in order if g not in taken and hops[seed, g] <= hops[seed, group] and len(groups[g]) >= left
                ]
                tight = min(fits, key=lambda g: (len(groups[g]), sorted(g)), default=group)
                if len(taken) > 1 and len(groups[tight]) < len(groups[group]):
                    del taken[group]
                    taken[tight] = left
                break
        yield taken


def _cost(
    groups: dict[Leaves, list[str]], hops: dict[tuple[Leaves, Leaves], int], taken: dict[Leaves, int]
) -> tuple[int, int, int, list[list[str]]]:
    """Return leaves, hops summed over pairs of hosts, free hosts left over, and names for a fixed order."""
    spread = sum(taken[a] * taken[b] * hops[a, b] for a, b in combinations(taken, 2))
    over = sum(len(groups[group]) - k for group, k in taken.items())
    return len(frozenset().union(*taken)), spread, over, sorted(map(sorted, taken))
