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


_SOFTWARE = "wires and kernels at full rate, no software overhead"
_PREDICTED = "collectives as predicted; kernels at full rate"


def assumptions_of(
    fabric: Fabric, model: Model, workload: Workload, chip: ChipNumbers, *, uniform: bool = True,
    profile: str = "ideal", groups: str = "one expert-parallel group", copies: str | None = None,
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
    copies : str, optional
        How a library copies tokens, where that is its own choice; by default the workload's way.

    Returns
    -------
    tuple of str
        One sentence each.
    """
    types = f"dispatch {workload.dispatch_dtype}, combine {workload.combine_dtype}, KV cache {workload.kv_dtype}"
    said = [
        f"{workload.phase}; {types}; {100 * workload.hbm_reserve:.3g} % of HBM kept free; ECMP routing",
        f"profile {profile}: {_SOFTWARE if profile == 'ideal' else _PREDICTED}",
        f"{groups}, on otherwise idle wires",
    ]
    if workload.draft:
        chance = f"{workload.draft} guessed, each right with chance {workload.acceptance}"
        said.append(f"{workload.emitted:.4g} tokens per pass: {chance}")
    way = copies or workload.copies
    sent = _COPIES.get(way, f"copies of a token as the library sends them ({way})")
    if model.is_moe and uniform:
        said.append(f"experts are uniformly loaded; {sent}")
    elif model.is_moe and way != "direct":
        said.append(sent)
    said += [*fabric.assumptions, *model.notes, *chip.notes, *chip.fallbacks(model.dtypes | {workload.kv_dtype})]
    if model.n_group and model.n_group > 1:
        limit = f"{model.topk_group} of {model.n_group} expert groups"
        said.append(f"the model's limit of {limit} is not used: routing is free")
    return tuple(said)
