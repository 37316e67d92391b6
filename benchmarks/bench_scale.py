"""How long and how much memory do a graph of 100,080 GPUs and its arrays take? Each machine in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import networkx as nx

import topo

CASES: dict[str, Callable[[], nx.Graph[str]]] = {
    "gb200-nvl72 x 1390, radix 128": lambda: topo.load("gb200-nvl72", 1390, {"scale_out.radix": 128}),
    "rail_only 1390 x 72, radix 128": lambda: topo.build("rail_only", domains=1390, domain_size=72, radix=128),
}
TARGETS = {"graph": (10.0, "s"), "arrays": (2.5, "s"), "memory": (1.5, "GB")}


def figures(case: str) -> dict[str, float]:
    """Build one machine and its arrays; peak memory is the whole process's."""
    begin = time.perf_counter()
    graph = CASES[case]()
    middle = time.perf_counter()
    topo.Fabric.from_graph(graph)
    end = time.perf_counter()
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    return {"graph": middle - begin, "arrays": end - middle, "memory": peak}


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
