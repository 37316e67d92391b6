"""Has the graph of a SimGrid platform the very routes that SimGrid itself gives?

simgrid-3.32-routes.json was printed by SimGrid 3.32: latency and narrowest bandwidth of the route
of every pair of hosts, and the largest sum over pairs of one byte each / bandwidth of a link.
"""

from __future__ import annotations

import json
from collections import deque
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

import topo
from collectives import cost
from topo import InputError, build, check, write
from topo.readers._reading import Source
from topo.readers._simgrid import SIMGRID_XML

from .sim_files import FOLDER, graph_of, kinds, read, source, survives

ORACLE = json.loads((FOLDER / "simgrid-3.32-routes.json").read_text())
HEAD = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM 'simgrid.dtd'>\n<platform version='4.1'>\n"


def platform(body: str) -> Source:
    return Source("f", f"{HEAD}{body}\n</platform>\n")


def faults(found: Source) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        SIMGRID_XML.read(found)
    return [(fault.place, fault.rule) for fault in caught.value.faults]


def routes(graph: nx.Graph[str]) -> dict[tuple[str, str], tuple[float, float]]:
    """Latency and bandwidth of the path with fewest hops between all hosts, only through nodes that forward."""
    found = {}
    hosts = [node for node, kind in graph.nodes(data="kind") if kind == "host"]
    for host in hosts:
        paths, queue = {host: [host]}, deque([host])
        while queue:
            node = queue.popleft()
            if node != host and not graph.nodes[node]["forwards"]:
                continue
            for other in graph[node]:
                if other not in paths:
                    paths[other] = [*paths[node], other]
                    queue.append(other)
        for other in hosts:
            if other != host:
                links = [graph.edges[ends] for ends in pairwise(paths[other])]
                late, wide = sum(link["latency"] for link in links), min(link["bandwidth"] for link in links)
                found[host, other] = late, wide
    return found


def short(name: str, host: str) -> str:
    """The name of a host in the oracle: of a data centre only its cabinet, which all its routes depend on."""
    return host.split("-")[0] if "data_center" in name else host.removesuffix(".simgrid.org")


@pytest.mark.parametrize("name", sorted(ORACLE))
def test_every_route_is_that_of_simgrid(name: str) -> None:
    graph = graph_of(read(SIMGRID_XML, name))
    assert check(graph) == []
    found = routes(graph)
    n = sum(kind == "host" for _, kind in graph.nodes(data="kind"))
    assert len(found) == n * (n - 1)
    assert {f"{short(name, a)} {short(name, b)}" for a, b in found} == set(ORACLE[name]["routes"])
    for (a, b), there in found.items():
        assert there == pytest.approx(ORACLE[name]["routes"][f"{short(name, a)} {short(name, b)}"], rel=1e-9)


@pytest.mark.parametrize("name", sorted(ORACLE))
def test_the_busiest_link_is_that_of_simgrid(name: str) -> None:
    graph = graph_of(read(SIMGRID_XML, name))
    n = sum(kind == "host" for _, kind in graph.nodes(data="kind"))
    assert cost(graph, "all_to_all", n * 1e6).bandwidth_seconds == pytest.approx(1e6 * ORACLE[name]["busiest"])


def test_the_data_centre_by_hand() -> None:
    """Up, backbone, two cabinet links, backbone, down: 600 us; within a cabinet 300 us; 125 MB/s."""
    reading = read(SIMGRID_XML, "simgrid-data_center.xml")
    graph = graph_of(reading)
    assert kinds(graph)["host"] == 40 + 50 + 30
    found = routes(graph)
    assert found["cb1-1.dc1.acloud.com", "cb3-30.dc1.acloud.com"] == pytest.approx((600e-6, 125e6))
    assert found["cb2-1.dc1.acloud.com", "cb2-50.dc1.acloud.com"] == pytest.approx((300e-6, 125e6))
    # cabinet 2's backbone carries 50 x 49 pairs within and 2 x 50 x 70 in and out, at 1.25 GB/s
    assert ORACLE["simgrid-data_center.xml"]["busiest"] == pytest.approx((50 * 49 + 2 * 50 * 70) / 1.25e9)
    assert any("SHARED" in note for note in reading.notes)


