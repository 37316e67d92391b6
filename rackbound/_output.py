"""How does an answer leave the program? JSON with one envelope, files never half-written, tables."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from topo import Fault, InputError

__all__ = ["dumped", "emit_json", "envelope", "note", "open_folder", "say", "show_table", "slug", "write_text"]

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


def open_folder(out: str) -> Path:
    """Return the output folder, made and proven writable.

    Raises
    ------
    InputError
        It is a file, or nothing can be written into it.
    """
    folder = Path(out)
    if not out.strip():
        raise InputError(Fault("--out", out, "names no folder", "Name a folder you may write to."))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        rule = f"cannot be written: {error.strerror or error}"
        raise InputError(Fault("--out", out, rule, "Name a folder you may write to.")) from None
    return folder


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        rule = f"cannot be written: {error.strerror or error}"
        raise InputError(Fault("--out", str(path), rule, "Name a folder you may write to.")) from None


def slug(name: str) -> str:
    """Return a name fit for a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "design"
