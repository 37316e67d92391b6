"""Is the bound what the plain arithmetic says, at every width, and does it name what binds?"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import placement
import serving
import topo
from placement import ExpertLayerBound, WidthSteps
from serving import Layout, Workload
from topo import InputError

from . import by_hand
from .by_hand import GB200, H100, MODELS, Ask, Machine

#: Both latencies off: the integers of the issue are those of bandwidth alone.
STILL = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


@cache
def routes(design: str, domains: int = 2, scale_out: str = "", still: bool = True) -> topo.Routes:
    overrides = (STILL if still else {}) | ({"scale_out.bandwidth": scale_out} if scale_out else {})
    return topo.route(topo.load(design, domains, overrides))


@cache
def steps(design: str, domains: int, model: str, work: Workload, scale_out: str = "", still: bool = True) -> WidthSteps:
    found = routes(design, domains, scale_out, still)
    return placement.width_steps(found.fabric, serving.load_model(model), work, routing=found)


def bound(
    design: str = "gb200-nvl72", domains: int = 2, model: str = "deepseek-v3", work: Workload | None = None,
    budget: float = 20e-3, overlap: str = "none", scale_out: str = "", still: bool = True,
) -> ExpertLayerBound:  # fmt: skip
    work = work or Workload(context=4096, batch_per_gpu=114)
    found = steps(design, domains, model, work, scale_out, still)
    return placement.expert_layer_bound(
        found.routes.fabric, found.model, work, step_budget=budget, overlap=overlap, routing=found.routes, steps=found
    )


# --- the issue's numbers: DeepSeek-V3, GB200 NVL72, 114 sequences per GPU, context 4,096, 20 ms, latencies zero ------
# Worked out by hand from arXiv 2412.19437 (weights) and public GB200 numbers: 8 TB/s, 189,471 MiB, 900 and 50 GB/s.


def test_one_rack_of_72() -> None:
    one = bound(domains=1)
    assert (one.n_experts, one.width, one.experts_per_gpu) == (2808, 72, 39)
    assert one.n_bytes == 2808 * 3 * 7168 * 2048
    assert one.n_bytes / 1e9 == pytest.approx(123.7, abs=0.05)
    assert one.scale_out_needed is None
    assert one.beyond == (0, 0)
    assert one.one_domain_bounds is None  # nothing to compare with


def test_width_64_and_the_second_rack() -> None:
    two = bound()
    curve = two.curve
    assert curve.width.tolist() == list(range(1, 145))
    assert [int(curve.n_experts[w - 1]) for w in (64, 72, 144)] == [2496, 2808, 1008]
    expert = 3 * 7168 * 2048
    assert [round(int(curve.n_experts[w - 1]) * expert / 1e9, 1) for w in (64, 72, 144)] == [109.9, 123.7, 44.4]
    assert (two.n_experts, two.width) == (2808, 72)
    assert two.one_domain == (2808, 72)
    assert two.beyond == (1008, 144)
    assert two.one_domain_bounds
    assert curve.domains[71] == 1
    assert curve.domains[72] == 2


def test_nics_of_800_gbit_turn_the_verdict() -> None:
    fast = bound(scale_out="800 Gb/s")
    assert (fast.n_experts, fast.width) == (3600, 144)
    assert fast.n_bytes / 1e9 == pytest.approx(158.5, abs=0.05)
    assert not fast.one_domain_bounds
    assert fast.scale_out == 100e9


def test_constant_total_batch_turns_the_verdict() -> None:
    shared = bound(work=Workload(context=4096, batch=8208))  # 72 x 114, so 57 on each of 144
    assert (shared.n_experts, shared.width) == (4608, 144)
    assert shared.n_bytes / 1e9 == pytest.approx(202.9, abs=0.05)
    assert not shared.one_domain_bounds


@pytest.mark.parametrize(("domains", "experts", "gigabytes"), [(1, 3096, 136.3), (2, 6192, 272.7)])
def test_full_overlap(domains: int, experts: int, gigabytes: float) -> None:
    full = bound(domains=domains, overlap="full")
    assert (full.n_experts, full.width) == (experts, 72 * domains)
    assert full.n_bytes / 1e9 == pytest.approx(gigabytes, abs=0.05)
    assert full.one_domain_bounds is (None if domains == 1 else False)


def test_the_parts_of_the_step() -> None:
    found = steps("gb200-nvl72", 2, "deepseek-v3", Workload(context=4096, batch_per_gpu=114)).steps
    projections, attention, rest = found[71].parts
    assert projections.seconds * 1e3 == pytest.approx(1.427, abs=5e-4)
    assert projections.resource == "memory"
    assert attention.compute_seconds * 1e3 == pytest.approx(3.17, abs=5e-3)
    assert attention.seconds * 1e3 == attention.memory_seconds * 1e3 == pytest.approx(4.102, abs=5e-4)
    assert rest.seconds * 1e3 == pytest.approx(0.584, abs=5e-4)
    assert found[71].all_to_all * 1e3 == pytest.approx(1.246, abs=5e-4)
    assert found[143].all_to_all * 1e3 == pytest.approx(11.375, abs=5e-4)
    fast = steps("gb200-nvl72", 2, "deepseek-v3", Workload(context=4096, batch_per_gpu=114), "800 Gb/s").steps
    assert fast[143].all_to_all * 1e3 == pytest.approx(5.687, abs=5.1e-4)
    left = 20e-3 - found[71].fixed - found[71].all_to_all
    assert left * 1e3 == pytest.approx(12.64, abs=5e-3)
    assert left * 8e12 / 58 / (3 * 7168 * 2048) == pytest.approx(39.6, abs=0.05)


def test_two_racks_need_75_8_gigabytes_a_second() -> None:
    needed = bound().scale_out_needed
    assert needed is not None
    assert needed / 1e9 == pytest.approx(75.8, abs=0.05)  # 20 experts on each of 144 are more than 2,808
    # By hand: 20 experts per GPU leave so much for the wires, whatever the NIC is before.
    left = 20e-3 - bound().curve.fixed_seconds[143] - 20 * 58 * 44040192 / 8e12
    assert needed == pytest.approx(58 * 114 * 8 * 7168 * 3 / 2 / left, rel=1e-9)


def test_hgx_h100_holds_32_experts() -> None:
    one = bound("hgx-h100-8", 1)
    assert (one.n_experts, one.experts_per_gpu) == (32, 4)
    assert one.n_bytes / 1e9 == pytest.approx(1.4, abs=0.05)
    model = serving.load_model("deepseek-v3")
    assert model.n_experts * model.expert_bytes / 1e9 == pytest.approx(11.3, abs=0.05)


@pytest.mark.parametrize(("scale_out", "width", "bounds"), [("400 Gb/s", 72, True), ("800 Gb/s", 144, False)])
def test_with_the_catalogues_latencies_widths_and_verdicts_stay(scale_out: str, width: int, bounds: bool) -> None:
    real = bound(scale_out=scale_out, still=False)
    assert real.width == width
    assert real.one_domain_bounds is bounds
    assert real.n_experts <= bound(scale_out=scale_out).n_experts


# --- the same in plain arithmetic, at every width --------------------------------------------------------------------

MACHINES: dict[tuple[str, int], Machine] = {
    ("gb200-nvl72", 1): GB200,
    ("gb200-nvl72", 2): replace(GB200, domains=2),
    ("hgx-h100-8", 2): replace(H100, domains=2),
    ("hgx-h100-8", 3): replace(H100, domains=3),
}
ASKS = [
    Ask(), Ask(full=True), Ask(budget=35e-3), Ask(budget=200e-3), Ask(budget=9e-3, full=True),
    Ask(per_gpu=None, total=8208), Ask(per_gpu=None, total=1000, context=20000, budget=30e-3),
    Ask(per_gpu=1, context=100, budget=50e-3), Ask(per_gpu=None, total=5, budget=10e-3),
    Ask(per_gpu=300, context=1024, budget=60e-3, full=True),
]  # fmt: skip


def _said(ask: Ask) -> str:
    batch = f"{ask.per_gpu} each" if ask.total is None else f"{ask.total} in all"
    return f"{1e3 * ask.budget:g} ms, {batch}, context {ask.context}{', overlapped' if ask.full else ''}"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda key: f"{key[1]} x {key[0]}")
@pytest.mark.parametrize("model", MODELS)
def test_every_width_agrees_with_plain_arithmetic(model: str, machine: tuple[str, int]) -> None:
    design, domains = machine
    facts, numbers = MODELS[model], MACHINES[machine]
    # One rack is two racks' first 72 widths: a few questions there show that.
    for ask in ASKS[:3] if machine == ("gb200-nvl72", 1) else ASKS:
        work = Workload(context=ask.context, batch=ask.total, batch_per_gpu=ask.per_gpu)
        overlap = "full" if ask.full else "none"
        found = bound(design, domains, model, work, ask.budget, overlap)
        hand = [by_hand.experts(facts, numbers, ask, width + 1) for width in range(domains * numbers.size)]
        assert found.curve.n_experts.tolist() == hand, _said(ask)
        best = max(hand)
        assert found.n_experts == best, _said(ask)
        assert found.width == (hand.index(best) + 1 if best else 0), _said(ask)


def test_plain_arithmetic_gives_the_issues_numbers() -> None:
    """The referee is right where the answer is published."""
    facts, two = MODELS["deepseek-v3"], replace(GB200, domains=2)
    assert [by_hand.experts(facts, two, Ask(), width) for width in (64, 72, 144)] == [2496, 2808, 1008]
    assert by_hand.experts(facts, replace(two, nic=100e9), Ask(), 144) == 3600
    assert by_hand.experts(facts, two, Ask(per_gpu=None, total=8208), 144) == 4608
    assert [by_hand.experts(facts, two, Ask(full=True), width) for width in (72, 144)] == [3096, 6192]
    assert by_hand.experts(facts, H100, Ask(), 8) == 32


@pytest.mark.parametrize("name", MODELS)
def test_plain_arithmetic_starts_from_the_models_own_weights(name: str) -> None:
    facts, model = MODELS[name], serving.load_model(name)
    pieces = ("expert", "shared", "router")
    assert [getattr(facts, piece) for piece in pieces] == [getattr(model, f"{piece}_params") for piece in pieces]
    assert [facts.attention] * model.layers == [mixer.params for mixer in model.mixers]
    assert (facts.layers - facts.moe) * facts.dense == sum(model.dense_params)
    assert facts.vocab * facts.hidden == model.head_params == model.embedding_params


# --- costed again by the plain model ---------------------------------------------------------------------------------

AGAIN: list[tuple[str, int, str, dict[str, Any], float, str]] = [
    ("gb200-nvl72", 2, "deepseek-v3", {"batch_per_gpu": 114}, 20e-3, "none"),
    ("gb200-nvl72", 2, "deepseek-v3", {"batch_per_gpu": 114}, 20e-3, "full"),
    ("gb200-nvl72", 2, "deepseek-v3", {"batch": 8208}, 20e-3, "none"),
    ("gb200-nvl72", 1, "gpt-oss-120b", {"batch_per_gpu": 64}, 5e-3, "none"),
    ("gb200-nvl72", 2, "kimi-k2", {"batch": 3000}, 15e-3, "full"),
    ("hgx-h100-8", 2, "qwen3-235b-a22b", {"batch_per_gpu": 32}, 25e-3, "none"),
    ("hgx-h100-8", 2, "mixtral-8x7b", {"batch": 100}, 12e-3, "none"),
]


@pytest.mark.parametrize("still", [True, False], ids=["no latency", "catalogue latencies"])
@pytest.mark.parametrize(("design", "domains", "model", "batch", "budget", "overlap"), AGAIN)
def test_the_step_of_the_bound_keeps_the_budget_and_one_more_does_not(
    design: str, domains: int, model: str, batch: dict[str, Any], budget: float, overlap: str, still: bool
) -> None:
    work = Workload(context=4096, **batch)
    answer = bound(design, domains, model, work, budget, overlap, still=still)
    assert answer.status == "bounded"
    assert "step budget" in answer.binding
    found = routes(design, domains, still=still)

    def seconds(n_experts: int) -> tuple[float, bool]:
        bigger = replace(serving.load_model(model), n_experts=n_experts)
        step = serving.step(found.fabric, bigger, work, layout=Layout(answer.width), routing=found)
        assert step.experts_per_gpu == n_experts // answer.width
        return step.lower if overlap == "full" else step.serial, step.fits

    kept, fits = seconds(answer.n_experts)
    assert kept <= budget * (1 + 1e-12)
    assert fits
    assert seconds(answer.n_experts + answer.width)[0] > budget


@pytest.mark.parametrize(
    ("model", "batch", "design"),
    [("deepseek-v3", {"batch_per_gpu": 114}, "gb200-nvl72"), ("deepseek-v3", {"batch_per_gpu": 114}, "hgx-h100-8"),
     ("qwen3-235b-a22b", {"batch_per_gpu": 60}, "gb200-nvl72"), ("deepseek-v3", {"batch": 8208}, "gb200-nvl72")],
)  # fmt: skip
@pytest.mark.parametrize("still", [True, False], ids=["no latency", "catalogue latencies"])
def test_the_verdict_turns_at_the_scale_out_needed(model: str, batch: dict[str, Any], design: str, still: bool) -> None:
    work = Workload(context=4096, **batch)
    needed = bound(design, 2, model, work, still=still).scale_out_needed
    assert needed is not None
    assert np.isfinite(needed)
    below = bound(design, 2, model, work, scale_out=f"{0.999 * needed!r} B/s", still=still)
    above = bound(design, 2, model, work, scale_out=f"{1.001 * needed!r} B/s", still=still)
    assert below.one_domain_bounds
    assert not above.one_domain_bounds
    # It does not depend on where one starts.
    assert below.scale_out_needed == pytest.approx(needed, rel=1e-6)


def test_no_bandwidth_helps_when_latency_alone_is_too_long() -> None:
    slow = topo.load("hgx-h100-8", 2, {"scale_out.latency": "1 ms"})
    work = Workload(batch_per_gpu=8, context=1024)
    answer = placement.expert_layer_bound(slow, serving.load_model("deepseek-v3"), work, step_budget=20e-3)
    assert answer.one_domain[0] > 0
    assert answer.beyond == (0, 0)
    assert answer.scale_out_needed == float("inf")
    assert answer.to_dict()["scale_out_needed"] == "Infinity"


# --- what binds, and the edges ---------------------------------------------------------------------------------------


def test_memory_binds_when_time_does_not() -> None:
    answer = bound(domains=1, budget=10.0)
    assert answer.binding.startswith("HBM capacity")
    assert np.array_equal(answer.curve.n_experts, answer.curve.width * answer.curve.memory_experts)
    # 0.9 x 198.67 GB less 17.1 GB of other weights and 32.8 GB of KV cache, over 58 experts of 44.04 MB, whole.
    other = 61 * 187105280 + 58 * (1835008 + 44040192) + 3 * 396361728 + 2 * 926679040
    room = 0.9 * 189471 * 2**20 - other - 114 * 4096 * 61 * 576 * 2
    assert answer.experts_per_gpu == int(room // (58 * 44040192))
    found = routes("gb200-nvl72", 1)
    work = Workload(context=4096, batch_per_gpu=114)
    for extra, fits in ((0, True), (72, False)):
        model = replace(serving.load_model("deepseek-v3"), n_experts=answer.n_experts + extra)
        # The router grows with the experts; by definition the bound keeps everything else of the model.
        assert serving.step(found.fabric, model, work, routing=found).fits is fits


def test_a_batch_of_one() -> None:
    answer = bound(work=Workload(context=4096, batch=1))
    assert answer.status == "bounded"
    # One token hits at most top-8 experts: time hardly grows with the layer, memory ends it.
    assert answer.binding.startswith("HBM capacity")
    assert answer.width == 144


def test_fewer_sequences_than_gpus() -> None:
    answer = bound("hgx-h100-8", 2, work=Workload(context=4096, batch=5), budget=30e-3)
    assert answer.status == "bounded"
    assert answer.curve.fixed_seconds[4:] == pytest.approx(answer.curve.fixed_seconds[4], rel=1e-12)


def test_a_layer_of_fewer_experts_than_top_k_is_none() -> None:
    # On HGX H100 the budget has room for fewer than 8 DeepSeek experts a GPU, and a token goes to 8.
    facts, curve = MODELS["deepseek-v3"], bound("hgx-h100-8", 1).curve
    assert curve.n_experts[0] == curve.experts_per_gpu[0] == 0
    assert by_hand.experts(replace(facts, top_k=1), H100, Ask(), 1) in range(1, 8)
    assert curve.n_experts[1] >= 8


def test_nothing_fits_is_an_answer() -> None:
    answer = bound(budget=1e-3)
    assert answer.status == "nothing fits"
    assert (answer.n_experts, answer.width, answer.n_bytes) == (0, 0, 0.0)
    assert "step budget of 1 ms" in answer.binding
    assert not answer.curve.n_experts.any()
    assert repr(answer).startswith("ExpertLayerBound(nothing fits")


def test_nothing_fits_into_memory() -> None:
    answer = bound("hgx-h100-8", 1, work=Workload(context=400_000, batch_per_gpu=10), budget=10.0)
    assert answer.status == "nothing fits"
    assert answer.binding.startswith("HBM capacity")


def test_a_dense_model_has_no_experts() -> None:
    answer = bound(model="llama-3.1-70b")
    assert answer.status == "no experts"
    assert "dense" in answer.binding
    assert answer.scale_out_needed == math.inf  # DESIGN: None only with a single domain
    assert len(answer.curve.width) == 0


def test_more_budget_never_means_fewer_experts() -> None:
    found = [bound(budget=budget * 1e-3).curve.n_experts for budget in (8, 12, 20, 33, 60)]
    for less, more in pairwise(found):
        assert (less <= more).all()


def test_overlap_never_means_fewer_experts() -> None:
    assert (bound().curve.n_experts <= bound(overlap="full").curve.n_experts).all()


def test_the_models_own_number_of_experts_plays_no_part() -> None:
    found = routes("hgx-h100-8", 2)
    work = Workload(context=2048, batch_per_gpu=16)
    model = serving.load_model("mixtral-8x7b")
    answers = [
        placement.expert_layer_bound(
            found.fabric, replace(model, n_experts=n), work, step_budget=30e-3, routing=found
        ).n_experts
        for n in (8, 64)
    ]
    assert answers[0] == answers[1] > 0


def test_least_budget_is_the_budget_from_which_the_layer_is_within() -> None:
    found = steps("hgx-h100-8", 2, "deepseek-v3", Workload(context=4096, batch_per_gpu=114))
    least, width = found.least_budget(64)
    assert bound("hgx-h100-8", 2, budget=least).n_experts >= 64
    assert bound("hgx-h100-8", 2, budget=least * 0.999).n_experts < 64
    assert 1 <= width <= 16
    assert found.least_budget(10**6) == (float("inf"), 0)


@pytest.mark.parametrize(
    ("change", "place"),
    [({"step_budget": 0.0}, "step_budget"), ({"step_budget": -1.0}, "step_budget"),
     ({"step_budget": float("nan")}, "step_budget"), ({"step_budget": float("inf")}, "step_budget"),
     ({"step_budget": True}, "step_budget"), ({"step_budget": "20ms"}, "step_budget"),
     ({"overlap": "some"}, "overlap"), ({"copies": "deduplicated"}, "copies")],
)  # fmt: skip
def test_bad_arguments_are_refused(change: dict[str, Any], place: str) -> None:
    found = routes("hgx-h100-8", 1)
    asked: dict[str, Any] = {"step_budget": 20e-3} | change
    with pytest.raises(InputError) as caught:
        placement.expert_layer_bound(
            found.fabric, serving.load_model("mixtral-8x7b"), Workload(batch_per_gpu=8), routing=found, **asked
        )
    assert [fault.place for fault in caught.value.faults] == [place]


def test_copies_are_as_wide_as_what_experts_take() -> None:
    """Experts of a latent width get fewer bytes."""
    graph, model = topo.load("hgx-h100-8", overrides=STILL), serving.load_model("mixtral-8x7b")
    whole, quarter = (
        placement.width_steps(graph, replace(model, expert_hidden_size=width), Workload(batch_per_gpu=8)).steps[7]
        for width in (4096, 1024)
    )
    assert quarter.all_to_all == pytest.approx(whole.all_to_all / 4)


def test_merged_copies_are_not_taken_for_direct_ones() -> None:
    with pytest.raises(InputError, match=r"workload\.copies = 'per_domain': is what a step counts"):
        placement.expert_layer_bound(
            topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), Workload(batch=8, copies="per_domain"),
            step_budget=1.0,
        )  # fmt: skip


def test_everything_bad_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        placement.expert_layer_bound(
            topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), Workload(batch_per_gpu=8),
            step_budget=-1.0, overlap="some", copies="none",
        )  # fmt: skip
    assert len(caught.value.faults) == 3


def test_steps_of_other_arguments_are_not_taken_for_these() -> None:
    """A caller who hands over steps of another workload or model must not get an answer to another question."""
    found = steps("hgx-h100-8", 1, "mixtral-8x7b", Workload(batch_per_gpu=8))
    with pytest.raises(InputError):
        placement.expert_layer_bound(
            found.routes.fabric, serving.load_model("deepseek-v3"), Workload(batch_per_gpu=64),
            step_budget=20e-3, steps=found,
        )  # fmt: skip
