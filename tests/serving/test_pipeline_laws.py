"""Do the laws of the pipeline say what a step and a play-through of a training pipeline say?"""

from __future__ import annotations

import numpy as np
import pytest

from serving import Layout, Step, Workload, laws, load_model, step
from topo import Fabric, InputError, load

from .pipelines import Pipeline, gpipe, interleaved, one_f_one_b, zero_bubble

RACKS = Fabric.from_graph(load("hgx-h100-8", domains=4))
WORK = Workload(context=4096, batch_per_gpu=32)


def stepped(stages: int, in_flight: int | None = None) -> Step:
    """Return a step of Mixtral, whose 32 layers divide by 2 and 4, a box of 8 GPUs per stage."""
    layout = Layout(8, pp=stages, micro_batches=in_flight)
    return step(RACKS, load_model("mixtral-8x7b"), WORK, layout=layout)


# --- inference: neutral for latency and batch ---


@pytest.mark.parametrize("stages", [2, 4])
def test_hops_are_the_whole_penalty(stages: int) -> None:  # claims 55 (1:00:52) and 62 (1:15:12)
    one, many = stepped(1), stepped(stages)
    hop = next(part.seconds for part in many.parts if part.name == "pipeline sends") / (stages - 1)
    assert many.serial == pytest.approx(laws.pipeline_seconds(one.serial, stages, hop), rel=1e-12)
    # by hand: 32 tokens of 4096 at BF16 over 50 GB/s, and two links of 0.8 us through the rail's leaf
    assert hop == pytest.approx(32 * 4096 * 2 / 50e9 + 2 * 0.8e-6, rel=1e-12)


@pytest.mark.parametrize("stages", [2, 4])
def test_cache_per_gpu_does_not_depend_on_the_stages(stages: int) -> None:  # claim 59 (1:12:28)
    one, many = stepped(1), stepped(stages)
    assert many.kv_bytes == pytest.approx(one.kv_bytes, rel=1e-12)
    kv = load_model("mixtral-8x7b").kv_bytes_per_token
    law = laws.pipeline_bytes_per_gpu(0.0, 8 * 32, 4096, kv, 8, stages)
    assert many.kv_bytes == pytest.approx(law, rel=1e-12)


def test_weights_per_gpu_fall_with_the_stages() -> None:
    # embedding (first stage) and head (last) of 131 M weights each do not divide
    one, four = stepped(1).weight_bytes, stepped(4).weight_bytes
    ends = 2 * 32000 * 4096 * 2.0
    assert four - ends / 2 == pytest.approx((one - ends) / 4, rel=1e-9)
    law = [laws.pipeline_bytes_per_gpu(640e9, 0, 0, 0, 64, n) for n in (1, 4)]
    assert law[0] / law[1] == 4


def test_rate_per_gpu_is_the_same_but_for_hops_and_the_last_stage() -> None:
    one, four = stepped(1), stepped(4)
    rate = [found.tokens_per_second / found.layout.gpus for found in (one, four)]
    assert rate[1] / rate[0] == pytest.approx(1, abs=0.03)


def test_too_few_micro_batches_idle() -> None:  # claim 53 (57:43): naive four racks idle 3/4 of the time
    full, one = (stepped(4, n).tokens_per_second for n in (4, 1))
    assert 1 - one / full == pytest.approx(laws.pipeline_idle_share(4, 1), abs=0.01)
    assert laws.pipeline_idle_share(4, 3) == pytest.approx(0.25)
    assert laws.pipeline_idle_share(4, 8) == 0


def test_lecture_numbers() -> None:
    assert laws.pipeline_seconds(20e-3, 4, 10e-3 / 3) == pytest.approx(30e-3)  # claim 62: 20 -> 30 ms
    assert laws.equal_cost_tokens(1.0, 9, 1.0) == pytest.approx(1 / 1.5)  # claim 69 (1:26:18): 6 Dp = 9 Dr
    assert laws.over_training(150e12, 100e9) == pytest.approx(75)  # claim 71 (1:31:07): "about 100"
    flop = 6 * 1e12  # per weight; an equal third at 2 FLOP and 30 % of the rate
    assert 2 * laws.equal_cost_tokens(1e12, 2, 0.3) / 0.3 == pytest.approx(flop)


@pytest.mark.parametrize(("rising", "falling"), [(1.0, 1.0), (0.28, 0.34), (2.0, 0.5)])
def test_opposing_costs_are_least_near_where_they_are_equal(rising: float, falling: float) -> None:  # claim 67
    """By brute force: 3 x**rising + 7 x**-falling."""
    x = np.exp(np.linspace(-6, 6, 400_001))
    up, down = 3 * x**rising, 7 * x**-falling
    least = int(np.argmin(up + down))
    assert up[least] / down[least] == pytest.approx(laws.cost_ratio_at_minimum(rising, falling), rel=1e-3)


# --- training: the bubble, played through ---


@pytest.mark.parametrize(("p", "m"), [(4, 8), (3, 9), (8, 16), (2, 2)])
def test_gpipe_and_1f1b(p: int, m: int) -> None:
    for order, name in ((gpipe(p, m), "gpipe"), (one_f_one_b(p, m), "1f1b")):
        idle = Pipeline(p, m).run(order)
        assert laws.pipeline_bubble(p, m, name) == pytest.approx(idle / (idle + 3 * m), rel=1e-12)


@pytest.mark.parametrize(("p", "m", "chunks"), [(4, 8, 2), (4, 8, 4), (3, 6, 2)])
def test_interleaved(p: int, m: int, chunks: int) -> None:
    idle = Pipeline(p, m, chunks, {"F": 1 / chunks, "B": 2 / chunks}).run(interleaved(p, m, chunks))
    assert laws.pipeline_bubble(p, m, "interleaved", chunks=chunks) == pytest.approx(idle / (idle + 3 * m), rel=1e-12)


@pytest.mark.parametrize(("p", "m"), [(4, 8), (3, 9), (6, 24)])
def test_zero_bubble(p: int, m: int) -> None:
    equal = {"F": 1.0, "B": 1.0, "W": 1.0}
    for ahead, name in ((1, "zb-h1"), (2, "zb-h2")):
        idle = zero_bubble(p, m, ahead, equal)
        assert laws.pipeline_bubble(p, m, name) == pytest.approx(idle / (idle + 3 * m), abs=1e-12)


def test_an_unknown_schedule_lists_the_known() -> None:
    with pytest.raises(InputError, match="zb-h1"):
        laws.pipeline_bubble(4, 8, "zb")
