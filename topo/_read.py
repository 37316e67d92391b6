"""What is this file, and what does it say of a topology? Its kind is told by its content, never by its name."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from topo._errors import Fault, InputError, suggest
from topo.readers._kinds import FOREIGN, READERS
from topo.readers._reading import Foreign, Reader, Reading, Source

__all__ = ["kind_of", "read", "read_source"]

Row = TypeVar("Row", Reader, Foreign)

#: Larger files are refused: no topology of ten thousand hosts needs as much [bytes].
_LARGEST = 256 * 2**20
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
          (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_HTML = re.compile(
    r"\s*+(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


def read(path: str | os.PathLike[str], kind: str | None = None) -> Reading:
    r"""Read a file that people already have: its topology, and everything that had to be assumed.

    Parameters
    ----------
    path : str or path
        Output of a tool (nvidia-smi topo -m, rocm-smi --showtopo), a topology file of NCCL
        or RCCL, hwloc XML, a file of a fabric or simulator, or a graph file; see
        `topo.READERS` and docs/reading-files.md.
    kind : str, optional
        A row of `topo.READERS`, where the content does not tell or tells wrong.

    Returns
    -------
    Reading
        Kind, graph (bandwidths in bytes/s per direction, latencies in s), notes, routing.

    Raises
    ------
    InputError
        A file that is missing, empty, binary, HTML, of no known kind, or something else
        than a topology (named, with the command that takes it); and what its reader finds.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = "GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-15\nGPU1 NV4 X 0-15"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "topo.txt").write_text(text)
    ...     read(Path(folder) / "topo.txt")
    Reading(nvidia-smi-topo: 2 gpus, 1 cpu, 3 links; 3 notes)
    """
    if kind is not None and kind not in READERS:
        raise InputError(Fault("kind", kind, "is not a known kind of file", suggest(str(kind), READERS)))
    source, assumed = read_source(path)
    reader = READERS[kind] if kind is not None else _of(source)
    try:
        found = reader.read(source)
    except RecursionError:
        raise InputError(Fault("file", reader.kind, "is nested too deep", "Give the file as its tool wrote it.",
                               source.file)) from None  # fmt: skip
    notes = (*assumed, *found.notes)
    if found.graph is not None:
        found.graph.graph.setdefault("name", Path(source.file).name)
        said = list(found.graph.graph.get("assumptions", ()))
        found.graph.graph["assumptions"] = list(dict.fromkeys([*said, *notes]))
    return Reading(found.kind, found.graph, notes, found.routing)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return what a file is by its content: a row of READERS or FOREIGN; None where none knows it."""
    try:
        source, _ = read_source(path)
    except InputError:
        return None
    row = _first(source, FOREIGN) or _first(source, READERS.values())
    return None if row is None else row.kind


def _of(source: Source) -> Reader:
    """Return the reader of a source by its content."""
    if _HTML.match(source.text):
        raise InputError(Fault("file", source.text.strip()[:40], "is an HTML page, not the file itself",
                               "Download the raw file.", source.file))  # fmt: skip
    foreign, reader = _first(source, FOREIGN), _first(source, READERS.values())
    if foreign is not None:
        also = f" If it holds a topology too: kind={reader.kind!r} (--as {reader.kind})." if reader else ""
        rule = f"is no topology: {foreign.title}"
        raise InputError(Fault("file", foreign.kind, rule, f"{foreign.cure}{also}", source.file))
    if reader is not None:
        return reader
    cure = f"Known kinds: {', '.join(READERS)}; give one with kind= (--as) if it is one of these."
    raise InputError(Fault("file", source.text.strip()[:40], "is of no known kind", cure, source.file))


def _first(source: Source, rows: Iterable[Row]) -> Row | None:
    return next((row for row in rows if row.recognises(source)), None)


def read_source(path: str | os.PathLike[str]) -> tuple[Source, list[str]]:
    """Return the text of a file, and what was assumed of its encoding.

    Raises
    ------
    InputError
        A file that is missing, empty, binary or too large.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(Fault("path", type(path).__name__, "must be a path", "Give the name of a file."))
    file = os.fspath(path)
    try:
        if Path(file).stat().st_size > _LARGEST:
            raise InputError(Fault("file", Path(file).stat().st_size, f"is larger than {_LARGEST} bytes",
                                   "Give the file of one fabric or host.", file))  # fmt: skip
        data = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Fault("file", file, f"cannot be read: {reason}", "Give a file that is there.")) from None
    text, notes = _decoded(data, file)
    if not text.strip():
        raise InputError(Fault("file", f"{len(data)} bytes", "is empty", "Give the output of the tool.", file))
    return Source(file, text.replace("\r\n", "\n").replace("\r", "\n")), notes


def _decoded(data: bytes, file: str) -> tuple[str, list[str]]:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    notes: list[str] = []
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise InputError(Fault("file", encoding, "is not text in the encoding it states", "Save it as UTF-8.",
                                   file)) from None  # fmt: skip
        text = data.decode("latin-1")
        notes = ["the text is not UTF-8: read as Latin-1"]
    if "\0" in text or _controls(text):
        rule = "is binary, not text"
        raise InputError(Fault("file", data[:8].hex(" "), rule, "Give the text that the tool printed.", file))
    return text, notes


def _controls(text: str) -> bool:
    """Whether so many characters are control codes that this is no text of a terminal."""
    head = text[:4096]
    codes = {chr(i) for i in (*range(32), *range(127, 160))} - set("\t\n\r\f\v\b\a\x1b")
    odd = sum(letter in codes for letter in head)
    return odd * 20 > len(head)
