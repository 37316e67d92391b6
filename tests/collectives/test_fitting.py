"""Does the fit find what made the data, shrug off outliers, and say what it cannot know?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from collectives._fitting import fit, sensitivity

SIZES = 2.0 ** np.arange(8, 34)
TRUE = {"base": 7e-6, "rate": 3.5e11, "half": 2e6}
START = {"base": 2e-6, "rate": 1e11, "half": 1e6}
NAMES = tuple(START)


def ramp(c: Mapping[str, float]) -> NDArray[np.float64]:
    """Latency, and a rate that a size ramps up to."""
    return c["base"] + np.sqrt(SIZES**2 + c["half"] ** 2) / c["rate"]


def test_the_constants_that_made_the_data() -> None:
    found = fit(ramp, ramp({**TRUE, "half": 2e7}), START, NAMES)
    assert not found.untold
    assert found.constants == pytest.approx({**TRUE, "half": 2e7}, rel=1e-4)


def test_of_two_that_are_one_only_their_sum_is_told() -> None:
    """A latency and a size at half bandwidth add the same: one of them stays where it was."""
    twins = lambda c: c["base"] + (SIZES + c["half"]) / c["rate"]  # noqa: E731
    found = fit(twins, twins(TRUE), START, NAMES)
    assert len(found.untold) == 1
    assert twins(found.constants) == pytest.approx(twins(TRUE), rel=1e-3)


def test_standard_errors_are_those_of_repeated_fits() -> None:
    """Noise of 3 %: what 40 fits scatter by is what each says."""
    names, model = ("base", "rate"), lambda c: c["base"] + SIZES / c["rate"]
    true = {"base": 7e-6, "rate": 3.5e11}
    found, said = [], []
    for seed in range(40):
        noise = np.exp(0.03 * np.random.default_rng(seed).standard_normal(len(SIZES)))
        one = fit(model, model(true) * noise, {"base": 2e-6, "rate": 1e11}, names)
        found.append([np.log(one.constants[name] / true[name]) for name in names])
        said.append([one.errors[name] for name in names])
    assert np.std(found, axis=0) == pytest.approx(np.mean(said, axis=0), rel=0.25)
    assert (np.abs(np.mean(found, axis=0)) < 3 * np.mean(said, axis=0) / np.sqrt(40)).all()


def test_an_outlier_does_not_move_the_fit() -> None:
    model = lambda c: c["base"] + SIZES / c["rate"]  # noqa: E731
    times = model({"base": 7e-6, "rate": 3.5e11})
    times[[3, 20]] *= 5
    found = fit(model, times, {"base": 2e-6, "rate": 1e11}, ("base", "rate"))
    assert found.constants == pytest.approx({"base": 7e-6, "rate": 3.5e11}, rel=0.05)


@pytest.mark.parametrize(("sizes", "untold"), [(SIZES[:6], "rate"), (SIZES[-6:], "base")])
def test_what_the_sizes_do_not_tell_stays(sizes: NDArray[np.float64], untold: str) -> None:
    def model(c: Mapping[str, float]) -> NDArray[np.float64]:
        return c["base"] + sizes / c["rate"]

    noise = np.exp(0.02 * np.random.default_rng(1).standard_normal(len(sizes)))
    start = {"base": 2e-6, "rate": 1e11}
    found = fit(model, model({"base": 7e-6, "rate": 3.5e11}) * noise, start, ("base", "rate"))
    assert found.untold == (untold,)
    assert found.constants[untold] == start[untold]
    assert untold not in found.errors


def test_fewer_rows_than_constants() -> None:
    start = {"base": 2e-6, "rate": 1e11}
    found = fit(lambda c: np.array([c["base"] + 1e9 / c["rate"]]), np.array([3e-3]), start, ("base", "rate"))
    assert found.untold
    assert found.constants["base"] == 2e-6


def test_sensitivity_by_hand() -> None:
    """Half of the time is latency: its slope is a half; a rate's is negative."""
    model = lambda c: np.array([c["base"] + 1e6 / c["rate"]])  # noqa: E731
    constants = {"base": 1e-5, "rate": 1e11}
    assert sensitivity(model, constants, "base") == pytest.approx([0.5])
    assert sensitivity(model, constants, "rate") == pytest.approx([-0.5])
