"""Every threshold `evaluate` prints holds at the very figure it prints."""

from __future__ import annotations

import re

import pytest

import placement
import serving
import topo
from rackbound import evaluate
from topo.units import parse_quantity


@pytest.fixture(scope="module")
def flips() -> tuple[str, ...]:
    return evaluate("gb200-nvl72", "deepseek-v3").designs[0].flips


def bound(budget: float = 20e-3, **overrides: str) -> placement.ExpertLayerBound:
    graph = topo.load("gb200-nvl72", 2, {key.replace("__", "."): value for key, value in overrides.items()})
    work = serving.Workload(context=4096, batch_per_gpu=114)
    return placement.expert_layer_bound(graph, serving.load_model("deepseek-v3"), work, step_budget=budget)


def found(pattern: str, flips: tuple[str, ...]) -> str:
    return next(match[1] for sentence in flips if (match := re.search(pattern, sentence)))


def test_the_printed_scale_out_is_enough_and_a_thousandth_less_is_not(flips: tuple[str, ...]) -> None:
    text = found(r"scale-out of (.*?) per GPU", flips)
    assert bound(scale_out__bandwidth=text).one_domain_bounds is False
    less = f"{0.999 * parse_quantity(text, 'bandwidth')} B/s"
    assert bound(scale_out__bandwidth=less).one_domain_bounds is True
    gigabits = found(r"\((.*?) Gb/s", flips)
    assert parse_quantity(f"{gigabits} Gb/s", "bandwidth") == pytest.approx(parse_quantity(text, "bandwidth"), rel=1e-6)


def test_the_printed_budget_is_enough_and_a_thousandth_less_is_not(flips: tuple[str, ...]) -> None:
    budget = parse_quantity(found(r"budget of (.*?) up", flips), "seconds")
    assert bound(budget).n_experts >= 256
    assert bound(0.999 * budget).n_experts < 256


def test_the_verdict_is_said_to_flip_where_it_does(flips: tuple[str, ...]) -> None:
    overlapped = next(sentence for sentence in flips if "overlapped" in sentence)
    assert "6,192 experts over several domains against 3,096 in one" in overlapped
    assert overlapped.endswith("the verdict flips")
    total = next(sentence for sentence in flips if "8,208 sequences over the group" in sentence)
    assert total.endswith("the verdict flips")


def test_a_verdict_that_stays_is_said_to_stay() -> None:
    """At 1,600 Gb/s two racks win either way."""
    answer = evaluate("gb200-nvl72", "deepseek-v3", overrides={"scale_out.bandwidth": "1600 Gb/s"}).designs[0]
    overlapped = next(sentence for sentence in answer.flips if "overlapped" in sentence)
    assert overlapped.endswith("the same verdict")
    assert answer.flips[0].startswith("one domain would be the bound below a scale-out of")


def test_nothing_fits_is_no_verdict() -> None:
    answer = evaluate("hgx-h100-8", "mixtral-8x7b").designs[0]
    assert answer.bound.status == "nothing fits"
    assert answer.bound.one_domain_bounds is None
    assert any(sentence.endswith("a layer becomes possible") for sentence in answer.flips)
    assert not any("verdict" in sentence for sentence in answer.flips)


def test_scale_out_is_blamed_only_where_it_is_the_cause() -> None:
    slow = {"design.domain_size": 8, "design.gpus_per_host": 4, "scale_up.bandwidth": "20 GB/s"}
    answer = evaluate("gb200-nvl72", "deepseek-v3", overrides=slow).designs[0]
    if answer.bound.scale_out_needed == float("inf"):
        assert "scale-out leaves" not in answer.binding
