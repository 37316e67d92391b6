"""The command `rackbound simulate`: when every flow of a collective ends, and which links are busy meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from collectives import Bracket, Timeline, bracket, cost, load_profile, plain
from collectives import simulate as simulated
from rackbound._brackets import bracket_report
from rackbound._graphs import fabric_of
from rackbound._options import (
    Algorithm,
    Json,
    OneDomain,
    Profile,
    QueuePairs,
    Routing,
    Settings,
    overrides_of,
    routing_of,
)
from rackbound._output import dumped, emit_json, envelope, note, require_folder, say, show_table, whole_folder
from rackbound._reports import assumed
from rackbound._tokens import (
    MOE_KINDS,
    CombineDtype,
    Copies,
    DispatchDtype,
    Experts,
    Groups,
    Hidden,
    Limit,
    Loads,
    Tokens,
    TopK,
    algorithm_of,
    size_of,
)
from topo import Fabric, Fault, InputError, together
from topo.units import format_quantity

__all__ = ["simulate"]

#: Parts of all flows whose time of arrival is said; intervals of link use, printed and in JSON; phases printed.
_PARTS = {"p10": 0.1, "median": 0.5, "p90": 0.9, "p99": 0.99, "last": 1.0}
_PRINTED, _INTERVALS, _PHASES = 8, 64, 8


def simulate(
    design: Annotated[str, typer.Argument(help="Catalogue name, design file or graph file.")],
    kind: Annotated[str, typer.Argument(help="Collective, as all_to_all, all_reduce, send, moe_dispatch.")],
    n_bytes: Annotated[
        str | None, typer.Option("--bytes", help="nccl-tests' size, with unit; a barrier needs none.")
    ] = None,
    domains: OneDomain = None,
    ranks: Annotated[int | None, typer.Option(help="Ranks taking part.  [default: all]")] = None,
    algorithm: Algorithm = None,
    tokens: Tokens = None,
    hidden: Hidden = None,
    top_k: TopK = None,
    experts: Experts = None,
    copies: Copies = None,
    loads: Loads = None,
    limit: Limit = None,
    groups: Groups = None,
    dispatch_dtype: DispatchDtype = "fp8",
    combine_dtype: CombineDtype = "bf16",
    routing: Routing = "ecmp",
    queue_pairs: QueuePairs = None,
    seed: Annotated[int | None, typer.Option(help="hash: of the hash.  [default: 0]")] = None,
    profile: Profile = "ideal",
    barriers: Annotated[bool, typer.Option(help="Whether a phase waits for the one before everywhere.")] = True,
    background: Annotated[
        str | None, typer.Option(help="JSON file of other jobs' traffic: bytes/s from every rank (row) to every one.")
    ] = None,
    settings: Settings = None,
    out: Annotated[str | None, typer.Option(help="Folder for the figure and simulate.json.  [default: none]")] = None,
    as_json: Json = False,
) -> None:
    """Simulate a collective with links shared max-min fairly."""
    overrides = overrides_of(settings)
    asked = {"tokens": tokens, "hidden": hidden, "top_k": top_k, "experts": experts, "loads": loads, "limit": limit,
             "groups": groups, "dispatch_dtype": dispatch_dtype, "combine_dtype": combine_dtype}  # fmt: skip
    checks = [partial(require_folder, out)] if out is not None else []
    size, fabric, chosen, rule, others = together(
        partial(size_of, kind, n_bytes, asked, None),
        partial(fabric_of, design, domains, 1, overrides),
        partial(algorithm_of, kind, algorithm, copies),
        partial(routing_of, routing, queue_pairs, seed),
        partial(_matrix, background),
        *checks,
    )[:5]
    words: dict[str, Any] = {"ranks": ranks, "algorithm": chosen, "routing": rule, "background": others}
    found = simulated(fabric, kind, size, barriers=barriers, **words)
    predicted = _predicted(fabric, kind, size, profile, words)
    held = bracket(fabric, kind, size, **words)
    if barriers and held.timeline is None:  # what takes too long there was just done
        rest = tuple(line for line in held.left_out if not line.startswith("simulated"))
        held = replace(held, timeline=found, left_out=rest)
    count = len(fabric.domain_sizes)
    inputs = {
        "design": design, "kind": kind, "bytes": size if isinstance(size, float) else None,
        "domains": count, "ranks": ranks,
        "moe": asked if kind in MOE_KINDS else None, "algorithm": algorithm or copies,
        "routing": routing, "queue_pairs": queue_pairs, "seed": seed, "profile": profile,
        "barriers": barriers, "background": background,
        "settings": overrides,
    }  # fmt: skip
    whole = envelope(
        "simulate/1",
        inputs,
        found.assumptions,
        found.to_dict() | _results(found) | {"predicted": predicted, "bracket": held.to_dict()},
    )
    if out is not None:
        _write(out, design, found, whole)
    if as_json:
        emit_json(whole)
        return
    _report(f"{design} x {count}", found, held)
    if predicted is not None:
        ratio = f", {predicted / found.seconds:.4g} times the wires alone" if found.seconds else ""
        say(f"with profile {profile} it takes {_time(predicted)}{ratio}\n")
    assumed(found.assumptions)


def _predicted(fabric: Fabric, kind: str, size: float | None, profile: str, words: dict[str, Any]) -> float | None:
    """Return what a profile predicts [s], which is the library's own measured behaviour; None for the wires alone."""
    software = load_profile(profile)
    if software.law == "ideal":
        return None
    if words["background"] is not None:
        rule = "predicts a collective on otherwise idle links"
        raise InputError(Fault("--profile", profile, rule, "Leave out --profile or --background."))
    asked = {name: value for name, value in words.items() if name != "background"}
    return float(cost(fabric, kind, size, profile=software, **asked).seconds)


