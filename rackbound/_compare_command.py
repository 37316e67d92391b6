"""The command `rackbound design compare`: what topologies measure, side by side."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import networkx as nx
import typer

from rackbound._defaults import DOMAINS
from rackbound._graphs import graph_of
from rackbound._options import Domains, Json, Settings, overrides_of
from rackbound._output import dumped, emit_json, envelope, note, require_folder, say, show_table, slug, whole_folder
from rackbound._reports import assumed
from topo import ANNOUNCED, Measures, measure, together
from topo.units import format_quantity

__all__ = ["compare", "measure_rows"]


def compare(
    designs: Annotated[list[str], typer.Argument(metavar="DESIGN...", help="Catalogue names or design files.")],
    domains: Domains = None,
    settings: Settings = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for topology figures and compare.json.  [default: none]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure designs and print them side by side. Size, hops, bisection, ports, weak points, price and power."""
    names = list(dict.fromkeys(designs))
    overrides = overrides_of(settings)
    checks = [partial(require_folder, out)] if out is not None else []
    graphs = together(*(partial(graph_of, name, domains, DOMAINS, overrides) for name in names), *checks)[: len(names)]
    measured = {name: measure(graph) for name, graph in zip(names, graphs, strict=True)}
    inputs = {"designs": names, "domains": domains, "settings": overrides}
    said = [f"{name}: {line}" for name, one in measured.items() for line in one.assumptions]
    whole = envelope("design-compare/1", inputs, said, [one.to_dict() for one in measured.values()])
    if out is not None:
        _write(out, dict(zip(names, graphs, strict=True)), whole)
    if as_json:
        emit_json(whole)
        return
    columns = [measure_rows(one) for one in measured.values()]
    heads = [f"{name} (announced)" if ANNOUNCED in one.assumptions else name for name, one in measured.items()]
    rows = [(key, *(column[key] for column in columns)) for key in columns[0]]
    show_table("Measures (bandwidths one direction)", ("measure", *heads), rows)
    say()
    assumed(said)


def measure_rows(one: Measures) -> dict[str, str]:
    """Return the measures as readable text, name -> value."""
    tiers = ("scale-up", "leaf", "spine", "core")
    rows = {"GPUs": f"{one.gpus:,} in {one.domains:,} domains"}
    switches = [f"{one.switches[tier]:,} {tier}" for tier in (*tiers, "") if tier in one.switches]
    rows["switches"] = ", ".join(text.strip() for text in switches) or "none"
    for kind in ("scale-up", "scale-out", "pcie"):
        links = one.links.get(kind)
        rows[f"{kind} links"] = f"{links.edges:,} edges, {links.lanes:,} cables" if links else "none"
    pairs = ", ".join(f"{pairs:,} pairs at {hops}" for hops, pairs in one.hops.items()) or "none"
    rows["hops between GPUs"] = one.left_out.get("hops") or pairs
    rows["pairs without a path"] = one.left_out.get("unreachable") or f"{one.unreachable:,}"
    for kind in ("scale-up", "scale-out", "pcie"):
        rows[f"{kind} bisection"] = str(one.bisection[kind]) if kind in one.bisection else "none"
    ratios = (f"{tier} {ratio:.3g}".strip() for tier, ratio in one.oversubscription.items())
    rows["oversubscription"] = ", ".join(ratios) or "none"
    ports = (f"{tier} {port.used} of {port.radix or 'unknown'}".strip() for tier, port in one.ports.items())
    rows["ports of the fullest switch"] = ", ".join(ports) or "none"
    weak = [*one.weak_nodes, *(" - ".join(pair) for pair in one.weak_links)]
    shown = ", ".join(weak[:4]) + (f" and {len(weak) - 4:,} more" if len(weak) > 4 else "")
    rows["single points of failure"] = f"{len(weak):,}: {shown}" if weak else "none"
    rows["price"] = _sum({name: part.price for name, part in one.bill.items()}, "dollars")
    rows["power"] = _sum({name: part.power for name, part in one.bill.items()}, "watts")
    return rows


def _sum(parts: dict[str, float | None], kind: Literal["dollars", "watts"]) -> str:
    """Return what is stated together, of what, and what is not stated."""
    stated = [value for value in parts.values() if value is not None]
    if not stated:
        return "not stated"
    total = f"{format_quantity(sum(stated), kind)}: {', '.join(name for name in parts if parts[name] is not None)}"
    missing = ", ".join(name for name, value in parts.items() if value is None)
    return f"{total}; not stated: {missing}" if missing else total


def _write(out: str, graphs: dict[str, nx.Graph[str]], whole: dict[str, Any]) -> None:
    import figures

    drawn = [(f"topology-{slug(name)}", figures.draw_topology(graph)) for name, graph in graphs.items()]
    with whole_folder(out) as folder:
        for name, axes in drawn:
            figures.save(axes, folder / name)
        (folder / "compare.json").write_text(dumped(whole), encoding="utf-8")
    note(f"wrote compare.json and {2 * len(drawn)} figures into {out}")
