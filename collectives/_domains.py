"""How do collectives use that domains are fast inside and slow between? Two hops: one inside, one across.

The rank that relays is one of the team, stated by the schedule: no GPU has to forward, and
fabrics on which not every pair has a path (rail-only) carry these where slots match.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives._plan import Plan, Step, Team, blocks, unfit
from collectives._records import Transfers
from topo import EDGE_KINDS, NODE_KINDS

__all__ = ["hierarchical_all_gather", "hierarchical_all_to_all", "rail_aligned", "rail_pipelined"]

Ints = NDArray[np.intp]


def hierarchical_all_gather(team: Team) -> Plan:
    """Every block goes to one rank of each other domain, who then sends it to all inside."""
    holder = _namesakes(team, "hierarchical")

    def across(_: int) -> Transfers:
        block, domain = np.nonzero(team.home[:, None] != np.arange(len(team.domains)))
        return block, holder[block, domain], block

    def inside(_: int) -> Transfers:
        source = holder[:, team.home]
        block, target = np.nonzero(source != np.arange(team.n))
        return source[block, target], target, block

    return Plan(blocks(team), (Step(across), Step(inside)))


def _namesakes(team: Team, algorithm: str) -> Ints:
    """Return the row in every domain that stands for a row, (n, domains): itself at home, else that of its slot.

    Where a domain has fewer ranks, slots are counted round.
    """
    if len(team.domains) < 2:
        raise unfit(algorithm, "all ranks are in one scale-up domain", "Take ranks of several domains.")
    return np.stack([members[team.slot % len(members)] for members in team.domains], axis=1)


def hierarchical_all_to_all(team: Team) -> Plan:
    """Across first, to the rank of the same slot in the target's domain, who hands it on inside."""
    return _by_way_of(team, _namesakes(team, "hierarchical")[:, team.home])


def rail_aligned(team: Team) -> Plan:
    """Inside first, to the rank on the target's rail, who sends it across (PXN); the barrier is between the two.

    What stays in the domain goes in the second phase, while scale-up is idle.
    """
    return _by_way_of(team, _relays(team))


def rail_pipelined(team: Team) -> Plan:
    """Send as rail_aligned does, cut so fine that relaying and crossing overlap."""
    plan = rail_aligned(team)
    return Plan(plan.sizes, plan.steps, pipelined=True)


def _by_way_of(team: Team, via: Ints) -> Plan:
    """All-to-all in two phases: to the rank via[i, j], and from there to j."""
    rank = np.arange(team.n)

    def first(_: int) -> Transfers:
        source, target = np.nonzero(via != rank[:, None])
        return source, via[source, target], source * team.n + target

    def second(_: int) -> Transfers:
        source, target = np.nonzero(via != rank)
        return via[source, target], target, source * team.n + target

    return Plan(None, (Step(first), Step(second)))


def _relays(team: Team) -> Ints:
    """Return who sends from i to j over the fabric, (n, n): a rank of i's domain on j's rail.

    That is i itself inside its domain, on j's rail, or where its domain has none there;
    of several the one of j's place among the ranks of its domain on that rail.
    """
    if len(team.domains) < 2:
        raise unfit("rail_aligned", "all ranks are in one scale-up domain", "Take ranks of several domains.")
    rail = _rails(team)
    mates = [[members[rail[members] == r] for r in range(int(rail.max()) + 1)] for members in team.domains]
    place = np.zeros(team.n, dtype=np.intp)
    for domain in mates:
        for rows in domain:
            place[rows] = np.arange(len(rows))
    via = np.repeat(np.arange(team.n)[:, None], team.n, axis=1)
    for members, on_rail in zip(team.domains, mates, strict=True):
        for r, rows in enumerate(on_rail):
            target = np.flatnonzero((rail == r) & (team.home != team.home[members[0]]))
            if len(rows):
                others = members[rail[members] != r]
                via[np.ix_(others, target)] = rows[place[target] % len(rows)]
    return via


def _rails(team: Team) -> Ints:
    """Return a number for the rail of every row: the switch it hangs off by its own NIC, else its slot."""
    fabric = team.fabric
    out = fabric.link_kind == EDGE_KINDS.index("scale-out")
    out &= fabric.node_kind[fabric.target] == NODE_KINDS.index("switch")
    node, first = np.unique(fabric.source[out], return_index=True)
    leaf = np.full(len(fabric.labels), -1, dtype=np.intp)
    leaf[node] = fabric.target[out][first]
    of_row = leaf[fabric.ranks[team.ranks]]
    return np.unique(np.where(of_row < 0, -1 - team.slot, of_row), return_inverse=True)[1]
