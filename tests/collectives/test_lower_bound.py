"""Is a bound proven, is it as tight as the theorems say, and does folding by symmetry lose nothing?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import collectives
import topo
from collectives import lower_bound, schedule
from collectives._concurrent_flow import Demand, best_prices, class_networks, time_at, whole_network
from collectives._symmetry import Classes, classes_of, refine
from topo import Fabric, InputError

from .brute import _next, path_class
from .random_graphs import FAMILIES, Dice, traffic

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
Link = tuple[str, str]


def boxes(count: int, up: str = "300 GB/s", out: str = "25 GB/s", **more: object) -> nx.Graph:
    """Boxes of eight: scale-up under one switch, a NIC per GPU on a rail-optimised fabric."""
    return topo.load("hgx-h100-8", count, DRY | {"scale_up.bandwidth": up, "scale_out.bandwidth": out} | more)


def star(n: int, bandwidth: float, latency: float = 0.0, **switch: bool) -> nx.Graph:
    graph = nx.Graph()
    graph.add_node("switch", kind="switch", **switch)
    for i in range(n):
        graph.add_node(f"gpu{i}", kind="gpu")
        graph.add_edge(f"gpu{i}", "switch", kind="scale-up", bandwidth=bandwidth, latency=latency)
    return graph


def gpus_of(graph: nx.Graph) -> list[str]:
    return [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]


# --- known answers ---------------------------------------------------------------------------------------------------


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


def rail_only(domains: int, size: int) -> nx.Graph:
    graph = nx.Graph()
    for d, i in itertools.product(range(domains), range(size)):
        graph.add_node(f"d{d}/gpu{i}", kind="gpu")
        graph.add_node(f"up{d}", kind="switch", tier="scale-up")
        graph.add_node(f"rail{i}", kind="switch", tier="leaf")
        graph.add_edge(f"d{d}/gpu{i}", f"up{d}", kind="scale-up", bandwidth=900e9, latency=0.0)
        graph.add_edge(f"d{d}/gpu{i}", f"rail{i}", kind="scale-out", bandwidth=50e9, latency=0.0)
    return graph


def test_oversubscription_is_priced_or_relayed_around() -> None:
    graph = topo.load("hgx-h100-8", 16, DRY | {"scale_out.oversubscription": 2.0, "scale_out.radix": 16})
    given = lower_bound(graph, "all_to_all", 128e9)
    free = lower_bound(graph, "all_to_all", 128e9, scope="any")
    assert free.seconds < given.seconds * 0.99  # relays inside the box keep bytes on their rail
    assert given.seconds <= collectives.cost(graph, "all_to_all", 128e9).seconds * (1 + 1e-9)
    assert sum(given.prices.values()) == pytest.approx(1.0)


# --- all-reduce ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 3, 8])
def test_all_reduce_on_a_switch(p: int) -> None:
    def seconds(**switch: bool) -> float:
        return lower_bound(star(p, 1e9, **switch), "all_reduce", 1e9, scope="any").seconds

    ring = 2 * (p - 1) / p  # Patarasuk and Yuan: bandwidth optimal
    assert seconds() == pytest.approx(ring, rel=1e-9)
    assert seconds(reduces=True) == pytest.approx(ring, rel=1e-9)  # results still leave one by one
    assert seconds(multicasts=True) == pytest.approx(ring, rel=1e-9)
    assert seconds(reduces=True, multicasts=True) == pytest.approx(1.0, rel=1e-9)  # n / link


def test_all_reduce_over_boxes_with_in_network_reduction_inside_them() -> None:
    bound = lower_bound(boxes(4), "all_reduce", 1e9, scope="any")
    # 2 (k-1) n over what k boxes of 8 NICs have together; the switches inside may do anything
    assert bound.seconds == pytest.approx(2 * 3 * 1e9 / (4 * 8 * 25e9), rel=1e-9)
    assert (bound.kind, bound.cut_bytes) == ("partition", 6e9)


def test_a_gpu_that_takes_no_part_may_reduce_for_others() -> None:
    alone = lower_bound(star(4, 1e9), "all_reduce", 1e9, ranks=["gpu0", "gpu1", "gpu2"], scope="any")
    assert alone.seconds == pytest.approx(1.0, rel=1e-9)  # only the cut around one rank is left


# --- small graphs against all cuts -----------------------------------------------------------------------------------


def small(seed: int) -> nx.Graph:
    """A connected graph of up to five GPUs and three switches, each direction with a bandwidth of its own."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    nodes = [f"gpu{i}" for i in range(rng.integers(2, 6))] + [f"switch{i}" for i in range(rng.integers(0, 4))]
    for node in nodes:
        graph.add_node(node, kind=node[:-1])
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes[:i]):
            if j == i - 1 or rng.random() < 0.4:
                for ends in ((a, b), (b, a)):
                    graph.add_edge(*ends, kind="scale-up", bandwidth=float(rng.integers(1, 6)), latency=0.0)
    return graph


