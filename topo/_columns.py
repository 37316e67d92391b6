"""What does a graph say, attribute by attribute? Its nodes and edges read once, in order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns", "Rows", "distinct"]

Ints = NDArray[np.intp]


class Rows(list[dict[str, Any]]):
    """Attributes of nodes or of edges, one dict each."""

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)
        self._read: dict[tuple[str, Any], list[Any]] = {}

    @cached_property
    def keys(self) -> set[str]:
        """Every attribute that some row has."""
        return set(chain.from_iterable(self))

    def column(self, key: str, default: Any = None) -> list[Any]:
        """Return one attribute of every row, read once: going through the dicts is what takes time."""
        if (key, default) not in self._read:
            read = [row.get(key, default) for row in self] if key in self.keys else [default] * len(self)
            self._read[key, default] = read
        return self._read[key, default]


@dataclass(frozen=True, eq=False)
class Columns:
    """Nodes and edges of a graph as lists, in the graph's order.

    Attributes
    ----------
    graph : dict
        Attributes of the graph itself.
    labels : list of str
        Node labels.
    nodes, edges : Rows
        Attributes of every node and every edge.
    ends : (edges, 2) int
        Node numbers of every edge.
    directed : bool
        Whether an edge is one direction only.
    """

    graph: dict[str, Any]
    labels: list[str]
    nodes: Rows
    edges: Rows
    ends: Ints
    directed: bool

    @classmethod
    def of(cls, graph: nx.Graph[str]) -> Columns:
        """Read a graph."""
        number = {label: i for i, label in enumerate(graph)}
        around = [beside for _, beside in graph.adjacency()]
        degree = np.fromiter(map(len, around), dtype=np.intp, count=len(around))
        head = np.fromiter(map(number.__getitem__, chain.from_iterable(around)), dtype=np.intp, count=degree.sum())
        ends = np.column_stack([np.repeat(np.arange(len(around)), degree), head])
        # An undirected edge is met at both ends; the graph lists it at the first.
        kept = np.full(len(ends), True) if graph.is_directed() else ends[:, 0] <= ends[:, 1]
        edges = compress(chain.from_iterable(beside.values() for beside in around), kept.tolist())
        nodes = Rows(data for _, data in graph.nodes(data=True))
        return cls(graph.graph, list(number), nodes, Rows(edges), ends[kept], graph.is_directed())

    @cached_property
    def ranks(self) -> Ints:
        """Nodes that are ranks, in rank order: all GPUs, else all hosts."""
        kinds = self.nodes.column("kind")
        end = "gpu" if "gpu" in kinds else "host"
        found = [i for i, kind in enumerate(kinds) if kind == end]
        given: list[float | None] = self.nodes.column("rank")
        found.sort(key=lambda i: math.inf if (rank := given[i]) is None else rank)
        return np.array(found, dtype=np.intp)

    def parts(self, kind: str | None = None, *, both_ways: bool = False) -> Ints:
        """Return the connected part of every node, over all edges or those of a kind; parts count by first node.

        Returns
        -------
        (nodes,) int
            With both_ways the nodes of a part reach each other along the edges' directions.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        kept = [kind in (None, one) for one in self.edges.column("kind")]
        tail, head = self.ends[np.array(kept, dtype=bool)].T
        n = len(self.labels)
        joined = coo_array((np.ones(len(tail), dtype=np.int8), (tail, head)), shape=(n, n)).tocsr()
        found = connected_components(joined, connection="strong" if both_ways and self.directed else "weak")[1]
        _, first, part = np.unique(found, return_index=True, return_inverse=True)
        by_first_node = np.empty(len(first), dtype=np.intp)
        by_first_node[np.argsort(first)] = np.arange(len(first))
        return by_first_node[part]

    @cached_property
    def domains(self) -> Ints:
        """Scale-up domain of every node, -1 outside: parts joined by scale-up edges, in rank order, then node order.

        A GPU or host without scale-up edges is a domain by itself, any other node is in none.
        """
        part = self.parts("scale-up")
        size = np.bincount(part)
        size[part[[kind in ("gpu", "host") for kind in self.nodes.column("kind")]]] += 1
        first = np.full(len(size), len(self.ranks))
        np.minimum.at(first, part[self.ranks], np.arange(len(self.ranks)))
        kept = np.flatnonzero(size > 1)
        number = np.full(len(size), -1, dtype=np.intp)
        number[kept[np.argsort(first[kept], kind="stable")]] = np.arange(len(kept))
        domains: Ints = number[part]
        return domains


def distinct(values: list[Any]) -> list[Any]:
    """Return the values without repetitions, 1 apart from True and 1.0; all of them where some have no hash.

    Examples
    --------
    >>> sorted(map(repr, distinct([1, True, 1, 1])))
    ['1', 'True']
    """
    try:
        if len(set(map(type, values))) == 1:
            return list(set(values))
        return [value for _, value in set(zip(map(type, values), values, strict=True))]
    except TypeError:
        return values
