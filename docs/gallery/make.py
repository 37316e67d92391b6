"""Draw the gallery anew: python docs/gallery/make.py [FOLDER].

DeepSeek-V3 decodes with 114 sequences per GPU at 4096 tokens of context; a step may take 20 ms.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rackbound import collectives, figures, placement, serving, topo
from rackbound._lecture_case import Case
from rackbound._lecture_figures import lecture_figures

BUDGET = 20e-3
MODEL = "deepseek-v3"
DESIGNS = ("hgx-h100-8", "hgx-b200-8", "mi300x-8", "gb200-nvl72", "gb300-nvl72")
WIDTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 73, 80, 88, 96, 104, 112, 120, 128, 136, 144)
#: Design -> numbers of domains whose layouts are swept.
SWEPT = {"gb200-nvl72": (1, 2), "hgx-h200-8": (4, 16), "mi355x-8": (2, 8)}

#: File -> shape, its parameters, and the collective whose loads colour the links.
SHAPES: dict[str, tuple[str, dict[str, Any], str]] = {
    "ring": ("ring", {"n": 12}, ""),
    "torus-2d": ("torus", {"dims": (4, 8)}, ""),
    "torus-twisted": ("torus", {"dims": (4, 4, 8), "twist": {(0, 2): 4, (1, 2): 4}}, ""),
    "torus-loaded": ("torus", {"dims": (4, 4, 8)}, "all_to_all"),
    "torus-v5p": ("torus", {"dims": (16, 16, 24)}, ""),
    "hypercube": ("hypercube", {"dim": 5}, ""),
    "cube-mesh": ("hybrid_cube_mesh", {"bandwidth": "25 GB/s", "pcie": "16 GB/s"}, ""),
    "two-level": ("two_level", {"bandwidth": "28 GB/s"}, ""),
    "fat-tree": ("fat_tree", {"k": 4}, ""),
    "planes": ("multi_plane_fat_tree", {"planes": 4, "k": 4}, ""),
    "hyperx": ("hyperx", {"dims": (4, 4), "hosts": 2}, "all_to_all"),
    "dragonfly": ("dragonfly", {"a": 4, "p": 2, "h": 2}, ""),
    "slim-fly": ("slim_fly", {"q": 5}, ""),
    "random-regular": ("random_regular", {"n": 20, "degree": 4, "hosts": 2}, ""),
}


def main(folder: Path) -> list[Path]:
    """Write every figure into a folder and return the files."""
    model, work = serving.load_model(MODEL), serving.Workload(context=4096, batch_per_gpu=114)
    racks = topo.load("gb200-nvl72", domains=2)
    written = _shapes(folder)
    for name, file in (("gb200-nvl72", "topology-gb200x2"), ("mi300x-8", "topology-mi300x2")):
        graph = topo.load(name, domains=2)
        axes = figures.draw_topology(graph, collectives.cost(graph, "all_to_all", 1e9))
        written += figures.save(axes, folder / file)
    steps = [serving.step(racks, model, work, layout=serving.Layout(ep=width)) for width in WIDTHS]
    axes = figures.draw_step_time(
        WIDTHS, [step.serial for step in steps], [step.lower for step in steps], budget=BUDGET, boundary=72,
        all_to_all=[sum(p.seconds for p in s.parts if p.name in ("dispatch", "combine")) for s in steps],
        fits=[step.fits for step in steps],
    )  # fmt: skip
    written += figures.save(axes, folder / "step-time")
    axes = figures.draw_step(steps[-1], heading="deepseek-v3 on 2 x 72 GPUs")
    written += figures.save(axes, folder / "step", ["png"])
    graphs = {f"{name} x {n}": topo.load(name, n) for name, counts in SWEPT.items() for n in counts}
    swept = serving.sweep(graphs, model, work, ep=(8, 16, 32, 64, 72, 144), tp=(1, 2, 4, 8), pp=(1, 2),
                          batch=[round(2 ** (i / 4)) for i in range(41)])  # fmt: skip
    written += figures.save(figures.draw_pareto(swept, heading=MODEL), folder / "pareto", ["png"])
    bounds = {
        name: placement.expert_layer_bound(topo.load(name, domains=2), model, work, step_budget=BUDGET)
        for name in DESIGNS
    }
    axes = figures.draw_bounds(DESIGNS, list(bounds.values()), model_experts=model.n_experts, model_name=MODEL)
    written += figures.save(axes, folder / "bounds")
    written += figures.save(figures.draw_width_curve(bounds["gb200-nvl72"], boundary=72), folder / "width-curve")
    grown = json.loads((Path(__file__).parent / "growth.json").read_text(encoding="utf-8"))
    axes = figures.draw_growth(grown["gpus"], grown["all links"], grown["one link failed"])
    written += figures.save(axes, folder / "growth")
    written += figures.save(figures.draw_balance(_balance(), heading="2 x 72 GPUs"), folder / "balance", ["png"])
    for name, axes in lecture_figures(Case("gb200-nvl72", model, work)).items():
        written += figures.save(axes, folder / name, ["png"])
    return written


def _balance() -> placement.BalanceCurve:
    """Place 256 experts and 32 copies, log-normal loads, half of an expert's tokens from a rack of its own."""
    rng = np.random.default_rng(9)
    load, home = np.exp(0.7 * rng.standard_normal(256)), rng.integers(0, 2, 256) == np.arange(2)[:, None]
    gpus = placement.Gpus(np.full(144, 2), domain=np.repeat([0, 1], 72))
    balances = (1.1, 1.15, 1.2, 1.3, 1.5, 2.0)
    return placement.balance_curve(load * (0.25 + 0.5 * home), gpus, replicas=32, balances=balances, work=500)


def _shapes(folder: Path) -> list[Path]:
    written = []
    for file, (shape, parameters, kind) in SHAPES.items():
        graph = topo.build(shape, **parameters)
        cost = collectives.cost(graph, kind, 1e9) if kind else None
        written += figures.save(figures.draw_topology(graph, cost), folder / f"shape-{file}", ["png"])
    return written


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
