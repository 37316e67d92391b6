"""How long does a user wait for `rackbound evaluate gb200-nvl72 --model deepseek-v3`, cold?

Cold: a new process each time, nothing kept from the last one but the byte code.
"""

import statistics
import subprocess
import sys
import tempfile
import time

N = 5
TARGET_S = 5.0
START = "import sys; from rackbound._cli import main; sys.argv[0] = 'rackbound'; sys.exit(main())"


def seconds() -> float:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", START, "evaluate", "gb200-nvl72", "--model", "deepseek-v3", "--out", out]
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin


def main() -> None:
    times = [seconds() for _ in range(N)]
    print(f"rackbound evaluate gb200-nvl72 --model deepseek-v3, {N} processes:")
    print(f"min {min(times):.2f} s  median {statistics.median(times):.2f} s  max {max(times):.2f} s")
    print(f"target < {TARGET_S:g} s")


if __name__ == "__main__":
    main()
