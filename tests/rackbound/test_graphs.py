"""Graph files on the command line: they have the domains they have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import topo
from topo.readers._ibnetdiscover import READERS
from topo.readers._reading import Source

from .command import DATA, run

MIXTRAL = ("--model", "mixtral-8x7b", "--batch-per-gpu", "8")


@pytest.fixture
def racks(tmp_path: Path) -> Path:
    return topo.write(topo.load("hgx-h100-8", domains=2), tmp_path / "two.json")


def test_a_graph_file_answers_as_its_design_does(racks: Path) -> None:
    of_file = run("bound", racks, *MIXTRAL, "--json").answer
    of_design = run("bound", "hgx-h100-8", *MIXTRAL, "--json").answer
    assert of_file["results"] == of_design["results"]
    assert of_file["inputs"]["domains"] == 2
    assert "hgx-h100-8 x 2" in run("bound", racks, *MIXTRAL).out
    assert run("cost", racks, "all_to_all", "--bytes", "1GB", "--json").answer["results"]["n_ranks"] == 16


def test_evaluate_takes_a_graph_file(racks: Path, tmp_path: Path) -> None:
    found = run("evaluate", racks, *MIXTRAL, "--out", tmp_path / "out")
    assert found.code == 0
    assert "mixtral-8x7b, 2 domains" in found.out


def test_its_domains_are_not_to_be_chosen(racks: Path) -> None:
    found = run("bound", racks, *MIXTRAL, "--domains", "2")
    assert found.code == 2
    assert "a graph file has the domains it has. Leave it out." in found.err


def test_check_and_show(racks: Path) -> None:
    assert "no faults, as a file and as a graph of 2 domains (16 GPUs)" in run("design", "check", racks).out
    shown = run("design", "show", racks)
    assert shown.code == 0
    assert "16 in 2 domains" in shown.out
    results = run("design", "show", racks, "--json").answer["results"]
    assert (results["numbers"], results["measures"]["bisection"]["scale-up"]["upper"]) == ({}, 4 * 450e9)


def test_a_name_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "rack.toml"
    text = Path(topo.__file__).parent.joinpath("catalogue", "hgx-h100-8.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('name = "hgx-h100-8"', 'name = "机架"'), encoding="utf-8")
    command = [sys.executable, "-m", "rackbound", "bound", str(path), *MIXTRAL]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert r"mixtral-8x7b on \u673a\u67b6 x 2" in found.stdout


def test_control_characters_are_no_name(tmp_path: Path) -> None:
    path = tmp_path / "rack.toml"
    text = Path(topo.__file__).parent.joinpath("catalogue", "hgx-h100-8.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('name = "hgx-h100-8"', r'name = "a\u001b[31m"'), encoding="utf-8")
    found = run("design", "check", path)
    assert found.code == 2
    assert "design.name" in found.err


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    """The real fabric of 144 hosts, as `rackbound read --write` saves it."""
    file = DATA / "readers-fabric" / "ibnetdiscover-real-144hosts-8sw.topo"
    (reader,) = READERS
    graph = reader.read(Source(file.name, file.read_text())).graph
    assert graph is not None
    return topo.write(graph, tmp_path / "fabric.json")


def test_a_real_fabric_names_its_busiest_trunk(fabric: Path) -> None:
    """Other leaves send half of what ib1's 24 hosts get through ib8: to ib1 it has three cables, not four."""
    answer = run("cost", fabric, "all_to_all", "--bytes", "1GB", "--json").answer["results"]
    assert answer["n_ranks"] == 144
    assert answer["bottleneck"] == "ib8 -> ib1"
    others = 22 + 4 * 24
    assert answer["bandwidth_seconds"] == pytest.approx(24 * others / 2 * 1e9 / 144 / (3 * 5e9))


