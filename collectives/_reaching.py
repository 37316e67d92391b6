"""Ranks that no path joins: which algorithm would reach them here, and if none does, what is missing?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from collectives._kinds import KINDS
from collectives._records import Schedule
from collectives._traffic import NoPath
from topo import InputError, Routes, route

__all__ = ["with_cure"]

#: Ranks up to which other algorithms are tried: some list every pair.
_MOST_RANKS = 1024


def with_cure(lost: NoPath, routes: Routes, seconds: Callable[[Schedule], float]) -> InputError:
    """Return the error with what helps: an algorithm that was tried and has paths, the wires, the rule or the tables.

    Parameters
    ----------
    lost : NoPath
        What was found, and the schedule in which.
    routes : Routes
        Under which it was.
    seconds : callable
        Costs another schedule on these routes.
    """
    cures, plan = [_wires(lost, routes)], lost.plan
    if plan is not None and plan.again is not None and len(plan.ranks) <= _MOST_RANKS:
        cures.insert(0, _others(plan, routes, seconds))
    return InputError(replace(lost.faults[0], cure=" ".join(cures)))


def _others(plan: Schedule, routes: Routes, seconds: Callable[[Schedule], float]) -> str:
    """Say which algorithms of the kind have paths, the fastest first."""
    assert plan.again is not None
    found: dict[str, float] = {}
    for name in KINDS[plan.kind].algorithms:
        try:
            found[name] = seconds(plan.again(routes.fabric, name))
        except InputError:  # does not apply, or has no path either
            continue
    if not found:
        return f"No algorithm of {plan.kind} has paths for all it sends here."
    first, *more = sorted(found, key=lambda name: found[name])
    also = f" (so have {', '.join(more)})" if more else ""
    return f"Take algorithm {first}: it has paths for all it sends here{also}."


def _wires(lost: NoPath, routes: Routes) -> str:
    """Say whether the wires are missing, or the rule or table makes no use of them."""
    if routes.rule == "ecmp" or route(routes.given).class_between(lost.pair[:1], lost.pair[1:])[0] < 0:
        some = lost.plan is not None and len(lost.plan.ranks) < routes.fabric.n_ranks
        more = " let ranks that could relay take part," if some else ""
        return f"No wires join them without another rank between: add links,{more} or leave those ranks out."
    if routes.walk is not None:
        return "The wires join them and the tables do not: correct the tables, or take routing ecmp."
    return f"The wires join them and {routes.rule} finds no way: take routing ecmp."
