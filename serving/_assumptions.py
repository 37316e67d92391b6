"""What does an answer take for granted? Said once, by every verb that stands on a step."""

from __future__ import annotations

from serving._chip import ChipNumbers
from serving._model import Model
from serving._workload import Workload
from topo import Fabric

__all__ = ["assumptions_of"]


_COPIES = {
    "direct": "a copy of a token for each of its experts",
    "per_gpu": "a copy of a token for each different GPU its experts are on",
    "per_domain": "a copy of a token for each different domain its experts are in, handed on inside",
}


def assumptions_of(
    fabric: Fabric, model: Model, workload: Workload, chip: ChipNumbers, *, uniform: bool = True,
    profile: str = "ideal", groups: str = "one expert-parallel group",
) -> tuple[str, ...]:  # fmt: skip
    """Return everything a step of this model takes for granted or had filled in.

    Parameters
    ----------
    fabric : Fabric
        Says what its builder or reader filled in.
    model, workload, chip : records
        Likewise.
    uniform : bool, optional
        Whether no expert load was given.
    profile : str, optional
        Software profile.
    groups : str, optional
        What is on the wires.

    Returns
    -------
    tuple of str
        One sentence each.
    """
    types = f"dispatch {workload.dispatch_dtype}, combine {workload.combine_dtype}, KV cache {workload.kv_dtype}"
    said = [
        f"{workload.phase}; {types}; {100 * workload.hbm_reserve:.3g} % of HBM kept free; ECMP routing",
        f"profile {profile}: wires and kernels at full rate, no software overhead",
        f"{groups}, on otherwise idle wires",
    ]
    if model.is_moe and uniform:
        said.append(f"experts are uniformly loaded; {_COPIES[workload.copies]}")
    elif model.is_moe and workload.copies != "direct":
        said.append(_COPIES[workload.copies])
    said += [*fabric.assumptions, *model.notes, *chip.notes, *chip.fallbacks(model.dtypes | {workload.kv_dtype})]
    if model.n_group and model.n_group > 1:
        limit = f"{model.topk_group} of {model.n_group} expert groups"
        said.append(f"the model's limit of {limit} is not used: routing is free")
    return tuple(said)
