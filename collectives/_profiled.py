"""What does a collective cost with a library's software on it? An ideal cost, and the time its profile predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives._cost import cost
from collectives._features import bulk_features, expert_features, features_of, scaled
from collectives._matching import UNSEEN, require_law
from collectives._moe import MoE
from collectives._predict import LAWS, Features, choice_weights
from collectives._profile import Profile
from collectives._results import Cost
from topo import Routes

__all__ = ["profiled"]

#: Collectives whose times were fitted; others take the constants of an all-gather.
_FITTED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_v", "moe_dispatch", "moe_combine")
#: Time of rings where in-switch reduction was asked for: they are out of the question [s].
_NEVER = 1e9
#: Part of the bytes that is as good as none: what is left is latency.
_FLAG = 1e-12


def profiled(
    ideal: Cost, routes: Routes, ranks: NDArray[np.intp], size: Any, profile: Profile, *, chosen: bool
) -> Cost:
    """Return the cost of an ideal one under a profile.

    Parameters
    ----------
    ideal : Cost
        The wires alone.
    routes : Routes
        What it was costed on.
    ranks : (ranks,) int
        Rank numbers taking part.
    size : float, MoE or None
        As `cost` was given it.
    profile : Profile
        Its law and constants.
    chosen : bool
        Whether the algorithm was named: then its wires count, else those the library takes.
    """
    require_law(ideal.kind, profile)
    if not ideal.seconds:
        return replace(ideal, profile=profile.name, band=(0.0, 0.0))
    row = _row(ideal, routes, ranks, size, profile, chosen)
    if not chosen and _reduces_in_switch(row):
        ideal = cost(routes.fabric, ideal.kind, ideal.n_bytes, ranks=ranks, algorithm="nvls", routing=routes)
    law = LAWS[profile.law]
    seconds, latency = (float(law(profile.constants, each)[0]) for each in (row, scaled(row, _FLAG)))
    off, notes = _off(ideal, routes, ranks, profile)
    ratio = ideal.seconds / seconds
    return replace(
        ideal, seconds=seconds, latency_seconds=latency, bandwidth_seconds=seconds - latency,
        algbw=ideal.algbw * ratio, busbw=ideal.busbw * ratio, profile=profile.name,
        band=(seconds / (1 + off), seconds / (1 - off) if off < 1 else np.inf),
        classes={kind: replace(load, utilisation=load.utilisation * ratio) for kind, load in ideal.classes.items()},
        assumptions=(*ideal.assumptions, *notes),
    )  # fmt: skip


def _row(ideal: Cost, routes: Routes, ranks: NDArray[np.intp], size: Any, profile: Profile, chosen: bool) -> Features:
    fabric = routes.fabric
    if isinstance(size, MoE) and not chosen:
        return expert_features(fabric, ideal.kind, size, ranks, profile.copies, routing=routes)
    if chosen or ideal.kind not in ("all_reduce", "all_gather", "reduce_scatter"):
        row = features_of(ideal, fabric, ranks)
        if ideal.algorithm == "nvls":
            return replace(row, nvls=row.up, up=np.full(1, _NEVER))
        tokens = float(np.max(size.tokens)) if isinstance(size, MoE) else 0.0
        return replace(row, tokens=np.full(1, tokens))
    return bulk_features(fabric, ideal.kind, ideal.n_bytes, ranks, routes)


def _reduces_in_switch(row: Features) -> bool:
    """Whether in-switch reduction of one domain has most of the weight among NCCL's choices."""
    return bool(row.domains[0] == 1 and np.isfinite(row.nvls[0]) and choice_weights(row)[-1, 0] > 0.5)


def _off(ideal: Cost, routes: Routes, ranks: NDArray[np.intp], profile: Profile) -> tuple[float, list[str]]:
    """Return the error to expect of nine in ten, and what is assumed."""
    unseen = sorted({routes.fabric.chip[rank] or "chips without a name" for rank in ranks} - set(profile.chips))
    off = max(profile.band[1], UNSEEN[1]) if unseen else profile.band[1]
    notes = [
        f"profile {profile.name}, version {profile.version}: nine in ten measurements within {off:.0%}; "
        "phases, loads and bottleneck are those of the wires alone"
    ]
    if unseen:
        notes.append(f"profile {profile.name} was not fitted on {', '.join(unseen)}: 20 to 40 % off")
    if ideal.kind not in _FITTED:
        notes.append(f"no {ideal.kind} was measured: constants of an all-gather")
    return off, notes
