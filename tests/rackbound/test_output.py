"""Are files written whole or not at all, and is JSON strict?"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rackbound._options import overrides_of
from rackbound._output import dumped, envelope, require_folder, slug, whole_folder
from topo import InputError


def test_json_refuses_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumped({"seconds": math.nan})
    assert json.loads(dumped({"name": "é", "n": 1})) == {"name": "é", "n": 1}


def test_an_envelope_says_each_assumption_once_in_order() -> None:
    whole = envelope("cost/1", {"a": 1}, ["y", "x", "y"], {"seconds": 1.0})
    assert list(whole) == ["rackbound", "schema", "inputs", "assumptions", "results"]
    assert whole["assumptions"] == ["y", "x"]


def test_files_are_replaced_whole_and_together(tmp_path: Path) -> None:
    (tmp_path / "evaluate.json").write_text("old")
    with whole_folder(str(tmp_path)) as draft:
        (draft / "evaluate.json").write_text("new")
        (draft / "bounds.svg").write_text("svg")
        assert (tmp_path / "evaluate.json").read_text() == "old"
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {
        "evaluate.json": "new",
        "bounds.svg": "svg",
    }


def _write_both(out: Path) -> None:
    with whole_folder(str(out)) as draft:
        (draft / "bounds.svg").write_text("svg")
        (draft / "evaluate.json").write_text("new")


def test_one_file_that_cannot_be_replaced_keeps_all_back(tmp_path: Path) -> None:
    (tmp_path / "evaluate.json").mkdir()
    with pytest.raises(InputError, match="where a file should go"):
        _write_both(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["evaluate.json"]


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    require_folder(str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []
    with whole_folder(str(tmp_path / "a" / "b")) as draft:
        (draft / "x").write_text("x")
    assert (tmp_path / "a" / "b" / "x").read_text() == "x"


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for name in ("file", "file/below", "file/below/more"):
        with pytest.raises(InputError, match="is no folder"):
            require_folder(str(tmp_path / name))


@pytest.mark.parametrize("name", ["", " "])
def test_a_folder_without_a_name(name: str) -> None:
    with pytest.raises(InputError, match="--out"):
        require_folder(name)


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
