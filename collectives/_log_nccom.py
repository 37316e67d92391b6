"""What does nccom-test say, the benchmark of AWS Trainium? Its GB/s are GiB/s, as its guide says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from collectives._log_draft import Draft, RawRow, number, side_of, told
from collectives._log_tables import listed, loaded, objects, texts, whole
from collectives._log_words import kind_named
from topo import Source

__all__ = ["is_json", "is_text", "read_json", "read_text"]

_HEADER = re.compile(r"\bsize\(B\)\s+count(?:\(elems\))?\s.*\btype\b.*\btime\S*\(us\)\s.*\bbusbw\(GB/s\)")
_COMMAND = re.compile(r"\bnccom-test\s+(-.*|\w.*)")
_RANKS = re.compile(r"(?:^|\s)(?:-r|--nworkers)[\s=]+(\d+)")


def is_text(source: Source) -> bool:
    """Whether a text has the header of nccom-test."""
    return "busbw(GB/s)" in source.clean and any(map(_HEADER.search, source.lines))


def is_json(source: Source) -> bool:
    """Whether a text is a report that nccom-test wrote."""
    return source.clean.lstrip()[:1] == "{" and '"size(B)"' in source.clean


def read_text(source: Source) -> tuple[list[Draft], list[str]]:
    """Return the runs of a text, and notes of rows that failed."""
    drafts: list[Draft] = []
    failed: list[int] = []
    names: list[str] = []
    kind, ranks = None, set[int]()
    for place, line in enumerate(source.lines, 1):
        if command := _COMMAND.search(line):
            kind, ranks = _asked(command[1])
            names = []
        elif header := _HEADER.search(line):
            names = line[header.start() :].split()
            drafts.append(Draft([], "us", None, kind=kind, ranks=ranks))
        elif names and (words := line.split()) and words[0].isdigit():
            row = _row(dict(zip(names, words, strict=False)), place) if len(words) == len(names) else None
            if row is None:
                failed.append(place)
            elif drafts:
                drafts[-1].rows.append(row)
    notes = [f"{told(failed)}: no numbers (the run failed, or the line is cut off): dropped"] if failed else []
    return drafts, notes


def _asked(words: str) -> tuple[str | None, set[int]]:
    """Return kind and ranks of a command line."""
    kinds = [kind for word in words.split() if (kind := kind_named(word))]
    ranks = _RANKS.search(words)
    return (kinds[0] if kinds else None), ({int(ranks[1])} if ranks else set())


def read_json(source: Source) -> tuple[list[Draft], list[str]]:
    """Return the run of a report."""
    content = objects(loaded(source))
    config = " ".join(f"{key} {value}" for key, value in objects(content.get("config")).items())
    kind = next(filter(None, map(kind_named, re.findall(r"\w+", config))), None)
    read = [_row(texts(row), place) for place, row in enumerate(listed(content.get("results")), 1)]
    return [Draft([row for row in read if row], "us", None, kind=kind)], _unread(read)


def _unread(rows: Iterable[RawRow | None]) -> list[str]:
    lines = [place for place, row in enumerate(rows, 1) if row is None]
    return [f"{told(lines)} of results: no numbers: dropped"] if lines else []


def _row(cells: Mapping[str, str], place: int) -> RawRow | None:
    side, size = side_of(cells), number(cells.get("size(B)"))
    if side is None or size is None:
        return None
    count = whole(cells.get("count(elems)") or cells.get("count"))
    return RawRow(place, int(size), count, cells.get("type", ""), side)
