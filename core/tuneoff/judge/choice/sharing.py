"""Several jobs at the same time: by how much each is slower than one alone, and how equally they come on.

Fairness is Jain's index of the rates of the copies, 1 over their job times: 100 % where all are equal, 100/n % where one has all.

Source: R. Jain, D. Chiu, W. Hawe, A quantitative measure of fairness and discrimination, DEC-TR-301 (1984).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tuneoff.base.format import listed, times_text
from tuneoff.experiment.metric_catalogue import QUESTIONS
from tuneoff.judge.choice.choice import Row, ScalingCurve
from tuneoff.judge.groups import Group
from tuneoff.judge.results import Run, Scope, value
from tuneoff.judge.stats.location import Interval
from tuneoff.record.metric_value import MetricValue, metric_value, missing

SLOWDOWN, FAIRNESS, JOB = "copies.slowdown", "copies.fairness", QUESTIONS["time"]
LATEST = 0.1  # of the shortest job: a copy that begins later than that after the first had no company for long
NOT_TOGETHER = f"its copies did not begin at the same time: the last came over {LATEST:.0%} of the shortest job after the first"


def jain(rates: Sequence[float]) -> float:
    """Return Jain's index of n rates above 0 in %, from 100/n to 100."""
    return 100 * sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def with_sharing(rows: Iterable[Row], specs: Iterable[Scope]) -> Iterator[Row]:
    """Yield the rows that have a column of one job alone, with the slowdown and the fairness of each seed in all columns."""
    scopes = [scope.text for scope in specs]
    for row in rows:
        columns = {text: row.columns[text] for text in scopes if text in row.columns}
        alone = next((column.group for column in columns.values() if column.group.spec.experiment.copies == 1), None)
        if alone is None or len(columns) < 2:
            continue
        seconds = alone.estimate(JOB).by_seed
        for text, column in columns.items():
            runs = tuple(_shared(run, column.group, seconds.get(run.seed)) for run in column.group.runs)
            columns[text] = replace(column, group=replace(column.group, runs=runs))
        yield replace(row, columns=columns)


def _shared(run: Run, group: Group, alone: float | None) -> Run:
    """Return a run with the two figures of its copies; one that failed stands for all of them."""
    copies = group.copies.get(run.seed, (run,))
    failed = next((copy for copy in copies if copy.has_failed), None)
    if failed is not None:
        return failed
    if run.record is None:
        return run
    times = [time for copy in copies if (time := value(copy, JOB).value)]
    figures: dict[str, MetricValue]
    if len(times) < len(copies) or not alone:
        why = "one of its copies has no job time" if alone else "no job of its seed that had the machine alone is done"
        figures = {SLOWDOWN: missing("x", why), FAIRNESS: missing("%", why)}
    elif not _together(copies, min(times)):
        figures = {SLOWDOWN: missing("x", NOT_TOGETHER), FAIRNESS: missing("%", NOT_TOGETHER)}
    else:
        mean = sum(times) / len(times)
        figures = {SLOWDOWN: metric_value(mean / alone, "x"), FAIRNESS: metric_value(jain([1 / time for time in times]), "%")}
    return replace(run, record=replace(run.record, metrics={**run.record.metrics, **figures}))


def _together(copies: Sequence[Run], shortest: float) -> bool:
    """Tell whether copies began within `LATEST` of the shortest job, in ms, on one clock."""
    clocks = [copy.record.clock for copy in copies if copy.record is not None and copy.record.clock is not None]
    starts = [clock.start_monotonic_ns for clock in clocks]
    is_one = len({clock.boot_id for clock in clocks}) == 1 and len(clocks) == len(copies)
    return is_one and max(starts) - min(starts) <= LATEST * shortest * 1e6


def sharing_lines(curves: Iterable[ScalingCurve], rows: Iterable[Row], margin_percent: float) -> Iterator[str]:
    """Yield how much slower jobs are that share the machine, and how fair that is.

    They share unfairly where their rates surely vary by more than the margin, for the index is 1 / (1 + variation²).
    """
    names = {row.label: row.marked for row in rows}
    fair = 100 / (1 + (margin_percent / 100) ** 2)
    for curve in curves:
        shared = {label: [point for point in points if point.x > 1] for label, points in curve.lines.items()}
        if curve.metric == SLOWDOWN:
            texts = [
                f"{names[label]} {listed(f'{_times(point.value)} with {point.x:.0f}' for point in points)}"
                for label, points in shared.items()
                if points
            ]
            yield f"Slowdown of a job by others at the same time, over one alone: {'; '.join(texts)}."
        elif curve.metric == FAIRNESS:
            least = {label: min(points, key=lambda point: point.value.estimate) for label, points in shared.items() if points}
            texts = [f"{names[label]} {_percent(point.value, fair)} with {point.x:.0f}" for label, point in least.items()]
            yield f"Fairness among them, Jain's index, the least: {'; '.join(texts)}."


def _times(slowdown: Interval) -> str:
    ends = (slowdown.low, slowdown.high) if math.isfinite(slowdown.high - slowdown.low) else (slowdown.estimate,) * 2
    return times_text(slowdown.estimate, *ends)


def _percent(fairness: Interval, fair: float) -> str:
    """Return `99.6 % (98.1 to 99.9)`, and whether that is surely less than `fair`."""
    is_known = math.isfinite(fairness.high - fairness.low) and fairness.low != fairness.high
    ends = f" ({fairness.low:.1f} to {fairness.high:.1f})" if is_known else ""
    return f"{fairness.estimate:.1f} %{ends}{', unfair' if fairness.high < fair else ''}"
