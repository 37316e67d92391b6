"""How long and how much memory do a graph of 100,080 GPUs, its arrays and an all-to-all over it take?

Each machine in a process of its own. Rails alone do not join every pair: no all-to-all there.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import networkx as nx

import collectives
import topo

RAIL_ONLY = "rail_only 1390 x 72, radix 128"
CASES: dict[str, Callable[[], nx.Graph[str]]] = {
    "gb200-nvl72 x 1390, radix 128": lambda: topo.load("gb200-nvl72", 1390, {"scale_out.radix": 128}),
    RAIL_ONLY: lambda: topo.build("rail_only", domains=1390, domain_size=72, radix=128),
}
TARGETS = {
    "graph": (10.0, "s"),
    "arrays": (2.5, "s"),
    "peak memory": (1.5, "GB"),
    "routes": (5.0, "s"),
    "all-to-all": (5.0, "s"),
    "peak memory, all": (2.0, "GB"),
}


def peak() -> float:
    """Return the most memory this process has had [GB]."""
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def figures(case: str) -> dict[str, float]:
    """Build one machine, its arrays, its routes."""
    times = [time.perf_counter()]
    graph = CASES[case]()
    times.append(time.perf_counter())
    fabric = topo.Fabric.from_graph(graph)
    times.append(time.perf_counter())
    found = {"graph": times[1] - times[0], "arrays": times[2] - times[1], "peak memory": peak()}
    if case != RAIL_ONLY:
        routes = topo.route(fabric)
        times.append(time.perf_counter())
        collectives.cost(fabric, "all_to_all", 1e9, routing=routes)
        times.append(time.perf_counter())
        found |= {"routes": times[3] - times[2], "all-to-all": times[4] - times[3], "peak memory, all": peak()}
    return found


def main() -> None:
    for case in CASES:
        child = subprocess.run([sys.executable, __file__, case], check=True, capture_output=True, text=True)
        for what, value in json.loads(child.stdout).items():
            target, unit = TARGETS[what]
            print(json.dumps({"case": case, "figure": what, "value": round(value, 3), "unit": unit, "target": target}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(figures(sys.argv[1])))
    else:
        main()
