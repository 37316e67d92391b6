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
        lambda: _workloads(others),
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
        for table, value in stated.items() if table not in _KEYS or not isinstance(value, dict)
    ]  # fmt: skip
    for table, keys in _KEYS.items():
        given = stated.get(table, {})
        faults += [
            Fault(f"{table}.{key}", given[key], "is not a key of a study", suggest(key, keys), path)
            for key in (given if isinstance(given, dict) else ()) if key not in keys
        ]  # fmt: skip
    faults += [
        Fault(f"{table}.{key}", None, "is missing", "Add it, as a value or a list.", path)
        for table, key in _NEEDED if not _listed(stated.get(table, {}).get(key, []))
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
    return stated


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


def _workloads(keys: dict[str, list[Any]]) -> dict[str, Workload]:
    swept = [name for name, values in keys.items() if len(values) > 1]
    rows: Iterable[tuple[Any, ...]] = product(*keys.values())
    made = [dict(zip(keys, row, strict=True)) for row in rows]
    return {
        ", ".join(f"{name} {row[name]}" for name in swept) or row.get("phase", "decode"): Workload(**row)
        for row in made
    }
