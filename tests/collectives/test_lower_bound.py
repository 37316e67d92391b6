"""Is a bound proven, as tight as the theorems say, and never above a cost?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import collectives
import topo
from collectives import lower_bound, schedule
from topo import Fabric, InputError

from .bounded import DRY, SHAPES, boxes, gpus_of, rail_only, star
from .random_graphs import FAMILIES, Dice, traffic

# --- known answers ----------------------------------------------------------------------------------------------------


# ForestColl, A100 boxes (300 GB/s NVSwitch, 25 GB/s NIC per GPU): total size / time of the optimal all-gather
@pytest.mark.parametrize(("count", "algbw"), [(1, 342.857), (2, 346.667)])
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
def test_all_gather_of_boxes(kind: str, count: int, algbw: float) -> None:
    bound = lower_bound(boxes(count), kind, 1e9, scope="any")
    assert bound.algbw / 1e9 == pytest.approx(algbw, abs=5e-4)
    assert bound.algbw == pytest.approx((300e9 + 25e9 * (count - 1)) * 8 * count / (8 * count - 1), rel=1e-9)
    assert bound.kind == "cut"
    assert "d0/gpu0" in bound.cut


def test_all_gather_is_bound_by_the_box_where_its_nics_are_slow() -> None:
    bound = lower_bound(boxes(4, out="10 GB/s"), "all_gather", 1e9, scope="any")
    # into a box: 24 of 32 shares over 8 NICs of 10 GB/s; a GPU would take 31/32 / 310 GB/s
    assert bound.seconds == pytest.approx(24 / 32 * 1e9 / 80e9, rel=1e-9)
    assert (bound.cut_bytes, bound.cut_bandwidth) == (pytest.approx(0.75e9), 80e9)
    assert bound.cut.startswith("into the ")


@pytest.mark.parametrize(
    ("dims", "twist", "load"),
    # load of the busiest link in pairwise messages; the last from the TPU v4 paper's twisted torus (73.33)
    [((4, 4, 4), None, 32), ((4, 4, 8), None, 128), ((4, 4, 8), {(0, 2): 4, (1, 2): 4}, 220 / 3)],
)
def test_all_to_all_on_tori_is_routed_best_by_equal_splits(dims: tuple[int, ...], twist: object, load: float) -> None:
    n = int(np.prod(dims))
    shape = {} if twist is None else {"twist": twist}
    graph = topo.build("torus", dims=dims, latency="0 s", bandwidth="50 GB/s", **shape)
    for scope in ("schedule", "any"):
        bound = lower_bound(graph, "all_to_all", n * 1e9, scope=scope)
        assert bound.seconds == pytest.approx(load / 50, rel=1e-9)
        assert bound.kind == ("cut" if twist is None else "prices")


def test_rails_that_meet_nowhere_are_joined_by_relays() -> None:
    graph = rail_only(4, 4)
    with pytest.raises(InputError, match="no path for"):
        lower_bound(graph, "all_to_all", 16e9)
    # out of a domain: 4 x 12 messages over 4 NICs
    assert lower_bound(graph, "all_to_all", 16e9, scope="any").seconds == pytest.approx(48e9 / 200e9, rel=1e-9)


def test_oversubscription_is_priced_or_relayed_around() -> None:
    graph = topo.load("hgx-h100-8", 16, DRY | {"scale_out.oversubscription": 2.0, "scale_out.radix": 16})
    given = lower_bound(graph, "all_to_all", 128e9)
    free = lower_bound(graph, "all_to_all", 128e9, scope="any")
    assert free.seconds < given.seconds * 0.99  # relays inside the box keep bytes on their rail
    assert given.seconds <= collectives.cost(graph, "all_to_all", 128e9).seconds * (1 + 1e-9)
    assert sum(given.prices.values()) == pytest.approx(1.0)


# --- the order of bounds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_any_is_below_schedule_is_below_cost(family: str, seed: int) -> None:
    dice = Dice(seed)
    graph = FAMILIES[family](dice)
    assume(not topo.check(graph))
    ranks, matrix = traffic(dice, gpus_of(graph))
    assume(np.array(matrix)[~np.eye(len(ranks), dtype=bool)].any())
    try:
        cost = collectives.cost(graph, "all_to_all_v", matrix, ranks=ranks)
    except InputError:
        assume(False)
    given_ = lower_bound(graph, "all_to_all_v", matrix, ranks=ranks)
    free = lower_bound(graph, "all_to_all_v", matrix, ranks=ranks, scope="any")
    assert 0 < free.seconds <= given_.seconds * (1 + 1e-9)
    assert given_.seconds <= cost.seconds * (1 + 1e-9)


def small_boxes(count: int, size: int, **more: object) -> nx.Graph:
    shape = {"design.domain_size": size, "design.gpus_per_host": size}
    return topo.load("hgx-h100-8", count, shape | {f"scale_out.{key}": value for key, value in more.items()})


ALGORITHMS = {
    "box": lambda: small_boxes(1, 4),
    "slow rails": lambda: small_boxes(2, 2, oversubscription=2.0, radix=4),
    "torus": lambda: topo.build("torus", dims=(2, 2), latency="1 us", bandwidth="50 GB/s"),
    "rails": lambda: rail_only(2, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", ["box", "slow rails"])
def test_an_expert_layers_copies_are_bound_as_sent_and_as_needed(name: str) -> None:
    """Direct copies by their schedule; whatever is sent, by the different tokens that cross a cut."""
    graph, layer = ALGORITHMS[name](), collectives.MoE(tokens=16, hidden=1024, top_k=2, experts=8)
    for kind in ("moe_dispatch", "moe_combine"):
        free = lower_bound(graph, kind, layer, scope="any").seconds
        for algorithm in ("direct", "per_gpu", "per_domain"):
            assert 0 < free <= collectives.cost(graph, kind, layer, algorithm=algorithm, pipelined=True).seconds
            own = lower_bound(graph, kind, layer, algorithm=algorithm).seconds
            assert 0 < own <= collectives.cost(graph, kind, layer, algorithm=algorithm).seconds * (1 + 1e-9)
        with pytest.raises(InputError, match="copies of tokens"):  # of a schedule they are not known
            lower_bound(graph, collectives.schedule(kind, graph, layer), scope="any")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_algorithm_beats_the_bound_of_any(name: str) -> None:
    graph, tried = ALGORITHMS[name](), set()
    for kind, row in collectives.KINDS.items():
        if kind == "all_to_all_v" or kind.startswith("moe"):
            continue
        free = lower_bound(graph, kind, 1e5, scope="any").seconds  # 2 us at 50 GB/s: latency and bytes both count
        for algorithm in row.algorithms:
            try:
                cost = collectives.cost(graph, kind, 1e5, algorithm=algorithm).seconds
            except InputError:  # does not apply here
                continue
            own = lower_bound(graph, kind, 1e5, algorithm=algorithm).seconds
            assert 0 < free <= cost * (1 + 1e-9), (kind, algorithm)
            assert 0 < own <= cost * (1 + 1e-9), (kind, algorithm)
            tried.add((kind, algorithm))
    assert len(tried) >= 15


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_on_one_switch_a_ring_is_as_good_as_can_be(kind: str) -> None:
    graph = star(6, 1e9)
    cost = collectives.cost(graph, kind, 6e9, algorithm="ring").seconds
    for scope in ("schedule", "any"):
        assert lower_bound(graph, kind, 6e9, scope=scope).seconds == pytest.approx(cost, rel=1e-9)


def test_switches_that_add_up_are_bound_by_their_links() -> None:
    graph = boxes(1)
    cost = collectives.cost(graph, "all_reduce", 8e9, algorithm="nvls")
    bound = lower_bound(graph, "all_reduce", 8e9, algorithm="nvls")
    # n (1 + 1/p) over a link, pipelined
    assert bound.seconds == pytest.approx(9e9 / 300e9, rel=1e-9)
    assert bound.seconds == pytest.approx(cost.seconds, rel=1e-9)


@pytest.mark.parametrize("kind", ["all_reduce", "broadcast", "all_gather"])
def test_switches_that_are_sent_nothing(kind: str) -> None:
    bound = lower_bound(boxes(1), kind, 0, algorithm="nvls")
    assert (bound.seconds, bound.kind) == (0.0, "none")


# --- latency ----------------------------------------------------------------------------------------------------------


def test_latency_counts_with_the_bytes_and_without() -> None:
    graph = star(4, 1e9, latency=1e-3)
    graph.edges["gpu3", "switch"]["latency"] = 5.0
    bound = lower_bound(graph, "all_to_all", 4e9)
    # 3 GB at 1 GB/s and the least of the latencies; the farthest pair alone takes 5.001 s
    assert (bound.kind, bound.seconds, bound.cut) == ("latency", pytest.approx(5.001), "gpu0 => gpu3")
    bound = lower_bound(graph, "all_to_all", 8e9)
    assert (bound.kind, bound.seconds) == ("cut", pytest.approx(6.002))
    assert (bound.latency_seconds, bound.bandwidth_seconds) == (pytest.approx(0.002), pytest.approx(6.0))


def test_in_any_scope_the_shortest_way_counts_through_whom_ever() -> None:
    graph = star(3, 1e9, latency=1e-3)
    for a, b in (("gpu0", "gpu1"), ("gpu1", "gpu2")):
        graph.add_edge(a, b, kind="pcie", bandwidth=1e9, latency=1e-6)
    assert lower_bound(graph, "all_to_all", 1.0, scope="any").seconds == pytest.approx(2e-6)
    assert lower_bound(graph, "all_to_all", 1.0).seconds == pytest.approx(2e-3)


# --- what is asked, and what is refused -------------------------------------------------------------------------------


def test_doubling_is_solved_anew() -> None:
    graph = boxes(2, up="30 GB/s", out="25 GB/s")
    doubled = collectives.bounds_if_doubled(graph, "all_to_all", 16e9)
    # per GPU: 7 messages inside at 30 GB/s, 8 outside at 25: twice the NICs leave the inside to bind
    assert lower_bound(graph, "all_to_all", 16e9).seconds == pytest.approx(8 / 25)
    assert {kind: bound.seconds for kind, bound in doubled.items()} == {
        "scale-up": pytest.approx(8 / 25), "scale-out": pytest.approx(7 / 30),
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "seconds"), [("gather", 3.0), ("scatter", 3.0), ("sendrecv", 4.0), ("reduce", 4.0)])
def test_rooted_collectives(kind: str, seconds: float) -> None:
    assert lower_bound(star(4, 1e9), kind, 4e9, scope="any").seconds == pytest.approx(seconds, rel=1e-9)


def test_the_root_may_be_named() -> None:
    graph = star(3, 1e9)
    graph.edges["gpu2", "switch"]["bandwidth"] = 0.5e9
    for kind in ("broadcast", "gather"):
        first = lower_bound(graph, kind, 3e9, scope="any").seconds
        named = lower_bound(graph, kind, 3e9, scope="any", root="gpu2").seconds
        assert (first, named) == {"broadcast": (6.0, 6.0), "gather": (2.0, 4.0)}[kind]
    with pytest.raises(InputError, match="root"):
        lower_bound(graph, "broadcast", 3e9, scope="any", ranks=2, root="gpu2")


def test_a_schedule_is_bound_as_it_stands() -> None:
    graph = boxes(2)
    plan = collectives.schedule("all_to_all", graph, 16e9)
    for scope in ("schedule", "any"):
        named = lower_bound(graph, "all_to_all", 16e9, scope=scope)
        assert lower_bound(graph, plan, scope=scope).to_dict() == named.to_dict()
    sent = collectives.schedule("send", graph, 1e9)
    assert lower_bound(graph, sent, scope="any").seconds == pytest.approx(8e9 / 200e9, rel=1e-9)


def test_cables_one_by_one_give_the_same_bound() -> None:
    fabric = Fabric.from_graph(topo.load("hgx-h100-8", 3, {"scale_out.oversubscription": 2.0}))
    cables = fabric.unfolded()
    assert len(cables.source) > len(fabric.source)
    for scope in ("schedule", "any"):
        one = lower_bound(cables, "all_to_all", 24e9, scope=scope)
        assert one.seconds == pytest.approx(lower_bound(fabric, "all_to_all", 24e9, scope=scope).seconds, rel=1e-9)


def test_nothing_sent_takes_no_time() -> None:
    for kind in ("all_gather", "all_reduce", "broadcast", "all_to_all", "sendrecv"):
        bound = lower_bound(star(1, 1e9), kind, 1e9, scope="any")
        assert (bound.seconds, bound.kind, bound.algbw) == (0.0, "none", 0.0)


def test_a_record_is_plain_json() -> None:
    told = lower_bound(boxes(2), "all_to_all", 16e9).to_dict()
    assert told["seconds"] == pytest.approx(8 / 25)
    assert told["scope"] == "schedule"
    assert lower_bound(SHAPES["tapered"](), "all_to_all", 1e9).to_dict()["cut_bandwidth"] == "Infinity"  # prices


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"scope": "all"}, "scope = 'all': is not a known scope"),
        ({"kind": "all_two_all"}, "is not a known collective"),
        ({"kind": "all_two_all", "scope": "any"}, "is not a known collective"),
        ({"n_bytes": None}, "all_to_all needs a size"),
        ({"n_bytes": -1.0, "scope": "any"}, "finite number of bytes"),
    ],
)
def test_bad_input_is_refused(words: dict[str, object], says: str) -> None:
    asked = {"kind": "all_to_all", "n_bytes": 1e9, "scope": "schedule"} | words
    with pytest.raises(InputError, match=says):
        lower_bound(star(2, 1e9), asked["kind"], asked["n_bytes"], scope=asked["scope"])


def test_what_a_schedule_settles_is_refused_not_ignored() -> None:
    plan = schedule("all_reduce", star(4, 1e9), 1e9)
    with pytest.raises(InputError, match="a Schedule has its own"):
        lower_bound(star(4, 1e9), plan, algorithm="tree")
    with pytest.raises(InputError, match="names rank 3, and the topology has 2"):
        lower_bound(star(2, 1e9), plan)
