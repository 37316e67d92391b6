"""The commands `rackbound size` and `rackbound handover`: racks for a traffic, and caches between its two pools."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rackbound._defaults import CONTEXT
from rackbound._graphs import fabric_of, graph_of
from rackbound._options import (
    Assume,
    Context,
    Engine,
    Json,
    ModelName,
    OneDomain,
    Settings,
    assumptions_of,
    engine_of,
    overrides_of,
)
from rackbound._output import emit_json, envelope
from topo import Fabric, Fault, InputError, is_graph_file, load_design, together
from topo.units import parse_quantity

if TYPE_CHECKING:
    from serving import Layout

__all__ = ["handover", "size"]

_LENGTHS = "2000, or 500:3,4000:1 (with weights), or 2000..12000 (half and 95 % stay below)"
_LAYOUT = "A unit's layout, as 64, or ep=64,tp=2,pp=1.  [default: ep, the power of two in a domain; dense: 1]"
#: What a layout may state on the command line.
_CUTS = ("ep", "tp", "pp", "cp", "dp")


def size(
    design: Annotated[str, typer.Argument(help="Catalogue name, design file or graph file.")],
    model: ModelName,
    requests: Annotated[float, typer.Option(help="Requests per second.")],
    prompt: Annotated[str, typer.Option(help=f"Tokens of prompts: {_LENGTHS}.")] = "2000",
    answer: Annotated[str, typer.Option(help="Tokens of answers, likewise.")] = "500",
    cache_hit: Annotated[float, typer.Option(help="Part of a prompt's tokens whose KV cache is there already.")] = 0.0,
    ttft: Annotated[str, typer.Option(help="Longest time to the first token, with its unit.")] = "2s",
    tpot: Annotated[str, typer.Option(help="Longest time per further token, with its unit.")] = "50ms",
    quantile: Annotated[float, typer.Option(help="Part of the prompts that --ttft holds for.")] = 0.95,
    headroom: Annotated[float, typer.Option(help="Part of what the fleet can do that is kept free.")] = 0.3,
    ep: Annotated[
        str | None, typer.Option(help="EP to choose from, as 32,64.  [default: a domain, and the power of two in it]")
    ] = None,
    tp: Annotated[str, typer.Option(help="TP to choose from.")] = "1",
    pp: Annotated[str, typer.Option(help="PP to choose from.")] = "1",
    draft: Annotated[int, typer.Option(help="Tokens guessed per sequence and pass, by the model's mtp layer.")] = 0,
    acceptance: Annotated[float | None, typer.Option(help="Chance that a guessed token is right.")] = None,
    rent: Annotated[float, typer.Option(help="$ per GPU and hour.")] = 2.0,
    spare_racks: Annotated[int, typer.Option(help="Racks beyond what the traffic needs.")] = 1,
    domains: Annotated[
        int | None, typer.Option(help="Domains of the graph steps are worked out on.  [default: of two units]")
    ] = None,
    engine: Engine = None,
    assume: Assume = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Find the fewest racks that serve a traffic. What they cost, and what a lost part takes."""
    from serving import Traffic, Workload, load_model
    from serving import size as sized

    stated, overrides = assumptions_of(assume), overrides_of(settings)
    asked: dict[str, Any] = {"cache_hit": cache_hit, "quantile": quantile, "headroom": headroom}
    work, loaded, profile, in_, out, first, each, widths, thirds, stages = together(
        lambda: Workload(batch_per_gpu=1, draft=draft, acceptance=acceptance),
        lambda: load_model(model, stated),
        lambda: engine_of(engine),
        lambda: _lengths(prompt, "--prompt"),
        lambda: _lengths(answer, "--answer"),
        lambda: parse_quantity(ttft, "seconds", place="--ttft"),
        lambda: parse_quantity(tpot, "seconds", place="--tpot"),
        lambda: None if ep is None else _numbers(ep, "--ep"),
        lambda: _numbers(tp, "--tp"),
        lambda: _numbers(pp, "--pp"),
    )
    traffic = Traffic(requests, prompt=in_, answer=out, ttft=first, tpot=each, **asked)
    graph = graph_of(design, domains, _two_units(design, overrides, widths, thirds, stages), overrides)
    chosen: dict[str, Any] = {"ep": widths, "tp": thirds, "pp": stages}
    found = sized(
        graph, loaded, traffic, workload=work, dollars_per_gpu_hour=rent, spare_racks=spare_racks, profile=profile,
        **chosen,
    )  # fmt: skip
    if as_json:
        inputs = {"design": design, "model": model, "assume": stated, "requests_per_second": requests,
                  "prompt": traffic.shares("prompt"), "answer": traffic.shares("answer"), **asked,
                  "ttft": first, "tpot": each, **chosen, "dollars_per_gpu_hour": rent, "spare_racks": spare_racks,
                  "engine": engine, "draft": draft, "acceptance": acceptance,
                  "domains": len(Fabric.from_graph(graph).domain_sizes), "settings": overrides}  # fmt: skip
        emit_json(envelope("size/1", inputs, found.assumptions, found.to_dict()))
        return
    from rackbound._fleet_reports import size_report

    size_report(design, loaded, traffic, found, rent)


