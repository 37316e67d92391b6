"""Which profile predicts a measured row, and from what? Rows on the graphs of their systems, each kind costed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import log

import numpy as np
from numpy.typing import NDArray

from collectives._features import bulk_features, expert_features, scaled
from collectives._measured import Measurement, Skipped, moe_of
from collectives._predict import LAWS, Features, stacked
from collectives._profile import Profile, list_profiles, load_profile
from collectives._systems import System, system_of
from topo import Fault, InputError, Routes

__all__ = ["UNSEEN", "Matched", "matched", "predicted_seconds", "profile_for", "profile_on", "require_law"]

#: Size that is costed; bytes on wires are proportional to it.
_UNIT = 1e9
#: Median and 90th percentile of the error on a generation that the fit never saw.
UNSEEN = (0.25, 0.4)
Choose = Callable[[str, str, str, float], tuple[Profile, str]]
#: What takes the place of a library that no profile names.
_FALLBACK = {"collective": "nccl", "expert": "DeepEP low-latency"}


@dataclass(frozen=True)
class Matched:
    """A measured row with its profile, as far as it can be predicted.

    Attributes
    ----------
    row : Measurement
    profile : Profile
        In the row's environment.
    features : Features
        One row.
    routes : Routes
        Over the system, of as many domains as the row has.
    ranks : (ranks,) int
        Rank numbers taking part.
    note : str
        What is not as fitted: an unseen chip or library; empty if all is.
    """

    row: Measurement
    profile: Profile
    features: Features
    routes: Routes
    ranks: NDArray[np.intp]
    note: str = ""


@cache
def _shipped() -> tuple[Profile, ...]:
    return tuple(load_profile(name) for name in list_profiles())


def profile_for(library: str, law: str, chip: str, bandwidth: float) -> tuple[Profile, str]:
    """Return the profile of a library on a chip, and what is not as fitted.

    The longest text that the library's name holds decides, then the chip; an unseen chip
    takes the profile whose scale-up bandwidth is nearest.

    Parameters
    ----------
    library : str
        As a measured table has it.
    law : {"collective", "expert"}
        What is predicted.
    chip : str
        Name of the chip.
    bandwidth : float
        Scale-up bandwidth of a GPU [bytes/s].

    Examples
    --------
    >>> profile_for("nccl 2.29.2", "collective", "H100", 450e9)[0].name
    'nccl-hopper'
    """
    known = [profile for profile in _shipped() if profile.law == law]
    found, note = _of_library(known, library), ""
    if not found:
        found, note = _of_library(known, _FALLBACK[law]), f"no profile of library {library!r}: {_FALLBACK[law]}'s taken"
    seen = (profile for profile in found if chip in profile.chips)
    nearest = min(found, key=lambda profile: abs(log(max(bandwidth, 1.0) / max(profile.bandwidth, 1.0))))
    profile, unseen = profile_on(next(seen, nearest), chip)
    return profile, "; ".join(filter(None, (note, unseen)))


def profile_on(profile: Profile, chip: str) -> tuple[Profile, str]:
    """Return a profile with the band to expect on a chip, and what is not as fitted."""
    if chip in profile.chips:
        return profile, ""
    named = chip or "a chip without a name"
    return replace(profile, band=UNSEEN), f"{profile.name} was not fitted on {named}: 20 to 40 % off"


def require_law(kind: str, profile: Profile) -> None:
    """Refuse a profile of expert layers for bytes, and the other way round."""
    expert = kind in ("moe_dispatch", "moe_combine")
    if expert != (profile.law == "expert"):
        rule = f"is for {'expert layers' if profile.law == 'expert' else 'collectives of bytes'}, not for {kind}"
        cure = f"Take one of the law {'expert' if expert else 'collective'}."
        raise InputError(Fault("profile", profile.name, rule, cure))


def _of_library(known: Sequence[Profile], library: str) -> list[Profile]:
    """Return the profiles with the longest text that the library's name holds."""
    name = library.casefold()
    lengths = [max((len(text) for text in each.libraries if text.casefold() in name), default=0) for each in known]
    longest = max(lengths, default=0)
    return [profile for profile, length in zip(known, lengths, strict=True) if longest and length == longest]


def matched(rows: Sequence[Measurement], choose: Choose = profile_for) -> tuple[list[Matched], list[Skipped]]:
    """Return every row with its profile and features, and the rows that cannot be predicted."""
    systems, routed = cache(system_of), cache(_routes)
    units: dict[object, Features] = {}
    found: list[Matched] = []
    skipped: list[Skipped] = []
    for row in rows:
        try:
            system = systems(row.system)
        except InputError as error:
            reason = str(error.faults[0]) if os.path.exists(row.system) else f"unknown system {row.system}"
            skipped.append(Skipped(row.id, reason))
            continue
        try:
            if row.domains == 0:
                row = replace(row, domains=system.domains_of(row.ranks))
            found.append(_match(row, system, routed(system, 0 if system.whole else row.domains), units, choose))
        except InputError as error:
            skipped.append(Skipped(row.id, str(error.faults[0])))
    return found, skipped


def _routes(system: System, domains: int) -> Routes:
    return system.routes(domains)


def _match(row: Measurement, system: System, routes: Routes, units: dict[object, Features], choose: Choose) -> Matched:
    ranks = system.ranks(routes.fabric, row.ranks, row.domains)
    law = "expert" if row.is_expert else "collective"
    profile, note = choose(row.library, law, system.chip, system.bandwidth)
    require_law(row.kind, profile)
    kinds = [row.params.get(name) for name in ("hidden", "topk", "experts")]
    key = (row.system, row.domains, row.ranks, row.kind, profile.copies, row.dtype, *kinds)
    if key not in units:
        units[key] = _unit(row, system, routes, ranks, profile.copies)
    features = scaled(units[key], float(row.params["tokens"]) if row.is_expert else row.n_bytes / _UNIT)
    if "ring" in row.library.casefold().split():  # a run that was told to take rings
        features = replace(features, nvls=np.full(1, np.inf))
    return Matched(row, profile.within(row.library), features, routes, ranks, note)


def _unit(row: Measurement, system: System, routes: Routes, ranks: NDArray[np.intp], copies: str) -> Features:
    """Return the features of one token, or of a unit of bytes."""
    if not row.is_expert:
        return bulk_features(routes.fabric, row.kind, _UNIT, ranks, routes)
    moe = moe_of(row, 1.0, merged=copies == "per_domain")
    return expert_features(routes.fabric, row.kind, moe, ranks, copies, system.nic, routes)


def predicted_seconds(found: Sequence[Matched]) -> NDArray[np.float64]:
    """Return the prediction of every row, one call of its law per profile [s]."""
    seconds = np.zeros(len(found))
    groups: dict[tuple[str, float], list[int]] = {}
    for i, one in enumerate(found):
        groups.setdefault((one.profile.name, one.profile.constants.get("latency.environment", 1.0)), []).append(i)
    for places in groups.values():
        profile = found[places[0]].profile
        law = LAWS[profile.law]
        seconds[places] = law(profile.constants, stacked([found[i].features for i in places]))
    return seconds
