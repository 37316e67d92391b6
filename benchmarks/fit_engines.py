"""Which constants fit the measured times per token, and how far off are they on deployments they never saw?

    python benchmarks/fit_engines.py            # cross-validation and table
    python benchmarks/fit_engines.py --save     # fit all rows and write serving/profiles/*.toml
    python benchmarks/fit_engines.py --worst    # also every row that is more than 30 % off

Robust least squares in log time, twice: constants common to all engines are drawn to the centres below, those of one
engine on one generation of chips to the common ones. Whole configurations (system, model, engine, precision, GPUs,
data-parallel attention, expert parallelism) are left out of both fits, never single rows. Nothing is drawn at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

from collectives import Profile, write_profile
from serving import ENGINE, engine_work, step
from serving._engine import ENGINES
from serving._measured import Served, read_served
from serving.laws import mean_token_seconds
from topo import Routes, load, route

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests" / "data" / "measured_e2e.csv"
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Residual in log time beyond which a row counts linearly.
ROBUST = 0.1
#: Weight of a centre against a row's residual: of the guesses below, and of the common constants.
DRAW, DRAW_ENGINE = 0.4, 1.0
#: With fewer configurations a profile's own errors say little of others: its band is at least that of all rows.
FEW = 5
#: Constant -> guess, and how far (in log) it may well lie from it.
CENTRES = {
    "launch.layer": (25e-6, 0.7), "launch.experts": (25e-6, 0.7), "launch.round": (6e-6, 0.7),
    "read.dense": (0.8, 0.2), "read.experts": (0.7, 0.3),
    "compute.dense": (0.6, 0.4), "compute.experts": (0.5, 0.5), "wire.efficiency": (0.6, 0.4),
}  # fmt: skip
NAMES = tuple(ENGINE)
GUESS, WIDTH = (np.array(column) for column in zip(*(CENTRES[name] for name in NAMES), strict=True))
LAUNCH = np.array([ENGINE[name].unit == "seconds" for name in NAMES])
LOW, HIGH = np.log(np.where(LAUNCH, 1e-7, 0.02)), np.log(np.where(LAUNCH, 1e-3, 1.0))


@dataclass(frozen=True)
class Spec:
    """A profile to be fitted: texts of the engines' names, the longest that fits counting, and chips."""

    name: str
    engines: tuple[str, ...]
    chips: tuple[str, ...]


HOPPER, BLACKWELL = ("H100-80GB", "H200-141GB"), ("B200-180GB", "B300")
#: One release is a profile of its own: all its rows are half as fast again as those of the release before on the same
#: GPUs, for which a row gives no reason (multi-token prediction, probably).
LATER = "trtllm 1.2.0rc6.post3"
SPECS = (
    Spec("sglang-blackwell", ("sglang",), BLACKWELL), Spec("sglang-hopper", ("sglang",), HOPPER),
    Spec("trtllm-blackwell", ("trtllm",), BLACKWELL), Spec("trtllm-hopper", ("trtllm",), HOPPER),
    Spec("trtllm-rc6-post3-blackwell", (LATER,), BLACKWELL),
    Spec("vllm-blackwell", ("vllm",), BLACKWELL), Spec("vllm-hopper", ("vllm",), HOPPER),
)  # fmt: skip


class Problem:
    """Work of every row and its measured time; fits of some of them."""

    def __init__(self, rows: Sequence[Served]) -> None:
        self.rows = rows
        routes = {system: route(load(system)) for system in {row.system for row in rows}}
        self.chip = [routes[row.system].fabric.chip[0] for row in rows]
        self.work = np.array([work_of(row, routes[row.system]) for row in rows])
        self.log_seconds = np.log([row.seconds for row in rows])
        self.configuration = np.array([str(row.configuration) for row in rows])
        self.spec = np.array([self._spec(i) for i in range(len(rows))])

    def _spec(self, i: int) -> str:
        fits = [(len(text), spec.name) for spec in SPECS if self.chip[i] in spec.chips
                for text in spec.engines if self.rows[i].engine.startswith(text)]  # fmt: skip
        return max(fits)[1]

    def log_predicted(self, x: Floats) -> Floats:
        return np.log(self.work @ np.where(LAUNCH, np.exp(x), np.exp(-x)))

    def fit(self, keep: Mask, centre: Floats, draw: float) -> OptimizeResult:
        def residuals(x: Floats) -> Floats:
            off = (self.log_predicted(x) - self.log_seconds)[keep] / ROBUST
            soft = np.sign(off) * np.sqrt(2 * (np.sqrt(1 + off**2) - 1))
            return np.concatenate([soft, (x - centre) / WIDTH * draw])

        start = np.clip(centre, LOW + 1e-6, HIGH - 1e-6)
        return least_squares(residuals, start, bounds=(LOW, HIGH), max_nfev=200, xtol=1e-12, ftol=1e-12)

    def common(self, keep: Mask) -> Floats:
        """Return the logarithms of the constants common to all engines."""
        found: Floats = self.fit(keep, np.log(GUESS), DRAW).x
        return found

    def off(self, x: Floats) -> Floats:
        """Return predicted / measured - 1."""
        found: Floats = np.exp(self.log_predicted(x) - self.log_seconds) - 1
        return found

    def left_out(self, groups: NDArray[np.str_]) -> Floats:
        """Return the error of every row by constants that saw no row of its group."""
        off = np.zeros(len(self.rows))
        for group in np.unique(groups):
            left = groups == group
            common = self.common(~left)
            for name in np.unique(self.spec[left]):
                own = self.spec == name
                off[left & own] = self.off(self.fit(own & ~left, common, DRAW_ENGINE).x)[left & own]
        return off


