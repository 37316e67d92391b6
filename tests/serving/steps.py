"""Steps that several tests ask for, on graphs that are built once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import serving
import topo
from serving import Part, PlacementPlan, Step, Workload

#: Both latencies off, so that only bandwidth counts.
STILL = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
WORK = Workload(context=4096, batch_per_gpu=114)
SMALL = Workload(context=1024, batch_per_gpu=16)


@cache
def routes(design: str = "gb200-nvl72", domains: int = 1, still: bool = True) -> topo.Routes:
    return topo.route(topo.load(design, domains, STILL if still else None))


def step(
    model: str | serving.Model = "deepseek-v3", design: str = "gb200-nvl72", domains: int = 1,
    work: Workload = WORK, still: bool = True, **given: Any,
) -> Step:  # fmt: skip
    found = routes(design, domains, still)
    loaded = serving.load_model(model) if isinstance(model, str) else model
    return serving.step(found.fabric, loaded, work, routing=found, **given)


def parts(result: Step) -> dict[str, Part]:
    return {part.name: part for part in result.parts}


def plan_of(rank: list[int]) -> PlacementPlan:
    model = serving.load_model("mixtral-8x7b")
    n = model.n_moe_layers
    return PlacementPlan(np.tile(np.arange(8), (n, 1)), np.tile(rank, (n, 1)), np.zeros(n, dtype=np.intp), 4, 1)


def mixtral(**given: Any) -> Step:
    return step("mixtral-8x7b", "hgx-h100-8", work=SMALL, **given)
