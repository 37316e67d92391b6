"""`rackbound read`: what is printed of a file people already have, and what every verb makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import topo
from topo.readers._kinds import FOREIGN

from .command import DATA, run

HOST = DATA / "readers-host"
BOARD, CUBE = HOST / "topo-m" / "h100-8gpu-no-nic.txt", HOST / "topo-m" / "dgx1-v100-mlx5-columns.txt"


def test_a_person_reads_what_was_found() -> None:
    found = run("read", BOARD)
    assert (found.code, found.err) == (0, "")
    assert "nvidia-smi-topo, topology matrix of nvidia-smi topo -m" in found.out
    assert "8 gpu, 2 cpu, 1 switch" in found.out
    assert "scale-up domains: 1 of 8 GPUs" in found.out
    assert "144" in found.out
    assert "25 GB/s per link and direction assumed" in found.out


def test_json_of_several_files() -> None:
    answer = run("read", BOARD, CUBE, "--json").answer
    one, two = answer["results"]
    assert (one["kind"], one["nodes"]["gpu"], one["domains"]) == ("nvidia-smi-topo", 8, [8])
    assert two["edges"]["scale-up"] == {"edges": 16, "lanes": 24}
    assert two["domains"] == [8]
    assert set(answer["assumptions"]) == {*one["notes"], *two["notes"]}


def test_written_graph_costs_the_same_as_the_file(tmp_path: Path) -> None:
    out = tmp_path / "board.json"
    found = run("read", BOARD, "--save", out)
    assert f"written to {out}" in found.out
    assert topo.load(out).edges["GPU0", "NVSwitch0"]["lanes"] == 18
    of_text, of_graph, of_design = (
        run("cost", name, "all_to_all", "--bytes", "1GB", "--json").answer for name in (BOARD, out, "hgx-h100-8")
    )
    assert of_text["results"] == of_graph["results"]
    assert of_text["results"]["seconds"] == pytest.approx(of_design["results"]["seconds"])  # the board it is
    assert any("25 GB/s per link" in line for line in of_text["assumptions"])


def test_verbs_take_the_file() -> None:
    assert "as a graph of 1 domains (8 GPUs)" in run("design", "check", CUBE).out
    assert "Measures, 1 domains" in run("design", "show", CUBE).out
    assert "leave it out" in run("cost", CUBE, "all_to_all", "--bytes", "1GB", "--domains", "2").err.lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n", "is no topology: peer-to-peer matrix"),
        ("<html>GPU0 X</html>", "is an HTML page"),
        ("", "is empty"),
        ("hello", "Known kinds: rocm-smi-topo"),
    ],
)
def test_what_is_none_ends_with_2(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    found = run("read", path)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_faults_of_all_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    found = run("read", tmp_path / "empty", tmp_path / "none", BOARD)
    assert found.code == 2
    assert "is empty" in found.err
    assert "No such file" in found.err


def test_options(tmp_path: Path) -> None:
    assert run("read", BOARD, "--as", "nvidia-smi-topo").code == 0
    assert "Did you mean 'nvidia-smi-topo'" in run("read", BOARD, "--as", "nvidia-topo").err
    assert "<system> = None: is not in the file" in run("read", BOARD, "--as", "nccl-xml").err
    assert "takes one file, not 2" in run("read", BOARD, CUBE, "--write", tmp_path / "g.json").err
    assert "has no suffix of a known format" in run("read", BOARD, "--write", tmp_path / "g.png").err


def test_cures_name_commands_that_exist() -> None:
    """What takes a file that holds no topology can be typed as the message has it."""
    told = {match.groups() for row in FOREIGN
            for match in re.finditer(r"rackbound ((?:design |model )?[a-z]+)([^.;]*)", row.cure)}  # fmt: skip
    assert len(told) > 5
    for command, rest in told:
        shown = run(*command.split(), "--help")
        assert shown.code == 0, command
        assert set(re.findall(r"--[a-z-]+", rest)) <= set(re.findall(r"--[a-z-]+", shown.out)), command
