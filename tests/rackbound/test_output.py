"""Are files written whole or not at all, and is JSON strict?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rackbound._options import overrides_of
from rackbound._output import dumped, envelope, open_folder, slug, write_text
from topo import InputError


def test_json_refuses_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumped({"seconds": math.nan})
    assert json.loads(dumped({"name": "é", "n": 1})) == {"name": "é", "n": 1}


def test_an_envelope_says_each_assumption_once_in_order() -> None:
    whole = envelope("cost/1", {"a": 1}, ["y", "x", "y"], {"seconds": 1.0})
    assert list(whole) == ["rackbound", "schema", "inputs", "assumptions", "results"]
    assert whole["assumptions"] == ["y", "x"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "evaluate.json"
    write_text(path, "old\n")
    write_text(path, "new\n")
    assert path.read_text() == "new\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["evaluate.json"]


def test_a_file_that_cannot_be_replaced_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "evaluate.json"
    path.mkdir()
    (path / "mine").write_text("mine")
    with pytest.raises(InputError, match="cannot be written"):
        write_text(path, "new\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["evaluate.json"]
    assert (path / "mine").read_text() == "mine"


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path / "a" / "b"))
    assert folder.is_dir()
    assert list(folder.iterdir()) == []
    assert open_folder(str(folder)) == folder


@pytest.mark.parametrize("name", ["", " "])
def test_a_folder_without_a_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--out"):
        open_folder(name)


@pytest.mark.parametrize(
    ("name", "file"),
    [("gb200-nvl72", "gb200-nvl72"), ("MY RACK/72", "MY-RACK-72"), ("../..", "design"), ("é", "design")],
)
def test_names_fit_for_files(name: str, file: str) -> None:
    assert slug(name) == file


def test_settings_are_read_as_toml_else_as_words() -> None:
    assert overrides_of(["scale_out.radix=128", "scale_out.bandwidth = 800 Gb/s", "scale_up.reduces=true"]) == {
        "scale_out.radix": 128, "scale_out.bandwidth": "800 Gb/s", "scale_up.reduces": True,
    }  # fmt: skip
    assert overrides_of(["scale_out.latency='0 s'", 'scale_up.latency="1 us"', "scale_up.lanes=[5, 4]"]) == {
        "scale_out.latency": "0 s", "scale_up.latency": "1 us", "scale_up.lanes": [5, 4],
    }  # fmt: skip
    assert overrides_of(None) == {}
