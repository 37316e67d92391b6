"""How are the few copies of a small layer placed? Exchanges alone get stuck there: annealing, and an exact program."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placement._lightest import columns_of, lightest
from placement._moves import Layer, layer_of
from placement._place_by import place_by
from placement._place_layers import Found, Task
from placement._rules import Gpus, Rules, home_choices, may_of
from serving import PlacementPlan

__all__ = ["annealed", "homed", "is_small", "settled", "small_under"]

Floats = NDArray[np.float64]

#: Copies up to which a layer is annealed too, and steps for every copy.
_SMALL, _ANNEALING = 64, 300
#: Choices of domains for groups kept together, times copies, up to which all are tried.
_CHOICES = 128
#: Columns of a program and nodes of its tree up to which a layer is settled exactly: always, under rules, and if asked;
#: and the gap at which the lightest is had.
_ALWAYS, _RULED, _ASKED, _FINE = (120, 200), (160, 200), (1000, 4000), 1e-5


def is_small(copies: int) -> bool:
    """Say whether a layer of so many copies is annealed."""
    return copies <= _SMALL


def annealed(found: Found, machine: Gpus, copies: int, sharing: str, gap: float) -> Found:
    """Search a layer without rules by annealing too."""
    best = found.heaviest(machine.speed)
    if best <= found.bound * (1 + gap):
        return found
    load, able = found.task.layer.load[:-1], machine.slots > 0
    flat = Gpus(machine.slots, machine.speed)  # one domain: copies share wherever tokens come from
    other = place_by(load[None], flat, replicas=copies - len(load), sharing=sharing, work=_ANNEALING)
    assert other.plan is not None  # no rules, so no reason not to
    reached = float(other.value["heaviest_gpu"][0] * load.sum() / machine.speed[able].sum())
    if reached >= best * (1 - 1e-12):
        return found
    task = replace(found.task, layer=_planned(load, other.plan, 0, machine))
    return replace(found, task=task, bound=min(found.bound, reached))


def homed(
    found: list[Found], loads: Floats, machine: Gpus, rules: Rules, copies: int, sharing: str
) -> list[Found]:  # fmt: skip
    """Try every choice of domains for groups kept together, where there are few, and keep the best of each layer."""
    choices = home_choices(rules, machine, loads.shape[1], _CHOICES // copies)
    tried = [small_under(loads, machine, replace(each, together=()), copies, sharing) for each in choices]
    able = [each for each in tried if not isinstance(each, str)]
    if not able:
        return found
    layers = []
    for each, *ways in zip(found, *able, strict=True):
        best = min([each, *ways], key=lambda one: one.heaviest(machine.speed))
        bound = max(each.bound, min(one.bound for one in ways))  # all that keeps to the rules is one of these
        layers.append(replace(best, bound=min(bound, best.heaviest(machine.speed)), stopped=each.stopped))
    return layers


def small_under(loads: Floats, machine: Gpus, rules: Rules, copies: int, sharing: str) -> list[Found] | str:
    """Place layers by `place_by`, which knows for certain whether anything keeps to the rules; none of `together`."""
    zone = machine.domain if rules.apart == "domain" else machine.host
    flat = Gpus(machine.slots, machine.speed, host=zone)
    rules = replace(rules, apart="host") if rules.apart == "domain" else rules
    n = loads.shape[1]
    other = place_by(loads[:, None], flat, replicas=copies - n, sharing=sharing, rules=rules)
    if other.plan is None:
        return other.binding
    unit = loads.sum(axis=1) / machine.speed[machine.slots > 0].sum()
    may, bound = may_of(machine, rules, n), other.bound["heaviest_gpu"] * unit
    return [
        Found(
            Task(_planned(row, other.plan, i, machine), np.arange(n), row, may), float(bound[i]), other.binding, False
        )
        for i, row in enumerate(loads)
    ]


def settled(
    found: Found, machine: Gpus, rules: Rules, copies: int, sharing: str, gap: float, until: float | None, exact: bool
) -> Found:  # fmt: skip
    """Look for the lightest placement there is, where copies share equally and a program of all is small."""
    best, load = found.heaviest(machine.speed), found.task.whole
    columns, nodes = _ASKED if exact else _RULED if rules.given else _ALWAYS
    m = len(machine.slots)
    small = sharing == "equal" and columns_of(len(load), m, copies) <= columns
    if best <= found.bound * (1 + gap) or not small:
        return found
    if copies > len(load) * (machine.slots > 0).sum() or (until is not None and time.perf_counter() > until):
        return found
    other = lightest(load, machine, rules, copies, least=found.bound, best=best, gap=min(gap, _FINE), nodes=nodes)
    why = "a program of all placements" if other.bound > found.bound * (1 + 1e-9) else found.why
    found = replace(found, bound=min(other.bound, best), why=why)
    if other.held is None:
        return found
    gpu, expert = np.nonzero(other.held.T)
    layer = _seated(load, expert, gpu, 1 / other.held.sum(axis=1)[expert], machine)
    reached = float((layer.share.sum(axis=1) / machine.speed).max())
    if reached >= best * (1 - 1e-12):
        return found
    may = found.task.may
    return replace(found, task=Task(layer, np.arange(len(load)), load, may), bound=min(found.bound, reached))


def _planned(load: Floats, plan: PlacementPlan, row: int, machine: Gpus) -> Layer:
    """Return a layer of a plan."""
    order = np.argsort(plan.slot_rank[row], kind="stable")
    part = plan.shares[row][order]
    return _seated(load, plan.slot_expert[row][order], plan.slot_rank[row][order], part, machine)


def _seated(
    load: Floats, held: NDArray[np.intp], gpu: NDArray[np.intp], part: Floats, machine: Gpus
) -> Layer:  # fmt: skip
    """Return a layer of the experts of slots, GPU after GPU, and parts of their tokens."""
    n, seat = len(load), np.arange(len(gpu)) - np.searchsorted(gpu, gpu)
    expert = np.full((len(machine.slots), int(machine.slots.max())), n)
    expert[gpu, seat] = held
    layer = layer_of(load, expert, np.bincount(held, minlength=n), machine.slots, machine.speed)
    layer.share[gpu, seat] = load[held] * part
    return layer
