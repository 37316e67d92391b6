"""Which graph is this? Catalogue names, design files and graph files become NetworkX graphs."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import networkx as nx

from topo._bill import state_units
from topo._design import Design
from topo._errors import Fault, InputError, suggest
from topo._fabrics import join_domains, require_reach
from topo._graphml import read_graphml
from topo._json_graph import read_json
from topo._shapes import build_domain
from topo._validate import design_from_mapping

__all__ = ["is_graph_file", "list_designs", "load", "load_design"]

#: Suffix -> reader of a graph that `topo.write` wrote.
_GRAPH_FILES: dict[str, Callable[[bytes, str], nx.Graph[str]]] = {".json": read_json, ".graphml": read_graphml}


#: Larger graphs are refused rather than built for hours.
MOST_GPUS = 1_000_000


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
        A name of `list_designs`, one of its aliases, or a file.
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
    """
    text, file = _read(name_or_path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(Fault("TOML", str(error), "is not valid TOML", "Correct that line.", file)) from None
    try:
        return design_from_mapping(data, overrides=overrides, file=file)
    except InputError as error:
        raise _in_file(error, file) from None


def is_graph_file(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether `load` reads this as a graph that `topo.write` wrote rather than as a design.

    Examples
    --------
    >>> is_graph_file("racks.graphml"), is_graph_file("gb200-nvl72")
    (True, False)
    """
    return Path(name_or_path).suffix.lower() in _GRAPH_FILES


def load(
    name_or_path: str | os.PathLike[str],
    domains: int = 1,
    overrides: Mapping[str, Any] | None = None,
    *,
    planes: bool = False,
) -> nx.Graph[str]:
    """Return the graph of a design: `domains` scale-up domains joined by its scale-out fabric.

    Parameters
    ----------
    name_or_path : str or path
        Catalogue name, alias, or design file; or a graph that `topo.write` wrote (.json,
        .graphml), given back as it was: `topo.check` says whether verbs will take it.
    domains : int, optional
        Number of scale-up domains. This and the following are not for graph files.
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
        return _GRAPH_FILES[Path(file).suffix.lower()](_bytes(file, "a graph file"), file)
    design = load_design(name_or_path, overrides)
    if isinstance(domains, bool) or not isinstance(domains, int) or domains < 1:
        raise InputError(Fault("domains", domains, "must be a whole number, one or more", "Give 1, 2, ..."))
    if domains > 1 and design.scale_out is None:
        raise InputError(
            Fault("scale_out", None, f"the design states no NIC rate, so {domains} domains cannot be joined",
                  "Add a [scale_out] table with a bandwidth, or use one domain.", file)
        )  # fmt: skip
    gpus = domains * design.design.domain_size
    if gpus > MOST_GPUS:
        rule = f"makes {gpus} GPUs, more than the {MOST_GPUS} this version builds"
        raise InputError(
            Fault("domains x design.domain_size", f"{domains} x {design.design.domain_size}", rule, "Take fewer.")
        )
    try:
        if domains > 1 and design.scale_out is not None:
            require_reach(design.design.domain_size, domains, design.scale_out)
        return _build(design, domains, planes)
    except InputError as error:
        raise _in_file(error, file) from None


def _build(design: Design, domains: int, planes: bool) -> nx.Graph[str]:
    size = design.design.domain_size
    local = build_domain(design.scale_up, size, planes=planes)
    graph: nx.Graph[str] = nx.Graph(
        schema=1, name=design.design.name, domains=domains, chips={design.chip.name: _chip(design)},
        assumptions=_said(design, domains), sources=dict(design.sources),
    )  # fmt: skip
    per_host = design.design.gpus_per_host
    for d in range(domains):
        for node, data in local.nodes(data=True):
            extra: dict[str, Any] = {"domain": d}
            if design.design.domain_is_rack:
                extra["rack"] = d
            if data["kind"] == "gpu":
                rank = d * size + int(node.removeprefix("gpu"))
                extra |= {"rank": rank, "chip": design.chip.name}
                if per_host:
                    extra["host"] = f"host{rank // per_host}"
            graph.add_node(f"d{d}/{node}", **data, **extra)
        graph.add_edges_from((f"d{d}/{a}", f"d{d}/{b}", dict(data)) for a, b, data in local.edges(data=True))
    if domains > 1 and design.scale_out is not None:
        join_domains(graph, [[f"d{d}/gpu{i}" for i in range(size)] for d in range(domains)], design.scale_out)
    state_units(graph, design)
    return graph


def _said(design: Design, domains: int) -> list[str]:
    """Return what the design assumes, without what no link of this graph has."""
    unused = "scale_out." if domains == 1 else "\0"
    return [line for line in design.assumptions if not line.startswith(unused) or line.endswith(": overridden")]


def _chip(design: Design) -> dict[str, Any]:
    numbers = asdict(design.chip)
    del numbers["name"]
    return {key: value for key, value in numbers.items() if value is not None}


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
    if not looks_like_path and name.casefold() in _aliases():
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


def _require_defaults(file: str, domains: int, overrides: Mapping[str, Any] | None, planes: bool) -> None:
    given = {"domains": domains if domains != 1 else None, "overrides": overrides or None, "planes": planes or None}
    cure = "Leave it out; edit the graph with topo.fail, topo.degrade and topo.scale."
    faults = [
        Fault(name, value, "is for designs: a graph file holds one graph as it is", cure, file)
        for name, value in given.items() if value is not None
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
