"""Is the new placement better, bounded, and compared with what was there?"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import serving
import topo
from placement import ExpertLoads, improve
from serving import Workload
from topo import InputError

from .expert_loads import loads as generated

MODEL, WORK = serving.load_model("qwen3-30b-a3b"), Workload(batch_per_gpu=64)
BOX, BOXES = topo.load("hgx-h100-8"), topo.load("hgx-h100-8", 2)


def recording(affinity: float = 0.0) -> ExpertLoads:
    """One layer for all; an expert's tokens come from a home domain more than from the other."""
    load = generated(128, "lognormal0.7", layers=1)
    home = np.random.default_rng(0).integers(0, 2, 128) == np.arange(2)[:, None]
    asked = load[:, None] * ((1 - affinity) / 2 + affinity * home)
    return ExpertLoads(load, None, asked if affinity else None, None, "eplb")


def test_level_within_a_domain() -> None:
    found = improve(BOX, MODEL, WORK, recording(), replicas=16)
    assert found.before.heaviest > 1.3
    assert found.after.heaviest < 1.005
    assert found.before.crossing_bytes == found.after.crossing_bytes == 0
    assert found.after.wire_seconds < found.before.wire_seconds
    # 18 experts a GPU are read where there were 16: a few sequences a GPU gain nothing from being level.
    assert found.after.step_seconds > found.before.step_seconds
    assert found.balance is None


def test_fewer_bytes_cross_and_more_so_the_more_tokens_have_a_home() -> None:
    few, many = (improve(BOXES, MODEL, WORK, recording(a), replicas=16) for a in (0.0, 0.5))
    assert few.before.crossing == pytest.approx(np.full(48, 0.5), abs=0.01)
    assert few.after.crossing_bytes < 0.75 * few.before.crossing_bytes
    assert many.after.crossing_bytes < 0.55 * many.before.crossing_bytes
    for found in (few, many):
        assert found.after.heaviest <= 1.01 * (1 + 1e-9)
        assert found.balance == 1.01
        assert found.after.hot_seconds < found.before.hot_seconds
    assert "from 2 domains" in " ".join(many.notes)
    assert "alike from all GPUs" in " ".join(few.notes)
    assert json.loads(json.dumps(many.to_dict()))["after"]["domain"][0] == [0] * 8 + [1] * 8


def test_a_balance_that_cannot_be_had_is_loosened_and_said() -> None:
    """128 experts on 128 slots, the heaviest alone above the mean of a GPU."""
    loads = recording()
    loads.load[0, 0] = loads.load.sum() / 8
    found = improve(BOXES, MODEL, WORK, loads)
    assert found.balance is not None
    assert 1.9 < found.after.heaviest <= found.balance


def test_slots_left_free_hold_one_heavy_expert_and_many_light_ones() -> None:
    """An expert of half of all load: four copies alone, 128 others on the other four GPUs."""
    loads = recording()
    loads.load[0] = [128.0, *[1.0] * 127]
    fixed, free = (improve(BOX, MODEL, WORK, loads, replicas=3, slots=slots) for slots in (None, 32))
    held = np.sort(np.bincount(free.after.plan.slot_rank[0]))
    assert fixed.after.heaviest > 1.003
    assert free.after.heaviest < fixed.after.heaviest
    assert free.after.heaviest == pytest.approx(32 / 255 * 8, abs=1e-6)
    assert held.tolist() == [1, 1, 1, 1, 31, 32, 32, 32]


@pytest.mark.parametrize("batch", [64, 130, 160, 3000])
def test_room_is_what_still_fits(batch: int) -> None:
    """One slot more than there is room for does not fit; as many do."""
    work = Workload(batch_per_gpu=batch)
    found = improve(BOX, MODEL, work, recording(), replicas=0)
    assert found.after.step.fits == (found.room >= 0)
    for more, fits in ((found.room, True), (found.room + 1, False)):
        slots = 16 + more
        if 16 <= slots <= 128:
            grown = improve(BOX, MODEL, work, recording(), replicas=8 * slots - 128)
            assert grown.after.step.fits == fits


def test_beside_what_runs_now() -> None:
    first = improve(BOX, MODEL, WORK, recording(), replicas=8)
    again = improve(BOX, MODEL, WORK, recording(), replicas=8, current=first.after.plan)
    assert again.migration.copies == 0
    assert again.before.heaviest == pytest.approx(again.after.heaviest)
    # 17 slots a GPU hold the 16 experts it had at best: the eight spare copies move at least, from GPU to GPU.
    assert 48 * 8 <= first.migration.copies <= 48 * 136
    assert first.migration.n_bytes == first.migration.copies * MODEL.expert_bytes
    assert first.migration.seconds is not None
    assert first.migration.seconds >= first.migration.n_bytes / 8 / 450e9


def test_layers_without_tokens_count_as_uniform() -> None:
    """A layer that recorded nothing is placed and costed as one that recorded one token of each."""
    load = np.tile(generated(128, "lognormal0.7", layers=1), (48, 1))
    load[[0, 7]] = 0.0
    some = np.where(load.any(axis=1, keepdims=True), load, 1.0)
    nothing, ones = (improve(BOX, MODEL, WORK, replace(recording(), load=x), replicas=16) for x in (load, some))
    assert nothing.after.expert_load.tolist() == ones.after.expert_load.tolist()
    assert nothing.after.step_seconds == ones.after.step_seconds
    assert (nothing.after.plan.slot_expert == ones.after.plan.slot_expert).all()


def test_refused() -> None:
    for graph in (BOX, BOXES):
        with pytest.raises(InputError, match=r"sharing = 'weight'.*weighted"):
            improve(graph, MODEL, WORK, recording(), sharing="weight")
    with pytest.raises(InputError, match="has no experts"):
        improve(BOX, serving.load_model("llama-3.1-70b"), WORK, recording())
    plan = improve(BOX, MODEL, WORK, recording()).after.plan
    with pytest.raises(InputError, match="is on 8 GPUs, and the new one on 16"):
        improve(BOXES, MODEL, WORK, recording(), current=plan)
    for slots in (17, 0, True, 18.0):
        with pytest.raises(InputError, match="whole number, 18 or more, for 144 copies on 8 GPUs"):
            improve(BOX, MODEL, WORK, recording(), replicas=16, slots=slots)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has 128"):
        improve(BOX, MODEL, WORK, replace(recording(), load=np.ones((48, 64))))
