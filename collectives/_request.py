"""Which schedule on which fabric is asked for, and what was filled in?"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from collectives._moe import MoE
from collectives._msccl import Algorithm
from collectives._records import Outer, Schedule
from collectives._schedule import schedule
from topo import Fabric, Fault, InputError, Ranks, Routes

__all__ = ["end_ports", "fallen_through", "scheduled"]


def end_ports(graph: nx.Graph[str] | Fabric, ranks: Ranks) -> tuple[nx.Graph[str] | Fabric, Ranks]:
    """Return graph and ranks: with ranks "ports" every end port of the fabric is one."""
    if not isinstance(ranks, str):
        return graph, ranks
    if ranks != "ports":
        raise InputError(Fault("ranks", ranks, 'is one name: the only one taken is "ports"', "Give a list of ranks."))
    return Fabric.from_graph(graph).by_port(), None


def scheduled(
    fabric: Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None,
    algorithm: str | Algorithm | None = None,
    **words: Any,
) -> Schedule:
    """Return the schedule given, or that of a kind; `words` are the other options of `schedule`."""
    if isinstance(kind_or_schedule, Schedule):
        _require_only(kind_or_schedule, fabric, n_bytes=n_bytes, algorithm=algorithm, **words)
        return kind_or_schedule
    if n_bytes is None and kind_or_schedule not in ("barrier", "moe_dispatch", "moe_combine"):
        raise InputError(Fault("n_bytes", None, f"{kind_or_schedule} needs a size", "Give bytes, as 1e9."))
    return schedule(kind_or_schedule, fabric, n_bytes, algorithm=algorithm, **words)


def _require_only(plan: Schedule, fabric: Fabric, **given: object) -> None:
    """Refuse what a Schedule settles already, and ranks this topology does not have."""
    faults = [
        Fault(name, "given", "a Schedule has its own", "Leave it out.")
        for name, value in given.items()
        if value is not None
    ]
    if int(plan.ranks.max(initial=-1)) >= fabric.n_ranks:
        rule = f"names rank {int(plan.ranks.max())}, and the topology has {fabric.n_ranks}"
        faults.append(Fault("schedule", repr(plan), rule, "Make the schedule for this topology."))
    able = np.flatnonzero(fabric.reduces | fabric.multicasts)
    if not np.isin(plan.switches, able).all():
        rule = "has switches reduce or multicast that do not in this topology"
        faults.append(Fault("schedule", repr(plan), rule, "Make the schedule for this topology."))
    if faults:
        raise InputError(*faults)


def fallen_through(routes: Routes, plan: Schedule) -> list[str]:
    """Say how many pairs inside one host have no scale-up path."""
    source, target = routes.fallen
    row = np.full(routes.fabric.n_ranks, -1)
    row[plan.ranks] = np.arange(len(plan.ranks))
    taking_part = (row[source] >= 0) & (row[target] >= 0)
    source, target = row[source[taking_part]], row[target[taking_part]]
    if not len(source):
        return []
    fallen = int(np.logical_or.reduce([phase.sends(source, target) for phase in plan.phases]).sum())
    return [f"{fallen} ordered pairs inside a host have no scale-up path and take the next class"] if fallen else []
