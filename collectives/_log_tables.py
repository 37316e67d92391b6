"""What do the JSON and CSV files say that nccl-tests, rccl-tests and scripts around them write?"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from collectives._log_draft import Draft, RawRow, Side, number, side_of, told
from collectives._log_words import kind_named
from topo import Fault, InputError, Source

__all__ = [
    "is_csv",
    "is_nccl_json",
    "is_rccl_json",
    "listed",
    "loaded",
    "objects",
    "read_csv",
    "read_nccl_json",
    "read_rccl_json",
    "texts",
    "whole",
]

#: Name of a column or key, plain -> what it holds.
_NAMES = {
    "size": "size", "sizeb": "size", "bytes": "size", "sizebytes": "size", "messagesize": "size", "count": "count",
    "countelements": "count", "type": "type", "dtype": "type", "datatype": "type", "redop": "redop", "op": "redop",
    "root": "root", "inplace": "in_place", "name": "kind", "collective": "kind", "operation": "kind", "test": "kind",
    "ranks": "ranks", "nranks": "ranks", "ngpus": "ranks", "gpus": "ranks", "gpusperrank": "per_rank",
    "ranksnode": "", "numcycle": "cycle",
}  # fmt: skip
#: Unit of a time in the name of its column.
_UNIT = re.compile(r"time.*[_( ](us|ms|ns|s)\b")
_LONGEST = 100_000
_TIMES = ("time", "cputime", "timeus", "outofplacetime", "inplacetime")


def is_nccl_json(source: Source) -> bool:
    """Whether a text is the report of nccl-tests."""
    head = source.clean.lstrip()
    return head[:1] == "{" and '"results"' in head and ('"out_of_place"' in head or '"in_place"' in head)


def is_rccl_json(source: Source) -> bool:
    """Whether a text is the list of rccl-tests."""
    head = source.clean.lstrip()
    return head[:1] == "[" and '"busBw"' in head


def is_csv(source: Source) -> bool:
    """Whether the first line with commas names size, time and a rate; a table of several systems is no log."""
    names = set(map(_plain, next((cells for _, cells in _lines(source)), [])))
    has = [any(name.startswith(word) for name in names) for word in ("time", "cputime", "algbw", "busbw")]
    sized = "size" in map(_NAMES.get, names)
    return sized and len(names) > 3 and any(has[:2]) and any(has[2:]) and "system" not in names


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", re.sub(r"\((?:us|gb/s|ms|gib/s)\)", "", name.lower()))


def _lines(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line with commas."""
    for place, line in enumerate(source.lines, 1):
        if "," in line and len(line) < _LONGEST:
            yield place, [cell.strip() for cell in next(csv.reader([line]))]


def loaded(source: Source) -> Any:
    """Return the content of a JSON text, numbers as printed."""
    try:
        return json.loads(source.clean, parse_float=str, parse_int=str)
    except json.JSONDecodeError as error:
        fault = Fault(f"line {error.lineno}", error.doc[error.pos : error.pos + 30], f"is no JSON: {error.msg}",
                      "Give the whole file; a run that was killed leaves half of one.", source.file)  # fmt: skip
        raise InputError(fault) from None


def read_nccl_json(source: Source) -> tuple[list[Draft], list[str]]:
    """Return the run of a report of nccl-tests: its rows, its program, its devices."""
    content = objects(loaded(source))
    config = objects(content.get("config"))
    draft = Draft([], "us", "GB/s", kind=next(filter(None, map(_program, map(str, listed(content.get("args"))))), None))
    # Of every process only the first device is listed.
    each = int(number(config.get("ngpus")) or 1) * int(number(config.get("nthreads")) or 1)
    devices = [objects(one) for one in listed(config.get("devices") or content.get("devices"))]
    ranks = [int(number(str(device.get("rank"))) or 0) for device in devices]
    if ranks:
        draft.ranks = {max(ranks) + each}
        hosts = Counter(device.get("hostname") for device in devices)
        draft.hosts = tuple(count * each for count in hosts.values()) if draft.ranks == {each * len(ranks)} else ()
    rows = [(place, _reported(place, objects(row))) for place, row in enumerate(listed(content.get("results")), 1)]
    draft.rows = [row for _, row in rows if row is not None]
    draft.failed = str(objects(content.get("out_of_bounds")).get("okay")) == "false"
    bad = [place for place, row in rows if row is None]
    return [draft], ([f"{told(bad)} of results: no size or no time: dropped"] if bad else [])


def objects(value: Any) -> dict[str, Any]:
    """Return an object of JSON; an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list of JSON; an empty one where it is something else."""
    return value if isinstance(value, list) else []


def _reported(place: int, row: dict[str, Any]) -> RawRow | None:
    out_of_place, in_place = (side_of(texts(row.get(key))) for key in ("out_of_place", "in_place"))
    size = number(row.get("size"))
    if size is None or not (out_of_place or in_place):
        return None
    root, count = (whole(row.get(key)) for key in ("root", "count"))
    return RawRow(place, int(size), count, str(row.get("type")), out_of_place, in_place, row.get("redop"), root)


