"""Which profile predicts a measured row, and from what? Rows on the graphs of their systems, each kind costed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import log

import numpy as np

from collectives._features import bulk_features, expert_features, scaled
from collectives._measured import Measurement, Skipped, moe_of
from collectives._predict import LAWS, Features, stacked
from collectives._profile import Profile, list_profiles, load_profile
from topo import Fabric, InputError, list_designs, load, load_design

__all__ = ["Matched", "fabric_of_row", "matched", "predicted_seconds", "profile_for"]

#: Size that is costed; bytes on wires are proportional to it.
_UNIT = 1e9
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
    note : str
        What is not as fitted: an unseen chip or library; empty if all is.
    """

    row: Measurement
    profile: Profile
    features: Features
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
    for profile in found:
        if chip in profile.chips:
            return profile, note
    nearest = min(found, key=lambda profile: abs(log(max(bandwidth, 1.0) / max(profile.bandwidth, 1.0))))
    unseen = f"{nearest.name} was not fitted on {chip}"
    return nearest, f"{note}; {unseen}" if note else unseen


def _of_library(known: Sequence[Profile], library: str) -> list[Profile]:
    """Return the profiles with the longest text that the library's name holds."""
    name = library.casefold()
    lengths = [max((len(text) for text in each.libraries if text.casefold() in name), default=0) for each in known]
    longest = max(lengths, default=0)
    return [profile for profile, length in zip(known, lengths, strict=True) if longest and length == longest]


def fabric_of_row(system: str, domains: int) -> Fabric:
    """Return the graph of so many domains of a measured system."""
    return Fabric.from_graph(load(system, domains=domains))


def matched(
    rows: Sequence[Measurement], choose: Callable[[str, str, str, float], tuple[Profile, str]] = profile_for
) -> tuple[list[Matched], list[Skipped]]:
    """Return every row with its profile and features, and the rows that cannot be predicted."""
    fabrics = cache(fabric_of_row)
    known = cache(_is_design)
    units: dict[object, Features] = {}
    found: list[Matched] = []
    skipped: list[Skipped] = []
    for row in rows:
        if not known(row.system):
            skipped.append(Skipped(row.id, f"unknown system {row.system}"))
            continue
        try:
            fabric = fabrics(row.system, row.domains)
            found.append(_match(row, fabric, units, choose))
        except InputError as error:
            skipped.append(Skipped(row.id, str(error.faults[0])))
    return found, skipped


def _is_design(system: str) -> bool:
    try:
        return load_design(system).design.name in list_designs()
    except InputError:
        return False


def _match(
    row: Measurement,
    fabric: Fabric,
    units: dict[object, Features],
    choose: Callable[[str, str, str, float], tuple[Profile, str]],
) -> Matched:
    ranks = fabric.group(row.ranks)
    design = load_design(row.system)
    law = "expert" if row.is_expert else "collective"
    profile, note = choose(row.library, law, design.chip.name, design.scale_up.bandwidth)
    key = (row.system, row.domains, row.ranks, row.kind, profile.copies)
    key += (row.dtype, *sorted(item for item in row.params.items() if item[0] in ("hidden", "topk", "experts")))
    if row.is_expert:
        if key not in units:
            moe = moe_of(row, 1.0, merged=profile.copies == "per_domain")
            nic = design.scale_out.per_gpu if design.scale_out else np.inf
            units[key] = expert_features(fabric, row.kind, moe, ranks, profile.copies, nic)
        features = scaled(units[key], float(row.params["tokens"]))
    else:
        if key not in units:
            units[key] = bulk_features(fabric, row.kind, _UNIT, ranks)
        features = scaled(units[key], row.n_bytes / _UNIT)
        if "ring" in row.library.casefold().split():
            features = replace(features, nvls=np.full(1, np.inf))
    return Matched(row, profile.within(row.library), features, note)


def predicted_seconds(found: Sequence[Matched]) -> np.ndarray:
    """Return the prediction of every row, one call of its law per profile [s]."""
    seconds = np.zeros(len(found))
    groups: dict[tuple[str, float], list[int]] = {}
    for i, one in enumerate(found):
        groups.setdefault((one.profile.name, one.profile.constants["latency.environment"]), []).append(i)
    for places in groups.values():
        profile = found[places[0]].profile
        law = LAWS[profile.law]
        seconds[places] = law(profile.constants, stacked([found[i].features for i in places]))
    return seconds
