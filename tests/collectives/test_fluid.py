"""Do SimGrid's values and hand numbers come out, and does folding change nothing?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import _folding, _sharing
from collectives.fluid import finish_times
from topo import InputError

from .filling import ends as slow_ends

NVL, NIC, SIZE = 900e9, 50e9, 1e9
Link = tuple[Any, ...]


def ends(
    paths: Iterable[Sequence[Link]], rate: dict[str, float], n_bytes: Any = SIZE, start: Any = 0.0
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Ends of flows over links (kind, ...), whose capacity goes by their kind."""
    numbers: dict[Link, int] = {}
    rows = [[numbers.setdefault(link, len(numbers)) for link in path] for path in paths]
    indptr = np.cumsum([0, *map(len, rows)])
    sizes = np.broadcast_to(n_bytes, len(rows))
    return finish_times([rate[link[0]] for link in numbers], indptr, np.concatenate(rows), sizes, start)


def one_switch(n: int) -> list[list[Link]]:
    return [[("up", i), ("dn", j)] for i, j in permutations(range(n), 2)]


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_hand_case_1() -> None:
    paths = [[0, 1, 2], [0], [1], [2]]
    indptr, links = np.cumsum([0, *map(len, paths)]), np.concatenate(paths)
    found = finish_times([10e9, 6e9, 12e9], indptr, links, [6e9, 14e9, 3e9, 20e9])
    assert found == pytest.approx([1.6, 2.0, 1.0, 13 / 6], rel=1e-12)


def test_hand_case_2() -> None:
    capacity = [40e9, 10e9, 40e9, 50e9, 30e9]
    links, n_bytes = [0, 3, 1, 3, 0, 4, 2, 3, 2, 4], [40e9, 12e9, 24e9, 25e9, 5e9]
    found = finish_times(capacity, range(0, 11, 2), links, n_bytes, [0, 0, 0, 0.5, 1.0])
    assert found == pytest.approx([1.7625, 1.2, 19 / 15, 1.65, 79 / 60], rel=1e-12)


def test_what_needs_no_wire() -> None:
    indptr, links = [0, 0, 1, 2, 3, 4, 6], [0, 1, 1, 0, 0, 0]
    found = finish_times([5.0, 0.0], indptr, links, [9, 0, 9, 0, 20, 20], [1, 2, 3, 4, 5, 5])
    # no path; no bytes; a link without capacity; neither; alone at 5/s; and twice over the link
    assert found[:4].tolist() == [1.0, 2.0, inf, 4.0]
    # 5/3 a second each, the last one takes it twice; both end at 5 + 20 / (5/3)
    assert found[4:] == pytest.approx([17.0, 17.0])
    assert finish_times([1.0], [0], [], []).shape == (0,)
    assert finish_times([], [0, 0], [], [7.0], 3.0).tolist() == [3.0]


def test_a_flow_over_a_link_twice_takes_it_twice() -> None:
    assert finish_times([10.0], [0, 2], [0, 0], [20.0]) == pytest.approx([4.0])


def test_starts_far_apart_and_late() -> None:
    assert finish_times([10.0], [0, 1, 2], [0, 0], [10, 10], [-3.0, 1e6]).tolist() == [-2.0, 1e6 + 1]
    assert finish_times([10.0], [0, 1, 2], [0, 0], [10, 10], [0.5, 1.0]) == pytest.approx([2.0, 2.5], rel=1e-12)


# --- SimGrid 3.32, plain fluid model ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "seconds"), [(8, 7e9 / NVL), (72, 71e9 / NVL), (144, 143e9 / NVL), (288, 287e9 / NVL)])
def test_one_ideal_switch(n: int, seconds: float) -> None:
    i, j = np.array(list(permutations(range(n), 2))).T
    found = finish_times(np.full(2 * n, NVL), 2 * np.arange(len(i) + 1), np.stack([i, n + j], 1).ravel(), 0 * i + SIZE)
    assert np.allclose(found, seconds, rtol=1e-9, atol=0)


def across(count: int, size: int, middle: Any) -> tuple[np.ndarray[Any, Any], list[list[Link]]]:
    """In-rack flows go over the scale-up switch; the others as `middle` says."""
    ranks = list(product(range(count), range(size)))
    pairs = list(permutations(ranks, 2))
    inside = np.array([a[0] == b[0] for a, b in pairs])
    return inside, [[("up", a), ("dn", b)] if a[0] == b[0] else middle(a, b) for a, b in pairs]


@pytest.mark.parametrize("shape", [(2, 8), (4, 8), (8, 8), (2, 72)])
def test_racks_over_a_fabric(shape: tuple[int, int]) -> None:
    count, size = shape
    inside, paths = across(*shape, lambda a, b: [("out", a), ("in", b)])
    found = ends(paths, {"up": NVL, "dn": NVL, "out": NIC, "in": NIC})
    assert np.allclose(found[inside], (size - 1) * SIZE / NVL, rtol=1e-9, atol=0)
    assert np.allclose(found[~inside], (count - 1) * size * SIZE / NIC, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("shape", "seconds"), [((2, 8), 0.32), ((4, 8), 0.96), ((8, 8), 2.24), ((2, 72), 2.88)])
