"""The command `rackbound lecture`: every claim of the lecture against a design and a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rackbound._defaults import CONTEXT
from rackbound._options import Batch, BatchPerGpu, Context, Json, Settings, overrides_of, workload_of
from rackbound._output import dumped, emit_json, envelope, note, require_folder, say, show_table, whole_folder
from rackbound._reports import assumed
from topo import together

if TYPE_CHECKING:
    from rackbound._lecture_case import Case

__all__ = ["lecture"]


def lecture(
    claim: Annotated[list[int] | None, typer.Option(help="Only this claim; may be given again.")] = None,
    design: Annotated[str, typer.Option(help="Catalogue name or design file.")] = "gb200-nvl72",
    model: Annotated[str, typer.Option(help="Catalogue name or a Hugging Face config.json.")] = "deepseek-v3",
    batch_per_gpu: BatchPerGpu = None,
    batch: Batch = None,
    context: Context = CONTEXT,
    settings: Settings = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for the curves as figures and lecture.json.  [default: none]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try every claim of the lecture on real parts. Reiner Pope's: its number, ours, and whether it holds."""
    from rackbound._lecture import design_of
    from rackbound._lecture import lecture as tried
    from rackbound._lecture_case import Case
    from serving import load_model

    overrides = overrides_of(settings)
    checks = [partial(require_folder, out)] if out is not None else []
    work, loaded = together(
        lambda: workload_of(context, batch, batch_per_gpu),
        lambda: load_model(model),
        lambda: design_of(design, overrides),
        *checks,
    )[:2]
    found = tried(design, loaded, work, claims=claim or (), overrides=overrides)
    inputs = {"design": design, "model": model, "claims": claim or [], "batch": batch,
              "batch_per_gpu": work.batch_per_gpu, "context": context, "settings": overrides}  # fmt: skip
    whole = envelope("lecture/1", inputs, found.assumptions, found.to_dict())
    if out is not None:
        _write(out, Case(design, loaded, work, overrides), whole)
    if as_json:
        emit_json(whole)
        return
    show_table(
        f"The lecture's claims on {design} with {loaded.name}, {work.batch_policy}, context {context}",
        ("#", "claim, and why it holds or not", "lecture", "ours", "holds"),
        ((str(one.number), f"{one.statement} [{one.at}]\n{one.why}", one.lecture_text, one.our_text, one.verdict)
         for one in found.told),
    )  # fmt: skip
    say(", ".join(f"{count} {word}" for word, count in found.counts.items() if count))
    assumed(found.assumptions)


def _write(out: str, case: Case, whole: dict[str, Any]) -> None:
    """Write the curves and the answer, all or nothing."""
    import figures
    from rackbound._lecture_figures import FIGURES, lecture_figures

    drawn = lecture_figures(case)
    with whole_folder(out) as folder:
        files = [file for name, axes in drawn.items() for file in figures.save(axes, folder / name)]
        (folder / "lecture.json").write_text(dumped(whole), encoding="utf-8")
    missing = ", ".join(name for name in FIGURES if name not in drawn)
    note(f"wrote lecture.json and {len(files)} figures into {out}{missing and f'; not drawn: {missing}'}")