def test_an_allocation_is_costed_and_near_nodes_are_suggested(fabric: Path) -> None:
    cost = ("cost", fabric, "all_to_all", "--bytes", "1GB")
    scattered = run(*cost, "--nodes", "node[105-112,001-008]", "--json").answer
    assert scattered["inputs"]["nodes"] == "node[105-112,001-008]"
    assert scattered["results"]["n_ranks"] == 16
    assert scattered["results"]["suggested"] is None
    near = run(*cost, "--nodes", "16", "--suggest", "--json").answer
    assert near["results"]["bandwidth_seconds"] == pytest.approx(1e9 * 15 / 16 / 4e9)  # 32 Gb/s, one leaf
    assert near["results"]["latency_seconds"] < scattered["results"]["latency_seconds"]
    chosen = run(*cost, "--nodes", "2", "--suggest", "--free", "node[105,001,107]")
    assert "nodes node[105,107]" in chosen.out


def test_an_allocation_is_compared_with_the_nodes_suggested(tmp_path: Path) -> None:
    """Eight hosts at R each, a trunk of 2 R per leaf: 4 x 4 chunks on it take 8 / R, the 7 of each host 7 / R."""
    graph = nx.Graph()
    graph.add_nodes_from(["leaf0", "leaf1", "spine"], kind="switch")
    for i in range(16):
        graph.add_node(f"n{i:02}", kind="host")
        graph.add_edge(f"n{i:02}", f"leaf{i // 8}", kind="scale-out", bandwidth=1e9, latency=0.0)
    graph.add_edges_from(
        [("leaf0", "spine"), ("leaf1", "spine")], kind="scale-out", bandwidth=2e9, latency=0.0, lanes=2
    )
    cost = ("cost", topo.write(graph, tmp_path / "g.json"), "all_to_all", "--bytes", "8GB", "--suggest")
    answer = run(*cost, "--nodes", "n[00-03,08-11]", "--json").answer
    other = answer["results"]["suggested"]
    assert answer["inputs"]["nodes"] == "n[00-03,08-11]"
    assert (answer["results"]["seconds"], other["seconds"]) == (pytest.approx(8.0), pytest.approx(7.0))
    assert (other["nodes"], other["leaves_given"], other["leaves"]) == ("n[00-07]", 2, 1)
    assert other["slower"] == pytest.approx(1 / 7)
    text = run(*cost, "--nodes", "n[00-03,08-11]").out
    assert "under 2 leaf switches: 14.3 % slower than the same number under 1 leaf switch\n" in text
    assert "suggested n[00-07]: 7 s" in text
    assert "as fast as the same number" in run(*cost, "--nodes", "n[08-15]").out
    alone = run(*cost, "--nodes", "n03", "--json").answer["results"]["suggested"]
    assert (alone["seconds"], alone["slower"]) == (0.0, 0.0)


def test_an_allocation_within_one_part_of_a_fabric() -> None:
    """Slurm's tc6 is three fabrics that nothing joins: 8 nodes of one leaf are costed, nodes of two fabrics are not."""
    cost = ("cost", DATA / "readers-fabric" / "slurm-tree-tc6.conf", "all_to_all", "--bytes", "8GB")
    answer = run(*cost, "--nodes", "node[1-8]", "--suggest", "--json").answer["results"]
    assert answer["bandwidth_seconds"] == pytest.approx(7 / 50)  # 7 GB of each at 400 Gb/s
    assert answer["suggested"]["slower"] == pytest.approx(0.0)
    split = run(*cost, "--nodes", "node[1,17]")
    assert split.code == 2
    assert "is disconnected: 3 parts" in split.err


def test_what_nodes_are_refused(fabric: Path) -> None:
    cost = ("cost", fabric, "all_to_all", "--bytes", "1GB")
    for more, says in (
        (("--nodes", "node[105-"), "bracket"),
        (("--nodes", "nope[1-2]"), "2 of 2 names are no host"),
        (("--nodes", "999", "--suggest"), "from 1 to 144"),
        (("--suggest",), "does not say how many nodes"),
        (("--nodes", "node105", "--free", "node106"), "says what --suggest may choose"),
        (("--ranks", "4", "--nodes", "node105"), "goes without --nodes"),
    ):
        found = run(*cost, *more)
        assert found.code == 2
        assert says in found.err
