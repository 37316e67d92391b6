"""The command `rackbound evaluate`: the answer, its table, its figures and its JSON."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from placement import Terms
from rackbound._brackets import brackets_report
from rackbound._defaults import BUDGET, CONTEXT, DOMAINS
from rackbound._evaluate import DesignAnswer, Evaluation
from rackbound._evaluate import evaluate as evaluated
from rackbound._graphs import graph_of
from rackbound._options import (
    Assume,
    Batch,
    BatchPerGpu,
    Budget,
    Context,
    Domains,
    Json,
    ModelName,
    Overlap,
    Profile,
    Settings,
    assumptions_of,
    budget_seconds,
    overrides_of,
    workload_of,
)
from rackbound._output import (
    dumped,
    emit_json,
    envelope,
    note,
    require_folder,
    say,
    show_table,
    slug,
    whole_folder,
)
from rackbound._reports import assumed
from serving import load_model
from topo import InputError, together
from topo.units import format_quantity

__all__ = ["evaluate"]


def evaluate(
    designs: Annotated[list[str], typer.Argument(metavar="DESIGN...", help="Catalogue names or design files.")],
    model: ModelName,
    batch_per_gpu: BatchPerGpu = None,
    batch: Batch = None,
    context: Context = CONTEXT,
    budget: Budget = BUDGET,
    domains: Domains = None,
    overlap: Overlap = "none",
    profile: Profile = "ideal",
    out: Annotated[str, typer.Option(help="Folder for figures and evaluate.json.")] = "rackbound-out",
    assume: Assume = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Say whether one rack bounds a model's expert layer. For one or many designs."""
    work, terms, overrides, loaded, *_ = together(
        lambda: workload_of(context, batch, batch_per_gpu),
        lambda: Terms(budget_seconds(budget), overlap),
        lambda: overrides_of(settings),
        lambda: load_model(model, assumptions_of(assume)),
        *(partial(_loadable, name, domains, settings) for name in dict.fromkeys(designs)),
        lambda: require_folder(out),
    )
    answer = evaluated(
        designs, loaded, workload=work, budget=terms.budget, domains=domains, overlap=overlap, overrides=overrides,
        profile=profile,
    )  # fmt: skip
    inputs = {
        "designs": designs, "model": model, "assume": assumptions_of(assume), "batch": batch,
        "batch_per_gpu": work.batch_per_gpu, "context": context, "budget": terms.budget,
        "domains": answer.domains, "overlap": overlap, "profile": profile, "settings": overrides,
    }  # fmt: skip
    whole = envelope("evaluate/1", inputs, _shared(answer.designs), answer.to_dict())
    with whole_folder(out) as folder:  # made only once there is an answer to put into it
        files = _draw(answer, folder)
        (folder / "evaluate.json").write_text(dumped(whole), encoding="utf-8")
    if as_json:
        emit_json(whole)
    else:
        _report(answer)
    note(f"wrote evaluate.json and {len(files)} figures into {out}")


def _loadable(name: str, domains: Any, settings: list[str] | None) -> None:
    """Raise what is wrong with a design; what is wrong with --set itself is said apart from it."""
    try:
        overrides = overrides_of(settings)
    except InputError:
        overrides = {}
    graph_of(name, domains, DOMAINS, overrides)


def _report(answer: Evaluation) -> None:
    """Print first lines, table, what binds, where it flips, what was assumed."""
    for one in answer.designs:
        say(one.summary)
    say()
    budget, work = format_quantity(answer.budget, "seconds"), answer.workload
    asked = f"{work.batch_policy}, context {work.context}, budget {budget}, overlap {answer.overlap}"
    show_table(
        f"{answer.model.name}, {answer.domains} domain{'' if answer.domains == 1 else 's'}, {asked}",
        _COLUMNS,
        (_row(one) for one in answer.designs),
    )
    say()
    for one in answer.designs:
        say(one.binding)
    held = {f"{one.design}: {name}": found for one in answer.designs for name, found in one.brackets.items()}
    brackets_report(held, "Collectives of one layer of its own step")
    for one in answer.designs:
        say(f"\nWhere {one.design} flips:")
        for flip in one.flips or ("nowhere: a dense model has no expert layer",):
            say(f"  - {flip}")
    batch = f"--batch-per-gpu {work.batch_per_gpu}" if work.batch_per_gpu is not None else f"--batch {work.batch}"
    say(f"\nAsked: {batch} --context {work.context} --budget {budget.replace(' ', '')} --domains {answer.domains} "
        f"--overlap {answer.overlap}")  # fmt: skip
    assumed(_shared(answer.designs))


