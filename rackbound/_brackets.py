"""Between which times does a collective lie, and what does a hash make of it? Asked for and printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collectives import CONVENTION, Bound, Bracket, HashTimes, hash_times
from rackbound._output import say, show_table
from topo import Hash
from topo.units import format_quantity

__all__ = ["bracket_report", "brackets_report", "hash_report", "spread", "told"]

#: Flows traced over all seeds of a hash: some three seconds. Fewer seeds than some say nothing of a p99.
_MOST_TRACED, _FEWEST_SEEDS, _SEEDS = 3_000_000, 10, 100
_MOST_ROWS = 8


def spread(held: Bracket, rule: Any, *arguments: Any, **words: Any) -> tuple[Bracket, HashTimes | None]:
    """Return times over seeds of a hash, as many as are quickly drawn, and the bracket; if there are none it says why.

    Parameters
    ----------
    held : Bracket
        Of the same collective under this rule.
    rule : str, Hash or other
        The routing rule; nothing is drawn of one without seeds.
    *arguments, **words
        As `collectives.hash_times`.
    """
    hashing = Hash() if rule == "hash" else rule
    if not isinstance(hashing, Hash):
        return held, None
    flows = sum(phase.n_subflows for phase in held.timeline.phases) if held.timeline else _MOST_TRACED
    seeds = min(_SEEDS, _MOST_TRACED // max(1, flows))
    if seeds < _FEWEST_SEEDS:
        why = "times over seeds of the hash: too many flows here; collectives.hash_times takes them"
        return replace(held, left_out=(*held.left_out, why)), None
    return held, hash_times(*arguments, seeds=seeds, queue_pairs=hashing.queue_pairs, **words)


def bracket_report(held: Bracket) -> None:
    """Print the times of a bracket, what proves the bounds, and what was left out."""
    rows = [
        *_bound_rows("lower bound, any algorithm", held.any_bound),
        *_bound_rows("lower bound, this schedule", held.schedule_bound),
        ("cost, wires only", _time(held.cost.seconds), _above(held.cost.seconds, held.lower), held.cost.bottleneck),
    ]
    if held.timeline:
        slow = max(held.timeline.phases, key=lambda phase: phase.end - phase.start, default=None)
        last = f"last {slow.last}" if slow and slow.n_flows else ""
        rows.append(("simulated, links shared", _time(held.timeline.seconds),
                     _above(held.timeline.seconds, held.lower), last))  # fmt: skip
    gap = "unknown" if held.gap is None else _percent(held.gap)
    show_table(f"Bracket: gap {gap}", ("time of", "time", "above the bound", "bound by"), rows)
    if len(held.phases) > 1:
        _phase_table(held)
    say(f"  {held.convention}")
    for line in held.left_out:
        say(f"  left out: {line}")
    say()


def told(held: Mapping[str, Bracket]) -> dict[str, Any]:
    """Return brackets as plain JSON values."""
    return {name: one.to_dict() for name, one in held.items()}


def brackets_report(held: Mapping[str, Bracket], title: str = "Collectives of one layer, the slowest") -> None:
    """Print between which times collectives lie, those of a step by its operations."""
    if not held:
        return
    rows = [
        (name, _time(one.lower), _time(one.cost.seconds), _time(one.simulated),
         "unknown" if one.gap is None else _percent(one.gap))
        for name, one in held.items()
    ]  # fmt: skip
    show_table(title, ("collective", "lower bound", "cost", "simulated", "gap"), rows)
    for line in dict.fromkeys((CONVENTION, *(f"left out: {line}" for one in held.values() for line in one.left_out))):
        say(f"  {line}")


def _phase_table(held: Bracket) -> None:
    """Print the phases that take longest."""
    order = sorted(range(len(held.phases)), key=lambda i: -held.phases[i].repeats * held.phases[i].cost)
    shown = sorted(order[:_MOST_ROWS])
    more = f", the {_MOST_ROWS} longest of {len(order)}" if len(order) > _MOST_ROWS else ""
    columns = ("phase", "times", "lower bound", "cost", "simulated", "above the bound")
    rows = []
    for i in shown:
        one = held.phases[i]
        upper = one.cost if one.simulated is None else one.simulated
        rows.append((str(i + 1), f"{one.repeats:,}", _time(one.lower), _time(one.cost), _time(one.simulated),
                     _above(upper, one.lower)))  # fmt: skip
    show_table(f"Phase by phase, one time each{more}", columns, rows)


def hash_report(found: HashTimes) -> None:
    """Print what collisions of a hash cost against an even split."""
    drawn = f"{len(found.seeds)} seeds, {found.queue_pairs} queue pair{'s' * (found.queue_pairs > 1)} a pair of ranks"
    say(f"  hash over {drawn}: ideal (even split) {_time(found.ideal)}, "
        f"median {_time(found.median)} ({_above(found.median, found.ideal)}), "
        f"p99 {_time(found.p99)} ({_above(found.p99, found.ideal)})")  # fmt: skip


def _bound_rows(name: str, bound: Bound | None) -> list[tuple[str, str, str, str]]:
    if bound is None:
        return []
    return [(name, _time(bound.seconds), "", f"{bound.kind} {bound.cut}".removeprefix("none ").strip())]


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_quantity(seconds, "seconds")


def _above(seconds: float, lower: float | None) -> str:
    return _percent(seconds / lower - 1) if lower else "-"


def _percent(part: float) -> str:
    return f"{max(0.0, round(100 * part, 4)):.3g} %"
