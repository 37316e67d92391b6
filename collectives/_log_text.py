"""What does a table that nccl-tests or rccl-tests printed say, whatever stands before, between and after its rows?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from collectives._log_draft import Draft, RawRow, Side, number, side_of, told
from collectives._log_words import DTYPES, kind_named
from topo import Source

__all__ = ["has_table", "read_text"]

#: A row: size, count and type; what launchers write before it ends in something else than a letter or digit.
_ROW = re.compile(r"(?:^|[^\w.])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>[A-Za-z]\w*)\s(?P<rest>.*\S)\s*$")
_HEADER = re.compile(r"\b(?:size|bytes)\s.*\btype\b.*\b(?:cpu)?time\b.*\balgbw\b")
_UNITS = re.compile(r"\((us|ms|ns|s)\)")
_RANK = re.compile(r"\bRank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?(?:Pid\s+\d+\s+)?(?:on|uses)\s+(\S+)\s+device")
_DEVICE = re.compile(r"#\s+Device\s+(\d+)\s+->\s+\d+\s+\[")
_DEBUG = re.compile(r" NCCL (?:INFO|TRACE|WARN) ")
_COMMUNICATOR = re.compile(r"\bn[rR]anks\s+(\d+)")
_START = re.compile(r"nThread\s+\d+\s+nGpus|Collective test starting|Using devices")
_END = re.compile(r"Out of bounds values|Avg bus bandwidth|Collective test concluded")
_PROGRAM = re.compile(r"\b(\w+_perf)(?:_mpi)?\b")
_ELIDED = re.compile(r"^\W*\.\.\.\W*$|^\W*…\W*$")
#: Tag of the process that wrote a line: [1,3]<stdout>: of mpirun, 3: of srun.
_TAG = re.compile(r"\[[^\[\]]*?,?(\d+)\]<std(?:out|err)>|^\s*(\d+):\s")
#: Bars of a table in Markdown or of a launcher, and marks of code.
_MARKUP = str.maketrans("|`", "  ")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d(?:T\S+)?|\d\d:\d\d:\d\d(?:\.\d+)?")

_FOUR = ("time", "algbw", "busbw", "wrong")
_EIGHT = (*_FOUR, "i_min", "i_max", "i_p99", "i_cv")
_CHOICE = ("algo", "proto", "nchannels")
#: Where no header stands: numbers after type and reduction -> whether a root comes first, columns of the sides.
_LAYOUTS: dict[int, tuple[bool, tuple[tuple[str, ...], ...]]] = {
    3: (False, (_FOUR[:3],)), 4: (False, (_FOUR,)), 5: (True, (_FOUR,)), 6: (False, (_FOUR[:3], _FOUR[:3])),
    8: (False, (_FOUR, _FOUR)), 9: (True, (_FOUR, _FOUR)), 12: (True, (_FOUR, (*_FOUR, *_CHOICE))),
    17: (True, (_EIGHT, _EIGHT)),
}  # fmt: skip
#: Blanks in a row's place of numbers out of place: only in place was run.
_GAP = re.compile(r"\s{25,}")


@dataclass
class _Stream:
    """What one process has printed so far."""

    drafts: list[Draft] = field(default_factory=list)
    sides: tuple[tuple[str, ...], ...] | None = None
    has_root: bool = False
    old_errors: bool = False
    time_unit: str | None = None
    kind: str | None = None
    devices: list[tuple[int, str, str]] = field(default_factory=list)
    communicator: int = 0
    ended: bool = True
    headed: bool = False


def has_table(source: Source) -> bool:
    """Whether a text has a row of a table, or its header."""
    plain = (line for line in source.lines if not _DEBUG.search(line))
    return any(_HEADER.search(line) or _row(line.translate(_MARKUP), 0, _Stream()) for line in plain)


def read_text(source: Source) -> tuple[list[Draft], list[str]]:
    """Return the runs of a text, and notes of rows left out or cut off."""
    streams: dict[str, _Stream] = {}
    notes: dict[str, list[int]] = {}
    for place, text in enumerate(source.lines, 1):
        line = text.translate(_MARKUP) if "|" in text or "`" in text else text
        tag = _TAG.search(line)
        stream = streams.setdefault((tag[1] or tag[2]) if tag else "", _Stream())
        for what in _take(stream, line, place):
            notes.setdefault(what, []).append(place)
    printing = [stream for stream in streams.values() if stream.drafts]
    said = [f"{told(lines)}: {what}" for what, lines in notes.items()]
    if len(printing) > 1:
        said.append(
            f"{len(printing)} processes printed a table each: every one is a run of its own (a build without MPI)"
        )
    return [draft for stream in printing for draft in stream.drafts], said


def _take(stream: _Stream, line: str, place: int) -> Iterator[str]:
    """Let a stream take a line; yield what must be said of it."""
    if _DEBUG.search(line):  # by far the most lines there are
        if communicator := _COMMUNICATOR.search(line):
            stream.communicator = max(stream.communicator, int(communicator[1]))
        return
    row = _row(line, place, stream)
    if row is not None:
        raw, cut = row
        _append(stream, raw)
        if cut:
            yield cut
    elif _HEADER.search(line):
        _set_columns(stream, line)
    elif _ELIDED.match(_TAG.sub("", line)) and (stream.drafts or stream.headed):
        yield "rows left out ('...')"
    else:
        _take_words(stream, line)
        if _ROW.search(line) and re.search(r"\d\.\d\d\s", line):
            yield "cut off or unreadable row: dropped"


def _take_words(stream: _Stream, line: str) -> None:
    if unit := _UNITS.search(line):
        stream.time_unit = unit[1]
        return
    if program := _PROGRAM.search(line):
        kind = kind_named(program[1])
        if "concluded" in line and stream.drafts:
            stream.drafts[-1].kind = stream.drafts[-1].kind or kind
        else:
            stream.kind = kind or stream.kind
    if rank := _RANK.search(line):
        stream.devices.append((int(rank[1]), rank[2] or "", rank[3]))
    elif device := _DEVICE.search(line):
        stream.devices.append((int(device[1]), "", ""))
    if _START.search(line):
        stream.ended = True
        if "Using devices" in line:
            stream.devices, stream.communicator = [], 0
    elif _END.search(line):
        stream.ended = True
        if "FAILED" in line and "bounds" in line and stream.drafts:
            stream.drafts[-1].failed = True


def _set_columns(stream: _Stream, line: str) -> None:
    names = line[re.search(r"\b(?:size|bytes)\s", line).start() :].split()  # type: ignore[union-attr]
    names = [name for name in names if not name.startswith("(")]
    starts = [place for place, name in enumerate(names) if name in ("time", "cputime")]
    ends = [*starts[1:], len(names)]
    stream.sides = tuple(
        tuple(name for name in names[start:end] if name != "timestamp")
        for start, end in zip(starts, ends, strict=True)
    )  # fmt: skip
    stream.has_root = "root" in names[: starts[0]]
    stream.old_errors = any(name in ("error", "res") for name in names)
    unit = _UNITS.search(line)
    stream.headed, stream.time_unit = True, unit[1] if unit else None


def _row(line: str, place: int, stream: _Stream) -> tuple[RawRow, str | None] | None:
    """Return the row of a line and what is wrong with it; None where there is none."""
    found = _ROW.search(line)
    if found is None:
        return None
    words = [word for word in found["rest"].split() if not _CLOCK.fullmatch(word)]
    redop = (
        words.pop(0) if words and re.fullmatch(r"[A-Za-z]\w*", words[0]) and words[0] not in ("nan", "SKIP") else None
    )
    read = _sides(words, found["rest"], stream)
    if read is None or not (found["type"] in DTYPES or redop):
        return None
    root, sides, cut = read
    head = int(found["size"]), int(found["count"]), found["type"]
    return RawRow(place, *head, *sides, redop, root), cut


def _sides(
    words: list[str], rest: str, stream: _Stream
) -> tuple[int | None, tuple[Side | None, Side | None], str | None] | None:
    """Return root, out of place and in place of a row's numbers, and whether it was cut off."""
    columns, has_root, cut = stream.sides, stream.has_root, None
    if columns is None:
        has_root, columns = _LAYOUTS.get(len(words), (False, ()))
    elif len(words) < has_root + sum(map(len, columns)):
        if len(words) > has_root + len(columns[0]):  # the last word itself may be cut off
            cut = "cut off: what was measured in place is dropped"
        columns = columns[:1] if len(words) >= has_root + len(columns[0]) else ()
    if not columns:
        return None
    root = number(words[0]) if has_root else None
    numbers = words[has_root : has_root + sum(map(len, columns))]
    if (has_root and root is None) or sum(number(word) is not None for word in numbers[:3]) < 3:
        return None
    width = len(columns[0])
    first = side_of(dict(zip(columns[0], numbers[:width], strict=True)))
    second = side_of(dict(zip(columns[1], numbers[width:], strict=True))) if len(columns) > 1 else None
    if len(columns) == 1 and not cut and _GAP.search(rest):
        first, second = None, first
    return (None if root is None else int(root)), (first, second), cut


