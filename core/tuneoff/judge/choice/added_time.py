"""What a framework adds to each job and to each trial, and from which length of a trial on that is small."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tuneoff.base.clock import MILLISECONDS
from tuneoff.judge.answers.answer import EstimatedGroup
from tuneoff.judge.choice.choice import FURTHEST, SHARES, Added, Length
from tuneoff.judge.stats.interval import Interval
from tuneoff.judge.stats.location import median

PER_TRIAL = "overhead.further_trial"
PER_JOB = (
    "time.deploy",
    "time.setup",
    "time.result_collection",
    "time.undeploy",
    "overhead.job_start",
)  # what a job takes besides its trials and its test


def added(group: EstimatedGroup, confidence: float, longest_trial: float | None, longest_job: float | None) -> Added:
    """Return what a group's runs show; `longest_trial`, `longest_job`: of all that were measured, in s."""
    found = group.estimates[PER_TRIAL].median
    per_trial = found.over(MILLISECONDS) if found is not None and math.isfinite(found.estimate) else None
    values = [group.estimates[name].values for name in PER_JOB]
    totals = [_total(value.value for value in of_run) for of_run in zip(*values, strict=True)]
    known = [total for total in totals if total is not None]
    per_job = median(known, confidence).over(MILLISECONDS) if known else None
    return Added(
        per_job=per_job,
        per_trial=per_trial,
        lengths=_lengths(per_trial, longest_trial),
        job_lengths=_lengths(per_job, longest_job),
    )


def _total(values: Iterable[float | None]) -> float | None:
    """Return a sum in ms; None where a part is missing."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _lengths(added: Interval | None, longest: float | None) -> tuple[Length, ...]:
    return tuple(_length(share, added, longest) for share in SHARES) if added is not None else ()


def _length(share: float, added: Interval, longest: float | None) -> Length:
    seconds, low, high = (max(0.0, value) / share for value in (added.estimate, added.low, added.high))
    is_extrapolated = longest is None or seconds > FURTHEST * longest
    return Length(share=share, seconds=seconds, low=low, high=high, is_extrapolated=is_extrapolated)
