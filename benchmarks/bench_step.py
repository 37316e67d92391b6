"""How long does a user wait for `rackbound step gb200-nvl72 --model deepseek-v3` over one rack and two, cold?

Cold: a new process each time, nothing kept from the last one but the byte code.
"""

import statistics
import subprocess
import sys
import time

N = 3
TARGET_S = 2.0
START = "import sys; from rackbound._cli import main; sys.argv[0] = 'rackbound'; sys.exit(main())"


def seconds(ep: int) -> float:
    command = [sys.executable, "-c", START, "step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", str(ep)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    print(f"rackbound step gb200-nvl72 --model deepseek-v3, {N} processes each:")
    for ep in (64, 72, 128, 144):
        times = [seconds(ep) for _ in range(N)]
        print(f"EP {ep:3}: min {min(times):.2f} s  median {statistics.median(times):.2f} s  max {max(times):.2f} s")
    print(f"target < {TARGET_S:g} s")


if __name__ == "__main__":
    main()
