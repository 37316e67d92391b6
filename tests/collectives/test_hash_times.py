"""Do times over seeds show what collisions cost, and does splitting over queue pairs help?"""

from __future__ import annotations

import numpy as np
import pytest

import collectives
import topo
from topo import Hash, InputError

GRAPH = topo.build("leaf_spine", leaves=4, spines=4, hosts=4, bandwidth="50 GB/s", latency="1 us")


def test_times_are_those_of_cost() -> None:
    found = collectives.hash_times(GRAPH, "all_to_all", 16e6, seeds=[3, 5, 8], queue_pairs=2)
    alone = [collectives.cost(GRAPH, "all_to_all", 16e6, routing=Hash(seed, 2)).seconds for seed in (3, 5, 8)]
    assert found.seconds.tolist() == alone
    assert (found.median, found.p99) == (sorted(alone)[1], max(alone))
    assert found.to_dict()["seeds"] == [3, 5, 8]


def test_the_best_algorithm_is_that_of_the_even_split() -> None:
    best = collectives.cost(GRAPH, "all_reduce", 16e6, algorithm="best").algorithm
    found, same = (collectives.hash_times(GRAPH, "all_reduce", 16e6, seeds=3, algorithm=a) for a in ("best", best))
    assert (found.ideal, found.seconds.tolist()) == (same.ideal, same.seconds.tolist())


@pytest.mark.parametrize("seeds", [0, -1, 1.5, True, None, "12", []], ids=repr)
def test_bad_seeds(seeds: object) -> None:
    with pytest.raises(InputError, match="at least one"):
        collectives.hash_times(GRAPH, "all_to_all", 16e6, seeds=seeds)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "12"], ids=repr)
def test_a_bad_seed_among_good_ones(seed: object) -> None:
    with pytest.raises(InputError, match="seed"):
        collectives.hash_times(GRAPH, "all_to_all", 16e6, seeds=[0, seed])


def test_no_hash_beats_an_even_split_and_many_queue_pairs_come_near() -> None:
    even = collectives.cost(GRAPH, "all_to_all", 16e9, routing="ecmp").seconds
    medians = [collectives.hash_times(GRAPH, "all_to_all", 16e9, seeds=8, queue_pairs=q) for q in (1, 4, 64)]
    assert all((found.seconds >= even * (1 - 1e-12)).all() for found in medians)
    assert medians[0].median > medians[1].median > medians[2].median
    assert medians[2].median < 1.1 * even


@pytest.mark.parametrize("kind", ["all_to_all", "all_reduce"])
def test_scale_up_stripes_and_does_not_collide(kind: str) -> None:
    """NVLink spreads a message over all lanes of a GPU: in one box a hash has nothing to pick."""
    box = topo.load("hgx-h100-8", overrides={"scale_up.latency": "0 s"})
    found = collectives.hash_times(box, kind, 8e9, seeds=3)
    assert found.seconds == pytest.approx(np.full(3, found.ideal), rel=1e-12)
    assert found.ideal == pytest.approx({"all_to_all": 7, "all_reduce": 14}[kind] / 450, rel=1e-12)


def test_two_flows_collide_as_often_as_chance_has_it() -> None:
    """Two flows from one leaf to another over two spines share a cable for half of the seeds."""
    graph = topo.build("leaf_spine", leaves=2, spines=2, hosts=2, bandwidth="50 GB/s", latency="0 s")
    sends = np.zeros((4, 4))
    sends[0, 2] = sends[1, 3] = 1e9
    found = collectives.hash_times(graph, "all_to_all_v", sends, seeds=200)
    assert set(np.round(found.seconds, 12)) == {0.02, 0.04}
    assert abs((found.seconds > 0.03).mean() - 0.5) < 5 * np.sqrt(0.25 / 200)
