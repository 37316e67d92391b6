"""Does the fit find what made the data, shrug off outliers, and say what it cannot know?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from collectives._fitting import PRIOR, fit, sensitivity

Floats = NDArray[np.float64]
SIZES = 2.0 ** np.arange(8, 34)
TRUE, START = {"base": 7e-6, "rate": 3.5e11}, {"base": 4e-6, "rate": 2e11}
NAMES = tuple(START)


def line(c: Mapping[str, float], sizes: Floats = SIZES) -> Floats:
    """Latency and rate."""
    return c["base"] + sizes / c["rate"]


def noise(seed: int, scale: float, n: int = len(SIZES)) -> Floats:
    return np.exp(scale * np.random.default_rng(seed).standard_normal(n))


def test_the_constants_that_made_the_data() -> None:
    found = fit(line, line(TRUE), START, NAMES)
    assert found.untold == ()
    assert found.constants == pytest.approx(TRUE, rel=2e-3)
    assert np.abs(found.residuals).max() < 2e-3


def test_standard_errors_are_those_of_repeated_fits() -> None:
    """Noise of 3 %: what 40 fits scatter by is what each says."""
    found, said = [], []
    for seed in range(40):
        one = fit(line, line(TRUE) * noise(seed, 0.03), START, NAMES)
        found.append([np.log(one.constants[name] / TRUE[name]) for name in NAMES])
        said.append([one.errors[name] for name in NAMES])
    assert np.std(found, axis=0) == pytest.approx(np.mean(said, axis=0), rel=0.3)
    assert (np.abs(np.mean(found, axis=0)) < 3 * np.mean(said, axis=0) / np.sqrt(40)).all()


def test_an_outlier_does_not_move_the_fit() -> None:
    times = line(TRUE) * noise(2, 0.02)
    times[[3, 20]] *= 5
    assert fit(line, times, START, NAMES).constants == pytest.approx(TRUE, rel=0.04)


@pytest.mark.parametrize(("sizes", "untold"), [(SIZES[:6], "rate"), (SIZES[-6:], "base")])
def test_what_the_sizes_do_not_tell_stays(sizes: Floats, untold: str) -> None:
    times = line(TRUE, sizes) * noise(1, 0.02, len(sizes))
    found = fit(lambda c: line(c, sizes), times, START, NAMES)
    assert found.untold == (untold,)
    assert abs(np.log(found.constants[untold] / START[untold])) < PRIOR / 5
    told = next(name for name in NAMES if name != untold)
    assert found.constants[told] == pytest.approx(TRUE[told], rel=0.03)


def test_of_two_that_are_one_only_their_product_is_told() -> None:
    """Two factors of one latency: each goes half the way, and neither is told."""
    twins = lambda c: c["a"] * c["b"] * (1 + 0 * SIZES)  # noqa: E731
    found = fit(twins, np.full(len(SIZES), 6e-6), {"a": 3e-6, "b": 1.0}, ("a", "b"))
    assert found.untold == ("a", "b")
    assert found.constants["a"] * found.constants["b"] == pytest.approx(6e-6, rel=1e-3)
    assert found.constants["b"] == pytest.approx(np.sqrt(2), rel=1e-2)


def test_fewer_rows_than_constants() -> None:
    found = fit(lambda c: line(c, np.array([1e9])), np.array([3e-3]), START, NAMES)
    assert found.untold == ("base",)
    assert found.constants["rate"] == pytest.approx(1e9 / 3e-3, rel=0.02)


def test_zero_stays_zero() -> None:
    found = fit(lambda c: line(c) + c["more"], line(TRUE), {**START, "more": 0.0}, (*NAMES, "more"))
    assert (found.constants["more"], found.untold) == (0.0, ("more",))


def test_sensitivity_by_hand() -> None:
    """Half of the time is latency: its slope is a half; a rate's is negative."""
    constants = {"base": 1e-5, "rate": 1e11}
    one = np.array([1e6])
    assert sensitivity(lambda c: line(c, one), constants, "base") == pytest.approx([0.5])
    assert sensitivity(lambda c: line(c, one), constants, "rate") == pytest.approx([-0.5])
    assert 0.3 < PRIOR < 1  # a factor of 1.6, as clouds differ
