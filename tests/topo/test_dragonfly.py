"""Is a dragonfly as published, and are its global links spread evenly when it has fewer groups?"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import InputError

from .wired import alike, diameter, fabric, gpus, lanes, ports


def pairs_of_groups(graph: nx.Graph) -> Counter[tuple[int, int]]:
    group = dict(graph.nodes(data="group"))
    found: Counter[tuple[int, int]] = Counter()
    for a, b, n in fabric(graph).edges(data="lanes"):
        if group[a] != group[b]:
            found[min(group[a], group[b]), max(group[a], group[b])] += n
    return found


# Kim et al. 2008: (a, p, h) = (4, 2, 2) has 9 groups, 36 routers, 72 hosts, 54 + 36 links, router diameter 3
def test_the_example_of_the_paper() -> None:
    graph = topo.build("dragonfly", a=4, p=2, h=2)
    inner = fabric(graph)
    assert graph.graph["shape"]["groups"] == 9
    assert (len(inner), len(gpus(graph)), lanes(inner), diameter(inner)) == (36, 72, 90, 3)


def test_the_size_of_the_issue() -> None:
    graph = topo.build("dragonfly", a=8, p=4, h=4, groups=33)
    inner = fabric(graph)
    assert (len(inner), len(gpus(graph)), diameter(inner)) == (264, 1056, 3)
    assert lanes(inner) == 33 * 8 * 7 // 2 + 33 * 8 * 4 // 2
    assert set(pairs_of_groups(graph).values()) == {1}
    full = topo.build("dragonfly", a=8, p=4, h=4)
    assert set(full.edges) == set(graph.edges)


@settings(max_examples=80, deadline=None)
@given(a=st.integers(1, 6), p=st.integers(1, 3), h=st.integers(1, 4), data=st.data())
def test_any_number_of_groups(a: int, p: int, h: int, data: st.DataObject) -> None:
    g = data.draw(st.integers(2, a * h + 1))
    graph = topo.build("dragonfly", a=a, p=p, h=h, groups=g)
    assert topo.check(graph) == []
    inner = fabric(graph)
    assert (len(inner), len(gpus(graph))) == (a * g, a * p * g)
    shared = pairs_of_groups(graph)
    assert set(shared) == set(combinations(range(g), 2)), "every two groups are linked"
    assert max(shared.values()) - min(shared.values()) <= 1
    assert sum(shared.values()) == g * a * h // 2
    assert lanes(inner) == g * a * (a - 1) // 2 + g * a * h // 2
    used = Counter(ports(graph, router) for router in inner)
    empty = g * a * h % 2
    assert used == Counter({a - 1 + h + p: a * g - empty, a - 2 + h + p: empty})
    assert any("stays empty" in line for line in graph.graph["assumptions"]) == bool(empty)
    assert diameter(inner) <= 3
    if a * h % (g - 1) == 0:
        assert all(alike(inner, [f"router{i * a + r}" for i in range(g)]) for r in range(a)), "turned by a group"


def test_groups_are_full_meshes() -> None:
    graph = topo.build("dragonfly", a=5, p=1, h=1)
    for g in range(6):
        inside = [node for node, group in graph.nodes(data="group") if group == g]
        assert graph.subgraph(inside).number_of_edges() == 10


def test_two_groups_share_all_their_links() -> None:
    graph = topo.build("dragonfly", a=4, p=1, h=2, groups=2)
    assert pairs_of_groups(graph) == {(0, 1): 8}
    assert {graph.edges[f"router{r}", f"router{4 + r}"]["lanes"] for r in range(4)} == {2}


@pytest.mark.parametrize(("groups", "rule"), [(10, "do not reach that many"), (1, "two or more"), (2.0, "two or more")])
def test_dragonflies_that_do_not_exist(groups: object, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        topo.build("dragonfly", a=4, p=2, h=2, groups=groups)
    (fault,) = caught.value.faults
    assert (fault.place, fault.value) == ("groups", groups)
    assert rule in fault.rule
