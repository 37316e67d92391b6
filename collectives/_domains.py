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

__all__ = [
    "by_way_of", "hierarchical_all_gather", "hierarchical_all_to_all", "namesakes", "rail_aligned", "rail_pipelined",
]  # fmt: skip

Ints = NDArray[np.intp]


def hierarchical_all_gather(team: Team) -> Plan:
    """Every block goes to one rank of each other domain, who then sends it to all inside."""
    holder = _of_several(team, "hierarchical")

    def across(_: int) -> Transfers:
        block, domain = np.nonzero(team.home[:, None] != np.arange(len(team.domains)))
        return block, holder[block, domain], block

    def inside(_: int) -> Transfers:
        source = holder[:, team.home]
        block, target = np.nonzero(source != np.arange(team.n))
        return source[block, target], target, block

    return Plan(blocks(team), (Step(across), Step(inside)))


def _of_several(team: Team, algorithm: str) -> Ints:
    if len(team.domains) < 2:
        raise unfit(algorithm, "all ranks are in one scale-up domain", "Take ranks of several domains.")
    return namesakes(team)


def namesakes(team: Team) -> Ints:
    """Return the row in every domain that stands for a row, (n, domains): itself at home, else that of its slot.

    Where a domain has fewer ranks, slots are counted round.
    """
    return np.stack([members[team.slot % len(members)] for members in team.domains], axis=1)


def hierarchical_all_to_all(team: Team) -> Plan:
    """Across first, to the rank of the same slot in the target's domain, who hands it on inside."""
    return by_way_of(team, _of_several(team, "hierarchical")[:, team.home])


def rail_aligned(team: Team) -> Plan:
    """Inside first, to the rank on the target's rail, who sends it across (PXN); the barrier is between the two.

    What stays in the domain goes in the second phase, while scale-up is idle.
    """
    return by_way_of(team, _relays(team))


def rail_pipelined(team: Team) -> Plan:
    """Send as rail_aligned does, cut so fine that relaying and crossing overlap."""
    plan = rail_aligned(team)
    return Plan(plan.sizes, plan.steps, pipelined=True)


def by_way_of(team: Team, via: Ints) -> Plan:
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
    """Return who hands on what i sends to j, (n, n); i itself where it may send, as inside its domain.

    On j's rail stand, in i's domain, the ranks on j's leaf, else the rank of j's slot. One of them
    sends: i if it is one, else the one of j's place among its domain's ranks on that leaf. Where there
    is none, a rank of j's domain on i's rail hands the chunk on; where that is missing too, i sends.
    """
    if len(team.domains) < 2:
        raise unfit("rail_aligned", "all ranks are in one scale-up domain", "Take ranks of several domains.")
    leaf, slot = _leaves(team), _slots(team)
    on_leaf = [[members[leaf[members] == at] for at in range(int(leaf.max()) + 1)] for members in team.domains]
    of_slot = np.full((len(team.domains), int(slot.max()) + 1), -1, dtype=np.intp)
    of_slot[team.home, slot] = np.arange(team.n)
    place = np.zeros(team.n, dtype=np.intp)
    for rows in (rows for domain in on_leaf for rows in domain):
        place[rows] = np.arange(len(rows))

    def on_rail(domain: int, row: int) -> int:
        """Return the rank of a domain on a row's rail, -1 if there is none."""
        rows = on_leaf[domain][leaf[row]]
        return int(rows[place[row] % len(rows)] if len(rows) else of_slot[domain, slot[row]])

    relay = np.array([[on_rail(d, j) for j in range(team.n)] for d in range(len(team.domains))], dtype=np.intp)
    rank, inside = np.arange(team.n)[:, None], team.home[:, None] == team.home
    mine, its = relay[team.home], relay[team.home].T
    via = np.where(mine >= 0, mine, np.where(its >= 0, its, rank))
    return np.where(inside | (leaf[:, None] == leaf), rank, via)


def _slots(team: Team) -> Ints:
    """Return every row's place in its domain, all ranks of the fabric counted."""
    return Team(team.fabric, np.arange(team.fabric.n_ranks), team.n_bytes).slot[team.ranks]


def _leaves(team: Team) -> Ints:
    """Return the leaf each row's own NIC hangs off, numbered; a rank without such a NIC has a number of its own."""
    fabric = team.fabric
    out = fabric.link_kind == EDGE_KINDS.index("scale-out")
    out &= fabric.node_kind[fabric.target] == NODE_KINDS.index("switch")
    node, first = np.unique(fabric.source[out], return_index=True)
    leaf = -1 - np.arange(len(fabric.labels))
    leaf[node] = fabric.target[out][first]
    return np.unique(leaf[fabric.ranks[team.ranks]], return_inverse=True)[1]
