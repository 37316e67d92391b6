"""How does a graph leave? One file, written whole or not at all; a row of WRITERS a format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import networkx as nx

from topo._dot import dot_text
from topo._errors import Fault, InputError, suggest
from topo._fabric import Fabric
from topo._graphml import graphml_text
from topo._json_graph import json_text
from topo._simulators import astra_sim_text, simgrid_text
from topo._values import value_faults

__all__ = ["WRITERS", "write"]

Writer = Callable[["nx.Graph[str]"], str]

#: Format -> its writer and the suffixes that mean it.
WRITERS: dict[str, tuple[Writer, tuple[str, ...]]] = {
    "json": (json_text, (".json",)),
    "graphml": (graphml_text, (".graphml",)),
    "dot": (dot_text, (".dot", ".gv")),
    "simgrid": (simgrid_text, (".xml",)),
    "astra-sim": (astra_sim_text, (".yml", ".yaml")),
}


def write(graph: nx.Graph[str], path: str | os.PathLike[str], kind: str | None = None) -> Path:
    """Write a graph to a file, whole or not at all.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Any, also one with faults.
    path : str or path
        The file; an old one is replaced.
    kind : {"json", "graphml", "dot", "simgrid", "astra-sim"}, optional
        Format; by the suffix if left out. JSON and GraphML give back the very graph with
        `topo.load`: attributes, types, order of nodes and edges, every bit of a float
        (NumPy numbers come back as Python's). DOT is for drawing. "simgrid": a SimGrid
        platform with one explicit route a pair. "astra-sim": a network file of its
        analytical backend, whose GB is 2**30 bytes.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    InputError
        A format or value that cannot be written, a graph whose shape the format cannot
        express, or a file that cannot be.

    Examples
    --------
    >>> import tempfile
    >>> from topo import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write(load("hgx-h100-8"), Path(folder) / "box.graphml")
    ...     load(file).edges["d0/gpu0", "d0/switch"]["bandwidth"]
    450000000000.0
    """
    target = Path(path)
    writer = WRITERS[_kind(target, kind)][0]
    if isinstance(graph, Fabric):
        cure = "Write the graph it was made from."
        raise InputError(Fault("graph", repr(graph), "does not hold every attribute of its graph", cure))
    if not isinstance(graph, nx.Graph) or graph.is_multigraph():
        cure = "Pass a networkx.Graph or DiGraph; parallel cables are lanes of one edge."
        raise InputError(Fault("graph", type(graph).__name__, "is not a topology", cure))
    if faults := list(value_faults(graph)):
        raise InputError(*faults[:20])
    _replace(target, writer(graph))
    return target


def _kind(path: Path, kind: str | None) -> str:
    if kind is not None:
        if kind not in WRITERS:
            raise InputError(Fault("kind", kind, "is not a known format", suggest(str(kind), WRITERS)))
        return kind
    by_suffix = {suffix: name for name, (_, suffixes) in WRITERS.items() for suffix in suffixes}
    suffix = path.suffix.lower()
    if suffix not in by_suffix:
        known = ", ".join(f"{end} ({name})" for end, name in by_suffix.items())
        raise InputError(Fault("path", str(path), "has no suffix of a known format", f"Known: {known}; or give kind=."))
    return by_suffix[suffix]


def _replace(path: Path, text: str) -> None:
    """Put the text in place of a file in one step, so that no reader sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        try:
            part.write_text(text, encoding="utf-8", newline="\n")
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        cure = "Give a path in a folder that is there and may be written."
        raise InputError(Fault("path", str(path), f"cannot be written: {reason}", cure)) from None
