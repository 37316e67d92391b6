"""How well does a law fit the logs of a machine, and what do they not tell? The records of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from collectives._constants import CONSTANTS
from collectives._profile import Profile
from collectives._results import plain
from topo.units import format_quantity

__all__ = ["Calibration", "Curve", "Untold"]


@dataclass(frozen=True)
class Curve:
    """One run: measured and fitted times over sizes.

    Attributes
    ----------
    file, kind : str
        Where it comes from, and the collective.
    n_ranks, n_domains : int
        Who took part.
    n_bytes : tuple of int
        Sizes [bytes].
    measured, fitted, start : tuple of float
        Times, of the fit, and of the profile it started from [s].
    """

    file: str
    kind: str
    n_ranks: int
    n_domains: int
    n_bytes: tuple[int, ...]
    measured: tuple[float, ...]
    fitted: tuple[float, ...]
    start: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of |fitted / measured - 1|."""
        return float(np.median(np.abs(np.array(self.fitted) / np.array(self.measured) - 1)))


@dataclass(frozen=True)
class Untold:
    """A constant that the logs do not tell.

    Attributes
    ----------
    name : str
        Its dotted name.
    together : bool
        Whether rows depend on it, but so that others do the same: only what they make together is told.
    kind, n_ranks, n_bytes : str, int, int or None
        The collective on this graph that shows it most; None where none does.
    """

    name: str
    together: bool
    kind: str | None = None
    n_ranks: int | None = None
    n_bytes: int | None = None

    @property
    def cure(self) -> str:
        """What would tell it."""
        if self.together:
            return "only what they make together with others is told: runs over another number of ranks separate them"
        if self.kind is None:
            return "collectives on this graph hardly depend on them"
        return f"runs of {self.kind} over {self.n_ranks} ranks tell them"


@dataclass(frozen=True, repr=False)
class Calibration:
    """A profile fitted to the logs of a machine.

    Attributes
    ----------
    profile : Profile
        Constants with their relative standard errors.
    start : str
        The profile the fit started from.
    curves : tuple of Curve
        Every run of the logs that was fitted.
    untold : tuple of Untold
        Constants left where they were.
    notes : tuple of str
        Everything that was filled in, dropped or left out.
    """

    profile: Profile
    start: str
    curves: tuple[Curve, ...]
    untold: tuple[Untold, ...]
    notes: tuple[str, ...]

    @cached_property
    def median(self) -> float:
        """Median of |fitted / measured - 1| over all rows."""
        return float(np.median(self._off("fitted")))

    @cached_property
    def p90(self) -> float:
        """90th percentile of it."""
        return float(np.quantile(self._off("fitted"), 0.9))

    @cached_property
    def start_median(self) -> float:
        """Median of |start / measured - 1|: how far off the profile was before."""
        return float(np.median(self._off("start")))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the logs do not tell, and what would, a line a cure."""
        cures: dict[str, list[Untold]] = {}
        for one in self.untold:
            cures.setdefault(one.cure, []).append(one)
        return tuple(f"not told: {', '.join(map(_with_size, found))}: {cure}" for cure, found in cures.items())

    @property
    def n_rows(self) -> int:
        """Rows fitted."""
        return sum(len(curve.measured) for curve in self.curves)

    def written(self, name: str) -> str:
        """Return a constant with its unit."""
        value, unit = self.profile.constants[name], CONSTANTS[self.profile.law][name].unit
        return f"{value:.4g}" if unit == "ratio" else format_quantity(value, unit)

    def _off(self, what: str) -> Any:
        ratios = [np.array(getattr(curve, what)) / np.array(curve.measured) for curve in self.curves]
        return np.abs(np.concatenate(ratios) - 1)

    def __repr__(self) -> str:
        return (
            f"Calibration({self.profile.name}: {self.median:.1%} median, {self.p90:.1%} at the 90th percentile of "
            f"{self.n_rows} rows; {len(self.profile.errors)} constants fitted, {len(self.untold)} not told)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units."""
        found: dict[str, Any] = plain(self, leave_out=("profile",))
        return {
            "profile": self.profile.to_dict(), **found, "warnings": list(self.warnings), "rows": self.n_rows,
            "median": self.median, "p90": self.p90, "start_median": self.start_median,
        }  # fmt: skip


def _with_size(one: Untold) -> str:
    return one.name if one.n_bytes is None or one.together else f"{one.name} ({format_quantity(one.n_bytes, 'bytes')})"
