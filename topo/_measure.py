"""How large, how far, how wide, how full, how fragile is this topology?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from topo._check import EDGE_KINDS, NODE_KINDS
from topo._classes import PATH_CLASSES
from topo._congestion import proven_bisection
from topo._cuts import part_of, smallest_cut
from topo._fabric import Fabric
from topo._levels import Ports, oversubscription, ports
from topo._routing import Routes, hop_counts, route
from topo._weak_points import weak_points
from topo.units import format_quantity

__all__ = ["Bisection", "Links", "Measures", "measure"]

Ints = NDArray[np.intp]
_SWITCH = NODE_KINDS.index("switch")


@dataclass(frozen=True)
class Links:
    """Edges of one kind (a pair of nodes counts once), and the physical links they stand for."""

    edges: int
    lanes: int


@dataclass(frozen=True)
class Bisection:
    """Bandwidth between the two halves of some ranks, the worst halves: a bracket.

    Attributes
    ----------
    lower, upper : float
        Proven bandwidth, and that of a cut found [bytes/s, one direction]; equal where
        both meet.
    method : str
        How they are known.
    ranks : int
        Ranks that are halved: all for scale-out, the worst domain's for scale-up, the
        worst host's for pcie.
    first : str
        First of those ranks.
    """

    lower: float
    upper: float
    method: str
    ranks: int
    first: str

    @property
    def exact(self) -> bool:
        """Whether the bracket is closed."""
        return self.lower == self.upper

    def __str__(self) -> str:
        upper = format_quantity(self.upper, "bandwidth")
        return upper if self.exact else f"{format_quantity(self.lower, 'bandwidth')} to {upper}"


@dataclass(frozen=True, repr=False)
class Measures:
    """What a topology measures.

    Attributes
    ----------
    name : str
        Of the graph.
    gpus, domains : int
        End points (GPUs, else hosts) and scale-up domains, a GPU on its own counted as one.
    switches : dict
        Tier -> switches, every plane of a folded one counted; "" where no tier is stated.
    links : dict
        Edge kind -> `Links`.
    hops : dict
        Hops -> ordered pairs of ranks, each pair on its path class.
    unreachable : int
        Ordered pairs that no path joins.
    diameter : int
        Most hops.
    bisection : dict
        Path class -> `Bisection`.
    oversubscription : dict
        Tier -> the worst switch's bandwidth towards the ranks over that away from them;
        without tiers that nothing is above of.
    ports : dict
        Tier -> `Ports`: the fullest switch's used ports, and the radix stated.
    weak_nodes, weak_links : tuple
        Single points of failure: without them the ranks fall into parts. Folded switches
        of several planes and bundles of several lanes are none.
    gpu_power, gpu_price : float or None
        Of all GPUs together [W, $], if every chip states it; nothing else is counted.
    assumptions : tuple of str
        Everything that was filled in.
    """

    name: str
    gpus: int
    domains: int
    switches: dict[str, int]
    links: dict[str, Links]
    hops: dict[int, int]
    unreachable: int
    diameter: int
    bisection: dict[str, Bisection]
    oversubscription: dict[str, float]
    ports: dict[str, Ports]
    weak_nodes: tuple[str, ...]
    weak_links: tuple[tuple[str, str], ...]
    gpu_power: float | None
    gpu_price: float | None
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        switches = sum(self.switches.values())
        width = "".join(f", {kind} bisection {bracket}" for kind, bracket in self.bisection.items())
        weak = len(self.weak_nodes) + len(self.weak_links)
        return (
            f"Measures({self.name or 'unnamed'}: {self.gpus} GPUs in {self.domains} domains, {switches} switches, "
            f"at most {self.diameter} hops{width}, {weak} single points of failure)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data, SI units, hops as text."""
        plain = asdict(self)
        plain["hops"] = {str(hops): pairs for hops, pairs in self.hops.items()}
        plain["weak_nodes"], plain["weak_links"] = list(self.weak_nodes), [list(pair) for pair in self.weak_links]
        plain["assumptions"] = list(self.assumptions)
        return plain


def measure(graph: nx.Graph[str] | Fabric | Routes) -> Measures:
    """Return what a topology measures.

    Parameters
    ----------
    graph : networkx.Graph, Fabric or Routes
        The topology; routes worked out before save time.

    Returns
    -------
    Measures
        Bisections are brackets: the upper end is the capacity of a cut found between two
        halves, the lower end is proven by routing an all-to-all.

    Raises
    ------
    InputError
        With everything `topo.check` finds.

    Examples
    --------
    >>> from topo import load
    >>> measure(load("gb200-nvl72"))
    Measures(gb200-nvl72: 72 GPUs in 1 domains, 18 switches, at most 2 hops, scale-up bisection 32.4 TB/s,
    0 single points of failure)
    """
    routes = graph if isinstance(graph, Routes) else route(graph)
    fabric = routes.fabric
    hops, unreachable = _histogram(routes)
    nodes, links = weak_points(fabric)
    return Measures(
        name=fabric.name,
        gpus=fabric.n_ranks,
        domains=len(fabric.domain_sizes),
        switches=_switches(fabric),
        links=_links(fabric),
        hops=hops,
        unreachable=unreachable,
        diameter=max(hops, default=0),
        bisection=_bisections(routes),
        oversubscription=oversubscription(fabric),
        ports=ports(fabric),
        weak_nodes=tuple(fabric.labels[node] for node in nodes),
        weak_links=tuple((fabric.labels[a], fabric.labels[b]) for a, b in links),
        gpu_power=_of_chips(fabric, "power"),
        gpu_price=_of_chips(fabric, "price"),
        assumptions=fabric.assumptions,
    )


