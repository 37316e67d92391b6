"""How long does a sweep of a million points take on one core?

Chips, numbers of domains, types of KV cache, EP, TP, PP, batch and context: every point a step
with its collectives costed on the graph.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import serving
import topo

TARGET_S = 10.0
DESIGNS = ("gb200-nvl72", "hgx-h200-8", "mi355x-8")
EP, TP, PP = (8, 16, 32, 64, 72, 128, 144), (1, 2, 4, 8), (1, 2, 4)


def swept() -> serving.Sweep:
    graphs = {f"{name} x {n}": topo.load(name, n) for name in DESIGNS for n in ((1, 2) if "72" in name else (8, 16))}
    works = {kv: serving.Workload(batch_per_gpu=1, kv_dtype=kv) for kv in ("bf16", "fp8")}
    batch = np.unique(np.round(np.geomspace(1, 1024, 120)).astype(int))
    context = np.geomspace(1024, 262144, 24).astype(int)
    return serving.sweep(graphs, serving.load_model("deepseek-v3"), works, ep=EP, tp=TP, pp=PP, batch=batch,
                         context=context)  # fmt: skip


def main() -> None:
    begin, used = time.perf_counter(), time.process_time()
    found = swept()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - used
    exist = int((found.gpus > 0).sum())
    print(f"{found.fits.size:,} points, {exist:,} of layouts that exist, {len(found.front())} on the front")
    print(f"{seconds:.1f} s ({cpu:.1f} s of one core), {exist / cpu:,.0f} steps a second")
    print(f"target: a million points in {TARGET_S:g} s")


if __name__ == "__main__":
    main()
