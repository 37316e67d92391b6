"""Does `rackbound join` make one cluster of files, and is it costed as by hand?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import topo

from .command import DATA, run

REAL = DATA / "readers-fabric" / "ibnetdiscover-real-144hosts-8sw.topo"
HOST = DATA / "readers-host" / "topo-m" / "c4140-v100-trailing-tabs.txt"  # 4 GPUs, one NIC


def test_one_file_for_all_hosts(tmp_path: Path) -> None:
    out = tmp_path / "cluster.json"
    found = run("join", REAL, HOST, "--hosts", "all", "--write", out)
    assert found.code == 0
    assert "576 gpu, 144 nic" in found.out
    answer = run("cost", out, "all_to_all", "--bytes", "1GB", "--nodes", "16", "--suggest", "--json").answer
    assert answer["results"]["n_ranks"] == 64
    sent = 4 * 1e9 * 60 / 64  # what the four GPUs of a host send to other hosts, over one 4xQDR port
    assert answer["results"]["bandwidth_seconds"] == pytest.approx(sent / 4e9)


def test_files_named_after_their_hosts(tmp_path: Path) -> None:
    files = [tmp_path / "node105.txt", tmp_path / "node107.txt"]
    for file in files:
        shutil.copy(HOST, file)
    answer = run("join", REAL, *files, "--keep", "--json").answer
    assert answer["results"]["nodes"]["gpu"] == 8
    assert answer["results"]["nodes"]["host"] == 142
    assert any("142 hosts have no reading" in note for note in answer["results"]["notes"])


def test_hosts_told_by_a_list(tmp_path: Path) -> None:
    out = tmp_path / "cluster.json"
    more = ("--keep", "--write", out)
    assert run("join", REAL, HOST, "--hosts", "node[105-106]", *more).code == 0
    assert topo.nodelist(topo.load(out), "node106")[0] == "node106/GPU0"
    assert run("join", REAL, HOST, "--hosts", f"{HOST}=node105", *more).code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((REAL, HOST), "is the name of no host of the fabric"),
        ((REAL, HOST, "--hosts", "nope"), "'nope': is no host of the fabric"),
        ((REAL, HOST, "--hosts", "x=node105"), "must be a file, =, and its hosts"),
        ((REAL, HOST, "--hosts", "node105"), "143 of 144 hosts of the fabric have no reading"),
        ((REAL, HOST, "--hosts", "all", "--domain", "rack0"), "must be a name, =, and hosts"),
        ((REAL, HOST, "--hosts", "all", "--domain", "blocks"), "no host of the fabric names its block"),
        ((HOST, REAL), "must have a graph with hosts"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], says: str) -> None:
    found = run("join", *arguments)
    assert found.code == 2
    assert says in found.err
