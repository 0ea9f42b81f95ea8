"""The runs of a results folder: every planned one with how it ended, its metrics or why it has none, and whom programs disturbed.

A metric is meant as its experiment means it: what the catalogue leaves to the objective, which has a name and a direction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.files import read_json
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.metric_catalogue import Scale
from tuneoff.experiment.metric_catalogue import metric as definition
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.cost import billed_ns
from tuneoff.measure.incumbent import test_counterpart
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.metric_value import Kind, MetricValue
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.run.run_ends import Without, came_out
from tuneoff.workload import Mode

POOL = "serial"  # the adapter that uses no framework: what the others are held to
EMULATED = "emulated, so in no comparison"
ENDED = ("done", *FAILED)
NOT_BEGUN = "not run yet"
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
class Scope:
    """What compared runs share. `text` names it in tables: `random`, `tpe + asha digits-300-small`."""

    sampler: str
    pruner: str
    variant: str
    task: str  # "": the file has no tasks
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A planned run of a group. `record`: the execution that stands for it, of a run that is another's the other's."""

    run_id: str
    spec: RunSpec
    record: RunRecord | None
    status: str  # done, failed, timeout, interrupted, skipped, running, planned
    reason: str | None = None
    will_run: bool = True  # False: skipped, and no other run stands for it
    is_added: bool = False  # its seed was added after the folder's first run: no verdict rests on it

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def execution_id(self) -> str | None:
        """The execution that stands for it; None: it was never started."""
        return self.record.execution_id if self.record is not None else None

    @property
    def is_skipped(self) -> bool:
        return self.status == "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether it counts as worse than any success: it was tried itself, and came to nothing."""
        return self.status in FAILED

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its own flags."""
        flags = self.record.flags if self.record is not None and not self.is_skipped else ()
        return tuple(dict.fromkeys(flag.name for flag in flags))

    @property
    def has_ended(self) -> bool:
        """Whether it was tried to its end: an interrupted run is to be run again."""
        return self.record is not None and self.record.status in ENDED

    @property
    def is_done(self) -> bool:
        return self.record is not None and self.record.status == "done"

    @property
    def has_failed(self) -> bool:
        return self.record is not None and self.record.status in FAILED

    def metric(self, name: str) -> MetricValue | None:
        """Return a metric of its record as it stands there; what counts of it is `value`."""
        return None if self.record is None else self.record.metrics.get(name)


def run_of(run: PlannedRun, selected: Mapping[str, RunRecord], without_record: Without, added_seeds: Collection[int] = ()) -> Run:
    """Return a planned run with the record that stands for it, or how it ended without one."""
    record = selected.get(run.run_id if run.same_as is None else run.same_as)
    status, reason = came_out(run, record, without_record)
    will_run = run.skip_reason is None or run.same_as is not None
    return Run(
        run_id=run.run_id,
        spec=run.spec,
        record=record if will_run else None,
        status=status,
        reason=NOT_BEGUN if (status, reason) == ("planned", None) else reason,
        will_run=will_run,
        is_added=run.spec.seed in added_seeds,
    )


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
        status, reason = (record.status, record.reason) if record is not None else (run.status, run.reason)
        return Value(seed=run.seed, value=None, reason=f"{status}: {reason}" if reason and reason != status else status)
    recorded = record.metrics.get(metric)
    if recorded is None:
        return Value(seed=run.seed, value=None, reason=ABSENT, is_done=True)
    return Value(seed=run.seed, value=recorded.value, kind=recorded.kind, reason=recorded.reason_if_null, is_done=True)


def units(runs: Iterable[Run], metrics: Iterable[str]) -> dict[str, str]:
    """Return the unit of each metric, as the first record that has it says."""
    wanted, by_metric = set(metrics), {}
    for run in runs:
        if not wanted:
            break
        for metric in [name for name in wanted if run.record is not None and name in run.record.metrics]:
            by_metric[metric] = run.record.metrics[metric].unit if run.record is not None else ""
            wanted.discard(metric)
    return by_metric


def disturbance(runs: Iterable[Run]) -> Disturbance:
    """Return which of these runs were disturbed; an execution that stands for several runs counts once.

    Runs without a record are left out: nothing rests on them.
    """
    by_execution = {run.record.execution_id: is_disturbed(run) for run in runs if run.record is not None}
    return Disturbance(
        runs=frozenset(by_execution),
        disturbed=frozenset(name for name, answer in by_execution.items() if answer is True),
        unknown=frozenset(name for name, answer in by_execution.items() if answer is None),
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
        content = read_json(test_result, LARGEST) if test_result is not None else {}
        size = sum(int(count) for row in content["details"]["confusion_matrix"] for count in row)
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
    direction = definition(metric).better
    if direction != "objective":
        return "max" if direction == "higher" else "min"
    if is_of_objective(metric, objective_metric):
        return mode
    return "min" if any(loss in metric.removeprefix("test.").lower() for loss in _LOSSES) else "max"


def scale(metric: str) -> Scale:
    """Return how two values are compared: scores, counts and shares by their difference, what has a zero by the log ratio."""
    return definition(metric).scale


def bounds(metric: str, objective_metric: str) -> tuple[float, float]:
    """Return what a metric cannot be below and above."""
    of = definition(metric)
    if of.is_signed:
        return -math.inf, math.inf
    if any(word in (metric if of.unit else _score(metric, objective_metric)) for word in _SCORES):
        return 0.0, 1.0
    if is_share(metric):
        return 0.0, 100.0
    return (0.0, math.inf) if of.unit else (-math.inf, math.inf)


def is_share(metric: str) -> bool:
    """Whether it is in percent."""
    return definition(metric).unit == "%"


def is_of_objective(metric: str, objective_metric: str) -> bool:
    """Whether it is the selected model's quality, so that the quality margin is of it."""
    if metric.startswith("test."):
        return test_counterpart(objective_metric, [metric.removeprefix("test.")]) is not None
    return definition(metric).better == "objective"


def default_unit(metric: str, objective_metric: str) -> str:
    """Return the unit of a metric that no record has."""
    return definition(metric).unit or _score(metric, objective_metric)


def _score(metric: str, objective_metric: str) -> str:
    """Return the name of a score, which is its unit."""
    if metric.startswith("test."):
        return metric.removeprefix("test.")
    of_test = f"test_{objective_metric.removeprefix('validation_').removeprefix('val_')}"
    return of_test if metric == "quality.test" else objective_metric
