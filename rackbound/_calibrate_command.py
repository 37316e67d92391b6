"""The command `rackbound calibrate`: the constants of a machine from its logs, as a profile to predict with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from collectives import Calibration, Log, read_log, write_profile
from collectives import calibrate as calibrated
from rackbound._graphs import graph_of
from rackbound._options import Json, OneDomain, Settings, overrides_of
from rackbound._output import dumped, emit_json, envelope, note, require_folder, say, show_table, whole_folder
from rackbound._reports import assumed
from topo import Fault, InputError, is_graph_file, load_design, together
from topo.units import format_quantity

__all__ = ["calibrate"]


def calibrate(
    logs: Annotated[list[str], typer.Argument(help="Logs of nccl-tests, rccl-tests or nccom-test.")],
    design: Annotated[str, typer.Option(help="Catalogue name, design file or graph file they were run on.")],
    domains: OneDomain = None,
    kind: Annotated[str | None, typer.Option(help="Collective of all logs, where they do not say.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Ranks of all logs, where they do not say.")] = None,
    profile: Annotated[
        str | None, typer.Option(help="Where the fit starts: a name or file.  [default: that of the chip]")
    ] = None,
    save: Annotated[str | None, typer.Option(help="TOML file to write, for --profile.  [default: none]")] = None,
    settings: Settings = None,
    out: Annotated[str | None, typer.Option(help="Folder for the figure and calibrate.json.  [default: none]")] = None,
    as_json: Json = False,
) -> None:
    """Fit the constants of a profile to measured collectives."""
    overrides = overrides_of(settings)
    checks = [partial(require_folder, out)] if out is not None else []
    _, *read = together(
        partial(_require_toml, save), *(partial(read_log, path, kind=kind, n_ranks=ranks) for path in logs), *checks
    )[: 1 + len(logs)]
    graph = graph_of(design, domains or _needed(design, overrides, read), 1, overrides)
    name = Path(save).stem if save else f"{Path(design).stem}-calibrated"
    found = calibrated(read, graph, profile=profile, name=name)
    inputs = {
        "logs": logs, "design": design, "domains": domains, "kind": kind, "ranks": ranks, "profile": profile,
        "save": save, "settings": overrides,
    }  # fmt: skip
    whole = envelope("calibrate/1", inputs, found.notes, found.to_dict())
    if save is not None:
        write_profile(found.profile, save)
    if out is not None:
        _write(out, found, whole)
    if as_json:
        emit_json(whole)
        return
    _report(found, save)


def _require_toml(save: str | None) -> None:
    if save is not None and not save.endswith(".toml"):
        raise InputError(Fault("--save", save, "must be a TOML file", "Write --save my-cluster.toml."))


def _needed(design: str, overrides: dict[str, Any], logs: list[Log]) -> int | None:
    """Return as many domains as the ranks of the logs need."""
    ranks = max((sweep.n_ranks or 1 for log in logs for sweep in log.sweeps), default=1)
    if is_graph_file(design):
        return None
    return -(-ranks // load_design(design, overrides).design.domain_size)


def _report(found: Calibration, save: str | None) -> None:
    profile = found.profile
    say(f"{profile.name}: {found.median:.1%} off at the median, {found.p90:.1%} at the 90th percentile of "
        f"{found.n_rows} rows; {found.start} as it ships is {found.start_median:.1%} off")  # fmt: skip
    show_table("Runs", ("run", "sizes", "median off"),
               [(f"{one.kind}, {one.n_ranks} ranks, {one.n_domains} domain{'s' if one.n_domains > 1 else ''}",
                 f"{len(one.n_bytes)}: {format_quantity(min(one.n_bytes), 'bytes')} to "
                 f"{format_quantity(max(one.n_bytes), 'bytes')}", f"{one.median:.1%}")
                for one in found.curves])  # fmt: skip
    show_table("Constants that the logs tell", ("constant", "value", "standard error"),
               [(name, found.written(name), f"{error:.1%}") for name, error in profile.errors.items()])  # fmt: skip
    for line in found.warnings:
        note(line)
    assumed(found.notes)
    if save is not None:
        note(f"wrote {save}: predict with --profile {save}")


def _write(out: str, found: Calibration, whole: dict[str, Any]) -> None:
    import figures

    axes = figures.draw_calibration(found)
    with whole_folder(out) as folder:
        figures.save(axes, folder / "calibration")
        (folder / "calibrate.json").write_text(dumped(whole), encoding="utf-8")
    note(f"wrote calibrate.json and 2 figures into {out}")
