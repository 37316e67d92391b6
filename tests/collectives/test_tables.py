"""Do forwarding tables of a real subnet manager give the loads that another program counted?"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import collectives
import topo
from topo import InputError, Tables

FABRICS = Path(__file__).parents[1] / "data" / "readers-fabric"
#: Graph of each simulated fabric, and the engines whose tables there are.
FILES = {"ft2_32": "opensm/ft2_32.subnet.lst", "torus44": "ibnetdiscover-sim-torus44.txt"}
ORACLE: dict[str, Any] = json.loads((FABRICS / "opensm" / "link_load_oracle.json").read_text())


@cache
def read_graph(fabric: str) -> nx.Graph:
    graph = topo.read(FABRICS / FILES[fabric]).graph
    assert graph is not None
    return graph


def fabric_graph(fabric: str) -> nx.Graph:
    return copy.deepcopy(read_graph(fabric))


@cache
def tables(run: str) -> Tables:
    routing = topo.read(FABRICS / "opensm" / f"{run}.lfts.dump").routing
    assert routing is not None
    return routing


@pytest.mark.parametrize("run", ORACLE)
def test_routes_per_link_between_switches(run: str) -> None:
    """OpenSM 3.3.23 on simulated fabrics; most and least routes of ordered pairs of end ports, counted elsewhere."""
    routes = topo.route(fabric_graph(run.rpartition("_")[0]), tables(run))
    view, known = routes.fabric, ORACLE[run]
    n = view.n_ranks
    cost = collectives.cost(view, "all_to_all", float(n), routing=routes)
    switch = view.node_kind == topo.NODE_KINDS.index("switch")
    between = cost.loads[switch[view.source] & switch[view.target]]
    assert (n, len(between)) == (known["end_ports"], known["sw_sw_directed_links"])
    assert between.max() == known["max_routes_on_sw_sw_link"]
    assert between.min() == known["min_routes_on_sw_sw_link"]
    histogram = {int(hops): pairs for hops, pairs in known["hop_histogram"].items()}
    assert Counter(topo.hop_counts(routes)[~np.eye(n, dtype=bool)].tolist()) == histogram
    assert cost.loads.sum() == sum(hops * pairs for hops, pairs in histogram.items())  # a byte a pair, on every hop
    assert cost.loads.max() == known["max_routes_on_any_link"]
    assert cost.routing.startswith("table (")
    assert not list(routes.unreachable())


def test_links_are_named_by_port() -> None:
    routes = topo.route(fabric_graph("ft2_32"), tables("ft2_32_ftree"))
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
    graph, whole = fabric_graph("ft2_32"), tables("ft2_32_ftree")
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
    with pytest.raises(
        InputError, match=f"{why}.*join them and the tables do not: correct the tables, or take routing"
    ):
        collectives.cost(graph, "all_to_all", 1e6, routing=changed)
    assert collectives.cost(graph, "all_to_all", 1e6, routing="ecmp").seconds > 0
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
        topo.route(topo.build("fat_tree", k=4), tables("ft2_32_ftree"))
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
