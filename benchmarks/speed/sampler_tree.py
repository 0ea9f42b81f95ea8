"""`python -m benchmarks.speed.sampler_tree KIND COUNT`: processes for the sampler to look at; prints a line when all are there.

`plain`: interpreters that do a little every 50 ms. `torch`: the same, forked from one that has imported torch, as workers are.
They end with standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

PERIOD_SECONDS = 0.05
_PLAIN = f"import time\nwhile True: sum(range(2000)); time.sleep({PERIOD_SECONDS})"


def main(kind: str, count: int) -> None:
    children: list[int] = []
    if kind == "torch":
        import torch  # noqa: F401  # for its memory alone

        for _ in range(count - 1):
            pid = os.fork()
            if pid == 0:
                while True:
                    sum(range(2000))
                    time.sleep(PERIOD_SECONDS)
            children.append(pid)
    else:
        children += [subprocess.Popen([sys.executable, "-S", "-c", _PLAIN]).pid for _ in range(count - 1)]
    print("ready", flush=True)
    sys.stdin.read()
    for pid in children:
        os.kill(pid, 9)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
