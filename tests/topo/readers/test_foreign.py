"""Is every file that holds no topology named for what it is, and none that holds one?"""

from __future__ import annotations

from pathlib import Path

import pytest

from topo.readers import _astra, _booksim, _dot, _htsim, _ns3, _simgrid
from topo.readers._foreign import FOREIGN
from topo.readers._reading import Source

from .sim_files import FOLDER, source

READERS = (
    _astra.ASTRA_SIM, _booksim.BOOKSIM, _dot.DOT, _htsim.HTSIM_TOPO, _ns3.NS3_TOPOLOGY, _simgrid.SIMGRID_XML,
)  # fmt: skip
#: Beginning of a file's name -> what it is.
WHOSE = {
    "expert-load-eplb": "expert-load", "expert-load-ascend": "expert-map",
    "expert-load-moe": "expert-log", "astra-system": "astra-system",
    "astra-ns3": "astra-logical", "simai-micro": "workload", "simai-workload": "workload", "ns3-inet": "inet",
    "astra": "astra-sim", "booksim": "booksim-anynet", "htsim": "htsim-topo", "ns3": "ns3-topology",
    "simai-Spectrum": "ns3-topology", "simgrid": "simgrid-xml",
}  # fmt: skip
FILES = sorted(path.name for path in FOLDER.iterdir() if path.name != "simgrid-3.32-routes.json")


def named(found: Source) -> list[str]:
    """Everything that recognises a file; of rows that hold no topology the first, as they are tried in order."""
    foreign = [row.kind for row in FOREIGN if row.recognises(found)][:1]
    return foreign + [reader.kind for reader in READERS if reader.recognises(found)]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_recognised_by_one_row(name: str) -> None:
    assert named(source(name)) == [next(kind for start, kind in WHOSE.items() if name.startswith(start))]


@pytest.mark.parametrize("path", sorted((FOLDER.parent / "hf-config").glob("*.json")), ids=lambda path: path.name)
def test_model_configurations(path: Path) -> None:
    kind = "deepseek-config" if "native" in path.name else "hf-config"
    assert named(Source(path.name, path.read_text())) == [kind]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<!DOCTYPE html>\n<html><body>digraph</body></html>", "html"),
        ('<graphs version="1">\n  <graph id="0" pattern="4"/>\n</graphs>', "nccl-graph"),
        ('<algo name="allreduce" nchannels="2" proto="Simple" coll="allreduce">\n<gpu id="0">', "msccl"),
        ("node1:12:34 [0] NCCL INFO Bootstrap : Using eth0", "nccl-debug"),
        ('[design]\nname = "my-rack"\n', "design"),
        ("ENABLE_QCN 1\nTOPOLOGY_FILE mix/topology.txt\n", "ns3-config"),
        ("Nodes 16\nConnections 2\n0->1 id 1 start 0 size 100\n", "htsim-traffic"),
    ],
)
def test_files_known_by_their_first_lines(text: str, kind: str) -> None:
    assert named(Source("f", text)) == [kind]


def test_every_row_has_a_name_of_its_own_and_a_cure() -> None:
    kinds = [row.kind for row in (*FOREIGN, *READERS)]
    assert len(kinds) == len(set(kinds))
    assert all(row.title and row.cure.endswith(".") for row in FOREIGN)


@pytest.mark.parametrize("text", ["", "\n\n", "\x00\x01", "{", "<", "[[[", "9 9", "#"])
def test_nothing_recognises_what_says_nothing(text: str) -> None:
    assert named(Source("f", text)) == []
