"""How full are the switches, and how much narrower do they get on the way up?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from topo._check import EDGE_KINDS, NODE_KINDS, TIERS
from topo._fabric import Fabric

__all__ = ["Ports", "oversubscription", "ports"]

Ints = NDArray[np.intp]
_SWITCH = NODE_KINDS.index("switch")


@dataclass(frozen=True)
class Ports:
    """Ports used on the fullest switch of a tier and its radix, None where it states none."""

    used: int
    radix: int | None


def ports(fabric: Fabric) -> dict[str, Ports]:
    """Return tier -> ports used on one switch (the fullest plane of a folded one) against the radix."""
    n = len(fabric.labels)
    used = np.maximum(*(np.bincount(ends, fabric.lanes, n) for ends in (fabric.source, fabric.target)))
    used = np.ceil(used * [max(lanes) / sum(lanes) for lanes in fabric.plane_lanes] - 1e-9).astype(np.intp)
    found: dict[str, Ports] = {}
    for node in np.flatnonzero(fabric.node_kind == _SWITCH).tolist():
        one = Ports(int(used[node]), int(fabric.radix[node]) or None)
        tier = fabric.tier[node]
        found[tier] = max(found.get(tier, one), one, key=_fullness)
    return found


def _fullness(ports: Ports) -> tuple[float, int]:
    return ports.used / ports.radix if ports.radix else 0.0, ports.used


def oversubscription(fabric: Fabric) -> dict[str, float]:
    """Return tier -> bandwidth from below over bandwidth to above, of its worst switch.

    Above is a higher tier (leaf, spine, core) where every switch of the class states its
    tier. Where one does not, and where links join switches of one tier, it is what is
    farther from the ranks, counted in links of the class. Tiers that nothing is above of
    are left out. Where one tier has several levels they are told apart.
    """
    found: dict[tuple[str, int], float] = {}
    for kinds in (("scale-up",), ("scale-out", "pcie")):
        links = np.flatnonzero(np.isin(fabric.link_kind, [EDGE_KINDS.index(kind) for kind in kinds]))
        level = _levels(fabric, links)
        low, high = level[fabric.source[links]], level[fabric.target[links]]
        n = len(fabric.labels)
        up = links[high > low]
        above = np.bincount(fabric.source[up], fabric.bandwidth[up], n)
        below = np.bincount(fabric.target[up], fabric.bandwidth[up], n)
        for node in np.flatnonzero((fabric.node_kind == _SWITCH) & (above > 0) & (below > 0)).tolist():
            key = fabric.tier[node], int(level[node])
            found[key] = max(found.get(key, 0.0), float(below[node] / above[node]))
    ordered = [(tier, ratio) for (tier, _), ratio in sorted(found.items(), key=lambda row: row[0][1])]
    tiers = [tier for tier, _ in ordered]
    return {
        tier if tiers.count(tier) == 1 else f"{tier} level {tiers[: i + 1].count(tier)}": ratio
        for i, (tier, ratio) in enumerate(ordered)
    }


def _levels(fabric: Fabric, links: Ints) -> NDArray[np.float64]:
    """Height of every node: its tier where all switches state one; fewest links from any rank within a tier."""
    n = len(fabric.labels)
    joined = coo_array((np.ones(len(links)), (fabric.source[links], fabric.target[links])), shape=(n, n)).tocsr()
    away: NDArray[np.float64] = dijkstra(joined, unweighted=True, indices=fabric.ranks, min_only=True)
    ends = np.union1d(fabric.source[links], fabric.target[links])
    switches = ends[fabric.node_kind[ends] == _SWITCH]
    if not all(fabric.tier[node] for node in switches):
        return away
    tier = np.zeros(n)
    tier[switches] = [1 + TIERS.index(fabric.tier[node]) for node in switches]
    inside = (tier[fabric.source[links]] == tier[fabric.target[links]]) & (tier[fabric.source[links]] > 0)
    return np.where(tier > 0, n * tier + (away if inside.any() else 0.0), away)
