"""Is every point of a sweep the step it stands for?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import serving
import topo
from serving import Layout, Workload, pareto_front, step, sweep
from topo import InputError


@cache
def routes(design: str, domains: int) -> topo.Routes:
    return topo.route(topo.load(design, domains))


#: Model, design, domains, workload, what is swept.
SWEPT: list[tuple[str, str, int, Workload, dict[str, Any]]] = [
    ("deepseek-v3", "gb200-nvl72", 2, Workload(batch_per_gpu=1),
     {"ep": [64, 72, 100, 144], "tp": [1, 2], "pp": [1, 2], "batch": [1, 3, 64, 4096], "context": [500, 131072]}),
    ("deepseek-v3", "gb200-nvl72", 2, Workload(batch=1, draft=1, acceptance=0.85),
     {"ep": [36, 144], "batch": [1, 100, 288, 5000]}),
    ("mixtral-8x7b", "hgx-h100-8", 2, Workload(batch_per_gpu=1, copies="per_gpu", expert_read="all"),
     {"ep": [4, 8, 16], "tp": [1, 4], "batch": [1, 17]}),
    ("mixtral-8x7b", "hgx-h100-8", 2, Workload(batch_per_gpu=1, copies="per_domain"),
     {"ep": [8, 16], "batch": [2, 40]}),
    ("qwen3-235b-a22b", "hgx-h100-8", 2, Workload("prefill", cached=100, batch=1),
     {"ep": [8, 16], "pp": [1, 2], "batch": [1, 9, 16], "context": [101, 8000]}),
    ("gpt-oss-120b", "mi300x-8", 1, Workload("chunked", chunk=512, prompt=4096, batch_per_gpu=1),
     {"ep": [8], "tp": [1, 8], "batch": [1, 64], "context": [2048, 60000]}),
    ("llama-3.1-70b", "hgx-h100-8", 2, Workload(batch=1), {"ep": [1], "tp": [1, 8], "pp": [1, 3], "batch": [1, 63]}),
]  # fmt: skip


#: A rule of overlap for each row; `lower` and `serial` are in every point.
RULED = [(*row, ("two_batch", "lecture", "two_batch", "scaling_book")[i % 4]) for i, row in enumerate(SWEPT)]


@pytest.mark.parametrize(("model", "design", "domains", "work", "axes", "time"), RULED)
def test_every_point_is_a_step(
    model: str, design: str, domains: int, work: Workload, axes: dict[str, Any], time: str
) -> None:
    """Points drawn at random."""
    found, loaded = routes(design, domains), serving.load_model(model)
    result = sweep(found.fabric, loaded, work, time=time, **axes)
    there = np.flatnonzero(result.gpus.ravel())
    for i in np.random.default_rng(8).choice(there, min(len(there), 9), replace=False):
        point = result.point(int(i))
        counted = "batch_per_gpu" if work.batch_per_gpu else "batch"
        asked: dict[str, int] = {counted: point["batch"], "context": point["context"]}
        one = step(found.fabric, loaded, replace(work, **asked), routing=found, time=time,
                   layout=Layout(point["ep"], tp=point["tp"], pp=point["pp"]))  # fmt: skip
        for name in ("lower", "serial", "seconds", "tokens_per_second", "tokens_per_user", "memory_per_gpu"):
            assert point[name] == pytest.approx(getattr(one, name), rel=1e-9), (name, point)
        assert point["fits"] == one.fits


@pytest.mark.parametrize("row", [0, 1, 4, 5], ids=lambda i: SWEPT[i][0] + " " + SWEPT[i][3].phase)
def test_every_point_is_a_step_of_an_engine(row: int) -> None:
    name, design, domains, work, axes = SWEPT[row]
    found, loaded = routes(design, domains), serving.load_model(name)
    result = sweep(found.fabric, loaded, work, profile="vllm-blackwell", **axes)
    assert result.time == "engine"
    assert any("vllm-blackwell" in line for line in result.assumptions)
    there = np.flatnonzero(result.gpus.ravel())
    for i in np.random.default_rng(9).choice(there, min(len(there), 5), replace=False):
        point = result.point(int(i))
        counted = "batch_per_gpu" if work.batch_per_gpu else "batch"
        asked: dict[str, int] = {counted: point["batch"], "context": point["context"]}
        layout = Layout(point["ep"], tp=point["tp"], pp=point["pp"])
        one = step(found.fabric, loaded, replace(work, **asked), routing=found, layout=layout, profile="vllm-blackwell")
        assert point["seconds"] == pytest.approx(one.times["engine"], rel=1e-9)
        assert point["tokens_per_second"] == pytest.approx(one.tokens_per_second, rel=1e-9)


def test_software_of_collectives_is_refused() -> None:
    with pytest.raises(InputError, match=r"nccl-hopper.*ideal wires"):
        small(profile="nccl-hopper")
    with pytest.raises(InputError, match="time = 'engine'"):
        small(time="engine")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("", [], Workload(batch=1)), "models = 'empty': holds none"), (("", "x", Workload(batch=1)), "serving.Model"),
        (("", None, 3), "serving.Workload"),
    ],
)  # fmt: skip
def test_other_records_are_refused(given: tuple[Any, ...], said: str) -> None:
    _, model, work = given
    with pytest.raises(InputError, match=said):
        sweep(routes("hgx-h100-8", 1).fabric, model, work, ep=8)
    for time, profile in (([1], "ideal"), ("serial", 3.5)):
        with pytest.raises(InputError):
            small(time=time, profile=profile)


def small(**changes: Any) -> serving.Sweep:
    asked: dict[str, Any] = {"ep": [4, 8], "batch": [1, 64]} | changes
    work = Workload(batch_per_gpu=1)
    return sweep(routes("hgx-h100-8", 1).fabric, serving.load_model("mixtral-8x7b"), work, **asked)


def test_the_front_is_what_nothing_beats() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 12, (2, 60)).astype(float)
    found = pareto_front(a, b)
    beaten = [((a >= a[i]) & (b >= b[i]) & ((a > a[i]) | (b > b[i]))).any() for i in range(60)]
    assert {(a[i], b[i]) for i in found} == {(a[i], b[i]) for i in range(60) if not beaten[i]}
    assert (np.diff(a[found]) < 0).all()
    assert (np.diff(b[found]) > 0).all()


def test_what_cannot_exist_is_counted_and_has_no_time() -> None:
    found = small(ep=[8, 16], tp=[1, 5])
    assert (found.gpus > 0).sum() == 2
    assert np.isnan(found.serial[..., 1:, :, :, :, :]).all()
    assert sum(found.refused.values()) == 6
    assert any("needs 16 GPUs and the graph has 8" in reason for reason in found.refused)


def test_designs_and_types_are_axes() -> None:
    model = serving.load_model("mixtral-8x7b")
    graphs = {"one": topo.load("hgx-h100-8"), "other": topo.load("hgx-b200-8")}
    works = {kv: Workload(batch_per_gpu=1, kv_dtype=kv) for kv in ("bf16", "fp8")}
    models = [model, replace(model, name="narrow", weight_dtype="fp8")]
    found = sweep(graphs, models, works, ep=8, batch=32, context=[4096, 65536])
    assert found.axes["model"] == ("mixtral-8x7b", "narrow")
    assert found.serial.shape == (2, 2, 2, 1, 1, 1, 1, 2)
    assert {found.point(int(i))["design"] for i in found.front("other")} == {"other"}
    with pytest.raises(InputError, match="was not swept"):
        found.front("third")
    one = step(graphs["other"], models[1], Workload(batch_per_gpu=32, kv_dtype="fp8", context=65536), layout=Layout(8))
    assert found.serial[1, 1, 1, 0, 0, 0, 0, 1] == pytest.approx(one.serial)


def test_bad_axes_are_named_together() -> None:
    with pytest.raises(InputError) as error:
        small(ep=[0], batch=[1.5])
    assert {fault.place for fault in error.value.faults} == {"ep", "batch"}
    with pytest.raises(InputError, match="1 to 20,000,000"):
        small(batch=range(1, 100_001), context=range(1, 10_001))
    with pytest.raises(InputError, match="time"):
        small(time="mean")


def test_a_sweep_is_plain_json_and_says_the_answer() -> None:
    found = small()
    told = found.to_dict()
    assert told["points"] == 4
    assert [row["batch"] for row in told["front"]] == [1, 64]
    assert repr(found).startswith("Sweep(4 points, 4 fit, 2 on the front; most ")


def test_guesses_by_a_layer_no_model_has_are_refused_as_in_a_step() -> None:
    model, graph = serving.load_model("mixtral-8x7b"), topo.load("hgx-h100-8")
    work = Workload(batch_per_gpu=4, draft=1, acceptance=0.8)
    for verb in (lambda: step(graph, model, work, layout=Layout(8)), lambda: sweep(graph, model, work, ep=[8])):
        with pytest.raises(InputError, match="no multi-token-prediction layer"):
            verb()
    assert sweep(graph, model, replace(work, drafter="free"), ep=[8]).fits.all()


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), (1.0, 2.0), ("x", "y"), (None, None), ([[1.0]], [[1.0]])])
def test_a_front_is_of_two_rows_alike(a: Any, b: Any) -> None:
    with pytest.raises(InputError, match="two rows of numbers"):
        pareto_front(a, b)


def test_a_point_without_a_number_is_on_no_front_and_hides_none() -> None:
    nan = float("nan")
    assert pareto_front([4, 3, 2, nan], [nan, 1, 5, 9]).tolist() == [1, 2]


def test_what_names_no_point_time_or_design_is_refused() -> None:
    graph, model, work = topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), Workload(batch_per_gpu=4)
    found = sweep(graph, model, work, ep=[4, 8])
    for i in (-1, 2, 1.5, True, None, "x"):
        with pytest.raises(InputError, match="a point's number, 0 to 1"):
            found.point(i)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="was not swept"):
        found.front(3)  # type: ignore[arg-type]
    for time in (0, [], ""):
        for verb in (
            lambda time: sweep(graph, model, work, ep=8, time=time),
            lambda time: step(graph, model, work, time=time),
        ):
            with pytest.raises(InputError, match=r"time = .*is not known"):
                verb(time)


def test_lists_of_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        sweep(topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), Workload(batch=1), ep=[[4], [8, 2]])  # type: ignore[arg-type]