def test_a_crossbar_of_65536_hosts() -> None:
    graph = graph_of(read(SIMGRID_XML, "simgrid-cluster_crossbar.xml"))
    assert kinds(graph) == {"host": 65536, "switch": 1}
    assert not graph.is_directed()
    hub = "node-cluster-crossbar_router.simgrid.org"
    data = graph.edges["node-65535.simgrid.org", hub]
    assert (data["bandwidth"], data["latency"]) == pytest.approx((125e6, 50e-6))


def test_the_fat_tree_has_its_cables() -> None:
    graph = graph_of(read(SIMGRID_XML, "simgrid-cluster_fat_tree.xml"))
    assert kinds(graph) == {"host": 16, "switch": 6}
    tops = [node for node in graph if node.startswith("bob_cluster/switch2.")]
    assert len(tops) == 2
    for top in tops:
        assert [graph.edges[top, leaf]["lanes"] for leaf in graph[top]] == [2] * 4
        assert {graph.edges[top, leaf]["bandwidth"] for leaf in graph[top]} == {250e6}


def test_the_torus_is_that_of_its_sides() -> None:
    graph = graph_of(read(SIMGRID_XML, "simgrid-cluster_torus.xml"))
    assert kinds(graph) == {"host": 12}
    assert {degree for _, degree in graph.degree()} == {4}
    assert all(graph.nodes[node]["forwards"] for node in graph)


def test_a_dragonfly_has_its_three_colours() -> None:
    body = (
        "<cluster id='d' topology='DRAGONFLY' topo_parameters='3,4;4,3;5,1;2' prefix='n' radical='0-119' suffix=''"
        " speed='1Gf' bw='125MBps' lat='50us'/>"
    )
    graph = graph_of(SIMGRID_XML.read(platform(body)))
    assert kinds(graph) == {"host": 120, "switch": 60}
    lanes = [data["lanes"] for a, b, data in graph.edges(data=True) if "router" in a and "router" in b]
    assert sorted(lanes) == sorted([4] * 3 + [3] * (3 * 5 * 6) + [1] * (12 * 10))
    # router j of group i is joined to router i of group j
    assert graph.has_edge("d/router1", "d/router20")
    assert graph.has_edge("d/router2", "d/router40")
    assert graph.has_edge("d/router22", "d/router41")
    assert graph.edges["d/router5", "d/router0"]["bandwidth"] == 3 * 125e6
    few = body.replace("3,4;4,3;5,1", "10,4;2,3;3,1")
    assert faults(platform(few))[0][0] == "line 4 <cluster d> topo_parameters"


@pytest.mark.parametrize(
    "graph",
    [
        build("switched", n=8, planes=4, bandwidth="450 GB/s"),
        build("full_mesh", n=6),
        build("ring", n=5),
        build("leaf_spine", leaves=4, spines=1, hosts=4, oversubscription=2.0),
        topo.load("hgx-h100-8", domains=2),
    ],
    ids=["switch", "mesh", "ring", "tree", "hgx"],
)
def test_what_this_project_writes_costs_the_same(tmp_path: Path, graph: nx.Graph[str]) -> None:
    """SimGrid 3.32 itself, given these files, ends an all-to-all of 100 MB a pair at the same second (1e-9)."""
    text = write(graph, tmp_path / "net.xml").read_text()
    back = graph_of(SIMGRID_XML.read(Source("net.xml", text)))
    assert kinds(back)["host"] == kinds(graph)["gpu"]
    there = cost(graph, "all_to_all", 1e8)
    again = cost(back, "all_to_all", 1e8)
    assert again.seconds == pytest.approx(there.seconds, rel=1e-12)
    assert again.latency_seconds == pytest.approx(there.latency_seconds, rel=1e-12)


