"""A metric of a run, or why it has none; the step between two values that it can have; and whom other programs disturbed.

A metric is meant as its experiment means it: what the catalogue leaves to the objective, which has a name and a direction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.files import read_json
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.metric import Scale
from tuneoff.experiment.metric_catalogue import metric as known
from tuneoff.judge.runs import Run
from tuneoff.measure.cost import billed_ns
from tuneoff.measure.incumbent import test_counterpart
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.metric_value import Kind
from tuneoff.workload import Mode

ABSENT = "its record has no such metric"
FEWEST_UNDISTURBED = 6  # pairs: with fewer no difference can be shown at 5 %
LARGEST = 50_000_000  # bytes
BILLED = dict.fromkeys(("cost.job", "cost.per_completed_trial"), "time.jct") | {
    "cost.job_without_test": "time.jct_without_test",
    "cost.per_completed_trial_without_test": "time.jct_without_test",
}  # by whole units of this time
_LOSSES = ("loss", "error", "rmse", "mae", "mse", "perplexity")
_SCORES = ("accuracy", "f1", "auc", "precision", "recall")  # of 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A metric of a run; None with the reason. A failed run has no value and is, in comparisons, worse than any."""

    seed: int
    value: float | None
    kind: Kind | None = None
    reason: str | None = None
    is_done: bool = False  # the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Which of some executions other programs disturbed (flag `disturbed`), and of which nobody knows; by their ids."""

    runs: frozenset[str] = frozenset()
    disturbed: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()  # their samples do not tell

    def __or__(self, other: Disturbance) -> Disturbance:
        """Return the same of the runs of both."""
        return Disturbance(
            runs=self.runs | other.runs, disturbed=self.disturbed | other.disturbed, unknown=self.unknown | other.unknown
        )

    @property
    def text(self) -> str:
        """In words: `3 of 20 runs disturbed`, `3 of 20 runs disturbed, 2 unknown`."""
        unknown = f", {len(self.unknown)} unknown" if self.unknown else ""
        return f"{len(self.disturbed)} of {len(self.runs)} runs disturbed{unknown}"

    def to_json(self) -> dict[str, int]:
        """Return how many there are of each."""
        return {"runs": len(self.runs), "disturbed": len(self.disturbed), "unknown": len(self.unknown)}


def value(run: Run, metric: str) -> Value:
    """Return a metric of a run that is done."""
    record = run.record
    if record is None or record.status != "done":
        return Value(seed=run.seed, value=None, reason=_why(run))
    found = record.metrics.get(metric)
    if found is None:
        return Value(seed=run.seed, value=None, reason=ABSENT, is_done=True)
    return Value(seed=run.seed, value=found.value, kind=found.kind, reason=found.reason_if_null, is_done=True)


def units(runs: Iterable[Run], metrics: Iterable[str]) -> dict[str, str]:
    """Return the unit of each metric, as the first record that has it says."""
    wanted, found = set(metrics), {}
    for run in runs:
        if not wanted:
            break
        for metric in [name for name in wanted if run.record is not None and name in run.record.metrics]:
            found[metric] = run.record.metrics[metric].unit if run.record is not None else ""
            wanted.discard(metric)
    return found


def _why(run: Run) -> str:
    record = run.record
    status, reason = (record.status, record.reason) if record is not None else (run.status, run.reason)
    return f"{status}: {reason}" if reason and reason != status else status


def disturbance(runs: Iterable[Run]) -> Disturbance:
    """Return which of these runs were disturbed; an execution that stands for several runs counts once.

    Runs without a record are left out: nothing rests on them.
    """
    found = {run.record.execution_id: is_disturbed(run) for run in runs if run.record is not None}
    return Disturbance(
        runs=frozenset(found),
        disturbed=frozenset(name for name, one in found.items() if one is True),
        unknown=frozenset(name for name, one in found.items() if one is None),
    )


def is_disturbed(run: Run) -> bool | None:
    """Tell whether other programs disturbed a run; None where its samples do not tell, or there are none."""
    record = run.record
    if record is None:
        return None
    if any(flag.name == DISTURBED for flag in record.flags):
        return True
    share = record.metrics.get(SHARE)
    return None if share is None or share.value is None else False


