"""Does a solution keep memory and slots, say how good it is at least, and cost what the plain model says?"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import placement
import serving
import topo
from placement import Solution
from serving import Layout, Workload
from topo import InputError

WORK = Workload(context=4096, batch_per_gpu=114)
SMALL = Workload(context=1024, batch_per_gpu=16)


@cache
def routes(design: str, domains: int = 1) -> topo.Routes:
    return topo.route(topo.load(design, domains))


def solve(
    model: str = "mixtral-8x7b", design: str = "hgx-h100-8", domains: int = 1, work: Workload = SMALL, **given: Any
) -> Solution:
    found = routes(design, domains)
    return placement.solve(found.fabric, serving.load_model(model), work, routing=found, **given)


def skewed(layers: int = 32, experts: int = 8, seed: int = 3) -> np.ndarray:
    """A load per layer, no two alike."""
    return np.random.default_rng(seed).pareto(2.0, (layers, experts)) + 0.1


@pytest.fixture(scope="module")
def uneven() -> Solution:
    return solve(expert_load=skewed(), layout=Layout(3))


# --- experts ---------------------------------------------------------------------------------------------------------


def test_uniform_experts_on_a_rack_are_optimal() -> None:
    found = solve("deepseek-v3", "gb200-nvl72", work=WORK)
    assert found.status == "optimal"
    assert found.layout == Layout(72)
    assert found.gap == 0.0
    assert found.objective == pytest.approx(4 / (256 / 72))  # 40 GPUs with 4 experts where the mean is 3.56
    assert found.binding == "whole experts: 256 on 72 GPUs, up to 4 each"


def test_experts_that_divide_are_bound_by_nothing() -> None:
    found = solve("deepseek-v3", "gb200-nvl72", work=WORK, layout=Layout(64))
    assert found.objective == pytest.approx(1.0)
    assert found.binding == "nothing: every GPU has the mean load"


def test_every_layer_is_solved_for_its_own_load(uneven: Solution) -> None:
    load = skewed()
    assert uneven.plan is not None
    for layer, row in enumerate(load / load.sum(axis=1, keepdims=True)):
        rank, expert = uneven.plan.slot_rank[layer], uneven.plan.slot_expert[layer]
        assert sorted(expert.tolist()) == list(range(8))
        assert np.bincount(rank, minlength=3).max() <= 3
        heaviest = np.bincount(rank, weights=row[expert], minlength=3).max() * 3
        assert uneven.layer_objective[layer] == pytest.approx(heaviest, rel=1e-9)
        assert uneven.layer_bound[layer] <= heaviest * (1 + 1e-12)
    assert len({row.tobytes() for row in uneven.plan.slot_rank}) > 1
    assert uneven.objective == pytest.approx(uneven.layer_objective.mean())
    assert uneven.bound == pytest.approx(uneven.layer_bound.mean())
    assert uneven.gap == pytest.approx(uneven.objective / uneven.bound - 1, abs=1e-12)


def test_small_layers_are_proven_optimal(uneven: Solution) -> None:
    assert uneven.status == "optimal"
    assert set(uneven.methods) <= {"milp", "greedy"}
    assert "milp" in uneven.methods


def test_the_plan_is_costed_by_the_plain_model(uneven: Solution) -> None:
    found, model = routes("hgx-h100-8"), serving.load_model("mixtral-8x7b")
    again = serving.step(found.fabric, model, SMALL, plan=uneven.plan, expert_load=skewed(), routing=found)
    assert uneven.step is not None
    assert again.to_dict() == uneven.step.to_dict()


def test_a_lighter_heaviest_gpu_receives_less() -> None:
    """Two experts on each of four GPUs either way: only the load differs, and the busiest wire with it."""
    found, load = routes("hgx-h100-8"), skewed()
    solved = solve(expert_load=load, layout=Layout(4)).step
    model = serving.load_model("mixtral-8x7b")
    in_order = serving.step(found.fabric, model, SMALL, layout=Layout(4), expert_load=load, routing=found)
    assert solved is not None
    assert [part.name for part in solved.parts] == [part.name for part in in_order.parts]
    wires = [sum(p.network_seconds for p in step.parts) for step in (solved, in_order)]
    assert wires[0] < wires[1]


def test_large_layers_are_feasible_with_a_gap() -> None:
    found = solve("deepseek-v3", "gb200-nvl72", work=WORK, layout=Layout(64), expert_load=1 / np.arange(1, 257) ** 0.4)
    assert set(found.methods) == {"greedy"}
    if found.status != "optimal":
        assert found.status == f"feasible, gap {100 * found.gap:.3g} %"
    assert found.bound <= found.objective <= 1.2 * found.bound


def test_the_clock_is_said_to_have_stopped_it() -> None:
    found = solve(expert_load=skewed(), layout=Layout(3), time_limit=1e-9)
    assert found.status.startswith("feasible, gap ")
    assert "clock" in found.status
    assert found.objective >= found.bound


def test_the_same_solution_twice(uneven: Solution) -> None:
    again = solve(expert_load=skewed(), layout=Layout(3))
    assert json.dumps(again.to_dict()) == json.dumps(uneven.to_dict())


def test_a_solution_is_plain_json(uneven: Solution) -> None:
    row = json.loads(json.dumps(uneven.to_dict(), allow_nan=False))
    assert set(row) == set(Solution.__dataclass_fields__)
    assert row["plan"]["ep"] == 3
    assert repr(uneven).startswith("Solution(optimal; max/mean load ")


# --- layers ----------------------------------------------------------------------------------------------------------


def test_as_few_stages_as_fit() -> None:
    """DeepSeek-V3 needs several HGX H100 boxes: 256 experts of 58 layers are 654 GB of weights for 8 x 80 GiB."""
    found = solve("deepseek-v3", "hgx-h100-8", 4)
    assert found.status == "optimal"
    assert found.layout == Layout(8, pp=2)
    assert found.step is not None
    assert found.step.fits
    model = serving.load_model("deepseek-v3")
    routed = routes("hgx-h100-8", 4)
    assert not serving.step(routed.fabric, model, SMALL, layout=Layout(8, pp=1), routing=routed).fits


def test_stages_ascend_and_the_slowest_is_the_least() -> None:
    found = solve("deepseek-v3", "hgx-h100-8", 4, layout=Layout(8, pp=3))
    assert found.plan is not None
    stage = found.plan.layer_stage
    assert (np.diff(stage) >= 0).all()
    assert sorted(set(stage.tolist())) == [0, 1, 2]
    assert found.step is not None
    wires = {"dispatch", "combine", "pipeline sends"}
    local = sum(part.seconds for part in found.step.parts if part.name not in wires)
    assert found.slowest_stage >= local / 3 * (1 - 0.05)  # stages read all experts; the step, those hit
    assert found.step.fits


@pytest.mark.parametrize("work", [Workload(batch=8), Workload(batch_per_gpu=114), Workload(batch=8, expert_read="all")])
def test_one_stage_takes_what_the_plain_model_says(work: Workload) -> None:
    """With one stage the slowest is the step without its wires: the cut is of the plain model's own times."""
    found = solve("deepseek-v3", "gb200-nvl72", work=work, layout=Layout(64))
    assert found.step is not None
    local = sum(part.seconds for part in found.step.parts if part.network_seconds == 0)
    assert found.slowest_stage == pytest.approx(local, rel=1e-9)


