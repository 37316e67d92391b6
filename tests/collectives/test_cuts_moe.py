"""Is a bound of an expert layer what its different tokens must cross?"""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import collectives
from collectives import MoE, lower_bound
from collectives._cuts_moe import crossing_tokens

from .shapes import racks, star


def test_into_a_gpu_and_out_of_a_domain_by_hand() -> None:
    """32 of 256 experts a GPU: 7 x 64 tokens come in, each with 1 - C(224, 8)/C(256, 8)."""
    layer = MoE(tokens=64, hidden=1000, top_k=8, experts=256, combine_bytes=2)
    bound = lower_bound(star(8, 1e9), "moe_dispatch", layer, scope="any")
    hit = 1 - comb(224, 8) / comb(256, 8)
    assert bound.cut_bytes == pytest.approx(7 * 64 * hit * 1000, rel=1e-12)
    assert bound.seconds == pytest.approx(bound.cut_bytes / 1e9, rel=1e-12)
    assert collectives.cost(star(8, 1e9), "moe_dispatch", layer, algorithm="per_gpu").seconds == pytest.approx(
        bound.seconds, rel=1e-9
    )
    # Two domains of four, half of the experts each: out of one 4 x 64 tokens, twice the bytes on the way back.
    back = lower_bound(racks(4, 4), "moe_combine", layer, scope="any")
    other = 1 - comb(128, 8) / comb(256, 8)
    assert back.cut_bytes == pytest.approx(4 * 64 * other * 2000, rel=1e-12)
    assert back.cut_bandwidth == 4e9


def test_pipelined_copies_per_domain_reach_it_where_scale_out_binds() -> None:
    layer, graph = MoE(tokens=64, hidden=1000, top_k=8, experts=256), racks(4, 4, up=9e9, out=1e9)
    found = collectives.cost(graph, "moe_dispatch", layer, algorithm="per_domain", pipelined=True).seconds
    assert found == pytest.approx(lower_bound(graph, "moe_dispatch", layer, scope="any").seconds, rel=1e-9)


def test_crossing_tokens_against_sampled_choices() -> None:
    """Uneven tokens and replicas: who has an expert inside, drawn one by one."""
    dice, n, k = np.random.default_rng(3), 4, 2
    slots = (np.array([0, 1, 2, 3, 4, 5, 0, 5]), np.array([0, 0, 1, 1, 2, 2, 3, 3]))
    layer = MoE(tokens=[1, 2, 0, 3], hidden=1, top_k=k, experts=6, placement=slots)
    traffic = collectives.moe_traffic(racks(2, 2), layer)
    inside = np.array([[True, False, False, True], [True, True, False, False]])
    into, out = crossing_tokens(traffic, inside)
    held, draws = traffic.held, 40_000
    met = np.zeros((2, n, 2))
    for rank in range(n):
        chosen = np.argsort(dice.random((draws, 6)), axis=1)[:, :k]
        at = (dice.random((draws, k, 1)) > held.T.cumsum(axis=1)[chosen]).sum(axis=2)
        for side in range(2):
            there = inside[side][at]
            met[side, rank] = there.any(axis=1).mean(), (~there).any(axis=1).mean()
    tokens = np.array([1, 2, 0, 3])
    np.testing.assert_allclose(into, [(tokens * met[s, :, 0])[~inside[s]].sum() for s in range(2)], atol=0.03)
    np.testing.assert_allclose(out, [(tokens * met[s, :, 1])[inside[s]].sum() for s in range(2)], atol=0.03)


@pytest.mark.parametrize("kind", ["moe_dispatch", "moe_combine"])
def test_no_copies_beat_it(kind: str) -> None:
    dice = np.random.default_rng(11)
    for sizes in ((2, 2), (1, 3, 2), (4,)):
        n = sum(sizes)
        load = dice.random((n, 12)) + 0.1
        layer = MoE(tokens=dice.integers(0, 9, n), hidden=64, top_k=3, experts=12, expert_load=load)
        bound = lower_bound(racks(*sizes), kind, layer, scope="any").seconds
        for name in collectives.KINDS[kind].algorithms:
            if len(sizes) > 1 or name in ("direct", "per_gpu"):
                cost = collectives.cost(racks(*sizes), kind, layer, algorithm=name, pipelined=True)
                assert bound <= cost.seconds * (1 + 1e-9), (sizes, name)


def test_no_tokens_need_no_time() -> None:
    layer = MoE(tokens=0, hidden=64, top_k=2, experts=8)
    assert lower_bound(racks(2, 2), "moe_dispatch", layer, scope="any").seconds == 0
