"""Which collective is a table of, and over how many ranks? What the columns give away, checked against what is said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf
from pathlib import Path

from collectives._log_draft import Draft, Side, number, precision
from collectives._log_words import kind_named

__all__ = ["Meaning", "meaning"]

_NO_LIMIT = 2**30
#: Wider spans of ranks than these are not listed.
_MOST_RANKS = 100_000


@dataclass(frozen=True)
class Signature:
    """What sets a kind's table apart.

    Attributes
    ----------
    redops : bool or None
        Whether it names a reduction; None where versions differ.
    rooted : bool
        Whether it has a root.
    shared : bool
        Whether the size is the counted elements times the ranks.
    ranks : callable
        busbw / algbw -> number of ranks; infinite where it says nothing.
    """

    redops: bool | None
    rooted: bool
    shared: bool
    ranks: Callable[[float], float]


def _of_share(factor: float) -> float:
    """Invert (n - 1) / n."""
    return 1 / (1 - factor) if factor < 1 else inf


def _of_all_reduce(factor: float) -> float:
    """Invert 2 (n - 1) / n."""
    return 2 / (2 - factor) if factor < 2 else inf


def _nothing(factor: float) -> float:
    return inf


#: Kind -> signature, in the order they are taken where the table fits several.
SIGNATURES = {
    "all_reduce": Signature(True, False, False, _of_all_reduce),
    "all_gather": Signature(False, False, True, _of_share),
    "reduce_scatter": Signature(True, False, True, _of_share),
    "all_to_all": Signature(False, False, True, _of_share),
    "broadcast": Signature(False, True, False, _nothing),
    "reduce": Signature(True, True, False, _nothing),
    "sendrecv": Signature(None, False, False, _nothing),
    "scatter": Signature(False, True, True, _of_share),
    "gather": Signature(False, True, True, _of_share),
}


@dataclass(frozen=True)
class Meaning:
    """Kind, ranks, what is left open, and how it was found; as in `Sweep`."""

    kind: str | None
    n_ranks: int | None
    between: tuple[int, int] | None
    kinds: tuple[str, ...]
    notes: tuple[str, ...]


def meaning(draft: Draft, file: str, counts_elements: bool) -> Meaning:
    """Return what a run is of.

    Parameters
    ----------
    draft : Draft
        At least one row.
    file : str
        Its name may name the kind, where nothing else does.
    counts_elements : bool
        Whether the count tells kinds apart: it does in nccl-tests, not in nccom-test.
    """
    fitting = [kind for kind in SIGNATURES if _fits(kind, draft, counts_elements)]
    where = f"run of line {draft.rows[0].line}"
    kind, notes = draft.kind, list[str]()
    if kind is None or (fitting and kind not in fitting):
        rooted = draft.rows[-1].root is not None  # versions that print no root have none of these kinds
        fitting = [kind for kind in fitting if rooted or not SIGNATURES[kind].rooted]
        kind, how = _unnamed(draft, fitting, file)
        notes = [f"{where}: {how}"] if how else []
        if draft.kind:
            notes.insert(0, f"{where}: the table cannot be of {draft.kind}, which the file names")
    n_ranks, between, said = _ranks(draft, kind or next(iter(fitting), ""), counts_elements)
    return Meaning(kind, n_ranks, between, () if kind else tuple(fitting), (*notes, *said))


def _unnamed(draft: Draft, fitting: list[str], file: str) -> tuple[str | None, str]:
    """Return the kind of a run that nothing in the file names, and how it was found where several fit."""
    if len(fitting) < 2:
        return next(iter(fitting), None), ""
    either = f"{', '.join(fitting[:-1])} or {fitting[-1]}"
    words = re.findall(r"[a-z]+(?:[_-]?(?:to[_-]?)?[a-z]+)*", Path(file).stem.lower())
    hinted = [kind for kind in fitting if any(_names(word, kind) for word in words)]
    if len(hinted) == 1:
        return hinted[0], f"{hinted[0]} by the file's name; the table fits {either}"
    in_place = _by_in_place(draft)
    likely = [kind for kind in fitting if in_place is None or in_place == (kind in ("all_to_all", "sendrecv"))]
    if len(likely) == 1:
        return likely[0], f"{likely[0]} by its checks in place; else the table fits {either}"
    if fitting[0] not in ("all_reduce", "all_gather") or _rank_span(draft, fitting[0]) is None:
        return None, ""
    return fitting[0], f"the table fits {either}, and nothing names it: taken as {fitting[0]}; give kind= if not"


def _by_in_place(draft: Draft) -> bool | None:
    """Whether nothing in place is checked though it is out of place: all-to-all and sendrecv have no such check."""
    checks = [
        (number(one.out_of_place.errors) is not None, number(one.in_place.errors) is not None)
        for one in draft.rows if one.out_of_place and one.in_place
    ]  # fmt: skip
    return None if not any(out for out, _ in checks) else not any(inside for _, inside in checks)


def _names(word: str, kind: str) -> bool:
    parts = [part for part in re.split(r"[_-]", word) if part]
    spans = [parts[i:j] for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]
    return any(kind_named("_".join(span)) == kind for span in spans)


def _fits(kind: str, draft: Draft, counts_elements: bool) -> bool:
    """Whether a table can be of a kind."""
    signature, row = SIGNATURES[kind], draft.rows[-1]
    reduces = None if row.redop is None else row.redop != "none"
    shares = {one.shares for one in draft.rows} - {0}
    if reduces is not None and signature.redops is not None and reduces != signature.redops:
        return False
    if row.root is not None and (row.root >= 0) != signature.rooted:
        return False
    if counts_elements and shares and signature.shared != (max(shares) > 1):
        return False
    span = _factor_span(draft)
    if span is None:
        return True
    if signature.ranks is _nothing:
        return span[0] <= 1 <= span[1]
    return _whole(*map(signature.ranks, span)) is not None


def _ranks(draft: Draft, kind: str, counts_elements: bool) -> tuple[int | None, tuple[int, int] | None, list[str]]:
    """Return the ranks by what the file lists, what the count says and what busbw / algbw allows."""
    where, span = f"run of line {draft.rows[0].line}", _rank_span(draft, kind)
    shares = {row.shares for row in draft.rows} - {0, 1} if counts_elements else set()
    stated = {"the list of devices or NCCL's log": draft.ranks, "size / count": shares if len(shares) == 1 else set()}
    for source, numbers in stated.items():
        allowed = [n for n in numbers if span is None or span[0] <= n <= span[1]]
        if len(allowed) == 1:
            return allowed[0], None, []
        if allowed:
            return max(allowed), None, [f"{where}: {max(allowed)} ranks by the highest number listed"]
        if numbers and span is not None:
            said = f"{where}: {source} says {min(numbers)} ranks, busbw / algbw {_said(span)}: the latter holds"
            n_ranks, between, notes = _by_span(span, where)
            return n_ranks, between, [said, *notes]
    return _by_span(span, where)


def _by_span(span: tuple[int, int] | None, where: str) -> tuple[int | None, tuple[int, int] | None, list[str]]:
    if span is None:
        return None, None, []
    if span[0] == span[1]:
        return span[0], None, [f"{where}: {span[0]} ranks, told by busbw / algbw"]
    powers = [2**k for k in range(span[0].bit_length() - 1, 31) if span[0] <= 2**k <= span[1]]
    if len(powers) == 1:
        said = f"busbw / algbw allows {_said(span)} ranks: the only power of two is taken; give n_ranks= if not"
        return powers[0], span, [f"{where}: {powers[0]} ranks: {said}"]
    return None, span, []


def _said(span: tuple[int, int]) -> str:
    if span[0] == span[1]:
        return str(span[0])
    return f"{span[0]} to {span[1]}" if span[1] < _NO_LIMIT else f"{span[0]} or more"


def _rank_span(draft: Draft, kind: str) -> tuple[int, int] | None:
    """Return the least and most ranks that busbw / algbw allows, rounding of both considered."""
    span, signature = _factor_span(draft), SIGNATURES.get(kind)
    if span is None or signature is None or signature.ranks is _nothing:
        return None
    return _whole(*map(signature.ranks, span))


def _whole(least: float, most: float) -> tuple[int, int] | None:
    """Return the least and most whole number between two; None where there is none."""
    if least > _MOST_RANKS:
        return None
    low, high = max(1, ceil(least - 1e-6)), floor(most + 1e-6) if most < _MOST_RANKS else _NO_LIMIT
    return (low, high) if low <= high else None


def _factor_span(draft: Draft) -> tuple[float, float] | None:
    """Return where busbw / algbw lies in all rows; None where nothing is printed with two digits."""
    spans = list(_spans(draft))
    if not spans:
        return None
    low, high = max(span[0] for span in spans), min(span[1] for span in spans)
    if low <= high:
        return low, high
    # Rows disagree: a hand or a wrapper has changed some. The exactest row decides.
    return min(spans, key=lambda span: span[1] - span[0])


def _spans(draft: Draft) -> Iterator[tuple[float, float]]:
    for row in draft.rows:
        for side in row.sides:
            if (found := _span(side, row.n_bytes, draft.scale)) is not None:
                yield found


def _span(side: Side, n_bytes: int, scale: float) -> tuple[float, float] | None:
    """Return where busbw / algbw lies: algbw as printed, and closer by size / time where the two agree."""
    algbw, busbw, time = number(side.algbw), number(side.busbw), number(side.time)
    if algbw is None or busbw is None or not time or side.algbw is None or side.busbw is None:
        return None
    off, by, late = precision(side.algbw), precision(side.busbw), precision(side.time)
    if algbw < 20 * off:
        return None
    low, high = max(0.0, busbw - by) / (algbw + off), (busbw + by) / (algbw - off)
    per_time = scale / n_bytes
    close = max(low, (busbw - by) * (time - late) * per_time), min(high, (busbw + by) * (time + late) * per_time)
    return close if close[0] <= close[1] else (low, high)
