"""Does a graph come back from a file as it was, and do other programs get what it means?"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import InputError, load, write

EXACT = (".json", ".graphml")
#: What networkx calls the parameter that names the list of edges: "link" before 3.4.
LINK_KEY = "edges" if "edges" in inspect.signature(nx.node_link_graph).parameters else "link"


def same(a: Any, b: Any) -> bool:
    """Equal in value, type, order and every bit of a float."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a.hex() == b.hex() if isinstance(a, float) else a == b


def parts(graph: nx.Graph) -> list[Any]:
    nodes, edges = list(graph.nodes(data=True)), list(graph.edges(data=True))
    return [type(graph).__name__, dict(graph.graph), nodes, edges]


def there_and_back(graph: nx.Graph, file: Path) -> nx.Graph:
    assert write(graph, file) == file
    return load(file)


# --- round trips -----------------------------------------------------------------------------------------------------


#: Every design of a moderate size.
DESIGNS = [name for name in topo.list_designs() if topo.load_design(name).design.domain_size < 256]


@pytest.mark.parametrize("suffix", EXACT)
@pytest.mark.parametrize("name", DESIGNS)
def test_designs_come_back_exactly(name: str, suffix: str, tmp_path: Path) -> None:
    several = 2 if topo.load_design(name).scale_out else 1
    for graph in (load(name, several), load(name, planes=True), load(name, several).to_directed()):
        back = there_and_back(graph, tmp_path / f"graph{suffix}")
        assert same(parts(back), parts(graph))
        assert topo.check(back) == []


text = st.text(st.characters(exclude_categories=()), max_size=8)
xml_text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
names = xml_text.filter(lambda key: key not in ("id", "source", "target", "__tuple__"))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(text.filter(lambda key: key != "__tuple__"), inner, max_size=3)
    ),
    max_leaves=6,
)
attributes = st.dictionaries(names, values, max_size=4)


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:
    graph = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    graph.graph.update(draw(attributes))
    labels = draw(st.lists(xml_text, min_size=1, max_size=5, unique=True))
    graph.add_nodes_from((label, draw(attributes)) for label in labels)
    pairs = st.tuples(st.sampled_from(labels), st.sampled_from(labels))
    graph.add_edges_from((*pair, draw(attributes)) for pair in draw(st.lists(pairs, max_size=5)))
    return graph


@pytest.mark.parametrize("suffix", EXACT)
@settings(max_examples=150, deadline=None)
@given(graph=graphs())
def test_any_attributes_come_back_exactly(suffix: str, graph: nx.Graph, tmp_path_factory: Any) -> None:
    file = tmp_path_factory.getbasetemp() / f"any{suffix}"
    before = parts(graph.copy())
    assert same(parts(there_and_back(graph, file)), before)
    assert same(parts(graph), before)
    assert [p.name for p in file.parent.iterdir() if p.name.endswith(".part")] == []


@pytest.mark.parametrize("suffix", EXACT)
def test_numpy_numbers_come_back_as_pythons(suffix: str, tmp_path: Path) -> None:
    graph = nx.Graph(size=np.int64(3), rates=[np.float64(0.1), np.float32(0.5)], up=np.True_)
    graph.add_node("a", bandwidth=np.float64(1e9) / 3)
    back = there_and_back(graph, tmp_path / f"g{suffix}")
    assert same(dict(back.graph), {"size": 3, "rates": [0.1, 0.5], "up": True})
    assert same(back.nodes["a"]["bandwidth"], 1e9 / 3)


def test_networkx_reads_both(tmp_path: Path) -> None:
    graph = load("hgx-h100-8", 2)
    by_graphml = nx.read_graphml(write(graph, tmp_path / "g.graphml"))
    assert list(by_graphml) == list(graph)
    assert dict(by_graphml.edges["d0/gpu0", "leaf0"]) == dict(graph.edges["d0/gpu0", "leaf0"])
    assert json.loads(by_graphml.nodes["d0/switch"]["plane_lanes"]) == [5, 4, 4, 5]
    data = json.loads(write(graph, tmp_path / "g.json").read_text())
    by_json = nx.node_link_graph(data, **{LINK_KEY: "edges"})
    assert same(parts(by_json), parts(graph))