def _append(stream: _Stream, row: RawRow) -> None:
    if not stream.drafts or stream.ended or _starts(stream.drafts[-1].rows[-1], row):
        ranks, hosts = _listed(stream)
        rate = "GB/s" if stream.time_unit else None
        stream.drafts.append(Draft([], stream.time_unit, rate, stream.old_errors, stream.kind, ranks, hosts))
    stream.drafts[-1].rows.append(row)
    stream.ended = False


def _listed(stream: _Stream) -> tuple[set[int], tuple[int, ...]]:
    """Return the ranks that the devices, else NCCL's log, tell of, and those of every host."""
    if not stream.devices:
        return ({stream.communicator} if stream.communicator else set()), ()
    group = stream.devices[0][1]
    mine = [(rank, host) for rank, other, host in stream.devices if other == group]
    hosts = tuple(Counter(host for _, host in mine).values())
    # A list that leaves lines out still numbers its last rank.
    ranks = {len(mine), *([] if group else [max(rank for rank, _ in mine) + 1])}
    return ranks, hosts if len(ranks) == 1 else ()


def _starts(last: RawRow, row: RawRow) -> bool:
    """Whether a row begins another run: sizes start over, or what was run changes."""
    same = (last.dtype, last.redop, last.root) == (row.dtype, row.redop, row.root)
    shares = {row.shares, last.shares} - {0}
    return row.n_bytes < last.n_bytes or not same or len(shares) > 1
