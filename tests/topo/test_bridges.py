"""Which GPUs does NVLink join without switches, and what do the others take?"""

from __future__ import annotations

import pytest

import topo
from collectives import cost
from topo import InputError

from .wired import gpus, lanes, ports

#: Upper triangle of what `nvidia-smi topo -m` prints on a DGX-1 V100: links of each pair.
NV2 = {(0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)}
NV1 = {(0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7)}


def test_hybrid_cube_mesh() -> None:
    graph = topo.build("hybrid_cube_mesh", bandwidth="25 GB/s")
    assert len(graph) == len(gpus(graph)) == 8
    assert (lanes(graph), graph.number_of_edges()) == (24, 16)
    assert {ports(graph, gpu) for gpu in graph} == {6}
    found = {n: {(int(a[3:]), int(b[3:])) for a, b, k in graph.edges(data="lanes") if k == n} for n in (1, 2)}
    assert found == {1: NV1, 2: NV2}
    assert {rate for _, _, rate in graph.edges("gpu0", data="bandwidth")} == {25e9, 50e9}
    assert not any(forwards for _, forwards in graph.nodes(data="forwards"))


def test_pairs_without_nvlink_are_said_and_refused() -> None:
    graph = topo.build("hybrid_cube_mesh")
    assert any("12 of 28 pairs" in line for line in graph.graph["assumptions"])
    with pytest.raises(InputError, match="has no path for 24 pairs"):
        cost(graph, "all_to_all", 8e6)


def test_with_pcie_they_take_it() -> None:
    graph = topo.build("hybrid_cube_mesh", pcie="16 GB/s", bandwidth="25 GB/s", latency=0)
    hops = topo.hop_counts(graph)
    assert sorted(set(hops[hops > 0].tolist())) == [1, 2]
    found = cost(graph, "all_to_all", 8e9)
    assert found.seconds == pytest.approx(3 / 16), "three of seven messages of 1 GB"
    assert any("24 ordered pairs inside a host" in line for line in found.assumptions)


@pytest.mark.parametrize(("n", "each"), [(2, 18), (4, 12), (8, 3)])
def test_bridge_pairs(n: int, each: int) -> None:
    graph = topo.build("bridge_pairs", n=n, lanes=each)
    bridges = [(a, b, k) for a, b, k in graph.edges(data="lanes") if graph.edges[a, b]["kind"] == "scale-up"]
    assert bridges == [(f"gpu{i}", f"gpu{i + 1}", each) for i in range(0, n, 2)]
    assert topo.check(graph) == []
    assert ("cpu" in graph) == (n > 2)
    assert len({host for _, host in graph.nodes(data="host")}) == 1
    hops = topo.hop_counts(graph)
    assert hops.max() == (2 if n > 2 else 1)
    assert hops[0, 1] == 1


def test_pcie_is_assumed_and_said() -> None:
    graph = topo.build("bridge_pairs", n=4)
    assert any(line.startswith("pcie = 32 GB/s") for line in graph.graph["assumptions"])
    assert not any("pcie" in line for line in topo.build("bridge_pairs", n=4, pcie="16 GB/s").graph["assumptions"])
    assert not any("pcie" in line for line in topo.build("bridge_pairs", n=2).graph["assumptions"])


@pytest.mark.parametrize(("n", "cure"), [(3, "Take 2 or 4."), (1, "Take 2.")])
def test_bridges_join_pairs(n: int, cure: str) -> None:
    with pytest.raises(InputError, match="bridges join pairs") as caught:
        topo.build("bridge_pairs", n=n)
    assert caught.value.faults[0].cure == cure