def test_what_networkx_wrote_is_read(tmp_path: Path) -> None:
    graph = nx.DiGraph(name="line", size=2)
    graph.add_node("a", kind="gpu", weight=1.5, up=True)
    graph.add_edge("a", "b", lanes=3)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    assert parts(load(tmp_path / "g.graphml")) == parts(graph)
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(graph, **{LINK_KEY: "links"})))
    assert parts(load(tmp_path / "g.json")) == parts(graph)


def test_same_graph_same_bytes(tmp_path: Path) -> None:
    for suffix in (".json", ".graphml", ".dot"):
        first, second = (write(load("mi300x-8", 2), tmp_path / f"{i}{suffix}").read_bytes() for i in range(2))
        assert first == second


def test_a_loaded_graph_costs_the_same(tmp_path: Path) -> None:
    graph = topo.fail(load("gb200-nvl72", 2), switches=["d0/switch3"], gpus=["d1/gpu7"])
    back = there_and_back(graph, tmp_path / "hurt.json")
    assert topo.Fabric.from_graph(back).bandwidth.tobytes() == topo.Fabric.from_graph(graph).bandwidth.tobytes()


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: 2}, {"a": {"__tuple__": 1}}, {1, 2}, b"x", object(), 1j])
def test_values_no_file_holds(value: object, tmp_path: Path) -> None:
    graph = nx.Graph()
    graph.add_node("a", kind="gpu", odd=[value])
    with pytest.raises(InputError, match="node 'a' odd"):
        write(graph, tmp_path / "g.json")
    assert list(tmp_path.iterdir()) == []


def test_labels_and_names(tmp_path: Path) -> None:
    graph = nx.path_graph(2)
    with pytest.raises(InputError, match="label must be a string"):
        write(graph, tmp_path / "g.json")
    graph = nx.Graph()
    graph.add_node("a", id=3)
    with pytest.raises(InputError, match="key of the format itself"):
        write(graph, tmp_path / "g.json")
    assert same(parts(there_and_back(graph, tmp_path / "g.graphml")), parts(graph))
    graph.add_node("\0")
    with pytest.raises(InputError, match="XML cannot hold"):
        write(graph, tmp_path / "g.graphml")
    with pytest.raises(InputError, match="DOT cannot hold"):
        write(graph, tmp_path / "g.dot")
    with pytest.raises(InputError, match="is not a topology"):
        write(nx.MultiGraph(), tmp_path / "g.json")
    with pytest.raises(InputError, match="Write the graph it was made from"):
        write(topo.Fabric.from_graph(load("mi300x-8")), tmp_path / "g.json")  # type: ignore[arg-type]


def test_paths_and_kinds(tmp_path: Path) -> None:
    graph = load("mi300x-8")
    with pytest.raises(InputError, match=r"Known: \.json"):
        write(graph, tmp_path / "g.txt")
    with pytest.raises(InputError, match="Did you mean 'graphml'"):
        write(graph, tmp_path / "g.txt", kind="graphm")
    assert write(graph, tmp_path / "g.txt", kind="json").read_text().startswith("{")
    for path in (tmp_path / "no" / "g.json", tmp_path / "g\0.json"):
        with pytest.raises(InputError, match="cannot be written"):
            write(graph, path)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        write(graph, tmp_path / "folder.json")


