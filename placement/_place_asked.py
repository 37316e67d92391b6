"""What is `place` asked for, checked and filled in?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement._rebalance import loads_of
from placement._rules import SHARINGS, Gpus, Rules
from placement._start import even_slots
from topo import Fault, InputError, suggest

__all__ = ["asked_to_place"]

Floats = NDArray[np.float64]


def asked_to_place(
    load: ArrayLike, gpus: int | Gpus, replicas: int, sharing: str, rules: Rules, gap: float, work: int | None,
    time_limit: float | None,
) -> tuple[Floats, Gpus, Rules]:  # fmt: skip
    """Refuse what cannot be; return loads by layer, the machine and the rules."""
    raw = np.asarray(load, dtype=np.float64) if np.ndim(load) in (1, 3) else load
    loads = loads_of(raw if np.ndim(raw) == 2 else np.sum(raw, axis=0) if np.ndim(raw) == 3 else [raw], "load")
    faults = [
        Fault(name, value, f"must be {rule}", "Correct it.")
        for name, value, fits, rule in (
            ("replicas", replicas, _whole(replicas, 0), "a whole number, zero or more"),
            ("work", work, work is None or _whole(work, 0), "a whole number, zero or more"),
            ("gap", gap, _above(gap), "a number above zero"),
            ("time_limit", time_limit, time_limit is None or _above(time_limit), "above zero [s]"),
        )
        if not fits
    ]
    if sharing not in SHARINGS:
        faults.append(Fault("sharing", sharing, "is not known", suggest(str(sharing), SHARINGS)))
    if not isinstance(gpus, Gpus) and not _whole(gpus, 1):
        faults.append(Fault("gpus", gpus, "must be a whole number, one or more, or placement.Gpus", "Give 72."))
    if faults:
        raise InputError(*faults)
    copies = loads.shape[1] + replicas
    machine = gpus if isinstance(gpus, Gpus) else Gpus(even_slots(copies, gpus))
    rules.require(loads.shape[1], machine)
    if machine.slots.sum() < copies:
        rule = f"are {int(machine.slots.sum())} in all, fewer than the {copies} copies"
        raise InputError(Fault("gpus.slots", "array", rule, "Give more slots, or fewer replicas."))
    return loads, machine, rules


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def _above(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < np.inf
