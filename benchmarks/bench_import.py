"""How heavy is `import placement`, against the `import networkx` it stands on?

Fresh interpreters, taking turns, so that a slow minute of the machine hits both.
"""

import statistics
import subprocess
import sys

N = 15
TARGET = 1.25


def seconds(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    modules = ("networkx", "placement")
    for module in modules:
        seconds(module)  # writes the byte code
    taken: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(N):
        for module in modules:
            taken[module].append(seconds(module))
    median = {module: statistics.median(times) for module, times in taken.items()}
    for module in modules:
        print(f"import {module:10} {median[module] * 1e3:8.1f} ms  (median of {N})")
    print(f"ratio {median['placement'] / median['networkx']:.3f}  (target <= {TARGET})")


if __name__ == "__main__":
    main()
