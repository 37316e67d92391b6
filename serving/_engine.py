"""How long does a serving engine take for a step? Kernels below full rate, one after the other, and launches."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping

from collectives import Constant, Profile, Shelf, list_profiles, load_profile
from serving._elementwise import Number
from serving._layout import Layout
from serving._model import Model
from serving._operations import Part
from topo import Fault, InputError, suggest

__all__ = [
    "ENGINE",
    "ENGINES",
    "UNSEEN",
    "band_of",
    "engine_of",
    "engine_seconds",
    "engine_work",
    "list_engines",
    "load_engine",
    "on_ideal_wires",
]

#: What a profile of an engine holds.
ENGINE: dict[str, Constant] = {
    "launch.layer": Constant("seconds", "each layer: kernels started, tails, small kernels no roofline counts"),
    "launch.experts": Constant("seconds", "each layer with routed experts, beyond that"),
    "launch.round": Constant("seconds", "each doubling of the ranks of a collective"),
    "read.dense": Constant("ratio", "of HBM bandwidth: KV cache and all weights but the routed experts'"),
    "read.experts": Constant("ratio", "of HBM bandwidth: routed experts"),
    "compute.dense": Constant("ratio", "of the chip's FLOP/s, the same"),
    "compute.experts": Constant("ratio", "of the chip's FLOP/s: routed experts"),
    "wire.efficiency": Constant("ratio", "of the wires' time alone"),
}
#: Where profiles of engines stand.
ENGINES = Shelf("serving", {"engine": ENGINE}, "docs/engines.md")

#: Error to expect of nine in ten on a chip the profile was not fitted on.
UNSEEN = 0.4


def list_engines() -> tuple[str, ...]:
    """Return the names of the engine profiles that ship.

    Examples
    --------
    >>> "vllm-blackwell" in list_engines()
    True
    """
    return list_profiles(ENGINES)


def load_engine(name_or_path: str | os.PathLike[str] | Profile) -> Profile:
    """Return the validated profile of an engine: a name of `list_engines`, a TOML file, or one already loaded.

    Raises
    ------
    InputError
        Unknown name, unreadable file, or anything wrong in it.

    Examples
    --------
    >>> load_engine("vllm-blackwell").fitted.year
    2026
    """
    found = load_profile(name_or_path, ENGINES)
    if found.law != "engine":
        raise InputError(Fault("engine", found.name, "is a profile of collectives", suggest("", list_engines())))
    faults = [
        Fault(f"constants.{name}", found.constants[name], "must lie in 0 .. 1, 0 excluded", "Write 0.8.", found.name)
        for name, row in ENGINE.items() if row.unit == "ratio" and not 0 < found.constants[name] <= 1
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
    return found


def on_ideal_wires(profile: str | os.PathLike[str] | Profile) -> Profile | None:
    """Return the engine of a profile that is one, None of ideal wires; other software is refused.

    Raises
    ------
    InputError
        Software of collectives.
    """
    engine = engine_of(profile)
    if engine is None and (found := load_profile(profile)).name != "ideal":
        rule = "predicts collectives, and many steps at once are worked out on ideal wires"
        raise InputError(Fault("profile", found.name, rule, f"Name an engine: {', '.join(list_engines())}."))
    return engine


def engine_of(profile: str | os.PathLike[str] | Profile, expert_profile: object = None) -> Profile | None:
    """Return the engine that a profile of a step names; None where it names software of collectives."""
    law = profile.law if isinstance(profile, Profile) else ""
    if law != "engine" and profile not in list_engines():
        return None
    if expert_profile is not None:
        rule = "does not go with an engine, which has its own dispatch and combine"
        raise InputError(Fault("expert_profile", str(expert_profile), rule, "Leave one of the two out."))
    return load_engine(profile)


def engine_work(
    parts: Iterable[Part[Number]], model: Model, layout: Layout, draft: int = 0
) -> dict[str, Number | float]:  # fmt: skip
    """Return what each constant of an engine multiplies or divides in one step.

    Parameters
    ----------
    parts : iterable of Part
        Operations of the step, on ideal wires; or of many steps, of numbers side by side.
    model, layout : records
        What is run, and how it is cut.
    draft : int, optional
        Passes of the drafting layer.

    Returns
    -------
    dict
        Constant -> count (launches), or seconds at full rate (efficiencies).

    Examples
    --------
    >>> from serving import load_model
    >>> work = engine_work([Part("a", 3.0, 1.0, 3.0)], load_model("llama-3.1-70b"), Layout(1, tp=8))
    >>> work["launch.layer"], work["launch.round"], work["read.dense"]
    (80.0, 480.0, 3.0)
    """
    parts = list(parts)
    experts = [part for part in parts if part.name == "routed experts"]
    others = [part for part in parts if part.name != "routed experts"]
    layers, moe = model.layers + draft, model.n_moe_layers + draft * model.moe_layer_mask[-1]
    rounds = layers * (2 * math.log2(layout.tp) + math.log2(layout.cp)) + 2 * moe * math.log2(layout.ep)
    return {
        "launch.layer": float(layers),
        "launch.experts": float(moe),
        "launch.round": rounds + layout.pp - 1,
        "read.dense": sum(part.memory_seconds for part in others),
        "read.experts": sum(part.memory_seconds for part in experts),
        "compute.dense": sum(part.compute_seconds for part in others),
        "compute.experts": sum(part.compute_seconds for part in experts),
        "wire.efficiency": sum(part.network_seconds for part in parts),
    }


def engine_seconds(constants: Mapping[str, float], work: Mapping[str, Number | float]) -> Number | float:
    """Return the time of a step: launches, and every kernel's reading, arithmetic and wires one after the other [s].

    With every launch at zero and every efficiency at one that is `serial`, or more where a kernel overlaps reading
    and arithmetic; so no engine is below `serial`.

    Parameters
    ----------
    constants, work : mapping of str to float
        Of the engine, and of the step: see `engine_work`.

    Examples
    --------
    >>> constants = dict.fromkeys(ENGINE, 0.5)
    >>> engine_seconds(constants, {"launch.layer": 4.0, "read.dense": 3.0})
    8.0
    """
    return sum(
        value * constants[name] if ENGINE[name].unit == "seconds" else value / constants[name]
        for name, value in work.items()
    )


def band_of(seconds: float, engine: Profile, chip: str) -> tuple[tuple[float, float], list[str]]:
    """Return where nine in ten measured times lie, and what the engine takes for granted."""
    seen = chip in engine.chips
    off = engine.band[1] if seen else max(UNSEEN, engine.band[1])
    said = [f"engine {engine.name}, version {engine.version}: nine in ten measurements within {off:.0%}; "
            "operations, binding and links are those at full rate"]  # fmt: skip
    said += [] if seen else [f"engine {engine.name} was not fitted on {chip}"]
    return (seconds / (1 + off), seconds / (1 - off) if off < 1 else math.inf), said
