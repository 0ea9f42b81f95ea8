"""What tuneoff adds to a run beyond the framework's own start and end: the whole of a short run, less that of the bare script."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import FRAMEWORKS, SYNE_PRINTED, Framework, run_bare, run_tuneoff, why_missing
from benchmarks.speed.statistics import estimate, side_by_side

TRIALS = 4
PAIRS = 6
TARGET = SpeedTarget("<=", 1.5)


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row per adapter; its figure is A - B in seconds."""
    for framework in FRAMEWORKS:
        if framework.adapter in settings.adapters:
            # the Reporter's import would make the bare trials slower than tuneoff's and flatter the difference
            yield _row(SYNE_PRINTED if framework.adapter == SYNE_PRINTED.adapter else framework, settings)


def _row(framework: Framework, settings: Settings) -> SpeedRow:
    name = f"fixed_cost.{framework.adapter}"
    a = f"A - B. Supervision and record of a run of {TRIALS} null trials with {framework.adapter}, test step included"
    b = f"whole process of the bare script, {TRIALS} null trials: {framework.bare}"
    reason = why_missing(framework)
    if reason is not None:
        return skipped(name, a, reason, b, TARGET)
    pairs = settings.repeats(PAIRS)
    makers = {
        "tuneoff": lambda: run_tuneoff(framework.adapter, "null", TRIALS, settings),
        "bare": lambda: run_bare(framework, TRIALS, 0.0, settings),
    }
    try:
        sides = side_by_side(
            makers,
            pairs,
            lambda number, side, run: settings.say(f"  {name}: pair {number + 1}/{pairs}, {side} {run.whole_seconds:.2f} s"),
        )
    except MeasurementError as error:
        return skipped(name, a, str(error), b, TARGET)
    tuneoff, bare = sides["tuneoff"], sides["bare"]
    added = [ours.whole_seconds - theirs.whole_seconds for ours, theirs in zip(tuneoff, bare, strict=True)]
    outside = [
        (ours.whole_seconds - ours.span_seconds) - (theirs.whole_seconds - theirs.span_seconds)
        for ours, theirs in zip(tuneoff, bare, strict=True)
    ]
    steps = {
        f"step {step} s": estimate([run.details["steps_seconds"][step] for run in tuneoff]).value
        for step in tuneoff[0].details["steps_seconds"]
    }
    return SpeedRow(
        name=name,
        a=a,
        b=b,
        unit="s",
        result=estimate(added),
        target=TARGET,
        figures={
            "A s": estimate([run.whole_seconds for run in tuneoff]).value,
            "B s": estimate([run.whole_seconds for run in bare]).value,
            "A - B outside the trial span s": estimate(outside).value,
            **steps,
        },
        samples={
            "tuneoff_seconds": [run.whole_seconds for run in tuneoff],
            "bare_seconds": [run.whole_seconds for run in bare],
            "tuneoff_span_seconds": [run.span_seconds for run in tuneoff],
            "bare_span_seconds": [run.span_seconds for run in bare],
        },
    )
