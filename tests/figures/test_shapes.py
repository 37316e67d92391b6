"""Does every shape look like what it is? Rings round, rows straight, groups together, nothing covered or cropped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import collectives
import figures
import topo
from figures._layout import lay_out
from figures._page import Layout
from figures._pictures import PICTURES
from figures._scene import scene
from figures._spots import Part, Spot
from figures._style import ORANGE
from figures._wires import run

from .drawn import flaws, labels

TWIST = {(0, 2): 4, (1, 2): 4}
SMALL: dict[str, dict[str, Any]] = {
    "switched": {"n": 8, "planes": 4}, "full_mesh": {"n": 8}, "hybrid_cube_mesh": {"pcie": "16 GB/s"},
    "bridge_pairs": {"n": 8}, "ring": {"n": 8}, "torus": {"dims": (4, 4, 8), "twist": TWIST}, "hypercube": {"dim": 4},
    "ultraserver": {}, "two_level": {"nodes": 4}, "rail_optimised": {"domains": 4, "domain_size": 8},
    "rail_only": {"domains": 4, "domain_size": 8}, "leaf_spine": {"leaves": 4, "spines": 2, "hosts": 8},
    "fat_tree": {"k": 4}, "multi_plane_fat_tree": {"planes": 4, "k": 4}, "hyperx": {"dims": (4, 4), "hosts": 2},
    "dragonfly": {"a": 4, "p": 2, "h": 2}, "slim_fly": {"q": 5}, "random_regular": {"n": 20, "degree": 4},
}  # fmt: skip
LARGE: dict[str, dict[str, Any]] = {
    "switched": {"n": 500}, "full_mesh": {"n": 60}, "bridge_pairs": {"n": 100}, "ring": {"n": 999},
    "torus": {"dims": (8, 8, 12)}, "hypercube": {"dim": 9}, "two_level": {},
    "rail_optimised": {"domains": 40, "domain_size": 8, "radix": 12},
    "rail_only": {"domains": 50, "domain_size": 8, "radix": 16},
    "leaf_spine": {"leaves": 32, "spines": 16, "hosts": 40},
    "fat_tree": {"k": 12}, "multi_plane_fat_tree": {"planes": 8, "k": 8}, "hyperx": {"dims": (9, 9), "hosts": 4},
    "dragonfly": {"a": 8, "p": 1, "h": 8}, "slim_fly": {"q": 9, "p": 2}, "random_regular": {"n": 300, "degree": 6},
}  # fmt: skip
CASES = [*SMALL.items(), *LARGE.items(), ("torus", {"dims": (4, 6)}), ("torus", {"dims": (8, 8), "twist": {(0, 1): 4}}),
         ("torus", {"dims": (1, 1, 1)}), ("torus", {"dims": (3, 300)}), ("torus", {"dims": (2, 2, 2, 100)}),
         ("torus", {"dims": (40,), "wrap": False}), ("torus", {"dims": (3, 5), "wrap": [True, False]}),
         ("hyperx", {"dims": (3, 4, 4), "hosts": 12}), ("dragonfly", {"a": 4, "p": 2, "h": 2, "groups": 2}),
         ("ring", {"n": 2})]  # fmt: skip


def laid(graph: nx.Graph[str]) -> Layout:
    return lay_out(scene(graph), 20.0)


@cache
def built(name: str) -> nx.Graph[str]:
    return topo.build(name, **SMALL[name])


def at(spot: Spot) -> tuple[float, float]:
    return spot.x, spot.y


def test_every_builder_is_drawn() -> None:
    assert set(topo.BUILDERS) == set(SMALL)


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=lambda value: str(value)[:40])
def test_no_text_is_covered_cropped_or_small(name: str, parameters: dict[str, Any]) -> None:
    ax = figures.draw_topology(topo.build(name, **parameters))
    assert flaws(ax) == []
    assert {6.999 < text.get_fontsize() < 12.001 for text in (*ax.texts, *_legend(ax))} == {True}
    width, height = ax.figure.get_size_inches()  # type: ignore[union-attr]
    assert max(width, height) < 16.0


def _legend(ax: Axes) -> Iterable[Any]:
    legend = ax.get_legend()
    return legend.get_texts() if legend else ()


@pytest.mark.parametrize("name", SMALL)
def test_links_have_the_colour_of_their_load(name: str) -> None:
    graph = built(name)
    try:
        cost = collectives.cost(graph, "all_to_all", 1e9)
    except topo.InputError:  # rails meet nowhere
        cost = collectives.cost(graph, "all_to_all", 1e9, ranks=[f"d{d}/gpu0" for d in range(4)])
    ax = figures.draw_topology(graph, cost)
    (lines,) = (c for c in ax.collections if c.get_gid() == "links")
    assert isinstance(lines, LineCollection)
    busiest = max(w.utilisation or 0.0 for w in run(scene(graph, cost.loads, cost.seconds), laid(graph)))
    assert busiest == pytest.approx(scene_busiest(graph, cost))
    assert not any(np.allclose(colour[:3], to_rgb(ORANGE)) for colour in lines.get_colors())  # twists have loads, too
    assert flaws(ax) == []


def scene_busiest(graph: nx.Graph[str], cost: collectives.Cost) -> float:
    return max(link.utilisation or 0.0 for link in scene(graph, cost.loads, cost.seconds).links)


@pytest.mark.parametrize("name", [name for name in SMALL if name not in ("switched",)])
def test_every_node_and_link_is_drawn_by_something(name: str) -> None:
    graph = built(name)
    seen, layout = scene(graph), laid(graph)
    assert set(graph) <= set(layout.stands_for)
    stood = {frozenset(layout.stands_for[node] for node in link.ends) for link in seen.links}
    assert sum(len(pair) == 2 for pair in stood) > 0
    wires = run(seen, layout)
    total = sum(link.bandwidth for link in seen.links if len({layout.stands_for[node] for node in link.ends}) == 2)
    halves = sum(wire.bandwidth for wire in wires)
    assert halves >= total * 0.999  # a stub at each end counts twice, a tap is part of its bundle


# --- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), [("ring", {"n": 12}), ("random_regular", {"n": 20, "degree": 4})])
def test_rings_and_random_networks_stand_on_a_circle(name: str, parameters: dict[str, Any]) -> None:
    graph = topo.build(name, **parameters)
    layout, nodes = laid(graph), [node for node in graph if name == "ring" or graph.nodes[node]["kind"] == "switch"]
    points = np.array([at(layout.spots[node]) for node in nodes])
    radius = np.linalg.norm(points - points.mean(axis=0), axis=1)
    assert radius == pytest.approx(radius[0])
    turns = np.unwrap(np.arctan2(*(points - points.mean(axis=0)).T[::-1]))
    assert np.diff(turns) == pytest.approx(2 * math.pi / len(nodes))


def test_a_ring_of_blocks_joins_neighbours_only() -> None:
    layout = laid(topo.build("ring", n=999))
    spots = list(layout.cells)
    assert len(spots) == 100
    lines = run(scene(topo.build("ring", n=999)), layout)
    lengths = {round(math.dist(*wire.points), 1) for wire in lines}
    assert len(lines) == 100
    assert max(lengths) - min(lengths) < 0.2


def test_a_torus_of_two_axes_stands_in_rows_and_wraps_beside_them() -> None:
    graph = topo.build("torus", dims=(4, 6))
    layout = laid(graph)
    for axis in (0, 1):
        lines: dict[int, set[float]] = {}
        for node, data in graph.nodes(data=True):
            spot, across = layout.spots[node], data["coordinates"][axis]
            lines.setdefault(across, set()).add(round(spot.x if axis == 1 else spot.y, 6))
        assert all(len(found) == 1 for found in lines.values())
    bent = [path for path in layout.paths.values() if len(path.lines[0]) > 2]
    assert len(bent) == 4 + 6
    assert not any(path.twisted for path in bent)


@pytest.mark.parametrize("twist", [None, TWIST])
def test_axes_of_a_torus_of_three_are_straight_and_no_two_chips_meet(twist: Any) -> None:
    graph = topo.build("torus", dims=(4, 4, 8), twist=twist)
    layout = laid(graph)
    base = np.array(at(layout.spots["gpu0"]))
    steps = {axis: np.array(at(layout.spots[f"gpu{n}"])) - base for axis, n in ((0, 1), (1, 4), (2, 16))}
    for node, data in graph.nodes(data=True):
        expected = base + sum(c * steps[axis] for axis, c in enumerate(data["coordinates"]))
        assert at(layout.spots[node]) == pytest.approx(tuple(expected))
    for a, b in combinations(list(graph), 2):
        s, t = layout.spots[a], layout.spots[b]
        assert max(abs(s.x - t.x) - s.w, abs(s.y - t.y) - s.h) > 0
    stubs = list(layout.paths.values())
    assert sum(path.twisted for path in stubs) == (64 if twist else 0)
    assert len(stubs) == 16 + 32 + 32
    assert all(len(path.lines) == 2 for path in stubs)


def test_a_large_torus_is_cut_to_cubes() -> None:
    ax = figures.draw_topology(topo.build("torus", dims=(8, 8, 12)))
    assert any("8 x 8 x 12 torus; each block: 2 x 2 x 2;" in text for text in labels(ax))
    assert sum(patch.get_gid() == "cell" for patch in ax.patches) == 4 * 4 * 6


def test_twists_are_said_and_keyed() -> None:
    ax = figures.draw_topology(built("torus"))
    said = next(text for text in labels(ax) if "torus" in text)
    assert "wraps of axis 0 and 1 shift axis 2 by 4" in said
    assert "twisted wrap" in [text.get_text() for text in _legend(ax)]


@pytest.mark.parametrize(("name", "within"), [("dragonfly", 4), ("slim_fly", 5)])
def test_routers_of_a_group_are_nearer_to_each_other(name: str, within: int) -> None:
    graph, layout = built(name), laid(built(name))
    groups: dict[int, list[tuple[float, float]]] = {}
    for node, group in graph.nodes(data="group"):
        if group is not None:
            groups.setdefault(group, []).append(at(layout.spots[node]))
    assert {len(points) for points in groups.values()} == {within}
    centres = {group: np.mean(points, axis=0) for group, points in groups.items()}
    for group, points in groups.items():
        for point in points:
            assert min(centres, key=lambda other: math.dist(point, centres[other])) == group


def test_a_slim_fly_has_two_sides_that_face_each_other() -> None:
    graph, layout = built("slim_fly"), laid(built("slim_fly"))
    rows = {side: {round(layout.spots[f"router{r}"].y, 6) for r in range(25 * side, 25 * side + 25)} for side in (0, 1)}
    assert {len(found) for found in rows.values()} == {1}
    assert rows[0] != rows[1]
    assert len(graph) == 250


def test_a_cube_mesh_is_two_squares_joined() -> None:
    layout = laid(built("hybrid_cube_mesh"))
    points = {i: np.array(at(layout.spots[f"gpu{i}"])) for i in range(8)}
    depth = {tuple(np.round(points[j] - points[i], 6)) for i, j in ((0, 4), (1, 5), (2, 6), (3, 7))}
    assert len(depth) == 1
    assert points[0][1] == points[1][1]
    assert points[0][0] == points[2][0]


def test_pairs_are_nearest_neighbours() -> None:
    layout = laid(built("bridge_pairs"))
    for i in range(8):
        near = min((j for j in range(8) if j != i),
                   key=lambda j: math.dist(at(layout.spots[f"gpu{i}"]), at(layout.spots[f"gpu{j}"])))  # fmt: skip
        assert near == i ^ 1


def test_pods_stand_apart_under_the_cores() -> None:
    layout = laid(built("fat_tree"))
    frames = [frame.spot for frame in layout.frames if frame.faint]
    assert len(frames) == 4
    for pod, frame in enumerate(frames):
        inside = {node for node, spot in layout.spots.items()
                  if abs(spot.x - frame.x) < frame.w / 2 and abs(spot.y - frame.y) < frame.h / 2}  # fmt: skip
        assert inside == {f"leaf{2 * pod}", f"leaf{2 * pod + 1}", f"pod{pod}/spine0", f"pod{pod}/spine1"}
    cores = {layout.spots[node].y for node in layout.spots if node.startswith("core")}
    assert min(cores) > max(frame.y + frame.h / 2 for frame in frames)


def test_end_points_hang_under_their_leaf() -> None:
    layout = laid(built("leaf_spine"))
    for i in range(32):
        leaf, gpu = layout.spots[f"leaf{i // 8}"], layout.spots[f"gpu{i}"]
        assert gpu.y < leaf.y
        assert min(range(4), key=lambda j: abs(layout.spots[f"leaf{j}"].x - gpu.x)) == i // 8


def test_planes_of_two_levels_are_cells_over_hosts() -> None:
    ax = figures.draw_topology(topo.build("two_level"))
    assert {f"{plane}: ×16" for plane in range(7)} <= set(labels(ax))
    assert {"host0", "host47", "… 42 more"} <= {text.replace(" hosts", "") for text in labels(ax)}


def test_a_row_of_a_hyperx_is_a_row_and_has_every_link() -> None:
    graph, layout = built("hyperx"), laid(built("hyperx"))
    assert len({layout.spots[f"router{r}"].y for r in range(4)}) in (1, 4)
    arcs = [path for path in layout.paths.values() if len(path.lines[0]) > 2]
    assert len(arcs) == 8 * 3  # of six links of a row of four three pass over a router
    assert len(graph) == 48


# --- composed, and from files ----------------------------------------------------------------------------------------


def composed(shape: str, **parameters: Any) -> nx.Graph[str]:
    """Return two domains of a shape under two leaves and a spine."""
    graph: nx.Graph[str] = nx.Graph(name="composed")
    for d in range(2):
        part = topo.build(shape, **parameters)
        part = nx.relabel_nodes(part, {node: f"d{d}/{node}" for node in part})
        for node, data in part.nodes(data=True):
            graph.add_node(node, **{k: v for k, v in data.items() if k != "rank"} | {"domain": d})
        graph.add_edges_from(part.edges(data=True))
    for i, gpu in enumerate([node for node, kind in graph.nodes(data="kind") if kind == "gpu"]):
        graph.add_edge(gpu, f"leaf{i % 2}", kind="scale-out", bandwidth=5e10, latency=1e-6)
    for leaf in ("leaf0", "leaf1"):
        graph.nodes[leaf].update(kind="switch", tier="leaf", forwards=True)
        graph.add_edge(leaf, "spine0", kind="scale-out", bandwidth=1e12, latency=1e-6)
    graph.nodes["spine0"].update(kind="switch", tier="spine", forwards=True)
    return graph


def test_tori_stand_in_boxes_under_the_switches() -> None:
    graph = composed("torus", dims=(4, 4, 4))
    layout, ax = laid(graph), figures.draw_topology(graph)
    boxes = [frame.spot for frame in layout.frames]
    for d, box in enumerate(boxes):
        for node in (f"d{d}/gpu{i}" for i in range(64)):
            spot = layout.spots[node]
            assert abs(spot.x - box.x) + spot.w / 2 < box.w / 2
            assert abs(spot.y - box.y) + spot.h / 2 < box.h / 2
    assert min(layout.spots[f"leaf{i}"].y for i in (0, 1)) > max(box.y + box.h / 2 for box in boxes)
    assert "each box: 4 x 4 x 4 torus; 50 GB/s per link" in labels(ax)
    assert flaws(ax) == []


def no_hint(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return the graph without the name of its shape."""
    bare = graph.copy()
    del bare.graph["shape"]
    return bare


