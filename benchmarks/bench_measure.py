"""How long does `topo.measure` take, routing included, on two racks and on ten thousand GPUs?"""

import statistics
import time

import topo

CASES = ((2, 5, "0.5 s"), (139, 1, "15 s"))


def seconds(domains: int) -> float:
    graph = topo.load("gb200-nvl72", domains)
    begin = time.perf_counter()
    topo.measure(graph)
    return time.perf_counter() - begin


def main() -> None:
    seconds(1)  # imports scipy
    for domains, n, target in CASES:
        taken = statistics.median(seconds(domains) for _ in range(n))
        print(f"measure gb200-nvl72, {72 * domains:6} GPUs: {taken:7.3f} s  (median of {n}, target < {target})")


if __name__ == "__main__":
    main()
