"""How long does fair sharing take, beside SimGrid and beside the best array form? One JSON line a figure.

SimGrid is asked where an interpreter (SIMGRID_PYTHON, by default /usr/bin/python3) has Debian's python3-simgrid.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from collectives import simulate
from collectives.fluid import finish_times
from rackbound import topo

NVL = 900e9
SIMGRID = os.environ.get("SIMGRID_PYTHON", "/usr/bin/python3")
Arrays = tuple[np.ndarray, ...]


def ends_of_flows(n: int) -> Arrays:
    i, j = np.divmod(np.arange(n * n), n)
    return i[i != j], j[i != j]


def one_switch(n: int, sizes: Callable[..., np.ndarray]) -> Arrays:
    """Flows between all pairs under one ideal switch: links up, then down."""
    i, j = ends_of_flows(n)
    return np.full(2 * n, NVL), 2 * np.arange(len(i) + 1), np.stack([i, n + j], axis=1).ravel(), sizes(i, j)


def uniform(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.full(len(i), 1e9)


def uneven(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return (1 + (7919 * i + 104729 * j) % 97) * 1e8


def million() -> Arrays:
    """A million flows between 1,000 senders and receivers; every fourth sender is slower, and sends less."""
    i, j = np.divmod(np.arange(1_000_000), 1000)
    capacity = np.where(np.arange(2000) % 4 == 0, NVL / 2, NVL)
    return capacity, 2 * np.arange(len(i) + 1), np.stack([i, 1000 + j], axis=1).ravel(), np.where(i % 4, 1e9, 3e8)


def array_form(n: int) -> np.ndarray:
    """Work out the uneven switch with whole-array steps alone: all links that bind first at once, event by event."""
    left = np.zeros((n, n))
    left[ends_of_flows(n)] = uneven(*ends_of_flows(n))
    ends, now = np.zeros((n, n)), 0.0
    while (active := left > 0).any():
        rate, free, up, down = np.zeros((n, n)), active.copy(), np.full(n, NVL), np.full(n, NVL)
        while free.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                level_up = np.where(free.any(axis=1), up / free.sum(axis=1), np.inf)
                level_down = np.where(free.any(axis=0), down / free.sum(axis=0), np.inf)
            level = np.where(free, np.minimum(level_up[:, None], level_down), np.inf)
            binds = (level.min(axis=1) == level_up)[:, None] | (level.min(axis=0) == level_down)
            rate = np.where(free & binds, level, rate)
            free &= ~binds
            up, down = NVL - rate.sum(axis=1), NVL - rate.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            due = np.where(active, left / rate, np.inf)
        step = due.min()
        done = due <= step * (1 + 1e-12)
        now += step
        ends[done] = now
        left = np.where(active & ~done, left - rate * step, 0.0)
    return ends


def timed(what: Callable[[], object], runs: int = 5) -> dict[str, float]:
    """Return wall and CPU seconds, medians."""
    wall, cpu = [], []
    for _ in range(runs):
        begin = time.perf_counter(), time.process_time()
        what()
        wall.append(time.perf_counter() - begin[0])
        cpu.append(time.process_time() - begin[1])
    return {"seconds": round(statistics.median(wall), 4), "cpu_seconds": round(statistics.median(cpu), 4)}


def cold(code: str) -> dict[str, float]:
    """Return the seconds of a new process, imports and all."""
    return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True), 3)


def simgrid(n: int, kind: str) -> dict[str, float]:
    script = Path(__file__).with_name("simgrid_switch.py")
    done = subprocess.run([SIMGRID, script, str(n), kind], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def figures() -> Iterator[dict[str, object]]:
    cases = {
        "82,656 uniform flows, one switch of 288": (one_switch(288, uniform), 0.2),
        "5,112 uneven flows, one switch of 72, 4,870 ends": (one_switch(72, uneven), 0.5),
        "1,000,000 flows of few classes": (million(), None),
    }
    for name, (arrays, target) in cases.items():
        finish_times(*arrays)  # compiles, or reads what was compiled
        yield {"figure": name, **timed(lambda arrays=arrays: finish_times(*arrays)), "target_seconds": target}
    yield {"figure": "import and 82,656 uniform flows, new process", **cold(COLD.format("uniform", 288))}
    yield {"figure": "import and 5,112 uneven flows, new process", **cold(COLD.format("uneven", 72))}
    for n, kind in ((72, "uniform"), (72, "uneven"), (144, "uniform")):
        sizes = uniform if kind == "uniform" else uneven
        found, other = finish_times(*one_switch(n, sizes)).max(), simgrid(n, kind)
        if other:
            ours = timed(lambda n=n, sizes=sizes: finish_times(*one_switch(n, sizes)), 3)["cpu_seconds"]
            apart = abs(other["end"] - found) / found
            yield {
                "figure": f"SimGrid, {kind}, one switch of {n}",
                "cpu_seconds": round(other["seconds"], 3),
                "times_ours": round(other["seconds"] / ours, 1),
                "relative_difference": apart,
            }
    yield from hot_loop(72)
    graph = topo.load("gb200-nvl72", 2)
    yield {"figure": "simulate, all-to-all over 2 x 72 GPUs", **timed(lambda: simulate(graph, "all_to_all", 1e9), 3)}


COLD = """
import sys; sys.path[:0] = ["benchmarks"]
from bench_fluid import *
finish_times(*one_switch({1}, {0}))
"""


def hot_loop(n: int) -> Iterator[dict[str, object]]:
    """Compare the compiled loop and arrays alone."""
    arrays = one_switch(n, uneven)
    compiled = timed(lambda: finish_times(*arrays))["cpu_seconds"]
    whole = timed(lambda: array_form(n), 1)["cpu_seconds"]
    apart = np.abs(array_form(n)[ends_of_flows(n)] / finish_times(*arrays) - 1).max()
    yield {
        "figure": f"uneven switch of {n}: arrays alone over compiled loop",
        "cpu_seconds": whole,
        "times_ours": round(whole / compiled, 1),
        "relative_difference": float(apart),
    }


def main() -> None:
    for figure in figures():
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
