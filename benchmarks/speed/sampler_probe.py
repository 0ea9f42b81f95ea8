"""`python -m benchmarks.speed.sampler_probe KIND COUNT SECONDS FOLDER`: sample such a tree, and print what that cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tuneoff.base.processes import MARK
from tuneoff.measure.power.metering import PowerPlan
from tuneoff.measure.power.sampler import Sampler
from tuneoff.record.samples.reader import read_samples
from tuneoff_meters.rapl import RaplMeter

RUN = "speed-of-the-sampler"
SETTLING_SECONDS = 2.0  # the first looks meet everything as new
ZONES = {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1", "intel-rapl:0:0": "dram"}


def main(kind: str, count: int, seconds: float, folder: Path) -> None:
    tree = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.speed.sampler_tree", kind, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: RUN},
        start_new_session=True,
    )
    assert tree.stdin is not None
    assert tree.stdout is not None
    tree.stdout.readline()
    power = PowerPlan(name="rapl", meter=RaplMeter({"root": str(counters(folder))}), reason="")
    with Sampler(folder, RUN, power):
        time.sleep(SETTLING_SECONDS + seconds)
    tree.stdin.close()
    tree.wait()
    samples = read_samples(folder)
    assert samples is not None
    first = next(sample for sample in samples.usage if sample.t - samples.usage[0].t >= SETTLING_SECONDS * 1e9)
    last = samples.usage[-2]  # the very last one met the end of all
    looks = samples.usage.index(last) - samples.usage.index(first)
    elapsed, cost = (last.t - first.t) / 1e9, (last.own_cpu_ns - first.own_cpu_ns) / 1e9
    answer = {
        "percent": 100 * cost / elapsed,
        "looks_per_second": looks / elapsed,
        "us_per_look": 1e6 * cost / looks,
        "processes": len({usage.pid for sample in samples.usage for usage in sample.processes} - {os.getpid()}),
        "pss_looks": sum(usage.pss_bytes is not None for sample in samples.usage for usage in sample.processes),
        "bytes_per_second": (folder / "power.jsonl").stat().st_size / (seconds + SETTLING_SECONDS),
        "rss_mb": last.rss_bytes / 1e6,
    }
    print(json.dumps(answer))


def counters(folder: Path) -> Path:
    """Make a powercap tree with two packages and DRAM, so that reading counters is in the cost."""
    root = folder / "powercap"
    for zone, name in ZONES.items():
        (root / zone).mkdir(parents=True)
        for file, value in (("name", name), ("energy_uj", f"{abs(hash(zone)) % 10**9}"), ("max_energy_range_uj", str(2**38))):
            (root / zone / file).write_text(f"{value}\n")
    return root


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
