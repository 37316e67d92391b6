"""The command `rackbound lecture`: every claim of the lecture against a design and a model."""

from __future__ import annotations

from typing import Annotated

import typer

from rackbound._defaults import CONTEXT
from rackbound._options import Batch, BatchPerGpu, Context, Json, Settings, overrides_of, workload_of
from rackbound._output import emit_json, envelope, say, show_table
from rackbound._reports import assumed
from topo import load_design, together

__all__ = ["lecture"]


def lecture(
    claim: Annotated[list[int] | None, typer.Option(help="Only this claim; may be given again.")] = None,
    design: Annotated[str, typer.Option(help="Catalogue name or design file.")] = "gb200-nvl72",
    model: Annotated[str, typer.Option(help="Catalogue name or a Hugging Face config.json.")] = "deepseek-v3",
    batch_per_gpu: BatchPerGpu = None,
    batch: Batch = None,
    context: Context = CONTEXT,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Try every claim of R. Pope's lecture: its number, ours, and whether it holds."""
    from rackbound._lecture import lecture as tried
    from serving import load_model

    overrides = overrides_of(settings)
    work, loaded, _ = together(
        lambda: workload_of(context, batch, batch_per_gpu),
        lambda: load_model(model),
        lambda: load_design(design, overrides),
    )
    found = tried(design, loaded, work, claims=claim or (), overrides=overrides)
    if as_json:
        inputs = {"design": design, "model": model, "claims": claim or [], "batch": batch,
                  "batch_per_gpu": work.batch_per_gpu, "context": context, "settings": overrides}  # fmt: skip
        emit_json(envelope("lecture/1", inputs, found.assumptions, found.to_dict()))
        return
    show_table(
        f"The lecture's claims on {design} with {loaded.name}, {work.batch_policy}, context {context}",
        ("#", "claim, and why it holds or not", "lecture", "ours", "holds"),
        ((str(one.number), f"{one.statement} [{one.at}]\n{one.why}", one.lecture_text, one.our_text, one.verdict)
         for one in found.told),
    )  # fmt: skip
    say(", ".join(f"{count} {word}" for word, count in found.counts.items() if count))
    assumed(found.assumptions)
