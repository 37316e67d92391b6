"""The commands that look at designs, models and the installation."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from rackbound._compare_command import measure_rows
from rackbound._defaults import DOMAINS
from rackbound._graphs import graph_of
from rackbound._options import Assume, Domains, Json, Settings, assumptions_of, overrides_of
from rackbound._output import emit_json, envelope, say, show_table
from rackbound._reports import assumed
from topo import Fabric, InputError, check, is_graph_file, list_designs, load, load_design, measure
from topo.units import format_quantity

__all__ = ["design", "doctor", "model"]

design = typer.Typer(no_args_is_help=True, help="Look at rack designs.")
model = typer.Typer(no_args_is_help=True, help="Look at models.")


@design.command("list")
def design_list(as_json: Json = False) -> None:
    """List the catalogue's designs."""
    designs = [load_design(name) for name in list_designs()]
    if as_json:
        rows = [
            {"name": d.design.name, "title": d.design.title, "aliases": list(d.design.aliases),
             "status": d.design.status, "domain_size": d.design.domain_size, "hbm_bytes": d.chip.hbm_bytes,
             "hbm_bandwidth": d.chip.hbm_bandwidth, "scale_up": d.scale_up.bandwidth,
             "scale_out": d.scale_out.per_gpu if d.scale_out else None} for d in designs
        ]  # fmt: skip
        emit_json(envelope("design-list/1", {}, (), rows))
        return
    show_table(
        "Designs (bandwidths per GPU and direction)",
        ("name", "GPUs", "scale-up", "wired as", "HBM", "HBM rate", "scale-out"),
        ((d.design.name if d.design.status == "shipping" else f"{d.design.name} ({d.design.status})",
          f"{d.design.domain_size:,}", format_quantity(d.scale_up.bandwidth, "bandwidth"),
          d.scale_up.shape, format_quantity(d.chip.hbm_bytes, "bytes"),
          format_quantity(d.chip.hbm_bandwidth, "bandwidth"),
          format_quantity(d.scale_out.per_gpu, "bandwidth") if d.scale_out else "none")
         for d in designs),
    )  # fmt: skip
    pods = ", ".join(d.design.name for d in designs if d.slices)
    say(f"\nGPUs are those of a domain. Slices of {pods} go by name: tpu-v5p-4x4x8, tpu-v4-4x4x8-twisted.")


