"""A trial of the bare Syne Tune script that prints the line which Syne Tune reads, without importing it."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.speed.bare.objective import loss, stamp


def main(arguments: list[str]) -> None:
    started = time.perf_counter()
    options = dict(zip((name.removeprefix("--") for name in arguments[::2]), arguments[1::2], strict=True))
    value = loss({name: float(options[name]) for name in ("x", "y", "k")}, float(options["seconds"]))
    report = {
        "epoch": 1,
        "loss": value,
        "st_worker_timestamp": time.time(),
        "st_worker_time": time.perf_counter() - started,
        "st_worker_iter": 0,
    }
    print(f"[tune-metric]: {json.dumps(report)}", flush=True)
    stamp(options["ends"])


if __name__ == "__main__":
    main(sys.argv[1:])
