"""Do caches take the wires they say, and is only what does not overlap added?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import serving
import topo
from serving import Layout, Workload, handover, step
from serving.laws import handover_seconds
from topo import InputError

STILL = {"scale_out.latency": "0 s", "scale_up.latency": "0 s"}


@cache
def graph(design: str, domains: int) -> Any:
    return topo.load(design, domains, STILL)


def sent(
    model: str, work: Workload, seconds: float, design: str = "hgx-h100-8", domains: int = 2, **cuts: Layout
) -> serving.Handover:
    layouts = {"prefill": Layout(8), "decode": Layout(8)} | cuts
    return handover(graph(design, domains), serving.load_model(model), work, seconds, **layouts)


def test_layer_by_layer_is_what_a_pipeline_of_two_takes() -> None:
    """Brute force: layer i is sent when it has computed and layer i - 1 has been sent."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        layers, prefill, send = int(rng.integers(1, 9)), *rng.uniform(0.1, 5, 2)
        free = 0.0
        for i in range(layers):
            free = max(free, (i + 1) * prefill / layers) + send / layers
        assert handover_seconds(prefill, send, layers) == pytest.approx(free)


def test_bytes_and_seconds_by_hand() -> None:
    """Mixtral keeps 131,072 bytes a token; 16 prompts of 1,000 leave 8 GPUs over a NIC of 50 GB/s each."""
    found = sent("mixtral-8x7b", Workload("prefill", context=1000, batch=16), 0.1)
    assert found.n_bytes == 16 * 1000 * 131072
    assert found.send_seconds == pytest.approx(2 * 1000 * 131072 / 50e9)
    assert found.exposed_seconds == pytest.approx(found.send_seconds / 32)
    assert found.link_share == pytest.approx(found.send_seconds / 0.1)
    assert found.binding_link.startswith("scale-out")
    assert not found.dominates


def test_one_prompt_leaves_from_the_gpus_it_is_on() -> None:
    alone = sent("mixtral-8x7b", Workload("prefill", context=1000, batch=1), 0.1)
    assert alone.send_seconds == pytest.approx(1000 * 131072 / 50e9)
    shared = sent("mixtral-8x7b", Workload("prefill", context=1000, batch=1), 0.1, prefill=Layout(8, tp=8))
    assert shared.send_seconds == pytest.approx(alone.send_seconds / 8)


def test_inside_a_rack_caches_go_over_scale_up() -> None:
    work = Workload("prefill", context=4096, batch=32)
    near, far = (
        sent("deepseek-v3", work, 0.1, "gb200-nvl72", n, prefill=Layout(32), decode=Layout(32)) for n in (1, 2)
    )
    assert near.binding_link.startswith("scale-up")
    assert near.send_seconds < far.send_seconds / 10


def test_stages_send_their_own_layers() -> None:
    work = Workload("prefill", context=1000, batch=4)
    found = sent("mixtral-8x7b", work, 0.1, domains=3, prefill=Layout(4, pp=2))
    assert found.n_bytes == 4 * 1000 * 131072
    assert found.send_seconds == pytest.approx(500 * 131072 / 50e9)


def test_sending_dominates_where_nearly_all_is_cached() -> None:
    """New tokens are computed, all tokens are sent."""
    model = serving.load_model("mixtral-8x7b")
    found = []
    for cached in (0, 15900):
        work = Workload("prefill", context=16000, cached=cached, batch=8)
        passed = step(graph("hgx-h100-8", 2), model, work, layout=Layout(8)).seconds
        found.append(sent("mixtral-8x7b", work, passed))
    assert [one.dominates for one in found] == [False, True]
    assert found[1].exposed_seconds > 0.5 * found[1].send_seconds
    assert found[1].link_share > 1


def test_no_room_for_both_is_said_with_what_would_do() -> None:
    with pytest.raises(InputError, match="3 domains"):
        sent("mixtral-8x7b", Workload("prefill", context=10, batch=1), 0.1, decode=Layout(16))


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), None, "0.1", True])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(InputError, match="prefill_seconds"):
        sent("mixtral-8x7b", Workload("prefill", context=10, batch=1), seconds)


def test_a_layout_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"decode = 8: must be a serving.Layout"):
        sent("mixtral-8x7b", Workload("prefill", context=10, batch=1), 0.1, decode=8)


def test_a_decode_hands_nothing_over() -> None:
    with pytest.raises(InputError, match="must be prefill"):
        sent("mixtral-8x7b", Workload(batch_per_gpu=4), 0.1)
