"""What it costs mnist_mlp to time its phases, and whether the items per second that it reports are those of a bare loop."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate, ratios
from benchmarks.speed.training import why_not

ROUNDS = {"digits": 400, "mnist": 25}
PHASES_TARGET, ITEMS_TARGET = SpeedTarget("<=", 1.01), SpeedTarget(">=", 0.98)


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row for the phases and one for the items of each data set, in CPU time, sides interleaved."""
    for dataset, rounds in ROUNDS.items():
        a, b = f"an epoch of {dataset} with `phases: true`, CPU time", "the same without"
        counted, bare = f"items per CPU second of an epoch of {dataset}, as a trial reports them", "a loop that counts for itself"
        reason, speeds = why_not() if dataset == "mnist" else None, dict[str, list[float]]()
        if reason is None:
            try:
                order = json.dumps({"dataset": dataset, "rounds": settings.repeats(rounds)})
                speeds, _ = run_module("benchmarks.speed.inside_probe", [order])
            except MeasurementError as error:
                reason = str(error)
        for name, left, right, what, against, target in (
            (f"inside.phases.{dataset}", "on", "off", a, b, PHASES_TARGET),
            (f"inside.items.{dataset}", "counted", "bare", counted, bare, ITEMS_TARGET),
        ):
            if reason is not None:
                yield skipped(name, what, reason, against, target)
                continue
            yield SpeedRow(
                name=name,
                a=what,
                b=against,
                result=estimate(ratios(speeds[left], speeds[right])),
                target=target,
                control=estimate(ratios(speeds[f"{right}_again"], speeds[right])),
                figures={"A": estimate(speeds[left]).value, "B": estimate(speeds[right]).value},
                samples={side: speeds[side] for side in (left, right)},
            )
