"""The command that makes one cluster of host files and a fabric file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rackbound._options import Json
from rackbound._output import emit_json, envelope
from rackbound._read_command import report_reading, row_of
from topo import Fault, InputError, Reading, expand_hostlist, together, write
from topo import join as joined
from topo import read as read_file

__all__ = ["join"]


def join(
    fabric: Annotated[str, typer.Argument(help="File of the fabric: ibnetdiscover, iblinkinfo, Slurm, ...")],
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of hosts, and forwarding tables.")],
    hosts: Annotated[
        list[str] | None,
        typer.Option("--hosts", metavar="[FILE=]NODES", help="Hosts of the fabric a file stands for, or all."),
    ] = None,
    domains: Annotated[
        list[str] | None,
        typer.Option("--domain", metavar="NAME=NODES", help="Hosts that share scale-up switches; blocks for Slurm's."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave hosts without a file as end points, no ranks.")] = False,
    out: Annotated[
        str | None, typer.Option("--write", "--save", help="Write the graph here (.json, .graphml, ...).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Join host files and a fabric file into one cluster."""
    base, readings, shared = together(
        lambda: read_file(fabric),
        lambda: together(*(lambda file=file: read_file(file) for file in files)),
        lambda: _domains(domains),
    )
    where: Any = "all" if hosts == ["all"] else _hosts(hosts, files, base)
    cluster = joined(readings, base, _by_graph(where, readings), domains=shared, keep=keep)
    written = None if out is None or cluster.graph is None else str(write(cluster.graph, out))
    row = row_of(fabric, cluster, written)
    if as_json:
        inputs = {
            "fabric": fabric, "files": files, "hosts": hosts or [], "domains": domains or [],
            "keep": keep, "write": out,
        }  # fmt: skip
        emit_json(envelope("join/1", inputs, cluster.notes, row))
        return
    report_reading(row, cluster)


def _hosts(texts: list[str] | None, files: list[str], base: Reading) -> dict[int, list[str]]:
    """Return number of a file -> hosts: as told, else the host that the file is named after."""
    known = {} if base.graph is None else base.graph.nodes
    found = {i: [Path(file).stem] for i, file in enumerate(files) if Path(file).stem in known}
    told: dict[int, list[str]] = {}
    for text in texts or ():
        name, equals, nodes = text.rpartition("=")
        if name not in files and (equals or len(files) > 1):
            raise InputError(Fault("--hosts", text, "must be a file, =, and its hosts", f"Files: {', '.join(files)}."))
        told.setdefault(files.index(name) if equals else 0, []).extend(expand_hostlist(nodes, place="--hosts"))
    return found | told


def _by_graph(where: Any, readings: Sequence[Reading]) -> Any:
    """Return hosts by the number `join` counts by: readings with a graph, tables left out."""
    if where == "all":
        return where
    numbers = [i for i, reading in enumerate(readings) if reading.graph is not None]
    return {numbers.index(i): names for i, names in where.items() if i in numbers}


def _domains(texts: list[str] | None) -> Any:
    """Return what `join` takes as domains."""
    if not texts or texts == ["blocks"]:
        return "blocks" if texts else None
    wrong = next((text for text in texts if "=" not in text), None)
    if wrong is not None:
        raise InputError(Fault("--domain", wrong, "must be a name, =, and hosts", 'Write rack0="n[1-18]".'))
    pairs = (text.split("=", 1) for text in texts)
    return {name: expand_hostlist(nodes, place="--domain") for name, nodes in pairs}
