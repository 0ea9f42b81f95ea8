"""What the event log costs: appending to it, and deriving the records from a million events."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate
from benchmarks.speed.synthetic_log import write_log
from tuneoff.base.layout import EVENTS

APPENDING_TRIALS = 10_000
COUNT = 1_000_000
EPOCHS = (8, 1)  # per trial: mnist_mlp's default, and the most trials that an event log can hold
REPEATS = 6
APPEND_TARGET, SECONDS_TARGET, MEMORY_TARGET = SpeedTarget("<=", 20.0), SpeedTarget("<=", 6.0), SpeedTarget("<=", 600.0)


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row for appending, and for each shape of the log one for time and one for memory."""
    yield _append_row(settings)
    for epochs in EPOCHS:
        yield from _derive_rows(epochs, settings)


def _append_row(settings: Settings) -> SpeedRow:
    name, a = "events.append", "one event: JSON and one write, mean over batches of 600 of a trial's six kinds"
    folder = Path(tempfile.mkdtemp(prefix="append-", dir=settings.folder))
    trials = settings.repeats(APPENDING_TRIALS)
    try:
        answer, _ = run_module("benchmarks.speed.append_probe", [str(folder), str(trials)])
    except MeasurementError as error:
        return skipped(name, a, str(error), target=APPEND_TARGET)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    batches: list[float] = answer["batches_us"]
    return SpeedRow(
        name=name,
        a=a,
        unit="us",
        result=estimate(batches),
        target=APPEND_TARGET,
        figures={"mean us": sum(batches) / len(batches), "largest batch us": max(batches)},
        samples={"batch_us": batches},
    )


def _derive_rows(epochs: int, settings: Settings) -> Iterator[SpeedRow]:
    events = settings.repeats(COUNT)
    name = f"events.derive.{epochs}_epochs"
    a = f"record with metrics and seals from {events:,} events, trials of {epochs} epochs"
    folder = Path(tempfile.mkdtemp(prefix="derive-", dir=settings.folder))
    probes = []
    try:
        trials = write_log(folder / EVENTS, events, epochs)
        size_mb = sum(path.stat().st_size for path in (folder / EVENTS).iterdir()) / 1e6
        for number in range(settings.repeats(REPEATS)):
            probe, _ = run_module("benchmarks.speed.derive_probe", [str(folder), str(trials), str(epochs)])
            probes.append(probe)
            settings.say(f"  {name}: {number + 1}: {probe['derive_seconds']:.2f} s, {probe['peak_bytes'] / 1e6:.0f} MB")
    except MeasurementError as error:
        yield skipped(f"{name}.time", a, str(error), target=SECONDS_TARGET)
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = [probe["derive_seconds"] for probe in probes]
    peaks = [probe["peak_bytes"] / 1e6 for probe in probes]
    yield SpeedRow(
        name=f"{name}.time",
        a=a,
        unit="s",
        result=estimate(seconds),
        target=SECONDS_TARGET,
        figures={
            "trials": trials,
            "event files MB": size_mb,
            "of it metrics s": _median(probes, "metrics_seconds", 1.0),
            "writing run.json s": _median(probes, "write_seconds", 1.0),
        },
        samples={"derive_seconds": seconds},
        note="the costliest shape: the cost is per trial more than per event" if epochs == 1 else "",
    )
    yield SpeedRow(
        name=f"{name}.memory",
        a=f"{a}: peak resident memory of the process, interpreter and imports included",
        unit="MB",
        result=estimate(peaks),
        target=MEMORY_TARGET,
        figures={
            "before MB": _median(probes, "peak_bytes_before", 1e-6),
            "peak after writing run.json MB": _median(probes, "peak_bytes_after_writing", 1e-6),
        },
        samples={"peak_mb": peaks},
    )


def _median(probes: list[dict[str, float]], key: str, factor: float) -> float:
    return estimate([probe[key] * factor for probe in probes]).value
