"""What must an expert layer's tokens cross, whatever copies are sent and wherever they are merged?

A token that has an expert in a set of ranks must enter the set once, if it comes from
outside; its results, added up, must leave it once. So every named cut carries at least the
different tokens (results) that cross it: those of the exact law of `collectives._distinct`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives._concurrent_flow import whole_network
from collectives._cuts import Cut, cut_named, named_sides
from collectives._kinds import KINDS
from collectives._moe import MoE, MoETraffic
from collectives._moe_traffic import traffic_of
from collectives._plan import Team
from collectives._proofs import Proof, least_latency
from collectives._records import Schedule
from topo import Fabric

__all__ = ["moe_proof"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def moe_proof(fabric: Fabric, plan: Schedule, moe: MoE) -> Proof:
    """Bound a dispatch or combine by the different tokens that cross each GPU's, host's or domain's links."""
    ranks = plan.ranks
    traffic = traffic_of(moe, Team(fabric, ranks, 0.0).home)
    weight = moe.hidden * float(getattr(moe, KINDS[plan.kind].takes[0]))
    sides = list(named_sides(fabric, np.arange(len(fabric.labels))))
    inside = np.stack([side[fabric.ranks[ranks]] for _, side in sides])
    into, out = crossing_tokens(traffic, inside)
    if plan.kind == "moe_combine":
        into, out = out, into
    best = Cut()
    for number, (name, side) in enumerate(sides):
        for tokens, outward in ((out[number], True), (into[number], False)):
            here = side if outward else ~side
            links = np.flatnonzero(here[fabric.source] & ~here[fabric.target])
            cut = Cut(float(tokens) * weight, float(fabric.bandwidth[links].sum()))
            if cut.n_bytes and cut.seconds > best.seconds * (1 + 1e-9):
                best = Cut(cut.n_bytes, cut.bandwidth, cut_named(fabric, name, outward, links))
    if not best.n_bytes:
        return Proof()
    late = least_latency(fabric, whole_network(fabric), ranks)
    return Proof(float(late[~np.eye(len(ranks), dtype=bool)].min()), best.seconds, "cut", best)


def crossing_tokens(traffic: MoETraffic, inside: Bools) -> tuple[Floats, Floats]:
    """Return the tokens from outside that have an expert inside, and those from inside that have one outside.

    Parameters
    ----------
    traffic : MoETraffic
        Tokens and how they choose.
    inside : (sides, n) bool
        Ranks of each side.
    """
    held = np.minimum(1.0, inside @ traffic.held)
    shape = (traffic.tokens.size, len(inside))
    to_inside, to_outside = (np.broadcast_to(traffic.law.hit(away), shape) for away in (1 - held, held))
    into: Floats = (traffic.tokens[:, None] * to_inside * ~inside.T).sum(axis=0)
    out: Floats = (traffic.tokens[:, None] * to_outside * inside.T).sum(axis=0)
    return into, out
