"""How good and how quick are placements of experts, beside EPLB's in the same run? One thread.

Every line: what is asked, our number, its target, EPLB's number on the same loads. EPLB's algorithm is the oracle of
the tests, in numpy: its answers are EPLB's, its time is not printed. `python benchmarks/bench_place.py [seed]`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "placement"))

import numpy as np  # noqa: E402
from eplb import heaviest, rebalance  # noqa: E402
from expert_loads import CASES, HIER, KINDS, SEED, loads  # noqa: E402

from rackbound import placement  # noqa: E402

#: Sharing, GPUs, kind, targets of the heaviest GPU over the mean (mean over layers, worst layer) and of the gap.
TARGETS = (
    ("equal", 72, "lognormal0.7", "1.0005 (1.001), gap 0.1 %"),
    ("weighted", 72, "powerlaw1.01", "1.0005 (1.002), gap 0.1 %"),
    ("equal", 72, "powerlaw1.01", "1.010 (1.06)"),
    ("equal", 72, "zipf1", "1.114, gap 0.3 %"),
    ("equal", 144, "lognormal0.7", "within 0.1 % of the optimum"),
)


def quick(seed: int) -> None:
    """The drop-in on every case."""
    for experts, spare, gpus, *rest in [*CASES, *HIER]:
        groups, nodes = rest or (1, 1)
        for kind in KINDS:
            load = loads(experts, kind, seed=seed)
            start = time.perf_counter()
            slots, _, _ = placement.rebalance_experts(load, experts + spare, groups, nodes, gpus)
            took = time.perf_counter() - start
            line = f"rebalance {experts} + {spare} on {gpus}, {nodes} nodes, {kind}: {1e3 * took:.0f} ms (target 100)"
            if (experts + spare) % gpus:
                print(f"{line}; EPLB asserts")
                continue
            ours = heaviest(load, slots, gpus)
            eplb = heaviest(load, rebalance(load, experts + spare, groups, nodes, gpus)[0], gpus)
            doubled = sum(len(set(gpu)) < len(gpu) for row in slots for gpu in row.reshape(gpus, -1).tolist())
            worse = int((ours > eplb * (1 + 1e-9)).sum())
            print(f"{line}; {said(ours)} [{said(eplb)}], {worse} layers worse, {doubled} GPUs with a copy twice")


def deep(seed: int) -> None:
    """The search with its bounds."""
    for sharing, gpus, kind, target in TARGETS:
        load = loads(256, kind, seed=seed)
        start = time.perf_counter()
        found = placement.place(load, gpus, replicas=32, sharing=sharing)
        took = time.perf_counter() - start
        eplb = heaviest(load, rebalance(load, 288, 1, 1, gpus)[0], gpus)
        gaps = 100 * (found.layer_objective / found.layer_bound - 1)
        print(
            f"place 256 + 32 on {gpus}, {kind}, {sharing}: "
            f"{said(found.layer_objective)} (target {target}) [{said(eplb)}], "
            f"gap {gaps.mean():.3f} % (worst {gaps.max():.3f} %), {took:.1f} s (target 10)"
        )


def proven(seed: int) -> None:
    """How far are quick answers of two slots a GPU from what whole numbers of copies prove, a second a layer?"""
    load = loads(256, "lognormal0.7", seed=seed)
    quickly, exactly = (placement.place(load, 144, replicas=32, exact=exact) for exact in (False, True))
    off = 100 * (quickly.layer_objective / exactly.layer_bound - 1)
    above = f"{off.mean():.3f} % above the proven bound (worst {off.max():.3f} %)"
    print(f"place 256 + 32 on 144, lognormal0.7, equal: {above} (target 0.1 % of the optimum)")


def across(seed: int) -> None:
    """Fewer tokens between domains: part `affinity` of an expert's tokens comes from a domain of its own."""
    aims = ((0.0, "32"), (0.2, "40"), (0.5, "53"), (0.8, "69"))
    cases = [(2, 36, a, 1.01, 58, f"{target} %, under 1 s") for a, target in aims]
    cases += [(2, 72, 0.5, b, 6, "bounded") for b in (1.15, 1.2, 1.3)] + [(18, 4, 0.5, 1.05, 6, "bounded, under 30 s")]
    for domains, per, affinity, balance, layers, target in cases:
        load, gpus = loads(256, "lognormal0.7", seed=seed)[:layers], domains * per
        home = np.random.default_rng([seed, domains]).integers(0, domains, load.shape)
        own = home[:, None] == np.arange(domains)[:, None]
        sources = load[:, None] * ((1 - affinity) / domains + affinity * own)
        eplb = crossing(sources, rebalance(load, 288, 1, 1, gpus)[0], domains)
        machine = placement.Gpus(np.full(gpus, 288 // gpus), domain=np.repeat(np.arange(domains), per))
        start = time.perf_counter()
        found = placement.place_across(sources, machine, replicas=32, balance=balance)
        took = (time.perf_counter() - start) / layers
        down = 100 * (1 - found.crossing.mean() / eplb.mean()) if found.plan else float("nan")
        asked = f"across {domains} x {per}, affinity {affinity}, balance {balance}, {layers} layers"
        at_most = 100 * (1 - found.bound.mean() / eplb.mean())
        less = f"{down:.1f} % less than EPLB (target {target}; at most {at_most:.1f} %)"
        print(f"{asked}: {less}, {found}, {took:.2f} s a layer")


def crossing(sources: np.ndarray, slots: np.ndarray, domains: int) -> np.ndarray:
    """Part of the tokens that leave their domain where all copies of an expert share alike."""
    layers, _, n = sources.shape
    count = np.zeros((layers, domains, n))
    domain = np.arange(slots.shape[1]) // (slots.shape[1] // domains)
    for layer in range(layers):
        np.add.at(count[layer], (domain, slots[layer]), 1)
    part = count / count.sum(axis=1, keepdims=True)
    return np.asarray((sources * (1 - part)).sum(axis=(1, 2)) / sources.sum(axis=(1, 2)))


def said(heavy: np.ndarray) -> str:
    return f"{heavy.mean():.4f} ({heavy.max():.4f})"


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    placement.place(loads(256, KINDS[0])[:1], 72, replicas=32)  # numba compiles once
    placement.place_across(np.ones((2, 64)), placement.Gpus([9] * 8, domain=[0] * 4 + [1] * 4))
    quick(seed)
    deep(seed)
    proven(seed)
    across(seed)


if __name__ == "__main__":
    main()
