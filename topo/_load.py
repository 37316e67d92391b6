"""Which graph is this? Catalogue names, design files and graph files become NetworkX graphs."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import networkx as nx

from topo._assemble import assemble, require_sizes
from topo._design import Design
from topo._errors import Fault, InputError, suggest
from topo._graphml import read_graphml
from topo._json_graph import read_json
from topo._read import kind_of, read
from topo._slices import slice_tables, split_name
from topo._validate import design_from_mapping, slices_of
from topo.readers._reading import Reading

__all__ = ["is_graph_file", "list_designs", "load", "load_design"]

#: Suffix -> reader of a graph that `topo.write` wrote.
_GRAPH_FILES: dict[str, Callable[[bytes, str], nx.Graph[str]]] = {".json": read_json, ".graphml": read_graphml}


@cache
def list_designs() -> tuple[str, ...]:
    """Return the names of the catalogue's designs.

    Examples
    --------
    >>> "gb200-nvl72" in list_designs()
    True
    """
    folder = resources.files("topo") / "catalogue"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_design(name_or_path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> Design:
    """Return the validated design of a catalogue name, an alias or a TOML file.

    Parameters
    ----------
    name_or_path : str or path
        A name of `list_designs`, one of its aliases, a slice of a pod (``tpu-v5p-4x4x8``,
        ``tpu-v4-4x4x8-twisted``), or a file.
    overrides : mapping, optional
        Dotted key -> value as in the file.

    Raises
    ------
    InputError
        Unknown name, unreadable file, or anything wrong in it (all at once).

    Examples
    --------
    >>> load_design("GB200 NVL72").design.name
    'gb200-nvl72'
    >>> load_design("tpu-v5p-4x4x8").design.domain_size
    128
    """
    part = _slice_of(name_or_path)
    text, file = _read(name_or_path if part is None else part[0])
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise InputError(Fault("TOML", str(error), "is not valid TOML", "Correct that line.", file)) from None
    try:
        if part is not None:
            data = slice_tables(data, slices_of(data), part[1], part[2], os.fspath(name_or_path))
        return design_from_mapping(data, overrides=overrides, file=file)
    except InputError as error:
        raise _in_file(error, file) from None


def _slice_of(name_or_path: str | os.PathLike[str]) -> tuple[str, tuple[int, ...], bool] | None:
    """Return design, sides and twist where a name is that of a slice of a catalogue's pod."""
    name = name_or_path if isinstance(name_or_path, str) else ""
    part = None if name.casefold() in _aliases() else split_name(name)
    return part if part is not None and part[0].casefold() in _aliases() else None


