"""Which measured rows does a log hold, on which design? Logs as the records that predictions are held against."""

from __future__ import annotations

import os
from collections.abc import Iterator

from collectives._log import read_log
from collectives._log_records import Log, LogRow, Sweep
from collectives._measured import Measurement, Skipped, is_predicted
from collectives._systems import System, system_of
from topo import Fault, InputError

__all__ = ["library_on", "log_rows"]


def library_on(chip: str) -> str:
    """Return the library that runs collectives on a chip.

    Examples
    --------
    >>> library_on("MI300X"), library_on("H100-80GB")
    ('rccl', 'nccl')
    """
    return "rccl" if chip.startswith("MI") else "nccl"


def log_rows(
    path: str | os.PathLike[str],
    design: str | None,
    *,
    domains: int | None = None,
    kind: str | None = None,
    n_ranks: int | None = None,
) -> tuple[list[Measurement], list[Skipped], tuple[str, ...]]:
    """Return the rows of a log on a design, those that do not count, and notes of what was filled in.

    Parameters
    ----------
    path : str or path
        A log.
    design : str or None
        Catalogue name, design file or graph file; None is refused, with the cure.
    domains : int, optional
        Scale-up domains; by default as many as the ranks need.
    kind, n_ranks
        As `read_log`.

    Raises
    ------
    InputError
        No design, a log that leaves something open, more ranks than the domains have.
    """
    log = read_log(path, kind=kind, n_ranks=n_ranks)
    if design is None:
        rule = "is a log, which does not say what it was run on"
        raise InputError(Fault("design", None, rule, "Name it: design= (--design hgx-h100-8).", log.file))
    system = system_of(design)
    library = library_on(system.chip)
    faults = [*log.missing, *_too_many(log, system, domains)]
    if faults:
        raise InputError(*faults)
    rows: list[Measurement] = []
    skipped: list[Skipped] = []
    for sweep in log.sweeps:
        taken = domains or system.domains_of(int(sweep.n_ranks or 1))
        for row in sweep.rows:
            reason = _reason(sweep, row)
            if reason:
                skipped.append(Skipped(f"line {row.line}", reason))
            else:
                rows.append(_measurement(design, library, sweep, row, taken))
    return rows, skipped, log.notes


def _too_many(log: Log, system: System, domains: int | None) -> Iterator[Fault]:
    whole = system.whole
    most, cure = whole.n_ranks if whole else system.domain_size * (domains or 0), "Give more domains= (--domains)."
    for sweep in log.sweeps:
        if (whole or domains) and (sweep.n_ranks or 0) > most:
            rule = f"ranks took part, and {'the graph has' if whole else f'{domains} domains have'} {most}"
            yield Fault(f"line {sweep.rows[0].line}", sweep.n_ranks, rule,
                        "Give the graph that was measured." if whole else cure, log.file)  # fmt: skip


def _reason(sweep: Sweep, row: LogRow) -> str:
    """Return why a row does not count; empty if it does."""
    if row.failed:
        return "its check failed"
    if (sweep.n_ranks or 0) < 2:
        return "one rank sends nothing"
    return "" if is_predicted(str(sweep.kind)) else f"{sweep.kind}: no profile predicts this quantity"


def _measurement(design: str, library: str, sweep: Sweep, row: LogRow, domains: int) -> Measurement:
    return Measurement(
        f"line {row.line}", design, str(sweep.kind), library, row.dtype, int(sweep.n_ranks or 0), domains,
        float(row.n_bytes), row.seconds,
    )  # fmt: skip
