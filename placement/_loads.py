"""How many tokens did each expert get? What engines record, by layer, by step, and by where the tokens came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import plain
from placement._data_files import data_of, is_folder
from serving import Model
from topo import Fault, InputError

__all__ = ["LOAD_KINDS", "ExpertLoads", "in_model", "logical", "read_loads"]

Floats = NDArray[np.float64]
#: Tokens of every layer and expert, of steps or sources before that; the layers' numbers in the model; whether sources.
Found = tuple[Any, tuple[int, ...] | None, bool]


@dataclass(frozen=True, eq=False, repr=False)
class ExpertLoads:
    """Tokens that every expert of every layer got.

    Attributes
    ----------
    load : (layers, experts) float
        Tokens, in the file's unit.
    history : (steps, layers, experts) float or None
        The same step by step, where it was recorded.
    sources : (layers, sources, experts) float or None
        The same by the GPU, or domain, that the tokens came from.
    layers : tuple of int or None
        Each layer's number in the model, where the file says it.
    kind : str
        A key of `LOAD_KINDS`.
    notes : tuple of str
        What was filled in or left out.
    """

    load: Floats
    history: Floats | None
    sources: Floats | None
    layers: tuple[int, ...] | None
    kind: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        heavy = self.load.max(axis=1) / np.maximum(self.load.mean(axis=1), 1e-300)
        steps = "" if self.history is None else f", {len(self.history)} steps"
        who = "" if self.sources is None else f", from {self.sources.shape[1]} sources"
        size = f"{len(self.load)} layers x {self.load.shape[1]} experts{steps}{who}"
        return f"ExpertLoads({self.kind}: heaviest expert {heavy.max():.3g} times the mean; {size})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        found: dict[str, Any] = plain(self)
        return found

    def for_model(self, model: Model) -> ExpertLoads:
        """Return the loads of a model's MoE layers, one row each.

        Parameters
        ----------
        model : Model
            From `serving.load_model`. A recording of all its layers loses the dense ones; one
            layer stands for all. Layers without any token get a uniform load.

        Raises
        ------
        InputError
            Other experts or layers than the model has.
        """
        rows, note = in_model(self.load.shape, self.layers, model)
        load, layers = self.load[rows].copy(), np.flatnonzero(model.moe_layer_mask)
        sources = None if self.sources is None else self.sources[rows].copy()
        idle = ~load.any(axis=1)
        load[idle] = 1.0
        if sources is not None:
            sources[idle] = 1.0 / sources.shape[1]
        return replace(
            self,
            load=load,
            history=None if self.history is None else self.history[:, rows],
            sources=sources,
            layers=tuple(int(i) for i in layers),
            notes=(*self.notes, *note),
        )


def in_model(shape: tuple[int, ...], layers: tuple[int, ...] | None, model: Model) -> tuple[Any, tuple[str, ...]]:
    """Return which rows of a file are a model's MoE layers, and what was assumed."""
    count, moe = shape[0], np.flatnonzero(model.moe_layer_mask)
    if shape[1] != model.n_experts:
        rule = f"are {shape[1]} in the file, and {model.name} has {model.n_experts}"
        raise InputError(Fault("experts", shape[1], rule, "Give the file of this model."))
    if layers is not None and layers != tuple(range(count)):
        row = {number: i for i, number in enumerate(layers)}
        missing = [int(i) for i in moe if int(i) not in row]
        if missing:
            raise InputError(Fault("layers", missing, f"of {model.name} are not in the file", "Record all MoE layers."))
        return [row[int(i)] for i in moe], ()
    if count == len(moe):
        return np.arange(count), ()
    if count == model.layers:
        return moe, (f"{count - len(moe)} of {count} layers have no experts and are left out",)
    if count == 1:
        return np.zeros(len(moe), dtype=np.intp), (f"one layer stands for all {len(moe)}",)
    rule = f"are {count} in the file, and {model.name} has {len(moe)} MoE layers of {model.layers}"
    raise InputError(Fault("layers", count, rule, "Give a row for each."))


def read_loads(path: str | Path) -> ExpertLoads:
    """Read expert loads that an engine recorded.

    Parameters
    ----------
    path : str or path
        A file or folder. EPLB weights: JSON with "weight", or an array, as JSON, NumPy's .npy or
        .npz, a torch or safetensors file. SGLang: what its recorder dumps (.pt, the "stat" and "per_pass"
        modes; JSON of the same; its older CSV). vLLM: JSON lines of "eplb_load_stats". TensorRT-LLM:
        the folder of EXPERT_STATISTIC_PATH, where the rank that tokens came from is known. Also
        JSON of layer -> expert -> tokens, logs with "expert 3: 17 tokens", and {"sources": [...]} of shape
        (layers, GPUs or domains, experts): tokens by where they came from.

    Returns
    -------
    ExpertLoads

    Raises
    ------
    InputError
        A file of another kind, cut off, or with loads that are no loads: all of them.

    Examples
    --------
    >>> import json, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "weight.json"
    ...     _ = file.write_text(json.dumps({"weight": [[90, 132, 40], [20, 107, 104]]}))
    ...     read_loads(file)
    ExpertLoads(eplb: heaviest expert 1.51 times the mean; 2 layers x 3 experts)
    """
    data = _folder(Path(path)) if is_folder(path) else data_of(path)
    for kind, look in LOAD_KINDS.items():
        try:
            found = look(data)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            rule = f"is no whole file of kind {kind}: {type(error).__name__} {error}"
            raise InputError(Fault("file", Path(path).name, rule, "Write it again.", str(path))) from None
        if found is not None:
            return _checked(kind, *found, str(path))
    raise InputError(_unknown(data, str(path)))


