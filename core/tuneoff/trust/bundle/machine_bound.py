"""The columns bound to the machine: times, energy, cost, memory. A ratio in a band, never an equality.

What goes with time is divided by the ratio of the sentinels (the SHA-256 of 32 MiB that every run is preceded by). CPU seconds
are only where the machines differ: on the same one a slow sentinel means other work, which costs no CPU seconds. Inside the
band is REPRODUCED. Outside is DIFFERENT on the same machine where neither run has a flag of a machine at work, else
INCONCLUSIVE: another machine, or one with other work, explains it. INCONCLUSIVE is also what is too short to compare, inside the
band or not: 10 ms of a trial have become 49 on one machine without a flag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.run.machine import PASSING
from tuneoff.trust.bundle.exact import RunPair
from tuneoff.trust.bundle.verdict import ReproducedColumn, ReproductionAnswer

MS_PER_SECOND = 1000.0  # times are in ms
SHORT_TIME_SECONDS = 0.5  # a time that is below this in both
SHORT_RUN_SECONDS = 2.0  # energy, carbon and cost of runs whose `time.jct` is below this in both
BUSY_FLAGS = (*sorted(PASSING), "steal", "too_few_processors")


@dataclass(frozen=True, slots=True)
class Bound:
    """A metric, the widest ratio that counts as the same, when it is scaled by the sentinels, and what may be too short."""

    metric: str
    band: float
    scaled: Literal["always", "across machines", "never"] = "always"
    floor: Literal["its time", "the run", "none"] = "its time"


BOUNDS = (
    Bound("time.jct_without_test", 2.0),
    Bound("time.jct", 2.0),
    Bound("time.deploy", 2.0),
    Bound("time.trial", 2.0),
    Bound("time.test", 2.0),
    Bound("overhead.per_trial", 2.0),
    Bound("energy.cpu_seconds", 1.5, "across machines", "the run"),
    Bound("energy.job", 2.0, floor="the run"),
    Bound("carbon.job", 2.0, floor="the run"),
    Bound("cost.job", 2.0, floor="the run"),
    Bound("memory.peak_rss", 1.25, "never", "none"),
)


def machine_columns(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield the machine-bound columns of a run; metrics that one of both lacks are left out."""
    speed = _speed(pair)
    excuse = _excuse(pair, speed)
    for bound in BOUNDS:
        theirs, ours = (run.metrics.get(bound.metric) for run in (pair.bundle, pair.here))
        if theirs is not None and ours is not None and theirs.value and ours.value:
            yield _column(pair, bound, theirs, ours, speed, excuse)


def _column(
    pair: RunPair, bound: Bound, theirs: MetricValue, ours: MetricValue, speed: float | None, excuse: str | None
) -> ReproducedColumn:
    assert theirs.value is not None
    assert ours.value is not None
    raw = ours.value / theirs.value
    is_scaled = bound.scaled == "always" or (bound.scaled == "across machines" and not pair.same_machine)
    scale = speed if is_scaled and speed is not None else 1.0
    ratio = raw / scale
    scaled = f", {ratio:.2f} by the sentinel's {scale:.2f}" if scale != 1.0 else ""
    text = f"{ours.value:.4g} {ours.unit} here, {theirs.value:.4g} in the bundle: ratio {raw:.2f}{scaled}"
    band = f"{1 / bound.band:.2g} to {bound.band:g}"
    if _source(theirs) != _source(ours):
        answer, why = (
            ReproductionAnswer.INCONCLUSIVE,
            f"{text}; another meter: {_source(ours)} here, {_source(theirs)} in the bundle",
        )
    elif (short := _short(pair, bound)) is not None:
        answer, why = ReproductionAnswer.INCONCLUSIVE, f"{text}; too short to compare: {short}"
    elif 1 / bound.band <= ratio <= bound.band:
        answer, why = ReproductionAnswer.REPRODUCED, f"{text}; in the band {band}"
    elif excuse is not None:
        answer, why = ReproductionAnswer.INCONCLUSIVE, f"{text}; outside {band}, but {excuse}"
    else:
        answer, why = ReproductionAnswer.DIFFERENT, f"{text}; outside {band} on the same machine with no sign of other work"
    return ReproducedColumn(name=bound.metric, tolerance="machine", where=pair.where, answer=answer, why=why, decides=False)


def _short(pair: RunPair, bound: Bound) -> str | None:
    """Return which floor both values are below, in words; None: they are long enough, or the runs' lengths are not known."""
    if bound.floor == "none":
        return None
    name, floor = (bound.metric, SHORT_TIME_SECONDS) if bound.floor == "its time" else ("time.jct", SHORT_RUN_SECONDS)
    times = [run.metrics.get(name) for run in (pair.bundle, pair.here)]
    if any(time is None or time.value is None or time.value / MS_PER_SECOND >= floor for time in times):
        return None
    return f"{'both are' if bound.floor == 'its time' else 'time.jct of both is'} below {floor:g} s"


def _speed(pair: RunPair) -> float | None:
    """Return how much longer the sentinel took here."""
    theirs, ours = (_sentinel(run) for run in (pair.bundle, pair.here))
    return ours / theirs if ours and theirs else None


def _sentinel(run: RunRecord) -> float | None:
    before = run.environment.get("machine_before")
    found = before.get("sentinel_ns") if isinstance(before, dict) else None
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _excuse(pair: RunPair, speed: float | None) -> str | None:
    if not pair.same_machine:
        return "this is another machine"
    flags = sorted({flag.name for run in (pair.bundle, pair.here) for flag in run.flags} & set(BUSY_FLAGS))
    if flags:
        return f"a machine had other work (flags {', '.join(flags)})"
    return "a run has no sentinel" if speed is None else None


def _source(metric: MetricValue) -> str:
    """Return by what it was metered; a model's coefficients are in its source."""
    return f"{metric.kind}, {' '.join(metric.source.split())}"
