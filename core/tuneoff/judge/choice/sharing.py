"""Several jobs at the same time: by how much each is slower than one alone, and how equally they come on.

Fairness is Jain's index of the rates of the copies, 1 over their job times: 100 % where all are equal, 100/n % where one has all.

Source: R. Jain, D. Chiu, W. Hawe, A quantitative measure of fairness and discrimination, DEC-TR-301 (1984).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tuneoff.base.format import counted, listed, times_text
from tuneoff.experiment.metric_catalogue import QUESTIONS
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.choice import Row
from tuneoff.judge.groups import Group
from tuneoff.judge.results import Run, value
from tuneoff.judge.stats.location import Interval
from tuneoff.record.metric_value import metric_value, missing

SLOWDOWN, FAIRNESS, JOB = "copies.slowdown", "copies.fairness", QUESTIONS["time"]
LATEST = 0.1  # of the shortest job: a copy that begins later than that after the first had no company for long
NOT_TOGETHER = f"its copies did not begin at the same time: the last came over {LATEST:.0%} of the shortest job after the first"
NOT_ALONE = "no job of its seed that had the machine alone is done"


def jain(rates: Sequence[float]) -> float:
    """Return Jain's index of n rates above 0 in %, from 100/n to 100."""
    return 100 * sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def with_sharing(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that have jobs at the same time, with the slowdown and the fairness of each seed in all columns."""
    for row in rows:
        groups = [column.group for column in row.columns.values()]
        if all(group.spec.experiment.copies == 1 for group in groups):
            continue
        alone = {
            group.spec.scope_key("copies"): group.estimate(JOB).by_seed for group in groups if group.spec.experiment.copies == 1
        }
        columns = {}
        for text, column in row.columns.items():
            seconds = alone.get(column.group.spec.scope_key("copies"), {})
            runs = tuple(_shared(run, column.group, seconds.get(run.seed)) for run in column.group.runs)
            columns[text] = replace(column, group=replace(column.group, runs=runs))
        yield replace(row, columns=columns)


def _shared(run: Run, group: Group, alone: float | None) -> Run:
    """Return a run with the two figures of its copies; one that failed stands for all of them."""
    copies = group.copies.get(run.seed, (run,))
    failed = next((copy for copy in copies if copy.has_failed), None)
    if failed is not None:
        return failed
    times, why = [time for copy in copies if (time := value(copy, JOB).value)], ""
    if len(times) < len(copies):
        why = "one of its copies has no job time"
    elif not _together(copies, min(times)):
        why = NOT_TOGETHER
    if why:
        return run.with_metrics({SLOWDOWN: missing("x", why), FAIRNESS: missing("%", why)})
    mean = sum(times) / len(times)
    slowdown = metric_value(mean / alone, "x") if alone else missing("x", NOT_ALONE)
    return run.with_metrics({SLOWDOWN: slowdown, FAIRNESS: metric_value(jain([1 / time for time in times]), "%")})


def _together(copies: Sequence[Run], shortest: float) -> bool:
    """Tell whether copies began within `LATEST` of the shortest job, in ms, on one clock."""
    clocks = [copy.record.clock for copy in copies if copy.record is not None and copy.record.clock is not None]
    starts = [clock.start_monotonic_ns for clock in clocks]
    is_one = len({clock.boot_id for clock in clocks}) == 1 and len(clocks) == len(copies)
    return is_one and max(starts) - min(starts) <= LATEST * shortest * 1e6


def sharing_lines(rows: Iterable[Row], margin_percent: float) -> Iterator[str]:
    """Yield how much slower jobs are that share the machine, how fair that is, and why seeds have no such figure.

    `rows`: of `with_sharing`. They share unfairly where their rates surely vary by more than the margin, for the index is
    1 / (1 + variation²).
    """
    fair = 100 / (1 + (margin_percent / 100) ** 2)
    slower, fairness, lacking = [], [], Counter[str]()
    for row in rows:
        shared = [column.group for column in row.columns.values() if column.group.spec.experiment.copies > 1]
        shared.sort(key=lambda group: group.spec.experiment.copies)
        lacking += sum((Counter(group.estimate(FAIRNESS).lacking) for group in shared), Counter())
        if times := list(_medians(shared, SLOWDOWN)):
            slower.append(f"{row.marked} {listed(f'{_times(median)} with {copies}' for copies, median in times)}")
        if shares := list(_medians(shared, FAIRNESS)):
            copies, least = min(shares, key=lambda share: share[1].estimate)
            fairness.append(f"{row.marked} {_percent(least, fair)} with {copies}")
    if slower:
        yield f"Slowdown of a job in its share of the machine, over one with all of it: {'; '.join(slower)}."
    if fairness:
        yield f"Fairness among jobs at the same time, Jain's index, the least: {'; '.join(fairness)}."
    for reason, count in lacking.items():
        yield f"Of jobs at the same time {counted(count, 'seed')} left out: {reason}."


def _medians(groups: Iterable[Group], metric: str) -> Iterator[tuple[int, Interval]]:
    """Yield the number of copies and the median of those groups that have one."""
    for group in groups:
        median = group.median(metric)
        if median is not None and math.isfinite(median.estimate):
            yield group.spec.experiment.copies, median


def _times(slowdown: Interval) -> str:
    ends = (slowdown.low, slowdown.high) if math.isfinite(slowdown.high - slowdown.low) else (slowdown.estimate,) * 2
    return times_text(slowdown.estimate, *ends)


def _percent(fairness: Interval, fair: float) -> str:
    """Return `99.6 % (98.1 to 99.9)`, and whether that is less than `fair`, as enough seeds show."""
    is_known = math.isfinite(fairness.high - fairness.low) and fairness.low != fairness.high
    ends = f" ({fairness.low:.1f} to {fairness.high:.1f})" if is_known else ""
    return f"{fairness.estimate:.1f} %{ends}{', unfair' if fairness.high < fair and fairness.n >= FEWEST_SEEDS else ''}"