def test_an_old_file_stays_when_the_new_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(load("mi300x-8"), tmp_path / "g.json")
    before = file.read_bytes()

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(InputError, match="No space left"):
        write(load("hgx-h100-8"), file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("g.json", "{", "is not valid JSON"),
        ("g.json", '{"hidden_size": 7168}', "is no graph"),
        ("g.json", "[1]", "is no graph"),
        ("g.json", '{"nodes": [], "edges": [], "multigraph": true}', "MultiGraph"),
        ("g.json", '{"nodes": [{"id": "a"}, {"id": "a"}, {"id": 1}, 7], "edges": []}', "stands there twice"),
        ("g.json", '{"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "b"}]}', "end that is no node"),
        ("g.json", '{"nodes": [{"id": "a"}], "links": [' + ", ".join(['{"source": "a", "target": "a"}'] * 2) + "]}",
         "stands there twice"),
        ("g.json", '{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}, '
                   '{"source": "b", "target": "a"}]}', "stands there twice"),
        ("g.json", '{"nodes": [{"id": "a", "rank": NaN}], "edges": []}', "is not valid JSON"),
        ("g.json", '{"nodes": [], "edges": [], "graph": [1]}', "must be an object"),
        ("g.graphml", "<graphml>", "not well-formed"),
        ("g.graphml", "<platform/>", "is no GraphML"),
        ("g.graphml", "<graphml/>", "with 0 graphs"),
        ("g.graphml", '<graphml><graph><node id="a"/><node id="a"/></graph></graphml>', "no id of its own"),
        ("g.graphml", '<graphml><graph><edge source="a" target="b"/></graph></graphml>', "end that is no node"),
        ("g.graphml", '<graphml><graph><node id="a"><data key="k">1</data></node></graph></graphml>', "not declared"),
        ("g.graphml", '<graphml><key id="k" for="node" attr.name="x" attr.type="int"/><graph><node id="a">'
                      '<data key="k">one</data></node></graph></graphml>', "is no int"),
        ("g.graphml", '<graphml><graph><hyperedge/></graph></graphml>', "hyperedge"),
        ("g.graphml", '<graphml><graph><node id="a"/><node id="b"/><edge source="a" target="b" directed="true"/>'
                      '</graph></graphml>', "directed otherwise"),
        ("g.graphml", '<!DOCTYPE x [<!ENTITY a "b">]><graphml>&a;</graphml>', "entities"),
        ("g.graphml", '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><graphml>&a;</graphml>', "entities"),
        ("g.graphml", '<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]><graphml/>', "entities"),
        ("g.graphml", '<!DOCTYPE x SYSTEM "x.dtd"><graphml>&a;</graphml>', "entities"),
    ],
)  # fmt: skip
def test_files_that_are_no_graph(name: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=says) as caught:
        load(tmp_path / name)
    assert all(fault.file == str(tmp_path / name) and fault.cure for fault in caught.value.faults)


def test_a_dtd_is_taken_and_not_fetched(tmp_path: Path) -> None:
    file = write(load("mi300x-8"), tmp_path / "g.graphml")
    body = file.read_text().split("\n", 1)[1]
    file.write_text(f'<!DOCTYPE graphml SYSTEM "http://nowhere.invalid/graphml.dtd">\n{body}')
    assert same(parts(load(file)), parts(load("mi300x-8")))


def test_a_graph_file_takes_no_overrides(tmp_path: Path) -> None:
    file = write(load("mi300x-8"), tmp_path / "g.json")
    with pytest.raises(InputError) as caught:
        load(file, 2, {"scale_out.radix": 32}, planes=True)
    assert [fault.place for fault in caught.value.faults] == ["domains", "overrides", "planes"]
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load(tmp_path / "none.json")


# --- DOT, SimGrid, ASTRA-sim -----------------------------------------------------------------------------------------


def test_dot(tmp_path: Path) -> None:
    graph = load("hgx-h100-8", 2)
    graph.nodes["leaf0"]["note"] = 'a "b" \\'
    lines = write(graph, tmp_path / "g.gv").read_text().splitlines()
    assert lines[0] == 'graph "hgx-h100-8" {'
    assert sum(" -- " in line for line in lines) == graph.number_of_edges()
    assert any('"plane_lanes"="[5, 4, 4, 5]"' in line for line in lines)
    assert any(r'"note"="a \"b\" \\"]' in line for line in lines)
    quoted = re.compile(r'"(?:[^"\\]|\\.)*"')
    assert not [line for line in lines[1:-1] if re.search(r"[^\s=,;\[\]-]", quoted.sub("", line))]
    assert " -> " in write(graph.to_directed(), tmp_path / "g.dot").read_text()