def test_a_dense_model_has_layers_only() -> None:
    found = solve("llama-3.1-70b", "hgx-h100-8", 1)
    assert found.layout == Layout(1, pp=2)  # 141 GB of weights, 77 GB usable on a GPU
    assert found.binding == "no experts to place"
    assert (found.objective, found.bound, found.gap) == (1.0, 1.0, 0.0)
    assert found.plan is not None
    assert found.plan.slot_expert.shape[0] == 0


def test_a_tied_head_is_held_by_the_last_stage_too() -> None:
    model = replace(serving.load_model("llama-3.1-70b"), head_params=0)
    found = placement.solve(topo.load("hgx-h100-8"), model, SMALL, layout=Layout(1, pp=4))
    assert found.status == "optimal"
    assert found.step is not None
    assert found.step.fits


# --- what does not fit, what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [None, Layout(8), Layout(4, pp=2)], ids=repr)
def test_what_does_not_fit_is_an_answer(layout: Layout | None) -> None:
    found = solve("deepseek-v3", "hgx-h100-8", 1, layout=layout)
    assert found.plan is None
    assert found.status.startswith("infeasible: ")
    assert "GB usable" in found.status
    assert found.binding.startswith("HBM capacity: ")
    assert found.step is not None
    assert not found.step.fits
    assert found.step.reason
    assert repr(found).startswith("Solution(infeasible")
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("given", "place"),
    [({"objective": "fastest"}, "objective"), ({"time_limit": 0.0}, "time_limit"), ({"time_limit": -1}, "time_limit"),
     ({"time_limit": float("nan")}, "time_limit"), ({"time_limit": "1 s"}, "time_limit"),
     ({"expert_load": [1.0] * 7}, "expert_load"), ({"layout": Layout(9)}, "layout"),
     ({"layout": Layout(8, pp=2)}, "layout"), ({"layout": Layout(1, pp=9)}, "layout")],
)  # fmt: skip
def test_what_is_refused(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(**given)
    assert [fault.place for fault in caught.value.faults] == [place]


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        solve(design="gb200-nvl72", layout=Layout(1, pp=33))
    assert [fault.place for fault in caught.value.faults] == ["layout.pp"]
    with pytest.raises(InputError) as caught:  # nor are there 33 GPUs
        solve(layout=Layout(1, pp=33))
    assert [fault.place for fault in caught.value.faults] == ["layout", "layout.pp"]


def test_spare_copies_are_placed_held_and_costed() -> None:
    """Two more copies per GPU: more memory, a lighter heaviest GPU, and the step of the plan itself."""
    model, rack = serving.load_model("mixtral-8x7b"), topo.load("hgx-h100-8")
    load = np.array([9, 6, 4, 3, 2, 1, 1, 1])
    plain, spare = (placement.solve(rack, model, SMALL, expert_load=load, layout=Layout(8), replicas=r) for r in (0, 8))
    assert spare.plan is not None
    assert plain.objective is not None
    assert spare.objective is not None
    assert spare.plan.slot_expert.shape == (model.n_moe_layers, 16)
    assert spare.objective < plain.objective
    assert spare.objective == pytest.approx((spare.plan.gpu_load(load).max(axis=1) / (27 / 8)).mean())
    assert spare.step.memory_per_gpu - plain.step.memory_per_gpu == pytest.approx(
        model.n_moe_layers * model.expert_bytes, rel=1e-9
    )
    with pytest.raises(InputError, match="replicas"):
        placement.solve(rack, model, SMALL, replicas=-1)


def test_what_does_not_fit_says_by_how_much_and_what_would_hold_it() -> None:
    """A second expert on every GPU of eight is too much for Mixtral 8x22B; two stages on sixteen hold it."""
    model, rack = serving.load_model("mixtral-8x22b"), topo.load("hgx-h100-8")
    found = placement.solve(rack, model, SMALL, layout=Layout(8), replicas=8)
    assert found.plan is None
    step = found.step
    assert step.memory_per_gpu > step.memory_usable
    assert f"{(step.memory_per_gpu - step.memory_usable) / 1e9:.3f} GB too much" in found.status
    assert "16 such GPUs would hold it, PP 2" in found.status
    two = placement.solve(topo.load("hgx-h100-8", 2), model, SMALL, layout=Layout(8, pp=2), replicas=8)
    assert two.plan is not None
