"""Does one command answer the question, in words, figures and JSON, the same each time?"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rackbound
import serving
import topo
from rackbound import evaluate
from topo import InputError

from .command import DATA, MY_RACK, Run, refuse, run
from .test_schemas import complaints

CONFIG = DATA / "hf-config" / "Mixtral-8x22B-v0.1.config.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluate")


@pytest.fixture(scope="module")
def main_run(folder: Path) -> Run:
    """The first command of the README."""
    return run("evaluate", "hgx-h100-8", "gb200-nvl72", "--model", "deepseek-v3", "--out", folder / "main")


@pytest.fixture(scope="module")
def my_rack(folder: Path) -> Path:
    path = folder / "my-rack.toml"
    path.write_text(MY_RACK)
    return path


@pytest.fixture(scope="module")
def own(folder: Path, my_rack: Path) -> Run:
    """A design file and a config.json, as JSON."""
    return run("evaluate", my_rack, "--model", CONFIG, "--out", folder / "own", "--batch", "64", "--json")


def saved(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "evaluate.json").read_text(encoding="utf-8"), parse_constant=refuse)
    return found


# --- what is said ----------------------------------------------------------------------------------------------------


def test_the_first_line_per_design_is_layer_bound_ratio_verdict(main_run: Run) -> None:
    assert main_run.code == 0
    hgx, gb200 = main_run.out.splitlines()[:2]
    # Integers as in the issue: 32 and 2,808 experts (the catalogue's latencies move neither), 256 of 44.04 MB asked.
    assert hgx.startswith("hgx-h100-8: deepseek-v3's expert layer is 256 experts (11.27 GB), the bound is 32 experts")
    assert "ratio 0.125: no" in hgx
    assert gb200.startswith("gb200-nvl72: deepseek-v3's expert layer is 256 experts (11.27 GB), the bound is 2,808 ")
    assert "ratio 10.97: yes" in gb200


def test_the_defaults_are_printed_with_the_answer(main_run: Run) -> None:
    flat = " ".join(main_run.out.split())
    for words in ("--batch-per-gpu 114", "--context 4096", "--budget 20ms", "--domains 2"):
        assert words in flat


def test_a_model_that_does_not_fit_is_a_row_with_its_reason(main_run: Run) -> None:
    assert "the model itself does not fit: at EP 16 it needs 90.8 GB per GPU of 77.31 GB usable" in main_run.out


def test_it_says_what_binds_and_where_the_answer_flips(main_run: Run) -> None:
    assert re.search(r"hgx-h100-8: bound by .*\.", main_run.out)
    assert re.search(r"gb200-nvl72: bound by .*\.", main_run.out)
    assert re.search(r"several domains beat one from a scale-out of 7\d\.\d+ GB/s per GPU", main_run.out)
    assert main_run.out.count("the verdict flips") >= 2  # with everything overlapped, and at a constant total batch


def test_assumptions_are_printed(main_run: Run) -> None:
    assert "Assumed:" in main_run.out
    assert "scale_out.latency = 0.8 us" in main_run.out


def test_notes_go_to_standard_error_and_name_the_folder(main_run: Run, folder: Path) -> None:
    assert str(folder / "main") in main_run.err.replace("\n", "")
    assert "wrote" not in main_run.out


# --- what is written -------------------------------------------------------------------------------------------------


def test_figures_lie_directly_in_out_each_as_png_and_svg(main_run: Run, folder: Path) -> None:
    assert main_run.code == 0
    files = sorted((folder / "main").iterdir())
    assert all(path.is_file() for path in files)
    stems = {suffix: {p.stem for p in files if p.suffix == suffix} for suffix in (".png", ".svg", ".json")}
    assert stems[".json"] == {"evaluate"}
    assert stems[".png"] == stems[".svg"]
    for design in ("hgx-h100-8", "gb200-nvl72"):
        assert sum(design in stem for stem in stems[".png"]) >= 2  # its topology, its step time
    assert len(files) == 1 + 2 * len(stems[".png"])


def test_figures_are_whole(main_run: Run, folder: Path) -> None:
    assert main_run.code == 0
    for path in (folder / "main").glob("*.png"):
        data = path.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert data[-8:-4] == b"IEND"
        assert min(struct.unpack(">II", data[16:24])) > 300
    for path in (folder / "main").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_evaluate_json_keeps_to_its_schema(main_run: Run, folder: Path) -> None:
    assert main_run.code == 0
    answer = saved(folder / "main")
    assert list(answer) == ["rackbound", "schema", "inputs", "assumptions", "results"]
    assert answer["schema"] == "evaluate/1"
    assert answer["rackbound"] == rackbound.__version__
    assert complaints(answer) == []
    assert answer["inputs"] == {
        "designs": ["hgx-h100-8", "gb200-nvl72"], "model": "deepseek-v3", "assume": {}, "batch": None,
        "batch_per_gpu": 114, "context": 4096, "budget": 0.02, "domains": 2, "overlap": "none", "profile": "ideal",
        "settings": {},
    }  # fmt: skip
    hgx, gb200 = answer["results"]["designs"]
    assert [row["bound"]["n_experts"] for row in (hgx, gb200)] == [32, 2808]
    assert [row["within_bound"] for row in (hgx, gb200)] == [False, True]
    assert hgx["step"]["fits"] is False
    assert hgx["placement"]["plan"] is None
    assert gb200["placement"]["status"] == "optimal"
    assert gb200["placement"]["plan"]["ep"] == 72


def test_json_on_standard_output_is_the_file(own: Run, folder: Path) -> None:
    assert own.code == 0
    assert own.out == (folder / "own" / "evaluate.json").read_text(encoding="utf-8")
    assert complaints(own.answer) == []


def test_files_of_ones_own_work_as_names_do(own: Run, my_rack: Path) -> None:
    answer = own.answer
    assert answer["inputs"]["designs"] == [str(my_rack)]
    assert answer["inputs"]["model"] == str(CONFIG)
    assert answer["results"]["designs"][0]["design"] == "my-rack"
    assert answer["results"]["model"]["n_experts"] == 8
    assert any("scale_out.radix = 64" in line for line in answer["assumptions"])  # a default the file leaves open


def test_the_same_input_gives_the_same_bytes_of_every_file(own: Run, folder: Path, my_rack: Path) -> None:
    again = run("evaluate", my_rack, "--model", CONFIG, "--out", folder / "again", "--batch", "64", "--json")
    assert again.out == own.out
    first, second = ({p.name: p.read_bytes() for p in (folder / d).iterdir()} for d in ("own", "again"))
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


def test_the_same_in_python(own: Run, my_rack: Path) -> None:
    answer = evaluate(my_rack, CONFIG, workload=serving.Workload(context=4096, batch=64))
    assert answer.to_dict() == own.answer["results"]
    assert answer.designs[0].summary in repr(answer)
    assert repr(answer).startswith("Evaluation(my-rack: ")


# --- other questions -------------------------------------------------------------------------------------------------


def test_a_dense_models_bound_is_no_experts(folder: Path) -> None:
    out = folder / "dense"
    found = run("evaluate", "hgx-h100-8", "--model", "llama-3.1-70b", "--batch", "8", "--out", out)
    assert found.code == 0
    assert found.out.startswith("hgx-h100-8: llama-3.1-70b is dense, its bound is no experts\n")
    answer = saved(out)
    assert complaints(answer) == []
    row = answer["results"]["designs"][0]
    assert (row["bound"]["status"], row["ratio"], row["within_bound"], row["curve"]) == ("no experts", None, None, None)
    assert {path.suffix for path in out.iterdir()} >= {".png", ".svg", ".json"}


def test_nothing_fits_is_answered(folder: Path) -> None:
    out = folder / "nothing"
    found = run("evaluate", "hgx-h100-8", "--model", "deepseek-v3", "--budget", "1ms", "--out", out)
    assert found.code == 0
    assert "the bound is 0 experts" in found.out
    assert complaints(saved(out)) == []


def test_one_domain_alone(folder: Path) -> None:
    out = folder / "alone"
    found = run("evaluate", "hgx-h100-8", "--model", "mixtral-8x7b", "--domains", "1", "--out", out)
    assert found.code == 0
    answer = saved(out)
    assert complaints(answer) == []
    assert answer["results"]["designs"][0]["bound"]["scale_out_needed"] is None


def test_the_same_design_twice_keeps_both_sets_of_figures(folder: Path) -> None:
    out = folder / "twice"
    found = run("evaluate", "hgx-h100-8", "HGX H100-8", "--model", "mixtral-8x7b", "--out", out)
    assert found.code == 0
    names = {path.name for path in out.glob("topology-*.svg")}
    assert names == {"topology-hgx-h100-8-hgx-h100-8.svg", "topology-hgx-h100-8-HGX-H100-8.svg"}
    assert {answer["design"] for answer in saved(out)["results"]["designs"]} == {
        "hgx-h100-8 (hgx-h100-8)", "hgx-h100-8 (HGX H100-8)",
    }  # fmt: skip


def test_a_folder_that_is_there_is_written_into(folder: Path, own: Run) -> None:
    assert own.code == 0
    out = folder / "there"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert run("evaluate", "hgx-h100-8", "--model", "mixtral-8x7b", "--out", out).code == 0
    assert (out / "mine.txt").read_text() == "mine"
    assert not [path for path in out.iterdir() if path.name.startswith(".")]  # no half-written file is left


@pytest.mark.parametrize(
    ("options", "flipped"),
    [({}, True), ({"overrides": {"scale_out.bandwidth": "800 Gb/s"}}, False)],
    ids=["400", "800"],
)
def test_the_thesis_at_400_and_800_gbit(options: dict[str, Any], flipped: bool) -> None:
    """One rack bounds the layer at 400 Gb/s NICs and does not at 800; both at the catalogue's latencies."""
    one = evaluate("gb200-nvl72", "deepseek-v3", **options).designs[0]
    assert one.bound.one_domain_bounds is flipped
    assert one.bound.width == (72 if flipped else 144)
    said = "several domains beat one from" if flipped else "one domain would be the bound below"
    assert any(sentence.startswith(f"{said} a scale-out of") for sentence in one.flips)