def handover(
    design: Annotated[str, typer.Argument(help="Catalogue name, design file or graph file.")],
    model: ModelName,
    prefill: Annotated[str | None, typer.Option(help=_LAYOUT)] = None,
    decode: Annotated[str | None, typer.Option(help="The same of the pool that answers.  [default: --prefill]")] = None,
    batch: Annotated[int, typer.Option(help="Prompts of a pass.")] = 64,
    context: Context = CONTEXT,
    cached: Annotated[int, typer.Option(help="Of a prompt's tokens those already in the cache.")] = 0,
    domains: OneDomain = None,
    engine: Engine = None,
    assume: Assume = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Send the KV caches of a prefill pass to the pool that answers."""
    from collectives import plain
    from serving import Workload, load_model, sending_dominates_from, step
    from serving import handover as handed

    stated, overrides = assumptions_of(assume), overrides_of(settings)
    loaded, profile, work, size = together(
        lambda: load_model(model, stated),
        lambda: engine_of(engine),
        lambda: Workload("prefill", context=context, cached=cached, batch=batch),
        lambda: None if is_graph_file(design) else load_design(design, overrides).design.domain_size,
    )
    usual = 1 if size is None or not loaded.is_moe else 1 << (size.bit_length() - 1)
    first = _layout(prefill, "--prefill", usual)
    second = first if decode is None else _layout(decode, "--decode", usual)
    count = 1 if size is None else -(-first.gpus // size) + -(-second.gpus // size)
    fabric = fabric_of(design, domains, count, overrides)
    passed = step(fabric, loaded, work, layout=first, profile=profile)
    pools: dict[str, Any] = {"prefill": first, "decode": second}
    found = handed(fabric, loaded, work, passed.seconds, **pools)
    limit = sending_dominates_from(fabric, loaded, work, profile=profile, **pools)
    if as_json:
        inputs = {"design": design, "model": model, "assume": stated, "batch": batch, "context": context,
                  "cached": cached, "engine": engine, "prefill": plain(first), "decode": plain(second),
                  "domains": len(fabric.domain_sizes), "settings": overrides}  # fmt: skip
        told = {"pass_seconds": passed.seconds, "fits": passed.fits, "dominates_from": limit}
        emit_json(envelope("handover/1", inputs, passed.assumptions, found.to_dict() | told))
        return
    from rackbound._fleet_reports import handover_report

    handover_report(f"{design} x {len(fabric.domain_sizes)}", loaded, work, first, second, passed, found, limit)


def _two_units(design: str, overrides: dict[str, Any], ep: Any, tp: Any, pp: Any) -> int:
    """Return the domains of a design that hold the largest unit asked for twice, side by side."""
    from serving import Layout

    if is_graph_file(design):
        return 1
    one = load_design(design, overrides).design.domain_size
    most = one
    for width, third, stage in product(ep or (), tp, pp):
        try:
            most = max(most, Layout(width, tp=third, pp=stage).gpus)
        except InputError:
            continue  # the sweep says which layouts cannot exist
    return 2 * -(-most // one)


def _numbers(text: str, place: str) -> list[int]:
    """Read whole numbers, as 32,64."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and len(part) < 10 and int(part) > 0 for part in parts):
        raise InputError(Fault(place, text, "must be whole numbers above zero", "Write 64, or 32,64."))
    return sorted({int(part) for part in parts})


def _lengths(text: str, place: str) -> int | list[tuple[int, float]]:
    """Read lengths of prompts or answers."""
    from serving import log_normal_lengths

    low, dots, high = text.partition("..")
    try:
        if dots:
            ends = float(low), float(high)
        elif ":" not in text:
            return int(text)
        else:
            pairs = (part.split(":") for part in text.split(","))
            return [(int(tokens), float(weight)) for tokens, weight in pairs]
    except ValueError:
        cure = "Write 2000, or 500:3,4000:1, or 2000..12000."
        raise InputError(Fault(place, text, "is no length in tokens", cure)) from None
    return log_normal_lengths(*ends)


def _layout(text: str | None, place: str, usual: int) -> Layout:
    """Read the layout of a unit."""
    from serving import Layout

    if text is None:
        return Layout(usual)
    parts = [part.partition("=") for part in ("ep=" + text if text.isdigit() else text).split(",")]
    names = [name.strip() for name, _, _ in parts]
    if any(not value.strip().isdigit() for _, _, value in parts) or len({*names, *_CUTS}) > len(_CUTS):
        rule = f"must state {', '.join(_CUTS)} as whole numbers"
        raise InputError(Fault(place, text, rule, "Write 64, or ep=64,tp=2."))
    if len(set(names)) < len(names):
        raise InputError(Fault(place, text, "states one of them twice", "Write each once, as ep=64,tp=2."))
    cut: dict[str, Any] = {name: int(value) for name, (_, _, value) in zip(names, parts, strict=True)}
    return Layout(**({"ep": usual} | cut))
