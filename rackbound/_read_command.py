"""The command that reads files people already have: what a file is, what it says, what had to be assumed."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import networkx as nx
import typer

from rackbound._options import Json
from rackbound._output import emit_json, envelope, say, show_table
from rackbound._reports import assumed
from topo import READERS, Fault, InputError, Reading, check, together, write
from topo import read as read_file

__all__ = ["read", "report_reading", "row_of"]


def read(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files; their kind is told by their content.")],
    kind: Annotated[str | None, typer.Option("--as", help="Kind, where the content does not tell.")] = None,
    out: Annotated[
        str | None, typer.Option("--write", "--save", help="Write the graph here (.json, .graphml, ...).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a topology from a file people already have. Of a host, or of a fabric."""
    if out is not None and len(files) > 1:
        raise InputError(Fault("--write", out, f"takes one file, not {len(files)}", "Write them one by one."))
    readings = together(*(lambda file=file: read_file(file, kind) for file in files))
    written = None if out is None else _written(readings[0], out, files[0])
    rows = [row_of(file, reading, written) for file, reading in zip(files, readings, strict=True)]
    if as_json:
        notes = (note for reading in readings for note in reading.notes)
        emit_json(envelope("read/1", {"files": files, "as": kind, "write": out}, notes, rows))
        return
    for row, reading in zip(rows, readings, strict=True):
        report_reading(row, reading)


def _written(reading: Reading, out: str, file: str) -> str:
    if reading.graph is None:
        raise InputError(Fault("--write", out, "needs a graph, and the file holds forwarding tables alone",
                               "Give the file of the fabric.", file))  # fmt: skip
    return str(write(reading.graph, out))


def row_of(file: str, reading: Reading, written: str | None) -> dict[str, Any]:
    """Return what `--json` says of a reading."""
    graph: nx.Graph[str] = nx.Graph() if reading.graph is None else reading.graph
    edges: dict[str, dict[str, int]] = {}
    for _, _, data in graph.edges(data=True):
        row = edges.setdefault(str(data["kind"]), {"edges": 0, "lanes": 0})
        row["edges"] += 1
        row["lanes"] += int(data.get("lanes", 1))
    tables = reading.routing
    return {
        "file": file, "kind": reading.kind, "title": _title(reading.kind),
        "nodes": dict(Counter(str(data["kind"]) for _, data in graph.nodes(data=True))),
        "edges": edges, "domains": _domains(graph),
        "faults": [f"{fault.place}: {fault.rule}" for fault in check(graph)] if reading.graph is not None else [],
        "tables": None if tables is None else {
            "engine": tables.engine, "switches": len(tables.next_port),
            "entries": sum(len(ports) for ports in tables.next_port.values()),
        },
        "notes": list(reading.notes), "written": written,
    }  # fmt: skip


def _title(kind: str) -> str:
    return READERS[kind].title if kind in READERS else "a cluster of several files"


def _domains(graph: nx.Graph[str]) -> list[int]:
    """Return the GPUs of every domain that scale-up links join, the largest first."""
    links = [(a, b) for a, b, data in graph.edges(data=True) if data["kind"] == "scale-up"]
    kinds = nx.get_node_attributes(graph, "kind")
    parts = nx.connected_components(nx.Graph(links))
    return sorted((sum(kinds[node] in ("gpu", "host") for node in part) for part in parts), reverse=True)


def report_reading(row: dict[str, Any], reading: Reading) -> None:
    """Print what a reading holds and what it assumes."""
    say(f"{row['file']}: {row['kind']}, {row['title']}")
    if reading.graph is not None:
        say("  " + ", ".join(f"{n} {kind}" for kind, n in row["nodes"].items()))
        sizes = Counter(row["domains"])
        say("  scale-up domains: " + (", ".join(f"{n} of {size} GPUs" for size, n in sizes.items()) or "none"))
    if reading.routing is not None:
        say(f"  {reading.routing!r}")
    if row["edges"]:
        show_table("Links by class", ("class", "links", "cables"),
                   ((kind, str(n["edges"]), str(n["lanes"])) for kind, n in row["edges"].items()))  # fmt: skip
    for fault in row["faults"]:
        say(f"  not for every verb: {fault}")
    if row["written"]:
        say(f"  written to {row['written']}")
    assumed(reading.notes)
