"""What Katib's emulation costs: per null trial against the bare processes of the same pods, and once per run."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.row import SpeedRow, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import KATIB, Side, run_bare, run_tuneoff, why_missing
from benchmarks.speed.specs import WORKERS
from benchmarks.speed.statistics import estimate, ratios, side_by_side

TRIALS = 100
FEW = 4  # trials of the run whose fixed cost is looked at
PAIRS = 6  # the least that gives a 95 % interval of the median
CONTROL = "control"
RATIO, PER_TRIAL, FIXED = "katib_cost.null", "katib_cost.per_trial", "katib_cost.fixed"
A, B = "trial span of tuneoff with katib@emulated, 2 workers, null trials", f"bare processes: {KATIB.bare}"
NOTE = "Each trial is a process on both sides: B is what starting Python and importing tuneoff takes, A - B is the emulation."


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield the ratio, the milliseconds per null trial, and the seconds of a run that are no trial. None has a target."""
    if KATIB.adapter not in settings.adapters:
        return
    reason = why_missing(KATIB)
    if reason is None:
        try:
            yield from _per_trial(settings)
            yield _fixed(settings)
            return
        except MeasurementError as error:
            reason = str(error)
    yield skipped(RATIO, A, reason, B)


def _run(trials: int, settings: Settings) -> Side:
    return run_tuneoff(KATIB.adapter, "null", trials, settings, platform="emulated")


def _per_trial(settings: Settings) -> Iterator[SpeedRow]:
    trials = KATIB.first_guess if settings.is_quick else TRIALS
    pairs = settings.repeats(PAIRS)
    makers = {
        "tuneoff": lambda: _run(trials, settings),
        "bare": lambda: run_bare(KATIB, trials, 0.0, settings),
        CONTROL: lambda: run_bare(KATIB, trials, 0.0, settings),
    }
    sides = side_by_side(
        makers,
        pairs,
        lambda number, side, run: settings.say(f"  {RATIO}: pair {number + 1}/{pairs}, {side} {run.span_seconds:.3f} s"),
    )
    spans = {side: [run.span_seconds for run in runs] for side, runs in sides.items()}
    slot_ms = {side: [span * WORKERS / trials * 1e3 for span in values] for side, values in spans.items()}
    medians = {side: estimate(values).value for side, values in slot_ms.items()}
    added = [ours - theirs for ours, theirs in zip(slot_ms["tuneoff"], slot_ms["bare"], strict=True)]
    figures = {
        "A ms": medians["tuneoff"],
        "B ms": medians["bare"],
        "A - B ms": estimate(added).value,
        "trials": trials,
        "span of 2 workers ms per trial": medians["tuneoff"] / WORKERS,
    }
    yield SpeedRow(
        name=RATIO,
        a=A,
        b=B,
        result=estimate(ratios(spans["tuneoff"], spans["bare"])),
        control=estimate(ratios(spans[CONTROL], spans["bare"])),
        figures=figures,
        samples={f"{side}_span_seconds": values for side, values in spans.items()},
        note=NOTE,
    )
    yield SpeedRow(
        name=PER_TRIAL,
        a="overhead per null trial, its process's start included: slot time of the whole span, as a null trial itself takes none",
        b=B,
        unit="ms",
        result=estimate(slot_ms["tuneoff"]),
        figures=figures,
        samples={f"{side}_slot_ms": values for side, values in slot_ms.items()},
    )


def _fixed(settings: Settings) -> SpeedRow:
    runs = []
    for number in range(repeats := settings.repeats(PAIRS)):
        runs.append(_run(FEW, settings))
        settings.say(f"  {FIXED}: run {number + 1}/{repeats}, {_outside(runs[-1]):.2f} s")
    steps = {
        f"step {step} s": estimate([run.details["steps_seconds"][step] for run in runs]).value
        for step in runs[0].details["steps_seconds"]
    }
    return SpeedRow(
        name=FIXED,
        a=f"start of deploy to end of un-deploy, less the trial span: a run of {FEW} null trials with katib@emulated",
        unit="s",
        result=estimate([_outside(run) for run in runs]),
        figures={
            "deploy to un-deploy s": estimate([run.details["lifecycle_seconds"] for run in runs]).value,
            "trial span s": estimate([run.span_seconds for run in runs]).value,
            **steps,
        },
        samples={"seconds": [_outside(run) for run in runs]},
    )


def _outside(run: Side) -> float:
    return float(run.details["lifecycle_seconds"]) - run.span_seconds
