"""How does a printed row become numbers in SI units? Units told or found, checks judged, what is odd said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from collectives._log_records import LogRow, Timing
from collectives._log_words import DTYPES, RATES, TIMES, allowed_error
from topo import Fault, InputError

__all__ = ["Draft", "RawRow", "Side", "number", "precision", "rows_of", "side_of", "told"]

_ROUNDING = 0.01
_MOST_LINES = 4


@dataclass(frozen=True)
class Side:
    """Time, rates and check as printed: the digits say how exact they are."""

    time: str
    algbw: str | None = None
    busbw: str | None = None
    errors: str | None = None


@dataclass(frozen=True)
class RawRow:
    """A row as printed."""

    line: int
    n_bytes: int
    count: int | None
    dtype: str
    out_of_place: Side | None
    in_place: Side | None = None
    redop: str | None = None
    root: int | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """Those that were run."""
        return tuple(side for side in (self.out_of_place, self.in_place) if side is not None)

    @property
    def shares(self) -> int:
        """How often the size holds the counted elements: once, or once a rank; 0 where it does not say."""
        width = DTYPES.get(self.dtype, 0) * (self.count or 0)
        return self.n_bytes // width if width and self.n_bytes % width == 0 else 0


@dataclass
class Draft:
    """One run as a format's reader found it.

    Attributes
    ----------
    rows : list of RawRow
        As printed.
    time_unit, rate_unit : str or None
        As the file states them.
    old_errors : bool
        Whether the check is a largest deviation, not a count of wrong elements.
    kind : str or None
        By a name in the file.
    ranks : set of int
        Numbers of ranks the file states; more than one where it does not say which it means.
    hosts : tuple of int
        Ranks on every host, as listed.
    failed : bool
        Whether the summary says FAILED.
    scale : float
        Product of the units of time and rate, once they are known [bytes].
    """

    rows: list[RawRow] = field(default_factory=list)
    time_unit: str | None = None
    rate_unit: str | None = "GB/s"
    old_errors: bool = False
    kind: str | None = None
    ranks: set[int] = field(default_factory=set)
    hosts: tuple[int, ...] = ()
    failed: bool = False
    scale: float = 0.0


def number(text: str | None) -> float | None:
    """Return a printed number, without the asterisk of a failed check; None for N/A, nan, or no number.

    Examples
    --------
    >>> number("1e+06"), number("N/A"), number("nan")
    (1000000.0, None, None)
    """
    try:
        value = float((text or "").removesuffix("*"))
    except ValueError:
        return None
    return value if value - value == 0 else None


def precision(text: str) -> float:
    """Return half of the last printed digit.

    Examples
    --------
    >>> precision("4.33"), precision("122131"), precision("1.5e+06")
    (0.005, 0.5, 50000.0)
    """
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(0.5 * 10.0 ** (int(exponent or 0) - decimals))


def side_of(cells: Mapping[str, str]) -> Side | None:
    """Return the side that columns hold, named as the tests name them; None where there is no time."""
    named = {_plain(name): value for name, value in cells.items()}
    time = next((named[name] for name in ("time", "cputime", "timeavg", "timep50") if name in named), None)
    time = time or next((value for name, value in named.items() if name.startswith("time")), None)
    if number(time) is None or time is None:
        return None
    wrong = next((named[name] for name in ("wrong", "nwrong", "error", "errors", "res") if name in named), None)
    algbw, busbw = (next((v for k, v in named.items() if k.startswith(rate)), None) for rate in ("algbw", "busbw"))
    return Side(time, algbw, busbw, wrong)


def _plain(name: str) -> str:
    """Return the name of a column without unit, mark and case."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*\)", "", name.lower()))


def told(lines: Iterable[int]) -> str:
    """Return "line 3" or "lines 3, 5, 9 and 12 more"."""
    numbers = list(lines)
    named = ", ".join(map(str, numbers[:_MOST_LINES]))
    more = f" and {len(numbers) - _MOST_LINES} more" if len(numbers) > _MOST_LINES else ""
    return f"line{'s' if len(numbers) > 1 else ''} {named}{more}"


