"""Is the bound below every placement, and are moves of copies counted exactly? By enumeration, and from scratch."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from placement._homes_bound import Room, Ways, least_crossing
from placement._homes_moves import Aim, Homes, away, give, lift, pour, swap
from placement._homes_search import anneal, homes_of

Floats = NDArray[np.float64]


def by_enumeration(asked: Floats, room: Room, ways: Ways) -> float:
    """Try all counts of copies by domain; serve what has no home by a linear program."""
    m, n = asked.shape
    least, whole = np.inf, asked.sum(axis=0)
    for flat in product(range(4), repeat=m * n):
        copies = np.array(flat).reshape(m, n)
        if copies.sum() > room.copies or (copies.sum(axis=1) > room.slots).any() or (copies.sum(axis=0) == 0).any():
            continue
        home = np.where(copies > 0, asked, 0.0)
        crossing = float(home.sum(axis=1) @ ways.home + (asked - home).sum(axis=1) @ ways.away)
        if crossing >= least:
            continue
        cap = copies * room.size - home
        if (cap < 0).any():
            continue
        served = linprog(
            np.zeros(m * n), np.kron(np.eye(m), np.ones(n)), room.most - home.sum(axis=1),
            np.tile(np.eye(n), m), whole - home.sum(axis=0), [(0, c) for c in cap.ravel()],
        )  # fmt: skip
        if served.status == 0:
            least = crossing
    return least


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=3, max_size=3), st.integers(0, 3))
def test_no_placement_is_below_the_bound(columns: list[tuple[int, int]], spare: int) -> None:
    asked = np.array(columns, dtype=float).T
    asked *= 4 / asked.sum()
    room = Room(np.full(2, 2.3), np.array([4, 3]), 3 + spare, 1.2)
    for ways in (
        None,
        Ways(np.array([0.1, 0.3]), np.array([2.0, 0.7])),
        Ways(np.array([1.0, 0.2]), np.array([0.9, 0.2])),
    ):
        least = by_enumeration(asked, room, ways or Ways(np.zeros(2), np.ones(2)))
        for reached in (0.0, 1.0, 4.0):
            bound = least_crossing(asked, room, reached, ways=ways)
            assert bound <= least + 1e-9
            if np.isinf(bound):
                assert np.isinf(least)


def test_the_bound_is_exact_where_slots_decide() -> None:
    """Alike experts asked for from one domain each, a domain too small for its own: those left over cross."""
    asked = np.array([[1.0] * 6 + [0.0] * 2, [0.0] * 6 + [1.0] * 2])
    room = Room(np.full(2, 8.0), np.array([4, 4]), 8, 1.0)
    assert least_crossing(asked, room, 2.0) == pytest.approx(2.0, rel=1e-3)
    ways = Ways(np.array([0.5, 0.25]), np.array([1.5, 1.25]))  # every token at home pays, one that crosses 1 more
    paid = float(asked.sum(axis=1) @ ways.home)
    assert least_crossing(asked, room, 2.0, ways=ways) == pytest.approx(paid + 2.0, rel=1e-3)


def test_what_cannot_be_has_no_bound() -> None:
    """Two experts of load one and a half need four copies of load one: there are three slots."""
    asked = np.array([[0.75, 0.75], [0.75, 0.75]])
    assert least_crossing(asked, Room(np.full(2, 2.0), np.array([2, 1]), 3, 1.0), 1.0) == np.inf


def counted(a: Homes, aim: Aim) -> float:
    """Cost of a place, from scratch."""
    n = len(a.whole) - 1
    over = np.maximum(a.share[:, :n].sum(axis=1) - aim.limit * a.speed, 0).sum()
    over += np.maximum(a.share[:, :n] - a.held[:, :n] * aim.size, 0).sum()
    held = np.zeros((len(a.asked), n), dtype=bool)
    for b, e in zip(*np.nonzero(a.held[:, :n]), strict=True):
        held[a.domain[b], e] = True
    return float(aim.fine * over + (a.asked[:, :n] * ~held).sum())


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_moves_count_what_they_change_and_undo_it_whole(coarse: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = rng.random((2, 7)) * 4 / 7
    expert = np.array([[0, 1, 2], [3, 4, 0], [5, 6, 7], [1, 0, 5]])  # 7 is empty
    domain, most, speed = np.array([0, 0, 1, 1]), np.ones((4, 7)), np.array([1.0, 1.0, 1.0, 1.5])
    if coarse:
        expert, domain, most, speed = expert.reshape(2, 6), np.arange(2), np.full((2, 7), 2), np.array([2.0, 2.5])
    most[0, 6] = 0
    a = homes_of(asked, expert, speed, domain, most)
    aim = Aim(0.9, 0.5, 2.0)
    for e in range(7):
        lift(a, e)
        pour(a, e, aim.size)
    kept = np.zeros((3, len(speed)))
    for _ in range(300):
        before, where = counted(a, aim), a.expert.copy()
        b, c = rng.integers(len(speed), size=2)
        s, t = rng.integers(expert.shape[1], size=2)
        worse = float(rng.choice([-1e-9, 0.05, 1.0]))
        spare = a.expert[b, s] < 7 and (a.many[a.expert[b, s]] > 1 or a.held[b, a.expert[b, s]] > 1)
        if spare and rng.random() < 0.5:
            if rng.random() < 0.5:
                c, t = b, s
            give(a, b, s, c, t, int(rng.integers(7)), aim, worse, kept)
        elif b != c:
            swap(a, b, s, c, t, aim, worse, kept)
        if (a.expert == where).all():
            assert counted(a, aim) == pytest.approx(before)
        else:
            assert counted(a, aim) - before <= worse + 1e-9
        assert a.weight == pytest.approx(a.share.sum(axis=1))
        assert a.share[:, :7].sum(axis=0) == pytest.approx(asked.sum(axis=0))
        assert sorted(a.expert.ravel().tolist()).count(7) == 1
        assert (a.held[:, :7].sum(axis=0) >= 1).all()
        assert (a.held[:, :7] <= most).all()
        for e in range(7):
            assert sorted(a.spot[e, : a.many[e]].tolist()) == np.flatnonzero(a.held[:, e]).tolist()
            homes = {int(domain[i]) for i in a.spot[e, : a.many[e]]}
            assert away(a, e) == pytest.approx(sum(asked[d, e] for d in range(2) if d not in homes))


@pytest.mark.parametrize("seed", range(20))
def test_load_is_poured_level_at_any_speeds(seed: int) -> None:
    """An expert everywhere beside one other on every GPU: GPUs it is on end at one level, the others above that."""
    rng = np.random.default_rng(seed)
    speed, load = rng.uniform(0.3, 3.0, 6), rng.uniform(0.0, 2.0, 7)
    expert = np.array([[6, g] for g in range(6)])
    a = homes_of(load[None], expert, speed, np.zeros(6, dtype=np.int64), np.ones((6, 7)))
    for e in range(7):
        pour(a, e, 9.0)
    for _ in range(50):
        lift(a, 6)
        pour(a, 6, 9.0)
    weight, wet = a.weight / speed, a.share[:, 6] > 1e-9
    assert a.share[:, 6].sum() == pytest.approx(load[6])
    assert weight[wet] == pytest.approx(np.full(wet.sum(), weight[wet].max()))
    assert (weight[~wet] >= weight[wet].max() * (1 - 1e-9)).all()


def test_annealing_finds_what_enumeration_finds() -> None:
    """Two domains of two slots, four experts each asked for mostly from one: each goes home."""
    asked = np.array([[0.9, 0.1, 0.9, 0.1], [0.1, 0.9, 0.1, 0.9]])
    a = homes_of(asked, np.array([[0, 1], [2, 3]]), np.full(2, 2.0), np.arange(2), np.ones((2, 4)))
    assert anneal(a, 1.01, 1.01, 500, (0.2, 0.002), (1.0, 10.0)) == pytest.approx(0.4)
    assert sorted(a.expert[0].tolist()) == [0, 2]
