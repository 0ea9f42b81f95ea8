"""How long a trial takes to start where the adapter keeps its workers: from its submission until data and model are there."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import FRAMEWORKS, run_tuneoff, why_missing
from benchmarks.speed.statistics import estimate

ADAPTERS = ("serial", "optuna")
TRIALS = 40
RUNS = 3
BOUND = 0.95  # the quantile that stands for "at most"
TARGET = SpeedTarget("<=", 100.0)


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row per adapter: the 95 % quantile over all trials but the first of each worker, in milliseconds."""
    for framework in FRAMEWORKS:
        if framework.adapter in ADAPTERS and framework.adapter in settings.adapters:
            yield _row(framework.adapter, why_missing(framework), settings)


def _row(adapter: str, reason: str | None, settings: Settings) -> SpeedRow:
    name = f"trial_start.{adapter}"
    a = (
        f"submission to data and model loaded, mnist_mlp (torch) on digits with {adapter}; "
        "95 % quantile, without the first trial of each worker"
    )
    starts: list[float] = []
    deliveries: list[float] = []
    firsts: list[float] = []
    try:
        for number in range(settings.repeats(RUNS)) if reason is None else ():
            side = run_tuneoff(adapter, "mnist_mlp", TRIALS, settings, options={"dataset": "digits"}, own_space=True)
            seen: set[int] = set()
            for pid, submitted, started, loaded, _ in side.details["trials"]:
                if pid in seen:
                    starts.append((loaded - submitted) / 1e6)
                    deliveries.append((started - submitted) / 1e6)
                else:
                    seen.add(pid)
                    firsts.append((loaded - submitted) / 1e6)
            settings.say(f"  {name}: run {number + 1}, median so far {estimate(starts).value:.2f} ms")
    except MeasurementError as error:
        reason = str(error)
    if reason is not None or not starts:
        return skipped(name, a, reason or "no trial followed another", target=TARGET)
    return SpeedRow(
        name=name,
        a=a,
        unit="ms",
        result=estimate(starts, at=BOUND),
        target=TARGET,
        figures={
            "median ms": estimate(starts).value,
            "largest ms": max(starts),
            "median until the trial's code runs ms": estimate(deliveries).value,
            "first trial of a worker, median ms": estimate(firsts).value,
        },
        samples={"start_ms": starts, "delivery_ms": deliveries, "first_ms": firsts},
    )
