"""Is a scale-up domain wired as its design says, folded and unfolded?"""

from __future__ import annotations

import networkx as nx
import pytest

import topo
from topo import InputError

SMALL = {"design.domain_size": 6, "design.gpus_per_host": 6}


def links(graph: nx.Graph, gpu: str) -> dict[str, tuple[float, int]]:
    return {other: (data["bandwidth"], data["lanes"]) for _, other, data in graph.edges(gpu, data=True)}


def test_folded_planes_are_one_switch() -> None:
    graph = topo.load("gb200-nvl72")
    assert links(graph, "d0/gpu5") == {"d0/switch": (900e9, 18)}
    assert graph.nodes["d0/switch"] == {
        "kind": "switch",
        "tier": "scale-up",
        "forwards": True,
        "planes": 18,
        "plane_lanes": [1] * 18,
        "reduces": True,
        "multicasts": True,
        "domain": 0,
        "rack": 0,
    }
    assert graph.nodes["d0/gpu5"] == {
        "kind": "gpu",
        "forwards": False,
        "domain": 0,
        "rack": 0,
        "rank": 5,
        "chip": "GB200",
        "host": "host1",
    }


# HGX H100: 18 links of 25 GB/s a GPU over 4 NVSwitch chips as 5, 4, 4, 5
def test_h100_unfolds_to_5_4_4_5() -> None:
    graph = topo.load("hgx-h100-8", planes=True)
    wanted = {f"d0/switch{i}": (lanes * 25e9, lanes) for i, lanes in enumerate((5, 4, 4, 5))}
    for i in range(8):
        assert links(graph, f"d0/gpu{i}") == wanted
    assert sum(bandwidth for bandwidth, _ in wanted.values()) == 450e9


@pytest.mark.parametrize(
    ("name", "planes", "lanes", "bandwidth"),
    # links a GPU has to one switch chip: A100 12 over 6, B200 18 over 2, NVL72 18 over 18
    [("hgx-a100-8", 6, 2, 50e9), ("hgx-b200-8", 2, 9, 450e9), ("gb300-nvl72", 18, 1, 50e9)],
)
def test_equal_planes(name: str, planes: int, lanes: int, bandwidth: float) -> None:
    graph = topo.load(name, planes=True)
    assert links(graph, "d0/gpu7") == {f"d0/switch{i}": (bandwidth, lanes) for i in range(planes)}


@pytest.mark.parametrize("name", ["hgx-a100-8", "hgx-h100-8", "hgx-b200-8", "gb200-nvl72"])
def test_folding_keeps_bandwidth_and_lanes(name: str) -> None:
    folded, unfolded = topo.load(name), topo.load(name, planes=True)
    for key in ("bandwidth", "lanes"):
        totals = [sum(value for _, _, value in graph.edges(data=key)) for graph in (folded, unfolded)]
        assert totals[0] == pytest.approx(totals[1], rel=1e-12)
    assert {data["planes"] for _, data in unfolded.nodes(data=True) if data["kind"] == "switch"} == {1}


# MI300X: 7 links of 64 GB/s, one to each other GPU, no switch
def test_full_mesh_pair_bandwidth() -> None:
    graph = topo.load("mi300x-8")
    assert set(nx.get_node_attributes(graph, "kind").values()) == {"gpu"}
    assert graph.number_of_edges() == 8 * 7 // 2
    assert {(data["bandwidth"], data["lanes"], data["kind"]) for _, _, data in graph.edges(data=True)} == {
        (64e9, 1, "scale-up")
    }


def test_full_mesh_lanes_are_per_pair() -> None:
    graph = topo.load("mi300x-8", overrides={"scale_up.lanes": 3})
    assert {(data["bandwidth"], data["lanes"]) for _, _, data in graph.edges(data=True)} == {(64e9, 3)}


@pytest.mark.parametrize("key", ["scale_up.planes", "scale_up.lanes"])
def test_full_mesh_has_no_planes(key: str) -> None:
    with pytest.raises(InputError, match="a full mesh has"):
        topo.load("mi300x-8", overrides={key: 2 if key == "scale_up.planes" else [1, 1]})


@pytest.mark.parametrize("name", ["hgx-h100-8", "mi300x-8"])
def test_one_gpu_is_a_domain(name: str) -> None:
    graph = topo.load(name, overrides={"design.domain_size": 1, "design.gpus_per_host": 1})
    assert next(kind for _, kind in graph.nodes(data="kind")) == "gpu"
    assert topo.check(graph) == []


def test_lanes_without_planes() -> None:
    graph = topo.load("hgx-h100-8", overrides=SMALL | {"scale_up.planes": 1, "scale_up.lanes": 18})
    assert links(graph, "d0/gpu0") == {"d0/switch": (450e9, 18)}


def test_hosts_may_hold_part_of_a_domain_or_several() -> None:
    trays = topo.load("gb200-nvl72")
    assert len({host for _, host in trays.nodes(data="host") if host}) == 18  # 4 GPUs a tray
    wide = topo.load(
        "hgx-h100-8",
        4,
        {"design.domain_size": 2, "design.gpus_per_host": 4, "scale_up.planes": 1, "scale_up.lanes": 18},
    )
    hosts = [host for _, host in wide.nodes(data="host") if host]
    assert hosts == [f"host{rank // 4}" for rank in range(8)]


def test_unknown_shape_suggests() -> None:
    with pytest.raises(InputError, match="Did you mean 'full_mesh'"):
        topo.load("mi300x-8", overrides={"scale_up.shape": "fullmesh"})


def test_domains_are_copies() -> None:
    graph = topo.load("hgx-h100-8", 3)
    graph.edges["d0/gpu0", "d0/switch"]["bandwidth"] = 1.0
    assert graph.edges["d1/gpu0", "d1/switch"]["bandwidth"] == 450e9
    assert topo.load("hgx-h100-8").edges["d0/gpu0", "d0/switch"]["bandwidth"] == 450e9
