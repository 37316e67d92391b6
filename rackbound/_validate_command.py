"""The command `rackbound validate`: how far off predictions are, by the user's own measurements."""

from __future__ import annotations

from typing import Annotated

import typer

from collectives import Validation
from collectives import validate as validated
from rackbound._options import Json
from rackbound._output import emit_json, envelope, note, say, show_table

__all__ = ["validate"]


def validate(
    file: Annotated[
        str, typer.Argument(help="CSV of measured collectives, or a log of nccl-tests, rccl-tests or nccom-test.")
    ],
    design: Annotated[str | None, typer.Option(help="Of a log: the design or graph file it was run on.")] = None,
    domains: Annotated[int | None, typer.Option(help="Of a log: domains.  [default: as many as needed]")] = None,
    kind: Annotated[str | None, typer.Option(help="Of a log: its collective, where it does not say.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Of a log: its ranks, where it does not say.")] = None,
    profile: Annotated[
        str | None, typer.Option(help="Predict with this name or file.  [default: by library and chip]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Predict a file of measurements, and say how far off."""
    found = validated(file, design=design, domains=domains, kind=kind, n_ranks=ranks, profile=profile)
    if as_json:
        inputs = {
            "file": file, "design": design, "domains": domains, "kind": kind, "ranks": ranks, "profile": profile,
        }  # fmt: skip
        emit_json(envelope("validate/1", inputs, found.assumptions, found.to_dict()))
    else:
        _report(file, found)
    for fault in found.faults:
        note(f"rackbound: a prediction is below what any algorithm needs: {fault}")
    if found.faults:
        raise typer.Exit(1)


def _report(file: str, found: Validation) -> None:
    say(f"{file}: {found.rows} rows predicted, {len(found.skipped)} skipped")
    named = {"all": found.whole, **found.groups}
    rows = (
        (name, str(one.rows), f"{one.median:.1%}", f"{one.p90:.1%}", f"{one.worst:.1%}") for name, one in named.items()
    )
    show_table("|predicted / measured - 1|", ("rows of", "rows", "median", "90 % within", "worst"), rows)
    for title, lines in (("anomalies", found.anomalies), ("assumed", found.assumptions), ("skipped", found.reasons)):
        if lines:
            say(f"{title}:")
            for line in lines:
                say(f"  {line}")
