"""How does a string with a unit become an SI number, and a number a string again?

One closed table. A bare number, an unknown unit or a unit of the wrong kind is refused.
Bandwidths are per direction. GB is 1e9 bytes, GiB is 2**30 bytes, b is a bit.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Literal

from topo._errors import Fault, InputError

__all__ = ["Kind", "format_quantity", "parse_quantity"]

Kind = Literal["bytes", "bandwidth", "seconds", "flops", "flop", "watts", "dollars"]

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


def _scaled(unit: str, factor: float, prefixes: dict[str, float]) -> dict[str, float]:
    return {prefix + unit: scale * factor for prefix, scale in prefixes.items()}


_SIZES = _scaled("B", 1.0, _DECIMAL | _BINARY) | _scaled("b", 0.125, _DECIMAL | _BINARY)

#: kind -> unit -> factor to SI (bytes, bytes/s, seconds, FLOP/s, FLOP, watts, dollars).
UNITS: dict[Kind, dict[str, float]] = {
    "bytes": _SIZES,
    "bandwidth": {f"{unit}/s": factor for unit, factor in _SIZES.items()},
    "seconds": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "flops": {f"{unit}/s": factor for unit, factor in _scaled("FLOP", 1.0, _DECIMAL).items()},
    "flop": _scaled("FLOP", 1.0, _DECIMAL),
    "watts": {"W": 1.0, "kW": 1e3},
    "dollars": {"$": 1.0},
}

#: A quantity above this is a slip of the pen.
LARGEST = 1e30

_EXAMPLE: dict[Kind, str] = {
    "bytes": "80 GB or 80 GiB",
    "bandwidth": "900 GB/s or 400 Gb/s",
    "seconds": "20 ms or 0.5 us",
    "flops": "2.5 PFLOP/s",
    "flop": "75 GFLOP",
    "watts": "1200 W",
    "dollars": "15 $",
}

_NOUN: dict[Kind, str] = {
    "bytes": "size",
    "bandwidth": "bandwidth",
    "seconds": "time",
    "flops": "compute rate",
    "flop": "number of operations",
    "watts": "power",
    "dollars": "price",
}

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf(?:inity)?)"
_QUANTITY = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>[^\s\d].*?)?\s*", re.IGNORECASE)


def parse_quantity(
    text: object, kind: Kind, *, place: str = "value", file: str | None = None, zero: bool = False
) -> float:
    """Return the SI value of a string with a unit.

    Parameters
    ----------
    text : object
        What the user wrote; anything but a string with number and unit is refused.
    kind : {"bytes", "bandwidth", "seconds", "flops", "flop", "watts", "dollars"}
        What kind of quantity is wanted.
    place, file : str, optional
        Where the text stands, for the message.
    zero : bool, optional
        Whether zero is allowed (a latency may be zero, a bandwidth may not).

    Returns
    -------
    float
        In bytes, bytes/s (per direction), seconds, FLOP/s, FLOP, watts or dollars.

    Raises
    ------
    InputError
        No number, no unit, a unit of another kind, negative, zero (unless allowed), NaN
        or infinite.

    Examples
    --------
    >>> parse_quantity("400 Gb/s", "bandwidth")
    50000000000.0
    >>> parse_quantity("1GiB", "bytes")
    1073741824.0
    """

    def refuse(rule: str, cure: str) -> InputError:
        return InputError(Fault(place, text, rule, cure, file))

    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    units = UNITS[kind]
    known = f"Write for example {_EXAMPLE[kind]}; units: {', '.join(units)}."
    if match is None:
        raise refuse(f"is not a {_NOUN[kind]} (a number and its unit, as a string)", known)
    number, unit = float(match["number"]), match["unit"]
    if unit is None:
        raise refuse(f"a {_NOUN[kind]} needs a unit", f"Write 0 {next(iter(units))}." if zero and not number else known)
    if unit not in units:
        others = [_NOUN[other] for other, table in UNITS.items() if unit in table]
        what = f"is a {others[0]}, not a {_NOUN[kind]}" if others else f"unit {unit!r} is unknown"
        raise refuse(what, known)
    value = number * units[unit]
    if not math.isfinite(value):
        raise refuse(f"a {_NOUN[kind]} must be a finite number", known)
    if value > LARGEST:
        raise refuse(f"is beyond {LARGEST:g} SI units, where sums of such numbers overflow", known)
    if value < 0 or (value == 0 and not zero):
        raise refuse(f"a {_NOUN[kind]} must be {'zero or more' if zero else 'above zero'}", known)
    return value


_CANONICAL: dict[Kind, list[tuple[str, float]]] = {
    "bytes": [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15)],
    "bandwidth": [("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12), ("PB/s", 1e15)],
    "seconds": [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)],
    "flops": [("FLOP/s", 1.0), ("GFLOP/s", 1e9), ("TFLOP/s", 1e12), ("PFLOP/s", 1e15)],
    "flop": [("FLOP", 1.0), ("GFLOP", 1e9), ("TFLOP", 1e12), ("PFLOP", 1e15)],
    "watts": [("W", 1.0), ("kW", 1e3)],
    "dollars": [("$", 1.0)],
}


def format_quantity(
    value: float, kind: Kind, digits: int = 4, rounding: Literal["nearest", "up", "down"] = "nearest"
) -> str:
    """Return an SI value in the one canonical form the project prints.

    Parameters
    ----------
    value : float
        In SI units of its kind.
    kind : str
        As for `parse_quantity`.
    digits : int, optional
        Significant digits.
    rounding : {"nearest", "up", "down"}, optional
        A threshold that holds from a value on is printed rounded up.

    Returns
    -------
    str
        Readable by `parse_quantity`.

    Examples
    --------
    >>> format_quantity(50e9, "bandwidth")
    '50 GB/s'
    >>> format_quantity(0.0788888889, "seconds")
    '78.89 ms'
    >>> format_quantity(0.0788888889, "seconds", 3, "up")
    '78.9 ms'
    """
    ladder = _CANONICAL[kind]
    if value == 0:
        return f"0 {'s' if kind == 'seconds' else ladder[0][0]}"
    if not math.isfinite(value):
        return f"{value} {ladder[0][0]}"
    rounded = float(f"{value:.{digits}g}")
    unit, factor = ladder[0]
    for unit_, factor_ in ladder:
        if abs(rounded) >= factor_ * (1 - 1e-12):
            unit, factor = unit_, factor_
    number = float(Context(prec=digits, rounding=_ROUNDING[rounding]).create_decimal(repr(value / factor)))
    return f"{number:.0f} {unit}" if 10**digits <= abs(number) < 1e9 else f"{number:.{digits}g} {unit}"


_ROUNDING = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
