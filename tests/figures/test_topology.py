"""Is every topology drawn whole: its numbers, its links and loads, and no text over another?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import collectives
import figures
import topo
from figures._scene import scene
from figures._words import counted

from .drawn import cropped, labels, overlapping, text_boxes

DESIGNS = [("gb200-nvl72", 1), ("gb200-nvl72", 2), ("gb200-nvl72", 4), ("hgx-h100-8", 2), ("hgx-h100-8", 16),
           ("mi300x-8", 2)]  # fmt: skip


@cache
def drawn(name: str, domains: int, loaded: bool) -> Axes:
    graph = topo.load(name, domains=domains)
    return figures.draw_topology(graph, collectives.cost(graph, "all_to_all", 1e9) if loaded else None)


def shapes(ax: Axes, gid: str) -> list[Patch]:
    return [patch for patch in ax.patches if patch.get_gid() == gid]


def lines(ax: Axes) -> LineCollection:
    (found,) = (c for c in ax.collections if c.get_gid() == "links")
    assert isinstance(found, LineCollection)
    return found


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(("name", "domains"), DESIGNS)
def test_no_text_is_covered_or_cropped(name: str, domains: int, loaded: bool) -> None:
    ax = drawn(name, domains, loaded)
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_two_racks_are_drawn_in_full() -> None:
    ax = drawn("gb200-nvl72", 2, True)
    assert len(shapes(ax, "gpu")) == 144
    assert len(shapes(ax, "switch")) == 2 + 5 + 3
    assert len(shapes(ax, "frame")) == 2
    assert {"rack 0", "rack 1", "5 leaves", "3 spines", "leaf4", "spine2"} <= set(labels(ax))
    assert labels(ax).count("18 switch planes, 900 GB/s per GPU") == 2
    assert ax.get_title(loc="left") == "gb200-nvl72 x 2: 144 GPUs, all-to-all bound by scale-out"


def test_without_a_cost_links_are_coloured_by_kind() -> None:
    ax = drawn("gb200-nvl72", 2, False)
    assert ax.get_title(loc="left") == "gb200-nvl72 x 2: 144 GPUs under 5 leaves, 3 spines"
    legend = ax.get_legend()
    assert legend is not None
    assert {"scale-up link", "scale-out link", "GPU"} <= {text.get_text() for text in legend.get_texts()}
    assert len(np.unique(lines(ax).get_colors(), axis=0)) == 2


def test_domains_that_are_no_racks_are_called_domains() -> None:
    ax = drawn("hgx-h100-8", 2, False)
    assert {"domain 0", "domain 1", "each box: 4 switch planes, 450 GB/s per GPU"} <= set(labels(ax))
    assert {str(rank) for rank in range(16)} <= set(labels(ax))


def test_a_full_mesh_shows_its_wires() -> None:
    ax = drawn("mi300x-8", 2, False)
    assert "each box: full mesh, 64 GB/s per pair" in labels(ax)
    assert sum(len(path.vertices) == 2 for path in lines(ax).get_paths()) == 2 * (28 + 8)  # pairs, and taps


def test_a_rack_apart_has_no_fabric() -> None:
    ax = drawn("gb200-nvl72", 1, True)
    assert ax.get_title(loc="left") == "gb200-nvl72 x 1: 72 GPUs, all-to-all bound by scale-up"
    assert len(lines(ax).get_paths()) == 72


@pytest.mark.parametrize(("name", "domains"), [("gb200-nvl72", 16), ("mi300x-8", 128)])
def test_what_is_too_much_is_elided(name: str, domains: int) -> None:
    ax = figures.draw_topology(topo.load(name, domains=domains))
    assert cropped(ax) == []
    assert overlapping(ax) == []
    boxes = [text for text in labels(ax) if text.startswith(("rack ", "domain "))]
    more = next(text for text in labels(ax) if text.startswith("…") and ("racks" in text or text.endswith("more")))
    said = [int(text.split()[1]) for text in labels(ax) if text.startswith("…")]
    assert domains - len(boxes) in said, more
    assert 4 <= len(boxes) <= 12


def test_three_levels_are_labelled_and_boxes_apart() -> None:
    small = {
        "design.domain_size": 8,
        "design.gpus_per_host": 4,
        "scale_out.radix": 8,
        "scale_out.oversubscription": 3.3,
    }
    ax = figures.draw_topology(topo.load("gb200-nvl72", domains=12, overrides=small))
    assert {f"{pod}/{plane}" for pod in (0, 1, 2, 5) for plane in range(2)} <= set(labels(ax))
    assert {"12 spines,\npod/spine", "24 leaves", "6 cores", "leaf0", "core1.2", "… 5 more"} <= set(labels(ax))
    assert {"pod 0", "pod 1", "pod 2", "… 2 more pods", "pod 5"} <= set(labels(ax))
    racks = sorted((box for t, boxes in text_boxes(ax).items() for box in boxes if t.startswith("rack")),
                   key=lambda box: box.x0)  # fmt: skip
    assert min(b.x0 - a.x1 for a, b in pairwise(racks)) > 10
    assert cropped(ax) == []
    assert overlapping(ax) == []


@pytest.mark.parametrize("name", ["RACK WWW MMM {} OF THE NORTH", "row 7, aisle {}", "{}"])
def test_labels_of_twelve_boxes_do_not_touch(name: str) -> None:
    graph: nx.Graph[Any] = nx.Graph()
    for r in range(12):
        graph.add_node(f"{r}", kind="gpu", rack=name.format(r))
        edge(graph, f"{r}", "switch", "scale-out")
    graph.nodes["switch"]["kind"] = "switch"
    ax = figures.draw_topology(graph)
    found = text_boxes(ax)
    boxes = sorted((box for t in labels(ax) if name.split("{")[0] in t and t[-1] != ";" for box in found[t]
                    if t.startswith(("RACK", "row", "rack "))), key=lambda box: box.x0)  # fmt: skip
    assert len(boxes) >= 4
    assert min(b.x0 - a.x1 for a, b in pairwise(boxes)) > 3


@pytest.mark.parametrize(
    ("names", "shown", "row"),
    [
        ([f"spine-switch-{i:02}" for i in range(4)], ["00", "01", "02", "03"], "4 switches,\nspine-switch"),
        (["switch-of-the-north", "switch-of-the-south"], ["…he-north", "…he-south"], "2 switches"),
        (["the north wind", "a southern one"], ["the nort…", "a southe…"], "2 switches"),
    ],
)
def test_switches_with_long_names_are_told_apart(names: list[str], shown: list[str], row: str) -> None:
    graph: nx.Graph[Any] = nx.Graph()
    for name in names:
        graph.add_node(name, kind="switch", tier="leaf" if "leaf" in row else None)
        for gpu in range(4):
            graph.add_node(gpu, kind="gpu")
            edge(graph, gpu, name, "scale-out")
    ax = figures.draw_topology(graph)
    assert {*shown, row} <= set(labels(ax))
    assert overlapping(ax) == []


def test_one_is_not_many() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_nodes_from("abc", kind="gpu", domain=0)
    edge(graph, "a", "b")
    edge(graph, "b", "c", "pcie")
    assert "domain 0: 1 direct link, 50 GB/s per pair" in labels(figures.draw_topology(graph))
    assert counted(1, "rack") == "1 rack"
    assert [counted(1024, word) for word in ("box", "leaf", "switch", "GPU")] == \
        ["1,024 boxes", "1,024 leaves", "1,024 switches", "1,024 GPUs"]  # fmt: skip
    wide = [f"a rack in {'the very long aisle ' * 8}{i}" for i in range(3)]
    graph = nx.Graph()
    for rack in wide:
        graph.add_node(rack, kind="gpu", rack=rack)
    assert any(text.startswith("… 1 more") and not text.endswith("s") for text in labels(figures.draw_topology(graph)))


def test_unfolded_planes_are_drawn_each() -> None:
    ax = figures.draw_topology(topo.load("hgx-h100-8", planes=True))
    assert len(shapes(ax, "switch")) == 4
    assert "domain 0: 4 switches, 450 GB/s per GPU" in labels(ax)
    assert len(lines(ax).get_paths()) == 8 * 4


def test_colour_is_the_load_of_the_busier_direction() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from("ab", kind="gpu")
    graph.add_edge("a", "b", kind="scale-up", bandwidth=10.0, latency=0.0)
    graph.add_edge("b", "a", kind="scale-up", bandwidth=20.0, latency=0.0)
    (link,) = scene(graph, np.array([5.0, 30.0]), seconds=2.0).links
    assert link.utilisation == pytest.approx(0.75)
    assert link.bandwidth == 20.0


def test_loads_follow_the_rows_of_a_fabric() -> None:
    graph = topo.load("gb200-nvl72", domains=2)
    fabric, cost = topo.Fabric.from_graph(graph), collectives.cost(graph, "all_to_all", 1e9)
    use = cost.loads / (fabric.bandwidth * cost.seconds)
    for seen in (scene(graph, cost.loads, cost.seconds), scene(fabric, cost.loads, cost.seconds)):
        found = {frozenset(link.ends): link.utilisation for link in seen.links}
        for row in range(0, len(use), 37):
            pair = frozenset((fabric.labels[fabric.source[row]], fabric.labels[fabric.target[row]]))
            assert found[pair] == pytest.approx(max(use[row], use[row ^ 1]))


def test_a_cost_of_another_graph_is_refused() -> None:
    cost = collectives.cost(topo.load("hgx-h100-8"), "all_to_all", 1e9)
    with pytest.raises(topo.InputError, match="has loads of 16 directed links and the graph has 144"):
        figures.draw_topology(topo.load("gb200-nvl72"), cost)


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(topo.InputError, match="is not a NetworkX graph"):
        figures.draw_topology([("a", "b")])  # type: ignore[arg-type]


def test_the_axes_passed_in_are_returned_and_alone_are_drawn_on() -> None:
    figure = Figure(figsize=(10, 5))
    left, right = figure.subplots(1, 2)
    assert figures.draw_topology(topo.load("hgx-h100-8", domains=2), ax=right) is right
    assert not left.has_data()
    assert cropped(right) == []


def test_the_graph_is_left_as_it_was() -> None:
    graph = topo.load("hgx-h100-8", domains=2)
    before = nx.node_link_data(graph, edges="edges")
    figures.draw_topology(graph)
    assert nx.node_link_data(graph, edges="edges") == before


# --- graphs built by hand --------------------------------------------------------------------------------------------


def edge(graph: Any, a: Any, b: Any, kind: str = "scale-up", bandwidth: float = 50e9) -> None:
    graph.add_edge(a, b, kind=kind, bandwidth=bandwidth, latency=0.0)


def bare() -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edges_from([(1, 2), (2, 3), (3, 3)])
    graph.add_node(9, kind=7, tier=["leaf"], domain={})
    graph.add_edge(10, 11, kind="scale-up", bandwidth=float("nan"))
    graph.add_edge(11, 12, kind="no such", bandwidth="fast")
    for node in (10, 11):
        graph.nodes[node].update(kind="gpu", rank="first", rack=None)
    return graph


def ring() -> nx.Graph[Any]:
    graph: nx.DiGraph[Any] = nx.DiGraph(name="ring")
    graph.add_nodes_from(range(16), kind="gpu")
    for i in range(16):
        edge(graph, i, (i + 1) % 16)
    return graph


def server() -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph()
    for host in "ab":
        for i in range(4):
            graph.add_node(f"{host}gpu{i}", kind="gpu", host=host)
            graph.add_node(f"{host}nic{i}", kind="nic", host=host)
            graph.add_node(f"{host}pcie{i}", kind="switch", host=host)
            edge(graph, f"{host}gpu{i}", f"{host}pcie{i}", "pcie")
            edge(graph, f"{host}nic{i}", f"{host}pcie{i}", "pcie")
            edge(graph, f"{host}cpu", f"{host}pcie{i}", "pcie")
            edge(graph, f"{host}nic{i}", f"tor{i % 2}", "scale-out")
        graph.nodes[f"{host}cpu"]["kind"] = "cpu"
    for tor in ("tor0", "tor1"):
        graph.nodes[tor]["kind"] = "switch"
        edge(graph, tor, "top", "scale-out")
    graph.nodes["top"]["kind"] = "switch"
    return graph


def hosts() -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph(name="routers")
    for r in range(12):
        graph.add_node(f"router {r}", kind="switch")
        graph.add_node(f"h{r}", kind="host")
        edge(graph, f"router {r}", f"h{r}", "scale-out")
        for other in range(r):
            edge(graph, f"router {r}", f"router {other}", "scale-out")
    return graph


def wide() -> nx.Graph[Any]:
    graph = nx.relabel_nodes(nx.grid_graph((8, 8, 8), periodic=True), str)
    nx.set_node_attributes(graph, "gpu", "kind")
    for _, _, data in graph.edges(data=True):
        data.update(kind="scale-up", bandwidth=1e11, latency=0.0)
    return graph


def joined_boxes() -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph(name="a name as long as only those come up with who have to find one every day")
    for d in range(3):
        for i in range(4):
            graph.add_node(f"{d}/{i}", kind="gpu", rack="row 7, aisle 12")
            edge(graph, f"{d}/{i}", f"{d}/hub")
            edge(graph, f"{d}/{i}", f"{(d + 1) % 3}/{i}", "scale-out")
        graph.nodes[f"{d}/hub"]["kind"] = "switch"
    return graph


ODD: list[Callable[[], Any]] = [nx.Graph, bare, ring, server, hosts, wide, joined_boxes]


@pytest.mark.parametrize("build", ODD)
def test_graphs_built_by_hand_are_drawn(build: Callable[[], Any]) -> None:
    ax = figures.draw_topology(build())
    assert cropped(ax) == []
    assert overlapping(ax) == []


def test_a_server_shows_its_nics_and_two_levels_of_switches() -> None:
    ax = figures.draw_topology(server())
    assert len(shapes(ax, "nic")) == 8
    assert len(shapes(ax, "cpu")) == 2
    assert {"2 switches", "1 switch", "a", "b"} <= set(labels(ax))
    assert ax.get_title(loc="left") == "8 GPUs under 2 switches, 1 switch"


def test_a_fabric_is_drawn_like_its_graph() -> None:
    fabric = topo.Fabric.from_graph(topo.load("gb200-nvl72", domains=2))
    ax = figures.draw_topology(fabric)
    assert len(shapes(ax, "gpu")) == 144
    assert labels(ax).count("switched, 900 GB/s per GPU") == 2


def test_the_check_of_texts_can_fail() -> None:
    ax = figures.draw_topology(topo.load("hgx-h100-8"))
    ax.text(10.0, 10.0, "over the legend")
    ax.text(5000.0, 10.0, "outside")
    assert {"over the legend"} == {a for pair in overlapping(ax) for a in pair if a.startswith("over")}
    assert cropped(ax) == ["outside"]


def test_an_announced_design_says_so() -> None:
    assert figures.draw_topology(topo.load("helios-72")).get_title(loc="left").startswith("helios-72 (announced)")
    assert "announced" not in figures.draw_topology(topo.load("gb200-nvl72")).get_title(loc="left")
