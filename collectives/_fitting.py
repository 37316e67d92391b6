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

#: |log(predicted / measured)| beyond which a row counts by its size, not its square.
_OUTLIER = 0.1
#: A constant is told if doubling it changes some time by this share,
_LEAST_SENSITIVE = 0.01
#: and if its logarithm is known to this standard error.
_LARGEST_ERROR = 0.5
#: No measured time repeats better than this: the least scatter that standard errors count with.
_LEAST_SCATTER = 0.01
#: A constant stays within this factor of where it starts.
_FARTHEST = 100.0
_STEP = 1e-4


@dataclass(frozen=True)
class Fit:
    """What a fit found.

    Attributes
    ----------
    constants : dict
        Name -> value; those not told as they were.
    errors : dict
        Name -> relative standard error of those that were told.
    untold : tuple of str
        Constants that the rows do not tell.
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


def fit(law: Law, measured: Floats, start: Mapping[str, float], free: tuple[str, ...]) -> Fit:
    """Return the constants that fit best: least squares of log(predicted / measured), outliers by their size.

    A constant that no row depends on, or whose standard error is above a half, is put back to
    where it started, the worst first, and the others are fitted again.

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

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([1e3, 1e5, 1e7, 1e9])
    >>> found = fit(
    ...     lambda c: c["base"] + sizes / c["rate"],
    ...     5e-6 + sizes / 4e11,
    ...     {"base": 1e-6, "rate": 1e11},
    ...     ("base", "rate"),
    ... )
    >>> {name: float(f"{value:.4g}") for name, value in found.constants.items()}, found.untold
    ({'base': 5e-06, 'rate': 400000000000.0}, ())
    """
    told = [name for name in free if start[name] > 0]
    told = [name for name in told if np.abs(sensitivity(law, start, name)).max(initial=0.0) >= _LEAST_SENSITIVE]
    while len(told) >= len(measured):
        told.remove(min(told, key=lambda name: float(np.abs(sensitivity(law, start, name)).sum())))
    while True:
        constants, errors, residuals = _solved(law, measured, start, told)
        worst = max(errors, key=lambda name: errors[name], default=None)
        if worst is None or errors[worst] <= _LARGEST_ERROR:
            break
        told.remove(worst)
    return Fit(constants, errors, tuple(name for name in free if name not in told), residuals)


def _solved(
    law: Law, measured: Floats, start: Mapping[str, float], names: list[str]
) -> tuple[dict[str, float], dict[str, float], Floats]:
    """Fit these constants; return all of them, relative standard errors of these, and residuals."""
    from scipy.optimize import least_squares

    def at(x: Floats) -> dict[str, float]:
        return {**start, **{name: start[name] * float(np.exp(one)) for name, one in zip(names, x, strict=True)}}

    def residuals(x: Floats) -> Floats:
        found: Floats = np.log(law(at(x)) / measured)
        return found

    if not names:
        return dict(start), {}, residuals(np.zeros(0))
    most = np.log(_FARTHEST)
    found: Any = least_squares(residuals, np.zeros(len(names)), bounds=(-most, most), loss="soft_l1", f_scale=_OUTLIER,
                               x_scale="jac")  # fmt: skip
    # The Jacobian is weighed by the loss, so that its square is the curvature of what was minimised.
    _, singular, rows = np.linalg.svd(found.jac, full_matrices=False)
    spread = max(2 * found.cost / max(1, len(measured) - len(names)), _LEAST_SCATTER**2)
    variance = spread * (rows.T**2 / np.maximum(singular, 1e-9 * max(singular.max(), 1.0)) ** 2).sum(axis=1)
    errors = dict(zip(names, np.sqrt(variance).tolist(), strict=True))
    stuck = np.abs(found.x) > most * (1 - 1e-6)
    return at(found.x), {n: (np.inf if s else errors[n]) for n, s in zip(names, stuck, strict=True)}, residuals(found.x)
