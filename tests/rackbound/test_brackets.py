"""Does `cost` say between which times a collective lies, and what a hash makes of it?"""

from __future__ import annotations

import pytest

from rackbound import _brackets, collectives

from .command import run

HGX = ("hgx-h100-8", "--domains", "2", "--set", "scale_out.latency='0 s'", "--set", "scale_up.latency='0 s'")


def test_the_bracket_is_printed_with_its_gap_and_convention() -> None:
    out = run("cost", *HGX, "all_to_all", "--bytes", "16GB").out
    # 8 of 16 GB leave every box, a NIC of 50 GB/s a GPU: 160 ms; nothing blocks.
    assert "Bracket: gap 0 %" in out
    for row in ("lower bound, any algorithm", "lower bound, this schedule", "cost, wires only", "simulated, links sha"):
        assert any(line.strip().startswith(row) and "160 ms" in line for line in out.splitlines()), row
    assert "lower bound <= cost <= simulated, wires only" in out
    assert out.index("Bracket") < out.index("Assumed")


def test_phases_are_printed_one_by_one() -> None:
    found = run("cost", *HGX, "all_to_all", "--bytes", "16GB", "--algorithm", "hierarchical")
    assert "Phase by phase, one time each" in found.out
    many = run("cost", *HGX, "all_to_all", "--bytes", "16GB", "--algorithm", "pairwise").out
    assert "Phase by phase, one time each, the 8 longest of 15" in many


def test_the_answer_holds_the_same_times() -> None:
    results = run("cost", *HGX, "all_reduce", "--bytes", "1GB", "--algorithm", "best", "--json").answer["results"]
    held = results["bracket"]
    assert held["cost"] == pytest.approx(results["seconds"], rel=1e-12)
    assert held["lower"] <= held["cost"] * (1 + 1e-9)
    assert held["cost"] <= held["simulated"] * (1 + 1e-9)
    assert results["hash"] is None


def test_nothing_is_bound_by_nothing() -> None:
    out = run("cost", "hgx-h100-8", "all_reduce", "--bytes", "0B", "--algorithm", "nvls").out
    assert "  nothing is sent: 0 s\n" in out
    assert "none nothing" not in out
    assert "last nothing" not in out


def test_a_hash_is_set_against_the_even_split() -> None:
    words = ("cost", *HGX, "all_to_all", "--bytes", "16GB", "--routing", "hash", "--queue-pairs", "4")
    spread = run(*words, "--json").answer["results"]["hash"]
    assert (len(spread["seeds"]), spread["queue_pairs"], spread["ideal"]) == (100, 4, pytest.approx(0.16))
    assert spread["ideal"] <= spread["median"] <= spread["p99"]
    out = run(*words).out
    assert "hash over 100 seeds, 4 queue pairs a pair of ranks: ideal (even split) 160 ms, median" in out


def test_what_takes_too_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_brackets, "_MOST_TRACED", 2399)  # 240 flows, ten seeds
    out = run("cost", *HGX, "all_to_all", "--bytes", "16GB", "--routing", "hash").out
    assert "left out: times over seeds of the hash: too many flows here" in out
    monkeypatch.setattr(collectives._bracket, "MOST_FLOWS", 239)
    out = run("cost", *HGX, "all_to_all", "--bytes", "16GB").out
    assert "left out: simulated: 240 flows, 240 of them in phases that differ" in out


@pytest.mark.parametrize("option", ["--queue-pairs"])
def test_an_option_of_the_hash_alone(option: str) -> None:
    found = run("cost", *HGX, "all_to_all", "--bytes", "16GB", option, "2")
    assert found.code == 2
    assert f"{option} = 2: is for --routing hash" in found.err


def test_a_step_says_between_which_times_its_collectives_lie() -> None:
    words = ("step", "hgx-h100-8", "--domains", "2", "--model", "mixtral-8x7b", "--pp", "2", "--ep", "8")
    answer = run(*words, "--json").answer["results"]
    assert list(answer["brackets"]) == ["dispatch", "combine", "pipeline sends"]
    parts = {part["name"]: part["network_seconds"] for part in answer["parts"]}
    for name, layers in (("dispatch", 32), ("combine", 32), ("pipeline sends", 1)):
        held = answer["brackets"][name]
        assert held["cost"] * layers == pytest.approx(parts[name])  # every layer alike, and two stages
        assert held["lower"] <= held["cost"] * (1 + 1e-9) <= held["simulated"] * (1 + 2e-9)
    assert "Collectives of one layer, the slowest" in run(*words).out


def test_a_placement_is_bracketed_as_it_is_placed() -> None:
    words = ("place", "hgx-h100-8", "--model", "mixtral-8x7b", "--ep", "4", "--pp", "2")
    answer = run(*words, "--json").answer["results"]
    assert set(answer["brackets"]) == {"dispatch", "combine", "pipeline sends"}
    assert "Collectives of one layer, the slowest" in run(*words).out
    dense = run("place", "hgx-h100-8", "--model", "llama-3.1-70b", "--batch", "8", "--json").answer["results"]
    assert set(dense["brackets"]) <= {"pipeline sends"}


def test_a_bound_is_bracketed_at_its_width() -> None:
    words = ("bound", "gb200-nvl72", "--model", "deepseek-v3", "--set", "scale_up.latency='0 s'")
    answer = run(*words, "--json").answer["results"]
    layers, at = 58, answer["width"] - 1
    held = answer["brackets"]
    # 114 x 8 copies of 7,168 bytes, 71 of 72 leave: 6.447 MB at 900 GB/s
    assert held["dispatch"]["simulated"] == pytest.approx(114 * 8 * 7168 * 71 / 72 / 900e9)
    both = held["dispatch"]["cost"] + held["combine"]["cost"]
    assert both * layers == pytest.approx(answer["curve"]["all_to_all_seconds"][at])
    assert (
        run("bound", "hgx-h100-8", "--model", "mixtral-8x7b", "--budget", "1us", "--json").answer["results"]["brackets"]
        == {}
    )
