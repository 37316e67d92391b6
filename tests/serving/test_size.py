"""Do the racks serve the traffic, do the dollars add up, and is a lost part what it carries?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import serving
import topo
from serving import Fleet, Layout, Traffic, Workload, size, step
from topo import InputError

MIXTRAL = {"prompt": 1000, "answer": 300, "ttft": 2.0, "tpot": 0.03}


@cache
def graph(design: str, domains: int) -> Any:
    return topo.load(design, domains)


def sized(requests: float, design: str = "hgx-h100-8", model: str = "mixtral-8x7b", **changes: Any) -> Fleet:
    words = {name: changes.pop(name) for name in ("dollars_per_gpu_hour", "spare_racks", "ep") if name in changes}
    traffic = Traffic(requests, **(MIXTRAL | changes))
    return size(graph(design, 2), serving.load_model(model), traffic, **words)


def test_the_pools_keep_what_is_promised_as_steps() -> None:
    """Both pools worked out again by the plain model."""
    fleet, model = sized(3000), serving.load_model("mixtral-8x7b")
    assert fleet.decode is not None
    assert fleet.prefill is not None
    work = Workload(context=1000 + 150, batch_per_gpu=fleet.decode.batch)  # 1001 .. 1300 are under way
    one = step(graph("hgx-h100-8", 2), model, work, layout=fleet.decode.layout)
    assert fleet.tpot == pytest.approx(1 / one.tokens_per_user)
    assert fleet.tpot <= 0.03
    assert fleet.decode.rate == pytest.approx(one.tokens_per_second / 300)
    assert fleet.decode.units == -(-3000 // (0.7 * fleet.decode.rate))
    read = Workload("prefill", context=1000, batch=fleet.prefill.batch)
    passed = step(graph("hgx-h100-8", 2), model, read, layout=fleet.prefill.layout)
    assert fleet.prefill.rate == pytest.approx(fleet.prefill.batch / passed.seconds)
    assert fleet.handover is not None
    waits = 2 * passed.seconds + fleet.handover.exposed_seconds + fleet.decode.seconds
    assert fleet.ttft == pytest.approx(waits)
    assert fleet.ttft <= 2.0


def test_an_engine_takes_more_racks_and_keeps_what_is_promised() -> None:
    """Both pools worked out again by the engine's own step."""
    model, traffic = serving.load_model("mixtral-8x7b"), Traffic(3000, prompt=1000, answer=300, ttft=3.0, tpot=0.05)
    ideal, real = (size(graph("hgx-h100-8", 2), model, traffic, profile=one) for one in ("ideal", "vllm-hopper"))
    assert real.racks > 1.5 * ideal.racks
    assert real.decode is not None
    assert real.prefill is not None
    work = Workload(context=1000 + 150, batch_per_gpu=real.decode.batch)
    one = step(graph("hgx-h100-8", 2), model, work, layout=real.decode.layout, profile="vllm-hopper")
    assert real.tpot == pytest.approx(1 / one.tokens_per_user)
    assert real.decode.units == -(-3000 // (0.7 * one.tokens_per_second / 300))
    read = Workload("prefill", context=1000, batch=real.prefill.batch)
    passed = step(graph("hgx-h100-8", 2), model, read, layout=real.prefill.layout, profile="vllm-hopper")
    assert real.prefill.seconds == pytest.approx(passed.seconds)
    assert "engine vllm-hopper" in " ".join(real.assumptions)
    with pytest.raises(InputError, match="Name an engine"):
        size(graph("hgx-h100-8", 2), model, traffic, profile="nccl-hopper")


def test_dollars_add_up_over_prompts_caches_and_answers() -> None:
    fleet = sized(3000, cache_hit=0.6, dollars_per_gpu_hour=3.0)
    assert fleet.dollars_per_million is not None
    assert fleet.prefill is not None
    assert fleet.decode is not None
    each = fleet.dollars_per_million
    request = (400 * each["prefill"] + 600 * each["cached"] + 300 * each["decode"]) / 1e6
    assert request * 3000 * 3600 == pytest.approx(3.0 * (fleet.prefill.gpus + fleet.decode.gpus))
    assert 0 < each["cached"] < each["prefill"] / 5
    assert fleet.dollars_per_hour == 3.0 * fleet.gpus == 3.0 * 8 * fleet.racks


def test_more_requests_take_as_many_more_racks() -> None:
    one, ten = sized(5000, spare_racks=0), sized(50000, spare_racks=0)
    assert ten.racks == pytest.approx(10 * one.racks, rel=0.1)
    assert ten.unit_share == pytest.approx(one.unit_share / 10, rel=0.1)
    assert sized(5000, spare_racks=3).racks == one.racks + 3


def test_caches_that_hit_save_readers() -> None:
    cold, warm = sized(5000), sized(5000, cache_hit=0.8)
    assert cold.prefill is not None
    assert warm.prefill is not None
    assert warm.prefill.units < cold.prefill.units
    assert warm.pool_ratio < cold.pool_ratio / 2


def test_the_long_prompts_set_the_first_token() -> None:
    mixed = sized(500, prompt=[(500, 9), (4000, 1)])
    most = sized(500, prompt=[(500, 9), (4000, 1)], quantile=0.9)
    assert mixed.ttft > most.ttft


def test_what_cannot_be_kept_is_a_result_with_its_reason() -> None:
    assert "ms per token at best, and 0.1 ms are promised" in sized(10, tpot=1e-4).binding
    assert "to the first token at best, and 1 ms are promised" in sized(10, ttft=1e-3).binding
    small = sized(10, model="deepseek-v3", ep=[8])
    assert (small.status, small.racks) == ("infeasible", 0)
    assert "nothing fits: 9" in small.binding  # 656 GB of experts over 8 GPUs, and 15 GB of all else on each
    assert repr(small).startswith("Fleet(infeasible: decode: nothing fits")


def test_a_lost_part_takes_what_it_carries() -> None:
    fleet = sized(30000)
    assert fleet.decode is not None
    tray, switch, rack = fleet.losses
    assert tray.share == rack.share == 1 / fleet.decode.units  # a unit is a host is a rack
    assert (tray.served, rack.served) == (True, True)  # within the headroom
    hurt = topo.fail(graph("hgx-h100-8", 2), switches=["d0/switch0"])
    work = Workload(context=1150, batch_per_gpu=fleet.decode.batch)
    model = serving.load_model("mixtral-8x7b")
    before, after = (
        step(one, model, work, layout=fleet.decode.layout).tokens_per_second for one in (graph("hgx-h100-8", 2), hurt)
    )
    assert switch.share == pytest.approx((1 - after / before) / fleet.decode.units)


def test_idle_gpus_of_a_rack_take_a_trays_place() -> None:
    fleet = sized(20000, "gb200-nvl72", "deepseek-v3", ep=[64])
    assert fleet.losses[0].share == 0
    assert fleet.losses[0].note == "4 GPUs; 8 idle in the rack take their place"


def test_units_side_by_side_share_what_their_rack_loses() -> None:
    """Two units of 32 of 72 GPUs feel the same switch; 8 idle GPUs replace one tray of 4."""
    fleet = sized(20000, "gb200-nvl72", "deepseek-v3", ep=[32])
    assert fleet.decode is not None
    work = Workload(context=1150, batch_per_gpu=fleet.decode.batch)
    hurt = topo.fail(graph("gb200-nvl72", 2), switches=["d0/switch0"])
    model = serving.load_model("deepseek-v3")
    before, after = (
        step(one, model, work, layout=Layout(32)).tokens_per_second for one in (graph("gb200-nvl72", 2), hurt)
    )
    tray, switch, rack = fleet.losses
    assert tray.share == 0
    assert switch.share == pytest.approx(2 * (1 - after / before) / fleet.decode.units)
    assert rack.share == pytest.approx(2 / fleet.decode.units)


def test_a_tray_stops_every_unit_on_it() -> None:
    """One GPU a unit, 72 in a rack: a tray of 4 is 4 units."""
    fleet = sized(3000, "gb200-nvl72", "llama-3.1-70b", ttft=5.0, tpot=0.1)
    assert fleet.decode is not None
    assert fleet.decode.layout.gpus == 1
    assert fleet.decode.units > 72
    tray, _, rack = fleet.losses
    assert tray.share == pytest.approx(4 / fleet.decode.units)
    assert tray.note == "4 GPUs; 0 idle in the rack: 4 units stop"
    assert rack.share == pytest.approx(72 / fleet.decode.units)


def test_a_unit_of_two_racks_has_idle_gpus_in_both() -> None:
    """EP 128 is 64 + 64 of 72 + 72: 8 idle in each rack."""
    traffic = Traffic(2000, prompt=1000, answer=300, ttft=5.0, tpot=0.1)
    fleet = size(graph("gb200-nvl72", 4), serving.load_model("deepseek-v3"), traffic, ep=[128])
    assert fleet.losses[0].share == 0


def test_guesses_are_of_the_pool_that_answers() -> None:
    """A workload of any phase gives types and copies; its guesses count where tokens are answered."""
    model, traffic = serving.load_model("deepseek-v3"), Traffic(2000, prompt=1000, answer=300, ttft=2.0, tpot=0.03)
    guessing: dict[str, Any] = {"draft": 1, "acceptance": 0.85}
    found = size(graph("gb200-nvl72", 2), model, traffic, ep=[64], workload=Workload(batch=1, **guessing))
    assert found.decode is not None
    work = Workload(context=1150, batch_per_gpu=found.decode.batch, **guessing)
    one = step(graph("gb200-nvl72", 2), model, work, layout=Layout(64))
    assert found.tpot == pytest.approx(1 / one.tokens_per_user)
    plain, chunked, read = (
        size(graph("gb200-nvl72", 2), model, traffic, ep=[64], workload=work)
        for work in (None, Workload("chunked", batch=1, chunk=64, prompt=100), Workload("prefill", cached=5, batch=1))
    )
    assert plain.to_dict() == chunked.to_dict() == read.to_dict()
    assert plain.prefill == found.prefill


@pytest.mark.parametrize(("prompt", "fewest", "most"), [(2000, 100, 200), (25000, 700, 1200), (60000, 1800, 2200)])
def test_one_rack_is_a_thousandth_of_gemini(prompt: int, fewest: int, most: int) -> None:
    """Lecture, 26:15 and 27:18: 2,000 sequences 64 times a second are 128,000 of hundreds of millions tokens/s.

    It is a thousandth where caches fill the rack at some 2,000 to 5,000 sequences, and more where contexts are short.
    """
    fleet = sized(2e8 / 1000, "gb200-nvl72", "deepseek-v3", prompt=prompt, answer=1000, ttft=60, tpot=0.025, ep=[64])
    assert fewest < 1 / fleet.unit_share < most


def test_power_is_what_the_design_states() -> None:
    fleet = sized(3000)
    assert fleet.watts == 700 * fleet.gpus
    assert any("states no power of" in line for line in fleet.assumptions)


def test_lengths_and_promises_are_checked_together() -> None:
    with pytest.raises(InputError) as error:
        Traffic(0, prompt=[], answer=[(10, -1)], cache_hit=1.0, quantile=0, tpot=float("nan"))
    places = {fault.place for fault in error.value.faults}
    assert places == {"requests_per_second", "prompt", "answer", "cache_hit", "quantile", "tpot"}


def test_log_normal_lengths_have_their_quantiles() -> None:
    rows = serving.log_normal_lengths(1000, 8000, 1000)
    below = sum(share for tokens, share in rows if tokens <= 8000)
    assert below == pytest.approx(0.95, abs=2e-3)
    assert sum(share for tokens, share in rows if tokens <= 1000) == pytest.approx(0.5, abs=2e-3)


def test_the_context_under_way_is_what_counting_tokens_finds() -> None:
    traffic = Traffic(1, prompt=[(10, 1), (30, 3)], answer=[(4, 1), (8, 2)])
    contexts = [
        (prompt + t, a * b) for prompt, a in traffic.shares("prompt") for answer, b in traffic.shares("answer")
        for t in range(1, answer + 1)
    ]  # fmt: skip
    mean = sum(context * weight for context, weight in contexts) / sum(weight for _, weight in contexts)
    assert traffic.mean_context == round(mean)


def test_layouts_of_several_racks_count_them_all() -> None:
    traffic = Traffic(1000, prompt=1000, answer=300, tpot=0.5)
    fleet = size(topo.load("hgx-h200-8", 8), serving.load_model("deepseek-v3"), traffic, ep=[32], spare_racks=0)
    assert fleet.decode is not None
    assert fleet.prefill is not None
    assert fleet.decode.layout == Layout(32)
    assert fleet.racks == 4 * (fleet.decode.units + fleet.prefill.units)


@pytest.mark.parametrize(
    "bad", [None, 1.5, "x", [], [(1, 2, 3)], [("a", 1)], [1, 2], [(1.5, 1)], -1, True, float("nan")]
)
def test_lengths_of_another_shape_are_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="must be whole tokens, or pairs"):
        Traffic(10, prompt=bad, answer=300)