def test_simgrid_has_one_route_a_pair(tmp_path: Path) -> None:
    graph = load("hgx-h100-8", 2)
    file = write(graph, tmp_path / "g.xml")
    zone = ET.fromstring(file.read_text()).find("zone")
    assert zone is not None
    assert len(zone.findall("host")) == 16
    assert {router.get("id") for router in zone.findall("router")} == {"d0/switch", "d1/switch", "leaf0"}
    links = {link.get("id"): link for link in zone.findall("link")}
    assert links["d0/gpu0 -> leaf0"].get("bandwidth") == "50000000000.0Bps"
    routes = {(route.get("src"), route.get("dst")): [hop.get("id") for hop in route] for route in zone.findall("route")}
    assert len(routes) == 16 * 15
    assert routes["d0/gpu0", "d0/gpu1"] == ["d0/gpu0 -> d0/switch", "d0/switch -> d0/gpu1"]
    assert routes["d0/gpu0", "d1/gpu1"] == ["d0/gpu0 -> leaf0", "leaf0 -> d1/gpu1"]


def test_simgrid_routes_are_walks_of_a_mesh(tmp_path: Path) -> None:
    zone = ET.fromstring(write(load("mi300x-8"), tmp_path / "g.xml").read_text()).find("zone")
    assert zone is not None
    assert {len(route) for route in zone.findall("route")} == {1}


def test_simgrid_takes_one_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one path a pair, and d0/gpu0 to d0/gpu1"):
        write(load("hgx-h100-8", planes=True), tmp_path / "g.xml")


def test_simgrid_sees_both_of_two_alike_spines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gpu0 to gpu1 has several"):
        topo.write(topo.build("leaf_spine", leaves=2, spines=2, hosts=1, lanes=1), tmp_path / "spines.xml")


def astra(file: Path) -> dict[str, list[str]]:
    rows = [line.partition("#")[0].partition(":") for line in file.read_text().splitlines()]
    return {key: [word.strip() for word in value.strip(" []").split(",")] for key, _, value in rows if value}


@pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        (load("gb200-nvl72", 2), {"topology": ["Switch", "Switch"], "npus_count": ["72", "2"], "bandwidth":
                                  [repr(900e9 / 2**30), repr(50e9 / 2**30)], "latency": ["430.0", "800.0"]}),
        (load("mi300x-8"), {"topology": ["FullyConnected"], "npus_count": ["8"], "bandwidth": [repr(64e9 / 2**30)],
                            "latency": ["500.0"]}),
        (topo.build("switched", n=16, bandwidth=50 * 2.0**30, latency=500e-9),
         {"topology": ["Switch"], "npus_count": ["16"], "bandwidth": ["50.0"], "latency": ["500.0"]}),
    ],
)  # fmt: skip
def test_astra_sim_gb_is_binary(graph: nx.Graph, wanted: dict[str, list[str]], tmp_path: Path) -> None:
    assert astra(write(graph, tmp_path / "g.yml")) == wanted


def ring(n: int) -> nx.Graph:
    graph = nx.cycle_graph(n)
    nx.set_node_attributes(graph, "gpu", "kind")
    for edge in graph.edges:
        graph.edges[edge].update(kind="scale-up", bandwidth=50 * 2.0**30, latency=500e-9)
    return nx.relabel_nodes(graph, str)


def test_astra_sim_ring(tmp_path: Path) -> None:
    assert astra(write(ring(5), tmp_path / "g.yml"))["topology"] == ["Ring"]
    slow = topo.degrade(ring(5), ("0", "1"))
    with pytest.raises(InputError, match="links of a domain are not equal"):
        write(slow, tmp_path / "g.yml")


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (load("hgx-h100-8", planes=True), "links of a domain are not equal"),
        (load("gb200-nvl72", planes=True), "no single .folded. switch"),
        (topo.fail(load("hgx-h100-8", 2), gpus=["d0/gpu1"]), "not equal, rank after rank"),
        (topo.fail(load("hgx-h100-8", 2), switches=["d0/switch3"]), "wired differently"),
        (load("hgx-h100-8", overrides={"design.domain_size": 1, "design.gpus_per_host": 1}), "single end point"),
    ],
)
def test_astra_sim_refuses_with_the_reason(graph: nx.Graph, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        write(graph, tmp_path / "g.yml")
