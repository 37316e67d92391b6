"""How do rings pass domains that wires join only here and there? Each crossing over a pair of ranks that is joined.

A ring enters a domain at one rank, passes all others and leaves from the last: from another
one, unless the domain has one only. Of all ways to choose a pair for every crossing, a ring
takes one whose pairs the rings before have used least (shortest path, crossing by crossing).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives._crossings import crossings
from collectives._plan import Team, unfit
from topo import InputError

__all__ = ["rail_rings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def rail_rings(team: Team, channels: int | None = None) -> Ints:
    """Return the rows in the order of every ring, (channels, n).

    Parameters
    ----------
    team : Team
        Of several domains.
    channels : int, optional
        Rings; by default as many as the fewest pairs of ranks that join a domain and the next.

    Raises
    ------
    InputError
        No ring passes all ranks over what wires join.
    """
    pairs, used = _pairs(team), np.zeros((2, team.n))
    count = min(map(len, pairs)) if channels is None else channels
    rings = []
    for channel in range(count):
        chosen = _cheapest(team, pairs, used, channel)
        for ends, use in zip(chosen.T, used, strict=True):
            np.add.at(use, ends, 1.0)
        rings.append(_around(team, chosen))
    return np.stack(rings)


def _pairs(team: Team) -> list[Ints]:
    """Return the pairs of ranks by which every domain may be left for the next, (pairs, 2)."""
    ways, found = crossings(team), []
    for d, members in enumerate(team.domains):
        e = (d + 1) % len(team.domains)
        able = members[(ways.exit[members, e] == members) & (ways.depth[d, e] == 1)]
        if not len(able):
            raise _no_ring(team, d)
        found.append(np.stack([able, ways.entry[able, e]], axis=1))
    return found


def _cheapest(team: Team, pairs: list[Ints], used: Floats, channel: int) -> Ints:
    """Return one pair for every crossing, least used in all, (domains, 2)."""
    start = len(pairs[0])
    cost = np.where(np.eye(start, dtype=bool), _use(pairs[0], used, channel), np.inf)
    before: list[Ints] = []
    for d in range(1, len(pairs)):
        ways = cost[:, :, None] + _clash(team, d, pairs[d - 1], pairs[d])
        before.append(ways.argmin(axis=1))
        cost = ways.min(axis=1) + _use(pairs[d], used, channel)
    cost = cost + _clash(team, 0, pairs[-1], pairs[0]).T
    first, last = np.unravel_index(int(cost.argmin()), cost.shape)
    if np.isinf(cost[first, last]):
        raise _no_ring(team, next((d for d, own in enumerate(pairs) if len(own) == 1), 0))
    choice = [int(last)]
    for step in reversed(before):
        choice.append(int(step[first, choice[-1]]))
    return np.array([own[k] for own, k in zip(pairs, reversed(choice), strict=True)])


def _use(pairs: Ints, used: Floats, channel: int) -> Floats:
    """Return how often the ends of pairs are used, and a little for those whose turn it is not."""
    turn = (np.arange(len(pairs)) - channel) % len(pairs)
    found: Floats = used[0, pairs[:, 0]] + used[1, pairs[:, 1]] + turn * 1e-6
    return found


def _clash(team: Team, d: int, arrives: Ints, leaves: Ints) -> Floats:
    """Return infinity where a ring would have to leave domain d, of several, from where it enters."""
    same = (arrives[:, 1][:, None] == leaves[:, 0]) & (len(team.domains[d]) > 1)
    return np.where(same, np.inf, 0.0)


def _around(team: Team, chosen: Ints) -> Ints:
    """Return one ring through all domains: from where it enters, past all others, to where it leaves."""
    parts = []
    for members, entry, leave in zip(team.domains, np.roll(chosen[:, 1], 1), chosen[:, 0], strict=True):
        turned = np.roll(members, -int(team.slot[entry]))
        between = turned[(turned != entry) & (turned != leave)]
        parts.append(np.concatenate([[entry], between, [leave][: len(members) - 1]]))
    return np.concatenate(parts).astype(np.intp)


def _no_ring(team: Team, d: int) -> InputError:
    label = team.fabric.rank_labels[team.ranks[team.domains[d][0]]]
    why = f"a ring enters and leaves every domain at ranks of its own, and wires allow none at that of {label}"
    return unfit("ring", why, 'Take hierarchical, or "best".')
