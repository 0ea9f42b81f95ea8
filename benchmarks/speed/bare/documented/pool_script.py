"""No framework: Python's own process pool, with its portable start method.

Source: docs.python.org, `concurrent.futures`, ProcessPoolExecutor; `spawn`, which every platform has.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from benchmarks.speed.bare.documented.digits import WORKERS, end_at_once, tell, train, trainings


def main(path: str, is_changed: bool) -> None:
    started = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context, initializer=end_at_once if is_changed else None) as pool:
        values = list(pool.map(train, trainings(path)))
    tell(started, values)


if __name__ == "__main__":
    main(sys.argv[1], "changed" in sys.argv)