def test_racks_over_a_fabric_with_half_the_uplinks(shape: tuple[int, int], seconds: float) -> None:
    inside, paths = across(*shape, lambda a, b: [("out", a), ("leaf", a[0]), ("flea", b[0]), ("in", b)])
    half = shape[1] * NIC / 2
    found = ends(paths, {"up": NVL, "dn": NVL, "out": NIC, "in": NIC, "leaf": half, "flea": half})
    assert np.allclose(found[~inside], seconds, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("shape", "seconds"), [((2, 8), 0.16), ((4, 8), 0.48), ((8, 8), 1.12)])
def test_rails_with_a_proxy(shape: tuple[int, int], seconds: float) -> None:
    def by_proxy(a: tuple[int, int], b: tuple[int, int]) -> list[Link]:
        proxy = a[0], b[1]
        rail: list[Link] = [("out", proxy), ("in", b)]
        return rail if proxy == a else [("up", a), ("dn", proxy), *rail]

    inside, paths = across(*shape, by_proxy)
    found = ends(paths, {"up": NVL, "dn": NVL, "out": NIC, "in": NIC})
    assert np.allclose(found[~inside], seconds, rtol=1e-9, atol=0)
    if shape == (2, 8):
        assert np.allclose(found[inside], 0.00817518, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("k", "seconds"), [(4, 0.3), (8, 2.54)])
