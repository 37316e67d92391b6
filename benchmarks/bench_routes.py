"""How fast are the exact loads of an all-to-all, beside a naive loop over paths and beside NetworkX?

Each case in a process of its own, on one core, in seconds of its processor time: neighbours do not count. Loops are
compiled before (numba keeps them on disk). With a file named, growth from 8 to 131,072 GPUs is measured too and
written there: `docs/gallery/make.py` draws it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numba
import numpy as np
from bench_scale import peak

import collectives
import topo

#: Part of the sources that the naive loop walks from; its time is scaled up.
SAMPLE = 16
SIZES = (8, 64, 512, 4096, 16384, 32768, 65536, 131072)
TARGETS = {
    "k = 64, prepared": "1 s", "k = 16, times faster": "1,000", "k = 16, difference": "1e-9",
    "100,080 GPUs, all_to_all, prepared": "3 s", "100,080 GPUs, all_to_all, fresh": "6 s",
    "100,080 GPUs, rail_aligned, prepared": "3 s", "100,080 GPUs, rail_aligned, fresh": "6 s",
    "100,080 GPUs, peak": "4 GB",
}  # fmt: skip
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the least processor time of some runs [s]."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


@numba.njit(cache=True)
def walked(k: int, sources: int) -> np.ndarray:
    """Walk every shortest path between the leaves of a fat tree from some of them on; up links alone are read."""
    half, leaves = k // 2, k * k // 2
    up, down = np.zeros((leaves, half)), np.zeros((leaves, half))
    rise, fall = np.zeros((k, half, half)), np.zeros((k, half, half))
    for a in range(sources):
        for b in range(leaves):
            pod, other, pairs = a // half, b // half, half * half
            for spine in range(half if a != b else 0):
                if pod == other:
                    up[a, spine] += pairs / half
                    down[b, spine] += pairs / half
                    continue
                part = pairs / (half * half)
                for core in range(half):
                    up[a, spine] += part
                    rise[pod, spine, core] += part
                    fall[other, spine, core] += part
                    down[b, spine] += part
    return up


def k64() -> dict[str, float]:
    """Loads of 65,536 hosts."""
    walked(4, 1)
    fabric = topo.Fabric.from_graph(topo.build("fat_tree", k=64))
    fresh = seconds(lambda: collectives.cost(fabric, "all_to_all", 1e9))
    routes = topo.route(fabric)
    collectives.cost(fabric, "all_to_all", 1e9, routing=routes)
    prepared = seconds(lambda: collectives.cost(fabric, "all_to_all", 1e9, routing=routes), 5)
    naive = SAMPLE * seconds(lambda: walked(64, 2048 // SAMPLE), 3)
    return {
        "k = 64, prepared": prepared, "k = 64, fresh": fresh, f"k = 64, naive, 1/{SAMPLE} of sources scaled": naive,
        "k = 64, times faster than naive": naive / prepared, "k = 64, peak": peak(),
    }  # fmt: skip


def k16() -> dict[str, float]:
    """Loads of 1,024 hosts; NetworkX counts an edge both ways, and half."""
    graph = topo.build("fat_tree", k=16)
    fabric = topo.Fabric.from_graph(graph)
    hosts, routes = fabric.rank_labels, topo.route(fabric, "paths")

    def ours() -> Any:
        return collectives.cost(fabric, "all_to_all", len(hosts), routing=routes)

    loads, prepared = ours().loads, seconds(ours, 20)
    start = time.process_time()
    between = nx.edge_betweenness_centrality_subset(graph, hosts, hosts)
    slow = time.process_time() - start
    both = {frozenset(edge): 0.0 for edge in between}
    for a, b, load in zip(fabric.source, fabric.target, loads, strict=True):
        both[frozenset((fabric.labels[a], fabric.labels[b]))] += load
    worst = max(abs(both[frozenset(edge)] / 2 / value - 1) for edge, value in between.items())
    return {
        "k = 16, prepared": prepared, "k = 16, NetworkX": slow, "k = 16, times faster": slow / prepared,
        "k = 16, difference": worst,
    }  # fmt: skip


def gpus() -> dict[str, float]:
    """Costs of 100,080 GPUs."""
    fabric, found = topo.Fabric.from_graph(topo.load("gb200-nvl72", 1390, {"scale_out.radix": 128})), {}
    for name in ("direct", "rail_aligned"):
        what = f"100,080 GPUs, {'all_to_all' if name == 'direct' else name}"

        def cost(routing: topo.Routing = "ecmp", name: str = name) -> object:
            return collectives.cost(fabric, "all_to_all", 1e9, algorithm=name, routing=routing)

        found[f"{what}, fresh"] = seconds(cost)
        routes = topo.route(fabric)
        cost(routes)
        found[f"{what}, prepared"] = seconds(lambda cost=cost, routes=routes: cost(routes), 3)
    return found | {"100,080 GPUs, peak": peak()}


def growth(n: int, failed: bool) -> dict[str, float]:
    """Cost an all-to-all over racks of up to 64 GPUs, with all links or with one failed."""
    size = min(n, 64)
    graph = topo.load("gb200-nvl72", n // size, {"design.domain_size": size, "scale_out.radix": 128})
    if failed:
        kinds = nx.get_edge_attributes(graph, "kind")
        tiers = nx.get_node_attributes(graph, "tier")
        up = [edge for edge in kinds if {tiers.get(node) for node in edge} == {"leaf", "spine"}]
        graph = topo.fail(graph, lanes={up[0] if up else next(iter(kinds)): 1})
    fabric = topo.Fabric.from_graph(graph)
    fresh = seconds(lambda: collectives.cost(fabric, "all_to_all", 1e9))
    routes = topo.route(fabric)
    collectives.cost(fabric, "all_to_all", 1e9, routing=routes)
    again = seconds(lambda: collectives.cost(fabric, "all_to_all", 1e9, routing=routes), 3)
    return {"routes worked out": fresh, "routes prepared": again}


CASES: dict[str, Callable[..., dict[str, float]]] = {"k64": k64, "k16": k16, "gpus": gpus, "growth": growth}


def child(*case: object) -> dict[str, float]:
    """Run a case in a process of its own."""
    command = [sys.executable, __file__, "--case", *map(str, case)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_CORE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(data: Path | None) -> None:
    for case in ("k64", "k16", "gpus"):
        for what, value in child(case).items():
            unit = "GB" if "peak" in what else "" if "times" in what or "difference" in what else "s"
            print(f"{what}: {value:.4g} {unit}  target {TARGETS.get(what, 'none')}", flush=True)
    if data:
        curves: dict[str, dict[str, list[float]]] = {"all links": {}, "one link failed": {}}
        for n in SIZES:
            for failed, lines in enumerate(curves.values()):
                for what, value in child("growth", n, failed).items():
                    lines.setdefault(what, []).append(value)
            print(
                n,
                {name: {what: line[-1] for what, line in lines.items()} for name, lines in curves.items()},
                flush=True,
            )
        data.write_text(json.dumps({"gpus": SIZES, **curves}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(CASES[sys.argv[2]](*map(int, sys.argv[3:]))))
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