def is_graph_file(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether `load` reads this as a graph, or as a file that `topo.read` knows, rather than as a design.

    Examples
    --------
    >>> is_graph_file("racks.graphml"), is_graph_file("gb200-nvl72")
    (True, False)
    """
    path = Path(name_or_path)
    if path.suffix.lower() in _GRAPH_FILES:
        return True
    is_design = path.suffix.lower() == ".toml" or os.fspath(name_or_path).casefold() in _aliases()
    return not is_design and os.path.isfile(path) and kind_of(path) not in (None, "design")


def load(
    name_or_path: str | os.PathLike[str],
    domains: int | Sequence[int] = 1,
    overrides: Mapping[str, Any] | None = None,
    *,
    planes: bool = False,
) -> nx.Graph[str]:
    """Return the graph of a design: `domains` scale-up domains joined by its scale-out fabric.

    Parameters
    ----------
    name_or_path : str or path
        Catalogue name, alias, or design file; or a graph that `topo.write` wrote (.json,
        .graphml), given back as it was: `topo.check` says whether verbs will take it; or a
        file that `topo.read` knows, its notes among the graph's assumptions.
    domains : int or sequence of int, optional
        Number of scale-up domains, or the GPUs of each ([72, 36]). This and the following
        are not for graph files.
    overrides : mapping, optional
        Dotted key -> value as in the file, e.g. ``{"scale_out.bandwidth": "800 Gb/s"}``.
    planes : bool, optional
        Unfold parallel switch planes into one switch node each.

    Returns
    -------
    networkx.Graph
        Nodes and edges with the attributes of docs/graph.md; bandwidths in bytes/s per
        direction, latencies in s.

    Raises
    ------
    InputError
        As `load_design`; several domains of a design without scale-out; more GPUs than
        three levels of its radix reach.

    Examples
    --------
    >>> graph = load("gb200-nvl72", domains=2)
    >>> sum(kind == "gpu" for _, kind in graph.nodes(data="kind"))
    144
    >>> load("gb200-nvl72", domains=[72, 36]).nodes["d1/gpu35"]["rank"]
    107
    """
    if not isinstance(name_or_path, str | os.PathLike):
        value = type(name_or_path).__name__
        raise InputError(Fault("design", value, "must be a name or a path", "Give a catalogue name or a design file."))
    if overrides is not None and not isinstance(overrides, Mapping):
        raise InputError(
            Fault("overrides", overrides, "must map dotted keys to values", 'Give {"scale_out.radix": 128}.')
        )
    file = str(name_or_path)
    if is_graph_file(file):
        _require_defaults(file, domains, overrides, planes)
        return _graph_in(file)
    design = load_design(name_or_path, overrides)
    sizes = _sizes(domains, design.design.domain_size)
    if len(sizes) > 1 and design.scale_out is None:
        raise InputError(
            Fault("scale_out", None, f"the design states no NIC rate, so {len(sizes)} domains cannot be joined",
                  "Add a [scale_out] table with a bandwidth, or use one domain.", file)
        )  # fmt: skip
    try:
        require_sizes(design, sizes)
        return assemble(design, sizes, planes)
    except InputError as error:
        raise _in_file(error, file) from None


def _sizes(domains: int | Sequence[int], usual: int) -> list[int]:
    """Return the GPUs of every domain."""
    listed = list(domains) if isinstance(domains, Sequence) and not isinstance(domains, str) else [domains]
    if not listed or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in listed):
        rule = "must be a whole number, one or more, or a list of GPUs in each"
        raise InputError(Fault("domains", domains, rule, "Give 1, 2, ..., or [72, 36]."))
    return listed if isinstance(domains, Sequence) else [usual] * listed[0]


def _graph_in(file: str) -> nx.Graph[str]:
    """Return a graph exactly as `topo.write` wrote it, else what `read` makes of the file."""
    if reader := _GRAPH_FILES.get(Path(file).suffix.lower()):
        try:
            return reader(_bytes(file, "a graph file"), file)
        except InputError:
            if kind_of(file) in (None, "node-link-json", "graphml"):
                raise
    return _only_graph(read(file), file)


def _only_graph(reading: Reading, file: str) -> nx.Graph[str]:
    if reading.graph is None:
        cure = "Give its fabric too: topo.read both, and cost(graph, ..., routing=reading.routing)."
        raise InputError(Fault("file", reading.kind, "holds forwarding tables alone, no graph", cure, file))
    return reading.graph


def _in_file(error: InputError, file: str) -> InputError:
    return InputError(
        *(
            f if f.file or f.place.startswith("override ") else Fault(f.place, f.value, f.rule, f.cure, file)
            for f in error.faults
        )
    )


@cache
def _aliases() -> dict[str, str]:
    """Every name and alias of the catalogue, case folded -> file stem."""
    found = {}
    for name in list_designs():
        text = (resources.files("topo") / "catalogue" / f"{name}.toml").read_text(encoding="utf-8")
        for alias in (name, *tomllib.loads(text)["design"].get("aliases", ())):
            found[alias.casefold()] = name
    return found


def _read(name_or_path: str | os.PathLike[str]) -> tuple[str, str]:
    name = os.fspath(name_or_path)
    looks_like_path = isinstance(name_or_path, os.PathLike) or "/" in name or os.sep in name or name.endswith(".toml")
    if isinstance(name_or_path, str) and name.casefold() in _aliases():  # an alias may hold a slash
        stem = _aliases()[name.casefold()]
        return (resources.files("topo") / "catalogue" / f"{stem}.toml").read_text(encoding="utf-8"), stem
    path = Path(name)
    if not looks_like_path and not os.path.isfile(path):
        raise InputError(Fault("design", name, "is not in the catalogue and is no file", suggest(name, list_designs())))
    try:
        return _bytes(name, "a design file (TOML) or a name; `rackbound design list` shows them").decode(
            "utf-8-sig"
        ), name
    except UnicodeDecodeError:
        raise InputError(Fault("design", name, "is not a text file", "Give a design file in TOML.")) from None


def _bytes(name: str, wanted: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Fault("design", name, f"cannot be read: {reason}", f"Give {wanted}.")) from None


def _require_defaults(
    file: str, domains: int | Sequence[int], overrides: Mapping[str, Any] | None, planes: bool
) -> None:
    given = {"domains": domains if domains != 1 else None, "overrides": overrides or None, "planes": planes or None}
    cure = "Leave it out; edit the graph with topo.fail, topo.degrade and topo.scale."
    faults = [
        Fault(name, value, "is for designs: a graph file holds one graph as it is", cure, file)
        for name, value in given.items() if value is not None
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
