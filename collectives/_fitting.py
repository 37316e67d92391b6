"""Which constants make a law fit measured times, how surely, and which do the measurements not tell?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Law", "fit", "sensitivity"]

Floats = NDArray[np.float64]
#: Constants -> time of every row [s].
Law = Callable[[Mapping[str, float]], Floats]

#: How far a machine's constant lies from another's: standard deviation of its logarithm before anything is measured.
PRIOR = 0.5
#: A constant is told if measurements leave less than this part of it.
_TOLD = 0.6
#: Scatter of log(predicted / measured) that the first fit counts with, and the least and most that the second does.
_SCATTER, _LEAST, _MOST = 0.05, 0.01, 0.2
#: Beyond so many times the scatter a row counts by its distance, not its square.
_OUTLIER = 2.0
_STEP = 1e-4


@dataclass(frozen=True)
class Fit:
    """What a fit found.

    Attributes
    ----------
    constants : dict
        Name -> value.
    errors : dict
        Name -> relative standard error of those that the rows tell.
    untold : tuple of str
        Constants that the rows do not tell, or only together with others.
    residuals : (rows,) float
        log(predicted / measured).
    """

    constants: dict[str, float]
    errors: dict[str, float]
    untold: tuple[str, ...]
    residuals: Floats


def sensitivity(law: Law, constants: Mapping[str, float], name: str) -> Floats:
    """Return d log(time) / d log(constant) of every row, (rows,) float."""
    up, down = (law({**constants, name: constants[name] * (1 + sign * _STEP)}) for sign in (1, -1))
    slope: Floats = np.log(up / down) / (2 * _STEP)
    return slope


def fit(
    law: Law,
    measured: Floats,
    start: Mapping[str, float],
    free: tuple[str, ...],
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Fit:
    """Return the constants that fit best: least squares of log(predicted / measured), outliers by their size.

    Every constant is held to where it starts as if it had been measured once to `PRIOR`, so
    that what the rows do not tell stays there, and few rows never run away.

    Parameters
    ----------
    law : callable
        Constants -> time of every row [s].
    measured : (rows,) float
        Times [s].
    start : mapping
        Name -> value, every constant of the law.
    free : tuple of str
        Constants to fit; those that start at 0 stay there.
    limits : mapping, optional
        Name -> least and most that a constant may be; by default above zero.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([1e3, 1e5, 1e7, 1e9])
    >>> found = fit(
    ...     lambda c: c["base"] + sizes / c["rate"],
    ...     5e-6 + sizes / 4e11,
    ...     {"base": 4e-6, "rate": 3e11},
    ...     ("base", "rate"),
    ... )
    >>> {name: float(f"{value:.2g}") for name, value in found.constants.items()}, found.untold
    ({'base': 5e-06, 'rate': 400000000000.0}, ())
    """
    names = [name for name in free if start[name] > 0]
    bounds = [(limits or {}).get(name, (0.0, np.inf)) for name in names]
    with np.errstate(divide="ignore"):
        room = np.log(np.array(bounds).reshape(-1, 2) / np.array([[start[name]] for name in names]).reshape(-1, 1)).T
    x, _, residuals = _solved(law, measured, start, names, _SCATTER, room)
    scatter = float(np.clip(1.4826 * np.median(np.abs(residuals)), _LEAST, _MOST))
    x, errors, residuals = _solved(law, measured, start, names, scatter, room)
    told = {name: error for name, error in zip(names, errors.tolist(), strict=True) if error < _TOLD * PRIOR}
    return Fit(_at(start, names, x), told, tuple(name for name in free if name not in told), residuals)


def _at(start: Mapping[str, float], names: list[str], x: Floats) -> dict[str, float]:
    return {**start, **{name: start[name] * float(np.exp(one)) for name, one in zip(names, x, strict=True)}}


def _solved(
    law: Law, measured: Floats, start: Mapping[str, float], names: list[str], scatter: float, room: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return logarithms over the start, their standard errors, and log(predicted / measured)."""
    from scipy.optimize import least_squares

    def off(x: Floats) -> Floats:
        found: Floats = np.log(law(_at(start, names, x)) / measured)
        return found

    def loss(z: Floats) -> Floats:
        """Soft L1 of the measured rows; what holds constants to their start counts by its square."""
        data = np.arange(len(z)) < len(measured)
        root = np.sqrt(1 + z / _OUTLIER**2)
        soft = np.array([2 * _OUTLIER**2 * (root - 1), 1 / root, -0.5 / _OUTLIER**2 / root**3])
        return np.where(data, soft, np.array([z, np.ones_like(z), np.zeros_like(z)]))

    def rows(x: Floats) -> Floats:
        return np.concatenate([off(x) / scatter, x / PRIOR])

    solve: Any = least_squares  # its stub knows no such loss
    found = solve(rows, np.zeros(len(names)), loss=loss, x_scale=PRIOR, bounds=tuple(room))
    # The Jacobian is weighed by the loss: its square is the curvature of what was minimised.
    variance = np.diag(np.linalg.inv(found.jac.T @ found.jac)) if names else np.zeros(0)
    return found.x, np.sqrt(variance), off(found.x)
