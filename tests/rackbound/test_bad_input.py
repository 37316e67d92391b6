"""Does bad input get one clear message, exit code 2, no traceback and nothing written?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

import collectives
import placement
import serving
import topo
from rackbound._cli import app
from topo import InputError

from .command import DATA, MY_RACK, run

MODEL = ("--model", "mixtral-8x7b")
CONFIG = DATA / "hf-config" / "Mixtral-8x22B-v0.1.config.json"


def refused(*arguments: object) -> str:
    """Return the one message of a command that must be refused."""
    found = run(*arguments)
    assert found.code == 2, found
    assert found.out == ""
    assert "Traceback" not in found.err
    lines = found.err.splitlines()
    assert len(lines) == 1, found.err
    assert lines[0].startswith("rackbound: ")
    return lines[0].removeprefix("rackbound: ")


# --- names -----------------------------------------------------------------------------------------------------------

VERBS = [
    ("evaluate", "{design}", "--model", "{model}"), ("step", "{design}", "--model", "{model}"),
    ("bound", "{design}", "--model", "{model}"), ("place", "{design}", "--model", "{model}"),
]  # fmt: skip
DESIGN_VERBS = [
    *VERBS, ("cost", "{design}", "all_to_all", "--bytes", "1GB"), ("design", "show", "{design}"),
    ("design", "check", "{design}"),
]  # fmt: skip


def filled(verb: tuple[str, ...], design: object = "hgx-h100-8", model: object = "mixtral-8x7b") -> list[str]:
    return [word.format(design=design, model=model) for word in verb]


@pytest.mark.parametrize("verb", DESIGN_VERBS, ids=lambda verb: " ".join(verb[:2]))
def test_an_unknown_design_lists_the_known_and_suggests_the_nearest(verb: tuple[str, ...], tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out") if verb[0] == "evaluate" else ()
    said = refused(*filled(verb, design="gb200-nvl27"), *out)
    assert "'gb200-nvl27'" in said
    assert "Did you mean 'gb200-nvl72'?" in said
    assert "hgx-a100-8, hgx-b200-8" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["vr-nvl72", "helios-72"])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_chip_without_a_bf16_rate_is_refused_with_what_it_states(
    verb: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "out") if verb[0] == "evaluate" else ()
    said = refused(*filled(verb, design=name, model="deepseek-v3"), *out)
    for words in ("chip.flops of ", "'fp8': '", " PFLOP/s'", "needs a rate for bf16", "--set chip.flops.bf16="):
        assert words in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", [*VERBS, ("model", "show", "{model}")], ids=lambda verb: " ".join(verb[:2]))
def test_an_unknown_model_lists_the_known_and_suggests_the_nearest(verb: tuple[str, ...], tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out") if verb[0] == "evaluate" else ()
    said = refused(*filled(verb, model="deepseek-v4"), *out)
    assert "'deepseek-v4'" in said
    assert "Did you mean 'deepseek-v3'?" in said
    assert "llama-3.1-70b, minimax-m2" in said
    assert not (tmp_path / "out").exists()


def test_one_bad_name_among_several_is_refused(tmp_path: Path) -> None:
    assert "'nope'" in refused("evaluate", "hgx-h100-8", "nope", *MODEL, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- quantities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [("1", "needs a unit"), ("1000000", "needs a unit"), ("1 GB/s", "is a bandwidth, not a size"),
     ("20ms", "is a time, not a size"), ("-1GB", "zero or more"), ("nan B", "finite"),
     ("nanB", "finite"), ("inf GB", "finite"), ("1 gigabyte", "unit 'gigabyte' is unknown"),
     ("GB", "a number and its unit"), ("", "a number and its unit"), ("1,5 GB", "is unknown")],
)  # fmt: skip
def test_sizes(text: str, why: str) -> None:
    said = refused("cost", "hgx-h100-8", "all_to_all", f"--bytes={text}")
    assert said.startswith("--bytes = ")
    assert why in said
    assert "GB" in said.partition(". ")[2]  # the cure names units


def test_a_negative_size_as_a_word_of_its_own() -> None:
    assert "zero or more" in refused("cost", "hgx-h100-8", "all_to_all", "--bytes", "-1GB")


@pytest.mark.parametrize("verb", ["evaluate", "bound"])
@pytest.mark.parametrize(
    ("text", "why"),
    [("20", "needs a unit"), ("20 GB", "is a size, not a time"), ("-20ms", "above zero"), ("0s", "above zero"),
     ("nan s", "finite"), ("inf s", "finite"), ("20 milliseconds", "is unknown"), ("soon", "a number and its unit")],
)  # fmt: skip
def test_budgets(verb: str, text: str, why: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out") if verb == "evaluate" else ()
    said = refused(verb, "hgx-h100-8", *MODEL, f"--budget={text}", *out)
    assert said.startswith("--budget = ")
    assert why in said
    assert not (tmp_path / "out").exists()


def test_a_time_limit_is_a_time() -> None:
    assert "needs a unit" in refused("place", "hgx-h100-8", *MODEL, "--time-limit", "1")


# --- numbers and words -----------------------------------------------------------------------------------------------

ANY = ["evaluate", "step", "bound", "place"]


@pytest.mark.parametrize("verb", ANY)
@pytest.mark.parametrize(
    ("options", "place"),
    [(["--domains=-1"], "domains"), (["--domains=0"], "domains"), (["--context=0"], "context"),
     (["--context=-1"], "context"), (["--batch-per-gpu=0"], "batch_per_gpu"), (["--batch=-5"], "batch"),
     (["--batch=8", "--batch-per-gpu=8"], "batch, batch_per_gpu"),
     (["--set", "scale_out.speed=1"], "override scale_out.speed"), (["--set", "radix=1"], "override radix"),
     (["--set", "scale_out.radix"], "--set"), (["--set", "=128"], "--set"),
     (["--set", "scale_out.bandwidth=400"], "scale_out.bandwidth"),
     (["--set", "scale_out.bandwidth=400 GB"], "scale_out.bandwidth"),
     (["--set", "scale_up.bandwidth=-1 GB/s"], "scale_up.bandwidth"),
     (["--set", "design.domain_size=0"], "design.domain_size")],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_cannot_be(verb: str, options: list[str], place: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out") if verb == "evaluate" else ()
    said = refused(verb, "hgx-h100-8", *MODEL, *options, *out)
    assert f"{place} = " in said
    assert not (tmp_path / "out").exists()


def test_a_bad_key_lists_the_known_and_suggests_the_nearest() -> None:
    said = refused("bound", "hgx-h100-8", *MODEL, "--set", "scale_out.bandwith=1 GB/s")
    assert "Did you mean 'scale_out.bandwidth'?" in said


@pytest.mark.parametrize("verb", ["evaluate", "bound"])
def test_an_unknown_overlap(verb: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out") if verb == "evaluate" else ()
    said = refused(verb, "hgx-h100-8", *MODEL, "--overlap", "ful", *out)
    assert "Did you mean 'full'?" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("cost", "hgx-h100-8", "alltoall", "--bytes", "1GB"), "Did you mean 'all_to_all'?"),
     (("cost", "hgx-h100-8", "all_to_all", "--bytes", "1GB", "--routing", "ecpm"), "Did you mean 'ecmp'?"),
     (("cost", "hgx-h100-8", "all_to_all", "--bytes", "1GB", "--ranks", "9"), "from 1 to 8"),
     (("cost", "hgx-h100-8", "all_to_all", "--bytes", "1GB", "--ranks", "0"), "from 1 to 8"),
     (("cost", "hgx-h100-8", "all_to_all_v", "--bytes", "1GB"), "matrix of shape (8, 8)"),
     (("cost", "hgx-h100-8", "all_reduce"), "--bytes = None: all_reduce needs a size"),
     (("cost", "hgx-h100-8", "all_reduce", "--bytes", "1GB", "--algorithm", "rign"), "Did you mean 'ring'?"),
     (("cost", "hgx-h100-8", "all_reduce", "--bytes", "1GB", "--algorithm", "torus"), "the ranks have no coordinates"),
     (("cost", "hgx-h100-8", "all_reduce", "--bytes", "1GB", "--algorithm", "none.xml"), "cannot be read"),
     (("step", "hgx-h100-8", *MODEL, "--ep", "9", "--domains", "1"), "the graph has 8"),
     (("step", "hgx-h100-8", *MODEL, "--ep", "1000000"), "125000 domains of 8 or ep 8 would do"),
     (("step", "hgx-h100-8", *MODEL, "--tp", "3"), "tp 2 would do"),
     (("step", "hgx-h100-8", *MODEL, "--ep", "6", "--tp", "4"), "ep 4 or 8 would do, or tp 3"),
     (("step", "hgx-h100-8", *MODEL, "--phase", "prefil"), "Did you mean 'prefill'"),
     (("step", "hgx-h100-8", *MODEL, "--draft", "1"), "acceptance = None: is needed with draft"),
     (("step", "hgx-h100-8", *MODEL, "--time", "serials"), "Did you mean 'serial'"),
     (("step", "hgx-h100-8", *MODEL, "--assume", "hidden_size=@width"), "names width, a key the config does not have"),
     (("step", "hgx-h100-8", *MODEL, "--ep", "0"), "ep = 0"),
     (("step", "hgx-h100-8", *MODEL, "--pp", "0"), "pp = 0"),
     (("step", "hgx-h100-8", *MODEL, "--pp", "-1"), "pp = -1"),
     (("step", "gb200-nvl72", *MODEL, "--ep", "1", "--pp", "33"), "the model has 32 layers"),
     (("place", "hgx-h100-8", *MODEL, "--ep", "9"), "layout"),
     (("place", "hgx-h100-8", *MODEL, "--loads", "no-such-file.json", "--pp", "1"), "is not there")],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_other_words_and_numbers(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(*arguments)


def test_several_faults_are_all_said_each_on_its_line() -> None:
    found = run("step", "hgx-h100-8", *MODEL, "--context", "0", "--batch", "-1")
    assert found.code == 2
    assert [line.split(" = ")[0] for line in found.err.splitlines()] == ["rackbound: context", "rackbound: batch"]


@pytest.mark.parametrize(
    "arguments",
    [("evaluate",), ("evaluate", "hgx-h100-8"), ("bound", "hgx-h100-8", *MODEL, "--domains", "two"), ("nonsense",),
     ("cost", "hgx-h100-8"), ("step", "hgx-h100-8", *MODEL, "--no-such-option")],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_is_refused_by_the_parser(arguments: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Error" in found.stderr
    assert "Traceback" not in found.stderr


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [({"num_local_experts": None}, "num_local_experts"), ({"hidden_size": None}, "hidden_size"),
     ({"model_type": "t5"}, "model_type = 't5'"), ({"model_type": "mixtrall"}, "Did you mean 'mixtral'?"),
     ({"model_type": None}, "model_type"), ({"num_hidden_layers": -1}, "num_hidden_layers = -1")],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_configs(verb: tuple[str, ...], change: dict[str, object], said: str, tmp_path: Path) -> None:
    config = {k: v for k, v in (json.loads(CONFIG.read_text()) | change).items() if v is not None}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    out = ("--out", tmp_path / "out") if verb[0] == "evaluate" else ()
    message = refused(*filled(verb, model=path), *out)
    assert str(path) in message
    assert said in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00\x01"])
def test_what_is_no_config(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    assert str(path) in refused("model", "show", path)


@pytest.mark.parametrize(
    ("change", "said"),
    [(('hbm_bytes = "192 GB"', ""), "chip.hbm_bytes = None: is missing"),
     (('"450 GB/s"', '"450 GB"'), "is a size, not a bandwidth"),
     (('"450 GB/s"', "450"), "scale_up.bandwidth = 450"),
     (("domain_size = 4", "domain_size = -4"), "design.domain_size = -4"),
     (('shape = "switched"', 'shape = "swiched"'), "Did you mean 'switched'?"),
     (("[scale_up]", "[scale_up"), "is not valid TOML"), (("[sources]", "[source]"), "Did you mean 'sources'?")],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)  # fmt: skip
@pytest.mark.parametrize("verb", [("design", "check"), ("evaluate",)], ids=" ".join)
def test_designs(verb: tuple[str, ...], change: tuple[str, str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "my-rack.toml"
    path.write_text(MY_RACK.replace(*change))
    options = (*MODEL, "--out", tmp_path / "out") if verb[0] == "evaluate" else ()
    message = refused(*verb, path, *options)
    assert str(path) in message
    assert said in message
    assert not (tmp_path / "out").exists()


def test_several_domains_without_a_fabric(tmp_path: Path) -> None:
    path = tmp_path / "my-rack.toml"
    path.write_text(MY_RACK[: MY_RACK.index("[scale_out]")])
    assert "states no NIC rate" in refused("bound", path, *MODEL, "--domains", "2")
    assert run("bound", path, *MODEL, "--domains", "1").code == 0


def test_a_chip_that_lacks_a_rate_writes_nothing(tmp_path: Path) -> None:
    """Attention runs at the BF16 rate of the KV cache: a chip of FP8 alone has none."""
    path = tmp_path / "my-rack.toml"
    path.write_text(MY_RACK.replace('bf16 = "1 PFLOP/s", ', ""))
    assert "bf16" in refused("evaluate", path, *MODEL, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text", ["", "{", '"heavy"', "[]", "[[1, 2], [3]]", '["a"]', "[1, 2, 3]", "[-1, 1, 1, 1, 1, 1, 1, 1]", "[NaN]",
             "[NaN, 1, 1, 1, 1, 1, 1, 1]", "{}", "[true, 1, 1, 1, 1, 1, 1, 1]"],
)  # fmt: skip
def test_loads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "loads.json"
    path.write_text(text)
    refused("place", "hgx-h100-8", *MODEL, "--loads", path)
    refused("place", "hgx-h100-8", *MODEL, "--loads", path, "--pp", "1")


@pytest.mark.parametrize("below", [False, True], ids=["a file", "below a file"])
def test_an_out_that_cannot_be_written(below: bool, tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("mine")
    out = file / "deeper" if below else file
    said = refused("evaluate", "hgx-h100-8", *MODEL, "--out", out)
    assert said.startswith(f"--out = '{out}': cannot be written")
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


# --- the library says the same ---------------------------------------------------------------------------------------


def test_a_graph_in_two_pieces() -> None:
    graph = topo.load("hgx-h100-8", 2)
    graph.remove_nodes_from([node for node, tier in graph.nodes(data="tier") if tier in ("leaf", "spine")])
    model, work = serving.load_model("mixtral-8x7b"), serving.Workload(batch_per_gpu=8)
    with pytest.raises(InputError) as costed:
        collectives.cost(graph, "all_to_all", 1e9)
    with pytest.raises(InputError):
        serving.step(graph, model, work)
    with pytest.raises(InputError):
        placement.expert_layer_bound(graph, model, work, step_budget=20e-3)
    assert "d0/gpu0" in str(costed.value)  # it names a pair that nothing joins
    assert "d1/gpu0" in str(costed.value)


def test_a_gpu_without_a_cable() -> None:
    graph: nx.Graph[str] = topo.load("hgx-h100-8")
    graph.remove_edges_from(list(graph.edges("d0/gpu3")))
    with pytest.raises(InputError, match="d0/gpu3"):
        collectives.cost(graph, "all_to_all", 1e9)


# --- the same from a shell -------------------------------------------------------------------------------------------


def shell(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from rackbound._cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"})


def test_exit_codes_from_a_shell(tmp_path: Path) -> None:
    bad = shell("evaluate", "gb200-nvl27", *MODEL, cwd=tmp_path)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("rackbound: design = 'gb200-nvl27'")
    assert "Traceback" not in bad.stderr
    assert list(tmp_path.iterdir()) == []
    good = shell("bound", "hgx-h100-8", "--model", "deepseek-v3", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert "at most 32 experts" in good.stdout
    usage = shell("bound", "hgx-h100-8", cwd=tmp_path)
    assert (usage.returncode, usage.stdout) == (2, "")
    assert "Traceback" not in usage.stderr