def test_a_file_of_this_project_keeps_its_switches(tmp_path: Path) -> None:
    graph = build("leaf_spine", leaves=4, spines=1, hosts=4, oversubscription=2.0)
    text = write(graph, tmp_path / "net.xml").read_text()
    back = graph_of(SIMGRID_XML.read(Source("net.xml", text)))
    assert nx.utils.edges_equal(
        [tuple(sorted(ends)) for ends in back.edges()], [tuple(sorted(ends)) for ends in graph.edges()]
    )


ZONE = """<zone id='z' routing='Full'>
<host id='a' speed='1Gf'/><host id='b' speed='1Gf'/><host id='c' speed='1Gf'/><router id='r'/>
<link id='ab' bandwidth='1GBps' latency='1us'/><link id='bc' bandwidth='1GBps' latency='1us'/>
<link id='far' bandwidth='1GBps' latency='1us'/>
{}
</zone>"""


def route(a: str, b: str, *links: str, both: bool = True) -> str:
    inside = "".join(f"<link_ctn id='{link}'/>" for link in links)
    return f"<route src='{a}' dst='{b}' symmetrical='{'YES' if both else 'NO'}'>{inside}</route>\n"


def test_routes_that_no_graph_has_are_refused() -> None:
    near = route("a", "b", "ab") + route("b", "c", "bc") + route("a", "c", "far")
    assert routes(graph_of(SIMGRID_XML.read(platform(ZONE.format(near)))))["a", "c"] == pytest.approx((1e-6, 1e9))
    # from a to c it is three links, but the route from r to c says that after far comes c
    detour = route("a", "c", "ab", "far", "bc") + route("r", "c", "far")
    assert "no graph has these routes" in faults(platform(ZONE.format(detour)))[0][1]
    # ab and far both lead from a to r, and each has a route of its own
    beside = route("a", "r", "ab", both=False) + route("r", "c", "bc", both=False)
    beside += route("a", "c", "far", "bc", both=False)
    assert "is beside another link" in faults(platform(ZONE.format(beside)))[0][1]


def test_pairs_without_a_route_are_said() -> None:
    reading = SIMGRID_XML.read(platform(ZONE.format(route("a", "b", "ab") + route("b", "c", "bc"))))
    assert "zone z: 1 pairs have no route in the file; here they may have a path" in reading.notes


def test_a_fatpipe_is_as_if_everybody_had_his_own() -> None:
    """Two clusters of four hosts of 1 GB/s over a FATPIPE of 1 GB/s: hosts send 7 chunks, nothing else binds."""
    cluster = "<cluster id='{0}' prefix='{0}' radical='0-3' suffix='' speed='1Gf' bw='1GBps' lat='1us'/>"
    body = "<zone id='z' routing='Full'>" + cluster.format("k") + cluster.format("m")
    body += "<link id='far' bandwidth='1GBps' latency='5us' sharing_policy='{}'/>"
    body += "<zoneRoute src='k' dst='m' gw_src='kk_router' gw_dst='mm_router'><link_ctn id='far'/></zoneRoute></zone>"
    fat, shared = (graph_of(SIMGRID_XML.read(platform(body.format(policy)))) for policy in ("FATPIPE", "SHARED"))
    assert cost(fat, "all_to_all", 8e6).bandwidth_seconds == pytest.approx(7e6 / 1e9)
    assert cost(shared, "all_to_all", 8e6).bandwidth_seconds == pytest.approx(2 * 16e6 / 1e9)
    assert cost(fat, "send", 1e6, stages=[["k0"], ["m0"]]).latency_seconds == pytest.approx(7e-6)


