"""What did others measure? Logs of nccl-tests, rccl-tests and nccom-test, read and made whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from collectives import _log_nccom, _log_tables, _log_text
from collectives._kinds import KINDS
from collectives._log_draft import Draft, rows_of
from collectives._log_meaning import meaning
from collectives._log_records import Log, Sweep
from topo import Fault, InputError, Source, read_source, suggest

__all__ = ["FORMATS", "is_log", "read_log"]


@dataclass(frozen=True)
class Format:
    """One format of logs: what people call it, whether a text is one, and its runs and notes."""

    title: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], tuple[list[Draft], list[str]]]
    counts_elements: bool = True


#: Tried in this order.
FORMATS = {
    "nccl-tests-json": Format("JSON of nccl-tests (-J)", _log_tables.is_nccl_json, _log_tables.read_nccl_json),
    "rccl-tests-json": Format("JSON of rccl-tests (-Z json)", _log_tables.is_rccl_json, _log_tables.read_rccl_json),
    "nccom-test-json": Format("JSON of nccom-test", _log_nccom.is_json, _log_nccom.read_json, False),
    "csv": Format("CSV of rccl-tests (-Z csv), or of a script", _log_tables.is_csv, _log_tables.read_csv),
    "nccom-test": Format("table of nccom-test (Trainium)", _log_nccom.is_text, _log_nccom.read_text, False),
    "nccl-tests": Format("table of nccl-tests or rccl-tests", _log_text.has_table, _log_text.read_text),
}


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a log by its content."""
    source, _ = read_source(path)
    return any(one.recognises(source) for one in FORMATS.values())


def read_log(path: str | os.PathLike[str], *, kind: str | None = None, n_ranks: int | None = None) -> Log:
    r"""Read measured collectives from a log.

    Parameters
    ----------
    path : str or path
        What nccl-tests, rccl-tests or nccom-test printed, or wrote as JSON or CSV; docs/logs.md.
    kind : str, optional
        The collective of all runs in it, where the file does not say.
    n_ranks : int, optional
        Their ranks, where the file does not say.

    Returns
    -------
    Log
        Runs of rows in SI units, and notes of everything filled in or dropped. What stays
        open is None, and `Log.missing` says how to give it.

    Raises
    ------
    InputError
        No log, none of its rows readable, or a kind or number of ranks the table cannot have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = '''#  size    count  type  redop  root   time  algbw  busbw #wrong
    ... #   (B) (elements)                       (us) (GB/s) (GB/s)
    ...   1073741824  268435456  float  sum  -1  4253.0 252.47 441.81 0'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "log.txt").write_text(text)
    ...     read_log(Path(folder) / "log.txt")
    Log(nccl-tests: all_reduce over 8 ranks: 1 sizes, 1.074 GB to 1.074 GB; 1 notes)
    """
    source, notes = read_source(path)
    if kind is not None and kind not in KINDS:
        raise InputError(Fault("kind", kind, "is not a known kind", suggest(kind, KINDS)))
    if n_ranks is not None and n_ranks < 1:
        raise InputError(Fault("n_ranks", n_ranks, "must be at least 1", "Give the number of ranks."))
    name, form = next(((name, one) for name, one in FORMATS.items() if one.recognises(source)), (None, None))
    if name is None or form is None:
        rule = "is no log of nccl-tests, rccl-tests or nccom-test: no table of size, time, algbw and busbw"
        cure = "Give what these print, or their JSON or CSV; a table of systems is for rackbound validate."
        raise InputError(Fault("file", source.text.strip()[:40], rule, cure, source.file))
    drafts, said = form.read(source)
    notes += said
    sweeps = [_sweep(draft, form, source.file, notes, kind, n_ranks) for draft in drafts]
    kept = tuple(sweep for sweep in sweeps if sweep.rows)
    if not kept:
        rule = f"has no row with a size and a time above zero: {form.title}"
        raise InputError(Fault("file", source.text.strip()[:40], rule, "Give the whole table.", source.file))
    return Log(source.file, name, kept, tuple(dict.fromkeys(notes)))


def _sweep(draft: Draft, form: Format, file: str, notes: list[str], kind: str | None, n_ranks: int | None) -> Sweep:
    """Return a run with its kind and ranks; what is said of it joins the notes."""
    rows, scale, said = rows_of(draft, file)
    notes += said
    if not rows:
        return Sweep(None, None, ())
    lines = {row.line for row in rows}
    draft = replace(draft, rows=[row for row in draft.rows if row.line in lines], scale=scale)
    if kind is not None:
        draft = replace(draft, kind=kind)
    if n_ranks is not None:
        draft = replace(draft, ranks={n_ranks})
    found = meaning(draft, file, form.counts_elements)
    for name, given, read in (("kind", kind, found.kind), ("n_ranks", n_ranks, found.n_ranks)):
        if given is not None and given != read:
            rule = f"does not fit the table of line {rows[0].line}, which says {read}"
            raise InputError(Fault(name, given, rule, "Leave it out, or give the one that was run.", file))
    notes += found.notes
    return Sweep(found.kind, found.n_ranks, rows, found.between, draft.hosts, found.kinds)
