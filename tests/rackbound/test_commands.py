"""Do the commands say in words what the floors say in records?"""

from __future__ import annotations

import io
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

import rackbound
import serving
import topo
from rackbound._cli import app, main

from .command import DATA, run

STILL = ("--set", "scale_up.latency=0 s", "--set", "scale_out.latency=0 s")


def test_cost_of_one_rack() -> None:
    # SimGrid 3.32: 72 endpoints, 1e9 bytes to each other at 900e9 bytes/s
    answer = run("cost", "gb200-nvl72", "all_to_all", "--bytes", "72GB", *STILL, "--json").answer
    assert answer["results"]["seconds"] == pytest.approx(0.0788888889, abs=5e-11)
    assert answer["inputs"]["bytes"] == 72e9
    said = run("cost", "gb200-nvl72", "all_to_all", "--bytes", "72GB").out
    assert said.startswith("all_to_all of 72 GB over 72 ranks of gb200-nvl72 x 1: 78.89 ms")
    assert "routing ecmp" in said


def test_cost_of_two_racks() -> None:
    results = run("cost", "gb200-nvl72", "all_to_all", "--bytes", "144GB", "--domains", "2", *STILL, "--json").answer[
        "results"
    ]
    assert results["seconds"] == pytest.approx(1.44, rel=1e-9)  # SimGrid 3.32
    assert results["remote_share"] == pytest.approx(1 / 2, rel=1e-12)
    assert results["remote_share_of_sent"] == pytest.approx(72 / 143, rel=1e-12)


def test_cost_of_the_best_algorithm() -> None:
    asked = ("cost", "hgx-h100-8", "all_reduce", "--bytes", "1GB", *STILL)
    best = run(*asked, "--algorithm", "best", "--json").answer
    assert best["inputs"]["algorithm"] == "best"
    assert best["results"]["algorithm"] == "nvls"
    # NVLS on 8 GPUs: busbw 2 (p - 1)/(p + 1) = 1.556 times the link of 450 GB/s
    assert best["results"]["busbw"] == pytest.approx(450e9 * 14 / 9, rel=1e-12)
    assert best["results"]["tried"]["ring"] == pytest.approx(14 / 8 * 1e9 / 450e9, rel=1e-12)
    said = run(*asked, "--algorithm", "best").out
    assert "algorithm nvls (phases overlapping)" in said
    assert "best of 8 algorithms that apply: nvls, 1.556 times as fast as the next, " in said
    assert "algorithm ring (phases one after the other)" in run(*asked).out


def test_cost_of_an_algorithm_file(tmp_path: Path) -> None:
    def gpu(i: int) -> str:
        steps = [("s", 1 - i), ("rrc", i), ("s", i), ("r", 1 - i)]
        rows = (
            f'<step s="{k}" type="{kind}" srcbuf="i" srcoff="{at}" dstbuf="i" dstoff="{at}" cnt="1" depid="-1" '
            'deps="-1"/>'
            for k, (kind, at) in enumerate(steps)
        )
        return f'<gpu id="{i}"><tb id="0" send="{1 - i}" recv="{1 - i}" chan="0">{"".join(rows)}</tb></gpu>'

    path = tmp_path / "pair.xml"
    head = '<algo name="pair" coll="allreduce" ngpus="2" nchunksperloop="2" inplace="1">'
    path.write_text(f"{head}{gpu(0)}{gpu(1)}</algo>")
    asked = ("cost", "hgx-h100-8", "all_reduce", "--bytes", "1GB", "--ranks", "2", *STILL, "--algorithm", str(path))
    assert run(*asked, "--json").answer["results"]["seconds"] == pytest.approx(1e9 / 450e9, rel=1e-12)
    path.write_text(f"{head}{gpu(0)}\n{gpu(1).replace('rrc', 'rrx')}</algo>")
    assert f"{path}: line 2, type = 'rrx': is no step type" in run(*asked).err


def test_step_in_words() -> None:
    said = run("step", "gb200-nvl72", "--model", "deepseek-v3").out
    assert said.startswith("deepseek-v3 on gb200-nvl72 x 1, EP 72, PP 1, 114 sequences per GPU, context 4096:")
    assert "memory 60.15 GB per GPU of 178.8 GB usable: fits" in said


def test_a_step_that_does_not_fit_is_an_answer() -> None:
    found = run("step", "hgx-h100-8", "--model", "deepseek-v3")
    assert (found.code, found.err) == (0, "")
    assert "does not fit: needs" in found.out


def test_stages_share_the_gpus_by_default() -> None:
    answer = run("step", "gb200-nvl72", "--model", "deepseek-v3", "--pp", "2", "--json").answer
    layout = answer["results"]["layout"]
    assert (layout["ep"], layout["pp"]) == (36, 2)


