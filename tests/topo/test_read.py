"""Is every file told by its content, and what is none named as what it is?"""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import networkx as nx
import pytest

import topo
from topo import InputError, read
from topo.readers._kinds import FOREIGN, READERS

HOST = Path(__file__).resolve().parents[1] / "data" / "readers-host"
BOX = "GPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-15\nGPU1\tNV4\t X \t0-15\n"


def written(tmp_path: Path, data: bytes | str, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


#: Pattern of a file below tests/data -> every row that knows it, in the order they are tried; first pattern first.
KINDS = {
    "readers-host/*rocm*": ["rocm-smi-topo"], "readers-host/*.txt": ["nvidia-smi-topo"],
    "readers-host/*.xml": ["nccl-xml"], "readers-fabric/*/link_load_oracle.json": [],
    "readers-fabric/*subnet.lst": ["opensm-subnet"], "readers-fabric/opensm/*": ["opensm-lfts"],
    "readers-fabric/ibnetdiscover*": ["ibnetdiscover"], "readers-fabric/iblinkinfo*": ["iblinkinfo"],
    "readers-fabric/ibsim*": ["ibsim-net"], "readers-fabric/*.conf": ["slurm-topology"],
    "readers-sim/simgrid-3.32-routes.json": [],
    "readers-sim/simgrid*": ["simgrid-xml"], "readers-sim/booksim*": ["booksim-anynet"],
    "readers-sim/htsim*": ["htsim-topo"], "readers-sim/ns3-inet*": ["inet"], "readers-sim/ns3*": ["ns3-topology"],
    "readers-sim/simai-[mw]*": ["workload"], "readers-sim/simai*": ["ns3-topology"],
    "readers-sim/astra-system*": ["astra-system"], "readers-sim/astra-ns3*": ["astra-logical"],
    "readers-sim/astra*": ["astra-sim"], "logs/gcp-a3-high*": ["nccl-tests", "nccl-debug"],
    "logs/*": ["nccl-tests"], "readers-sim/expert-load-eplb*": ["expert-load"],
    "readers-sim/expert-load-ascend*": ["expert-map"], "expert-load/ascend*": ["expert-map"],
    "expert-load/eplb*": ["expert-load"], "readers-sim/expert-load-moe*": ["expert-log"],
    "hf-config/*native*": ["deepseek-config"], "hf-config/*": ["hf-config"],
}  # fmt: skip


def test_each_file_is_of_one_kind() -> None:
    rows = (*FOREIGN, *READERS.values())
    files = [path for path in HOST.parent.rglob("*") if path.is_file() and path.parent != HOST.parent]
    assert len(files) > 90
    for path in files:
        name = path.relative_to(HOST.parent).as_posix()
        source = topo.read_source(path)[0]
        expected = next(kinds for pattern, kinds in KINDS.items() if fnmatch.fnmatch(name, pattern))
        assert [row.kind for row in rows if row.recognises(source)] == expected, name


@pytest.mark.parametrize("name", ["topo.xml", "topo", "topo.json.bak", "topo.toml.txt"])
def test_the_name_does_not_matter(name: str, tmp_path: Path) -> None:
    assert read(written(tmp_path, BOX, name)).kind == "nvidia-smi-topo"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le-mark"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    data = b"\xff\xfe" + BOX.encode("utf-16-le") if encoding == "utf-16-le-mark" else BOX.encode(encoding)
    assert read(written(tmp_path, data)).graph is not None


def test_latin_1_is_said(tmp_path: Path) -> None:
    reading = read(written(tmp_path, b"Knoten f\xfcr M\xfcller\r\n" + BOX.replace("\n", "\r\n").encode()))
    assert reading.notes[0] == "the text is not UTF-8: read as Latin-1"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes': is empty"),
        (b" \r\n\t\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "is binary"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(128, 256)) * 3, "is binary"),
        (b"\xff\xfea", "is not text in the encoding it states"),
        ("<!DOCTYPE html>\n<html><body><pre>GPU0 X</pre></body></html>", "is an HTML page"),
        ("<!-- saved -->\n<HTML lang='en'>", "is an HTML page"),
        ("hello\nworld\n", "is of no known kind. Known kinds: rocm-smi-topo, nvidia-smi-topo, nccl-xml"),
        ("[design]\nname = 'x'\n", "is no topology: design file"),
        ("host:1 [0] NCCL INFO Bootstrap\n" + BOX, r"debug log of NCCL.* If it holds .* \(--as nvidia-smi-topo\)"),
    ],
)
def test_what_is_none_is_named(data: bytes | str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, data))


