"""Which constants fit the measured collectives, and how far off are they on curves they never saw?

    python benchmarks/fit_profiles.py            # cross-validation and table
    python benchmarks/fit_profiles.py --save     # fit all rows and write collectives/profiles/*.toml

Robust least squares in log time. Every constant is positive and fitted as its logarithm, drawn weakly to a centre that
is the same for all generations: where rows do not tell, the centre stays. Whole curves (system, collective, ranks,
library, dtype) are left out, never single rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from collectives import CONSTANTS, Profile, write_profile
from collectives._matching import Matched, matched
from collectives._measured import read_measurements
from collectives._predict import LAWS, Features, stacked
from collectives._tuning import tuned_seconds
from collectives._validate import group_names

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests" / "data" / "measured.csv"
Floats = NDArray[np.float64]

#: Residual in log time beyond which a row counts linearly, and weight of a centre against a row's residual.
ROBUST, DRAW = 0.08, 0.6
#: Bulk rows slower than so many times their NIC's time were measured on other machines than the row names, or untuned.
OFF_NIC = 2.0
#: NCCL's latency of LL over a network, each step between domains [s].
NET = 2.7e-6

#: Constant -> centre, and how far (in log) it may well lie from it. Centres are what three generations of NVIDIA's
#: chips have in common, rounded: their efficiencies differ by a few percent, launches and steps by half.
COLLECTIVE = {
    "latency.base": (7e-6, 0.5), "latency.step": (1e-6, 0.2), "latency.ramp": (0.2, 0.5),
    "ll.efficiency": (0.45, 0.5), "ll128.latency": (2.5, 0.4), "ll128.efficiency": (0.85, 0.15),
    "simple.base": (10e-6, 0.5), "simple.step": (8e-6, 0.5),
    "simple.efficiency": (0.83, 0.1), "simple.own": (0.8, 0.3),
    "simple.reduce_efficiency": (0.85, 0.1), "simple.reduce_own": (0.37, 0.3), "simple.pipeline": (0.1e-6, 0.7),
    "nvls.base": (10e-6, 0.5), "nvls.pipeline": (1.4e-6, 0.4), "nvls.efficiency": (0.65, 0.2),
    "exchange.base": (9e-6, 0.5), "exchange.rank": (0.08e-6, 0.5), "exchange.low_efficiency": (0.04, 1.0),
    "exchange.bulk_base": (14e-6, 0.3), "exchange.efficiency": (0.88, 0.1), "exchange.own": (0.5, 0.6),
    "exchange.pipeline": (1.4e-6, 0.4), "exchange.norm": (2.2, 0.3), "exchange.rounds": (8e-6, 0.7),
    "scale_out.step": (8e-6, 0.5), "scale_out.efficiency": (0.93, 0.1), "scale_out.overlap": (6.0, 0.3),
}  # fmt: skip
EXPERT = {
    "latency.base": (12e-6, 0.7), "latency.rank": (1.5e-6, 0.7), "latency.hosts": (2e-6, 0.3),
    "latency.combine": (1.0, 0.3), "latency.combine_rank": (1.4, 0.4),
    "latency.scale_out": (5e-6, 0.3), "latency.norm": (1.2, 0.15),
    "wire.efficiency": (0.7, 0.5), "wire.combine": (1.05, 0.2), "wire.crowd": (0.04, 0.4),
    "wire.pipeline": (0.3e-6, 1.0),
    "token.seconds": (5e-9, 1.0), "token.combine": (1.5, 0.5), "token.overlap": (2.0, 0.3),
    "scale_out.efficiency": (0.93, 0.1), "scale_out.combine": (0.95, 0.1), "scale_out.overlap": (5.0, 0.3),
    "scale_out.combine_overlap": (1.5, 0.3),
}  # fmt: skip
CENTRES = {"collective": COLLECTIVE, "expert": EXPERT}
#: How much slower a library's way back is than its way out: its own, so drawn to its fit on another generation.
SHARED = ("latency.combine", "latency.combine_rank")


@dataclass(frozen=True)
class Spec:
    """A profile to be fitted: the library's and the chips' names, what is known of it, and its library elsewhere."""

    name: str
    law: str
    libraries: tuple[str, ...]
    chips: tuple[str, ...]
    bandwidth: float
    copies: str = "direct"
    environments: tuple[str, ...] = ()
    launch: float = 0.0
    tight: float = 1.0
    like: str = ""

    def centres(self) -> dict[str, tuple[float, float]]:
        """Return where constants are drawn to; few rows draw harder."""
        found = dict(CENTRES[self.law])
        if self.launch:
            found["latency.base"] = (self.launch, 0.7)
        return {name: (centre, width * self.tight) for name, (centre, width) in found.items()}


AMPERE, HOPPER = ("A100-80GB",), ("H100-80GB", "H200-141GB", "H800-80GB")
BLACKWELL = ("B200-180GB", "B300", "GB200", "GB300")
LOW_LATENCY = ("DeepEP low-latency", "DeepEP v1 low-latency")
SPECS = (
    Spec("nccl-ampere", "collective", ("nccl",), AMPERE, 300e9, environments=("2.18.5 (Azure",)),
    Spec("nccl-hopper", "collective", ("nccl",), HOPPER, 450e9, environments=("2.18.5 (Azure", "2.20.5 (Azure")),
    Spec("nccl-blackwell", "collective", ("nccl",), BLACKWELL, 900e9),
    Spec("rccl-cdna", "collective", ("rccl",), ("MI300X", "MI355X"), 500e9, tight=0.4),
    Spec("mscclpp", "collective", ("mscclpp",), AMPERE + HOPPER, 370e9, tight=0.4),
    Spec("deepep-low-latency-hopper", "expert", LOW_LATENCY, HOPPER, 450e9),
    Spec("deepep-low-latency-blackwell", "expert", LOW_LATENCY, BLACKWELL, 900e9,
         like="deepep-low-latency-hopper"),
    Spec("deepep-low-latency-rdma", "expert", ("first release, pure RDMA",), HOPPER, 450e9, copies="scale-out"),
    Spec("deepep-normal", "expert", ("DeepEP normal", "DeepEP v1 normal"), HOPPER, 450e9, copies="per_domain"),
    Spec("trtllm-one-sided", "expert", ("NVLinkOneSided",), BLACKWELL, 900e9, copies="balanced"),
    Spec("trtllm-two-sided", "expert", ("NVLinkTwoSided",), BLACKWELL, 900e9, copies="balanced"),
    Spec("cann", "expert", ("CANN",), ("Ascend 910C",), 392e9, launch=80e-6, tight=0.4),
)  # fmt: skip


#: A generation, and the one whose constants stand in for it where nothing of it was measured.
PAIRS = (
    ("nccl-hopper", "nccl-ampere"), ("nccl-blackwell", "nccl-hopper"), ("nccl-ampere", "nccl-hopper"),
    ("deepep-low-latency-blackwell", "deepep-low-latency-hopper"),
)  # fmt: skip


def blank(spec: Spec) -> Profile:
    """Return the profile with every constant at its centre."""
    constants = {"latency.environment": 1.0, **{name: centre for name, (centre, _) in spec.centres().items()}}
    return Profile(
        name=spec.name, version=1, law=spec.law, source="centres", libraries=spec.libraries, chips=spec.chips,
        bandwidth=spec.bandwidth, copies=spec.copies, constants={name: constants[name] for name in CONSTANTS[spec.law]},
    )  # fmt: skip


def choose(library: str, law: str, chip: str, bandwidth: float) -> tuple[Profile, str]:
    """Return the blank profile that will be fitted to a row."""
    fits = [spec for spec in SPECS if spec.law == law]
    named = [(max((len(t) for t in s.libraries if t.casefold() in library.casefold()), default=0), s) for s in fits]
    longest = max(length for length, _ in named)
    near = [spec for length, spec in named if length == longest]
    seen = next((spec for spec in near if chip in spec.chips), None)
    if seen is None:  # by the profile of the nearest bandwidth, as a user's machine would be
        return blank(min(near, key=lambda spec: abs(np.log(bandwidth / spec.bandwidth)))), "unseen"
    return blank(seen), ""


def _limits(name: str) -> tuple[float, float]:
    """Return what a constant may be: no wire carries more than its rate, and no norm is less than the sum."""
    last = name.rpartition(".")[2]
    if last in ("norm", "overlap", "combine_overlap"):
        return 1.0, 20.0
    return (1e-12, 1.0) if "efficiency" in last or last.endswith("own") else (1e-12, 100.0)


class Problem:
    """Rows of one profile, and the residuals of a vector of logarithms."""

    def __init__(self, spec: Spec, rows: Sequence[Matched], like: Mapping[str, float] | None = None) -> None:
        self.spec, self.rows = spec, list(rows)
        drawn = spec.centres()
        drawn |= {name: (like[name], drawn[name][1]) for name in SHARED if like}
        self.names = list(drawn)
        centres = [drawn[name] for name in self.names] + [(1.6, 0.3)] * len(spec.environments)
        self.centre = np.log([centre for centre, _ in centres])
        self.width = np.array([width for _, width in centres])
        limits = [_limits(name) for name in self.names] + [(0.3, 5.0)] * len(spec.environments)
        self.low, self.high = np.log(limits).T
        self.features = stacked([row.features for row in rows])
        self.log_seconds = np.log([row.row.seconds for row in rows])
        self.place = np.array([self._environment(row) for row in rows])
        bulk = np.array([row.row.n_bytes >= 16e6 for row in rows])
        self.usable = ~(bulk & (np.exp(self.log_seconds) > OFF_NIC * self.features.out) & (self.features.out > 0))
        self.usable |= self.features.up > self.features.out

    def _environment(self, row: Matched) -> int:
        library = row.row.library.casefold()
        return next((i for i, text in enumerate(self.spec.environments) if text.casefold() in library), -1)

    def log_predicted(self, x: Floats) -> Floats:
        values = np.exp(x)
        factors = np.append(values[len(self.names) :], 1.0)
        constants: dict[str, Any] = dict(zip(self.names, values, strict=False))
        constants["latency.environment"] = factors[self.place]
        return np.log(LAWS[self.spec.law](constants, self.features))

    def fit(self, keep: NDArray[np.bool_], start: Floats | None = None) -> Any:
        used = keep & self.usable

        def residuals(x: Floats) -> Floats:
            off = (self.log_predicted(x) - self.log_seconds)[used] / ROBUST
            soft = np.sign(off) * np.sqrt(2 * (np.sqrt(1 + off**2) - 1))
            return np.concatenate([soft, (x - self.centre) / self.width * DRAW])

        start = self.centre if start is None else start
        return least_squares(
            residuals, np.clip(start, self.low + 1e-6, self.high - 1e-6), bounds=(self.low, self.high), max_nfev=100
        )


def cross_validated(problem: Problem, full: Floats) -> Floats:
    """Return predicted / measured - 1 of every row, its curve left out of the fit."""
    off = np.zeros(len(problem.rows))
    curves = [row.row.curve for row in problem.rows]
    for curve in sorted(set(curves)):
        left = np.array([each == curve for each in curves])
        x = problem.fit(~left, full).x
        off[left] = np.exp(problem.log_predicted(x) - problem.log_seconds)[left] - 1
    return off


def summary(off: Floats) -> str:
    size = np.abs(off)
    return f"{len(off):4d} rows  median {np.median(size):6.1%}  p90 {np.quantile(size, 0.9):6.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", default=str(ROWS))
    parser.add_argument("--only", default="")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--worst", action="store_true")
    args = parser.parse_args()
    rows, _ = read_measurements(args.rows)
    found, _ = matched(rows, choose)
    everything: list[tuple[Matched, float, float, bool]] = []
    fits: dict[str, dict[str, float]] = {}
    for spec in SPECS:
        own = [row for row in found if row.profile.name == spec.name and not row.note]
        if not own or args.only not in spec.name:
            continue
        problem = Problem(spec, own, fits.get(spec.like))
        best = problem.fit(np.ones(len(own), bool))
        fits[spec.name] = dict(zip(problem.names, np.exp(best.x), strict=False))
        inside = np.exp(problem.log_predicted(best.x) - problem.log_seconds) - 1
        off = cross_validated(problem, best.x)
        print(f"{spec.name:30s} in {summary(inside)} | left out {summary(off)}  not used {(~problem.usable).sum()}")
        everything += list(zip(own, inside.tolist(), off.tolist(), problem.usable.tolist(), strict=True))
        if args.curves:
            report(problem, best.x, off, inside)
        if args.save:
            save(problem, best, off)
        never_fitted([row for row in found if row.profile.name == spec.name and row.note], spec, best.x)
    table(everything)
    unseen([row for row in found if not row.note])
    if args.worst:
        for row, _, off, _ in sorted(everything, key=lambda each: -abs(each[2])):
            if abs(off) > 0.15:
                print(f"{off:+.0%}", *row.row.curve, f"{row.row.n_bytes:.0f}", row.row.params.get("tokens", ""))


def report(problem: Problem, x: Floats, off: Floats, inside: Floats) -> None:
    names = [*problem.names, *problem.spec.environments]
    print("   ", {name: float(f"{value:.3g}") for name, value in zip(names, np.exp(x), strict=True)})
    curves: dict[Any, list[int]] = {}
    for i, row in enumerate(problem.rows):
        curves.setdefault(row.row.curve, []).append(i)
    for curve, places in curves.items():
        print("   ", *curve[:3], curve[3][:24], curve[4])
        print("        out", *(f"{off[i]:+.0%}" for i in places), "   in", *(f"{inside[i]:+.0%}" for i in places))


def save(problem: Problem, best: Any, off: Floats) -> None:
    spec = problem.spec
    covariance = np.linalg.pinv(best.jac.T @ best.jac)
    spread = np.sqrt(np.diag(covariance))
    told = spread < problem.width * 0.5 / DRAW
    values = np.exp(best.x)
    size = np.abs(off[problem.usable])
    made = blank(spec)
    names = problem.names
    constants = {**made.constants, **{name: float(values[i]) for i, name in enumerate(names)}}
    errors = {name: float(spread[i]) for i, name in enumerate(names) if told[i]}
    curves = len({row.row.curve for row in problem.rows})
    source = f"{len(problem.rows)} rows of {curves} curves, tests/data/measured.csv (each row names its source)"
    factors = {text: float(f"{values[len(names) + i]:.4g}") for i, text in enumerate(spec.environments)}
    profile = replace(
        made, source=source, fitted=date.today(), constants=constants, errors=errors, environments=factors,
        band=(round(float(np.median(size)), 3), round(float(np.quantile(size, 0.9)), 3)),
    )  # fmt: skip
    write_profile(profile, ROOT / "collectives" / "profiles" / f"{spec.name}.toml")


def table(rows: Sequence[tuple[Matched, float, float, bool]]) -> None:
    """Print errors in Markdown: fitted, on curves left out, and of two formulas fitted to nothing."""
    f = stacked([row.features for row, *_ in rows])
    measured = np.array([row.row.seconds for row, *_ in rows])
    columns = {
        "fitted": np.array([inside for _, inside, _, _ in rows]),
        "left out": np.array([off for _, _, off, _ in rows]),
        "NCCL's formula": nccl_formula(f) / measured - 1,
        "data sheet": data_sheet(f) / measured - 1,
    }
    used = np.array([used for *_, used in rows])
    groups: dict[str, list[int]] = {"all": list(range(len(rows))), "all but anomalies": list(np.flatnonzero(used))}
    for i, (row, *_) in enumerate(rows):
        for name in group_names(row):
            groups.setdefault(name, []).append(i)
    groups["several domains but anomalies"] = [i for i in groups["several domains"] if used[i]]
    print(f"| rows of | rows | {' | '.join(columns)} |")
    print(f"|---|---|{'---|' * len(columns)}")
    for name, places in groups.items():
        cells = (f"{np.median(size):.1%} ({np.quantile(size, 0.9):.1%})"
                 for size in (np.abs(off[places]) for off in columns.values()))  # fmt: skip
        print(f"| {name} | {len(places)} | {' | '.join(cells)} |")
    print("\nMedian of |predicted / measured - 1|, in brackets the 90th percentile.")


def never_fitted(rows: Sequence[Matched], spec: Spec, x: Floats) -> None:
    """Print how far off systems are whose chips the profile does not name, which no fit uses."""
    systems: dict[str, list[Matched]] = {}
    for row in rows:
        systems.setdefault(row.row.system, []).append(row)
    for system, own in systems.items():
        problem = Problem(spec, own)
        off = np.exp(problem.log_predicted(x) - problem.log_seconds) - 1
        print(f"    never fitted, {system}: {' '.join(f'{each:+.0%}' for each in off)}")


def unseen(found: Sequence[Matched]) -> None:
    """Print how far off a generation is by the constants of another one, which never saw it."""
    groups: dict[str, list[Matched]] = {}
    for row in found:
        groups.setdefault(row.profile.name, []).append(row)
    specs = {spec.name: spec for spec in SPECS if spec.name in groups}
    problems = {name: Problem(spec, groups[name]) for name, spec in specs.items()}
    fitted = {name: problem.fit(np.ones(len(problem.rows), bool)).x for name, problem in problems.items()}
    for name, of in PAIRS:
        problem = problems[name]
        x = np.concatenate([fitted[of][: len(problem.names)], problem.centre[len(problem.names) :]])
        off = np.exp(problem.log_predicted(x) - problem.log_seconds) - 1
        print(f"{name} by the constants of {of}: {summary(off[problem.usable])}")


def nccl_formula(f: Features) -> Floats:
    """Return NCCL's own estimate [s]; of what it does not model (all-to-all, expert layers) that of a Simple ring."""
    steps = f.rounds * (f.ranks - 1)
    each = tuned_seconds(steps, f.up, f.nvls, f.bandwidth)
    modelled = ~f.exchange & (f.n_bytes > 0)
    inside = np.where(modelled, each.min(axis=0), each[2])
    return np.maximum(inside, f.out) + NET * f.rounds * (f.domains - 1)


def data_sheet(f: Features) -> Floats:
    """Return a microsecond for each step of a ring, and bytes at the rates of the data sheet [s]."""
    steps = np.where(f.exchange | (f.n_bytes == 0), 1, f.rounds * (f.ranks - 1))
    return steps * 1e-6 + np.maximum(f.up, f.out)


if __name__ == "__main__":
    main()
