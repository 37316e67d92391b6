"""Do the closed forms give the published ones, and does the graph, costed hop by hop, give the closed forms?"""

from __future__ import annotations

from math import ceil, log2, prod

import networkx as nx
import pytest

import collectives
import topo
from collectives import KINDS, laws

from .shapes import racks, star, torus

N, B, A = 3e6, 2e9, 1e-5
#: What has no row: needs domains or coordinates, has a law of its own, or a matrix instead of a size.
NO_ROW = {"hierarchical", "torus", "rail_aligned", "rail_pipelined"}
ROWS = [
    (kind, name) for kind, row in KINDS.items() for name in row.algorithms if name not in NO_ROW and "moe" not in kind
]
ROWS = [row for row in ROWS if row[0] not in ("all_to_all_v", "send", "moe_dispatch", "moe_combine")]


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=0.0)


# --- the published forms ---------------------------------------------------------------------------------------------

LG = {p: log2(p) for p in (2, 8, 64)}


# Thakur, Rabenseifner, Gropp 2005, n total bytes, a latency, beta = 1/B; p a power of two
@pytest.mark.parametrize("p", LG)
@pytest.mark.parametrize(
    ("kind", "name", "form"),
    [
        ("all_gather", "ring", lambda p, lg: (p - 1, (p - 1) / p, 0)),
        ("all_gather", "recursive_doubling", lambda p, lg: (lg, (p - 1) / p, 0)),
        ("all_gather", "bruck", lambda p, lg: (ceil(lg), (p - 1) / p, 0)),
        ("broadcast", "binomial", lambda p, lg: (ceil(lg), ceil(lg), 0)),
        ("broadcast", "scatter_all_gather", lambda p, lg: (lg + p - 1, 2 * (p - 1) / p, 0)),
        ("all_to_all", "bruck", lambda p, lg: (lg, lg / 2, 0)),
        ("all_to_all", "pairwise", lambda p, lg: (p - 1, (p - 1) / p, 0)),
        ("reduce_scatter", "recursive_halving", lambda p, lg: (lg, (p - 1) / p, (p - 1) / p)),
        ("all_reduce", "recursive_doubling", lambda p, lg: (lg, lg, lg)),
        ("all_reduce", "rabenseifner", lambda p, lg: (2 * lg, 2 * (p - 1) / p, (p - 1) / p)),
        ("all_reduce", "ring", lambda p, lg: (2 * (p - 1), 2 * (p - 1) / p, (p - 1) / p)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_published_forms(kind: str, name: str, form: object, p: int) -> None:
    latencies, volume, reduced = form(p, LG[p])  # type: ignore[operator]
    law = laws.alpha_beta_seconds(kind, name, p, N, B, A, 2e-10)
    assert law == close(latencies * A + volume * N / B + reduced * N * 2e-10)


def test_ceilings_of_whole_numbers_of_ranks() -> None:
    """Bruck over five ranks: 3 steps; distances 1, 2, 4 carry offsets {1,3}, {2,3}, {4}: 5 chunks of n/5."""
    assert laws.ALPHA_BETA["all_to_all", "bruck"](5) == (3, 1.0, 0)
    assert laws.ALPHA_BETA["all_gather", "recursive_doubling"](5) == (4, (1 + 2 + 3 + 4) / 5, 0)


# --- the graph, hop by hop -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), ROWS, ids=[f"{kind}-{name}" for kind, name in ROWS])
def test_one_switch_hop_by_hop(kind: str, name: str) -> None:
    for p in (2, 3, 4, 5, 7, 8, 12, 16):
        fabric = "scale-out" if name == "sharp" else "scale-up"
        cost = collectives.cost(star(p, B, A / 2, fabric), kind, N, algorithm=name, **_one_ring(kind, name))
        assert cost.seconds == close(laws.alpha_beta_seconds(kind, name, p, N, B, A)), p
        assert cost.busbw == close(KINDS[kind].busbw(p) * N / cost.seconds)


def _one_ring(kind: str, name: str) -> dict[str, int]:
    return {"channels": 1} if name in ("ring", "scatter_all_gather") else {}


def test_every_algorithm_has_a_law() -> None:
    assert {row for row in ROWS if row not in laws.ALPHA_BETA} == set()
    assert set(laws.ALPHA_BETA) <= {(kind, name) for kind, row in KINDS.items() for name in row.algorithms}


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "sendrecv", "broadcast"])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_ring_on_a_ring(kind: str, n: int) -> None:
    """One hop a step; two GPUs share two lanes."""
    graph = topo.build("ring", n=n, bandwidth="2 GB/s", latency="10 us")
    name = KINDS[kind].default
    bandwidth = 4e9 if n == 2 else 2e9
    assert collectives.cost(graph, kind, N).seconds == close(
        laws.alpha_beta_seconds(kind, name, n, N, bandwidth, 10e-6)
    )


@pytest.mark.parametrize("dims", [(4,), (2, 2), (3, 3), (4, 4, 4), (3, 4), (2, 3, 4), (5, 1, 3)], ids=str)
def test_torus(dims: tuple[int, ...]) -> None:
    graph = torus(*dims, latency=1e-6)
    law = laws.torus_all_gather_seconds(dims, N, 1e9, 1e-6)
    for kind, times in (("all_gather", 1), ("reduce_scatter", 1), ("all_reduce", 2)):
        assert collectives.cost(graph, kind, N, algorithm="torus").seconds == close(times * law)


@pytest.mark.parametrize("dims", [(5,), (4, 4), (3, 3, 3)], ids=str)
def test_a_cube_keeps_all_its_links_busy(dims: tuple[int, ...]) -> None:
    """n (p - 1)/p bytes come in over 2 D links: no all-gather is faster."""
    p, axes = prod(dims), len(dims)
    assert laws.torus_all_gather_seconds(dims, N, 1e9) == close(N * (p - 1) / p / (2 * axes * 1e9))
    steps = axes * (dims[0] - 1)
    assert laws.torus_all_gather_seconds(dims, N, 1e9, 1.0) == close(steps + N * (p - 1) / p / (2 * axes * 1e9))


@pytest.mark.parametrize(("domains", "size"), [(2, 1), (2, 4), (3, 2), (5, 8)])
@pytest.mark.parametrize("rails", [False, True])
def test_hierarchical(domains: int, size: int, rails: bool) -> None:
    graph = racks(*[size] * domains, latency=1e-6, rails=rails)
    inside = 2e-6 if size > 1 else 0.0
    law = laws.hierarchical_all_gather_seconds(domains, size, N, 9e9, 1e9, inside, 6e-6)
    for kind, times in (("all_gather", 1), ("reduce_scatter", 1), ("all_reduce", 2)):
        assert collectives.cost(graph, kind, N, algorithm="hierarchical").seconds == close(times * law)


@pytest.mark.parametrize(("domains", "size"), [(2, 1), (2, 4), (4, 3), (3, 4)])
def test_rings_across_domains(domains: int, size: int) -> None:
    """A channel for every rank; an even number of domains needs no more than rails."""
    graph = racks(*[size] * domains, latency=1e-6, rails=domains % 2 == 0)
    for n_bytes in (1e3, 1e9):  # latency binds, bandwidth binds
        law = laws.ring_across_domains_seconds(domains, size, n_bytes, 9e9, 1e9, 2e-6, 6e-6)
        for kind, times in (("all_gather", 1), ("reduce_scatter", 1), ("all_reduce", 2)):
            assert collectives.cost(graph, kind, n_bytes).seconds == close(times * law)


@pytest.mark.parametrize(("domains", "size"), [(2, 4), (3, 2)])
def test_hierarchical_all_to_all(domains: int, size: int) -> None:
    law = laws.hierarchical_all_to_all_seconds(domains, size, 1e6, 9e9, 1e9)
    graph = racks(*[size] * domains, rails=True)
    cost = collectives.cost(graph, "all_to_all", domains * size * 1e6, algorithm="hierarchical")
    assert cost.seconds == close(law)


@pytest.mark.parametrize("dims", [(2,), (3,), (5,), (8,), (4, 4), (2, 4), (3, 4), (2, 3, 4), (4, 4, 8)], ids=str)
def test_all_to_all_on_tori(dims: tuple[int, ...]) -> None:
    cost = collectives.cost(torus(*dims), "all_to_all", prod(dims) * 1e6)
    assert cost.seconds == close(laws.torus_all_to_all_seconds(dims, 1e6, 1e9))


@pytest.mark.parametrize("dims", [(2,), (5,), (4, 4), (2, 5), (3, 4, 2)], ids=str)
def test_all_to_all_on_meshes(dims: tuple[int, ...]) -> None:
    graph = topo.build("torus", dims=dims, wrap=False, bandwidth="1 GB/s", latency="0 s")
    cost = collectives.cost(graph, "all_to_all", prod(dims) * 1e6, routing="dor")
    assert cost.seconds == close(laws.mesh_all_to_all_seconds(dims, 1e6, 1e9))


@pytest.mark.parametrize("dim", [1, 2, 4])
@pytest.mark.parametrize("routing", ["ecmp", "even", "paths"])
def test_all_to_all_on_hypercubes(dim: int, routing: str) -> None:
    graph = topo.build("hypercube", dim=dim, bandwidth="1 GB/s", latency="0 s")
    cost = collectives.cost(graph, "all_to_all", 2**dim * 1e6, routing=routing)
    assert cost.seconds == close(laws.hypercube_all_to_all_seconds(dim, 1e6, 1e9))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("all_gather", "recursive_doubling"),
        ("reduce_scatter", "recursive_halving"),
        ("all_reduce", "recursive_doubling"),
        ("all_reduce", "rabenseifner"),
    ],
)
def test_doubling_on_a_hypercube(kind: str, name: str) -> None:
    """Every exchange is with a neighbour: the law of one switch with the latency of one link."""
    graph = topo.build("hypercube", dim=4, bandwidth="2 GB/s", latency="10 us")
    cost = collectives.cost(graph, kind, N, algorithm=name)
    assert cost.seconds == close(laws.alpha_beta_seconds(kind, name, 16, N, 2e9, 10e-6))