def test_no_designs_is_refused() -> None:
    with pytest.raises(InputError, match="at least one design"):
        evaluate([], "mixtral-8x7b")


@pytest.mark.parametrize("budget", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("model", ["mixtral-8x7b", "llama-3.1-70b"])
def test_budgets_that_are_none_are_refused(budget: float, model: str) -> None:
    with pytest.raises(InputError, match="step_budget"):
        evaluate("hgx-h100-8", model, budget=budget)


def test_a_loaded_model_and_a_path_are_taken() -> None:
    model = serving.load_model("mixtral-8x7b")
    work = serving.Workload(context=1024, batch_per_gpu=4)
    answers = [evaluate(["hgx-h100-8"], which, workload=work, domains=1) for which in (model, "mixtral-8x7b")]
    assert answers[0].to_dict() == answers[1].to_dict()
    assert topo.load("hgx-h100-8", 1).number_of_nodes() == answers[0].graphs[0].number_of_nodes()


def test_dispatch_sends_tokens_as_wide_as_the_experts_take_them() -> None:
    model = replace(serving.load_model("mixtral-8x7b"), expert_hidden_size=1024)  # a latent width, as Nemotron 3 has
    work = serving.Workload(batch_per_gpu=64)
    sent = evaluate("hgx-h100-8", model, workload=work, domains=1).designs[0].dispatch
    assert sent is not None
    assert sent.n_bytes == 64 * 2 * 1024 * 1
