"""What does a log of measured collectives say? The records of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collectives._results import plain
from topo import Fault
from topo.units import format_quantity

__all__ = ["Log", "LogRow", "Sweep", "Timing"]


@dataclass(frozen=True)
class Timing:
    """One measured time, and what the program made of it.

    Attributes
    ----------
    seconds : float
        Of one collective [s].
    algbw, busbw : float or None
        As printed, rounding and all; None where the file has none [bytes/s].
    errors : float or None
        Wrong elements, or the largest deviation where the column is old; None if not checked.
    failed : bool
        Whether the check failed.
    """

    seconds: float
    algbw: float | None = None
    busbw: float | None = None
    errors: float | None = None
    failed: bool = False


@dataclass(frozen=True)
class LogRow:
    """One size of a sweep.

    Attributes
    ----------
    n_bytes : int
        nccl-tests' size: the larger of a rank's buffers [bytes].
    count : int or None
        Elements, as printed.
    dtype : str
        As printed.
    out_of_place, in_place : Timing or None
        None where it was not run.
    line : int
        In the file; the row of its list in JSON.
    redop : str or None
        Reduction, "none" or None.
    root : int or None
        Rank of the root, -1 or None where there is none.
    """

    n_bytes: int
    count: int | None
    dtype: str
    out_of_place: Timing | None
    in_place: Timing | None
    line: int
    redop: str | None = None
    root: int | None = None

    @property
    def timings(self) -> tuple[Timing, ...]:
        """Those that were run, out of place first."""
        return tuple(one for one in (self.out_of_place, self.in_place) if one is not None)

    @property
    def seconds(self) -> float:
        """The time out of place, else in place [s]."""
        return self.timings[0].seconds

    @property
    def failed(self) -> bool:
        """Whether a check failed: the time may be of a collective that did not do its work."""
        return any(one.failed for one in self.timings)


@dataclass(frozen=True, repr=False)
class Sweep:
    """One run of one collective over sizes.

    Attributes
    ----------
    kind : str or None
        A row of `KINDS`; None where the file leaves it open.
    n_ranks : int or None
        Ranks; None where the file leaves it open.
    rows : tuple of LogRow
        In the order of the file.
    ranks_between : (int, int) or None
        Least and most ranks that busbw / algbw allows, where that is all there is.
    hosts : tuple of int
        Ranks on every host, where the file lists devices.
    kinds : tuple of str
        Kinds that fit, where `kind` is None.
    """

    kind: str | None
    n_ranks: int | None
    rows: tuple[LogRow, ...]
    ranks_between: tuple[int, int] | None = None
    hosts: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = [format_quantity(end(row.n_bytes for row in self.rows), "bytes") for end in (min, max)]
        return f"Sweep({self.kind} over {self.n_ranks} ranks: {len(self.rows)} sizes, {sizes[0]} to {sizes[1]})"


@dataclass(frozen=True, repr=False)
class Log:
    """What a file of measured collectives says.

    Attributes
    ----------
    file : str
        Its name.
    format : str
        A row of the table of formats in docs/logs.md.
    sweeps : tuple of Sweep
        Every run in it.
    notes : tuple of str
        Everything that was filled in or dropped.
    """

    file: str
    format: str
    sweeps: tuple[Sweep, ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[LogRow, ...]:
        """Rows of all sweeps."""
        return tuple(row for sweep in self.sweeps for row in sweep.rows)

    @property
    def kind(self) -> str | None:
        """The kind of all sweeps; None where they differ, or it is open."""
        kinds = {sweep.kind for sweep in self.sweeps}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def n_ranks(self) -> int | None:
        """The ranks of all sweeps; None where they differ, or are open."""
        ranks = {sweep.n_ranks for sweep in self.sweeps}
        return ranks.pop() if len(ranks) == 1 else None

    @property
    def missing(self) -> tuple[Fault, ...]:
        """What the file leaves open and a prediction needs: a fault each, with what to give."""
        return tuple(self._missing())

    def _missing(self) -> Iterator[Fault]:
        for sweep in self.sweeps:
            place = f"line {sweep.rows[0].line}"
            if sweep.kind is None:
                rule = f"does not say which collective was run: {', '.join(sweep.kinds) or 'no kind'} fits the table"
                yield Fault(place, None, rule, "Give kind= (--kind), as all_gather.", self.file)
            if sweep.n_ranks is None:
                between = "does not say how many ranks took part"
                if sweep.ranks_between:
                    between += f": busbw / algbw allows {_span(*sweep.ranks_between)}"
                yield Fault(place, None, between, "Give n_ranks= (--ranks).", self.file)

    def __repr__(self) -> str:
        runs = "; ".join(repr(sweep)[6:-1] for sweep in self.sweeps)
        return f"Log({self.format}: {runs}; {len(self.notes)} notes)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units."""
        result: dict[str, Any] = plain(self)
        return result


def _span(least: int, most: int) -> str:
    return f"{least} or more" if most >= 2**30 else f"{least} to {most}"