def _matrix(path: str | None) -> Any:
    """Return the matrix of --background."""
    if path is None:
        return None
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        why = f"is not JSON: {error}"
    raise InputError(Fault("--background", path, why, "Give a JSON file: a list of rows, each a list of numbers."))


def _results(found: Timeline) -> dict[str, Any]:
    """Return what is told of the arrays: when flows end, and how busy links are."""
    ends, classes = found.intervals(_INTERVALS)
    finish = dict(zip(_PARTS, found.finish(*_PARTS.values()), strict=True)) if len(found.flow_ends) else None
    return {"flows": len(found.flow_ends), "finish": finish, "times": plain(ends), "use": plain(classes)}


def _report(where: str, found: Timeline, held: Bracket) -> None:
    size, time = format_quantity(found.n_bytes, "bytes"), _time(found.seconds)
    say(f"{found.kind} of {size} over {found.n_ranks} ranks of {where}: {time}, links shared max-min fairly")
    say(f"  algbw {format_quantity(found.algbw, 'bandwidth')}, busbw {format_quantity(found.busbw, 'bandwidth')}")
    n = len(found.phases)
    phases = f"{n} phase{'s' * (n != 1)} {'with' if found.barriers else 'without'} barriers"
    say(f"  routing {found.routing}, algorithm {found.algorithm}, {phases}: wires only, no software")
    ends = ", ".join(f"{name} {_time(at)}" for name, at in zip(_PARTS, found.finish(*_PARTS.values()), strict=False))
    say(f"  {len(found.flow_ends):,} flows have arrived: {ends or 'none'}\n")
    if len(found.phases) > 1:
        _phase_table(found)
    ends_, classes = found.intervals(_PRINTED)
    if classes:
        show_table(
            "Links in use, all of a class (its busiest)", ("until", *classes),
            ((_time(end), *(f"{_percent(use.mean[i])} ({_percent(use.most[i])})" for use in classes.values()))
             for i, end in enumerate(ends_.tolist())),
        )  # fmt: skip
    bracket_report(held)


def _phase_table(found: Timeline) -> None:
    order = sorted(range(len(found.phases)), key=lambda i: found.phases[i].start - found.phases[i].end)
    more = f", the {_PHASES} longest of {len(order)}" if len(order) > _PHASES else ""
    rows = [(i + 1, found.phases[i]) for i in sorted(order[:_PHASES])]
    show_table(
        f"Phases{more}", ("phase", "starts", "has arrived", "flows", "paths", "last to arrive"),
        ((str(i), _time(one.start), _time(one.end), f"{one.n_flows:,}", f"{one.n_subflows:,}", one.last)
         for i, one in rows),
    )  # fmt: skip


def _time(seconds: float) -> str:
    return format_quantity(seconds, "seconds")


def _percent(part: float) -> str:
    return f"{100 * min(1.0, max(0.0, part)):.3g} %"


def _write(out: str, design: str, found: Timeline, whole: dict[str, Any]) -> None:
    import figures

    axes = figures.draw_timeline(found, name=design)
    with whole_folder(out) as folder:
        figures.save(axes, folder / "simulate")
        (folder / "simulate.json").write_text(dumped(whole), encoding="utf-8")
    note(f"wrote simulate.json and 2 figures into {out}")
