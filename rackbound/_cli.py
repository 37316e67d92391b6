"""The command `rackbound`: reads options, calls the floors, prints. Nothing is computed here."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from rackbound import (
    _calibrate_command,
    _catalogue_commands,
    _compare_command,
    _cost_command,
    _evaluate_command,
    _failures_command,
    _fleet_commands,
    _join_command,
    _lecture_command,
    _place_command,
    _read_command,
    _simulate_command,
    _step_command,
    _sweep_command,
    _validate_command,
)
from rackbound._brackets import told
from rackbound._defaults import BUDGET, CONTEXT, DOMAINS
from rackbound._graphs import fabric_of, graph_of
from rackbound._options import (
    Assume,
    Batch,
    BatchPerGpu,
    Budget,
    Context,
    Domains,
    Json,
    ModelName,
    OneDomain,
    Overlap,
    Profile,
    Settings,
    assumptions_of,
    budget_seconds,
    overrides_of,
    workload_of,
)
from rackbound._output import emit_json, envelope, note, say
from topo import InputError, together

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="How big can an expert layer get before the wires say no?",
)  # fmt: skip
_catalogue_commands.design.command("compare")(_compare_command.compare)
app.add_typer(_catalogue_commands.design, name="design")
app.add_typer(_catalogue_commands.model, name="model")
app.command()(_evaluate_command.evaluate)
app.command()(_cost_command.cost)
app.command()(_read_command.read)
app.command()(_join_command.join)
app.command()(_failures_command.failures)
app.command()(_simulate_command.simulate)
app.command()(_validate_command.validate)
app.command()(_calibrate_command.calibrate)
app.command()(_step_command.step)
app.command()(_lecture_command.lecture)
app.command()(_sweep_command.sweep)
app.command()(_fleet_commands.size)
app.command()(_fleet_commands.handover)
app.command()(_catalogue_commands.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from rackbound import __version__

        say(f"rackbound {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """How big can an expert layer get before the wires say no?"""


@app.command()
def bound(
    design: Annotated[str, typer.Argument(help="Catalogue name or design file.")],
    model: ModelName,
    batch_per_gpu: BatchPerGpu = None,
    batch: Batch = None,
    context: Context = CONTEXT,
    budget: Budget = BUDGET,
    domains: Domains = None,
    overlap: Overlap = "none",
    profile: Profile = "ideal",
    assume: Assume = None,
    settings: Settings = None,
    failures: Annotated[bool, typer.Option("--failures", help="Fail each NIC, switch chip and tray in turn.")] = False,
    out: Annotated[
        str | None, typer.Option(help="With --failures: folder for figure and JSON.  [default: none]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the largest expert layer of a model's kind on a design."""
    from placement import Terms, expert_layer_bound, width_brackets, width_steps
    from serving import load_model

    work, loaded, terms, fabric = together(
        lambda: workload_of(context, batch, batch_per_gpu),
        lambda: load_model(model, assumptions_of(assume)),
        lambda: Terms(budget_seconds(budget), overlap),
        lambda: fabric_of(design, domains, DOMAINS, overrides_of(settings)),
    )
    inputs = {
        "design": design, "model": model, "assume": assumptions_of(assume), "batch": batch,
        "batch_per_gpu": work.batch_per_gpu, "context": context, "budget": terms.budget,
        "domains": len(fabric.domain_sizes), "overlap": overlap, "settings": overrides_of(settings),
    }  # fmt: skip
    inputs["profile"] = profile
    if failures or out is not None:
        graph = graph_of(design, domains, DOMAINS, overrides_of(settings))
        _failures_command.bound_failures(graph, loaded, work, terms, inputs, out, as_json)
        return
    steps = width_steps(fabric, loaded, work, profile=profile)
    result = expert_layer_bound(fabric, loaded, work, step_budget=terms.budget, overlap=overlap, steps=steps)
    held = width_brackets(steps, result.width) if result.width else {}
    if as_json:
        emit_json(envelope("bound/1", inputs, result.assumptions, result.to_dict() | {"brackets": told(held)}))
        return
    from rackbound._reports import bound_report

    bound_report(fabric, loaded, work, result, held)