_COLUMNS = (
    "design", "its expert layer", "the bound", "bound / layer", "within", "one domain bounds", "its own step",
    "memory per GPU",
)  # fmt: skip


def _shared(designs: tuple[DesignAnswer, ...]) -> list[str]:
    """Return every assumption once, with the designs it is about where it is not about all."""
    about: dict[str, list[str]] = {}
    for one in designs:
        for line in dict.fromkeys(one.assumptions):
            about.setdefault(line, []).append(one.design)
    return [line if len(names) == len(designs) else f"{', '.join(names)}: {line}" for line, names in about.items()]


def _row(one: DesignAnswer) -> tuple[str, ...]:
    bound, step = one.bound, one.step
    need, room = (format_quantity(n, "bytes", 3) for n in (step.memory_per_gpu, step.memory_usable))
    memory = f"{need}\nof {room}" if step.fits else f"does not fit:\n{need} of {room}"
    low, high = format_quantity(step.lower, "seconds", 3), format_quantity(step.serial, "seconds", 3)
    own = f"{low} ..\n{high}\nat EP {step.layout.ep}"
    if one.ratio is None:
        return one.design, "none: dense", "no experts", "", "", "", own, memory
    layer = f"{one.layer_experts:,} experts\n{format_quantity(one.layer_bytes, 'bytes', 3)}"
    size = f"{bound.n_experts:,} experts\n{format_quantity(bound.n_bytes, 'bytes', 4)}\non {bound.width} GPUs"
    found = size if bound.n_experts else bound.status
    verdicts = ("yes" if one.within_bound else "no", _one_domain(bound))
    return one.design, layer, found, f"{one.ratio:.4g}", *verdicts, own, memory


def _one_domain(bound: Any) -> str:
    if bound.scale_out_needed is None:
        return "only one"
    if bound.one_domain_bounds is None:
        return "no layer"
    return "yes" if bound.one_domain_bounds else "no"


def _draw(answer: Evaluation, folder: Path) -> list[Path]:
    """Draw every figure first, then write them."""
    import figures

    names = _file_names(answer)
    drawn: list[tuple[str, Any]] = []
    for name, one, graph in zip(names, answer.designs, answer.graphs, strict=True):
        drawn.append((f"topology-{name}", figures.draw_topology(graph, one.dispatch)))
        word = "rack" if any("rack" in data for _, data in graph.nodes(data=True)) else "domain"
        if one.curve is not None:
            curve = one.curve
            drawn.append((f"step-time-{name}", figures.draw_step_time(
                curve.width, curve.serial, curve.lower, all_to_all=curve.all_to_all, fits=curve.fits,
                budget=answer.budget, boundary=one.domain_size, domain=word,
                heading=f"{answer.model.name} on {one.design}",
            )))  # fmt: skip
            drawn.append((f"width-{name}", figures.draw_width_curve(one.bound, boundary=one.domain_size, domain=word)))
    drawn.append(("bounds", figures.draw_bounds(
        [one.design for one in answer.designs], [one.bound for one in answer.designs],
        model_experts=answer.model.n_experts, model_name=answer.model.name,
    )))  # fmt: skip
    return [path for name, axes in drawn for path in figures.save(axes, folder / name)]


def _file_names(answer: Evaluation) -> list[str]:
    """File-safe names of the designs, numbered where they coincide."""
    names: list[str] = []
    for one in answer.designs:
        base, number = slug(one.design), 1
        while (name := base if number == 1 else f"{base}-{number}") in names:
            number += 1
        names.append(name)
    return names
