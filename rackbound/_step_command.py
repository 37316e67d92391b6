"""The command `rackbound step`: one step of a model on a design, its parts, and one rack against two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rackbound._brackets import told
from rackbound._defaults import BATCH_PER_GPU, CONTEXT
from rackbound._graphs import fabric_of
from rackbound._options import (
    Assume,
    Batch,
    BatchPerGpu,
    Context,
    Json,
    ModelName,
    OneDomain,
    Profile,
    Settings,
    assumptions_of,
    engine_of,
    overrides_of,
)
from rackbound._output import emit_json, envelope, note
from topo import Fabric, Fault, InputError, is_graph_file, load_design, together

__all__ = ["step"]

#: What `serving.TIMES` names; the help must not import the floors.
_TIMES = ("lower", "two_batch", "serial", "lecture", "scaling_book", "engine")
#: Domains made without being asked for.
_MOST_DOMAINS = 64


def step(
    design: Annotated[str, typer.Argument(help="Catalogue name or design file.")],
    model: ModelName,
    ep: Annotated[int | None, typer.Option(help="GPUs the experts are spread over.  [default: all; dense: 1]")] = None,
    pp: Annotated[int, typer.Option(help="Pipeline stages.")] = 1,
    tp: Annotated[int, typer.Option(help="GPUs that share an attention replica's weights.")] = 1,
    cp: Annotated[int, typer.Option(help="GPUs that share a prompt (prefill).")] = 1,
    dp: Annotated[int | None, typer.Option(help="Attention replicas of a stage.  [default: ep / (tp x cp)]")] = None,
    shared: Annotated[str, typer.Option(help="Shared experts: local, or spread like routed ones.")] = "local",
    redundant: Annotated[int, typer.Option(help="Expert slots of a layer beyond one per expert.")] = 0,
    micro_batches: Annotated[int | None, typer.Option(help="Batches in flight.  [default: one per stage]")] = None,
    phase: Annotated[
        str, typer.Option(help="decode, prefill, or chunked: decode with a piece of a prompt.")
    ] = "decode",
    cached: Annotated[int, typer.Option(help="Of a prompt's tokens those already in the cache (prefill).")] = 0,
    chunk: Annotated[int | None, typer.Option(help="Tokens of the piece of a prompt (chunked).")] = None,
    prompt: Annotated[int | None, typer.Option(help="Tokens of its prompt.  [default: --context]")] = None,
    draft: Annotated[int, typer.Option(help="Tokens guessed per sequence and pass.")] = 0,
    acceptance: Annotated[float | None, typer.Option(help="Chance that a guessed token is right.")] = None,
    drafter: Annotated[str, typer.Option(help="Guesses come from the model's mtp layer, or are free.")] = "mtp",
    copies: Annotated[
        str, typer.Option(help="A copy of a token for each of its experts (direct), or per_gpu, or per_domain.")
    ] = "direct",
    loads: Annotated[
        str | None, typer.Option(help="Expert loads: a recording of an engine, or JSON lists, as place reads them.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="Plan or engine's map of experts, as place writes it.  [default: in order]")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="A serving engine, as vllm-blackwell, or a TOML file; in place of --profile.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help=f"Rates at: {', '.join(_TIMES)}.  [default: serial; engine, with one]")
    ] = None,
    profile: Profile = "ideal",
    expert_profile: Annotated[
        str | None, typer.Option(help="Software of dispatch and combine.  [default: --profile]")
    ] = None,
    batch_per_gpu: BatchPerGpu = None,
    batch: Batch = None,
    context: Context = CONTEXT,
    domains: OneDomain = None,
    assume: Assume = None,
    settings: Settings = None,
    figure: Annotated[
        str | None, typer.Option(help="Draw the step as a waterfall into this .png, .svg or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Work out one step of a model on a design."""
    from rackbound._recorded import plan_of, recorded
    from serving import Layout, Workload, load_model, step_brackets
    from serving import step as stepped

    stated, overrides = assumptions_of(assume), overrides_of(settings)
    per_gpu = BATCH_PER_GPU if batch is None and batch_per_gpu is None else batch_per_gpu
    cut: dict[str, Any] = {"pp": pp, "tp": tp, "cp": cp, "dp": dp, "shared": shared, "redundant": redundant,
                           "micro_batches": micro_batches}  # fmt: skip
    asked: dict[str, Any] = {"phase": phase, "context": context, "batch": batch, "batch_per_gpu": per_gpu,
                             "cached": cached, "chunk": chunk, "prompt": prompt, "draft": draft,
                             "acceptance": acceptance, "drafter": drafter, "copies": copies}  # fmt: skip
    work, loaded, sketch, recording, runs = together(
        lambda: Workload(**asked),
        lambda: load_model(model, stated),
        lambda: Layout(1 if ep is None else ep, **cut),
        lambda: recorded(loads),
        lambda: _software(engine, profile),
    )
    shown = None if is_graph_file(design) else load_design(design, overrides)
    usual = -(-sketch.gpus // shown.design.domain_size) if shown else 1
    fabric = fabric_of(design, domains, usual if usual <= _MOST_DOMAINS else 1, overrides)
    recording = None if recording is None else recording.for_model(loaded)
    load = None if recording is None else recording.load
    placed = None if plan is None else plan_of(plan, ep or fabric.n_ranks // pp, loaded)
    if placed is not None and ep is None:
        sketch = replace(sketch, ep=placed.ep, pp=placed.pp)
    elif ep is None and loaded.is_moe:
        each = tp * cp
        sketch = replace(sketch, ep=dp * each if dp else max(1, fabric.n_ranks // pp // each * each))
    software: dict[str, Any] = {"profile": runs, "expert_profile": expert_profile, "time": time}
    given: dict[str, Any] = {"layout": sketch, "plan": placed, "expert_load": load}
    result = stepped(fabric, loaded, work, **given, **software)
    held = step_brackets(fabric, loaded, work, **given)
    racks = (
        _one_or_two_racks(design, overrides, fabric, loaded, work, result, load, software)
        if shown and shown.scale_out and placed is None
        else None
    )
    if figure is not None:
        _draw(figure, result, f"{loaded.name} on {fabric.name}")
    said = (*result.assumptions, *(recording.notes if recording else ()))
    if as_json:
        inputs = {"design": design, "model": model, "assume": stated, "ep": sketch.ep, **cut, **asked,
                  "loads": loads, "plan": plan, "profile": profile, "expert_profile": expert_profile, "engine": engine,
                  "time": result.time, "domains": len(fabric.domain_sizes), "settings": overrides}  # fmt: skip
        emit_json(envelope("step/1", inputs, said, result.to_dict() | {"brackets": told(held), "racks": racks}))
        return
    from rackbound._reports import step_report

    step_report(design, len(fabric.domain_sizes), loaded, work, replace(result, assumptions=said), held, racks)


def _software(engine: str | None, profile: str) -> Any:
    """Return the profile of the step: the engine where one is named."""
    if engine is None:
        return profile
    if profile != "ideal":
        raise InputError(Fault("--profile", profile, "does not go with --engine", "Leave one of the two out."))
    return engine_of(engine)


def _draw(file: str, result: Any, heading: str) -> None:
    """Write the waterfall, in the format of the file's suffix or in the usual ones."""
    import figures

    path = Path(file)
    formats = [path.suffix[1:]] if path.suffix else ["png", "svg"]
    for written in figures.save(figures.draw_step(result, heading=heading), path.with_suffix(""), formats):
        note(f"wrote {written}")


def _one_or_two_racks(
    design: str,
    overrides: dict[str, Any],
    fabric: Fabric,
    model: Any,
    work: Any,
    result: Any,
    load: Any,
    more: dict[str, Any],
) -> list[dict[str, Any]] | None:
    """Return the step over one domain and over two, as wide as the one asked; None where that cannot be told.

    The batch policy of the workload holds. Over one domain the group is half as wide as over two.
    """
    from serving import step as stepped

    layout, size = result.layout, int(fabric.domain_sizes.max())
    one = layout.stage <= size
    plain = layout.pp == layout.tp == layout.cp == 1 and layout.stage == layout.ep and model.is_moe
    # Twice as wide a group may still lie in one domain, and three do not halve.
    if not plain or not size < 2 * layout.ep <= 4 * size or (not one and layout.ep % 2):
        return None
    count = 2 if one else 1
    width = layout.ep * 2 if one else layout.ep // 2
    other = stepped(
        fabric_of(design, count, count, overrides), model, work, layout=replace(layout, ep=width, dp=None),
        expert_load=load, **more,
    )  # fmt: skip
    rows = [_row(1 if one else 2, result), _row(count, other)]
    return rows if one else rows[::-1]


def _row(domains: int, found: Any) -> dict[str, Any]:
    names = ("lower", "two_batch", "serial", "remote_share", "binding_link", "binding", "fits")
    per_gpu = found.tokens_per_second / found.layout.gpus
    return {"domains": domains, "ep": found.layout.ep} | {name: getattr(found, name) for name in names} | {
        "tokens_per_second_per_gpu": per_gpu
    }  # fmt: skip
