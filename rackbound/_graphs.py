"""Which topology does a name on the command line stand for?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx

from topo import Fabric, Fault, InputError, hostlist, is_graph_file, load, load_design, nodelist, suggest_nodes

__all__ = ["fabric_of", "graph_of", "ranks_on"]


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
    graph: nx.Graph[str], ranks: int | None, nodes: str | None, suggest: int | None
) -> tuple[int | list[str] | None, str | None]:
    """Return what a verb takes as ``ranks=``, and the list of nodes they are on where nodes were asked for.

    Parameters
    ----------
    graph : networkx.Graph
        Its hosts bear the names.
    ranks : int or None
        Number of ranks; not together with nodes.
    nodes : str or None
        A Slurm list.
    suggest : int or None
        Number of nodes to choose from the list, or from all.
    """
    if ranks is not None and (nodes is not None or suggest is not None):
        raise InputError(Fault("--ranks", ranks, "goes without --nodes and --suggest", "Leave one of them out."))
    if suggest is not None:
        nodes = hostlist(suggest_nodes(graph, suggest, nodes))
    return (ranks, None) if nodes is None else (nodelist(graph, nodes), nodes)