@pytest.mark.parametrize(("place", "bad"), [(1, None), (1, "mixtral-8x7b"), (2, 10), (2, {})])
def test_other_records_are_refused(place: int, bad: Any) -> None:
    given: list[Any] = [graph("hgx-h100-8", 2), serving.load_model("mixtral-8x7b"), Traffic(10, 1000, 300)]
    given[place] = bad
    with pytest.raises(InputError, match="must be a serving"):
        size(*given)
    with pytest.raises(InputError, match=r"workload.*must be a serving.Workload"):
        size(graph("hgx-h100-8", 2), serving.load_model("mixtral-8x7b"), Traffic(10, 1000, 300), workload=3)  # type: ignore[arg-type]


def test_layouts_come_as_arrays_too_and_none_at_all_is_said() -> None:
    assert sized(500, ep=np.array([4, 8])).to_dict() == sized(500, ep=[4, 8]).to_dict()
    with pytest.raises(InputError, match="Give other axes"):
        sized(500, ep=[])
    with pytest.raises(InputError, match="ep = 0"):
        sized(500, ep=0)


def test_no_batch_that_was_not_tried_saves_units() -> None:
    """Brute force over every batch of EP 72, whose 72 replicas a power of two of prompts does not fill."""
    requests = 400_000
    fleet, model = sized(requests, "gb200-nvl72", "deepseek-v3", ep=[72], ttft=20.0), serving.load_model("deepseek-v3")
    assert fleet.decode is not None
    assert fleet.prefill is not None
    asked = Workload(context=1150, batch_per_gpu=1)
    every = serving.sweep(graph("gb200-nvl72", 1), model, asked, ep=72, batch=range(1, 4096))
    kept = every.fits & (1 / every.tokens_per_user <= 0.03)
    least = requests / (0.7 * np.max(every.tokens_per_second[kept]) / 300)
    assert least <= fleet.decode.units <= 1.003 * least + 1
    read = Workload("prefill", context=1000, batch=1)
    passes = serving.sweep(
        graph("gb200-nvl72", 1), model, read, ep=72, batch=[*range(1, 1025, 13), *range(72, 1025, 72)]
    )
    least = requests / (0.7 * np.nanmax(passes.tokens_per_second) / 1000)
    assert least <= fleet.prefill.units <= 1.003 * least + 1
