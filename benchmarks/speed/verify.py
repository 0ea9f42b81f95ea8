"""What `tuneoff verify` costs: everything that 1 000 runs of 100 trials stored, recomputed from their raw files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate
from benchmarks.speed.synthetic_results import SAMPLES_PER_RUN, write_results

RUNS, TRIALS, EPOCHS = 1_000, 100, 5
REPEATS = 3
SECONDS_TARGET, MEMORY_TARGET = SpeedTarget("<=", 60.0), SpeedTarget("<=", 1000.0)


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row for time and one for memory."""
    runs = settings.repeats(RUNS)
    a = f"everything that {runs:,} runs of {TRIALS} trials of {EPOCHS} epochs stored, with {SAMPLES_PER_RUN} samples each"
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir=settings.folder))
    probes = []
    try:
        size_mb = write_results(folder / "results", runs, TRIALS, EPOCHS) / 1e6
        for number in range(2 if settings.is_quick else REPEATS):
            probe, _ = run_module("benchmarks.speed.verify_probe", [str(folder / "results"), str(runs)])
            probes.append(probe)
            settings.say(f"  verify: {number + 1}: {probe['seconds']:.1f} s, {probe['peak_bytes'] / 1e6:.0f} MB")
    except MeasurementError as error:
        yield skipped("verify.time", a, str(error), target=SECONDS_TARGET)
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = [probe["seconds"] for probe in probes]
    peaks = [probe["peak_bytes"] / 1e6 for probe in probes]
    yield SpeedRow(
        name="verify.time",
        a=a,
        unit="s",
        result=estimate(seconds),
        target=SECONDS_TARGET,
        figures={
            "per run ms": 1e3 * estimate(seconds).value / runs,
            "CPU s": min(probe["cpu_seconds"] for probe in probes),
            "processes": probes[0]["processes"],
            "events": probes[0]["events"],
            "values": probes[0]["values"],
            "files MB": size_mb,
        },
        samples={"seconds": seconds},
    )
    yield SpeedRow(
        name="verify.memory",
        a=f"{a}: peak resident memory, that of each process added",
        unit="MB",
        result=estimate(peaks),
        target=MEMORY_TARGET,
        samples={"peak_mb": peaks},
    )
