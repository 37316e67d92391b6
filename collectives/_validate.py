"""How far off are the predictions? Every row of a file of measurements, predicted without a look at its time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives._log import is_log
from collectives._log_rows import log_rows
from collectives._matching import Choose, Matched, matched, predicted_seconds, profile_for, profile_on
from collectives._measured import Measurement, Skipped, moe_of, read_measurements
from collectives._profile import Profile, load_profile
from collectives._results import plain
from collectives._row_bounds import row_bounds
from topo import Fault, InputError
from topo.units import format_quantity

__all__ = ["Group", "Prediction", "Validation", "group_names", "validate", "validate_rows"]

#: Upper edge of a size band [bytes] -> its name; of an expert layer the copies of one rank's tokens count.
_BANDS = ((65536.0, "below 64 KiB"), (2.0**24 + 1, "64 KiB to 16 MiB"), (np.inf, "above 16 MiB"))
#: A measurement so many times slower than its bound is an anomaly, where the bound is long enough not to be latency.
_FAR, _LONG = 3.5, 1e-4
#: What rounding may take off a bound.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Group:
    """Errors |predicted / measured - 1| of some rows: how many, median, 90th percentile and worst."""

    rows: int
    median: float
    p90: float
    worst: float


@dataclass(frozen=True)
class Prediction:
    """One row.

    Attributes
    ----------
    id, system, kind, library : str
        The row.
    ranks, domains : int
        Taking part.
    n_bytes : float
        nccl-tests' size; of an expert layer the copies of one rank's tokens [bytes].
    seconds, measured_seconds : float
        Predicted and measured [s].
    error : float
        seconds / measured_seconds - 1.
    bound_seconds : float
        What no algorithm beats [s].
    profile : str
        Whose constants.
    band : (float, float)
        Median and 90th percentile of the error to expect.
    note : str
        What is not as fitted; empty if all is.
    """

    id: str
    system: str
    kind: str
    library: str
    ranks: int
    domains: int
    n_bytes: float
    seconds: float
    measured_seconds: float
    error: float
    bound_seconds: float
    profile: str
    band: tuple[float, float]
    note: str


@dataclass(frozen=True, repr=False)
class Validation:
    """How far predictions are off the rows of a file.

    Attributes
    ----------
    rows : int
        Predicted.
    skipped : tuple of Skipped
        Rows no prediction is made for, and why.
    median, p90, worst : float
        Of |predicted / measured - 1|.
    groups : dict
        Collective, size band and number of domains -> `Group`.
    predictions : tuple of Prediction
        In the order of the file.
    anomalies : tuple of str
        Measurements below their bound or far above it.
    faults : tuple of str
        Predictions below the bound: the model's own faults.
    notes : tuple of str
        Of a log: everything filled in or dropped.
    """

    rows: int
    skipped: tuple[Skipped, ...]
    median: float
    p90: float
    worst: float
    groups: dict[str, Group]
    predictions: tuple[Prediction, ...]
    anomalies: tuple[str, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> Group:
        """Errors of all rows."""
        return Group(self.rows, self.median, self.p90, self.worst)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was filled in of a log, and what is not as fitted, each once with its number of rows."""
        return (*self.notes, *_counted(one.note for one in self.predictions if one.note))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why rows were skipped, each once with its number of rows."""
        return _counted(one.reason for one in self.skipped)

    def __repr__(self) -> str:
        return f"Validation({self.rows} rows: median {self.median:.1%}, 90 % within {self.p90:.1%})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        result: dict[str, Any] = plain(self)
        return result


def validate(
    file: str | os.PathLike[str],
    *,
    design: str | None = None,
    domains: int | None = None,
    kind: str | None = None,
    n_ranks: int | None = None,
    profile: str | os.PathLike[str] | Profile | None = None,
) -> Validation:
    """Return how far predictions are off the rows of a file of measurements.

    Parameters
    ----------
    file : str or path
        A log as `read_log` reads; or a CSV with the columns system (a design, one of its
        aliases or a graph file), collective, n_gpus, bytes and time_us, and scaleup_domains (else as few as hold
        the ranks), library, dtype and params where they say something. A row of an expert layer is predicted from its
        params (tokens, hidden, topk, experts), not from bytes.
    design : str, optional
        Of a log: what it was run on, a catalogue name, design file or graph file.
    domains : int, optional
        Of a log: scale-up domains; by default as many as the ranks need.
    kind, n_ranks : optional
        Of a log: as `read_log`.
    profile : str, path or Profile, optional
        Predict all rows with it; by default each by its library and chip.

    Raises
    ------
    InputError
        The file cannot be read, or lacks columns; a log without a design, or a table with one.
    """
    notes: tuple[str, ...] = ()
    if is_log(file):
        rows, skipped, notes = log_rows(file, design, domains=domains, kind=kind, n_ranks=n_ranks)
    else:
        rows, skipped = read_measurements(file)
        _require_none(file, design=design, domains=domains, kind=kind, n_ranks=n_ranks)
    return replace(validate_rows(rows, skipped, profile_for if profile is None else _always(profile)), notes=notes)


def _always(profile: str | os.PathLike[str] | Profile) -> Choose:
    """Return the choice of one profile for all rows."""
    given = load_profile(profile)
    if given.law == "ideal":
        rule = "is the wires alone, which predict no library; every row's bound_seconds says what they need"
        raise InputError(Fault("profile", given.name, rule, "Name another, or leave it out."))
    return lambda library, law, chip, bandwidth: profile_on(given, chip)


def _require_none(file: str | os.PathLike[str], **given: object) -> None:
    """Refuse what a table of systems says itself."""
    faults = [
        Fault(name, value, "is for a log: a table names its systems, collectives and ranks", "Leave it out.",
              os.fspath(file))
        for name, value in given.items() if value is not None
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)


def validate_rows(
    rows: Sequence[Measurement], skipped: Sequence[Skipped] = (), choose: Choose = profile_for
) -> Validation:
    """Return how far predictions are off measurements, each by the profile chosen for it."""
    found, unmatched = matched(rows, choose)
    predicted = predicted_seconds(found)
    bounds = row_bounds(found)
    each = tuple(_prediction(*row) for row in zip(found, predicted.tolist(), bounds.tolist(), strict=True))
    off = np.array([abs(one.error) for one in each])
    whole = _group(off)
    return Validation(
        rows=len(each), skipped=(*skipped, *unmatched), median=whole.median, p90=whole.p90, worst=whole.worst,
        groups=_groups(found, off), predictions=each, anomalies=tuple(_anomalies(found, each)),
        faults=tuple(_faults(each)),
    )  # fmt: skip


def group_names(one: Matched) -> tuple[str, str, str]:
    """Return the groups a row belongs to: collective, size band, one or several domains."""
    size = _size(one)
    band = next(name for edge, name in _BANDS if size < edge)
    return one.row.kind, band, "one domain" if one.row.domains == 1 else "several domains"


def _size(one: Matched) -> float:
    row = one.row
    if not row.is_expert:
        return row.n_bytes
    moe = moe_of(row, float(row.params["tokens"]))
    return float(row.params["tokens"]) * moe.top_k * moe.hidden * moe.dispatch_bytes


def _prediction(one: Matched, seconds: float, bound: float) -> Prediction:
    row = one.row
    return Prediction(
        row.id, row.system, row.kind, row.library, row.ranks, row.domains, _size(one), seconds, row.seconds,
        seconds / row.seconds - 1, bound, one.profile.name, one.profile.band, one.note,
    )  # fmt: skip


def _group(off: NDArray[np.float64]) -> Group:
    if not len(off):
        return Group(0, 0.0, 0.0, 0.0)
    return Group(len(off), float(np.median(off)), float(np.quantile(off, 0.9)), float(off.max()))


def _groups(found: Sequence[Matched], off: NDArray[np.float64]) -> dict[str, Group]:
    places: dict[str, list[int]] = {}
    for i, one in enumerate(found):
        for name in group_names(one):
            places.setdefault(name, []).append(i)
    return {name: _group(off[rows]) for name, rows in sorted(places.items())}


def _faults(each: Sequence[Prediction]) -> Iterator[str]:
    for one in each:
        if one.seconds < one.bound_seconds * (1 - _ROUNDING):
            yield f"{_words(one)}: predicted {_time(one.seconds)} by {one.profile}, no algorithm beats {_bound(one)}"


def _anomalies(found: Sequence[Matched], each: Sequence[Prediction]) -> Iterator[str]:
    for match, one in zip(found, each, strict=True):
        times = one.measured_seconds / one.bound_seconds if one.bound_seconds else 0.0
        if one.measured_seconds < one.bound_seconds * (1 - _ROUNDING):
            routing = "; experts taken as uniform, tokens to any nodes or to four, whichever is less"
            said = routing if match.row.is_expert else ""
            yield f"{_words(one)}: measured {_time(one.measured_seconds)}, below the bound {_bound(one)}{said}"
        elif times > _FAR and one.bound_seconds > _LONG:
            yield f"{_words(one)}: measured {_time(one.measured_seconds)}, {times:.2g} times the bound {_bound(one)}"


def _words(one: Prediction) -> str:
    size = format_quantity(one.n_bytes, "bytes")
    return f"{one.id}: {one.system}, {one.kind} of {size} over {one.ranks} ranks in {one.domains} domains"


def _time(seconds: float) -> str:
    return format_quantity(seconds, "seconds")


def _bound(one: Prediction) -> str:
    return _time(one.bound_seconds)


def _counted(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{n} rows: {line}" for line, n in Counter(lines).items())
