"""What an adapter costs beside its framework: the trial span under tuneoff over that of a bare best-practice script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import FRAMEWORKS, SYNE_PRINTED, Framework, Side, run_bare, run_tuneoff, why_missing
from benchmarks.speed.statistics import estimate, ratios, side_by_side

FILL_SECONDS = 6.0  # at least 5 s are asked for; a machine may get faster after the calibration
SLEEP_SECONDS = 1.0
SLEEP_TRIALS = 16
FEWER_PAIRS = 6  # the least that gives a 95 % interval of the median
NULL_TARGET, SLEEP_TARGET = SpeedTarget("<=", 1.10), SpeedTarget("<=", 1.02)
MAX_TRIALS = 50_000
CONTROL = "control"


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row per adapter for `null` trials and one for `sleep` trials of 1 s."""
    frameworks = [framework for framework in FRAMEWORKS if framework.adapter in settings.adapters]
    for framework in frameworks:
        yield _guarded(_null_row, framework, f"adapter_cost.{framework.adapter}.null", NULL_TARGET, settings)
    if SYNE_PRINTED.adapter in settings.adapters:
        yield _guarded(_null_row, SYNE_PRINTED, f"adapter_cost.{SYNE_PRINTED.adapter}.null.printed", None, settings)
    for framework in frameworks:
        yield _guarded(_sleep_row, framework, f"adapter_cost.{framework.adapter}.sleep", SLEEP_TARGET, settings)


_Maker = Callable[[Framework, str, SpeedTarget | None, Settings], SpeedRow]


def _guarded(make: _Maker, framework: Framework, name: str, target: SpeedTarget | None, settings: Settings) -> SpeedRow:
    a, b = _what(framework)
    reason = why_missing(framework)
    if reason is None:
        try:
            return make(framework, name, target, settings)
        except MeasurementError as error:
            reason = str(error)
    return skipped(name, a, reason, b, target)


def _what(framework: Framework) -> tuple[str, str]:
    return (
        f"trial span of tuneoff with {framework.adapter}, 2 workers, no processor limit on either side",
        f"bare script: {framework.bare}",
    )


def _null_row(framework: Framework, name: str, target: SpeedTarget | None, settings: Settings) -> SpeedRow:
    trials = _trials_that_fill(framework, settings)
    pairs = settings.pairs if target is not None else min(settings.pairs, FEWER_PAIRS)
    return _pairs(
        name,
        framework,
        target,
        trials,
        pairs,
        lambda: run_tuneoff(framework.adapter, "null", trials, settings),
        lambda: run_bare(framework, trials, 0.0, settings),
        settings,
    )


def _sleep_row(framework: Framework, name: str, target: SpeedTarget | None, settings: Settings) -> SpeedRow:
    trials = 4 if settings.is_quick else SLEEP_TRIALS
    return _pairs(
        name,
        framework,
        target,
        trials,
        min(settings.pairs, FEWER_PAIRS),
        lambda: run_tuneoff(framework.adapter, "sleep", trials, settings, options={"epoch_seconds": SLEEP_SECONDS}),
        lambda: run_bare(framework, trials, SLEEP_SECONDS, settings),
        settings,
    )


def _pairs(
    name: str,
    framework: Framework,
    target: SpeedTarget | None,
    trials: int,
    pairs: int,
    tuneoff: Callable[[], Side],
    bare: Callable[[], Side],
    settings: Settings,
) -> SpeedRow:
    """Measure tuneoff, the bare script, and the bare script once more as control, interleaved."""
    sides = side_by_side(
        {"tuneoff": tuneoff, "bare": bare, CONTROL: bare},
        pairs,
        lambda number, side, run: settings.say(f"  {name}: pair {number + 1}/{pairs}, {side} {run.span_seconds:.3f} s"),
    )
    spans = {side: [run.span_seconds for run in runs] for side, runs in sides.items()}
    used = {side: [run.cpu_seconds for run in runs] for side, runs in sides.items()}
    a, b = _what(framework)
    medians = {side: estimate(values).value for side, values in spans.items()}
    return SpeedRow(
        name=name,
        a=a,
        b=b,
        result=estimate(ratios(spans["tuneoff"], spans["bare"])),
        control=estimate(ratios(spans[CONTROL], spans["bare"])),
        target=target,
        figures={
            "A s": medians["tuneoff"],
            "B s": medians["bare"],
            "trials": trials,
            "A ms per trial": medians["tuneoff"] / trials * 1e3,
            "B ms per trial": medians["bare"] / trials * 1e3,
            "A - B ms per trial": (medians["tuneoff"] - medians["bare"]) / trials * 1e3,
            "A CPU s": estimate(used["tuneoff"]).value,
            "B CPU s": estimate(used["bare"]).value,
        },
        samples={
            f"{side}_{what}_seconds": values for what, of in (("span", spans), ("cpu", used)) for side, values in of.items()
        },
        note=framework.note,
    )


def _trials_that_fill(framework: Framework, settings: Settings) -> int:
    """Return how many null trials keep the slower side busy for `FILL_SECONDS`."""
    trials = framework.first_guess
    if settings.is_quick:
        return trials
    for _ in range(5):
        slower = max(
            run_tuneoff(framework.adapter, "null", trials, settings).span_seconds,
            run_bare(framework, trials, 0.0, settings).span_seconds,
        )
        settings.say(f"  {framework.adapter}: {trials} null trials take {slower:.2f} s")
        if slower >= FILL_SECONDS:
            break
        trials = min(MAX_TRIALS, math.ceil(trials * min(20.0, max(1.1, 1.05 * FILL_SECONDS / slower))))
    return trials