def _unknown(data: Any, file: str) -> Fault:
    maps = ("initial_global_assignments", "layer_list", "physical_to_logical_map", "phy2log", "slot_expert")
    if isinstance(data, Mapping) and any(key in data for key in maps):
        return Fault("file", sorted(map(str, data)), "is a placement, which has no loads", "Use read_plan.", file)
    other = "nothing" if isinstance(data, str) and not data.strip() else type(data).__name__
    told = sorted(map(str, data))[:8] if isinstance(data, Mapping) else other
    known = f"Known: {', '.join(LOAD_KINDS)}."
    return Fault("file", told, "holds no expert loads of a known kind", known, file)


def _checked(kind: str, values: Any, layers: tuple[int, ...] | None, by_source: bool, file: str) -> ExpertLoads:
    try:
        if _has_truth(values):
            raise TypeError
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(Fault("loads", kind, "must be numbers, a row for each layer", "Correct it.", file)) from None
    notes = ["a single row counts as one layer"] if found.ndim == 1 else []
    found = found[None] if found.ndim == 1 else found
    faults = []
    if found.ndim not in (2, 3) or 0 in found.shape:
        rule = "must have shape (experts,), (layers, experts) or (steps, layers, experts)"
        faults.append(Fault("loads", found.shape, rule, "Give a row for each layer.", file))
    for bad, rule in ((~np.isfinite(found), "must be finite"), (found < 0, "must be zero or more")):
        if bad.any():
            where = "loads[" + ", ".join(str(int(i)) for i in np.argwhere(bad)[0]) + "]"
            cure = f"Correct {int(bad.sum())} of {found.size} loads."
            faults.append(Fault(where, str(found[bad][0]), rule, cure, file))
    if faults:
        raise InputError(*faults)
    whole = found.sum(axis=0) if found.ndim == 3 else found
    empty = int((whole.sum(axis=1) == 0).sum())
    notes += [f"{empty} of {len(whole)} layers have no tokens: they count as uniform"] if empty else []
    history = found if found.ndim == 3 and not by_source else None
    return ExpertLoads(whole, history, found.swapaxes(0, 1) if by_source else None, layers, kind, tuple(notes))


def _has_truth(values: Any) -> bool:
    """Whether true or false stands among numbers."""
    if isinstance(values, list | tuple):
        return any(map(_has_truth, values))
    return isinstance(values, bool | np.bool_) or (isinstance(values, np.ndarray) and values.dtype == bool)


# --- kinds -----------------------------------------------------------------------------------------------------------


#: More experts than any layer has: a number that is wrong, not an array to make.
_MOST = 100_000


def _experts(n: int) -> int:
    if n > _MOST:
        raise InputError(Fault("experts", n, "are more than any layer has", "Count experts from 0."))
    return n


def logical(count: Any, physical: Any) -> Floats:
    """Return tokens of experts (..., layers, experts) from those of their slots (..., layers, slots)."""
    count, slots = np.asarray(count, dtype=np.float64), np.asarray(physical).astype(np.intp)
    if slots.ndim != 2 or count.shape[-2:] != slots.shape or slots.min(initial=0) < 0:
        raise InputError(Fault("slots", slots.shape, f"do not belong to counts of {count.shape}", "Write it again."))
    found = np.zeros((*count.shape[:-1], _experts(int(slots.max(initial=-1)) + 1)))
    for slot in range(slots.shape[1]):  # no expert twice in one step
        found[..., np.arange(len(slots)), slots[:, slot]] += count[..., slot]
    return found


def _eplb(data: Any) -> Found | None:
    if isinstance(data, Mapping):
        named = [data[key] for key in ("weight", "tokens_per_expert", "expert_load") if key in data]
        return (named[0], None, False) if named else None
    rows = isinstance(data, list) and bool(data) and isinstance(data[0], list | int | float)
    return (data, None, False) if rows or isinstance(data, np.ndarray) else None


def _sources(data: Any) -> Found | None:
    """Read layers, sources and experts: tokens by the GPU or domain they came from."""
    if not isinstance(data, Mapping) or "sources" not in data:
        return None
    asked = np.asarray(data["sources"], dtype=np.float64)
    if asked.ndim != 3:
        rule = "must have shape (layers, GPUs or domains, experts)"
        raise InputError(Fault("sources", asked.shape, rule, "Give a row for each."))
    return asked.swapaxes(0, 1), None, True