def work_of(row: Served, routes: Routes, *, prefill: bool = True) -> list[float]:
    """Return what each constant multiplies or divides in a row's time per token."""
    found = []
    for workload in (row.decode, row.prefill):
        parts = step(routes.fabric, row.model, workload, layout=row.layout, routing=routes).parts
        found.append(np.array(list(engine_work(parts, row.model, row.layout).values())))
    return list(mean_token_seconds(found[0], found[1], row.per_replica * prefill, float(row.output)))


def untold(served: Sequence[Served], x: Floats) -> Floats:
    """Return the error on rows that were never fitted: their GPUs taken as one expert-parallel group that decodes."""
    rows = [row for row in served if not row.told]
    routes = {system: route(load(system)) for system in {row.system for row in rows}}
    work = [work_of(row, routes[row.system], prefill=False) for row in rows]
    seconds: Floats = np.array(work) @ np.where(LAUNCH, np.exp(x), np.exp(-x))
    return seconds / np.array([row.seconds for row in rows]) - 1


def summary(off: Floats) -> str:
    size = np.abs(off)
    return f"{len(off):4d} rows  median {np.median(size):6.1%}  p90 {np.quantile(size, 0.9):6.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--worst", action="store_true")
    args = parser.parse_args()
    served = read_served(ROWS)
    told = [row for row in served if row.told]
    problem = Problem(told)
    everything = np.ones(len(told), bool)
    common = problem.common(everything)
    off = problem.left_out(problem.configuration)
    inside = np.zeros(len(told))
    for spec in SPECS:
        own = problem.spec == spec.name
        best = problem.fit(own, common, DRAW_ENGINE)
        inside[own] = problem.off(best.x)[own]
        print(f"{spec.name:28s} in {summary(inside[own])} | left out {summary(off[own])}")
        print("   ", {name: float(f"{value:.3g}") for name, value in zip(NAMES, np.exp(best.x), strict=True)})
        if args.save:
            save(problem, spec, best, off)
    print(f"{'all':28s} in {summary(inside)} | left out {summary(off)}")
    wider = np.array([str(row.configuration[:4]) for row in told])
    print("left out with every layout of its system, model, engine, precision:", summary(problem.left_out(wider)))
    print("by the constants common to the other engines and generations:", summary(problem.left_out(problem.spec)))
    generation = np.array([name.rpartition("-")[2] for name in problem.spec])
    print("by the constants of the other generation:", summary(problem.left_out(generation)))
    print("layout not told, decode alone by the common constants:", summary(untold(served, common)))
    if args.worst:
        for i in np.argsort(-np.abs(off)):
            row = told[i]
            if abs(off[i]) > 0.3:
                lengths = f"{row.prompt}+{row.output} x {row.sequences}"
                print(f"{off[i]:+.0%}", row.id, *row.configuration, row.engine, lengths, f"{row.seconds * 1e3:.2f} ms")


def save(problem: Problem, spec: Spec, best: OptimizeResult, off: Floats) -> None:
    """Write a profile; a standard error is that of the logarithm, centres and their draw included."""
    spread = np.sqrt(np.diag(np.linalg.pinv(best.jac.T @ best.jac)))
    own = problem.spec == spec.name
    count = len(np.unique(problem.configuration[own]))
    bands = [[float(np.quantile(np.abs(each), part)) for part in (0.5, 0.9)] for each in (off[own], off)]
    median, ninth = bands[0] if count >= FEW else map(max, *bands)
    source = (
        f"{own.sum()} rows of {count} configurations, tests/data/measured_e2e.csv: "
        "ai-dynamo/aiconfigurator@095f58a systems/silicon_sample.csv"
    )
    profile = Profile(
        name=spec.name, version=1, law="engine", source=source, fitted=date.today(), libraries=spec.engines,
        chips=tuple(sorted({problem.chip[i] for i in np.flatnonzero(own)})),
        band=(round(median, 3), round(ninth, 3)),
        constants=dict(zip(NAMES, np.exp(best.x).tolist(), strict=True)),
        errors=dict(zip(NAMES, spread.tolist(), strict=True)),
    )  # fmt: skip
    write_profile(profile, ROOT / "serving" / "profiles" / f"{spec.name}.toml", ENGINES)


if __name__ == "__main__":
    main()