def rows_of(draft: Draft, file: str) -> tuple[tuple[LogRow, ...], float, list[str]]:
    """Return the rows in SI units, the product of the units of time and rate, and notes of what was found and dropped.

    Raises
    ------
    InputError
        The unit of the times is neither stated nor told by algbw.
    """
    notes = _dropped(draft)
    kept = [row for row in draft.rows if not _is_empty(row)]
    seconds, rate, said = _units(draft, kept, file)
    # Wrong elements are whole: a fraction is a deviation, whatever the column is called.
    old = draft.old_errors or any(0 < (number(side.errors) or 0) < 1 for row in kept for side in row.sides)
    rows = tuple(_row(row, old, seconds, rate) for row in kept)
    notes += said + list(_odd(rows, draft))
    return rows, seconds * rate, notes


def _is_empty(row: RawRow) -> bool:
    return row.n_bytes == 0 or all((number(side.time) or 0) <= 0 for side in row.sides)


def _dropped(draft: Draft) -> list[str]:
    empty = [row.line for row in draft.rows if row.n_bytes == 0]
    timeless = [row.line for row in draft.rows if row.n_bytes and _is_empty(row)]
    notes = [f"{told(empty)}: size 0, nothing was sent: dropped"] if empty else []
    return notes + ([f"{told(timeless)}: no time above zero: dropped"] if timeless else [])


def _units(draft: Draft, rows: list[RawRow], file: str) -> tuple[float, float, list[str]]:
    """Return seconds and bytes/s of the printed units: those for which algbw is size / time."""
    stated = draft.time_unit
    times = [stated] if stated else list(TIMES)
    rates = [draft.rate_unit] if draft.rate_unit else list(RATES)
    found = [_product(row, side) for row in rows for side in row.sides]
    exact = [value for value in found if value is not None]
    fits = [
        (time, rate) for rate in rates for time in times
        if exact and abs(median(exact) / (TIMES[time] * RATES[rate]) - 1) < 2 * _ROUNDING
    ]  # fmt: skip
    if not fits and stated is None and rows:
        rule = "the unit of its times is not stated, and size / time is not algbw in any"
        cure = "Give the table with its line of units: (us), (GB/s)."
        raise InputError(Fault(f"line {rows[0].line}", rows[0].sides[0].time, rule, cure, file))
    time, rate = fits[0] if fits else (times[0], rates[0])
    notes = [f"times are in {time}, told by size / algbw: the file does not say"] if stated is None and rows else []
    if rate != "GB/s":
        notes.append(f"rates called GB/s are {rate}: size / time says so")
    if exact and not fits:
        notes.append("algbw is not size / time: times are taken as they stand")
    return TIMES[time], RATES[rate], notes


def _product(row: RawRow, side: Side) -> float | None:
    """Return size / (time x algbw) where three digits are printed."""
    time, algbw = number(side.time), number(side.algbw)
    if not time or not algbw or side.algbw is None or algbw < 100 * precision(side.algbw):
        return None
    return row.n_bytes / (time * algbw)


def _row(row: RawRow, old: bool, seconds: float, rate: float) -> LogRow:
    most = allowed_error(row.dtype) if old else 0.0

    def timing(side: Side | None) -> Timing | None:
        time = number(side.time) if side else None
        if side is None or not time or time <= 0:
            return None
        errors = number(side.errors)
        algbw, busbw = (None if value is None else value * rate for value in (number(side.algbw), number(side.busbw)))
        failed = errors is not None and (errors > most or "*" in str(side.errors))
        return Timing(time * seconds, algbw, busbw, errors, failed)

    places = timing(row.out_of_place), timing(row.in_place)
    return LogRow(row.n_bytes, row.count, row.dtype, *places, row.line, row.redop, row.root)


def _odd(rows: tuple[LogRow, ...], draft: Draft) -> Iterator[str]:
    failed = [row.line for row in rows if row.failed]
    if failed:
        yield f"{told(failed)}: the check failed, whatever the summary says; calibration leaves them out"
    elif draft.failed:
        yield "the summary says FAILED, and no row says which"
    off = [row.line for row in rows if any(_disagrees(row, one) for one in row.timings)]
    if off and len(off) < len(rows):
        yield f"{told(off)}: size / time is not algbw: the time is taken"


def _disagrees(row: LogRow, one: Timing) -> bool:
    rate = row.n_bytes / one.seconds
    # 0.005 GB/s is half of the last digit printed.
    return one.algbw is not None and abs(one.algbw - rate) > 2 * _ROUNDING * rate + 6e6
