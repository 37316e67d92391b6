"""Does any scale-up domain hang on any fabric: several NICs, shared ones, planes, unequal domains?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from topo import Fabric, InputError

BASE = """
[design]
name = "my-rack"
domain_size = {size}
[chip]
name = "X1"
hbm_bytes = "80 GB"
hbm_bandwidth = "3 TB/s"
flops = {{ bf16 = "1 PFLOP/s" }}
[scale_up]
latency = "0.5 us"
{up}
[scale_out]
bandwidth = "50 GB/s"
latency = "1 us"
{out}
"""
#: shape -> GPUs of a domain, its keys, links of a GPU
UP = {
    "switched": (6, 'planes = 3\nbandwidth = "600 GB/s"', 3),
    "full_mesh": (5, 'lanes = 2\nbandwidth = "800 GB/s"', 8),
    "hybrid_cube_mesh": (8, 'pcie = "16 GB/s"\nbandwidth = "150 GB/s"', 6),
    "bridge_pairs": (4, 'lanes = 4\npcie = "16 GB/s"\nbandwidth = "100 GB/s"', 4),
    "ring": (5, 'bandwidth = "100 GB/s"', 2),
    "torus": (12, 'dims = [3, 4]\nwrap = [true, false]\nbandwidth = "400 GB/s"', 4),
    "hypercube": (8, 'dim = 3\nbandwidth = "300 GB/s"', 3),
    "ultraserver": (64, 'bandwidth = "600 GB/s"', 6),
    "two_level": (12, 'nodes = 3\ngpus_per_node = 4\nl1 = 2\nplanes = 2\nlanes = 1\nbandwidth = "200 GB/s"', 2),
}
OUT = {
    "rail_optimised": "radix = 16",
    "rail_only": "radix = 16",
    "leaf_spine": "radix = 64\noversubscription = 2.0",
    "fat_tree": "radix = 16\nlevels = 3\noversubscription = [2.0, 1.5]",
    "dragonfly": "a = 4\np = 6\nh = 2\ngroups = 9",
    "slim_fly": "q = 5\np = 4",
    "hyperx": "dims = [4, 4]\nhosts = 12",
    "random_regular": "n = 20\ndegree = 5\nhosts = 10\nseed = 3",
}


def design(folder: Path, up: str = "switched", out: str = "rail_optimised", **more: str) -> Path:
    size, keys, _ = UP[up]
    size = int(more.get("size", size))
    path = folder / "rack.toml"
    up_table = f'shape = "{up}"\n{more.get("keys", keys)}\n{more.get("up_more", "")}'
    out_table = f'shape = "{out}"\n{more.get("table", OUT[out])}\n{more.get("out_more", "")}'
    path.write_text(BASE.format(size=size, up=up_table, out=out_table))
    return path


def gpus(graph: nx.Graph) -> list[str]:
    return [node for node, data in graph.nodes(data=True) if data["kind"] == "gpu"]


def nic_rate(graph: nx.Graph, gpu: str) -> float:
    return sum(data["bandwidth"] for _, _, data in graph.edges(gpu, data=True) if data["kind"] == "scale-out")


def faults_of(*arguments: Any, **words: Any) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        topo.load(*arguments, **words)
    return {fault.place: fault.rule for fault in caught.value.faults}


# --- any domain on any fabric ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", OUT)
@pytest.mark.parametrize("up", UP)
def test_any_domain_hangs_on_any_fabric(up: str, out: str, tmp_path: Path) -> None:
    size, _, links = UP[up]
    graph = topo.load(design(tmp_path, up, out), 3)
    ends = gpus(graph)
    assert len(ends) == 3 * size
    assert [graph.nodes[gpu]["rank"] for gpu in ends] == list(range(3 * size))
    assert all(nic_rate(graph, gpu) == 50e9 for gpu in ends)
    assert topo.check(graph) == []
    degree = [sum(d["lanes"] for *_, d in graph.edges(gpu, data=True) if d["kind"] == "scale-up") for gpu in ends]
    assert max(degree) == links
    for node, data in graph.nodes(data=True):
        if data["kind"] == "switch" and "radix" in data:
            assert sum(lanes for _, _, lanes in graph.edges(node, data="lanes")) <= data["radix"]
    parts = Fabric.from_graph(graph).domain_sizes
    assert parts.sum() == 3 * size
    assert len(parts) == (6 if up == "bridge_pairs" else 3)


@pytest.mark.parametrize("up", UP)
def test_bandwidth_of_a_gpu_and_of_a_link_state_the_same(up: str, tmp_path: Path) -> None:
    keys, links = UP[up][1], UP[up][2]
    total = float(keys.rpartition('"')[0].rpartition('"')[2].split()[0])
    each = keys[: keys.rindex("bandwidth")] + f'link_bandwidth = "{total / links!r} GB/s"'
    one, other = topo.load(design(tmp_path, up)), topo.load(design(tmp_path, up, keys=each))
    assert topo.load_design(design(tmp_path, up, keys=each)).scale_up.bandwidth == pytest.approx(total * 1e9, rel=1e-12)
    for a, b, data in one.edges(data=True):
        assert other.edges[a, b]["bandwidth"] == pytest.approx(data["bandwidth"], rel=1e-12)


def test_a_torus_of_different_axes(tmp_path: Path) -> None:
    keys = 'dims = [3, 4]\nlink_bandwidth = ["100 GB/s", "20 GB/s"]\nhost_block = [3, 2]'
    graph = topo.load(design(tmp_path, "torus", keys=keys), 2)
    assert {data["axis"]: data["bandwidth"] for *_, data in graph.edges(data=True) if "axis" in data} == {
        0: 100e9, 1: 20e9
    }  # fmt: skip
    hosts = [graph.nodes[gpu]["host"] for gpu in gpus(graph)]
    assert hosts == ["host0"] * 6 + ["host1"] * 6 + ["host2"] * 6 + ["host3"] * 6


# --- NICs ------------------------------------------------------------------------------------------------------------


def seconds(graph: nx.Graph) -> float:
    return collectives.cost(graph, "all_to_all", 1e9).bandwidth_seconds


def test_two_nics_halve_the_time(tmp_path: Path) -> None:
    one, two = (topo.load(design(tmp_path, out_more=f"nics_per_gpu = {n}"), 4, {"scale_out.radix": 64}) for n in (1, 2))
    assert nic_rate(two, "d0/gpu0") == 100e9
    assert seconds(one) == pytest.approx(18 / 24 * 1e9 / 50e9, rel=1e-12)  # 18 of 24 GPUs are elsewhere
    assert seconds(two) == pytest.approx(seconds(one) / 2, rel=1e-12)


# A NIC for two GPUs: each has half of it; 5 GPUs of a host need 3, the last one alone.
def test_shared_nics(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, "full_mesh", out_more="gpus_per_nic = 2"), 2, {"design.gpus_per_host": 5})
    nics = {node: sorted(graph[node]) for node, data in graph.nodes(data=True) if data["kind"] == "nic"}
    assert len(nics) == 6
    assert nics["d1/nic2"][0] == "d1/gpu4"
    assert [node for node in nics["d0/nic0"] if "gpu" in node] == ["d0/gpu0", "d0/gpu1"]
    assert any("pcie_bandwidth = 50 GB/s, the NIC's own rate: assumed" in line for line in graph.graph["assumptions"])
    assert all(nic_rate(graph, gpu) == 0 for gpu in gpus(graph))
    assert seconds(graph) == pytest.approx(2 * 5 * 1e8 / 50e9, rel=1e-12)  # two GPUs, five peers elsewhere, n/10 each
    tight = topo.load(
        design(tmp_path, "full_mesh", out_more='gpus_per_nic = 2\npcie_bandwidth = "10 GB/s"'), 2,
        {"design.gpus_per_host": 5},
    )  # fmt: skip
    assert seconds(tight) == pytest.approx(5 * 1e8 / 10e9, rel=1e-12)


def test_nics_are_shared_inside_a_host_only(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, out_more="gpus_per_nic = 2"), 2, {"design.gpus_per_host": 3})
    groups = [sorted(b for b in graph[n] if "gpu" in b) for n, d in graph.nodes(data=True) if d["kind"] == "nic"]
    assert groups[:4] == [["d0/gpu0", "d0/gpu1"], ["d0/gpu2"], ["d0/gpu3", "d0/gpu4"], ["d0/gpu5"]]


# 6 GPUs in hosts of 4: the second host of a domain has two, and no host is in two racks
def test_hosts_start_anew_in_every_domain(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path), [6, 5], {"design.gpus_per_host": 4})
    hosts = [graph.nodes[gpu]["host"] for gpu in gpus(graph)]
    assert hosts == ["host0"] * 4 + ["host1"] * 2 + ["host2"] * 4 + ["host3"]


def test_a_host_may_hold_several_domains(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, size="2"), 4, {"design.gpus_per_host": 4})
    assert [graph.nodes[gpu]["host"] for gpu in gpus(graph)] == ["host0"] * 4 + ["host1"] * 4


@pytest.mark.parametrize(
    ("up", "more", "own"),
    [("two_level", "", 4), ("ultraserver", "", 16), ("bridge_pairs", "", 4), ("torus", "host_block = [3, 1]", 3)],
)
def test_a_host_has_the_gpus_that_its_shape_gives_it(tmp_path: Path, up: str, more: str, own: int) -> None:
    path = design(tmp_path, up, up_more=more)
    assert topo.load(path, 1, {"design.gpus_per_host": own}) is not None
    with pytest.raises(InputError, match=f"design.gpus_per_host = 2: a host of this {up} has {own} GPUs"):
        topo.load(path, 1, {"design.gpus_per_host": 2})


def test_dual_ports_in_two_planes(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, out_more="ports_per_nic = 2\nplanes = 2"), 4)
    for gpu in gpus(graph):
        leaves = sorted(b for _, b, data in graph.edges(gpu, data=True) if data["kind"] == "scale-out")
        assert [leaf.partition("/")[0] for leaf in leaves] == ["plane0", "plane1"]
    assert nic_rate(graph, "d3/gpu5") == 50e9
    single = topo.load(design(tmp_path), 4)
    assert seconds(graph) == pytest.approx(seconds(single), rel=1e-12)
    lost = topo.fail(graph, switches=[node for node in graph if node.startswith("plane1/")])
    assert seconds(lost) == pytest.approx(2 * seconds(single), rel=1e-12)


def test_both_ports_on_one_leaf_are_two_lanes(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, out="leaf_spine", out_more="ports_per_nic = 2"), 2)
    assert graph.edges["d0/gpu0", "leaf0"]["lanes"] == 2
    assert graph.edges["d0/gpu0", "leaf0"]["bandwidth"] == 50e9


# arXiv 2505.09343 Table 3, MPFT: eight planes of two-level trees of 64-port switches, 768 switches
def test_multi_plane_fat_tree_of_the_paper() -> None:
    overrides = {"scale_out.planes": 8, "scale_out.shape": "fat_tree", "scale_out.bandwidth": "400 Gb/s"}
    graph = topo.load("hgx-h800-8", 2048, overrides)
    fabric = [node for node, data in graph.nodes(data=True) if data.get("tier") in ("leaf", "spine")]
    assert len(gpus(graph)) == 16384
    assert len(fabric) == 768
    lanes = sum(n for a, b, n in graph.subgraph(fabric).edges(data="lanes"))
    assert lanes == 16384
    fourth = [gpu for gpu in gpus(graph) if any(leaf.startswith("plane3/") for leaf in graph[gpu])]
    assert [graph.nodes[gpu]["rank"] for gpu in fourth] == list(range(3, 16384, 8))


def test_rail_only_of_a_design_is_the_bare_shape(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, out="rail_only"), 20)
    bare = topo.build("rail_only", domains=20, domain_size=6, radix=16, bandwidth="50 GB/s", latency="1 us")
    part = [{(a, b, d["lanes"], d["bandwidth"]) if a < b else (b, a, d["lanes"], d["bandwidth"])
             for a, b, d in g.edges(data=True) if d["kind"] == "scale-out"} for g in (graph, bare)]  # fmt: skip
    assert part[0] == part[1]


@pytest.mark.parametrize(
    ("keys", "nics"),
    [("", 12), ("nics_per_gpu = 2", 24), ("ports_per_nic = 2\nplanes = 2", 12), ("ports_per_nic = 2", 12),
     ("gpus_per_nic = 4", 4), ("ports_per_nic = 3\nplanes = 2", 12)],
)  # fmt: skip
@pytest.mark.parametrize("out", ["rail_optimised", "leaf_spine"])
def test_nics_are_counted_once(keys: str, nics: int, out: str, tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, out=out, out_more=f'{keys}\nnic_price = "1000 $"\nnic_power = "25 W"'), 2)
    bill = topo.measure(graph).bill["NICs"]
    assert (bill.units, bill.price, bill.power) == (nics, pytest.approx(1000.0 * nics), pytest.approx(25.0 * nics))


# --- unequal domains -------------------------------------------------------------------------------------------------


def test_36_beside_72() -> None:
    graph = topo.load("gb200-nvl72", [36, 72])
    fabric = Fabric.from_graph(graph)
    assert topo.check(graph) == []
    assert fabric.domain_sizes.tolist() == [36, 72]
    assert np.bincount(fabric.rank_domain[fabric.group(100)]).tolist() == [36, 64]
    time = collectives.cost(graph, "all_to_all", 108e9)
    assert time.bandwidth_seconds == pytest.approx(72e9 / 50e9, rel=1e-12)  # a GPU of the small one: 72 peers elsewhere


def test_a_gpu_off_nvlink_is_its_own_domain(tmp_path: Path) -> None:
    graph = topo.load(design(tmp_path, up_more="off = [2]"), 2)
    fabric = Fabric.from_graph(graph)
    assert topo.check(graph) == []
    assert sorted(fabric.domain_sizes.tolist()) == [1, 1, 5, 5]
    assert graph.nodes["d0/gpu2"]["domain"] != graph.nodes["d0/gpu1"]["domain"]
    assert collectives.cost(graph, "all_to_all", 12e9).remote_share == pytest.approx((2 * 5 * 7 + 2 * 11) / 144)


def test_a_shape_of_one_size_says_so(tmp_path: Path) -> None:
    assert faults_of(design(tmp_path, "torus"), [12, 6]) == {"domains": "a torus of this design has 12 GPUs"}
    assert set(faults_of(design(tmp_path), [])) == set(faults_of(design(tmp_path), [6, 0])) == {"domains"}


# --- slices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "chips", "links", "hops"),
    [
        ("tpu-v5p-4x4x8", 128, 384, 8),  # a torus: 3 links a chip
        ("tpu-v4-4x4x8-twisted", 128, 384, 6),  # oracle: diameter 6
        ("TPU-v5p-2x2x4", 16, 28, 5),  # below a cube a mesh: 8 + 8 + 12
        ("tpu-v5p-2x4x4", 32, 64, 7),  # 16 + 24 + 24
        ("tpu-v6e-8x16", 128, 240, 15),  # only the axis of 16 wraps: 7 x 16 + 128; 7 + 8 hops
        ("tpu-v6e-2x4", 8, 10, 4),
    ],
)
def test_slices_by_name(name: str, chips: int, links: int, hops: int) -> None:
    graph = topo.load(name)
    assert graph.graph["name"] == name
    assert (len(graph), sum(lanes for *_, lanes in graph.edges(data="lanes"))) == (chips, links)
    assert int(topo.hop_counts(graph).max()) == hops
    each = 45e9 if "v4" in name else 100e9 if "v5p" in name.lower() else 90e9
    assert {data["bandwidth"] / data["lanes"] for *_, data in graph.edges(data=True)} == {each}


# arXiv 2304.01433: 4x4x8 regular to twisted 1.745 by equal split (measured 1.63); 4x8x8 is nearer as well
def test_twisting_pays() -> None:
    regular, twisted = (seconds(topo.load(name)) for name in ("tpu-v4-4x4x8", "tpu-v4-4x4x8-twisted"))
    assert regular / twisted == pytest.approx(1.745, abs=5e-4)
    far, near = (topo.hop_counts(topo.load(name)) for name in ("tpu-v4-4x8x8", "tpu-v4-4x8x8-twisted"))
    assert (int(far.max()), int(near.max())) == (10, 6)
    assert near.mean() < 0.9 * far.mean()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("tpu-v5p-4x4", "must have 3 sides"),
        ("tpu-v5p-0x4x4", "has a side of nothing"),
        ("tpu-v5p-64x64x64", "has 262,144 chips, more than the 8,960 of a pod"),
        ("tpu-v5p-4x4x4-twisted", "only n x n x 2n and n x 2n x 2n are twisted"),
        ("tpu-v6e-8x16-twisted", "only n x n x 2n and n x 2n x 2n are twisted"),
        ("gb200-nvl72-4x4", "has no [slices]: it is no pod of which parts can be named"),
    ],
)
def test_slices_that_cannot_be(name: str, rule: str) -> None:
    (found,) = faults_of(name).values()
    assert found == rule


# --- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("up", "more", "place", "rule"),
    [
        ("torus", {"up_more": "lanes = 2"}, "scale_up.lanes", "is no key of torus"),
        ("torus", {"keys": 'bandwidth = "1 GB/s"'}, "scale_up.dims", "torus needs it"),
        ("torus", {"size": "13"}, "design.domain_size", "is not the number of GPUs that scale_up makes: 12"),
        ("torus", {"up_more": "reduces = true"}, "scale_up.reduces", "torus has no switches"),
        ("torus", {"up_more": 'link_bandwidth = "1 GB/s"'}, "scale_up.link_bandwidth", "bandwidth states it already"),
        ("ring", {"keys": ""}, "scale_up.bandwidth", "is missing"),
        ("ring", {"up_more": "off = [5]"}, "scale_up.off", "slots are 0 to 4"),
        ("ring", {"up_more": "off = [-1]"}, "scale_up.off.0", "must be a whole number, zero or more"),
        ("switched", {"up_more": "host_block = [2, 1]"}, "scale_up.host_block",
         "groups neighbours on a grid, and switched is none"),
        ("switched", {"up_more": "parameters = 1"}, "scale_up.parameters", "is not a key of a design file"),
        ("switched", {"out_more": "levels = 2"}, "scale_out.levels", "is no key of rail_optimised"),
        ("switched", {"out_more": "oversubscription = [1.0, 2.0, 3.0]"}, "scale_out.oversubscription",
         "has one number for leaves and one for spines"),
        ("switched", {"out_more": "nics_per_gpu = 2\ngpus_per_nic = 2"}, "scale_out.gpus_per_nic",
         "a GPU has several NICs or shares one"),
        ("switched", {"out_more": 'pcie_bandwidth = "1 GB/s"'}, "scale_out.pcie_bandwidth",
         "is for shared NICs: a NIC of one GPU is the edge to its leaf"),
        ("switched", {"out_more": "planes = 9"}, "scale_out.planes", "no domain has more than 6 ports"),
    ],
)  # fmt: skip
def test_fault(up: str, more: dict[str, str], place: str, rule: str, tmp_path: Path) -> None:
    assert faults_of(design(tmp_path, up, **more), 2) == {place: rule}


@pytest.mark.parametrize(
    ("out", "keys", "place", "rule"),
    [
        ("dragonfly", "a = 4\np = 1\nh = 2\noversubscription = 2.0", "scale_out.oversubscription",
         "is no key of dragonfly"),
        ("dragonfly", "a = 2\np = 1\nh = 1", "scale_out.shape",
         "has room for 6 end ports, and 12 must be joined"),
        ("dragonfly", "a = 2\np = 1", "scale_out.h", "dragonfly needs it"),
        ("slim_fly", "q = 28", "scale_out.q", "prime power"),
        ("leaf_spine", "radix = 2", "scale_out.radix", "two levels of switches do not reach 12 end ports"),
    ],
)  # fmt: skip
def test_fault_of_a_fabric(out: str, keys: str, place: str, rule: str, tmp_path: Path) -> None:
    found = faults_of(design(tmp_path, "switched", out, table=keys), 2)
    assert list(found) == [place]
    assert rule in found[place]