def texts(value: Any) -> dict[str, str]:
    """Return an object of JSON with its values as printed."""
    return {str(key): str(one) for key, one in objects(value).items()}


def whole(text: Any) -> int | None:
    """Return a printed whole number; None where there is none."""
    value = number(text)
    return None if value is None else int(value)


def _program(word: str) -> str | None:
    return kind_named(word.rpartition("/")[2])


def read_rccl_json(source: Source) -> tuple[list[Draft], list[str]]:
    """Return the runs of a list of rccl-tests: a row in place and a row out of place."""
    return _drafts([(place, list(texts(row).items())) for place, row in enumerate(listed(loaded(source)), 1)], "us")


def read_csv(source: Source) -> tuple[list[Draft], list[str]]:
    """Return the runs of a CSV: columns by their names; two times in a row are out of place and in place."""
    lines = list(_lines(source))
    names = lines[0][1]
    width = [len(cells) == len(names) for _, cells in lines]
    rows = [
        (place, list(zip(names, cells, strict=True))) for (place, cells), fits in zip(lines, width, strict=True) if fits
    ]
    cut = [place for (place, _), fits in zip(lines, width, strict=True) if not fits]
    unit = "us" if any(_NAMES.get(_plain(name)) == "cycle" for name in names) else None  # rccl-tests' own
    drafts, notes = _drafts([row for row in rows if [cell for _, cell in row[1]] != names], unit)
    return drafts, notes + ([f"{told(cut)}: not as many cells as the header has: dropped"] if cut else [])


Cells = Sequence[tuple[str, str]]


def _drafts(rows: Sequence[tuple[int, Cells]], time_unit: str | None) -> tuple[list[Draft], list[str]]:
    """Return a run for every collective, number of ranks, type and cycle, rows of one size joined."""
    drafts: dict[tuple[str, ...], Draft] = {}
    bad: list[int] = []
    for place, cells in rows:
        known = {what: value for name, value in cells if (what := _NAMES.get(_plain(name)))}
        sides, size = _split(cells), number(known.get("size"))
        if size is None or not any(sides):
            bad.append(place)
            continue
        key = tuple(known.get(name, "") for name in ("kind", "ranks", "per_rank", "type", "redop", "root", "cycle"))
        old = any(_plain(name) in ("error", "res") for name, _ in cells)
        unit = next((found[1] for name, _ in cells if (found := _UNIT.search(name.lower()))), time_unit)
        draft = drafts.setdefault(key, Draft([], unit, "GB/s", old, _program(known.get("kind", "")), _stated(known)))
        _join(draft, _raw(place, int(size), known, sides))
    return list(drafts.values()), ([f"{told(bad)}: no size or no time: dropped"] if bad else [])


def _stated(known: Mapping[str, str]) -> set[int]:
    """Return the ranks a row may mean: rccl-tests counts processes, and the GPUs of each."""
    ranks, each = number(known.get("ranks")), number(known.get("per_rank"))
    return {int(ranks), int(ranks * (each or 1))} if ranks else set()


def _split(cells: Cells) -> tuple[Side | None, Side | None]:
    """Return the side a row has, in its place, or its two sides."""
    starts = [at for at, (name, _) in enumerate(cells) if _plain(name) in _TIMES]
    if len(starts) == 2:
        return side_of(_named(cells[starts[0] : starts[1]])), side_of(_named(cells[starts[1] :]))
    side = side_of(_named(cells))
    inside = any(_plain(name) == "inplace" and value.lower() in ("1", "true", "yes") for name, value in cells)
    return (None, side) if inside else (side, None)


def _named(cells: Cells) -> dict[str, str]:
    def strip(name: str) -> str:
        return re.sub(r"^(?:out.?of.?place|in.?place|oop|ip)[._ ]?", "", name, flags=re.I)

    return {strip(name): value for name, value in cells}


def _raw(place: int, size: int, known: Mapping[str, str], sides: tuple[Side | None, Side | None]) -> RawRow:
    count, root = whole(known.get("count")), whole(known.get("root"))
    return RawRow(place, size, count, known.get("type", ""), *sides, known.get("redop"), root)


def _join(draft: Draft, row: RawRow) -> None:
    """Add a row, or its side to the last row of its size that lacks it."""
    last = draft.rows[-1] if draft.rows else None
    if last and last.n_bytes == row.n_bytes and not (last.out_of_place and row.out_of_place) and not (
        last.in_place and row.in_place
    ):  # fmt: skip
        draft.rows[-1] = RawRow(last.line, last.n_bytes, last.count, last.dtype, last.out_of_place or row.out_of_place,
                                last.in_place or row.in_place, last.redop, last.root)  # fmt: skip
        return
    draft.rows.append(row)