@pytest.mark.parametrize("name", ["torus", "dragonfly", "hyperx", "two_level"])
@pytest.mark.parametrize("change", [no_hint, lambda graph: graph.to_directed()])
def test_a_graph_from_a_file_is_drawn_alike(name: str, change: Callable[[nx.Graph[str]], nx.Graph[str]]) -> None:
    assert laid(change(built(name))).spots == laid(built(name)).spots


@pytest.mark.parametrize("suffix", ["json", "graphml"])
def test_a_written_torus_is_read_as_one(suffix: str, tmp_path: Any) -> None:
    topo.write(built("torus"), tmp_path / f"x.{suffix}")
    assert laid(topo.load(tmp_path / f"x.{suffix}")).spots == laid(built("torus")).spots


def test_what_failed_is_left_out_and_the_rest_stands_where_it_did() -> None:
    whole = built("torus")
    less = topo.fail(whole, gpus=["gpu5", "gpu77"])
    found, before = laid(less).spots, laid(whole).spots
    moved = {(round(found[n].x - before[n].x, 6), round(found[n].y - before[n].y, 6)) for n in less}
    assert len(moved) == 1


def test_coordinates_of_no_grid_do_not_make_one() -> None:
    graph = topo.build("ring", n=6)
    for i, node in enumerate(graph):
        graph.nodes[node]["coordinates"] = [i, 7 * i % 6, 11 * i * i]
    part = Part(tuple(graph), scene(graph).links, scene(graph).marks, "gpu", 15.0, 500.0)
    assert next(name for name, fits, _ in PICTURES if fits(part)) == "circle"
    for i, node in enumerate(graph):
        graph.nodes[node]["coordinates"] = "here" if i else [0]
    assert len(laid(graph).spots) >= 6


