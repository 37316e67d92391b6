"""What does a study file ask to be swept?"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx

from rackbound._defaults import CONTEXT
from rackbound._graphs import graph_of
from rackbound._options import engine_of
from serving import Model, Workload, load_model
from topo import Fault, InputError, is_graph_file, suggest, together

__all__ = ["Study", "read_study"]

_KEYS = {
    "study": ("designs", "domains", "models", "weight_dtype", "time", "engine"),
    "layout": ("ep", "tp", "pp"),
    "workload": tuple(field.name for field in fields(Workload)),
}
_NEEDED = (("study", "designs"), ("study", "models"), ("layout", "ep"))
_BATCHES = ("batch", "batch_per_gpu")
#: Keys that hold words, whole numbers, and one value for the whole study.
_WORDS = ("study.designs", "study.models", "study.weight_dtype", "study.time", "study.engine")
_NUMBERS = ("layout.ep", "layout.tp", "layout.pp", "workload.context", *(f"workload.{name}" for name in _BATCHES))
_ONE = ("study.time", "study.engine")


@dataclass(frozen=True)
class Study:
    """A study as read: what `serving.sweep` takes, and what was asked, every default filled in."""

    graphs: dict[str, nx.Graph[str]]
    models: dict[str, Model]
    workloads: dict[str, Workload]
    axes: dict[str, Any]
    time: str | None
    profile: Any
    inputs: dict[str, Any]


def read_study(path: str) -> Study:
    """Return the study of a TOML file: tables study, layout, workload; a list is swept, any other value is one.

    Raises
    ------
    InputError
        Everything wrong with it.
    """
    stated = _parsed(path)
    rows: dict[str, list[Any]] = {"study.domains": [None], "study.weight_dtype": [None], "study.time": [None],
                                  "study.engine": [None],
                                  "layout.tp": [1], "layout.pp": [1], "workload.context": [CONTEXT]}  # fmt: skip
    rows |= {f"{t}.{key}": _listed(value) for t, table in stated.items() for key, value in table.items()}
    batch = next((name for name in _BATCHES if f"workload.{name}" in rows), None)
    if batch is None:
        raise InputError(Fault("workload", None, "states no batch", "Give batch_per_gpu or batch, as [1, 64].", path))
    axes = {name: rows[f"layout.{name}"] for name in _KEYS["layout"]}
    axes |= {"batch": rows[f"workload.{batch}"], "context": rows["workload.context"]}
    of_work = {name: rows[f"workload.{name}"] for name in _KEYS["workload"] if f"workload.{name}" in rows}
    others = {name: values[:1] if name in ("context", *_BATCHES) else values for name, values in of_work.items()}
    graphs, models, workloads, profile = together(
        lambda: _graphs(rows["study.designs"], rows["study.domains"]),
        lambda: _models(rows["study.models"], rows["study.weight_dtype"]),
        lambda: _workloads(others, path),
        lambda: engine_of(rows["study.engine"][0]),
    )
    inputs = {name: rows[f"study.{name}"] for name in _KEYS["study"]} | {name: axes[name] for name in _KEYS["layout"]}
    time, engine = rows["study.time"][0], rows["study.engine"][0]
    told = inputs | {"time": time, "engine": engine, "workload": of_work}
    return Study(graphs, models, workloads, axes, time, profile, told)


def _parsed(path: str) -> dict[str, dict[str, Any]]:
    try:
        stated = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        rule = getattr(error, "strerror", None) or str(error)
        raise InputError(Fault("study", path, f"cannot be read: {rule}", "Name a study file.", path)) from None
    faults = [
        Fault(table, table, "is not a table of a study", suggest(table, _KEYS), path)
        for table in stated if table not in _KEYS
    ] + [
        Fault(table, value, "must be a table", f"Write [{table}], and its keys below.", path)
        for table, value in stated.items() if table in _KEYS and not isinstance(value, dict)
    ]  # fmt: skip
    tables = {table: value for table, value in stated.items() if isinstance(value, dict)}
    for table, keys in _KEYS.items():
        for key, value in tables.get(table, {}).items():
            if key not in keys:
                faults.append(Fault(f"{table}.{key}", value, "is not a key of a study", suggest(key, keys), path))
            else:
                faults += [replace(fault, file=path) for fault in _value_faults(f"{table}.{key}", value)]
    faults += [
        Fault(f"{table}.{key}", None, "is missing", "Add it, as a value or a list.", path)
        for table, key in _NEEDED if table not in stated or key not in tables.get(table, {key: 0})
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
    return stated


def _value_faults(place: str, value: Any) -> list[Fault]:
    """Return what is wrong with a key's value, or with the rows of its list."""
    rows = _listed(value)
    if not rows:
        return [Fault(place, value, "holds nothing", "Give one value or more, or leave the key out.")]
    if place in _ONE and isinstance(value, list):
        return [Fault(place, value, "is one for the whole study", "Give one, and write a study for each.")]
    if twice := [row for i, row in enumerate(rows) if row in rows[:i]]:
        return [Fault(place, twice[0], "stands there twice", "Give each once.")]
    if place in _WORDS:
        return [Fault(place, row, "must be text", "Write it in quotes.") for row in rows if not isinstance(row, str)]
    if place in _NUMBERS:
        strange = [row for row in rows if isinstance(row, bool) or not isinstance(row, int) or row < 1]
        return [Fault(place, row, "must be a whole number, one or more", "Correct it.") for row in strange]
    return []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _graphs(designs: list[str], domains: list[int | None]) -> dict[str, nx.Graph[str]]:
    several = len(domains) > 1
    return {
        f"{name} x {count}" if several else name: graph_of(name, None if is_graph_file(name) else count, 1)
        for name, count in product(designs, domains)
    }


def _models(names: list[str], dtypes: list[str | None]) -> dict[str, Model]:
    found = {}
    for name, dtype in product(names, dtypes):
        model = load_model(name)
        if dtype is not None:
            said = (*model.notes, f"routed experts and all other quantised weights taken as {dtype}")
            model = replace(model, weight_dtype=dtype, expert_dtype=None, notes=said)
        found[f"{name} {dtype}" if len(dtypes) > 1 else name] = model
    return found


def _workloads(keys: dict[str, list[Any]], path: str) -> dict[str, Workload]:
    swept = [name for name, values in keys.items() if len(values) > 1]
    rows: Iterable[tuple[Any, ...]] = product(*keys.values())
    made = [dict(zip(keys, row, strict=True)) for row in rows]
    return {
        ", ".join(f"{name} {row[name]}" for name in swept) or row.get("phase", "decode"): _workload(row, path)
        for row in made
    }


def _workload(row: dict[str, Any], path: str) -> Workload:
    try:
        return Workload(**row)
    except InputError as error:
        said = (replace(fault, place=f"workload.{fault.place}", file=path) for fault in error.faults)
        raise InputError(*said) from None
