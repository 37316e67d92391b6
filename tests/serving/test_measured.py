"""Measured times per token: what was run, that none is below the roofline, and how far off the engines are."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import serving
import topo
from collectives import Profile
from serving import Layout, Workload, engine_seconds, engine_work, list_engines, load_engine
from serving._measured import Served, read_served
from serving.laws import mean_token_seconds

DATA = Path(__file__).resolve().parents[1] / "data" / "measured_e2e.csv"


@cache
def rows() -> tuple[Served, ...]:
    return read_served(DATA)


@cache
def routes(system: str, domains: int = 1) -> topo.Routes:
    return topo.route(topo.load(system, domains))


@cache
def step(system: str, model: serving.Model, layout: Layout, workload: Workload) -> serving.Step:
    found = routes(system)
    return serving.step(found.fabric, model, workload, layout=layout, routing=found)


def by_id(name: str) -> Served:
    return next(row for row in rows() if row.id == name)


def test_what_was_run() -> None:
    assert len(rows()) == 203
    assert sum(row.told for row in rows()) == 185
    assert len({row.configuration for row in rows() if row.told}) == 66
    tensor, data, product, dense = (by_id(name) for name in ("E0109", "E0081", "E0251", "E0165"))
    assert (tensor.layout, tensor.sequences, tensor.per_replica) == (Layout(8, tp=8), 64, 64)
    assert (data.layout, data.sequences, data.per_replica) == (Layout(8), 256, 32)  # 32 on each of 8 replicas
    assert (product.layout, product.sequences, product.per_replica) == (Layout(4), 8, 2)  # "ep=16" is ep 4 x dp 4
    assert dense.layout == Layout(1, tp=4)
    assert tensor.decode.context == 1024 + 512
    assert (data.prefill.phase, data.prefill.batch) == ("prefill", 8)
    assert by_id("E0165").model.dtype_of("attention") == "nvfp4"
    assert by_id("E0081").model.dtype_of("attention") == "bf16"
    assert by_id("E0204").model.dtype_of("expert") == "mxfp4"


def test_one_deployment_under_two_names_is_one() -> None:
    # DeepSeek-V3 and R1 have one shape, and two rows are one measurement.
    first, second = by_id("E0304"), by_id("E0320")
    assert first.configuration == second.configuration
    assert first.seconds == second.seconds


def nearest(row: Served) -> Profile:
    """Return the engine for a row's chip whose name says most of the row's engine."""
    chip, known = routes(row.system).fabric.chip[0], [load_engine(name) for name in list_engines()]
    near = [one for one in known if chip in one.chips and row.engine.startswith(one.libraries)]
    return max(near, key=lambda one: max(map(len, one.libraries)))


def test_the_roofline_is_below_every_time_per_token_and_engines_are_as_near_as_they_say() -> None:
    too_fast, off = [], []
    for row in rows():
        decode, prefill = (step(row.system, row.model, row.layout, each) for each in (row.decode, row.prefill))
        too_fast += [row.id] * (decode.lower >= row.seconds)
        if row.told:
            engine = nearest(row).constants
            seconds = (engine_seconds(engine, engine_work(one.parts, row.model, row.layout))
                       for one in (decode, prefill))  # fmt: skip
            off.append(abs(mean_token_seconds(*seconds, row.per_replica, row.output) / row.seconds - 1))
    assert too_fast == []
    assert len(off) == 185
    assert np.median(off) <= 0.12
    assert np.quantile(off, 0.9) <= 0.35


@cache
def published() -> dict[str, dict[str, str]]:
    with open(DATA, encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


#: Copies of a token are merged per host, as DeepEP does: with one for each expert (6,680 tokens/s) E0005 could not be.
PROMPTS = Workload(phase="prefill", context=4096, batch_per_gpu=4, copies="per_domain")
#: Row -> domains, layout, workload that favours the roofline where a row does not tell, and the part of its tokens
#: that were computed. E0001 counts cached tokens; E0011 names 12 nodes, of which prefill has four (E0013).
PRODUCTION = {
    "E0001": (4, Layout(32), PROMPTS, 1 - 0.563),
    "E0005": (4, Layout(32), PROMPTS, 1.0),
    "E0006": (16, Layout(128), Workload(context=4096, batch_per_gpu=128), 1.0),
    "E0011": (4, Layout(32), replace(PROMPTS, context=2000), 1.0),
    "E0013": (4, Layout(32), PROMPTS, 1.0),
    "E0014": (1, Layout(48), Workload(context=2000, batch_per_gpu=768), 1.0),
    "E0017": (1, Layout(48), Workload(context=2000, batch_per_gpu=768), 1.0),
    "E0018": (1, Layout(8), PROMPTS, 1.0),
}


@pytest.mark.parametrize("name", PRODUCTION)
def test_throughput_of_deepseek_in_production_lies_under_the_roofline(name: str) -> None:
    domains, layout, work, computed = PRODUCTION[name]
    row, found = published()[name], routes(published()[name]["system"], domains)
    per = {"tokens_per_s_per_gpu": 1, "tokens_per_s_per_node": 8}[row["metric"]]
    model = serving.load_model("deepseek-v3")
    most = serving.step(found.fabric, model, work, layout=layout, routing=found, time="lower")
    rate = most.tokens_per_second / layout.gpus
    assert float(row["value"]) * computed / per < rate < 20 * float(row["value"]) / per


def test_speed_of_deepseek_in_production_lies_under_the_roofline() -> None:
    row, found = published()["E0003"], routes("HGX H800-8", 18)
    work, model = Workload(context=4989, batch_per_gpu=1), serving.load_model("deepseek-v3")
    most = serving.step(found.fabric, model, work, layout=Layout(144), routing=found, time="lower").tokens_per_user
    assert float(row["value"].partition("-")[2]) < most
