"""How long does a proof take, from two boxes to 1,024 GPUs on a rail-optimised fabric?"""

import statistics
import time
from functools import partial

import collectives
import topo

#: Domains of eight GPUs, runs.
SIZES = ((2, 5), (16, 3), (128, 1))
#: Collective, scope, target at 1,024 GPUs.
KINDS = (
    ("all_to_all", "schedule", "3 s"), ("all_to_all", "any", "3 s"), ("all_gather", "any", "3 s"),
    ("all_reduce", "any", "10 s"), ("all_reduce", "schedule", "10 s"),
)  # fmt: skip


def seconds(work: object, n: int) -> float:
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        work()  # type: ignore[operator]
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    collectives.lower_bound(topo.load("hgx-h100-8"), "all_to_all", 1e9)  # imports scipy
    for domains, n in SIZES:
        graph = topo.load("hgx-h100-8", domains, {"scale_out.oversubscription": 2.0})
        for kind, scope, target in KINDS:
            taken = seconds(partial(collectives.lower_bound, graph, kind, 1e9, scope=scope), n)
            said = f"lower_bound {scope:8} {kind:10} hgx-h100-8, {8 * domains:5,} GPUs"
            print(f"{said}: {taken:7.3f} s  (median of {n}, target at 1,024 < {target})")
        taken = seconds(partial(collectives.failures, graph, "all_to_all", 1e9), 1)
        print(f"failures             all_to_all hgx-h100-8, {8 * domains:5,} GPUs: {taken:7.3f} s  (target < 60 s)")


if __name__ == "__main__":
    main()