def test_missing_folder_and_other_types(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none", "No such file"), (tmp_path, "s a directory"), ("a\0b", "cannot be read")):
        with pytest.raises(InputError, match=message):
            read(path)
    with pytest.raises(InputError, match="must be a path"):
        read(7)  # type: ignore[arg-type]


def test_kind_forces(tmp_path: Path) -> None:
    path = written(tmp_path, BOX)
    assert read(path, "nvidia-smi-topo").kind == "nvidia-smi-topo"
    with pytest.raises(InputError, match=r"<system> = None: is not in the file"):
        read(path, "nccl-xml")
    with pytest.raises(InputError, match="Did you mean 'nccl-xml'"):
        read(path, "nccl_xml")


def test_messages_about_a_host_name_its_file(tmp_path: Path) -> None:
    graph = read(written(tmp_path, BOX, "node7.txt")).graph
    assert graph is not None
    graph.add_node("GPU9", kind="gpu")
    assert [fault.value for fault in topo.check(graph)] == ["node7.txt"]


def test_notes_are_assumptions_of_the_graph(tmp_path: Path) -> None:
    path = written(tmp_path, BOX)
    reading = read(path)
    assert reading.graph is not None
    assert reading.graph.graph["assumptions"] == list(reading.notes)
    file = topo.write(reading.graph, tmp_path / "box.json")
    again = read(file)
    assert (again.kind, again.notes) == ("node-link-json", ())
    assert again.graph is not None
    assert dict(again.graph.nodes(data=True)) == dict(reading.graph.nodes(data=True))
    assert again.graph.graph["assumptions"] == list(reading.notes)


# --- graph files -----------------------------------------------------------------------------------------------------


def _small() -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.path_graph(3)
    nx.set_node_attributes(graph, "gpu", "kind")
    nx.set_edge_attributes(
        graph, {edge: {"kind": "scale-up", "bandwidth": 1e9, "latency": 0.0} for edge in graph.edges}
    )
    return graph


@pytest.mark.parametrize("key", ["links", "edges"])
def test_a_graph_of_networkx_with_numbered_nodes(key: str, tmp_path: Path) -> None:
    data = nx.node_link_data(_small(), edges=key)
    reading = read(written(tmp_path, json.dumps(data), "graph.txt"))
    assert reading.graph is not None
    assert sorted(reading.graph.edges) == [("0", "1"), ("1", "2")]
    assert reading.notes == ("labels that are numbers became text: 0 is '0'",)


def test_graphml_of_networkx(tmp_path: Path) -> None:
    nx.write_graphml(_small(), tmp_path / "graph")
    text = (tmp_path / "graph").read_text()
    for data in (text.encode(), text.replace("utf-8", "utf-16").encode("utf-16")):
        reading = read(written(tmp_path, data, "again"))
        assert reading.kind == "graphml"
        assert reading.graph is not None
        assert len(reading.graph) == 3


def test_a_fabric_in_parts_comes_back(tmp_path: Path) -> None:
    """What one reader gives, another takes: the verbs say that parts are not joined."""
    first = read(HOST.parent / "readers-fabric" / "ibnetdiscover-p-test.out").graph
    assert first is not None
    for name in ("fabric.json", "fabric.graphml"):
        again = read(topo.write(first, tmp_path / name)).graph
        assert again is not None
        assert dict(again.nodes(data=True)) == dict(first.nodes(data=True))
        assert [fault.rule for fault in topo.check(again)] == ["is disconnected: 2 parts with 2, 1 ranks"]


def test_a_graph_without_our_attributes_has_faults(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(nx.node_link_data(nx.path_graph(["a", "b"]), edges="links")))
    with pytest.raises(InputError) as error:
        read(path)
    places = [fault.place for fault in error.value.faults]
    assert {"node 'a' kind", "edge 'a' - 'b' kind", "edge 'a' - 'b' bandwidth"} <= set(places)
    assert all(fault.file == str(path) for fault in error.value.faults)


# --- topo.load -------------------------------------------------------------------------------------------------------


def test_load_takes_what_read_knows(tmp_path: Path) -> None:
    path = written(tmp_path, BOX)
    assert topo.is_graph_file(path)
    graph = topo.load(path)
    assert graph.edges["GPU0", "GPU1"]["lanes"] == 4
    assert any("25 GB/s per link" in line for line in graph.graph["assumptions"])
    with pytest.raises(InputError, match="a graph file holds one graph as it is"):
        topo.load(path, domains=2)
    with pytest.raises(InputError, match="peer-to-peer matrix"):
        topo.load(written(tmp_path, "GPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"hidden_size": 8, "model_type": "x"}', "is no topology: model configuration.*--model FILE"),
        ('{"weight": [[1, 2]], "num_replicas": 4}', "is no topology: expert load"),
        ('{"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "b"}]}', "b"),
        ('{"something": 1}', "is no graph"),
        ("{", "is not valid JSON"),
    ],
)
def test_load_names_json_that_is_no_graph(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        topo.load(written(tmp_path, text, "file.json"))


def test_load_takes_another_kind_of_json() -> None:
    file = HOST.parent / "readers-sim" / "astra-old-Ring_FullyConnected_Switch.json"
    assert sum(kind == "gpu" for _, kind in topo.load(file).nodes(data="kind")) == 32


def test_designs_stay_designs(tmp_path: Path) -> None:
    for name in ("hgx-h100-8", "HGX H100-8", tmp_path / "no-such", written(tmp_path, "[design]\n"),
                 written(tmp_path, BOX, "box.toml")):  # fmt: skip
        assert not topo.is_graph_file(name)
    with pytest.raises(InputError, match="is not valid TOML"):
        topo.load(tmp_path / "box.toml")
