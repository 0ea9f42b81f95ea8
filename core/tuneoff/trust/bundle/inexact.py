"""The columns that need not be equal: quality, values of equal configurations, and what is bound to the machine.

**Quality of a cell** (an adapter's runs that differ in the seed alone). With n seeds in the bundle, their mean m and standard
deviation s, and k runs here: a mean of k further runs lies in m ± t · s · sqrt(1/n + 1/k) in 95 of 100 cases (t of n − 1 degrees
of freedom), if they are of the same kind. Outside is DIFFERENT, from 3 seeds on. Inside is REPRODUCED from 5 seeds on: the
interval of fewer is so wide that almost anything lies in it. Values that are equal bit for bit need no interval.

**Values of equal configurations**, where bits need not be equal. With d the differences here − bundle over the configurations
that both completed: the 95 % interval of their mean against a margin of half the standard deviation of the bundle's values.
Inside the margin is REPRODUCED, wholly outside of it is DIFFERENT, anything else is INCONCLUSIVE.

**Bound to the machine** are times, energy, cost, memory: a ratio in a band, never an equality.
What goes with time is divided by the ratio of the sentinels (the SHA-256 of 32 MiB that every run is preceded by). CPU seconds
are only where the machines differ: on the same one a slow sentinel means other work, which costs no CPU seconds. Inside the
band is REPRODUCED. Outside is DIFFERENT on the same machine where neither run has a flag of a machine at work, else
INCONCLUSIVE: another machine, or one with other work, explains it. INCONCLUSIVE is also what is too short to compare, inside the
band or not: 10 ms of a trial have become 49 on one machine without a flag.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tuneoff.base.format import counted
from tuneoff.judge.comparison.environments import sentinel_ratio
from tuneoff.judge.stats.location import students_t_quantile
from tuneoff.judge.stats.paired import ROUNDING
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.run.machine import PASSING
from tuneoff.trust.bundle.exact import RunPair, common_trials
from tuneoff.trust.bundle.verdict import ReproducedColumn, ReproductionAnswer

QUALITIES = ("quality.validation", "quality.test")
LEAST_TO_DIFFER = 3  # seeds of the bundle
LEAST_TO_AGREE = 5
MARGIN = 0.5  # standard deviations of the bundle's values
MS_PER_SECOND = 1000.0  # times are in ms
SHORT_TIME_SECONDS = 0.5  # a time that is below this in both
SHORT_RUN_SECONDS = 2.0  # energy, carbon and cost of runs whose `time.jct` is below this in both
BUSY_FLAGS = (*sorted(PASSING), "steal", "too_few_processors")


def quality_columns(where: str, bundle: Sequence[RunRecord], here: Sequence[RunRecord]) -> Iterator[ReproducedColumn]:
    """Yield the quality of a cell's runs here against all its runs in the bundle."""
    same = {run.run_id for run in here}
    for name in QUALITIES:
        ours = _values(here, name)
        theirs = _values(bundle, name)
        paired = _values([run for run in bundle if run.run_id in same], name)
        if ours and theirs:
            answer, why = _quality(theirs, ours, is_equal=sorted(paired) == sorted(ours))
            yield ReproducedColumn(name=name, tolerance="statistical", where=where, answer=answer, why=why)


def _quality(theirs: Sequence[float], ours: Sequence[float], *, is_equal: bool) -> tuple[ReproductionAnswer, str]:
    mean = statistics.fmean(ours)
    if is_equal:
        return ReproductionAnswer.REPRODUCED, f"equal: {', '.join(f'{value:.6g}' for value in ours)}"
    n, k = len(theirs), len(ours)
    seeds = counted(n, "seed")
    if n < LEAST_TO_DIFFER:
        why = f"{mean:.6g} here, {statistics.fmean(theirs):.6g} in the bundle, whose {seeds} tell no spread (it takes 3)"
        return ReproductionAnswer.INCONCLUSIVE, why
    spread, centre = statistics.stdev(theirs), statistics.fmean(theirs)
    if n < LEAST_TO_AGREE and spread <= ROUNDING * max(map(abs, theirs)):
        why = f"{mean:.6g} here, {centre:.6g} in each of the bundle's {seeds}, too few to tell a spread (it takes 5)"
        return ReproductionAnswer.INCONCLUSIVE, why
    half = students_t_quantile(0.975, n - 1) * spread * math.sqrt(1 / n + 1 / k)
    interval = f"[{centre - half:.6g}, {centre + half:.6g}], where 95 % of such runs lie by the bundle's {seeds}"
    if abs(mean - centre) > half:
        return ReproductionAnswer.DIFFERENT, f"{mean:.6g} here is outside {interval}"
    if n < LEAST_TO_AGREE:
        return ReproductionAnswer.INCONCLUSIVE, f"{mean:.6g} here is in {interval}, too few to call it equal (it takes 5)"
    return ReproductionAnswer.REPRODUCED, f"{mean:.6g} here is in {interval}"


def value_columns(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield the values of equal configurations, where their bits differ for a known reason."""
    values = [
        (theirs.value, ours.value)
        for theirs, ours in common_trials(pair)
        if theirs.value is not None and ours.value is not None and theirs.state == ours.state == "completed"
    ]
    if pair.bits_excuse is None or not values or all(theirs == ours for theirs, ours in values):
        return
    answer, why = _paired(values)
    name = "values of equal configurations"
    yield ReproducedColumn(name=name, tolerance="statistical", where=pair.where, answer=answer, why=why)


def _paired(values: Sequence[tuple[float, float]]) -> tuple[ReproductionAnswer, str]:
    n = len(values)
    if n < 2:
        return ReproductionAnswer.INCONCLUSIVE, "one configuration tells no spread"
    gaps = [ours - theirs for theirs, ours in values]
    scale = max(abs(value) for pair in values for value in pair)
    if n < LEAST_TO_AGREE and statistics.stdev(gaps) <= ROUNDING * scale:
        why = f"{n} configurations differ by the same {gaps[0]:.3g}: too few to tell a spread (it takes {LEAST_TO_AGREE})"
        return ReproductionAnswer.INCONCLUSIVE, why
    mean, half = statistics.fmean(gaps), students_t_quantile(0.975, n - 1) * statistics.stdev(gaps) / math.sqrt(n)
    margin = MARGIN * statistics.stdev([theirs for theirs, _ in values])
    interval = f"mean difference of {n} configurations {mean:.3g} ± {half:.3g}, margin {margin:.3g}"
    if mean - half >= -margin and mean + half <= margin:
        return ReproductionAnswer.REPRODUCED, interval
    if mean - half > margin or mean + half < -margin:
        return ReproductionAnswer.DIFFERENT, interval
    return ReproductionAnswer.INCONCLUSIVE, interval


def _values(runs: Sequence[RunRecord], name: str) -> list[float]:
    metrics = (run.metrics.get(name) for run in runs)
    return [float(metric.value) for metric in metrics if metric is not None and metric.value is not None]


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
    speed = sentinel_ratio([pair.bundle.environment], [pair.here.environment])  # how much longer the sentinel took here
    flags = sorted({flag.name for run in (pair.bundle, pair.here) for flag in run.flags} & set(BUSY_FLAGS))
    excuse = "a run has no sentinel" if speed is None else None
    if not pair.same_machine:
        excuse = "this is another machine"
    elif flags:
        excuse = f"a machine had other work (flags {', '.join(flags)})"
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


def _source(metric: MetricValue) -> str:
    """Return by what it was metered; a model's coefficients are in its source."""
    return f"{metric.kind}, {' '.join(metric.source.split())}"
