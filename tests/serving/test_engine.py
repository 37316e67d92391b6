"""Engines: what a profile may say, the law by hand, and that no engine is faster than its kernels."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import serving
import topo
from collectives import Profile, load_profile, write_profile
from serving import ENGINE, Layout, Part, Workload, engine_seconds, engine_work, list_engines, load_engine
from serving._engine import ENGINES
from topo import InputError

RATIOS = [name for name, row in ENGINE.items() if row.unit == "ratio"]
#: Launches free, every efficiency one.
IDEAL = {name: float(name in RATIOS) for name in ENGINE}


@cache
def routes(design: str) -> topo.Routes:
    return topo.route(topo.load(design))


def step(profile: str | Profile, design: str = "hgx-h100-8", time: str | None = None) -> serving.Step:
    found, model, work = routes(design), serving.load_model("mixtral-8x7b"), Workload(context=1536, batch=16)
    return serving.step(
        found.fabric, model, work, layout=Layout(8, tp=8), routing=found, profile=profile, time=time
    )  # fmt: skip


def engine(**constants: float) -> Profile:
    named = {name.replace("_", ".", 1): value for name, value in constants.items()}
    return replace(load_engine("vllm-hopper"), name="mine", constants=IDEAL | named)


@pytest.mark.parametrize("name", list_engines())
def test_every_engine_that_ships_says_what_it_was_fitted_to_when_and_how_surely(name: str) -> None:
    profile = load_engine(name)
    assert (profile.name, profile.law) == (name, "engine")
    assert all([profile.source, profile.fitted, profile.chips, profile.libraries])
    assert set(profile.constants) == set(profile.errors) == set(ENGINE)
    assert all(0 < error < 1 for error in profile.errors.values())
    assert 0 < profile.band[0] < profile.band[1] < 1
    assert load_engine(profile) is profile


def test_an_engine_with_nothing_to_lose_takes_every_kernels_reading_arithmetic_and_wires() -> None:
    result = step(engine())
    summed = sum(p.compute_seconds + p.memory_seconds + p.network_seconds for p in result.parts)
    assert result.times["engine"] == pytest.approx(summed, rel=1e-12)
    assert result.times["engine"] > result.serial > result.lower


def test_the_law_by_hand() -> None:
    # 32 layers, all with experts; two sums over 8 ranks a layer and two exchanges over 8: 4 x 3 doublings x 32.
    result = step(engine())
    work = engine_work(result.parts, serving.load_model("mixtral-8x7b"), result.layout)
    assert (work["launch.layer"], work["launch.experts"], work["launch.round"]) == (32, 32, 4 * 3 * 32)
    slow = step(engine(launch_layer=1e-3, launch_experts=2e-3, launch_round=1e-4))
    assert slow.seconds - result.seconds == pytest.approx(32 * 3e-3 + 384e-4, rel=1e-9)
    half = step(engine(read_experts=0.5))
    assert half.seconds - result.seconds == pytest.approx(work["read.experts"], rel=1e-9)


def test_each_kind_of_work_is_counted_once() -> None:
    parts = [Part("routed experts", 5.0, 5.0, 3.0), Part("a", 2.0, 1.0, 2.0), Part("b", 7.0, network_seconds=7.0)]
    work = engine_work(parts, serving.load_model("deepseek-v3"), Layout(64, pp=3), draft=2)
    assert [work[name] for name in RATIOS] == [2.0, 3.0, 1.0, 5.0, 7.0]
    assert work["launch.layer"] == 63
    assert work["launch.round"] == 2 * 60 * math.log2(64) + 2
    assert engine_seconds(IDEAL, work) == sum([2.0, 3.0, 1.0, 5.0, 7.0])


@pytest.mark.parametrize("name", list_engines())
def test_no_engine_is_faster_than_its_kernels_and_its_rates_are_its_own(name: str) -> None:
    result, ideal = step(name), step("ideal")
    assert (result.lower, result.serial, result.parts) == (ideal.lower, ideal.serial, ideal.parts)
    assert result.times["engine"] > result.serial
    assert (result.time, result.seconds) == ("engine", result.times["engine"])
    assert result.tokens_per_second == pytest.approx(16 / result.seconds)
    assert result.band is not None
    assert result.band[0] < result.seconds < result.band[1]
    assert ideal.band is None
    assert "engine" not in ideal.times


def test_a_chip_it_never_saw_widens_the_band_and_is_said() -> None:
    seen, unseen = step("vllm-hopper"), step("vllm-hopper", design="mi300x-8")
    assert not any("was not fitted" in line for line in seen.assumptions)
    assert any("vllm-hopper was not fitted on MI300X" in line for line in unseen.assumptions)
    assert unseen.band is not None
    assert unseen.band[0] == pytest.approx(unseen.seconds / 1.4)


def test_rates_at_another_time_and_a_time_without_an_engine() -> None:
    assert step("vllm-hopper", time="lower").seconds == step("ideal").lower
    with pytest.raises(InputError, match="needs an engine"):
        step("ideal", time="engine")


def test_an_engine_brings_its_own_dispatch() -> None:
    found, model, work = routes("hgx-h100-8"), serving.load_model("mixtral-8x7b"), Workload(batch=16)
    with pytest.raises(InputError, match="expert_profile = 'deepep-normal': does not go with an engine"):
        serving.step(
            found.fabric, model, work, routing=found, profile="vllm-hopper", expert_profile="deepep-normal"
        )  # fmt: skip


def test_an_engine_of_ones_own_is_written_read_and_used(tmp_path: Path) -> None:
    made = engine(launch_layer=0.5, wire_efficiency=0.25)
    write_profile(made, tmp_path / "mine.toml", ENGINES)
    assert load_engine(tmp_path / "mine.toml") == made
    assert step(load_engine(tmp_path / "mine.toml")).seconds == step(made).seconds


def test_what_is_wrong_with_an_engine_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean 'vllm-hopper'"):
        load_engine("vllm-hoper")
    write_profile(engine(read_dense=0.0, wire_efficiency=1.5), tmp_path / "bad.toml", ENGINES)
    with pytest.raises(InputError) as caught:
        load_engine(tmp_path / "bad.toml")
    assert [fault.place for fault in caught.value.faults] == ["constants.read.dense", "constants.wire.efficiency"]
    with pytest.raises(InputError, match="is a profile of collectives"):
        load_engine(load_profile("nccl-hopper"))
    (tmp_path / "few.toml").write_text('name = "x"\nversion = 1\nsource = "s"\nlaw = "engine"\n')
    with pytest.raises(InputError, match=r"docs/engines\.md"):
        load_engine(tmp_path / "few.toml")
