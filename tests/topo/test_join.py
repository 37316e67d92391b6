"""Do host files and a fabric file become one cluster, wired where the cables are, costed as by hand?"""

import networkx as nx
import pytest

import collectives
import topo
from topo import InputError
from topo._join import join
from topo._nodelist import nodelist, suggest_nodes
from topo.readers._reading import Reading, Tables

from .readers.fabric_cases import read_case, read_text

UP, PCIE, Gb = 450e9, 64e9, 1e9 / 8
NET = 400 * Gb
FABRIC = """Switch\t40 "S-00000000000000a1"\t\t# "leaf1" base port 0 lid 1 lmc 0
[1]\t"H-00000000000000b1"[1](b1) \t\t# "n1 HCA-1" lid 10 4xNDR
[2]\t"H-00000000000000c1"[1](c1) \t\t# "n2 HCA-1" lid 11 4xNDR
[9]\t"S-00000000000000a3"[1]\t\t# "spine1" lid 3 4xNDR

Switch\t40 "S-00000000000000a2"\t\t# "leaf2" base port 0 lid 2 lmc 0
[1]\t"H-00000000000000b2"[1](b2) \t\t# "n1 HCA-2" lid 20 4xNDR
[2]\t"H-00000000000000c2"[1](c2) \t\t# "n2 HCA-2" lid 21 4xNDR
[9]\t"S-00000000000000a3"[2]\t\t# "spine1" lid 3 4xNDR
"""


def host(name: str = "host0", guids: tuple[str, ...] = ("", ""), gpus: int = 2, switch: bool = True) -> Reading:
    """GPUs on one switch, each with a NIC of its own behind PCIe."""
    graph: nx.Graph = nx.Graph(schema=1, name="host", chips={"X": {"hbm_bytes": 1e9}}, assumptions=["PCIe assumed"])
    for i in range(gpus):
        graph.add_node(f"GPU{i}", kind="gpu", host=name, rank=i, chip="X", domain=0)
    for i, guid in enumerate(guids):
        graph.add_node(
            f"NIC{i}", kind="nic", host=name, nic=f"mlx5_{i}", forwards=False, **({"guid": guid} if guid else {})
        )
        graph.add_edge(f"GPU{i}", f"NIC{i}", kind="pcie", bandwidth=PCIE, latency=0.0)
    if switch:
        graph.add_node("NVSwitch0", kind="switch", tier="scale-up", host=name, domain=0)
        for i in range(gpus):
            graph.add_edge(f"GPU{i}", "NVSwitch0", kind="scale-up", bandwidth=UP, latency=0.0)
    return Reading("test", graph, ("from a test", "cables of NICs not in the file: no scale-out links"))


def graph_of(reading: Reading) -> nx.Graph:
    assert reading.graph is not None
    assert topo.check(reading.graph) == []
    return reading.graph


def test_one_reading_for_every_host() -> None:
    reading = join(host(), read_text(FABRIC), hosts="all")
    graph = graph_of(reading)
    assert reading.kind == "join"
    gpus = [
        (node, data["rank"], data["host"], data["domain"])
        for node, data in graph.nodes(data=True)
        if data["kind"] == "gpu"
    ]
    assert gpus == [
        ("n1/GPU0", 0, "n1", "n1"), ("n1/GPU1", 1, "n1", "n1"), ("n2/GPU0", 2, "n2", "n2"), ("n2/GPU1", 3, "n2", "n2"),
    ]  # fmt: skip
    assert {(a, b): data["ports"] for a, b, data in graph.edges(data=True) if data["kind"] == "scale-out"} == {
        ("n1/NIC0", "leaf1"): [[1, 1]], ("n1/NIC1", "leaf2"): [[2, 1]],
        ("n2/NIC0", "leaf1"): [[1, 2]], ("n2/NIC1", "leaf2"): [[2, 2]],
        ("leaf1", "spine1"): [[9, 1]], ("leaf2", "spine1"): [[9, 2]],
    }  # fmt: skip
    assert graph.nodes["n1/NIC1"]["lids"] == {"2": 20}
    assert graph.nodes["n2/NIC0"]["port_guids"] == {"1": "0x00000000000000c1"}
    assert "PCIe assumed" in graph.graph["assumptions"]
    assert "NICs of 2 hosts told to ports by the number of HCA-n" in reading.notes
    assert [line for line in reading.notes if line == "from a test"] == ["from a test"]
    assert not any("no scale-out links" in note for note in reading.notes)


