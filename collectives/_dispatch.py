"""How do tokens get to their experts? A copy for each expert, for each GPU, or one for each domain, handed on inside.

Combine is the same backwards: what a place has for a token is added up there and sent once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from collectives._crossings import crossings
from collectives._domains import carried, relayed, steps_of
from collectives._exchanges import direct_all_to_all
from collectives._moe import MoETraffic
from collectives._plan import Plan, Team, flows_of
from collectives._records import Flows

__all__ = ["per_domain", "per_gpu"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def per_gpu(team: Team) -> Plan:
    """One copy of a token for each different GPU its experts are on."""
    moe = _moe(team)
    traffic = moe.traffic(moe.to_gpu, team.token_bytes)
    plan = direct_all_to_all(replace(team, traffic=traffic))
    return replace(plan, sizes=traffic, notes=_distinct(moe))


def per_domain(team: Team) -> Plan:
    """One copy for each different domain, to the rank on the sender's rail, who hands it on to the GPUs.

    What stays in its domain goes in the last phase, one copy for each different GPU.
    """
    moe, direct = _moe(team), direct_all_to_all(team)
    sizes = moe.traffic(moe.to_gpu, team.token_bytes)
    if len(team.domains) < 2:
        inside = replace(direct.steps[0], traffic=_inside(team, moe, np.arange(team.n)[:, None]))
        return Plan(sizes, (inside,), notes=_distinct(moe))
    ways, moves = crossings(team), direct.steps[0].carries(0)
    stays = team.home[moves[0]] == team.home[moves[1]]
    slots = relayed(team, ways, moves, np.ones(len(stays), dtype=bool), stays, -1)
    sender, domain = np.nonzero(team.home[:, None] != np.arange(len(team.domains)))
    chance = np.broadcast_to(moe.to_domain, (team.n, len(team.domains)))[sender, domain]
    copies = moe.tokens[sender] * chance * team.token_bytes
    across = carried(team, ways, sender, domain, np.arange(len(sender)))
    traffics = [*(flows_of(moved, copies, team.n) for moved in across), _inside(team, moe, ways.entry)]
    steps = tuple(
        replace(step, traffic=traffic, shares=number < len(across))
        for number, (slot, traffic) in enumerate(zip(slots, traffics, strict=True))
        for step in steps_of([slot])
    )
    return Plan(sizes, steps, notes=_distinct(moe))


def _inside(team: Team, moe: MoETraffic, stands_in: Ints) -> Flows:
    """From a stand-in to the GPUs of its domain, for all it stands in for, itself among them."""
    chance = np.broadcast_to(moe.to_gpu, (team.n, team.n))
    source, target, n_bytes = [], [], []
    for domain, members in enumerate(team.domains):
        copies = np.zeros((len(members), len(members)))
        np.add.at(copies, team.slot[stands_in[:, domain]], moe.tokens[:, None] * chance[:, members])
        source.append(np.repeat(members, len(members)))
        target.append(np.tile(members, len(members)))
        n_bytes.append(copies.ravel() * team.token_bytes)
    return _above_zero(np.concatenate(source), np.concatenate(target), np.concatenate(n_bytes), team.n)


def _above_zero(source: Ints, target: Ints, n_bytes: Floats, n: int) -> Flows:
    sent = (n_bytes > 0) & (source != target)
    return Flows(source[sent], target[sent], n_bytes[sent], n)


def _moe(team: Team) -> MoETraffic:
    assert team.moe is not None
    return team.moe


def _distinct(moe: MoETraffic) -> tuple[str, ...]:
    return (
        f"a token goes to {moe.distinct_gpus:.5g} different GPUs, {moe.other_gpus:.5g} of them not its own, "
        f"in {moe.distinct_domains:.5g} domains, {moe.other_domains:.5g} not its own",
    )
