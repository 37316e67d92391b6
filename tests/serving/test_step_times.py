"""Do operations share time as the names say, and is what is uneven named?"""

from __future__ import annotations

import numpy as np
import pytest

import serving
import topo
from serving import Layout, Workload
from topo import InputError

from .steps import SMALL, WORK, mixtral, plan_of, step

BUSY = Workload(phase="prefill", context=1024, batch_per_gpu=4)


@pytest.mark.parametrize("work", [WORK, SMALL, BUSY, Workload(batch=1)], ids=lambda work: f"{work.phase}")
@pytest.mark.parametrize("layout", [Layout(64), Layout(144), Layout(18, pp=4), Layout(16, tp=8)], ids=repr)
def test_two_batches_lie_between_lower_and_serial(work: Workload, layout: Layout) -> None:
    result = step(domains=2, work=work, layout=layout)
    assert result.lower * (1 - 1e-12) <= result.two_batch <= result.serial


def test_two_batches_hide_wires_where_compute_is_as_long() -> None:
    result = step(domains=2, work=BUSY, layout=Layout(64))
    assert result.two_batch < 0.8 * result.serial
    hidden = sum(part.seconds for part in result.parts if part.resource == "network")
    assert result.serial - result.two_batch <= hidden * (1 + 1e-9)


def test_the_rules_of_thumb_by_hand() -> None:
    result = step(layout=Layout(72))
    tokens, weights, met = 72 * 114, 671.0e9, 37.55e9 - 129280 * 7168
    caches = tokens * 4096 * 70272
    compute, memory = 2 * tokens * met / (72 * 5e15), (weights + caches) / (72 * 8e12)
    assert result.times["lecture"] == pytest.approx(max(compute, memory), rel=1e-3)
    assert result.times["scaling_book"] == pytest.approx(caches / (72 * 8e12) + max(compute, weights / (72 * 8e12)),
                                                         rel=1e-3)  # fmt: skip
    assert result.times["lecture"] <= result.lower  # which counts the wires and replicated attention weights


@pytest.mark.parametrize("time", list(serving.TIMES))
def test_rates_are_at_the_time_asked_for(time: str) -> None:
    result = step(time=time, profile="vllm-blackwell")
    assert result.seconds == result.times[time]
    assert result.tokens_per_second == pytest.approx(72 * 114 / result.seconds)
    assert result.tokens_per_user == pytest.approx(1 / result.seconds)


def test_an_unknown_time_is_refused() -> None:
    with pytest.raises(InputError, match="Did you mean 'serial'"):
        step(time="serials")


# --- imbalance ------------------------------------------------------------------------------------------------------


def test_the_hot_link_and_the_heaviest_gpu_are_named() -> None:
    load = [5, 1, 1, 1, 1, 1, 1, 1]
    result = mixtral(layout=Layout(4), expert_load=load)
    uneven = result.imbalance
    assert uneven is not None
    assert uneven.heaviest_gpu == "d0/gpu0"
    assert uneven.load == pytest.approx(4 * 6 / 12)
    assert "gpu0" in uneven.hot_link
    assert result.binding_link == uneven.hot_link
    tokens = 64
    share = np.array(load) / 12
    hit = 1 - (1 - np.minimum(1, 2 * share)) ** tokens
    assert uneven.experts_hit_per_layer == pytest.approx(hit.sum())


def test_a_plan_says_what_it_gains() -> None:
    load = [9, 9, 1, 1, 1, 1, 1, 1]
    apart = mixtral(plan=plan_of([0, 1, 0, 1, 2, 2, 3, 3]), expert_load=load)
    assert apart.imbalance is not None
    assert apart.imbalance.gained == pytest.approx(mixtral(layout=Layout(4), expert_load=load).serial - apart.serial)
    assert apart.imbalance.gained > 0


def test_a_dense_model_has_no_imbalance() -> None:
    assert step("llama-3.1-70b", work=Workload(batch=8)).imbalance is None


def test_the_slowest_layers_collectives_are_bracketed() -> None:
    graph, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    loads = np.ones((model.n_moe_layers, model.n_experts))
    loads[3, 0] = 5.0  # one layer has a favourite
    work = serving.Workload(batch_per_gpu=64)
    layout = serving.Layout(8)
    even = serving.step_brackets(graph, model, work, layout=layout)
    uneven = serving.step_brackets(graph, model, work, layout=layout, expert_load=loads)
    whole = serving.step(graph, model, work, layout=layout, expert_load=loads)
    for name in ("dispatch", "combine"):
        assert uneven[name].cost.seconds > even[name].cost.seconds * 1.2
        (part,) = (part for part in whole.parts if part.name == name)
        rest = (model.n_moe_layers - 1) * even[name].cost.seconds
        assert part.network_seconds == pytest.approx(rest + uneven[name].cost.seconds)
    assert serving.step_brackets(graph, serving.load_model("llama-3.1-70b"), serving.Workload(batch=1)) == {}