@pytest.mark.parametrize(("dims", "hosts"), [((4,), 1), ((4,), 5), ((4, 3), 1), ((4, 2), 4), ((2, 3, 4), 2)], ids=str)
@pytest.mark.parametrize("routing", ["ecmp", "dor"])
def test_all_to_all_on_a_hyperx(dims: tuple[int, ...], hosts: int, routing: str) -> None:
    graph = topo.build("hyperx", dims=dims, hosts=hosts, bandwidth="1 GB/s", latency="0 s")
    cost = collectives.cost(graph, "all_to_all", prod(dims) * hosts * 1e6, routing=routing)
    assert cost.seconds == close(laws.hyperx_all_to_all_seconds(dims, hosts, 1e6, 1e9))


@pytest.mark.parametrize("k", [4, 6])
@pytest.mark.parametrize("routing", ["ecmp", "even", "paths", "single"])
def test_all_to_all_on_fat_trees(k: int, routing: str) -> None:
    """Nothing above the hosts binds: the law of one switch over a host's own link."""
    graph = topo.build("fat_tree", k=k, bandwidth="1 GB/s", latency="0 s")
    n = k**3 // 4
    cost = collectives.cost(graph, "all_to_all", n * 1e6, routing=routing)
    assert cost.seconds == close(laws.all_to_all_seconds(n, 1e6, 1e9))


