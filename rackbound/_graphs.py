"""Which topology does a name on the command line stand for?"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx

from topo import (
    Fabric,
    Fault,
    InputError,
    expand_hostlist,
    hostlist,
    is_graph_file,
    leaves_of,
    load,
    load_design,
    nodelist,
    suggest_nodes,
)  # fmt: skip

if TYPE_CHECKING:
    from collectives import Cost

__all__ = ["compared", "fabric_of", "graph_of", "part_with", "ranks_on"]


def graph_of(
    name: str | os.PathLike[str],
    domains: int | Sequence[int] | None,
    usual: int,
    overrides: Mapping[str, Any] | None = None,
) -> nx.Graph[str]:
    """Return the graph of a design, or of a graph file, which has the domains it has.

    Parameters
    ----------
    name : str or path
        Catalogue name, design file or graph file.
    domains : int, sequence of int or None
        As asked; None takes `usual` for a design, one where it states no NIC rate.
    usual : int
        The verb's default.
    overrides : mapping, optional
        As `topo.load`.
    """
    if not isinstance(name, str | os.PathLike) or not is_graph_file(name):
        if domains is None:
            domains = usual if load_design(name, overrides).scale_out else 1
        return load(name, domains, overrides)
    if domains is not None:
        rule = "is for designs: a graph file has the domains it has"
        raise InputError(Fault("domains", domains, rule, "Leave it out.", os.fspath(name)))
    return load(name, 1, overrides)


def fabric_of(
    name: str, domains: int | Sequence[int] | None, usual: int, overrides: Mapping[str, Any] | None = None
) -> Fabric:
    """Return the array view of `graph_of`."""
    return Fabric.from_graph(graph_of(name, domains, usual, overrides))


def ranks_on(
    graph: nx.Graph[str], ranks: int | None, nodes: str | None, suggest: bool, free: str | None
) -> tuple[int | list[str] | None, str | None, str | None]:
    """Return what a verb takes as ``ranks=``, the list of nodes they are on, and a better list to compare it with.

    Parameters
    ----------
    graph : networkx.Graph
        Its hosts bear the names.
    ranks : int or None
        Number of ranks; not together with nodes.
    nodes : str or None
        A Slurm list; with `suggest` also their number.
    suggest : bool
        Choose as many nodes that lie closest together: to compare the list with, or where only their number is given
        to take them.
    free : str or None
        A Slurm list of those that may be chosen; all if left out.
    """
    if ranks is not None and (nodes is not None or suggest):
        raise InputError(Fault("--ranks", ranks, "goes without --nodes and --suggest", "Leave one of them out."))
    if free is not None and not suggest:
        raise InputError(Fault("--free", free, "says what --suggest may choose", "Give --suggest too."))
    if not suggest:
        return (ranks, None, None) if nodes is None else (nodelist(graph, nodes), nodes, None)
    if nodes is None:
        cure = "Write --nodes 16, or --nodes n[001-016] to compare them with."
        raise InputError(Fault("--suggest", True, "does not say how many nodes", cure))
    count = int(nodes) if re.fullmatch(r"[0-9]{1,9}", nodes) else None
    team = [] if count is not None else nodelist(graph, nodes)
    chosen = suggest_nodes(graph, len(set(expand_hostlist(nodes))) if count is None else count, free)
    better = hostlist(chosen)
    return (nodelist(graph, better), better, None) if count is not None else (team, nodes, better)


def compared(graph: nx.Graph[str], given: tuple[str, Cost], better: tuple[str, Cost]) -> dict[str, Any]:
    """Return what nodes asked for lose against others: each a Slurm list and what the collective costs on it."""
    under = [len(leaves_of(graph, expand_hostlist(nodes))) for nodes, _ in (given, better)]
    ours, theirs = given[1].seconds, better[1].seconds
    return {
        "nodes": better[0], "leaves": under[1], "leaves_given": under[0], "seconds": theirs,
        "bottleneck": better[1].bottleneck, "slower": ours / theirs - 1 if theirs else 0.0,
    }  # fmt: skip


def part_with(graph: nx.Graph[str], team: int | list[str] | None) -> nx.Graph[str]:
    """Return the part of a graph that holds all of these ranks, else the graph: an allocation needs no other part."""
    if not isinstance(team, list):
        return graph
    part = set(nx.node_connected_component(graph.to_undirected(as_view=True), team[0]))
    if len(part) == len(graph) or not part.issuperset(team):
        return graph
    found = graph.copy()  # a view would lose the order of nodes
    found.remove_nodes_from([node for node in graph if node not in part])
    return found
