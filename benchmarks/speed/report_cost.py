"""What `tuneoff report` costs over 100 000 trials: time, size of the page, memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate
from benchmarks.speed.synthetic_results import write_results

RUNS, TRIALS, EPOCHS = 50, 2_000, 1
ADAPTERS = ("serial", "optuna", "ray-tune", "syne-tune", "katib")  # so that there are 10 seeds, and pairs to judge
REPEATS = 3
SECONDS_TARGET, PAGE_TARGET = SpeedTarget("<=", 20.0), SpeedTarget("<=", 5.0)


@dataclass(frozen=True, slots=True)
class ReportCost:
    """One report: wall seconds of its process, peak resident memory, CPU seconds, bytes of the page."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float
    page_bytes: int


def report_cost(folder: Path, trials: int) -> ReportCost:
    """Write the report of a results folder in a process of its own and return what it cost.

    Raises:
        MeasurementError: it failed, or the folder has not so many trials.
    """
    answer, seconds = run_module("benchmarks.speed.report_probe", [str(folder), str(trials)])
    return ReportCost(seconds, answer["peak_bytes"], answer["cpu_seconds"], answer["page_bytes"])


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row for time, one for the page's size and one for memory."""
    runs = settings.repeats(RUNS)
    a = f"the report of {runs} runs of {TRIALS:,} trials by {len(ADAPTERS)} adapters"
    folder = Path(tempfile.mkdtemp(prefix="report-", dir=settings.folder))
    costs = []
    try:
        write_results(folder / "results", runs, TRIALS, EPOCHS, ADAPTERS)
        for number in range(2 if settings.is_quick else REPEATS):
            cost = report_cost(folder / "results", runs * TRIALS)
            costs.append(cost)
            settings.say(f"  report: {number + 1}: {cost.seconds:.1f} s, {cost.peak_bytes / 1e6:.0f} MB")
    except MeasurementError as error:
        yield skipped("report.time", a, str(error), target=SECONDS_TARGET)
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = [cost.seconds for cost in costs]
    yield SpeedRow(
        name="report.time",
        a=f"{a}: the whole process",
        unit="s",
        result=estimate(seconds),
        target=SECONDS_TARGET,
        figures={"CPU s": min(cost.cpu_seconds for cost in costs), "trials": runs * TRIALS},
        samples={"seconds": seconds},
    )
    sizes = [cost.page_bytes / 1e6 for cost in costs]
    yield SpeedRow(
        name="report.page", a=f"{a}: report.html", unit="MB", result=estimate(sizes), target=PAGE_TARGET, samples={"mb": sizes}
    )
    peaks = [cost.peak_bytes / 1e6 for cost in costs]
    yield SpeedRow(
        name="report.memory", a=f"{a}: peak resident memory", unit="MB", result=estimate(peaks), samples={"peak_mb": peaks}
    )