def test_the_cluster_is_costed_as_by_hand() -> None:
    """All-to-all of 4 GPUs on 2 hosts: a GPU sends a quarter to each; what leaves a NIC is half of its bytes."""
    graph = graph_of(join(host(), read_text(FABRIC), hosts="all"))
    n = 1e9
    cost = collectives.cost(graph, "all_to_all", n, ranks=nodelist(graph, "n[1-2]"))
    assert cost.bandwidth_seconds == pytest.approx(n / 2 / NET)
    assert suggest_nodes(graph, 1) == ["n1"]


def test_hosts_are_matched_by_name_guid_and_map() -> None:
    fabric = read_text(FABRIC)
    named = [host("n2"), host("n1.cluster.local")]
    by_name = graph_of(join(named, fabric))
    by_guid = graph_of(join([host("a", ("0xC1", "0xc2")), host("b", ("b1", "B2"))], fabric))
    by_map = graph_of(join([host("a"), host("b")], fabric, hosts={0: "n2", "b": "n1"}))
    by_list = graph_of(join(host(), fabric, hosts={0: "n[1-2]"}))
    for other in (by_guid, by_map, by_list):
        assert list(other.edges(data=True)) == list(by_name.edges(data=True))


def test_nics_are_told_by_guid_before_order() -> None:
    reading = join([host("n1", ("b2", "b1")), host("n2", ("c1", "c2"))], read_text(FABRIC))
    assert graph_of(reading).edges["n1/NIC0", "leaf2"]["ports"] == [[2, 1]]
    assert "NICs of 2 hosts told to ports by GUID" in reading.notes


def test_nics_are_told_by_name() -> None:
    text = FABRIC.replace("HCA-1", "mlx5_1").replace("HCA-2", "mlx5_0")
    assert graph_of(join(host(), read_text(text), hosts="all")).edges["n1/NIC0", "leaf2"]["bandwidth"] == NET


def test_trays_share_the_switch_of_their_domain() -> None:
    reading = join(host(), read_text(FABRIC), hosts="all", domains={"rack0": ["n1", "n2"]})
    graph = graph_of(reading)
    assert sorted(n for n in graph["rack0/NVSwitch0"]) == ["n1/GPU0", "n1/GPU1", "n2/GPU0", "n2/GPU1"]
    assert {graph.nodes[n]["domain"] for n in graph if "GPU" in n} == {"rack0"}
    cost = collectives.cost(graph, "all_to_all", 1e9)
    assert cost.bandwidth_seconds == pytest.approx(1e9 * 3 / 4 / UP)


def test_slurm_blocks_are_domains_and_links_are_shared_evenly() -> None:
    slurm = read_text("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\n")
    graph = graph_of(join(host(), slurm, hosts="all", domains="blocks"))
    assert sorted(graph["b2/NVSwitch0"]) == ["n3/GPU0", "n3/GPU1", "n4/GPU0", "n4/GPU1"]
    assert graph.edges["n1/NIC0", "b1"]["bandwidth"] == 200 * Gb
    assert graph.edges["b1", "between blocks"]["bandwidth"] == 2 * 400 * Gb


def test_islands_of_a_host_stay_apart() -> None:
    one = host(gpus=2, switch=False)
    assert one.graph is not None
    one.graph.nodes["GPU1"]["domain"] = 1
    graph = graph_of(join(one, read_text(FABRIC), hosts="all"))
    assert [graph.nodes[f"n1/GPU{i}"]["domain"] for i in (0, 1)] == ["n1/0", "n1/1"]


