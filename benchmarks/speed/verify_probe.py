"""Verify a results folder in a process of its own: `python -m benchmarks.speed.verify_probe FOLDER RUNS`."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from benchmarks.speed.derive_probe import peak_bytes
from tuneoff.trust.verify.results import usable_processes, verify


def main(folder: Path, runs: int) -> None:
    started = time.perf_counter()
    verified = verify(folder)
    seconds = time.perf_counter() - started
    if not verified.is_verified or len(verified.outcomes) != runs:
        first = verified.problems[0].line if verified.problems else f"{len(verified.outcomes)} of {runs} runs"
        raise SystemExit(f"a sound folder was not verified: {first}")
    processes = usable_processes(runs)
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 if processes > 1 else 0
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu_seconds": sum(_cpu_seconds(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)),
                "peak_bytes": peak_bytes() + processes * helpers,
                "processes": processes,
                "events": sum(outcome.events for outcome in verified.outcomes),
                "values": sum(outcome.values for outcome in verified.outcomes),
            }
        )
    )


def _cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
