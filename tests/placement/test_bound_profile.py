"""The bound under a library's software: slower wires, fewer experts, and what is needed to change it."""

from __future__ import annotations

from pathlib import Path

import pytest

import topo
from collectives import calibrate, write_profile
from placement import expert_layer_bound, width_steps
from serving import Workload, load_model
from topo import InputError

MIXTRAL = load_model("mixtral-8x7b")
WORK = Workload(context=4096, batch_per_gpu=32)
LOGS = Path(__file__).resolve().parents[1] / "data" / "logs"


def test_software_makes_the_layer_smaller_and_a_saved_calibration_is_taken(tmp_path: Path) -> None:
    graph = topo.load("hgx-h100-8", 2)
    ideal, hopper = (width_steps(graph, MIXTRAL, WORK, profile=name) for name in ("ideal", "nccl-hopper"))
    assert all(b.all_to_all > a.all_to_all for a, b in zip(ideal.steps[1:], hopper.steps[1:], strict=True))
    bounds = [expert_layer_bound(graph, MIXTRAL, WORK, step_budget=20e-3, profile=p) for p in ("ideal", "nccl-hopper")]
    assert 0 < bounds[1].n_experts < bounds[0].n_experts
    assert any(line.startswith("profile nccl-hopper: collectives as predicted") for line in bounds[1].assumptions)
    assert any("nine in ten measurements within" in line for line in bounds[1].assumptions)
    write_profile(calibrate(LOGS / "aws-p5-1node-tagged.txt", graph, name="mine").profile, tmp_path / "mine.toml")
    assert width_steps(graph, MIXTRAL, WORK, profile=tmp_path / "mine.toml").profile == "mine"


def test_several_domains_beat_one_from_the_scale_out_that_is_said_to_be_needed() -> None:
    graph = topo.load("hgx-h100-8", 2)
    found = expert_layer_bound(graph, MIXTRAL, WORK, step_budget=12e-3, profile="nccl-hopper")
    assert found.scale_out_needed is not None
    assert found.scale_out is not None
    for factor, beats in ((1.001, True), (0.999, False)):
        rate = found.scale_out_needed / found.scale_out * factor
        other = topo.scale(graph, kind="scale-out", bandwidth=rate)
        then = expert_layer_bound(other, MIXTRAL, WORK, step_budget=12e-3, profile="nccl-hopper")
        assert (then.beyond[0] > then.one_domain[0]) is beats


def test_a_profile_of_expert_layers_is_refused() -> None:
    with pytest.raises(InputError, match="the bound's layer may have any"):
        width_steps(topo.load("hgx-h100-8"), MIXTRAL, WORK, profile="deepep-normal")