def test_a_dual_ported_nic_keeps_both_cables() -> None:
    text = FABRIC.replace(
        '"H-00000000000000c1"[1](c1) \t\t# "n2 HCA-1"', '"H-00000000000000b1"[2](b3) \t\t# "n1 HCA-1"'
    )
    fabric = read_text("\n".join(line for line in text.split("\n") if "n2" not in line and "HCA-2" not in line))
    graph = graph_of(join(host(guids=("",)), fabric, hosts="all"))
    edge = graph.edges["n1/NIC0", "leaf1"]
    assert (edge["lanes"], edge["ports"], edge["bandwidth"]) == (2, [[1, 1], [2, 2]], 2 * NET)
    assert graph.nodes["n1/NIC0"]["lids"] == {"1": 10, "2": 11}


def test_hosts_without_a_reading_may_stay() -> None:
    reading = join(host("n1"), read_text(FABRIC), keep=True)
    graph = graph_of(reading)
    assert topo.Fabric.from_graph(graph).rank_labels == ["n1/GPU0", "n1/GPU1"]
    assert graph.edges["n2", "leaf1"]["ports"] == [[1, 2]]
    assert any("1 hosts have no reading and are no ranks: n2" in note for note in reading.notes)


def test_tables_read_apart_are_carried_over() -> None:
    fabric, tables = read_case("ibnetdiscover-sim-ft2_32.txt"), read_case("opensm/ft2_32_minhop.lfts.dump")
    joined = join(tables, fabric)
    assert joined.routing is tables.routing
    assert joined.graph is not fabric.graph
    assert nx.utils.graphs_equal(joined.graph, fabric.graph)
    other = Reading("opensm-lfts", None, (), Tables("", {}))
    with pytest.raises(InputError, match="2 of the readings hold forwarding tables"):
        join([tables, other], fabric)


def test_the_real_fabric_joins_and_is_costed() -> None:
    fabric = read_case("ibnetdiscover-real-144hosts-8sw.topo")
    graph = graph_of(join(host(guids=("",), gpus=1), fabric, hosts="all"))
    assert len(topo.Fabric.from_graph(graph).rank_labels) == 144


@pytest.mark.parametrize(
    ("readings", "options", "says"),
    [
        ([host("n1")], {}, "1 of 2 hosts of the fabric have no reading: n2"),
        ([host("n1"), host("zz")], {}, "is the name of no host of the fabric"),
        ([host("n1"), host("n1")], {}, "is given to readings 0 and 1"),
        ([host("a"), host("b")], {"hosts": "all"}, "there are 2 readings of hosts"),
        ([host()], {"hosts": {0: "n[1-3]"}}, "'n3': is no host of the fabric"),
        ([host()], {"hosts": {0: "n[1-2]", 7: "n1"}}, "7: is no reading of a host"),
        ([host(guids=())], {"hosts": "all"}, "has no NIC in its file"),
        ([host(guids=("", "", ""), gpus=3)], {"hosts": "all"}, None),
        ([host(guids=("",))], {"hosts": {0: "n[1-2]"}, "domains": {"d": ["n9"]}}, "is no host that has a reading"),
        ([host()], {"hosts": "all", "domains": {"d": ["n1"], "e": ["n1"]}}, "is in domain 'd' too"),
        ([host(switch=False)], {"hosts": "all", "domains": {"d": ["n1"]}}, "no scale-up switch"),
        ([host()], {"hosts": "all", "domains": "blocks"}, "no host of the fabric names its block"),
    ],
)
def test_what_finds_no_partner(readings: list[Reading], options: dict, says: str | None) -> None:
    if says is None:  # more NICs than ports, but HCA-1 and HCA-2 say which
        assert graph_of(join(readings, read_text(FABRIC), **options)).number_of_nodes() == 3 + 2 * 7
        return
    with pytest.raises(InputError, match=says.replace("[", r"\[")):
        join(readings, read_text(FABRIC), **options)


def test_nics_that_cannot_be_told_apart_are_refused() -> None:
    fabric = read_text(FABRIC.replace("HCA-1", "mlx5_8").replace("HCA-2", "mlx5_9"))
    with pytest.raises(InputError, match="has 3 NICs in its file and 2 cabled ports"):
        join(host(guids=("", "", ""), gpus=3), fabric, hosts="all")


def test_a_fabric_without_hosts_is_refused() -> None:
    with pytest.raises(InputError, match="must have a graph with hosts"):
        join(host(), host())
