"""What do files say of experts: how loaded they are, and where they are?"""

from __future__ import annotations

from placement import ExpertLoads, read_loads, read_plan
from serving import Model, PlacementPlan
from topo import InputError

__all__ = ["plan_of", "recorded"]


def recorded(path: str | None, model: Model | None = None) -> ExpertLoads | None:
    """Return the expert loads of a file of any kind, of a model's MoE layers if one is given; None without a file."""
    if path is None:
        return None
    found = read_loads(path)
    return found if model is None else found.for_model(model)


def plan_of(path: str, ep: int, model: Model) -> PlacementPlan:
    """Return the plan of a file; `ep` are the GPUs of an engine's map that does not say its own."""
    try:
        read_plan(path)
    except InputError as error:
        silent = any(fault.place == "gpus" and fault.value is None for fault in error.faults)
        return read_plan(path, gpus=ep if silent else None, model=model)
    return read_plan(path, model=model)
