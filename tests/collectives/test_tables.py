"""Do forwarding tables of a real subnet manager give the loads that another program counted?"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from topo import InputError
from topo.readers._reading import Tables

DATA: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "opensm-tables.json").read_text())


def fabric_graph(fabric: str) -> nx.Graph:
    """Return the graph of a simulated fabric, as a reader builds it."""
    graph = nx.Graph(name=fabric)
    nodes = DATA[fabric]["nodes"]
    for guid, (name, kind, lid) in nodes.items():
        graph.add_node(name, kind=kind, guid=guid, **({"lids": {"1": lid}} if kind == "host" else {"lid": lid}))
    order = {name: i for i, name in enumerate(graph)}
    for a, p, b, q in DATA[fabric]["cables"]:
        (one, port), (other, far) = sorted([(nodes[a][0], p), (nodes[b][0], q)], key=lambda end: order[end[0]])
        if graph.has_edge(one, other):
            data = graph.edges[one, other]
            data.update(ports=[*data["ports"], [port, far]], lanes=data["lanes"] + 1, bandwidth=data["bandwidth"] + 1e9)
        else:
            graph.add_edge(one, other, kind="scale-out", bandwidth=1e9, latency=0.0, lanes=1, ports=[[port, far]])
    return graph


def tables(fabric: str, engine: str) -> Tables:
    lids = DATA[fabric]["lids"]
    rows = DATA[fabric]["tables"][engine].items()
    return Tables(
        engine, {guid: {lid: p for lid, p in zip(lids, ports, strict=True) if p >= 0} for guid, ports in rows}
    )


@pytest.mark.parametrize(("fabric", "engine"), [(f, e) for f, data in DATA.items() for e in data["tables"]])
def test_routes_per_link_between_switches(fabric: str, engine: str) -> None:
    """OpenSM 3.3.23 on simulated fabrics; most and least routes of ordered pairs of end ports, counted elsewhere."""
    routes = topo.route(fabric_graph(fabric), tables(fabric, engine))
    view = routes.fabric
    n = view.n_ranks
    cost = collectives.cost(view, "all_to_all", float(n), routing=routes)
    switch = view.node_kind == topo.NODE_KINDS.index("switch")
    between = cost.loads[switch[view.source] & switch[view.target]]
    most, least, histogram = DATA[fabric]["oracle"][engine]
    assert (between.max(), between.min()) == (most, least)
    assert len(between) == 64
    assert Counter(topo.hop_counts(routes)[~np.eye(n, dtype=bool)].tolist()) == {
        int(h): k for h, k in histogram.items()
    }
    assert cost.routing == f"table ({engine})"
    assert cost.loads.sum() == sum(int(h) * k for h, k in histogram.items())  # a byte a pair, conserved hop by hop
    assert not list(routes.unreachable())


def test_links_are_named_by_port() -> None:
    routes = topo.route(fabric_graph("ft2_32"), tables("ft2_32", "ftree"))
    labels = {routes.fabric.link_label(link) for link in range(len(routes.fabric.source))}
    assert "node001[1] -> leaf01[1]" in labels
    assert "leaf01[5] -> spine01[1]" in labels


# --- what a table may leave out --------------------------------------------------------------------------------------


def switch(graph: nx.Graph, name: str) -> str:
    return graph.nodes[name]["guid"]


def lid(graph: nx.Graph, name: str) -> int:
    return graph.nodes[name]["lids"]["1"]


def broken(edit: dict[str, dict[str, int | None]]) -> tuple[nx.Graph, Tables]:
    """Return the fat tree, its tables changed: switch -> destination -> port, None to leave the entry out."""
    graph, whole = fabric_graph("ft2_32"), tables("ft2_32", "ftree")
    rows = {guid: dict(row) for guid, row in whole.next_port.items()}
    for name, entries in edit.items():
        for host, port in entries.items():
            row = rows[switch(graph, name)]
            row.pop(lid(graph, host), None)
            if port is not None:
                row[lid(graph, host)] = port
    return graph, dataclasses.replace(whole, next_port=rows)


@pytest.mark.parametrize(
    ("edit", "pairs", "why"),
    [
        # node032 hangs on leaf08: without an entry there nobody reaches it, without leaf01's not the four of leaf01
        ({"leaf01": {"node032": None}}, 4, "leaf01 has no entry for LID"),
        ({"leaf08": {"node032": None}}, 31, "leaf08 has no entry for LID"),
        ({"leaf01": {"node032": 99}}, 4, "port 99 of leaf01 leads nowhere"),
        ({"leaf01": {"node032": 0}}, 4, "port 0 of leaf01 leads nowhere"),
        ({"leaf01": {"node032": 1}}, 4, "node001 has no table"),
    ],
)
def test_entries_that_lead_nowhere_are_named(edit: dict, pairs: int, why: str) -> None:
    graph, changed = broken(edit)
    routes = topo.route(graph, changed)
    lost = list(routes.unreachable())
    assert len(lost) == pairs
    assert {b for _, b, _ in lost} == {"node032"}
    assert all(why in reason for _, _, reason in lost)
    with pytest.raises(InputError, match=why):
        collectives.cost(graph, "all_to_all", 1e6, routing=changed)
    others = [name for name in routes.fabric.rank_labels if name != "node032"]
    assert collectives.cost(graph, "all_to_all", 31e9, routing=changed, ranks=others).seconds > 0


def test_a_loop_is_named() -> None:
    graph, whole = broken({})
    to_spine = whole.next_port[switch(graph, "leaf01")][lid(graph, "node032")]
    ports = {b: data["ports"][0] for b, data in graph["leaf01"].items()}
    spine, back = next((b, far) for b, (port, far) in ports.items() if port == to_spine)
    graph, changed = broken({spine: {"node032": back}})
    lost = list(topo.route(graph, changed).unreachable())
    reasons = {reason for a, _, reason in lost if a == "node001"}
    assert reasons == {f"LID {lid(graph, 'node032')} loops: leaf01 -> {spine} -> leaf01"}


def test_tables_of_another_fabric_and_ranks_without_lids() -> None:
    with pytest.raises(InputError, match="the graph does not have"):
        topo.route(fabric_graph("ft2_32"), Tables("", {"0x00000000deadbeef": {1: 1}}))
    with pytest.raises(InputError, match="has no LID and no NIC that has one") as caught:
        topo.route(topo.build("fat_tree", k=4), tables("ft2_32", "ftree"))
    assert len(caught.value.faults) == 17


def test_the_name_alone_asks_for_the_tables() -> None:
    with pytest.raises(InputError, match=r"needs the forwarding tables.* routing=topo\.read"):
        topo.route(fabric_graph("ft2_32"), "table")


def test_tables_send_gpus_over_their_nearest_nic() -> None:
    """Two hosts of two GPUs; every GPU has a NIC with a LID of its own, and scale-up links are not used."""
    graph = nx.Graph()
    graph.add_node("leaf", kind="switch", guid="0x1")
    for h in range(2):
        for g in range(2):
            gpu, nic = f"h{h}/gpu{g}", f"h{h}/nic{g}"
            graph.add_node(gpu, kind="gpu", host=f"h{h}")
            graph.add_node(nic, kind="nic", host=f"h{h}", lids={"1": 10 * h + g + 1})
            graph.add_edge(gpu, nic, kind="pcie", bandwidth=60e9, latency=0.0)
            graph.add_edge(nic, "leaf", kind="scale-out", bandwidth=50e9, latency=0.0, ports=[[2 * h + g + 1, 1]])
        graph.add_edge(f"h{h}/gpu0", f"h{h}/gpu1", kind="scale-up", bandwidth=900e9, latency=0.0)
    found = Tables("", {f"0x{1:016x}": {1: 1, 2: 2, 11: 3, 12: 4}})
    routes = topo.route(graph, found)
    assert topo.hop_counts(routes).tolist() == (4 - 4 * np.eye(4, dtype=int)).tolist()
    cost = collectives.cost(graph, "all_to_all", 4e9, routing=routes)
    assert cost.classes["scale-up"].n_bytes == 0.0
    assert cost.seconds == pytest.approx(3 / 50, rel=1e-12)
