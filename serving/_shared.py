"""What is a model whose shared experts are spread like routed ones?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from serving._model import Model
from topo import Fault, InputError

__all__ = ["spread"]

Floats = NDArray[np.float64]


def spread(model: Model, load: Floats) -> tuple[Model, Floats]:
    """Return the model with its shared experts as further routed ones that every token goes to, and its loads.

    Parameters
    ----------
    model : Model
        Its shared experts are as wide as a whole number of routed ones.
    load : (MoE layers, experts) float
        Part of the copies of each expert.

    Raises
    ------
    InputError
        No shared experts, or of another width.
    """
    count, rest = divmod(model.shared_params, model.expert_params) if model.expert_params else (0, 0)
    if not count or rest:
        rule = f"{model.name} has no shared experts as wide as its routed ones"
        raise InputError(Fault("layout.shared", "spread", rule, "Take local."))
    top_k = model.top_k + count
    own = np.full((len(load), count), 1 / top_k)
    wider = replace(model, n_experts=model.n_experts + count, top_k=top_k, shared_params=0)
    return wider, np.hstack([load * (model.top_k / top_k), own])