@pytest.mark.parametrize("kind", ["all_to_all", "all_gather", "reduce_scatter", "all_reduce"])
def test_direct_on_a_full_mesh_uses_every_link(kind: str) -> None:
    """2 GB/s a GPU over five links, and a path is one link."""
    graph = topo.build("full_mesh", n=6, bandwidth="2 GB/s", latency="1 us")
    law = laws.alpha_beta_seconds(kind, "direct", 6, N, 2e9, 1e-6)
    assert collectives.cost(graph, kind, N, algorithm="direct").seconds == close(law)


def test_a_ring_winds_along_the_lines_of_a_torus() -> None:
    """Every step is one hop, the closing one too where the last side is even."""
    cost = collectives.cost(torus(3, 4, 2, latency=1e-6), "all_gather", N)
    assert cost.seconds == close(23 * (1e-6 + N / 24 / 1e9))


# SimGrid 3.32, one switch per rail, 900 and 50 GB/s, 1e9 bytes a pair: relayed at once, and as two phases
@pytest.mark.parametrize(
    ("domains", "pipelined", "phased"), [(2, 0.16, 0.16778), (4, 0.48, 0.50333), (8, 1.12, 1.17444)]
)
def test_rail_aligned_all_to_all(domains: int, pipelined: float, phased: float) -> None:
    graph = racks(*[8] * domains, up=900e9, out=50e9, rails=True)
    for name, seconds in (("rail_pipelined", pipelined), ("rail_aligned", phased)):
        cost = collectives.cost(graph, "all_to_all", domains * 8e9, algorithm=name)
        law = laws.rail_aligned_all_to_all_seconds(domains, 8, 1e9, 900e9, 50e9, name == "rail_pipelined")
        assert cost.seconds == close(law) == pytest.approx(seconds, abs=5e-6)


