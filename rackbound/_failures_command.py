"""The commands `rackbound failures` and `bound --failures`: what each failure costs, and which is the worst."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import networkx as nx
import typer

from collectives import Bracket, Failure, Failures, bracket
from collectives import failures as failed
from rackbound._brackets import bracket_report
from rackbound._defaults import DOMAINS
from rackbound._graphs import graph_of
from rackbound._options import Algorithm, Domains, Json, Profile, Routing, Settings, overrides_of, routing_of
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
from topo import together
from topo.units import format_quantity

if TYPE_CHECKING:
    from placement import BoundFailure, Terms
    from serving import Model, Workload

__all__ = ["bound_failures", "failures"]


#: Size taken where none is given [bytes].
_SIZE = 1e9
#: Rows shown of a table; under rules that symmetry does not bind there may be thousands.
_MOST_ROWS = 40


def failures(
    design: Annotated[str, typer.Argument(help="Catalogue name, design file or graph file.")],
    collective: Annotated[str, typer.Argument(metavar="KIND", help="Collective.")] = "all_to_all",
    n_bytes: Annotated[
        str | None,
        typer.Option("--bytes", help="nccl-tests' size, with unit.  [default: 1GB; none for a barrier and tokens]"),
    ] = None,
    domains: Domains = None,
    ranks: Annotated[int | None, typer.Option(help="Ranks taking part.  [default: all]")] = None,
    algorithm: Algorithm = None,
    routing: Routing = "ecmp",
    profile: Profile = "ideal",
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
    doubles: Annotated[int, typer.Option(help="Double failures to sample.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    settings: Settings = None,
    out: Annotated[str | None, typer.Option(help="Folder for the figure and failures.json.  [default: none]")] = None,
    as_json: Json = False,
) -> None:
    """Fail every part in turn and cost a collective without it. Links, lanes, NICs, switches and trays."""
    overrides = overrides_of(settings)
    asked = {"tokens": tokens, "hidden": hidden, "top_k": top_k, "experts": experts, "loads": loads, "limit": limit,
             "groups": groups, "dispatch_dtype": dispatch_dtype, "combine_dtype": combine_dtype}  # fmt: skip
    checks = [partial(require_folder, out)] if out is not None else []
    size, graph, chosen, rule = together(
        partial(size_of, collective, n_bytes, asked, _SIZE),
        partial(graph_of, design, domains, DOMAINS, overrides),
        partial(algorithm_of, collective, algorithm, copies),
        partial(routing_of, routing),
        *checks,
    )[:4]
    words: dict[str, Any] = {"ranks": ranks, "algorithm": chosen, "routing": rule}
    found = failed(graph, collective, size, profile=profile, doubles=doubles, seed=seed, **words)
    inputs = {
        "design": design, "collective": collective, "bytes": size if isinstance(size, float) else None,
        "moe": asked if collective in MOE_KINDS else None, "domains": domains, "ranks": ranks,
        "algorithm": algorithm or copies, "routing": routing, "profile": profile, "doubles": doubles, "seed": seed,
        "settings": overrides,
    }  # fmt: skip
    held = bracket(graph, collective, size, **words)
    whole = envelope("failures/1", inputs, found.assumptions, found.to_dict() | {"bracket": held.to_dict()})
    if out is not None:
        from figures import draw_failures

        _write(out, draw_failures(found, name=design), whole)
    if as_json:
        emit_json(whole)
        return
    _report(design, found, held)


def _report(design: str, found: Failures, held: Bracket) -> None:
    size, time = format_quantity(found.n_bytes, "bytes"), format_quantity(found.seconds, "seconds")
    say(f"{found.kind} of {size} over {found.n_ranks} ranks of {design}: {time} with nothing failed")
    if found.worst is not None:
        say(f"  worst of {found.n_parts:,} single failures: {found.worst.name}: {_effect(found.worst)}")
    say(f"  routing {found.routing}, algorithm {found.algorithm}, profile {found.profile}\n")
    columns = ("failed", "alike", "time", "loss", "then")
    _show_worst("Single failures", columns, [_row(found, one) for one in found.singles])
    if found.doubles:
        rows = [_row(found, one) for one in found.doubles]
        _show_worst("Double failures", (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows])
        say(_sample(found))
    say("Between which times the collective lies with nothing failed:")
    bracket_report(held)
    assumed(found.assumptions)


def _show_worst(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    show_table(title, columns, rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        say(f"and {len(rows) - _MOST_ROWS:,} more that are no worse: --json has all\n")


def _sample(found: Failures) -> str:
    """Return what a sample of double failures says of all of them."""
    low, high = found.stopping_doubles or (0.0, 1.0)
    if not found.worse_doubles:
        return f"These are all: {100 * low:.3g} % stop the collective."
    return (f"{len(found.doubles):,} of {found.n_doubles:,}, seed {found.seed}. With 95 % confidence {100 * low:.2g} "
            f"to {100 * high:.2g} % of all stop the collective,\n"
            f"and fewer than {100 * found.worse_doubles:.2g} % are worse than the worst here.")  # fmt: skip


def _row(found: Failures, one: Failure) -> tuple[str, str, str, str, str]:
    if one.stopped:
        return one.name, f"{one.alike:,}", "never", one.stopped, _first(one)
    other = "" if one.algorithm == found.algorithm else f" ({one.algorithm})"
    lost = f"{one.dropped:,} rank{'s' * (one.dropped > 1)} fewer; " if one.dropped else ""
    lost += f"{one.unreachable:,} pairs without a path, {_first(one)}" if one.unreachable else one.bottleneck
    time = f"{format_quantity(one.seconds, 'seconds')}{other}"
    return one.name, f"{one.alike:,}", time, _loss(one.loss), lost


def _effect(one: Failure) -> str:
    if one.stopped:
        return f"never done: {one.stopped}{', ' if one.pairs else ''}{_first(one)}"
    time = f"{format_quantity(one.seconds, 'seconds')}, {_loss(one.loss)}"
    if not one.instead:
        return time
    lost = f"{one.unreachable:,} pairs without a path, {_first(one)}; " if one.pairs else ""
    return f"{lost}{one.algorithm} takes {time}"


def _first(one: Failure) -> str:
    return f"first {one.pairs[0]}" if one.pairs else ""


def _loss(loss: float) -> str:
    return "none" if loss == 0 else f"{'+' if loss > 0 else '-'}{format_quantity(abs(loss), 'seconds')}"


def bound_failures(
    graph: nx.Graph[str], model: Model, work: Workload, terms: Terms, inputs: dict[str, Any], out: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Find what each failed NIC, switch chip and tray leaves of the largest expert layer."""
    from placement import bound_failures as failed

    if out is not None:
        require_folder(out)
    ways: dict[str, Any] = {"overlap": terms.overlap, "profile": inputs["profile"]}
    found = failed(graph, model, work, step_budget=terms.budget, **ways)
    whole = envelope("bound-failures/1", inputs, found.assumptions, found.to_dict())
    if out is not None and found.worst is not None:
        from figures import draw_bound_failures

        _write(out, draw_bound_failures(found, name=inputs["design"]), whole)
    if as_json:
        emit_json(whole)
        return
    where = f"{model.name} on {inputs['design']} x {inputs['domains']}"
    if found.worst is None:
        say(f"{where}: {found.status}: {found.binding}")
    else:
        size = format_quantity(found.n_bytes, "bytes")
        say(
            f"{where}: at most {found.n_experts:,} experts ({size} a layer) over {found.width} GPUs with nothing failed"
        )
        say(f"  worst of {found.n_parts:,} single failures: {found.worst.kind} {found.worst.name}: "
            f"{_layer(found.worst)}, {_fewer(found.worst)}")  # fmt: skip
        say(f"  then bound by {found.worst.binding}\n" if found.worst.n_experts else "")
        columns = ("failed", "alike", "GPUs lost", "largest layer", "bytes", "experts lost", "in any domain")
        _show_worst("Single failures", columns, [_layer_row(one) for one in found.singles])
    assumed(found.assumptions)


def _layer(one: BoundFailure) -> str:
    return f"{one.n_experts:,} over {one.width}" if one.n_experts else "none"


def _fewer(one: BoundFailure) -> str:
    return f"{one.loss:,} experts fewer" if one.loss > 0 else "none lost"


def _layer_row(one: BoundFailure) -> tuple[str, ...]:
    lost = f"{one.loss:,}" if one.loss else "none"
    spare = f"{one.elsewhere[0]:,} over {one.elsewhere[1]}" if one.elsewhere[0] > one.n_experts else "the same"
    size = format_quantity(one.n_bytes, "bytes")
    return f"{one.kind} {one.name}", f"{one.alike:,}", str(one.dropped or "none"), _layer(one), size, lost, spare


def _write(out: str, axes: Any, whole: dict[str, Any]) -> None:
    import figures

    with whole_folder(out) as folder:
        figures.save(axes, folder / "failures")
        (folder / "failures.json").write_text(dumped(whole), encoding="utf-8")
    note(f"wrote failures.json and 2 figures into {out}")