@pytest.mark.parametrize(
    ("ep", "share", "link"),
    [(64, 0.0, "scale-up d0/gpu0"), (72, 0.0, "scale-up d0/gpu1"), (128, 0.5, "scale-out d0/gpu0"),
     (144, 0.5, "scale-out d0/gpu1")],
)  # fmt: skip
def test_one_rack_against_two(ep: int, share: float, link: str) -> None:
    """Domains follow the layout; the other number of racks stands beside it."""
    answer = run("step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", str(ep), "--json").answer
    found = answer["results"]
    assert answer["inputs"]["domains"] == (1 if ep <= 72 else 2)
    assert found["remote_share"] == pytest.approx(share)
    assert found["binding_link"].startswith(link)
    one, two = found["racks"]
    assert (one["domains"], two["domains"], two["ep"]) == (1, 2, 2 * one["ep"])
    assert (one if ep <= 72 else two)["serial"] == found["serial"]
    # Claim of the lecture's rack bound, on this hardware: twice the time for a token, over the NICs.
    assert 2 < two["serial"] / one["serial"] < 2.5
    assert two["remote_share"] == pytest.approx(0.5)


@pytest.mark.parametrize("ep", [32, 73, 216])
def test_one_rack_against_two_is_told_only_where_it_can_be(ep: int) -> None:
    answer = run("step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", str(ep), "--json").answer
    assert answer["results"]["racks"] is None
    assert answer["inputs"]["domains"] == -(-ep // 72)


def test_a_hundredth_of_the_nic_moves_the_answer() -> None:
    """Other tools' answers do not move when the wires between racks are cut."""
    asked = ("step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", "144", "--json")
    whole, cut = (run(*asked, *more).answer["results"] for more in ((), ("--set", "scale_out.bandwidth='4 Gb/s'")))
    wires = [sum(part["network_seconds"] for part in found["parts"]) for found in (whole, cut)]
    assert wires[1] > 90 * wires[0]


def test_step_with_an_engine() -> None:
    asked = ("step", "hgx-h100-8", "--model", "mixtral-8x7b", "--batch", "16", "--engine", "vllm-hopper")
    results = run(*asked, "--json").answer["results"]
    assert results["time"] == "engine"
    assert results["band"][0] < results["seconds"] == results["times"]["engine"] < results["band"][1]
    said = run(*asked)
    assert "with the engine it takes" in said.out
    assert "engine vllm-hopper, version 1" in said.out + said.err
    unknown = run(*asked[:-1], "vllm-hoper")
    assert unknown.code != 0
    assert "Did you mean 'vllm-hopper'" in unknown.err
    assert "--profile = 'nccl-hopper': does not go with --engine" in run(*asked, "--profile", "nccl-hopper").err


def test_a_step_can_be_drawn(tmp_path: Path) -> None:
    found = run("step", "hgx-h100-8", "--model", "mixtral-8x7b", "--figure", str(tmp_path / "step.svg"))
    assert (found.code, found.err) == (0, f"wrote {tmp_path / 'step.svg'}\n")


@pytest.mark.parametrize("verb", ["evaluate", "bound", "place", "step"])
def test_every_verb_that_reads_a_model_takes_assumptions(verb: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path) if verb == "evaluate" else ()
    model = ("--model", "mixtral-8x7b", "--assume", "num_hidden_layers=4")
    answer = run(verb, "hgx-h100-8", *model, "--domains", 1, *out, "--json").answer
    assert answer["inputs"]["assume"] == {"num_hidden_layers": 4}
    assert any("num_hidden_layers = 4, in the place of 32" in line for line in answer["assumptions"])


def test_a_step_sends_copies_as_asked() -> None:
    asked = ("step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", "144", "--json")
    direct, one = (run(*asked, "--copies", copies).answer["results"] for copies in ("direct", "per_domain"))
    wires = [sum(part["network_seconds"] for part in found["parts"]) for found in (direct, one)]
    # A token's eight experts are spread over both racks: four copies cross where one would do.
    assert wires[0] > 2.5 * wires[1]
    assert set(one["brackets"]) == {"dispatch", "combine"}
    assert "copies" in run("step", "hgx-h100-8", "--model", "mixtral-8x7b", "--copies", "twice").err


def test_a_model_is_read_as_assumed() -> None:
    found = run("model", "show", "mixtral-8x7b", "--assume", "num_hidden_layers=16", "--layers")
    assert "assumed: num_hidden_layers = 16, in the place of 32" in found.out
    assert "16: 0, 1, 2 .. 15" in found.out
    assert "must read KEY=VALUE" in run("model", "show", "mixtral-8x7b", "--assume", "x").err


@pytest.mark.parametrize(
    ("options", "experts"),
    # Hand values of the issue, both latencies zero.
    [((), "2,808"), (("--set", "scale_out.bandwidth=800 Gb/s"), "3,600"), (("--batch", "8208"), "4,608"),
     (("--overlap", "full"), "6,192"), (("--domains", "1"), "2,808")],
    ids=["400 Gb/s", "800 Gb/s", "constant total batch", "overlapped", "one rack"],
)  # fmt: skip
def test_bound_in_words(options: tuple[str, ...], experts: str) -> None:
    said = run("bound", "gb200-nvl72", "--model", "deepseek-v3", *STILL, *options).out
    assert f"at most {experts} experts" in said


def test_a_bound_of_none_is_an_answer() -> None:
    found = run("bound", "hgx-h100-8", "--model", "llama-3.1-70b")
    assert (found.code, found.err) == (0, "")
    assert "no experts: llama-3.1-70b is dense" in found.out
    nothing = run("bound", "hgx-h100-8", "--model", "deepseek-v3", "--budget", "1 us")
    assert nothing.code == 0
    assert "nothing fits: step budget of 1 us" in nothing.out


def test_place_in_words() -> None:
    said = run("place", "gb200-nvl72", "--model", "deepseek-v3").out
    assert said.startswith("deepseek-v3 on gb200-nvl72 x 1, EP 72, PP 1: optimal")
    assert "(gap 0 %)" in said
    none = run("place", "hgx-h100-8", "--model", "deepseek-v3")
    assert none.code == 0
    assert "infeasible: " in none.out


def test_design_list_and_show() -> None:
    listed = run("design", "list").out
    for name in topo.list_designs():
        assert name in listed
    assert listed.count("announced") == 3
    rows = run("design", "list", "--json").answer["results"]
    assert [row["name"] for row in rows if row["status"] == "announced"] == ["helios-72", "vr-nvl576", "vr-nvl72"]
    shown = run("design", "show", "gb200-nvl72").out
    for words in ("189471", "900 GB/s", "ai-dynamo/aiconfigurator", "144 in 2 domains", "3.6 TB/s"):
        assert words in shown
    assert run("design", "check", "gb200-nvl72").out.startswith("gb200-nvl72: no faults")


def test_model_list_and_show() -> None:
    listed = run("model", "list").out
    for name in serving.list_models():
        assert name in listed
    shown = run("model", "show", "deepseek-v3").out
    assert shown.startswith("Model(deepseek-v3: 671.0 B parameters")
    assert "multi-token-prediction layers are left out" in shown


def test_doctor_reports_a_file_that_hides_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "nothing hides a package" in run("doctor").out
    (tmp_path / "placement.py").write_text("mine = True\n")
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "__init__.py").write_text("")
    answer = run("doctor", "--json").answer
    assert answer["results"]["hidden"] == {
        "placement": str(tmp_path / "placement.py"), "serving": str(tmp_path / "serving" / "__init__.py"),
    }  # fmt: skip
    assert "from rackbound import placement" in " ".join(run("doctor").out.split())


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).stdout == f"rackbound {rackbound.__version__}\n"
    shown = runner.invoke(app, ["--help"])
    assert shown.exit_code == 0
    for verb in ("evaluate", "bound", "step", "cost", "place", "design", "model", "doctor"):
        assert verb in shown.stdout
        assert runner.invoke(app, [verb, "--help"]).exit_code == 0


