"""What is a claim of the lecture, and when does it hold?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from collectives import plain
from rackbound._lecture_case import Case
from topo import InputError
from topo.units import format_quantity

__all__ = ["LOOSE", "NEAR", "Claim", "Told", "judged", "shown", "tell"]

#: A figure from a blackboard holds within this factor, and is loose within that one.
NEAR, LOOSE = 1.2, 3.0

#: Units whose numbers are printed with a prefix of their own.
_SCALED = ("seconds", "bytes")

Verdict = Literal["true", "loose", "false", "not told"]


@dataclass(frozen=True)
class Claim:
    """One number of the lecture and the function that gives ours.

    Attributes
    ----------
    number : int
        Of the list of claims; several rows may bear one.
    at : str
        Time in the video.
    statement : str
        In our words.
    said : float or (float, float)
        The lecture's number, or from where to where; "at least" and "at most" have no end or begin at 0.
    ours : callable
        Our number of a case.
    note : callable
        Why it holds or not, in one sentence or two.
    unit : str
        A kind of quantity, or a word.
    needs : str
        "experts", "scale-out", "cache", "room", or the model it is said of.
    """

    number: int
    at: str
    statement: str
    said: float | tuple[float, float]
    ours: Callable[[Case], float]
    note: Callable[[Case], str]
    unit: str = ""
    needs: str = ""

    @property
    def low(self) -> float:
        """Least value the lecture allows."""
        return self.said[0] if isinstance(self.said, tuple) else self.said

    @property
    def high(self) -> float:
        """Largest value the lecture allows."""
        return self.said[1] if isinstance(self.said, tuple) else self.said


@dataclass(frozen=True)
class Told:
    """A claim, tried.

    Attributes
    ----------
    number : int
        As in `Claim`.
    at, statement, unit : str
        As in `Claim`.
    low, high : float
        The lecture's number, from where to where.
    ours : float or None
        Ours; None where it cannot be told.
    verdict : str
        "true", "loose", "false" or "not told".
    why : str
        The sentence why.
    """

    number: int
    at: str
    statement: str
    unit: str
    low: float
    high: float
    ours: float | None
    verdict: Verdict
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an infinite number is the word."""
        result: dict[str, Any] = plain(self)
        return result

    @property
    def lecture_text(self) -> str:
        """The lecture's number as it is printed."""
        if self.low == self.high:
            return shown(self.low, self.unit)
        if math.isinf(self.high):
            return f"at least {shown(self.low, self.unit)}"
        if self.low == 0:
            return f"at most {shown(self.high, self.unit)}"
        low = shown(self.low, self.unit)
        return f"{low if self.unit in _SCALED else low.split()[0]} to {shown(self.high, self.unit)}"

    @property
    def our_text(self) -> str:
        """Our number as it is printed."""
        return "-" if self.ours is None else shown(self.ours, self.unit)


def shown(value: float, unit: str) -> str:
    """Return a number of the table with its unit.

    Examples
    --------
    >>> shown(2e14, "tokens"), shown(0.0248, "seconds"), shown(0.25, "%"), shown(1668.2, "tokens")
    ('200 T tokens', '24.8 ms', '25 %', '1,668 tokens')
    """
    if math.isinf(value):
        return "no limit"
    if unit in _SCALED:
        return format_quantity(value, unit, 3)  # type: ignore[arg-type]
    if unit == "%":
        return f"{100 * value:.3g} %"
    scale, letter = next((row for row in ((1e12, " T"), (1e9, " B"), (1e6, " M")) if value >= row[0]), (1.0, ""))
    digits = f"{value / scale:.3g}" if letter or value < 1000 else f"{value:,.0f}"
    return f"{digits}{letter} {unit if value != 1 else unit.removesuffix('s')}".strip()


def tell(claim: Claim, case: Case) -> Told:
    """Try a claim on a case; what the case lacks, a rate its chip does not state among it, is the reason it is not."""
    ours: float | None = None
    verdict: Verdict = "not told"
    try:
        why = case.lacks(claim.needs)
        if not why:
            ours, why = float(claim.ours(case)), claim.note(case)
            verdict = judged(claim.low, claim.high, ours)
    except InputError as error:
        why = str(error)
    return Told(claim.number, claim.at, claim.statement, claim.unit, claim.low, claim.high, ours, verdict, why)


def judged(low: float, high: float, ours: float) -> Verdict:
    """Return whether a number holds: a single one within `NEAR`, a range as it stands; loose within `LOOSE`.

    Examples
    --------
    >>> (
    ...     judged(20, 20, 24),
    ...     judged(20, 20, 25),
    ...     judged(20, 20, 70),
    ...     judged(1, 2, 2.1),
    ...     judged(1, float("inf"), 5),
    ... )
    ('true', 'loose', 'false', 'loose', 'true')
    """
    short = (low / ours if ours else math.inf) if low else 0.0
    over = ours / high if math.isfinite(high) else 0.0
    if max(short, over) <= (NEAR if low == high else 1.0):
        return "true"
    return "loose" if max(short, over) <= LOOSE else "false"
