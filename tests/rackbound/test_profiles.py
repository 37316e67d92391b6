"""A profile, named or in a file of one's own, is taken wherever a time is told, and is the library's prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import collectives
import placement
import serving
import topo
from collectives import load_profile, write_profile

from .command import run

HGX, MIXTRAL, LLAMA = "hgx-h100-8", ("--model", "mixtral-8x7b"), ("--model", "llama-3.1-70b", "--batch", "8")
WHERE = {
    "cost": ("cost", HGX, "all_reduce", "--bytes", "1 MiB"),
    "simulate": ("simulate", HGX, "all_reduce", "--bytes", "1 MiB"),
    "failures": ("failures", HGX, "--domains", "1"),
    "step": ("step", HGX, *MIXTRAL, "--batch-per-gpu", "8"),
    "evaluate": ("evaluate", HGX, *MIXTRAL, "--batch-per-gpu", "8", "--domains", "1"),
    "bound": ("bound", HGX, *MIXTRAL, "--batch-per-gpu", "8"),
    "bound --failures": ("bound", HGX, *MIXTRAL, "--batch-per-gpu", "8", "--domains", "1", "--failures"),
    "place": ("place", HGX, *MIXTRAL),
    "place --replicas": ("place", HGX, *MIXTRAL, "--replicas", "8"),
}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profiles") / "my-cluster.toml"
    write_profile(load_profile("nccl-hopper"), path)
    return path


@pytest.mark.parametrize("words", WHERE.values(), ids=WHERE)
def test_a_saved_profile_is_taken_everywhere_and_changes_the_time(words: tuple[str, ...], mine: Path) -> None:
    ideal, named, own = (
        run(*words, "--json", *more) for more in ((), ("--profile", "nccl-hopper"), ("--profile", mine))
    )
    assert (ideal.code, named.code, own.code) == (0, 0, 0)
    assert own.answer["inputs"]["profile"] == str(mine)
    assert own.answer["results"] == named.answer["results"]
    assert own.answer["results"] != ideal.answer["results"]


@pytest.mark.parametrize("words", WHERE.values(), ids=WHERE)
def test_an_unknown_profile_is_refused(words: tuple[str, ...]) -> None:
    found = run(*words, "--profile", "nccl-hoper")
    assert (found.code, found.out) == (2, "")
    assert "'nccl-hoper'" in found.err
    assert "nccl-hopper" in found.err


def test_each_failure_is_the_prediction_without_the_part() -> None:
    graph = topo.load(HGX, 2)
    found = collectives.failures(graph, "all_to_all", 1e9, profile="nccl-hopper")
    assert found.profile == "nccl-hopper"
    assert found.seconds == collectives.cost(graph, "all_to_all", 1e9, profile="nccl-hopper").seconds
    switch = next(one for one in found.singles if one.parts[0] == ("switch", "d0/switch0"))
    hurt = topo.fail(graph, switches=["d0/switch0"])
    assert switch.seconds == collectives.cost(hurt, "all_to_all", 1e9, profile="nccl-hopper").seconds


def test_the_layer_left_by_a_failure_is_the_predicted_bound_without_the_part() -> None:
    graph, model = topo.load(HGX, 1), serving.load_model("mixtral-8x7b")
    work, words = serving.Workload(batch_per_gpu=8), {"step_budget": 20e-3, "profile": "nccl-hopper"}
    found = placement.bound_failures(graph, model, work, **words)
    assert found.n_experts == placement.expert_layer_bound(graph, model, work, **words).n_experts > 0
    switch = next(one for one in found.singles if one.kind == "switch")
    hurt = topo.fail(graph, switches=[switch.name])
    assert switch.n_experts == placement.expert_layer_bound(hurt, model, work, **words).n_experts


def test_a_plans_wires_are_predicted_layer_by_layer() -> None:
    """Uniform tokens and experts: every layer a plain all-to-all of the tokens' copies, there and back."""
    graph, model = topo.load(HGX, 1), serving.load_model("mixtral-8x7b")
    plan = serving.PlacementPlan.contiguous(8, model.moe_layer_mask, serving.Layout(8))
    loads = placement.ExpertLoads(np.ones((32, 8)), None, None, None, "eplb")
    found = placement.cost_plan(graph, model, serving.Workload(batch_per_gpu=64), plan, loads, profile="nccl-hopper")
    token = 64 * 2 * 4096  # sequences, experts each, hidden; over all 8 ranks
    there, back = (
        collectives.cost(graph, "all_to_all", token * width, profile="nccl-hopper").seconds for width in (1, 2)
    )
    assert found.wire_seconds == pytest.approx(32 * (there + back), rel=1e-9)


def test_simulate_says_the_prediction_beside_the_wires() -> None:
    found = run(*WHERE["simulate"], "--profile", "nccl-hopper")
    graph = topo.load(HGX, 1)
    wires, told = (collectives.cost(graph, "all_reduce", 2**20, profile=name) for name in ("ideal", "nccl-hopper"))
    time = topo.units.format_quantity(told.seconds, "seconds")
    said = f"with profile nccl-hopper it takes {time}, {told.seconds / wires.seconds:.4g} times the wires alone"
    assert said in found.out
    assert run(*WHERE["simulate"], "--json").answer["results"]["predicted"] is None


def test_a_prediction_beside_other_traffic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "others.json"
    path.write_text(str([[0] * 8] * 8))
    found = run(*WHERE["simulate"], "--profile", "nccl-hopper", "--background", path)
    assert found.code == 2
    assert "predicts a collective on otherwise idle links" in found.err
