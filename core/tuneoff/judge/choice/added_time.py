"""What a framework adds to each job and to each trial, and from which length of a trial on that is small."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tuneoff.base.clock import MILLISECONDS
from tuneoff.judge.answers.answer import EstimatedGroup
from tuneoff.judge.choice.choice import FURTHEST, SHARES, Added, Length
from tuneoff.judge.stats.interval import Interval
from tuneoff.judge.stats.location import median

PER_TRIAL = "overhead.per_trial"
PER_JOB = (
    "time.deploy",
    "time.setup",
    "time.result_collection",
    "time.undeploy",
)  # what a job takes besides its trials and its test


def added(group: EstimatedGroup, confidence: float, longest_trial: float | None) -> Added:
    """Return what a group's runs show; `longest_trial`: of all that were measured, in s."""
    found = group.estimates[PER_TRIAL].median
    per_trial = found.over(MILLISECONDS) if found is not None and math.isfinite(found.estimate) else None
    values = [group.estimates[name].values for name in PER_JOB]
    totals = [_total(value.value for value in of_run) for of_run in zip(*values, strict=True)]
    known = [total for total in totals if total is not None]
    return Added(
        per_job=median(known, confidence).over(MILLISECONDS) if known else None,
        per_trial=per_trial,
        lengths=tuple(_length(share, per_trial, longest_trial) for share in SHARES) if per_trial is not None else (),
    )


def _total(values: Iterable[float | None]) -> float | None:
    """Return a sum in ms; None where a part is missing."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _length(share: float, per_trial: Interval, longest_trial: float | None) -> Length:
    seconds, low, high = (max(0.0, value) / share for value in (per_trial.estimate, per_trial.low, per_trial.high))
    is_extrapolated = longest_trial is None or seconds > FURTHEST * longest_trial
    return Length(share=share, seconds=seconds, low=low, high=high, is_extrapolated=is_extrapolated)
