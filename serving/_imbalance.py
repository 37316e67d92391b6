"""Which GPU and which link does an expert layer wait for, and what does a plan gain?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serving._one_step import OneStep

__all__ = ["Imbalance", "imbalance_of"]


@dataclass(frozen=True)
class Imbalance:
    """How uneven the experts' work is, averaged over the MoE layers.

    Attributes
    ----------
    heaviest_gpu : str
        GPU with most tokens for its experts, in the layer where it stands out most.
    load : float
        Tokens of the heaviest GPU over the mean.
    experts_hit : float
        Experts on the GPU with most of them that some token is expected to reach.
    experts_hit_per_layer : float
        The same of all GPUs of an expert-parallel group together: distinct slots read.
    hot_link : str
        Link, with its class, that the slowest all-to-all of any layer waits for.
    remote_share : float
        Part of dispatched bytes that leaves the scale-up domain, own GPU counted.
    gained : float or None
        What the given plan saves against experts in order at the same loads [s]; None without a plan.
    """

    heaviest_gpu: str
    load: float
    experts_hit: float
    experts_hit_per_layer: float
    hot_link: str
    remote_share: float
    gained: float | None


def imbalance_of(worked: OneStep, before: OneStep | None) -> Imbalance | None:
    """Return how uneven the experts' work of a step is; `before` is the same step without its plan."""
    rows = [(s, len(which), layer) for s in range(worked.layout.pp) for which, layer in worked.kinds[s]]
    if not rows:
        return None
    count = np.array([n for _, n, _ in rows], dtype=np.float64)
    ratio = [float(layer.tokens.max() / layer.tokens.mean()) for _, _, layer in rows]
    costs = [(layer.dispatch.cost, layer.combine.cost) for _, _, layer in rows]
    s, _, worst = rows[int(np.argmax(ratio))]
    rank = int(worked.groups.stages[s][int(np.argmax(worst.tokens[0]))])
    slow = max((cost for pair in costs for cost in pair if cost), key=lambda cost: cost.seconds)
    groups = worked.layout.stage // worked.layout.ep

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=count))

    return Imbalance(
        heaviest_gpu=worked.routes.fabric.rank_labels[rank],
        load=mean(ratio),
        experts_hit=mean([float(layer.hit.max()) for _, _, layer in rows]),
        experts_hit_per_layer=mean([float(layer.hit.sum()) / groups for _, _, layer in rows]),
        hot_link=f"{slow.bottleneck_kind} {slow.bottleneck}" if slow.seconds else "",
        remote_share=mean([out.remote_share for out, _ in costs if out]),
        gained=None if before is None else sum(p.seconds for p in before.all_parts) - sum(
            p.seconds for p in worked.all_parts
        ),
    )  # fmt: skip
