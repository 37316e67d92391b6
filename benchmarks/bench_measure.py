"""How long does `topo.measure` take, arrays and routing included, from two racks to a hundred thousand GPUs?"""

import statistics
import time

import topo

#: Domains, radix, runs, target. 16 racks try every half; above 20,000 GPUs no pair is routed.
CASES = ((2, 64, 5, "0.5 s"), (16, 64, 3, "5 s"), (139, 64, 1, "15 s"), (1390, 128, 1, "30 s"))


def seconds(domains: int, radix: int) -> float:
    graph = topo.load("gb200-nvl72", domains, {"scale_out.radix": radix})
    begin = time.perf_counter()
    topo.measure(graph)
    return time.perf_counter() - begin


def main() -> None:
    seconds(1, 64)  # imports scipy
    for domains, radix, n, target in CASES:
        taken = statistics.median(seconds(domains, radix) for _ in range(n))
        print(f"measure gb200-nvl72, {72 * domains:7,} GPUs: {taken:7.3f} s  (median of {n}, target < {target})")


if __name__ == "__main__":
    main()
