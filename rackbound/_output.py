"""How does an answer leave the program? JSON with one envelope, files never half-written, tables."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from topo import Fault, InputError

__all__ = ["dumped", "emit_json", "envelope", "note", "require_folder", "say", "show_table", "slug", "whole_folder"]

#: Columns used where no terminal says how wide it is.
_PIPE_COLUMNS = 118


def _console(stderr: bool = False) -> Console:
    wide = None if os.environ.get("COLUMNS") else _PIPE_COLUMNS
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=wide, soft_wrap=True)


def say(text: str = "") -> None:
    """Print a line of the answer to standard output."""
    _console().print(text, markup=False)


def note(text: str) -> None:
    """Print a note to standard error."""
    _console(stderr=True).print(text, markup=False)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to standard output."""
    cells = [list(row) for row in rows]
    tall = any("\n" in cell for row in cells for cell in row)
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD,
                  leading=1 if tall else 0, pad_edge=False)  # fmt: skip
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in cells:
        table.add_row(*row)
    _console().print(table, markup=False, soft_wrap=False)


def envelope(schema: str, inputs: dict[str, Any], assumptions: Iterable[str], results: Any) -> dict[str, Any]:
    """Return the object every --json prints."""
    from rackbound import __version__

    return {
        "rackbound": __version__, "schema": schema, "inputs": inputs,
        "assumptions": list(dict.fromkeys(assumptions)), "results": results,
    }  # fmt: skip


def dumped(answer: dict[str, Any]) -> str:
    """Return JSON text: fixed order, no NaN."""
    return json.dumps(answer, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def emit_json(answer: dict[str, Any]) -> None:
    """Print JSON to standard output, untouched by any terminal."""
    print(dumped(answer), end="")


def require_folder(out: str) -> None:
    """Refuse an output folder nothing can be written into, before anything is worked out.

    Raises
    ------
    InputError
        It is a file, lies below one, or its nearest folder is not writable.
    """
    if not out.strip():
        raise InputError(Fault("--out", out, "is empty", "Name a folder."))
    above = Path(out)
    while not os.path.lexists(above) and above != above.parent:
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "is no folder" if not above.is_dir() else "may not be written to"
        raise InputError(Fault("--out", out, f"cannot be written: {above} {what}", _FOLDER_CURE))


@contextmanager
def whole_folder(out: str) -> Iterator[Path]:
    """Give a folder to write into; all its files move into `out` together, or none does.

    Raises
    ------
    InputError
        The folder cannot be made or written, or a folder stands where a file should go.
    """
    target = Path(out)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".writing-") as name:
            draft = Path(name)
            yield draft
            files = sorted(draft.iterdir())
            for file in files:
                if (target / file.name).is_dir():
                    rule = "is a folder where a file should go"
                    raise InputError(Fault("--out", str(target / file.name), rule, _FOLDER_CURE))
            for file in files:
                file.replace(target / file.name)
    except OSError as error:
        rule = f"cannot be written: {error.strerror or error}"
        raise InputError(Fault("--out", out, rule, _FOLDER_CURE)) from None


_FOLDER_CURE = "Name a folder you may write to."


def slug(name: str) -> str:
    """Return a name fit for a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "design"
