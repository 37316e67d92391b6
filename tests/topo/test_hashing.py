"""Is a hash the same for the same seed, another for another, and as even as chance?"""

from __future__ import annotations

import numpy as np
import pytest

import topo
from topo import Hash, InputError
from topo._hashing import mixed


def test_splitmix64() -> None:
    """First outputs of the reference splitmix64 with seed 1234567 (a value of 0 taken in adds nothing)."""
    state = np.array([1234567], dtype=np.uint64)
    found = []
    for _ in range(3):
        found.append(int(mixed(state, np.uint64(0))[0]))
        state = state + np.uint64(0x9E3779B97F4A7C15)
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def links(hashing: Hash, pairs: int = 1) -> np.ndarray:
    routes = topo.route(topo.build("leaf_spine", leaves=2, spines=4, lanes=1, hosts=100), hashing)
    source, target = np.repeat(np.arange(100), 100), np.tile(np.arange(100, 200), 100)
    return topo.traced(routes.classes[2], source, target, np.full(len(source), pairs), hashing.seed)


def test_same_seed_same_paths() -> None:
    assert (links(Hash(1)) == links(Hash(1))).all()
    for other in (links(Hash(2)), links(Hash(1), pairs=2)):
        assert 0.7 < (links(Hash(1))[:, 1] != other[:, 1]).mean() < 0.8  # one spine in four is the same by chance


def test_every_spine_gets_its_part() -> None:
    counts = np.bincount(links(Hash(3))[:, 1])
    counts = counts[counts > 0]
    assert len(counts) == 4
    assert abs(counts - 2500).max() < 5 * np.sqrt(10_000 * 0.25 * 0.75)


@pytest.mark.parametrize(("seed", "queue_pairs", "places"), [(-1, 1, 1), (0, 0, 1), (True, 1.5, 2)])
def test_bad_parameters(seed: int, queue_pairs: int, places: int) -> None:
    with pytest.raises(InputError, match="must be a whole number") as caught:
        Hash(seed, queue_pairs)
    assert len(caught.value.faults) == places


def test_hash_by_name_and_in_print() -> None:
    graph = topo.build("fat_tree", k=4)
    assert topo.route(graph, "hash").rule == str(Hash()) == "hash (seed 0, 1 queue pair a pair of ranks)"
    assert topo.route(graph, Hash(5, 4)).rule == "hash (seed 5, 4 queue pairs a pair of ranks)"