def test_a_reader_that_hangs_up_is_no_traceback() -> None:
    with mock.patch("rackbound._cli.app", side_effect=BrokenPipeError), mock.patch("sys.stderr", io.StringIO()):
        assert main() == 1


@pytest.mark.parametrize("rule", [name for name in topo.RULES if name != "table"])
def test_cost_takes_every_rule_and_prints_it(rule: str, tmp_path: Path) -> None:
    graph = topo.build("hyperx", dims=[2, 2], hosts=2, bandwidth="50 GB/s", latency="1 us")
    for number, router in enumerate(node for node in graph if node.startswith("router")):
        graph.nodes[router]["group"] = number // 2
    topo.write(graph, tmp_path / "graph.json")
    found = run("cost", str(tmp_path / "graph.json"), "all_to_all", "--bytes", "8MB", "--routing", rule)
    assert found.code == 0, found.err
    assert f"routing {rule}" in found.out
    assert rule in run("cost", "--help").out


def test_tables_by_name_are_refused_with_the_cure() -> None:
    found = run("cost", "hgx-h100-8", "all_to_all", "--bytes", "1GB", "--routing", "table")
    assert found.code == 2
    assert "routing=topo.read(FILE).routing" in found.err


def test_cost_reads_forwarding_tables_from_their_file() -> None:
    folder = DATA / "readers-fabric" / "opensm"
    fabric, dump = str(folder / "ft2_32.subnet.lst"), str(folder / "ft2_32_dor.lfts.dump")
    found = run("cost", fabric, "all_to_all", "--bytes", "32MB", "--routing", dump)
    assert found.code == 0, found.err
    assert "routing table (" in found.out
    wrong = run("cost", fabric, "all_to_all", "--bytes", "32MB", "--routing", fabric)
    assert wrong.code == 2
    assert "has no forwarding tables" in wrong.err
