"""How many tokens of each domain go to each GPU under a plan? To copies at home first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serving import PlacementPlan

__all__ = ["flows_to_gpus", "flows_to_slots", "gpus_of"]

Floats = NDArray[np.float64]


def flows_to_slots(plan: PlacementPlan, asked: Floats, domain: NDArray[np.intp]) -> Floats:
    """Return what every domain sends to every slot: to its own copies, else to where a copy's share is not used up.

    Parameters
    ----------
    plan : PlacementPlan
        Slots and their shares.
    asked : (layers, domains, experts) float
        Tokens by where they come from.
    domain : (ep,) int
        Domain of every GPU, from 0.

    Returns
    -------
    (layers, domains, slots) array
    """
    found = np.zeros((*asked.shape[:2], plan.slot_expert.shape[1]))
    n = asked.shape[2]
    for row, expert, rank, share, tokens in zip(
        found, plan.slot_expert, plan.slot_rank, plan.shares, asked, strict=True
    ):  # fmt: skip
        here = domain[rank] == np.arange(len(tokens))[:, None]
        weight = np.where(here, np.maximum(share, 1e-12), 0.0)
        held = np.array([np.bincount(expert, each, minlength=n) for each in weight])
        row += np.where(here, tokens[:, expert] * weight / np.where(held > 0, held, 1.0)[:, expert], 0.0)
        away = np.where(held > 0, 0.0, tokens)
        left = share if plan.slot_share is None else np.maximum(share * tokens.sum(axis=0)[expert] - row.sum(axis=0), 0)
        left = np.maximum(left, 1e-12 * share)
        row += away[:, expert] * left / np.bincount(expert, left, minlength=n)[expert]
    return found


def gpus_of(plan: PlacementPlan, sent: Floats) -> Floats:
    """Return what every domain sends to every GPU, (layers, domains, ep), of what it sends to every slot."""
    both = zip(sent, plan.slot_rank, strict=True)
    return np.array([[np.bincount(rank, row, minlength=plan.ep) for row in rows] for rows, rank in both])


def flows_to_gpus(plan: PlacementPlan, asked: Floats, domain: NDArray[np.intp]) -> Floats:
    """Return what every domain sends to every GPU: (layers, domains, ep), as `flows_to_slots`."""
    return gpus_of(plan, flows_to_slots(plan, asked, domain))
