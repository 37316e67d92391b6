"""Does the curve fall, is every point's plan what it says, and no point below its bound?"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from placement import BalanceCurve, Gpus, balance_curve
from topo import InputError

from .expert_loads import loads

GPUS = Gpus([5] * 8, domain=np.repeat([0, 1], 4))


@pytest.fixture(scope="module")
def sources() -> Any:
    load = loads(32, "lognormal0.7", layers=2)
    home = np.random.default_rng(7).integers(0, 2, load.shape)
    return load[:, None] * (0.2 + 0.6 * (home[:, None] == np.arange(2)[:, None]))


@pytest.fixture(scope="module")
def curve(sources: Any) -> BalanceCurve:
    return balance_curve(sources, GPUS, replicas=8, balances=(1.3, 1.01, 1.1), work=100)


def test_the_curve_falls_and_is_above_its_bound(curve: BalanceCurve) -> None:
    assert curve.balance.tolist() == [1.01, 1.1, 1.3]
    assert curve.within.all()
    assert (np.diff(curve.crossing, axis=0) <= 0).all()
    assert (np.diff(curve.bound, axis=0) <= 0).all()
    assert (curve.bound <= curve.crossing).all()
    assert (curve.crossing - curve.bound).max() < 0.05


def test_plans_are_what_the_points_say(curve: BalanceCurve, sources: Any) -> None:
    for point, plan in enumerate(curve.plans):
        assert plan.slot_share is not None
        for layer in range(2):
            expert, rank = plan.slot_expert[layer], plan.slot_rank[layer]
            has = np.zeros((2, 32), dtype=bool)
            has[GPUS.domain[rank], expert] = True
            crossing = sources[layer][~has].sum() / sources[layer].sum()
            assert crossing == pytest.approx(curve.crossing[point, layer])
            tokens = sources[layer].sum(axis=0)[expert] * plan.slot_share[layer]
            gpu = np.bincount(rank, weights=tokens, minlength=8)
            assert gpu.max() / gpu.mean() == pytest.approx(curve.layer_objective[point, layer])


def test_a_balance_that_cannot_be_is_said() -> None:
    """Two experts, one of them with nine tenths of all, in two slots: 1.8 is the least there is."""
    curve = balance_curve([[9.0, 1.0], [9.0, 1.0]], Gpus([1, 1], domain=[0, 1]), balances=(1.5, 2.0))
    assert curve.within.ravel().tolist() == [False, True]
    assert curve.bound[0, 0] == np.inf
    assert curve.layer_objective.ravel() == pytest.approx([1.8, 1.8])
    assert "1.5: 50.0 % (1 layers heavier)" in repr(curve)
    assert json.loads(json.dumps(curve.to_dict()))["bound"][0] == ["Infinity"]


@pytest.mark.parametrize("balances", [(), (0.9, 1.1), (1.1, float("nan"))])
def test_bad_balances_are_refused(balances: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="balance"):
        balance_curve([[1.0, 1.0], [1.0, 1.0]], Gpus([1, 1], domain=[0, 1]), balances=balances)
