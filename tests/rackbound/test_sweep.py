"""Does `rackbound sweep` read a study as it is meant, and refuse the rest in one go?"""

from __future__ import annotations

from pathlib import Path

import pytest

import serving
import topo

from .command import DATA, run

STUDY = DATA / "study-small.toml"


def test_a_study_is_the_sweep_it_describes() -> None:
    told = run("sweep", STUDY, "--json").answer["results"]
    assert told["points"] == 4 * 2 * 3 * 2 * 3 * 2
    assert told["axes"]["design"] == ["hgx-h100-8 x 1", "hgx-h100-8 x 2", "hgx-b200-8 x 1", "hgx-b200-8 x 2"]
    assert told["refused"] == {"layout needs 16 GPUs and the graph has 8": 48}
    first = told["front"][0]
    work = serving.Workload(batch_per_gpu=1, kv_dtype="fp8")
    layout = serving.Layout(first["ep"], tp=first["tp"])
    one = serving.step(topo.load("hgx-b200-8"), serving.load_model("mixtral-8x7b"), work, layout=layout)
    assert first["seconds"] == pytest.approx(one.two_batch)


def test_a_report_and_a_figure(tmp_path: Path) -> None:
    found = run("sweep", STUDY, "--figure", tmp_path / "front.svg")
    assert found.code == 0
    assert "288 points, 240 of layouts that can exist, 170 of them fit" in found.out
    assert "points that no other beats in both, batches per GPU" in found.out
    assert (tmp_path / "front.svg").stat().st_size > 1000


def test_an_engine_of_a_study(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.read_text().replace('time = "two_batch"', 'engine = "vllm-hopper"'))
    told = run("sweep", path, "--json").answer
    first = told["results"]["front"][-1]
    assert (told["results"]["time"], told["inputs"]["engine"]) == ("engine", "vllm-hopper")
    design, domains = first["design"].split(" x ")
    layout = serving.Layout(first["ep"], tp=first["tp"])
    asked = serving.Workload(context=first["context"], kv_dtype="fp8", batch_per_gpu=first["batch"])
    one = serving.step(topo.load(design, int(domains)), serving.load_model("mixtral-8x7b"), asked, layout=layout,
                       profile="vllm-hopper")  # fmt: skip
    assert first["seconds"] == pytest.approx(one.times["engine"])
    path.write_text(STUDY.read_text().replace('time = "two_batch"', 'engine = "vllm-hoper"'))
    assert "vllm-hopper" in run("sweep", path).err


def test_types_of_weights_are_swept(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        STUDY.read_text().replace('models = "mixtral-8x7b"', 'models = "mixtral-8x7b"\nweight_dtype = ["bf16", "fp8"]')
    )
    told = run("sweep", path, "--json").answer
    assert told["results"]["axes"]["model"] == ["mixtral-8x7b bf16", "mixtral-8x7b fp8"]
    assert any("weights taken as fp8" in line for line in told["assumptions"])


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("[study]\ndesign = 'x'\n[layout]\nep = 8\n[wurkload]\nbatch = 1\n")
    found = run("sweep", path)
    assert found.code == 2
    for part in ("study.design", "study.designs", "study.models", "wurkload"):
        assert part in found.err
    assert run("sweep", tmp_path / "none.toml").code == 2
    path.write_text(STUDY.read_text().replace("batch_per_gpu = [1, 16, 256]", ""))
    assert "states no batch" in run("sweep", path).err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", "layout = 3: must be a table"),
        (
            "[layout]",
            'time = ["serial", "lower"]\n[layout]',
            "study.time = ['serial', 'lower']: is one for the whole study",
        ),
        (
            "[layout]",
            'engine = ["vllm-hopper"]\n[layout]',
            "study.engine = ['vllm-hopper']: is one for the whole study",
        ),
        ("[layout]", "time = []\n[layout]", "study.time = []: holds nothing"),
        ("[layout]", "weight_dtype = [3]\n[layout]", "study.weight_dtype = 3: must be text"),
        ('"hgx-h100-8"', "3", "study.designs = 3: must be text"),
        ('["hgx-h100-8"]', "{ a = 1 }", "study.designs = {'a': 1}: must be text"),
        ("[4, 8]", "[[4], [8, 2]]", "layout.ep = [4]: must be a whole number"),
        ("[4, 8]", "[4.0]", "layout.ep = 4.0: must be a whole number"),
        ("[4, 8]", "[]", "layout.ep = []: holds nothing"),
        ("batch = 8", "batch = 0", "workload.batch = 0: must be a whole number"),
        ("batch = 8", 'batch = 8\nphase = "decod"', "workload.phase = 'decod': is not known"),
        ("batch = 8", "batch = 8\nkv_dtype = []", "workload.kv_dtype = []: holds nothing"),
    ],
)
def test_a_value_that_is_none_is_said_with_its_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    path, text = tmp_path / "study.toml", (
        '[study]\ndesigns = ["hgx-h100-8"]\nmodels = ["mixtral-8x7b"]\n[layout]\nep = [4, 8]\n[workload]\nbatch = 8\n'
    )  # fmt: skip
    changed = text.replace(old, new, 1)
    if said.startswith("layout = 3"):
        changed = "layout = 3\n" + text.replace("[layout]\nep = [4, 8]\n", "")
    path.write_text(changed)
    found = run("sweep", path)
    assert found.code == 2
    assert f"{path}: {said}" in " ".join(found.err.split())


def test_a_value_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.read_text().replace('["hgx-h100-8", "hgx-b200-8"]', '["hgx-h100-8", "hgx-h100-8"]'))
    said = " ".join(run("sweep", path).err.split())
    assert "study.designs = 'hgx-h100-8': stands there twice. Give each once." in said