@design.command("show")
def design_show(
    name: Annotated[str, typer.Argument(help="Catalogue name, design file or graph file.")],
    domains: Domains = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a design and what its graph measures. Its numbers, and their sources."""
    overrides = overrides_of(settings)
    shown = None if is_graph_file(name) else load_design(name, overrides)
    if shown is not None:
        domains = (DOMAINS if domains is None else domains) if shown.scale_out else 1
    graph = graph_of(name, domains, DOMAINS, overrides)
    found = measure(graph)
    sources = dict(shown.sources if shown is not None else graph.graph.get("sources", {}))
    title = shown.design.title if shown is not None else ""
    if as_json:
        numbers = _numbers(shown, echo=False) if shown is not None else {}
        results = {"name": found.name, "title": title, "numbers": numbers, "sources": sources,
                   "measures": found.to_dict()}  # fmt: skip
        inputs = {"design": name, "domains": found.domains, "settings": overrides}
        emit_json(envelope("design-show/1", inputs, found.assumptions, results))
        return
    say(f"{found.name or name}: {title or ('no title' if shown else 'a graph as its file has it')}\n")
    if shown is not None:
        rows = ((key, str(value), _source(sources, key)) for key, value in _numbers(shown, echo=True).items())
        show_table("Numbers (bandwidths per GPU and direction, latencies per link)", ("key", "value", "source"), rows)
        say()
    show_table(f"Measures, {found.domains:,} domains (bandwidths one direction)", ("measure", "value"),
               measure_rows(found).items())  # fmt: skip
    for kind, width in found.bisection.items():
        say(f"{kind} bisection, {width.ranks:,} ranks from {width.first}: {width.method}")
    assumed(found.assumptions)


def _source(sources: dict[str, str], key: str) -> str:
    """Return the source of a key or of the table it stands in."""
    return sources.get(key) or sources.get(key.rpartition(".")[0], "")


#: Last word of a key -> kind of quantity; the others are bandwidths.
_ECHO: dict[str, Any] = {
    "bytes": "bytes", "power": "watts", "price": "dollars", "latency": "seconds", "flops": "flops",
}  # fmt: skip


def _numbers(shown: Any, echo: bool) -> dict[str, Any]:
    """Dotted key -> value of a design, in SI or as the one canonical text; what is not stated is left out."""
    found: dict[str, Any] = {}
    for table in ("design", "chip", "scale_up", "scale_out", "slices"):
        record = getattr(shown, table)  # a design need not have a scale_out or slices
        for key, value in vars(record).items() if record else ():
            if key == "flops":
                found |= {f"{table}.{key}.{k}": _told(key, v, echo) for k, v in value.items()}
            elif key == "parameters":
                found |= {f"{table}.{k}": v for k, v in value.items()}
            elif value is not None and value not in ("", ()):
                found[f"{table}.{key}"] = _told(key, value, echo)
    return found


def _told(key: str, value: Any, echo: bool) -> Any:
    """Return one value as it is printed."""
    if isinstance(value, tuple):
        return [_told(key, each, echo) for each in value]
    if echo and isinstance(value, float) and key != "oversubscription":
        return format_quantity(value, _ECHO.get(key.rpartition("_")[2], "bandwidth"))
    return value


@design.command("check")
def design_check(
    name: Annotated[str, typer.Argument(help="Catalogue name or design file.")],
    domains: Domains = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Check a design file and the graph it makes; faults end with 2."""
    overrides = overrides_of(settings)
    if is_graph_file(name):
        graph = graph_of(name, domains, 1, overrides)
        if faults := check(graph):
            raise InputError(*faults)
        _report_check(name, overrides, str(graph.graph.get("name", "")), Fabric.from_graph(graph), as_json)
        return
    shown = load_design(name, overrides)
    count = (DOMAINS if domains is None else domains) if shown.scale_out else 1
    fabric = Fabric.from_graph(load(name, count, overrides))
    _report_check(name, overrides, shown.design.name, fabric, as_json)


def _report_check(name: str, overrides: dict[str, Any], title: str, fabric: Fabric, as_json: bool) -> None:
    count = len(fabric.domain_sizes)
    if as_json:
        inputs = {"design": name, "domains": count, "settings": overrides}
        emit_json(envelope("design-check/1", inputs, fabric.assumptions, {"name": title, "faults": []}))
        return
    say(f"{name}: no faults, as a file and as a graph of {count} domains ({fabric.n_ranks} GPUs)")
    assumed(fabric.assumptions)


@model.command("list")
def model_list(as_json: Json = False) -> None:
    """List the catalogue's models."""
    from serving import list_models, load_model

    models = [load_model(name) for name in list_models()]
    if as_json:
        rows = [{key: m.to_dict()[key] for key in _MODEL_ROW} for m in models]
        emit_json(envelope("model-list/1", {}, (), rows))
        return
    show_table(
        "Models", ("name", "parameters", "active", "layers", "experts", "weights", "KV per token (BF16)"),
        ((m.name, f"{m.total_params / 1e9:.1f} B", f"{m.active_params / 1e9:.1f} B", str(m.layers),
          f"{m.n_experts} top-{m.top_k} in {m.n_moe_layers} layers" if m.is_moe else "none: dense",
          f"{format_quantity(m.total_weight_bytes, 'bytes')} {m.weight_dtype}",
          format_quantity(m.kv_bytes_per_token, "bytes")) for m in models),
    )  # fmt: skip


_MODEL_ROW = (
    "name", "family", "total_params", "active_params", "layers", "n_experts", "top_k", "n_moe_layers",
    "weight_dtype", "total_weight_bytes", "kv_bytes_per_token",
)  # fmt: skip


@model.command("show")
def model_show(
    name: Annotated[str, typer.Argument(help="Catalogue name or a Hugging Face config.json.")],
    assume: Assume = None,
    layers: Annotated[bool, typer.Option("--layers", help="Show every kind of layer too.")] = False,
    as_json: Json = False,
) -> None:
    """Show what was read of a model."""
    from serving import load_model

    stated = assumptions_of(assume)
    shown = load_model(name, stated)
    if as_json:
        emit_json(envelope("model-show/1", {"model": name, "assume": stated}, shown.notes, shown.to_dict()))
        return
    say(f"{shown!r}\n")
    rows = [(key, f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value))
            for key, value in shown.to_dict().items()
            if key not in ("notes", "moe_layer_mask", "dense_params", "layer_table")]  # fmt: skip
    show_table("What was read (parameters; sizes in bytes)", ("field", "value"), rows)
    if layers:
        show_table(
            "Layers (FLOP at a context of 4096)",
            ("layers", "mixer", "window", "feed-forward", "parameters", "active", "KV per token", "FLOP per token"),
            _kinds(shown.layer_table()),
        )
    assumed(shown.notes)


def _kinds(table: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Return one row per kind of layer, with the layers of that kind."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(table):
        kinds.setdefault(tuple(row.values()), []).append(i)
    for which in kinds.values():
        row = table[which[0]]
        named = ", ".join(map(str, which[:3])) + (f" .. {which[-1]}" if len(which) > 3 else "")
        yield (
            f"{len(which)}: {named}", row["mixer"], str(row["window"] or "all"), row["feed_forward"],
            f"{row['params']:,}", f"{row['active_params']:,}", format_quantity(row["kv_bytes_per_token"], "bytes"),
            f"{row['flops_per_token']:.4g}",
        )  # fmt: skip


_FLOORS = ("topo", "collectives", "serving", "placement", "figures")
_NEEDS = ("networkx", "numpy", "scipy", "matplotlib", "pydantic", "typer", "rich", "lazy-loader")


def doctor(as_json: Json = False) -> None:
    """Say what is installed, and which file hides a package."""
    from rackbound import __version__

    home = Path(__file__).resolve().parent.parent
    hidden = _hidden(home)
    versions = {name: version(name) for name in _NEEDS}
    if as_json:
        results = {"python": platform.python_version(), "versions": versions, "home": str(home), "hidden": hidden,
                   "designs": len(list_designs())}  # fmt: skip
        emit_json(envelope("doctor/1", {}, (), results))
        return
    say(f"rackbound {__version__} at {home}, Python {platform.python_version()}, {platform.platform()}")
    say("  " + ", ".join(f"{name} {number}" for name, number in versions.items()))
    say(f"  {len(list_designs())} designs in the catalogue")
    for name, path in hidden.items():
        say(f"  {path} hides the package {name}: write `from rackbound import {name}`, or rename the file")
    if not hidden:
        say("  nothing hides a package")


def _hidden(home: Path) -> dict[str, str]:
    """Floors that `import` would find somewhere else, from the current folder as a script there would."""
    found: dict[str, str] = {}
    before, sys.path = sys.path, [str(Path.cwd()), *sys.path]
    try:
        for name in _FLOORS:
            spec = importlib.machinery.PathFinder.find_spec(name, sys.path)
            if spec is not None and spec.origin and Path(spec.origin).resolve().parent.parent != home:
                found[name] = spec.origin
    finally:
        sys.path = before
    return found
