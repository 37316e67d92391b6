"""What do a collective's wires need on this graph? The busiest link of each class, as a profile's law reads it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from collectives._cost import cost
from collectives._moe import MoE
from collectives._predict import Features
from collectives._results import Cost
from topo import EDGE_KINDS, Fabric, Fault, InputError, Routing

__all__ = ["COPIES", "bulk_features", "expert_features", "features_of", "own_bandwidth", "scaled"]

#: From how many ranks in-switch reduction is taken: below it a ring carries no more.
_NVLS_RANKS = 5
_RINGS = ("all_reduce", "all_gather", "reduce_scatter")
#: How a library copies tokens -> the algorithm of moe_dispatch with those bytes on the wires. "balanced" sends a token
#: once to each of min(top_k, ranks) ranks; "scale-out" is direct copies of which none takes the scale-up links.
COPIES: dict[str, str] = {
    "direct": "direct", "balanced": "direct", "per_domain": "per_domain", "scale-out": "direct",
}  # fmt: skip


def features_of(found: Cost, fabric: Fabric, ranks: NDArray[np.intp]) -> Features:
    """Return the one row of an ideal cost.

    Parameters
    ----------
    found : Cost
        Of profile "ideal".
    fabric : Fabric
        What it was costed on.
    ranks : (ranks,) int
        Rank numbers taking part.
    """
    seconds = {kind: load.busiest_seconds for kind, load in found.classes.items()}
    row = {
        "ranks": len(ranks), "domains": len(np.unique(fabric.rank_domain[ranks])),
        "hosts": len(np.unique(fabric.host[fabric.ranks[ranks]])),
        "rounds": 2 if found.kind == "all_reduce" else 1, "n_bytes": found.n_bytes,
        "bandwidth": own_bandwidth(fabric, ranks, "scale-up"), "up": seconds.get("scale-up", 0.0),
        "out": seconds.get("scale-out", 0.0), "nvls": np.inf, "exchange": found.kind in ("all_to_all", "all_to_all_v"),
        "combine": found.kind == "moe_combine", "tokens": 0.0,
    }  # fmt: skip
    return Features(**{f.name: np.array([row[f.name]]) for f in fields(Features)})


def bulk_features(
    fabric: Fabric, kind: str, n_bytes: float, ranks: NDArray[np.intp], routing: Routing = "ecmp"
) -> Features:
    """Return the row of a collective of bytes as libraries run it: rings over several domains, NVLS where there is."""

    def wires(team: NDArray[np.intp], algorithm: str | None) -> Features:
        return features_of(cost(fabric, kind, n_bytes, ranks=team, algorithm=algorithm, routing=routing), fabric, team)

    domain = fabric.rank_domain[ranks]
    first = ranks[domain == domain[0]]
    if kind not in _RINGS:
        return wires(ranks, None)
    nvls = np.full(1, _nvls_seconds(fabric, kind, n_bytes, first, routing))
    if len(first) == len(ranks):  # as many bytes on every GPU's links as a ring's, on a full mesh too
        return replace(wires(ranks, "direct"), nvls=nvls)
    row = replace(wires(ranks, "ring"), nvls=nvls)
    if len(first) == 1:
        return row
    return replace(row, up=wires(first, "direct").up * (1 - 1 / len(ranks)) / (1 - 1 / len(first)))


def expert_features(
    fabric: Fabric,
    kind: str,
    moe: MoE,
    ranks: NDArray[np.intp],
    copies: str,
    nic: float | None = None,
    routing: Routing = "ecmp",
) -> Features:
    """Return the row of a dispatch or combine.

    `nic` is the bandwidth of a GPU's NIC [bytes/s], for copies over "scale-out" on a graph that
    has one domain and no NICs.
    """
    found = cost(fabric, kind, moe, ranks=ranks, algorithm=COPIES[copies], routing=routing)
    row = replace(features_of(found, fabric, ranks), tokens=np.array([float(np.max(moe.tokens))]), n_bytes=np.zeros(1))
    if copies == "balanced":
        part = min(1.0, len(ranks) / moe.top_k)
        return replace(row, up=row.up * part, out=row.out * part)
    if copies == "scale-out":
        nic = own_bandwidth(fabric, ranks, "scale-out") or nic
        if nic is None:
            rule = "sends every copy through NICs, and the graph has none"
            raise InputError(Fault("profile", copies, rule, "Take several domains, or another profile."))
        return replace(row, up=np.zeros(1), out=row.out + row.up * row.bandwidth / nic)
    return row


def scaled(row: Features, factor: float) -> Features:
    """Return the row of a collective so many times as large; bytes on every link are so many times as many."""
    names = ("n_bytes", "up", "out", "nvls", "tokens")
    return replace(row, **{name: getattr(row, name) * factor for name in names})


def own_bandwidth(fabric: Fabric, ranks: NDArray[np.intp], kind: str) -> float:
    """Return the least bandwidth of a rank's own links of a class [bytes/s]."""
    links = fabric.link_kind == EDGE_KINDS.index(kind)
    total = np.bincount(fabric.source[links], fabric.bandwidth[links], minlength=len(fabric.labels))
    return float(total[fabric.ranks[ranks]].min())


def _nvls_seconds(fabric: Fabric, kind: str, n_bytes: float, ranks: NDArray[np.intp], routing: Routing) -> float:
    """Return the busiest link's time by in-switch reduction in one domain; infinite where there is none."""
    if kind != "all_reduce" or len(ranks) < _NVLS_RANKS:
        return float(np.inf)
    try:
        found = cost(fabric, kind, n_bytes, ranks=ranks, algorithm="nvls", routing=routing)
    except InputError:
        return float(np.inf)
    return found.classes["scale-up"].busiest_seconds
