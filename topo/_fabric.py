"""What does the graph look like as arrays? The immutable view every verb computes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from topo._bill import Bill, bill_of
from topo._cables import by_port, unfolded
from topo._check import EDGE_KINDS, NODE_KINDS, require
from topo._errors import Fault, InputError, suggest
from topo._marks import Marks, marks_of
from topo._planes import folded_planes

__all__ = ["Fabric", "Ranks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
#: What verbs accept as ``ranks=``: a number, labels, rank numbers or None (all).
Ranks = int | Sequence[str] | Sequence[int] | NDArray[np.intp] | None


@dataclass(frozen=True, eq=False, repr=False)
class Fabric:
    """Arrays behind a topology graph; directed link i is row i everywhere.

    Attributes
    ----------
    labels : tuple of str
        Node labels; arrays over nodes follow this order.
    node_kind : (nodes,) int
        Index into `topo.NODE_KINDS`.
    forwards : (nodes,) bool
        Whether traffic of others may pass.
    reduces, multicasts : (nodes,) bool
        Switches with in-network reduction, with multicast.
    domain : (nodes,) int
        Scale-up domain, -1 for nodes outside every domain.
    host : (nodes,) int
        Host, -1 where the graph states none.
    source, target : (links,) int
        Node indices of every directed link.
    bandwidth : (links,) float
        Bytes/s of the whole bundle in this direction.
    latency : (links,) float
        Seconds.
    link_kind : (links,) int
        Index into `topo.EDGE_KINDS`.
    lanes : (links,) int
        Equal physical links in the bundle.
    tier : tuple of str
        Tier of each node, "" where the graph states none.
    plane_lanes : tuple of tuple of int
        Lanes to each plane of a folded switch, (1,) for any other node.
    radix : (nodes,) int
        Ports of a switch, 0 where not stated.
    ranks : (ranks,) int
        Node index of rank r: all GPUs, else all hosts, by their `rank`.
    chips : dict
        Chip name -> numbers, as in ``graph.graph["chips"]``.
    chip : tuple of str
        Chip name of each rank, "" where unknown.
    coordinates : tuple of tuple of int
        Where each rank stands on its grid, () where the graph states none.
    bill : dict
        Class of part -> `Bill`: how many, and what they cost and draw where it is stated.
    name : str
        Name of the design or graph.
    assumptions : tuple of str
        What a reader or builder filled in.
    marks : Marks
        What routing rules go by: coordinates, groups, GUIDs, LIDs, ports.
    """

    labels: tuple[str, ...]
    node_kind: Ints
    forwards: NDArray[np.bool_]
    reduces: NDArray[np.bool_]
    multicasts: NDArray[np.bool_]
    domain: Ints
    host: Ints
    source: Ints
    target: Ints
    bandwidth: Floats
    latency: Floats
    link_kind: Ints
    lanes: Ints
    tier: tuple[str, ...]
    plane_lanes: tuple[tuple[int, ...], ...]
    radix: Ints
    ranks: Ints
    chips: dict[str, dict[str, Any]]
    chip: tuple[str, ...]
    coordinates: tuple[tuple[int, ...], ...]
    bill: dict[str, Bill]
    name: str
    assumptions: tuple[str, ...]
    marks: Marks

    def __repr__(self) -> str:
        return (
            f"Fabric({self.name or 'unnamed'}: {self.n_ranks} ranks in {len(self.domain_sizes)} domains, "
            f"{len(self.labels)} nodes, {len(self.source)} directed links)"
        )

    @classmethod
    def from_graph(cls, graph: nx.Graph[str] | Fabric) -> Fabric:
        """Return the array view of a graph (a Fabric is returned as it is).

        Raises
        ------
        InputError
            With everything `topo.check` finds.

        Examples
        --------
        >>> from topo import load
        >>> Fabric.from_graph(load("hgx-h100-8", domains=2))
        Fabric(hgx-h100-8: 16 ranks in 2 domains, 19 nodes, 64 directed links)
        """
        if isinstance(graph, Fabric):
            return graph
        columns = require(graph)
        nodes, edges, ways = columns.nodes, columns.edges, 1 if columns.directed else 2
        ends = np.hstack([columns.ends, columns.ends[:, ::-1]][:ways]).reshape(-1, 2)
        hosts = nodes.column("host")
        view = cls(
            labels=tuple(columns.labels),
            node_kind=_indices(nodes.column("kind"), NODE_KINDS),
            forwards=np.array([_forwards(data) for data in nodes]),
            reduces=np.array(list(map(bool, nodes.column("reduces")))),
            multicasts=np.array(list(map(bool, nodes.column("multicasts")))),
            domain=columns.domains,
            host=_indices(hosts, [host for host in dict.fromkeys(hosts) if host is not None]),
            source=ends[:, 0].copy(),
            target=ends[:, 1].copy(),
            bandwidth=np.repeat(np.array(edges.column("bandwidth"), dtype=np.float64), ways),
            latency=np.repeat(np.array(edges.column("latency"), dtype=np.float64), ways),
            link_kind=np.repeat(_indices(edges.column("kind"), EDGE_KINDS), ways),
            lanes=np.repeat(np.array(edges.column("lanes", 1), dtype=np.intp), ways),
            tier=tuple(str(tier or "") for tier in nodes.column("tier")),
            plane_lanes=tuple(tuple(folded_planes(data)) for data in nodes),
            radix=np.array(nodes.column("radix", 0), dtype=np.intp),
            ranks=columns.ranks,
            chips=deepcopy(dict(graph.graph.get("chips", {}))),
            chip=tuple(nodes[rank].get("chip") or "" for rank in columns.ranks),
            coordinates=tuple(tuple(nodes[rank].get("coordinates") or ()) for rank in columns.ranks),
            bill=bill_of(columns),
            name=str(graph.graph.get("name", "")),
            assumptions=tuple(graph.graph.get("assumptions", ())),
            marks=marks_of(columns),
        )
        for array in vars(view).values():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
        return view

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def planes(self) -> Ints:
        """Switches that each node stands for, (nodes,) int."""
        return _ints(sum(lanes > 0 for lanes in row) for row in self.plane_lanes)

    @property
    def rank_labels(self) -> list[str]:
        """Label of every rank."""
        return [self.labels[i] for i in self.ranks]

    @property
    def rank_domain(self) -> Ints:
        """Scale-up domain of every rank, (ranks,) int."""
        return self.domain[self.ranks]

    @property
    def domain_sizes(self) -> Ints:
        """Ranks in every domain, (domains,) int."""
        return np.bincount(self.rank_domain)

    def link_label(self, link: int) -> str:
        """Return a directed link as "from -> to", with its ports or lane in an unfolded fabric."""
        if self.marks.cables:
            return self.marks.cables[link]
        return f"{self.labels[self.source[link]]} -> {self.labels[self.target[link]]}"

    def unfolded(self, kind: str | None = None) -> Fabric:
        """Return the fabric with one directed link per cable, switch planes as switches of their own.

        Parameters
        ----------
        kind : str, optional
            The kind of edge whose cables are meant; links of others stay bundles.

        Examples
        --------
        >>> from topo import load
        >>> Fabric.from_graph(load("gb200-nvl72")).unfolded()
        Fabric(gb200-nvl72: 72 ranks in 1 domains, 90 nodes, 2592 directed links)
        """
        return unfolded(self, kind)

    def by_port(self) -> Fabric:
        """Return the fabric with every end port a rank, cable by cable; the edges of the graph state `ports`."""
        return by_port(self)

    def group(self, n: int, free: NDArray[np.bool_] | None = None) -> Ints:
        """Return n ranks: the fewest domains that hold them, shares as equal as sizes allow.

        Parameters
        ----------
        n : int
            Ranks wanted.
        free : (ranks,) bool, optional
            Ranks that may be taken; all by default.

        Returns
        -------
        (n,) int
            Rank numbers, ascending.

        Raises
        ------
        InputError
            More ranks than there are.

        Examples
        --------
        >>> from topo import load
        >>> fabric = Fabric.from_graph(load("gb200-nvl72", domains=2))
        >>> import numpy as np
        >>> [int(k) for k in np.bincount(fabric.rank_domain[fabric.group(128)])]
        [64, 64]
        """
        available = np.flatnonzero(np.ones(self.n_ranks, bool) if free is None else free)
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= len(available):
            raise InputError(
                Fault(
                    "ranks",
                    n,
                    f"must be a whole number from 1 to {len(available)}",
                    "Take fewer ranks, or more domains.",
                )
            )
        homes = self.rank_domain[available]
        sizes = np.bincount(homes)
        largest_first = np.argsort(-sizes, kind="stable")
        count = int(np.searchsorted(np.cumsum(sizes[largest_first]), n)) + 1
        shares = _equal_shares(n, sizes[largest_first[:count]])
        taken = [available[homes == d][:k] for d, k in zip(largest_first[:count], shares, strict=True)]
        return np.sort(np.concatenate(taken))

    def rank_numbers(self, ranks: Ranks) -> Ints:
        """Return rank numbers for what verbs accept as ``ranks=``: a number, labels, numbers or None (all)."""
        if ranks is None:
            return np.arange(self.n_ranks)
        if not isinstance(ranks, Iterable):
            return self.group(ranks)
        listed: list[Any] = ranks.tolist() if isinstance(ranks, np.ndarray) else list(ranks)
        named = any(isinstance(rank, str) for rank in listed)
        names = {label: r for r, label in enumerate(self.rank_labels)} if named else {}
        chosen = []
        for rank in listed:
            if isinstance(rank, str) and rank not in names:
                raise InputError(Fault("ranks", rank, "is no rank of this graph", suggest(rank, list(names)[:16])))
            whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool)
            if not isinstance(rank, str) and not (whole and 0 <= rank < self.n_ranks):
                raise InputError(Fault("ranks", rank, f"must be whole, in 0 .. {self.n_ranks - 1}", "Correct it."))
            chosen.append(names[rank] if isinstance(rank, str) else int(rank))
        if len(set(chosen)) < len(chosen) or not chosen:
            raise InputError(Fault("ranks", listed[:8], "must name each rank once, and at least one", "Correct it."))
        return np.array(chosen, dtype=np.intp)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.intp)


def _indices(values: Iterable[Any], known: Sequence[Any]) -> Ints:
    """Place of every value among the known ones, -1 for one that is not."""
    place = {value: i for i, value in enumerate(known)}
    return _ints(place.get(value, -1) for value in values)


def _forwards(data: dict[str, Any]) -> bool:
    stated = data.get("forwards")
    return data["kind"] == "switch" if stated is None else bool(stated)


def _equal_shares(n: int, sizes: Ints) -> list[int]:
    """Deal n over bins as equally as their sizes allow; the larger take what does not divide."""
    shares = np.zeros(len(sizes), dtype=np.intp)
    order = np.argsort(sizes, kind="stable")
    left = n
    for done, i in enumerate(order):
        shares[i] = min(int(sizes[i]), left // (len(sizes) - done))
        left -= int(shares[i])
    return [int(k) for k in shares]