def why_unknown(runs: Iterable[Run]) -> str:
    """Return why it is unknown of most such runs whether other programs disturbed them."""
    records = {run.record.execution_id: run.record for run in runs if is_disturbed(run) is None and run.record is not None}
    shares = [record.metrics.get(SHARE) for record in records.values()]
    reasons = Counter((share.reason_if_null if share is not None else None) or "no sample tells" for share in shares)
    return reasons.most_common(1)[0][0]


def grid_step(test_result: Path | None) -> float:
    """Return 1 / the number of cases that a test counted, 0 where nothing tells."""
    try:
        told = read_json(test_result, LARGEST) if test_result is not None else {}
        size = sum(int(count) for row in told["details"]["confusion_matrix"] for count in row)
    except (OSError, ValueError, TypeError, LookupError):
        return 0.0
    return 1 / size if size > 0 else 0.0


def billing_step(runs: Iterable[Run], metric: str, prices: Prices | None) -> float:
    """Return the greatest step in USD between two costs that runs of a group can have; 0 where no time is rounded up."""
    costs = ((run, run.record.metrics.get(metric)) for run in runs if run.record is not None)
    steps = (cost.value * billed_share(run, metric, prices) for run, cost in costs if cost is not None and cost.value is not None)
    return max(steps, default=0.0)


def billed_share(run: Run, metric: str, prices: Prices | None) -> float:
    """Return the last unit of a run's billed time as a part of it: all at the minimum, 0 where there is no cost to compare."""
    if value(run, metric).value is None:
        return 0.0
    jct = run.record.metrics.get(BILLED.get(metric, "")) if run.record is not None else None
    if prices is None or prices.premises == "own" or jct is None or jct.value is None:
        return 0.0
    used = round(jct.value * 1e6)
    billed = billed_ns(used, prices)
    least = billed_ns(0, prices)
    unit = least if billed == least else round(prices.billing_granularity_seconds * 1e9)
    return unit / billed if billed > 0 else 0.0


def better(metric: str, objective_metric: str, mode: Mode) -> Mode:
    """Return which way of a metric is better; quality follows the objective, and another test score its own name."""
    direction = known(metric).better
    if direction != "objective":
        return "max" if direction == "higher" else "min"
    if is_of_objective(metric, objective_metric):
        return mode
    return "min" if any(loss in metric.removeprefix("test.").lower() for loss in _LOSSES) else "max"


def scale(metric: str) -> Scale:
    """Return how two values are compared: scores, counts and shares by their difference, what has a zero by the log ratio."""
    return known(metric).scale


def bounds(metric: str, objective_metric: str) -> tuple[float, float]:
    """Return what a metric cannot be below and above."""
    of = known(metric)
    if of.is_signed:
        return -math.inf, math.inf
    if any(word in (metric if of.unit else _score(metric, objective_metric)) for word in _SCORES):
        return 0.0, 1.0
    if is_share(metric):
        return 0.0, 100.0
    return (0.0, math.inf) if of.unit else (-math.inf, math.inf)


def is_share(metric: str) -> bool:
    """Whether it is in percent."""
    return known(metric).unit == "%"


def is_of_objective(metric: str, objective_metric: str) -> bool:
    """Whether it is the selected model's quality, so that the quality margin is of it."""
    if metric.startswith("test."):
        return test_counterpart(objective_metric, [metric.removeprefix("test.")]) is not None
    return known(metric).better == "objective"


def default_unit(metric: str, objective_metric: str) -> str:
    """Return the unit of a metric that no record has."""
    return known(metric).unit or _score(metric, objective_metric)


def _score(metric: str, objective_metric: str) -> str:
    """Return the name of a score, which is its unit."""
    if metric.startswith("test."):
        return metric.removeprefix("test.")
    of_test = f"test_{objective_metric.removeprefix('validation_').removeprefix('val_')}"
    return of_test if metric == "quality.test" else objective_metric
