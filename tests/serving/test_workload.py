"""Is what cannot be refused, all at once, and are batch, experts and layers dealt as said?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving import Layout, Workload
from topo import InputError


def places(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [fault.place for fault in error.value.faults]


# --- Workload ---


def test_defaults_are_those_of_the_design() -> None:
    work = Workload(batch_per_gpu=114)
    assert (work.phase, work.context, work.kv_dtype, work.dispatch_dtype, work.combine_dtype) == (
        "decode", 4096, "bf16", "fp8", "bf16",
    )  # fmt: skip
    assert (work.copies, work.expert_routing, work.expert_read) == ("direct", "free", "distinct")
    assert work.hbm_reserve == 0.10


@pytest.mark.parametrize(
    ("change", "place"),
    [({"phase": "prefil"}, "phase"), ({"copies": "dedup"}, "copies"), ({"expert_routing": "group"}, "expert_routing"),
     ({"expert_read": "some"}, "expert_read"), ({"kv_dtype": "fp9"}, "kv_dtype"),
     ({"dispatch_dtype": ""}, "dispatch_dtype"), ({"combine_dtype": "BF16"}, "combine_dtype"),
     ({"context": 0}, "context"), ({"context": -4096}, "context"), ({"context": 4096.0}, "context"),
     ({"context": True}, "context"), ({"context": None}, "context"), ({"batch_per_gpu": 0}, "batch_per_gpu"),
     ({"batch_per_gpu": -1}, "batch_per_gpu"), ({"batch_per_gpu": 1.5}, "batch_per_gpu"),
     ({"batch_per_gpu": "114"}, "batch_per_gpu"), ({"batch_per_gpu": None}, "batch, batch_per_gpu"),
     ({"batch": 8208}, "batch, batch_per_gpu"), ({"hbm_reserve": 1.0}, "hbm_reserve"),
     ({"hbm_reserve": -0.1}, "hbm_reserve"), ({"hbm_reserve": float("nan")}, "hbm_reserve")],
)  # fmt: skip
def test_what_cannot_be_is_refused(change: dict[str, Any], place: str) -> None:
    asked: dict[str, Any] = {"batch_per_gpu": 114} | change
    with pytest.raises(InputError) as caught:
        Workload(**asked)
    assert places(caught) == [place]


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Workload(phase="x", context=0, batch=1, batch_per_gpu=0, kv_dtype="x", hbm_reserve=2)
    assert sorted(places(caught)) == [
        "batch, batch_per_gpu", "batch_per_gpu", "context", "hbm_reserve", "kv_dtype", "phase",
    ]  # fmt: skip


def test_an_unknown_word_lists_the_known_and_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'distinct'"):
        Workload(batch=1, expert_read="distincts")


@given(st.integers(1, 10_000), st.integers(1, 300))
def test_a_total_batch_is_dealt_equally_up_to_one(batch: int, ranks: int) -> None:
    dealt = Workload(batch=batch).batch_of(ranks)
    assert dealt.sum() == batch
    assert len(dealt) == ranks
    assert dealt.max() - dealt.min() <= 1


def test_a_batch_per_gpu_is_the_same_at_every_width() -> None:
    work = Workload(batch_per_gpu=114)
    assert work.batch_of(3).tolist() == [114, 114, 114]
    assert work.batch_policy == "114 sequences per GPU"
    assert Workload(batch=7).batch_policy == "7 sequences over the group"


# --- Layout ---


@pytest.mark.parametrize(
    ("layout", "place"),
    [({"ep": 0}, "ep"), ({"ep": -1}, "ep"), ({"ep": 1.0}, "ep"), ({"ep": True}, "ep"), ({"ep": 1, "pp": 0}, "pp"),
     ({"ep": 1, "pp": "2"}, "pp")],
)  # fmt: skip
def test_layouts_that_are_none(layout: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        Layout(**layout)
    assert places(caught) == [place]


# --- PlacementPlan ---


# --- phases ---


@pytest.mark.parametrize(
    ("change", "place"),
    [({"cached": 8}, "cached"), ({"phase": "prefill", "cached": 4096}, "cached"), ({"phase": "chunked"}, "chunk"),
     ({"chunk": 8}, "chunk"), ({"phase": "chunked", "chunk": 5000}, "chunk"), ({"draft": 1}, "acceptance"),
     ({"acceptance": 0.5}, "acceptance"), ({"draft": 1, "acceptance": 1.5}, "acceptance"), ({"prompt": 8}, "prompt"),
     ({"phase": "prefill", "draft": 1, "acceptance": 0.5}, "draft"), ({"drafter": "eagle"}, "drafter"),
     ({"draft": -1}, "draft")],
)  # fmt: skip
def test_what_goes_with_another_phase_is_refused(change: dict[str, Any], place: str) -> None:
    asked: dict[str, Any] = {"batch_per_gpu": 114} | change
    with pytest.raises(InputError) as caught:
        Workload(**asked)
    assert places(caught) == [place]


def test_slices_are_the_new_tokens_of_a_replica() -> None:
    assert [one.tokens for one in Workload(batch=1).slices(8)] == [8]
    assert [one.tokens for one in Workload(batch=1, draft=3, acceptance=0.5).slices(8)] == [32]
    assert [one.tokens for one in Workload(phase="prefill", context=100, cached=60, batch=1).slices(8)] == [320]
    assert [one.tokens for one in Workload(phase="chunked", chunk=512, batch=1).slices(8)] == [8, 512]
    assert Workload(batch=1, draft=2, acceptance=0.5).emitted == 1.75