def test_half_duplex_neighbours_share_one_link() -> None:
    """A torus with a side of 2: SimGrid's routes take one link between the two, half duplex where SHARED."""
    body = (
        "<cluster id='t' topology='TORUS' topo_parameters='2' prefix='n' radical='0-1' suffix='' speed='1Gf'"
        " bw='1GBps' lat='1us' sharing_policy='SHARED'/>"
    )
    graph = graph_of(SIMGRID_XML.read(platform(body)))
    assert kinds(graph) == {"host": 2, "switch": 2}
    assert cost(graph, "all_to_all", 2e6).bandwidth_seconds == pytest.approx(2e6 / 1e9)


def test_bare_numbers_and_binary_units() -> None:
    body = "<cluster id='k' prefix='n' radical='0-1' suffix='' speed='1Gf' bw='{}' lat='{}'/>"
    for bandwidth, latency, rate, late in (
        ("1.25E8", "2.4E-5", 1.25e8, 24e-6), ("1MiBps", "1ms", 2.0**20, 1e-3), ("8Kibps", "5ns", 1024.0, 5e-9),
    ):  # fmt: skip
        graph = graph_of(SIMGRID_XML.read(platform(body.format(bandwidth, latency))))
        data = graph.edges["n0", "nk_router"]
        assert (data["bandwidth"], data["latency"]) == (pytest.approx(rate), pytest.approx(late))


def test_what_is_wrong_is_said_with_its_line() -> None:
    good = source("simgrid-cluster_fat_tree.xml").text
    line = next(n for n, row in enumerate(good.split("\n"), 1) if 'id="bob_cluster"' in row)
    place = f"line {line} <cluster bob_cluster>"
    assert faults(Source("f", good.replace('"0-15"', '"0-14"')))[0] == (
        f"{place} radical", "makes 15 hosts, and topo_parameters 2;4,4;1,2;1,2 needs 16",
    )  # fmt: skip
    assert faults(Source("f", good.replace('"0-15"', '"15-0"')))[0][0] == f"{place} radical"
    assert faults(Source("f", good.replace('"0-15"', '"0-99999999"')))[0][0] == f"{place} radical"
    assert faults(Source("f", good.replace("125MBps", "125MBs")))[0][0] == f"{place} bw"
    assert faults(Source("f", good.replace("FAT_TREE", "FAT_TREES")))[0][0] == f"{place} topology"
    assert faults(Source("f", good.replace("2;4,4;1,2;1,2", "2;4,4;1,2")))[0][0] == f"{place} topo_parameters"
    assert faults(Source("f", good.replace("topo_parameters", "topo_parameter")))[0][1] == "is no attribute of it"
    assert faults(platform("<include file='other.xml'/>"))[0][1] == "is not read in a zone of Full routing"
    deep = "<zone id='z' routing='Full'>" * 60 + "</zone>" * 60
    assert faults(platform(deep))[0][1] == "is within more than 50 zones"
    centre = source("simgrid-data_center.xml").text
    number = next(n for n, row in enumerate(centre.split("\n"), 1) if '<zone id="dataCenter1"' in row)
    assert faults(Source("f", centre.replace('routing="Full"', 'routing="Vivaldi"')))[0][0] == (
        f"line {number} <zone dataCenter1> routing"
    )
    assert (
        faults(Source("f", centre.replace('<link_ctn id="link_dc1_cb2"/>', '<link_ctn id="cb2"/>')))[0][1]
        == "is no link"
    )
    twice = centre.replace("cb3-cabinet3_router", "cb3-1", 1)
    assert "has several gateways" in faults(Source("f", twice))[0][1]
    assert faults(Source("f", good[: len(good) // 2]))[0][0].startswith("line ")


def test_entities_are_refused() -> None:
    text = "<!DOCTYPE platform [<!ENTITY x 'y'>]><platform version='4.1'>&x;</platform>"
    assert faults(Source("f", text)) == [("line 1", "entities and external references are refused")]


@pytest.mark.parametrize("name", ["simgrid-cluster_fat_tree.xml", "simgrid-own-routes.xml", "simgrid-own-clusters.xml"])
def test_damaged_files_never_break_it(name: str) -> None:
    survives(SIMGRID_XML, source(name).text, check)
