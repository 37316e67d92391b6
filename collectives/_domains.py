"""How do collectives use that domains are fast inside and slow between? Inside, across, and inside again.

The ranks that relay are of the team, stated by the schedule: no GPU has to forward, and
fabrics on which not every pair has a path (rail-only, a lost NIC) carry these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from collectives._crossings import Crossings, crossings, leaves, planes_of
from collectives._exchanges import direct_all_to_all
from collectives._plan import Builder, Plan, Step, Team, blocks
from collectives._records import Outer, Transfers

__all__ = [
    "carried", "hierarchical_all_gather", "hierarchical_all_to_all", "hierarchical_broadcast", "rail_aligned",
    "rail_pipelined", "railed", "relayed", "steps_of",
]  # fmt: skip

Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


def hierarchical_all_gather(team: Team) -> Plan:
    """Every block goes to one rank of each other domain, who then sends it to all inside."""
    return Plan(blocks(team), _spread(team, np.arange(team.n)))


def hierarchical_broadcast(team: Team) -> Plan:
    """All of it goes from the root to one rank of each other domain, who then sends it to all inside."""
    return Plan(np.array([team.n_bytes]), _spread(team, np.array([team.root])))


def _spread(team: Team, roots: Ints) -> tuple[Step, ...]:
    """Send chunk k from roots[k] to all; every rank gets it once, so that it can be run backwards."""
    ways = crossings(team)
    chunk, domain = np.nonzero(team.home[roots][:, None] != np.arange(len(team.domains)))
    slots = [_once(moves) for moves in carried(team, ways, roots[chunk], domain, chunk)]
    has = np.arange(team.n) == roots[:, None]
    for _, target, number in slots:
        has[number, target] = True
    chunk, target = np.nonzero(~has)
    return steps_of([*slots, (ways.entry[roots[chunk], team.home[target]], target, chunk)])


def _once(moves: Transfers) -> Transfers:
    """Send what several domains are to get from one place there once."""
    source, target, chunk = np.unique(np.stack(moves), axis=1)
    return source, target, chunk


def carried(team: Team, ways: Crossings, source: Ints, domain: Ints, chunk: Ints) -> list[Transfers]:
    """Return the transfers that bring chunks from rows to their entries into domains: in turn inside and across."""
    home, far, at = team.home[source], int(ways.depth.max()), source
    slots: list[Transfers] = []
    for crossed in range(1, far + 1):
        on = np.flatnonzero(ways.depth[home, domain] >= crossed) if far > 1 else np.arange(len(source))
        there = _on_the_way(ways, home[on], domain[on], crossed, far)
        out, into = ways.exit[source[on], there], ways.entry[source[on], there]
        moved = np.flatnonzero(out != at[on])
        slots += [(at[on[moved]], out[moved], chunk[on[moved]]), (out, into, chunk[on])]
        at = at.copy()
        at[on] = into
    return slots


def _on_the_way(ways: Crossings, home: Ints, domain: Ints, crossed: int, far: int) -> Ints:
    """Return the domain that so many crossings lead to, of those on the way into another."""
    for _ in range(far - crossed):
        domain = np.where(ways.depth[home, domain] > crossed, ways.parent[home, domain], domain)
    return domain


def steps_of(slots: Sequence[Transfers]) -> tuple[Step, ...]:
    return tuple(_step(moves) for moves in slots if len(moves[0]))


def _step(moves: Transfers) -> Step:
    return Step(lambda _: moves)


def hierarchical_all_to_all(team: Team) -> Plan:
    """Across first, to the rank on the sender's rail in the target's domain, who hands it on inside.

    Where the target's domain has none there, the rank on the target's rail in the sender's sends for it.
    """
    ways, plan = crossings(team), direct_all_to_all(team)
    source, target, _ = moves = plan.steps[0].carries(0)
    stays = team.home[source] == team.home[target]
    slots = relayed(team, ways, moves, _own_way(team, ways, source, target), stays, -1)
    return replace(plan, steps=steps_of(slots))


def _own_way(team: Team, ways: Crossings, row: Ints, other: Ints) -> Bools:
    """Return whether data between two rows takes the way of the one, or that of the other turned round."""
    here, there = team.home[row], team.home[other]
    on_rail = ways.on_rail[row, there], ways.on_rail[other, here]
    itself = ways.exit[row, there] == row, ways.exit[other, here] == other
    return np.select([*on_rail, *itself], [True, False, True, False], True)


def railed(direct: Builder, pipelined: bool = False) -> Builder:
    """Return the builder of a direct plan's transfers by way of rails.

    Inside first, to the rank on the target's rail, who sends it across (PXN). Where the domain has
    none there, the sender sends to the rank on its own rail in the target's domain, who hands it on.
    What stays in the domain or on a leaf goes with what crosses, while scale-up is idle.
    """

    def plan(team: Team) -> Plan:
        ways, straight = crossings(team), direct(team)
        source, target, _ = moves = straight.steps[0].carries(0)
        leaf = leaves(team)
        apart = (team.home[source] != team.home[target]) & (leaf[source] != leaf[target])
        slots = relayed(team, ways, moves, ~_own_way(team, ways, target, source), ~apart, -2)
        return replace(straight, steps=steps_of(slots), pipelined=pipelined)

    return plan


def _on_rails(pipelined: bool) -> Builder:
    """Return the builder of an all-to-all by way of rails; where they are plain no pair of ranks is listed."""
    listed = railed(direct_all_to_all, pipelined)

    def plan(team: Team) -> Plan:
        found, later = _products(team), cache(lambda: listed(team).steps)
        if found is None:
            return listed(team)
        inside, across = found
        steps = (
            Step(lambda k: later()[0].carries(k), traffic=inside),
            Step(lambda k: later()[1].carries(k), traffic=across),
        )
        return Plan(None, steps, pipelined)

    return plan


rail_aligned = _on_rails(pipelined=False)
rail_pipelined = _on_rails(pipelined=True)


def _products(team: Team) -> tuple[tuple[Outer, ...], tuple[Outer, ...]] | None:
    """Return the traffic of both phases as products, None where rails are not as plain as that.

    Where every domain has a rank of every slot, all on one plane, and a leaf serves one slot, i hands
    what goes to j elsewhere to its domain's rank of j's slot (itself, if on j's leaf), who sends it
    across with what all of its domain have for j.
    """
    leaf, slot, traffic, size = leaves(team), team.slot, team.traffic, len(team.domains[0])
    one_slot = np.zeros(int(leaf.max()) + 1, dtype=np.intp)
    one_slot[leaf] = slot
    plain = isinstance(traffic, Outer) and traffic.block is None and team.n == team.fabric.n_ranks
    if not plain or size < 2 or len(team.domains) < 2 or any(len(domain) != size for domain in team.domains):
        return None
    planes = planes_of(team.fabric)
    if (one_slot[leaf] != slot).any() or planes.shape[1] != 1 or not planes.all():
        return None
    assert isinstance(traffic, Outer)
    elsewhere = np.bincount(slot, traffic.received)[slot] - traffic.received
    gathered = np.bincount(team.home, traffic.sent)[team.home].astype(np.float64)
    across = Outer(gathered, traffic.received, slot)
    return (Outer(traffic.sent, elsewhere, team.home),), (across, Outer(traffic.sent, traffic.received, team.home))


def relayed(
    team: Team, ways: Crossings, moves: Transfers, forward: Bools, straight: Bools, slot: int
) -> list[Transfers]:
    """Return transfers by way of relays, in turn inside and across, from inside to inside.

    `forward` ones cross as their source does, the others as their target would, backwards.
    Those that go `straight` go in one slot.
    """
    ahead, back = (tuple(part[chosen] for part in moves) for chosen in (~straight & forward, ~straight & ~forward))
    there = _there(team, ways, *ahead)
    backwards = [(b, a, chunk) for a, b, chunk in _there(team, ways, back[1], back[0], back[2])[::-1]]
    slots = [_joint(pair) for pair in zip(there, backwards, strict=True)]
    slots[slot] = _joint((slots[slot], tuple(part[straight] for part in moves)))
    return slots


def _there(team: Team, ways: Crossings, source: Ints, target: Ints, chunk: Ints) -> list[Transfers]:
    entry = ways.entry[source, team.home[target]]
    on = entry != target
    return [*carried(team, ways, source, team.home[target], chunk), (entry[on], target[on], chunk[on])]


def _joint(moves: Sequence[tuple[Ints, ...]]) -> Transfers:
    some = [move for move in moves if len(move[0])] or moves[:1]
    source, target, chunk = (np.concatenate(parts) for parts in zip(*some, strict=True)) if some[1:] else some[0]
    return source, target, chunk