def cuts(graph: nx.DiGraph) -> Iterator[tuple[int, int, float]]:
    """Yield ranks inside, ranks outside and bandwidth outward of every set of nodes."""
    for k in range(1, len(graph)):
        for inside in map(set, itertools.combinations(graph, k)):
            ranks = sum(node.startswith("gpu") for node in inside)
            out = sum(d["bandwidth"] for a, b, d in graph.edges(data=True) if a in inside and b not in inside)
            yield ranks, len(gpus_of(graph)) - ranks, out


@pytest.mark.parametrize("seed", range(8))
def test_collectives_equal_the_worst_of_all_cuts(seed: int) -> None:
    graph = small(seed)
    p, found = len(gpus_of(graph)), list(cuts(graph))
    worst = max(s / b for s, t, b in found if t and s)
    assert lower_bound(graph, "all_gather", float(p), scope="any").seconds == pytest.approx(worst, rel=1e-9)
    worst = max(t / b for s, t, b in found if s and t)
    assert lower_bound(graph, "reduce_scatter", float(p), scope="any").seconds == pytest.approx(worst, rel=1e-9)
    worst = max(1 / b for s, t, b in found if s and t)
    for node in graph:
        graph.nodes[node].update(reduces=True, multicasts=True)
    if all(node.startswith("gpu") for node in graph):  # no switch to reduce: 2 (p-1) messages share all links
        worst = max(worst, 2 * (p - 1) / sum(data["bandwidth"] for _, _, data in graph.edges(data=True)))
    assert lower_bound(graph, "all_reduce", 1.0, scope="any").seconds == pytest.approx(worst, rel=1e-9)
    broadcast = lower_bound(graph, "broadcast", 1.0, scope="any").seconds
    flows = (nx.maximum_flow_value(graph, "gpu0", node, "bandwidth") for node in gpus_of(graph)[1:])
    assert broadcast == pytest.approx(1 / min(flows), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_all_to_all_is_never_below_any_cut(seed: int) -> None:
    graph = small(seed)
    bound = lower_bound(graph, "all_to_all", float(len(gpus_of(graph))), scope="any")
    assert bound.seconds >= max(s * t / b for s, t, b in cuts(graph) if s and t) * (1 - 1e-9)


# --- small graphs against a program over all simple paths ------------------------------------------------------------


def by_paths(graph: nx.Graph, flows: Mapping[Link, float], free: bool) -> float:
    """Return the least time when every flow may split over all its simple paths."""
    columns, pair_of = [], []
    for number, (a, b) in enumerate(flows):
        kind = None if free else path_class(graph, a, b)
        for path in _simple(graph, b, kind, (a, None, False), ()):
            columns.append(path)
            pair_of.append(number)
    edges = list(graph.to_directed().edges)
    wide = graph.to_directed().edges
    at_most = np.zeros((len(edges), len(columns) + 1))
    equal = np.zeros((len(flows), len(columns) + 1))
    for j, path in enumerate(columns):
        for link in path:
            at_most[edges.index(link), j] += 1 / wide[link]["bandwidth"] * 1e9
        equal[pair_of[j], j] = 1.0
    at_most[:, -1] = -1.0
    goal = np.zeros(len(columns) + 1)
    goal[-1] = 1.0
    sizes = np.array(list(flows.values()))
    found = linprog(goal, at_most, np.zeros(len(edges)), equal, sizes / sizes.max())
    return float(found.fun) * sizes.max() / 1e9


def _simple(graph: nx.Graph, target: str, kind: str | None, state: tuple, seen: tuple) -> Iterator[list[Link]]:
    """Yield the links of every walk that stands nowhere twice in the same state."""
    if state[0] == target:
        yield []
        return
    if kind is None:
        onward: Iterator[tuple] = ((node, None, False) for node in graph[state[0]])
    else:
        onward = _next(graph, kind, state)
    for after in onward:
        if after != state and after not in seen:
            for rest in _simple(graph, target, kind, after, (*seen, state)):
                yield [(state[0], after[0]), *rest]


def few_links(family: str, count: int) -> Iterator[tuple[nx.Graph, list[str], list[list[float]], dict[Link, float]]]:
    """Yield graphs of up to 14 links without latency, ranks, matrix and flows between ranks that paths join."""
    for seed in itertools.count():
        dice = Dice(seed)
        graph = FAMILIES[family](dice)
        for _, _, data in graph.edges(data=True):
            data["latency"] = 0.0
        if graph.number_of_edges() > 14 or topo.check(graph):
            continue
        ranks, matrix = traffic(dice, gpus_of(graph))
        pairs = itertools.permutations(range(len(ranks)), 2)
        flows = {(ranks[i], ranks[j]): matrix[i][j] for i, j in pairs if matrix[i][j]}
        if flows and all(path_class(graph, a, b) for a, b in flows):
            yield graph, ranks, matrix, flows
            count -= 1
        if not count:
            return


@pytest.mark.parametrize("family", FAMILIES)
def test_time_is_that_of_the_best_split_over_all_paths(family: str) -> None:
    for graph, ranks, matrix, flows in few_links(family, 5):
        for scope in ("schedule", "any"):
            bound = lower_bound(graph, "all_to_all_v", matrix, ranks=ranks, scope=scope)
            assert bound.seconds == pytest.approx(by_paths(graph, flows, scope == "any"), rel=1e-6)


# --- the order of bounds ---------------------------------------------------------------------------------------------


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


# --- folding by symmetry ---------------------------------------------------------------------------------------------


def apart(fabric: Fabric) -> Classes:
    """Every node and link a class of its own: the whole program."""
    return Classes(np.arange(len(fabric.labels)), np.arange(len(fabric.source)))


SHAPES = {
    "torus": lambda: topo.build("torus", dims=(3, 4), latency="0 s", bandwidth="50 GB/s"),
    "mesh": lambda: topo.build("torus", dims=(3, 3), wrap=False, latency="0 s", bandwidth="50 GB/s"),
    "dragonfly": lambda: topo.build("dragonfly", a=2, p=1, h=1, bandwidth="50 GB/s"),
    "tapered": lambda: topo.load("hgx-h100-8", 3, {"scale_out.oversubscription": 2.0, "scale_out.radix": 8}),
    "uneven": lambda: topo.load("hgx-h100-8", [4, 2], {"design.gpus_per_host": 2}),
    "failed": lambda: topo.fail(topo.load("mi300x-8", 1), links=[("d0/gpu0", "d0/gpu1")]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_folding_by_symmetry_loses_nothing(shape: str) -> None:
    fabric = Fabric.from_graph(SHAPES[shape]())
    n = fabric.n_ranks
    routes = topo.route(fabric)
    n_bytes = np.where(np.eye(n, dtype=bool), 0.0, 1e9)
    parts = [(net, np.where(routes.pair_class == k, n_bytes, 0.0)) for k, net in enumerate(class_networks(fabric))]
    ranks = np.arange(n)
    alike = classes_of(fabric, ranks)
    for flows in (
        Demand(fabric, ranks, ((whole_network(fabric), n_bytes),), alike),
        Demand(fabric, ranks, tuple(part for part in parts if part[1].any()), alike),
    ):
        classes = flows.classes()
        assert classes.link.max() < len(fabric.source) - 1
        folded, whole = best_prices(flows, classes), best_prices(flows, apart(fabric))
        assert folded is not None
        assert whole is not None
        assert time_at(flows, folded) == pytest.approx(time_at(flows, whole), rel=1e-9)


def test_any_prices_prove_no_more_than_the_best() -> None:
    fabric = Fabric.from_graph(SHAPES["tapered"]())
    n_bytes = np.where(np.eye(fabric.n_ranks, dtype=bool), 0.0, 1e9)
    ranks = np.arange(fabric.n_ranks)
    flows = Demand(fabric, ranks, ((whole_network(fabric), n_bytes),), classes_of(fabric, ranks))
    best = best_prices(flows, flows.classes())
    assert best is not None
    for seed in range(20):
        price = np.random.default_rng(seed).random(len(fabric.source))
        assert time_at(flows, price) <= time_at(flows, best) * (1 + 1e-9)


def test_refinement_tells_a_path_from_its_middle() -> None:
    tail, head = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4])
    undirected = np.concatenate([tail, head]), np.concatenate([head, tail])
    colour = refine(np.zeros(5, dtype=np.intp), *undirected, np.zeros(8, dtype=np.intp))
    assert [colour[0] == colour[4], colour[1] == colour[3], len(set(colour.tolist()))] == [True, True, 3]


# --- latency ---------------------------------------------------------------------------------------------------------


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


# --- what is asked, and what is refused ------------------------------------------------------------------------------


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
        ({"n_bytes": -1.0, "scope": "any"}, "finite number of bytes, zero or more"),
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