def _switches(fabric: Fabric) -> dict[str, int]:
    found: dict[str, int] = {}
    planes = fabric.planes
    for node in np.flatnonzero(fabric.node_kind == _SWITCH).tolist():
        tier = fabric.tier[node]
        found[tier] = found.get(tier, 0) + int(planes[node])
    return found


def _links(fabric: Fabric) -> dict[str, Links]:
    low, high = np.minimum(fabric.source, fabric.target), np.maximum(fabric.source, fabric.target)
    found = {}
    for number, kind in enumerate(EDGE_KINDS):
        of_kind = np.flatnonzero(fabric.link_kind == number)
        pairs, pair = np.unique(low[of_kind] * len(fabric.labels) + high[of_kind], return_inverse=True)
        lanes = np.zeros(len(pairs), dtype=np.intp)
        np.maximum.at(lanes, pair, fabric.lanes[of_kind])
        if len(pairs):
            found[kind] = Links(len(pairs), int(lanes.sum()))
    return found


def _histogram(routes: Routes) -> tuple[dict[int, int], int]:
    """Return hops -> ordered pairs, and the pairs that no path joins."""
    hops = hop_counts(routes)
    count = np.zeros(int(hops.max(initial=0)) + 2, dtype=np.intp)
    for row in hops:
        count += np.bincount(row + 1, minlength=len(count))
    return {h: int(count[h + 1]) for h in range(1, len(count) - 1) if count[h + 1]}, int(count[0])


def _of_chips(fabric: Fabric, key: str) -> float | None:
    stated = [fabric.chips.get(chip, {}).get(key) for chip in fabric.chip]
    numbers = [float(value) for value in stated if value is not None]
    return sum(numbers) if numbers and len(numbers) == len(stated) else None


# --- bisection -------------------------------------------------------------------------------------------------------


def _bisections(routes: Routes) -> dict[str, Bisection]:
    """Return the worst bisection of every path class that joins ranks."""
    found = {}
    for number, kind in enumerate(PATH_CLASSES):
        brackets: dict[object, Bisection] = {}
        for links, ranks in _parts(routes.fabric, kind):
            part = part_of(routes.fabric, links, ranks)
            if part.key not in brackets:
                lower, how = proven_bisection(routes.fabric, routes.classes[number], ranks)
                first = routes.fabric.rank_labels[ranks[0]]
                brackets[part.key] = _bracket(lower, smallest_cut(part), how, len(ranks), first)
        if brackets:
            found[kind] = min(brackets.values(), key=lambda bracket: (bracket.upper, bracket.lower))
    return found


def _bracket(lower: float, upper: float, how: str, ranks: int, first: str) -> Bisection:
    if lower >= upper * (1 - 1e-9):  # they meet
        return Bisection(upper, upper, f"exact: a cut found is as small as proven by {how}", ranks, first)
    return Bisection(lower, upper, f"upper: smallest cut found; lower: {how}", ranks, first)


def _parts(fabric: Fabric, kind: str) -> list[tuple[Ints, Ints]]:
    """Return directed links and ranks to be halved: all of scale-out, else what is joined."""
    kinds = (kind, "pcie") if kind == "scale-out" else (kind,)
    links = np.flatnonzero(np.isin(fabric.link_kind, [EDGE_KINDS.index(one) for one in kinds]))
    if kind == "scale-out":
        there = (fabric.link_kind[links] == EDGE_KINDS.index(kind)).any()
        return [(links, np.arange(fabric.n_ranks))] if there and fabric.n_ranks > 1 else []
    n = len(fabric.labels)
    joined = coo_array((np.ones(len(links)), (fabric.source[links], fabric.target[links])), shape=(n, n))
    home = connected_components(joined, directed=False)[1]
    sizes = np.bincount(home[fabric.ranks])
    by_home = np.argsort(home[fabric.source[links]], kind="stable")
    links = links[by_home]
    homes = home[fabric.source[links]]
    return [
        (links[np.searchsorted(homes, h) : np.searchsorted(homes, h, side="right")],
         np.flatnonzero(home[fabric.ranks] == h))
        for h in dict.fromkeys(home[fabric.ranks].tolist()) if sizes[h] > 1
    ]  # fmt: skip