def test_fat_tree_on_one_path_a_pair(k: int, seconds: float) -> None:
    h = k // 2

    def path(s: int, d: int) -> Iterator[Link]:
        (ps, es), (pd, ed) = divmod(s // h, h), divmod(d // h, h)
        agg, core = d % h, d // h % h  # D-mod-k
        yield "host up", s
        if (ps, es) != (pd, ed):
            yield "edge up", ps, es, agg
            if ps != pd:
                yield from [("agg up", ps, agg, core), ("agg down", pd, agg, core)]
            yield "edge down", pd, ed, agg
        yield "host down", d

    paths = [list(path(s, d)) for s, d in permutations(range(k**3 // 4), 2)]
    kinds = ["host up", "edge up", "agg up", "agg down", "edge down", "host down"]
    assert ends(paths, dict.fromkeys(kinds, NIC)).max() == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize(("both_ways", "seconds"), [(False, 0.96), (True, 0.64)])
def test_torus_by_dimension_order(both_ways: bool, seconds: float) -> None:
    def path(a: tuple[int, ...], b: tuple[int, ...], turn: int) -> Iterator[Link]:
        here = list(a)
        for axis in range(3):
            far = (b[axis] - a[axis]) % 4
            step = -1 if far == 3 or (far == 2 and turn < 0) else 1
            while here[axis] != b[axis]:
                yield "wire", *here, axis, step
                here[axis] = (here[axis] + step) % 4

    nodes = list(product(range(4), repeat=3))
    turns = (1, -1) if both_ways else (1,)
    paths = [list(path(a, b, turn)) for a, b in permutations(nodes, 2) for turn in turns]
    found = ends(paths, {"wire": NIC}, SIZE / len(turns))
    assert found.max() == pytest.approx(seconds, rel=1e-9)


def test_zipf() -> None:
    share = 1 / np.arange(1, 73)
    sizes = np.floor(72 * SIZE * share / share.sum())
    flows = list(permutations(range(72), 2))
    found = ends(one_switch(72), {"up": NVL, "dn": NVL}, [sizes[j] for _, j in flows])
    assert found.max() == pytest.approx(1.1685294880, rel=1e-9)
    assert len(np.unique(np.round(found, 9))) == 72
    assert found.max() == pytest.approx(71 * sizes[0] / NVL, rel=1e-12)  # the busiest link


def test_uneven_switch() -> None:
    pytest.importorskip("numba", reason="minutes in plain Python")
    sizes = [(1 + (7919 * i + 104729 * j) % 97) * 1e8 for i, j in permutations(range(72), 2)]
    found = ends(one_switch(72), {"up": NVL, "dn": NVL}, sizes)
    assert found.max() == pytest.approx(0.3983333333, rel=1e-9)
    assert len(np.unique(np.round(found, 9))) == 4870
    assert found.sum() == pytest.approx(1321.5107465863, rel=1e-12)


def test_a_million_flows_of_one_class() -> None:
    i, j = np.divmod(np.arange(1_000_000), 1000)
    found = finish_times(np.full(2000, NVL), 2 * np.arange(1_000_001), np.stack([i, 1000 + j], 1).ravel(), 0 * i + SIZE)
    assert np.allclose(found, 1000 * SIZE / NVL, rtol=1e-9, atol=0)


# --- against whole fractions -----------------------------------------------------------------------------------------


@st.composite
def systems(draw: st.DrawFn) -> tuple[list[float], list[list[int]], list[float], list[float]]:
    """A few flows over a few links, and up to three copies of it: some alike, some not, some in touch."""
    few = st.sampled_from([1.0, 2.0, 3.0, 7.0])
    any_size = st.floats(0.125, 64, width=32)
    n_links = draw(st.integers(1, 4))
    capacity = draw(st.lists(st.one_of(few, any_size, st.just(0.0)), min_size=n_links, max_size=n_links))
    rows = st.lists(st.integers(0, n_links - 1), max_size=4)
    paths = draw(st.lists(rows, min_size=1, max_size=6))
    sizes = draw(st.lists(st.one_of(few, any_size, st.just(0.0)), min_size=len(paths), max_size=len(paths)))
    starts = draw(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.25]), min_size=len(paths), max_size=len(paths)))
    copies = draw(st.integers(1, 3))
    shift = draw(st.integers(0, n_links - 1)) if draw(st.booleans()) else 0
    total = n_links * copies
    shifted = [
        [(link + n_links * c + (shift if at else 0)) % total for at, link in enumerate(path)]
        for c in range(copies)
        for path in paths
    ]
    return capacity * copies, shifted, sizes * copies, starts * copies


def flat(paths: list[list[int]]) -> tuple[list[int], list[int]]:
    return [0, *np.cumsum([len(path) for path in paths]).tolist()], [link for path in paths for link in path]


@given(systems())
@settings(max_examples=80, deadline=None)
def test_as_filling_in_fractions(system: tuple[list[float], list[list[int]], list[float], list[float]]) -> None:
    capacity, paths, sizes, starts = system
    found = finish_times(capacity, *flat(paths), sizes, starts)
    assert found == pytest.approx(slow_ends(*system), rel=1e-9)


@given(systems(), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_links_carry_what_was_sent(system: Any, doublings: int) -> None:
    capacity, paths, sizes, starts = (np.array(x) if i != 1 else x for i, x in enumerate(system))
    indptr, links = map(np.array, flat(paths))
    filled = _sharing.shared(capacity, indptr, links.astype(np.intp), sizes, starts, 2 * 2**doublings)
    assert len(filled.times) <= 2 * 2**doublings
    assert (np.diff(filled.times) > 0).all()
    sent = np.zeros(len(capacity))
    for path, size, end in zip(paths, sizes, filled.ends, strict=True):
        np.add.at(sent, path, size if np.isfinite(end) else 0.0)
    carried = filled.carried[-1] if len(filled.times) else np.zeros(len(capacity))
    assert carried == pytest.approx(sent, rel=1e-9)


def test_folding_needs_equal_crossings() -> None:
    # Two flows over their own links, and two that share one: the same number of links, unlike crossings.
    paths = _folding.incidence(3, np.array([0, 1, 2, 3, 4]), np.array([0, 1, 2, 2]))
    flow, link = _folding.alike(paths, [np.ones(4)], np.ones(3))
    assert (flow[0] == flow[1], flow[2] == flow[3], flow[0] == flow[2]) == (True, True, False)
    assert (link[0] == link[1], link[0] == link[2]) == (True, False)
    assert _folding.equitable(paths, flow, link)
    assert not _folding.equitable(paths, np.zeros(4, dtype=int), np.array([0, 0, 1]))
    assert not _folding.equitable(paths, np.zeros(4, dtype=int), np.zeros(3, dtype=int))


def test_a_symmetric_case_is_folded_to_one_flow() -> None:
    i, j = np.array(list(permutations(range(9), 2))).T
    paths = _folding.incidence(18, 2 * np.arange(len(i) + 1), np.stack([i, 9 + j], 1).ravel())
    flow, link = _folding.alike(paths, [np.ones(len(i))], np.ones(18))
    assert (flow.max(), link.max()) == (0, 0)


# --- bad input -------------------------------------------------------------------------------------------------------


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        finish_times([1.0, nan], [0, 2, 1], [0, 5], [1.0, -1.0], [0.0, inf])
    assert [fault.place for fault in caught.value.faults] == [
        "capacity[1]", "n_bytes[1]", "start[1]", "path_indptr", "path_links",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (([inf], [0, 1], [0], [1.0]), "capacity[0]"),
        (([-1.0], [0, 1], [0], [1.0]), "capacity[0]"),
        (([1.0], [0, 1], [0], [[1.0]]), "n_bytes"),
        (([1.0], [0, 1], [-1], [1.0]), "path_links"),
        (([1.0], [0, 1], [0.5], [1.0]), "path_links"),
        (([1.0], [0.0, 1.0], [0], [1.0]), "path_indptr"),
        (([1.0], [0, 1], [0], [1.0, 2.0]), "path_indptr"),
        (([1.0], [1, 1], [0], [1.0]), "path_indptr"),
        (([1.0], [0, 1], [0], [1.0], [0.0, 0.0]), "start"),
        ((["fast"], [0, 1], [0], [1.0]), "capacity"),
        (([1.0], [0, 1], [[0], [0, 1]], [1.0]), "path_links"),
    ],
)
def test_bad_input(arguments: Any, place: str) -> None:
    with pytest.raises(InputError) as caught:
        finish_times(*arguments)
    assert place in [fault.place for fault in caught.value.faults]
