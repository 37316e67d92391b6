"""The command `rackbound sweep`: every layout, batch and context of a study, and the best of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rackbound._options import Json
from rackbound._output import emit_json, envelope, note, say, show_table
from topo.units import format_quantity

__all__ = ["sweep"]

#: Rows of the front a table shows.
_SHOWN = 24


def sweep(
    study: Annotated[
        str, typer.Argument(metavar="STUDY.toml", help="Tables study, layout, workload; lists are swept.")
    ],
    figure: Annotated[str | None, typer.Option(help="Draw the front into this .png, .svg or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Sweep a study for the layouts that no other beats. In both speed and tokens per GPU."""
    from rackbound._study import read_study
    from serving import sweep as swept

    asked = read_study(study)
    found = swept(asked.graphs, asked.models, asked.workloads, time=asked.time, profile=asked.profile, **asked.axes)
    if figure is not None:
        import figures

        path = Path(figure)
        formats = [path.suffix[1:]] if path.suffix else ["png", "svg"]
        for written in figures.save(figures.draw_pareto(found), path.with_suffix(""), formats):
            note(f"wrote {written}")
    if as_json:
        emit_json(envelope("sweep/1", {"file": study} | asked.inputs, found.assumptions, found.to_dict()))
        return
    _report(found, "per GPU" if "batch_per_gpu" in asked.inputs["workload"] else "over all GPUs of a stage")


def _report(found: Any, batch: str) -> None:
    told = found.to_dict()
    say(f"{told['points']:,} points, {told['exist']:,} of layouts that can exist, {told['fit']:,} of them fit")
    for reason, count in told["refused"].items():
        say(f"  {count:,} cannot: {reason}")
    front = told["front"]
    step = max(1, -(-len(front) // _SHOWN))
    shown = front[::step] + (front[-1:] if front and (len(front) - 1) % step else [])
    cut = f", every {step}th shown" if step > 1 else ""
    names = [name for name, values in found.axes.items() if len(values) > 1]
    show_table(
        f"front: {len(front)} points that no other beats in both, batches {batch}{cut}",
        [*names, "step", "tokens/s per user", "tokens/s per GPU", "memory"],
        [[*(str(row[name]) for name in names), format_quantity(row["seconds"], "seconds"), f"{row['speed']:.4g}",
          f"{row['tokens_per_gpu']:,.4g}", format_quantity(row["memory_per_gpu"], "bytes")] for row in shown],
    )  # fmt: skip
    if not front:
        say("nothing fits")
