"""How full are the switches, and how much narrower do they get on the way up?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from topo._check import EDGE_KINDS, NODE_KINDS
from topo._fabric import Fabric

__all__ = ["Ports", "oversubscription", "ports"]

Ints = NDArray[np.intp]
_SWITCH = NODE_KINDS.index("switch")


@dataclass(frozen=True)
class Ports:
    """Ports used on the fullest switch of a tier, and the smallest radix stated there, None if none is."""

    used: int
    radix: int | None


def ports(fabric: Fabric) -> dict[str, Ports]:
    """Return tier -> ports used on one switch (the fullest plane of a folded one) against the radix."""
    n = len(fabric.labels)
    used = np.maximum(*(np.bincount(ends, fabric.lanes, n) for ends in (fabric.source, fabric.target)))
    used = np.ceil(used * [max(lanes) / sum(lanes) for lanes in fabric.plane_lanes] - 1e-9).astype(np.intp)
    found: dict[str, Ports] = {}
    for node in np.flatnonzero(fabric.node_kind == _SWITCH).tolist():
        tier, radix = fabric.tier[node], int(fabric.radix[node]) or None
        old = found.get(tier, Ports(0, None))
        least = min((r for r in (old.radix, radix) if r), default=None)
        found[tier] = Ports(max(old.used, int(used[node])), least)
    return found


def oversubscription(fabric: Fabric) -> dict[str, float]:
    """Return tier -> bandwidth from below over bandwidth to above, of its worst switch.

    Below is nearer to the ranks, counted in links of one class; tiers that nothing is
    above of are left out. Where one tier has several levels they are told apart.
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
    tiers = [tier for tier, _ in found]
    return {
        tier if tiers.count(tier) == 1 else f"{tier} level {level}": ratio
        for (tier, level), ratio in sorted(found.items(), key=lambda row: row[0][1])
    }


def _levels(fabric: Fabric, links: Ints) -> NDArray[np.float64]:
    """Fewest links from any rank to every node; infinite where there is no way."""
    n = len(fabric.labels)
    joined = coo_array((np.ones(len(links)), (fabric.source[links], fabric.target[links])), shape=(n, n)).tocsr()
    away: NDArray[np.float64] = dijkstra(joined, unweighted=True, indices=fabric.ranks, min_only=True)
    return away
