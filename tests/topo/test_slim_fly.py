"""Is a Slim Fly of diameter two and near the Moore bound, for every prime power?"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import topo
from topo import InputError

from .wired import alike, fabric, gpus, lanes, ports

#: q -> routers, degree, links of Besta and Hoefler's closed forms.
PUBLISHED = {5: (50, 7, 175), 13: (338, 19, 3211), 27: (1458, 41, 29889), 29: (1682, 43, 36163)}


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29])
def test_diameter_two(q: int) -> None:
    graph = topo.build("slim_fly", q=q, p=1)
    inner = fabric(graph)
    d = {0: 0, 1: 1, 3: -1}[q % 4]
    degree = (3 * q - d) // 2
    assert len(inner) == 2 * q**2
    assert {ports(graph, router) for router in inner} == {degree + 1}
    assert lanes(inner) == q**2 * degree == inner.number_of_edges()
    if q in PUBLISHED:
        assert (len(inner), degree, lanes(inner)) == PUBLISHED[q]
    near = nx.to_numpy_array(inner, weight=None, dtype=np.float32)
    assert not (near + near @ near + np.eye(len(near), dtype=np.float32) == 0).any()
    assert (near == 0).sum() > len(near), "and not one"


# the Moore graph of degree 7 and diameter 2, of which there is one
def test_q_5_is_the_hoffman_singleton_graph() -> None:
    inner = nx.Graph(fabric(topo.build("slim_fly", q=5)).edges)
    assert nx.is_isomorphic(inner, nx.hoffman_singleton_graph())


@pytest.mark.parametrize("q", [5, 9, 13])
def test_routers_are_alike(q: int) -> None:
    assert alike(fabric(topo.build("slim_fly", q=q, p=1)))


@pytest.mark.parametrize(("q", "hosts"), [(5, 4), (4, 3), (7, 6), (13, 10)])
def test_half_the_degree_are_gpus(q: int, hosts: int) -> None:
    graph = topo.build("slim_fly", q=q)
    assert len(gpus(graph)) == 2 * q**2 * hosts
    assert graph.graph["shape"]["p"] == hosts


def test_groups_are_cayley_graphs_of_q_routers() -> None:
    graph = topo.build("slim_fly", q=7, p=1)
    for g in range(14):
        inside = [node for node, group in graph.nodes(data="group") if group == g]
        assert len(inside) == 7
        assert {n for _, n in graph.subgraph(inside).degree} == {4}  # (q + 1) / 2


@pytest.mark.parametrize(
    ("q", "near"),
    [
        (28, "27 and 29"),
        (6, "5 and 7"),
        (10, "9 and 11"),
        (12, "11 and 13"),
        (15, "13 and 16"),
        (1, "3"),
        (26, "25 and 27"),
    ],
)
def test_no_prime_power(q: int, near: str) -> None:
    with pytest.raises(InputError, match="prime power") as caught:
        topo.build("slim_fly", q=q)
    (fault,) = caught.value.faults
    assert (fault.place, fault.value, fault.cure) == ("q", q, f"Nearest that work: {near}.")


def test_two_is_too_small() -> None:
    with pytest.raises(InputError, match=r"too small a field. Nearest that work: 3\."):
        topo.build("slim_fly", q=2)


@pytest.mark.parametrize("q", [0, -5, 5.0, "5", None, True])
def test_no_number(q: object) -> None:
    with pytest.raises(InputError, match="must be a whole number, one or more"):
        topo.build("slim_fly", q=q)