def _sglang(data: Any) -> Found | None:
    """Read the recorder's "stat" mode, which has experts' counts by step, or "per_pass": slots', by pass and rank."""
    if isinstance(data, Mapping) and "logical_count" in data:
        return data["logical_count"], None, False
    dumps = data if isinstance(data, list) else [data]
    if not all(isinstance(one, Mapping) and "last_physical_to_logical_map" in one for one in dumps) or not dumps:
        return None
    passes: dict[int, Any] = {}
    for one in dumps:
        for record in one["records"]:
            number = record["forward_pass_id"]
            passes[number] = passes.get(number, 0) + logical(
                record["global_physical_count"], one["last_physical_to_logical_map"]
            )
    return list(passes.values()), None, False


def _vllm(data: Any) -> Found | None:
    lines = data if isinstance(data, list) else [data]
    steps = [one for one in lines if isinstance(one, Mapping) and one.get("record_type") == "eplb_load_stats"]
    return ([logical(one["expert_load"], one["p2l_map"]) for one in steps], None, False) if steps else None


def _tensorrt_llm(data: Any) -> Found | None:
    """Read counts by rank, named by iteration and layer."""
    if not isinstance(data, Mapping) or "rank_files" not in data:
        return None
    layers = sorted({int(key.split("_")[1]) for one in data["rank_files"] for key in one})
    wide = _experts(data["num_experts"])
    found = np.zeros((len(data["rank_files"]), len(layers), wide))
    for rank, one in enumerate(data["rank_files"]):
        for key, count in one.items():
            found[rank, layers.index(int(key.split("_")[1]))] += count
    return found, tuple(layers), True


def _nested(data: Any) -> Found | None:
    """Read layer -> expert -> tokens."""
    if not isinstance(data, Mapping) or not data or not all(isinstance(row, Mapping) for row in data.values()):
        return None
    if not all(str(key).isdigit() for row in (data, *data.values()) for key in row):
        return None
    return _table([(int(a), int(b), n) for a, row in data.items() for b, n in row.items()])


def _csv(data: Any) -> Found | None:
    lines = [line.strip() for line in data.splitlines() if line.strip()] if isinstance(data, str) else []
    if not lines or [name.strip() for name in lines[0].split(",")] != ["layer_id", "expert_id", "count"]:
        return None
    return _table([(int(a), int(b), float(n)) for a, b, n in (line.split(",") for line in lines[1:])])


def _table(rows: list[tuple[int, int, float]]) -> Found:
    for layer, expert, _ in rows:
        if layer < 0 or expert < 0:
            raise InputError(Fault("expert", f"{expert} of layer {layer}", "is below zero", "Count both from 0."))
    layers = sorted({layer for layer, *_ in rows})
    found = np.zeros((len(layers), _experts(max(expert for _, expert, _ in rows) + 1)))
    for layer, expert, count in rows:
        found[layers.index(layer), expert] += count
    return found, tuple(layers), False


_LOGGED = re.compile(r"^\s*expert\s+(\d+)\s*:\s*(\d+)\s+tokens?\b", re.M | re.I)


def _log(data: Any) -> Found | None:
    """Read lines "expert 3: 17 tokens"; a layer begins where expert 0 comes again."""
    rows: list[list[float]] = []
    for number, count in _LOGGED.findall(data) if isinstance(data, str) else ():
        if number == "0":
            rows.append([])
        if not rows or int(number) != len(rows[-1]):
            rule = "is not the next expert: they must be in order from 0"
            raise InputError(Fault("expert", int(number), rule, "Give the whole log."))
        rows[-1].append(float(count))
    return (rows, None, False) if rows else None


def _folder(path: Path) -> Any:
    """Return what TensorRT-LLM's or SGLang's files of all ranks hold together."""
    if (path / "meta_info.json").is_file():
        files = sorted(path.glob("rank*.safetensors"), key=lambda file: (len(file.name), file.name))
        counted = [data_of(file) for file in files if not file.stem.endswith("_raw")]
        if counted:
            return {"rank_files": counted, "num_experts": int(data_of(path / "meta_info.json")["num_experts"])}
    dumps = [data_of(file) for file in sorted(path.glob("*.pt"))]
    if not dumps:
        rule = "holds neither meta_info.json with rank*.safetensors nor recordings *.pt"
        raise InputError(Fault("folder", path.name, rule, "Give the folder the engine wrote.", str(path)))
    return dumps


#: What wrote it -> loads, layer numbers and whether the first axis is sources; None for what is something else.
LOAD_KINDS: dict[str, Callable[[Any], Found | None]] = {
    "sglang": _sglang,
    "vllm": _vllm,
    "tensorrt-llm": _tensorrt_llm,
    "eplb": _eplb,
    "sources": _sources,
    "sglang-csv": _csv,
    "counts": _nested,
    "log": _log,
}