@pytest.mark.parametrize("name", ["torus", "dragonfly", "two_level", "fat_tree"])
def test_the_arrays_of_a_graph_are_drawn_whole(name: str) -> None:
    fabric = topo.Fabric.from_graph(built(name))
    layout = lay_out(scene(fabric), 20.0)
    assert set(fabric.labels) <= set(layout.stands_for)


def test_keys_that_do_not_fit_beside_each_other_stand_in_rows() -> None:
    graph: nx.Graph[str] = nx.Graph()
    kinds = ("scale-up", "scale-out", "pcie", None)
    for i, kind in enumerate(("gpu", "nic", "cpu", "switch", "gpu", "other", "host", "switch")):
        graph.add_node(str(i), kind=kind, tier="leaf" if i == 7 else None)
        graph.add_edge(str(i), str((i + 1) % 8), kind=kinds[i % 4], bandwidth=1e9)
    ax = figures.draw_topology(graph)
    assert len(list(_legend(ax))) > 8
    assert flaws(ax) == []


def test_a_server_is_a_tree_from_its_cpus() -> None:
    graph: nx.Graph[str] = nx.Graph()
    for i in range(8):
        graph.add_node(f"gpu{i}", kind="gpu", host="h")
        graph.add_node(f"nic{i}", kind="nic", host="h")
        graph.nodes[f"gpu{i}"]["rank"] = i
        for end in (f"gpu{i}", f"nic{i}"):
            graph.add_edge(end, f"pcie{i // 2}", kind="pcie", bandwidth=3e10, latency=1e-6)
        graph.add_edge(f"gpu{i}", "nvswitch", kind="scale-up", bandwidth=4e11, latency=1e-6)
    for i in range(4):
        graph.nodes[f"pcie{i}"].update(kind="switch", host="h")
        graph.add_edge(f"pcie{i}", f"cpu{i // 2}", kind="pcie", bandwidth=6e10, latency=1e-6)
    for cpu in ("cpu0", "cpu1"):
        graph.nodes[cpu].update(kind="cpu", host="h")
    graph.nodes["nvswitch"].update(kind="switch", tier="scale-up")
    spots = laid(graph).spots
    for i in range(8):
        heights = [spots[node].y for node in (f"cpu{i // 4}", f"pcie{i // 2}", f"gpu{i}", "nvswitch")]
        assert heights == sorted(set(heights))
        assert min(range(4), key=lambda j: abs(spots[f"pcie{j}"].x - spots[f"nic{i}"].x)) == i // 2
    assert flaws(figures.draw_topology(graph)) == []


@pytest.mark.parametrize(
    ("name", "domains", "said"),
    [
        ("tpu-v5p-4x4x8", 1, "domain 0: 4 x 4 x 8 torus; 100 GB/s per link"),
        ("trn2-ultraserver-64", 2, "each box: 4 x 4 x 4 torus; 64 GB/s .. 128 GB/s per link"),
        ("cloudmatrix384", 1, "6: ×16"),
    ],
)
def test_designs_of_the_catalogue_are_drawn_as_their_shape(name: str, domains: int, said: str) -> None:
    ax = figures.draw_topology(topo.load(name, domains=domains))
    assert said in labels(ax)
    assert flaws(ax) == []