@app.command()
def place(
    design: Annotated[str, typer.Argument(help="Catalogue name or design file.")],
    model: ModelName,
    ep: Annotated[int | None, typer.Option(help="GPUs the experts are spread over.  [default: one domain]")] = None,
    pp: Annotated[int | None, typer.Option(help="Pipeline stages.  [default: the fewest that fit]")] = None,
    batch_per_gpu: BatchPerGpu = None,
    batch: Batch = None,
    context: Context = CONTEXT,
    domains: OneDomain = None,
    time_limit: Annotated[str | None, typer.Option(help="For the exact solver, per layer, with its unit.")] = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--load",
            "--loads",
            help="Expert loads: what EPLB, SGLang, vLLM or TensorRT-LLM recorded, or JSON lists. Compares, but for "
            "--pp or --time-limit.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="heaviest_gpu, crossing, busiest_link, moved; several in turn, a,b, or weighed, a=1,b=0.5.  "
            "[default: level in a domain; over several few bytes between them]"
        ),
    ] = None,
    enough: Annotated[
        str | None, typer.Option(help="Values from which on the next objective counts, as heaviest_gpu=1.02.")
    ] = None,
    rules: Annotated[str | None, typer.Option(help="TOML or JSON file with pin, forbid, together, apart.")] = None,
    replicas: Annotated[int | None, typer.Option(help="Spare copies of experts in every layer.")] = None,
    slots: Annotated[
        int | None, typer.Option(help="Experts of a layer a GPU may hold.  [default: the copies, dealt equally]")
    ] = None,
    sharing: Annotated[
        str | None, typer.Option(help="Within a domain: copies get equal parts, or weighted.  [default: equal]")
    ] = None,
    balance: Annotated[
        float | None, typer.Option(help="Over domains: heaviest GPU over the mean.  [default: 1.01]")
    ] = None,
    curve: Annotated[
        str | None, typer.Option(help="Over domains: balances to compare by what crosses, as 1.01,1.05,1.2.")
    ] = None,
    current: Annotated[
        str | None, typer.Option(help="Plan or engine's map to compare with.  [default: in order]")
    ] = None,
    save: Annotated[str | None, typer.Option(help="File for the plan.")] = None,
    format: Annotated[
        str | None, typer.Option(help="Of --save: plan, tensorrt-llm, ascend, vllm, sglang, eplb.  [default: plan]")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what is heavy, copied, and moved.")] = False,
    out: Annotated[str | None, typer.Option(help="Folder for figures and place.json.  [default: none]")] = None,
    profile: Profile = "ideal",
    assume: Assume = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Place layers on stages and experts on GPUs. With a proven bound; for recorded loads beside what is now."""
    comparing = {
        "replicas": replicas, "sharing": sharing, "balance": balance, "objective": objective, "enough": enough,
        "slots": slots, "curve": curve, "rules": rules, "current": current, "save": save, "format": format, "out": out,
    }  # fmt: skip
    alone = pp is not None or time_limit is not None
    if explain or any(value is not None for value in comparing.values()) or (load is not None and not alone):
        asked = {"load": load} | comparing | {"ep": ep, "pp": pp, "explain": explain, "time_limit": time_limit}
        asked |= {"profile": profile}
        _place_command.place_load(
            design,
            model,
            context,
            (batch, batch_per_gpu),
            domains,
            overrides_of(settings),
            asked,
            as_json,
            assumptions_of(assume),
        )
        return
    from placement import solve
    from rackbound._recorded import recorded
    from rackbound._reports import place_report
    from serving import Layout, load_model, step_brackets
    from topo.units import parse_quantity

    work, loaded, fabric, found, limit = together(
        lambda: workload_of(context, batch, batch_per_gpu),
        lambda: load_model(model, assumptions_of(assume)),
        lambda: fabric_of(design, domains, 1, overrides_of(settings)),
        lambda: recorded(load),
        lambda: None if time_limit is None else parse_quantity(time_limit, "seconds", place="--time-limit"),
    )
    layout = None
    if ep is not None or pp is not None:
        one_domain = int(fabric.domain_sizes.max()) if loaded.is_moe else 1
        layout = Layout(one_domain if ep is None else ep, pp=1 if pp is None else pp)
    weighed = None if found is None else found.for_model(loaded).load
    result = solve(fabric, loaded, work, expert_load=weighed, layout=layout, time_limit=limit, profile=profile)
    held = step_brackets(fabric, loaded, work, layout=result.layout, plan=result.plan, expert_load=weighed)
    if as_json:
        inputs = {
            "design": design, "model": model, "assume": assumptions_of(assume), "ep": ep, "pp": pp,
            "loads": load, "batch": batch, "batch_per_gpu": work.batch_per_gpu, "context": context,
            "domains": len(fabric.domain_sizes), "time_limit": limit, "profile": profile,
            "settings": overrides_of(settings),
        }  # fmt: skip
        emit_json(envelope("place/1", inputs, result.step.assumptions, result.to_dict() | {"brackets": told(held)}))
        return
    place_report(design, len(fabric.domain_sizes), loaded, result, held)


def main() -> int:
    """Run the command line; bad input ends with 2 and one message."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter gets its number, not a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        app(standalone_mode=True)
    except InputError as error:
        for line in str(error).splitlines():
            note(f"rackbound: {line}")
        return 2
    except MemoryError:
        note("rackbound: this does not fit into the memory of this machine: take fewer domains or ranks")
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    return 0
