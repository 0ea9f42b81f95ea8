"""What the user waits for: the whole of `tuneoff run` over the whole of a bare script with the same trials and framework."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.speed.bare.objective import K_HIGH, WORKERS, X_HIGH, X_LOW
from benchmarks.speed.child import MeasurementError, run_child, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import FRAMEWORKS, why_missing
from benchmarks.speed.statistics import estimate, ratios, side_by_side
from tuneoff.measure.stored import read_runs

TRIALS, EPOCHS = 1500, 3
PAIRS = 6
TARGET = SpeedTarget("<=", 1.25)
A = f"tuneoff run of {TRIALS} null trials of {EPOCHS} epochs with optuna, {WORKERS} workers, from the command to its exit"
PARTS = ("A deploy to un-deploy s", "A start of the command and answer s")


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield one row; its figures tell where the command's time goes."""
    framework = next(framework for framework in FRAMEWORKS if framework.adapter == "optuna")
    name, b = "whole_command.optuna", f"whole process of the bare script, the same trials: {framework.bare}"
    reason = why_missing(framework)
    if reason is not None:
        yield skipped(name, A, reason, b, TARGET)
        return
    trials = 60 if settings.is_quick else TRIALS
    makers = {
        "tuneoff": lambda: _tuneoff(trials, settings.folder),
        "bare": lambda: _bare(framework.module, trials, settings.folder),
    }
    pairs = settings.repeats(PAIRS)
    try:
        sides = side_by_side(
            makers,
            pairs,
            lambda number, side, parts: settings.say(f"  {name}: pair {number + 1}/{pairs}, {side} {sum(parts):.2f} s"),
        )
    except MeasurementError as error:
        yield skipped(name, A, str(error), b, TARGET)
        return
    ours, theirs = ([sum(parts) for parts in sides[side]] for side in ("tuneoff", "bare"))
    medians = {part: estimate([parts[index] for parts in sides["tuneoff"]]).value for index, part in enumerate(PARTS)}
    yield SpeedRow(
        name=name,
        a=A,
        b=b,
        result=estimate(ratios(ours, theirs)),
        target=TARGET,
        figures={"A s": estimate(ours).value, "B s": estimate(theirs).value, **medians},
        samples={"tuneoff_seconds": ours, "bare_seconds": theirs},
    )


def _tuneoff(trials: int, folder: Path) -> tuple[float, ...]:
    """Run the command; return its seconds in the job, and before and after it."""
    with tempfile.TemporaryDirectory(prefix="tuneoff-", dir=folder) as temporary:
        file, results = Path(temporary) / "whole_command.yaml", Path(temporary) / "results"
        content = {
            "name": "whole_command",
            "workload": "null",
            "search_space": {
                "x": {"type": "float", "low": X_LOW, "high": X_HIGH, "log": True},
                "y": {"type": "float", "low": 0.0, "high": 1.0},
                "k": {"type": "int", "low": 0, "high": K_HIGH},
            },
            "sampler": "random",
            "budget": {"trials": trials, "epochs_per_trial": EPOCHS},
            "workers": {"count": WORKERS, "cpus": 1},
            "seeds": [0],
            "adapters": ["optuna"],
        }
        file.write_text(json.dumps(content))
        _, wall_seconds = run_child("tuneoff", ["run", str(file), "--output", str(results)])
        (record,) = read_runs(results)
    if record.status != "done":
        raise MeasurementError(f"the run must be done, but is {record.status}: {record.reason}")
    job_seconds = float(record.metrics["time.jct"].value or 0.0) / 1e3
    return job_seconds, wall_seconds - job_seconds


def _bare(module: str, trials: int, folder: Path) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory(prefix="bare-", dir=folder) as temporary:
        return (run_module(f"benchmarks.speed.bare.{module}", [temporary, str(trials), "0", str(EPOCHS)])[1],)