# --- in-network reduction: every GPU sends and receives n (1 + 1/p) ---------------------------------------------------


@pytest.mark.parametrize("design", ["hgx-h100-8", "gb200-nvl72"])
@pytest.mark.parametrize("planes", [False, True])
def test_nvls(design: str, planes: bool) -> None:
    graph = topo.load(design, overrides={"scale_up.latency": "0 s"}, planes=planes)
    cost = collectives.cost(graph, "all_reduce", 1e9, algorithm="nvls")
    fabric = topo.Fabric.from_graph(graph)
    p, link = fabric.n_ranks, fabric.bandwidth[fabric.source == fabric.ranks[0]].sum()
    assert cost.busbw == close(laws.nvls_all_reduce_busbw(p, float(link)))
    for mine in (fabric.source == fabric.ranks[3], fabric.target == fabric.ranks[3]):
        assert cost.loads[mine].sum() == close(1e9 * (1 + 1 / p))


def test_nvls_against_the_ring() -> None:
    """The ring is better below three ranks, equal at three."""
    busbw = {p: [laws.nvls_all_reduce_busbw(p, 1.0), 1.0] for p in (2, 3, 4)}
    assert busbw[2][0] < 1.0 < busbw[4][0]
    assert busbw[3][0] == close(1.0)
    for p, (nvls, ring) in busbw.items():
        for name, ceiling in (("nvls", nvls), ("ring", ring)):
            assert collectives.cost(star(p, 1.0), "all_reduce", 60.0, algorithm=name).busbw == close(ceiling)


def test_sharp_in_a_two_level_fabric() -> None:
    """Four leaves of two GPUs, two spines: every link carries n or its share of it, once each way."""
    graph = nx.Graph()
    for s in range(2):
        graph.add_node(f"spine{s}", kind="switch", reduces=True, multicasts=True)
    for i in range(8):
        graph.add_node(f"leaf{i // 2}", kind="switch", reduces=True, multicasts=True)
        graph.add_node(f"gpu{i}", kind="gpu")
        graph.add_edge(f"gpu{i}", f"leaf{i // 2}", kind="scale-out", bandwidth=1e9, latency=1e-6)
        for s in range(2):
            graph.add_edge(f"leaf{i // 2}", f"spine{s}", kind="scale-out", bandwidth=1e9, latency=1e-6)
    cost = collectives.cost(graph, "all_reduce", 1e9, algorithm="sharp")
    assert cost.seconds == close(1.0 + 4e-6)
    assert sorted(set(cost.loads.tolist())) == [0.5e9, 1e9]
    graph.nodes["spine0"]["reduces"] = False
    assert collectives.cost(graph, "all_reduce", 1e9, algorithm="sharp").loads.max() == 1e9  # all over spine1
    graph.nodes["leaf0"]["reduces"] = False
    with pytest.raises(topo.InputError, match="no scale-out switches that reduce"):
        collectives.cost(graph, "all_reduce", 1e9, algorithm="sharp")


# --- nothing beats what a cut allows ---------------------------------------------------------------------------------


# ForestColl: A100 boxes, 300 GB/s up and 25 GB/s out per GPU; best total size / time [GB/s]
@pytest.mark.parametrize(("boxes", "best"), [(1, 342.857), (2, 346.667)])
@pytest.mark.parametrize("pipelined", [None, True])
def test_no_all_gather_beats_the_best(boxes: int, best: float, pipelined: bool | None) -> None:
    graph = racks(*[8] * boxes, up=300e9, out=25e9, rails=True)
    for name in KINDS["all_gather"].algorithms:
        try:
            cost = collectives.cost(graph, "all_gather", 16e9, algorithm=name, pipelined=pipelined)
        except topo.InputError:
            continue
        assert cost.algbw <= best * 1e9 * (1 + 1e-6), name
