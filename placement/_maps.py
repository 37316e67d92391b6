"""How does a placement get into a serving engine, and out of one? A row of PLAN_FORMATS a format."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement._data_files import data_of
from placement._loads import in_model
from serving import Model, PlacementPlan
from topo import Fault, InputError, suggest

__all__ = ["PLAN_FORMATS", "read_plan", "write_plan"]

Ints = NDArray[np.intp]
#: Expert of every slot (layers, slots), GPU after GPU; slots of every GPU or None; the layers' numbers or None.
Found = tuple[Any, Any, tuple[int, ...] | None]


def read_plan(path: str | Path, *, gpus: int | None = None, model: Model | None = None) -> PlacementPlan:
    r"""Read which GPU holds which expert.

    Parameters
    ----------
    path : str or path
        A file of a format in `PLAN_FORMATS`.
    gpus : int, optional
        GPUs the experts are spread over, for files that do not say it; each has as many slots.
    model : Model, optional
        The plan is then for its layers: what else the file has is left out.

    Returns
    -------
    PlacementPlan
        Of one stage, if the file says nothing else.

    Raises
    ------
    InputError
        A file of another kind, cut off, without GPUs, with an expert without a slot.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "map.yaml"
    ...     _ = file.write_text("initial_global_assignments: {3: [0, 1, 2, 0]}\nnum_slots: 4\n")
    ...     read_plan(file, gpus=2).slot_rank.tolist()
    [[0, 0, 1, 1]]
    """
    if gpus is not None and (isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1):
        raise InputError(Fault("gpus", gpus, "must be a whole number, one or more", "Give 72."))
    data, file = data_of(path), str(path)
    lines = data if isinstance(data, list) else [data]
    for one in lines:
        found = _read(one, gpus, file) if isinstance(one, Mapping) else None
        if isinstance(found, PlacementPlan):
            return found
        if found is not None:
            return _plan(*found, gpus, model, file)
    rule = "holds no placement of a known format"
    raise InputError(Fault("file", Path(path).name, rule, f"Known: {', '.join(PLAN_FORMATS)}.", file))


def write_plan(
    plan: PlacementPlan, path: str | Path, format: str = "plan", *, model: Model | None = None
) -> tuple[str, ...]:  # fmt: skip
    """Write a placement for an engine to load; a file that was there is replaced whole.

    Parameters
    ----------
    plan : PlacementPlan
        Where the experts are.
    path : str or path
        The file.
    format : {"plan", "tensorrt-llm", "ascend", "vllm", "sglang", "eplb"}, optional
        "plan": everything, for `read_plan`. "tensorrt-llm": YAML for its moe_config's load_balancer.
        "ascend": JSON for vllm-ascend's expert_map_path. "vllm": a JSON line "eplb_initial_mapping" for its
        eplb_config's initial_mapping_path. "sglang": JSON for its --init-expert-location. "eplb": JSON with the
        three arrays of `rebalance_experts`.
    model : Model, optional
        Says which layers have experts; without it they are the last ones.

    Returns
    -------
    tuple of str
        What the file does not say, and what was assumed.

    Raises
    ------
    InputError
        An unknown format, unequal slots, a file that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from serving import Layout
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "map.json"
    ...     write_plan(PlacementPlan.contiguous(8, (False, True), Layout(ep=2)), file, "sglang")
    ...     read_plan(file, gpus=2).gpu_load([1] * 8).tolist()
    ('the 1 layers with experts are the last of 2',)
    [[4.0, 4.0], [4.0, 4.0]]
    """
    if format not in PLAN_FORMATS:
        raise InputError(Fault("format", format, "is not known", suggest(str(format), PLAN_FORMATS)))
    moe, layers = len(plan.slot_expert), len(plan.layer_stage)
    notes = []
    if format == "plan":
        number = list(range(layers - moe, layers))
    elif model is not None:
        number = [int(i) for i in np.flatnonzero(model.moe_layer_mask)]
        if len(number) != moe:
            rule = f"has {moe} layers with experts, and {model.name} has {len(number)}"
            raise InputError(Fault("plan", repr(plan), rule, "Give the model it is for."))
    else:
        number = list(range(layers - moe, layers))
        notes += [f"the {moe} layers with experts are the last of {layers}"] if moe < layers else []
    if format != "plan":
        _require_even(plan, format)
        if plan.slot_share is not None and not np.allclose(plan.slot_share, 1 / _copies(plan), rtol=1e-3):
            notes.append(f"{format} has no shares: the engine decides which copy of an expert a token goes to")
    _replace(Path(path), PLAN_FORMATS[format](plan, number))
    return tuple(notes)


def _copies(plan: PlacementPlan) -> NDArray[np.intp]:
    return np.take_along_axis(plan.logcnt, plan.slot_expert, 1)


def _require_even(plan: PlacementPlan, format: str) -> None:
    """Refuse what engines cannot hold: they give every GPU as many slots."""
    slots = np.array([np.bincount(row, minlength=plan.ep) for row in plan.slot_rank])
    if slots.size and slots.min() != slots.max():
        n = int(plan.slot_expert.max()) + 1
        least = -n % plan.ep
        rule = f"has {slots.min()} to {slots.max()} slots a GPU, and {format} has as many on each"
        cure = f"Place {least}, {least + plan.ep}, {least + 2 * plan.ep}, ... replicas."
        raise InputError(Fault("plan", repr(plan), rule, cure))


def _replace(path: Path, text: str) -> None:
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
            draft = Path(folder) / "draft"
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
    except OSError as error:
        rule = f"cannot be written: {error.strerror}"
        raise InputError(Fault("path", str(path), rule, "Name a file in a folder you may write to.")) from None


# --- writers ---------------------------------------------------------------------------------------------------------


def _json(data: Any) -> str:
    return json.dumps(data, allow_nan=False) + "\n"


def _as_plan(plan: PlacementPlan, number: list[int]) -> str:
    return _json(plan.to_dict())


def _as_tensorrt_llm(plan: PlacementPlan, number: list[int]) -> str:
    rows = "".join(f"  {i}: {row.tolist()}\n" for i, row in zip(number, plan.phy2log, strict=True))
    slots = plan.slot_expert.shape[1]
    return f"initial_global_assignments:\n{rows}num_slots: {slots}\nlayer_updates_per_iter: 0\n"


def _as_vllm(plan: PlacementPlan, number: list[int]) -> str:
    slots, experts = plan.slot_expert.shape[1], plan.logcnt.shape[1]
    return _json({
        "record_type": "eplb_initial_mapping", "version": 1, "num_redundant_experts": slots - experts,
        "num_slots": slots,
        "initial_global_assignments": {str(i): row.tolist() for i, row in enumerate(plan.phy2log)},
    })  # fmt: skip


def _as_ascend(plan: PlacementPlan, number: list[int]) -> str:
    layers = [
        {
            "layer_id": i, "device_count": plan.ep,
            "device_list": [{"device_id": gpu, "device_expert": held.tolist()}
                            for gpu, held in enumerate(row.reshape(plan.ep, -1))],
        }
        for i, row in enumerate(plan.phy2log)
    ]  # fmt: skip
    return json.dumps({"moe_layer_count": len(layers), "layer_list": layers}, indent=1) + "\n"


def _as_sglang(plan: PlacementPlan, number: list[int]) -> str:
    """All layers, those without experts too: their row is not used."""
    slots = plan.slot_expert.shape[1]
    whole = np.tile(np.arange(slots) % max(1, plan.logcnt.shape[1]), (len(plan.layer_stage), 1))
    whole[number] = plan.phy2log
    return _json({"physical_to_logical_map": whole.tolist()})


def _as_eplb(plan: PlacementPlan, number: list[int]) -> str:
    arrays = {name: getattr(plan, name).tolist() for name in ("phy2log", "log2phy", "logcnt")}
    return _json(arrays | {"num_replicas": plan.slot_expert.shape[1], "num_gpus": plan.ep})


#: Format -> the text of its file, given the numbers of the layers with experts.
PLAN_FORMATS: dict[str, Callable[[PlacementPlan, list[int]], str]] = {
    "plan": _as_plan,
    "tensorrt-llm": _as_tensorrt_llm,
    "ascend": _as_ascend,
    "vllm": _as_vllm,
    "sglang": _as_sglang,
    "eplb": _as_eplb,
}


# --- readers ---------------------------------------------------------------------------------------------------------


def _read(data: Mapping[str, Any], gpus: int | None, file: str) -> Found | PlacementPlan | None:
    """Return what one object says, by the key that only its format has."""
    try:
        if "slot_expert" in data:
            return PlacementPlan.from_dict(dict(data))
        if "initial_global_assignments" in data:
            rows = {int(i): row for i, row in data["initial_global_assignments"].items()}
            rows = dict(sorted(rows.items()))
            layers = None if "record_type" in data else tuple(rows)
            return list(rows.values()), _even(list(rows.values()), gpus), layers
        if "layer_list" in data:
            held = [[device["device_expert"] for device in layer["device_list"]] for layer in data["layer_list"]]
            slots = [[len(experts) for experts in layer] for layer in held]
            return [[e for experts in layer for e in experts] for layer in held], slots, None
        for key in ("physical_to_logical_map", "phy2log"):
            if key in data:
                return data[key], _even(data[key], data.get("num_gpus", gpus)), None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"is no whole placement: {type(error).__name__} {error}"
        raise InputError(Fault("file", Path(file).name, rule, "Write it again.", file)) from None
    return None


def _even(rows: Any, gpus: int | None) -> list[list[int]] | None:
    return None if gpus is None else [[len(row) // gpus] * gpus for row in rows]


def _plan(
    rows: Any, slots: Any, layers: tuple[int, ...] | None, gpus: int | None, model: Model | None, file: str
) -> PlacementPlan:  # fmt: skip
    if slots is None:
        raise InputError(Fault("gpus", None, "are not in the file", "Give gpus=, as many slots on each.", file))
    expert, faults = _whole_numbers(rows), []
    if expert is None or expert.shape[1] == 0:
        rule = "must be whole numbers, as many slots in every layer"
        raise InputError(Fault("slots", "array", rule, "Give a row for each layer.", file))
    if len({len(layer) for layer in slots}) > 1 or any(sum(layer) != expert.shape[1] for layer in slots):
        rule = f"do not share {expert.shape[1]} slots equally, or are others in every layer"
        raise InputError(Fault("gpus", len(slots[0]), rule, "Give the number of GPUs it was made for.", file))
    if gpus is not None and gpus != len(slots[0]):
        faults.append(Fault("gpus", gpus, f"are {len(slots[0])} in the file", "Leave it out.", file))
    n = model.n_experts if model is not None else int(expert.max()) + 1
    if n > expert.shape[1]:
        rule = f"are more than the {expert.shape[1]} slots"
        raise InputError(Fault("experts", n, rule, "Give every expert a slot, counted from 0.", file))
    for i, row in enumerate(expert):
        absent = np.setdiff1d(np.arange(n), row)
        if row.min() < 0 or row.max() >= n:
            faults.append(Fault(f"layer {i}", int(row.max()), f"is none of the {n} experts", "Count from 0.", file))
        elif len(absent):
            faults.append(Fault(f"expert {absent[0]}", f"layer {i}", "has no slot", "Give every expert a slot.", file))
    if faults:
        raise InputError(*faults[:20])
    rank = np.array([np.repeat(np.arange(len(layer)), layer) for layer in slots])
    keep: Any = slice(None)
    if model is not None:
        keep, _ = in_model((len(expert), n), layers, model)
    stage = np.zeros(len(expert) if model is None else model.layers, dtype=np.intp)
    return PlacementPlan(expert[keep], rank[keep], stage, len(slots[0]), 1)


def _whole_numbers(rows: Any) -> Ints | None:
    try:
        found = np.asarray(rows)
    except ValueError:  # ragged
        return None
    return found.astype(np.intp) if found.ndim == 2 and np.issubdtype(found.dtype, np.integer) else None
