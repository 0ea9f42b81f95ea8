"""Summarize runs per adapter, sampler and variant: median, least and greatest over the seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tuneoff.experiment.spec import RunSpec
from tuneoff.metrics.spans import PARTS
from tuneoff.records.model import RunRecord, RunStatus
from tuneoff.records.store import selected


class Planned(Protocol):
    """What the table needs of a planned run: the plan is the denominator, a skipped run is shown, never a hole."""

    @property
    def run_id(self) -> str: ...
    @property
    def spec(self) -> RunSpec: ...
    @property
    def label(self) -> str: ...
    @property
    def skip_reason(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of `n` values."""

    median: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One adapter with one sampler, pruner and variant. Times in ms over the runs that are done; None without one."""

    label: str
    platform: str
    sampler: str
    pruner: str
    variant: Mapping[str, Any] = field(default_factory=dict)
    metric: str = ""
    test: Spread | None = None
    validation: Spread | None = None
    jct: Spread | None = None
    parts: Mapping[str, Spread | None] = field(default_factory=dict)
    overhead_per_trial: Spread | None = None
    clock_uncertainty: float = 0.0
    trials_completed: int = 0  # over all executed runs, done or not
    trials_failed: int = 0  # failed or timed out
    trials_cancelled: int = 0  # the budget of time or epochs ended them
    trials_pruned: int = 0
    runs_planned: int = 0
    statuses: Mapping[RunStatus, int] = field(default_factory=dict)  # of the executed runs
    skip_reasons: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()  # why runs are not done

    @property
    def runs_done(self) -> int:
        return self.statuses.get("done", 0)


@dataclass(frozen=True, slots=True)
class _RecordedRun:
    """A run without a plan: planned because it was executed."""

    run_id: str
    spec: RunSpec
    label: str
    skip_reason: str | None = None


def summary_rows(records: Iterable[RunRecord], planned: Sequence[Planned] = ()) -> list[SummaryRow]:
    """Return one row per label, platform, sampler, pruner and variant, in the order of the plan.

    Of several executions of a run the latest that is done counts, else the latest. Warm-up runs are left out. Without
    a plan the executed runs are the plan. The order of the records changes nothing.
    """
    standing = {record.run_id: record for record in selected(sorted(records, key=lambda record: record.execution_id))}
    specs = {run_id: record.run_spec() for run_id, record in standing.items()}
    plan: Sequence[Planned] = planned or sorted(
        (_RecordedRun(run_id, spec, spec.adapter) for run_id, spec in specs.items()),
        key=lambda run: (run.label, run.spec.experiment.sampler.name, run.spec.seed, run.run_id),
    )
    groups: dict[str, list[Planned]] = {}
    for run in plan:
        if not run.spec.warm_up:
            groups.setdefault(_group(run), []).append(run)
    return [_row(runs, standing) for runs in groups.values()]


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return the spread of the values that are there, or None."""
    known = [value for value in values if value is not None]
    return Spread(statistics.median(known), min(known), max(known), len(known)) if known else None


def _group(run: Planned) -> str:
    experiment = run.spec.experiment
    strategies = [(item.name, sorted(item.options.items())) for item in (experiment.sampler, experiment.pruner)]
    return repr((run.label, run.spec.platform, strategies, sorted(experiment.variant.items())))


def _row(runs: Sequence[Planned], standing: Mapping[str, RunRecord]) -> SummaryRow:
    spec = runs[0].spec
    executed = [standing[run.run_id] for run in runs if run.run_id in standing and run.skip_reason is None]
    done = [record for record in executed if record.status == "done"]
    statuses: dict[RunStatus, int] = {}
    for record in executed:
        statuses[record.status] = statuses.get(record.status, 0) + 1

    def of(name: str) -> Spread | None:
        return spread(record.metrics[name].value for record in done if name in record.metrics)

    def count(*states: str) -> int:
        return sum(trial.state in states and trial.used_ticket for record in executed for trial in record.trials)

    return SummaryRow(
        label=runs[0].label,
        platform=spec.platform,
        sampler=spec.experiment.sampler.name,
        pruner=spec.experiment.pruner.name,
        variant=spec.experiment.variant,
        metric=spec.experiment.objective.metric,
        test=of("quality.test"),
        validation=of("quality.validation"),
        jct=of("time.jct"),
        parts={part: of(f"time.{part}") for part in PARTS},
        overhead_per_trial=of("overhead.per_trial"),
        clock_uncertainty=max((record.clock_uncertainty_ns / 1e6 for record in done), default=0.0),
        trials_completed=count("completed"),
        trials_failed=count("failed", "timed_out"),
        trials_cancelled=count("cancelled"),
        trials_pruned=count("pruned"),
        runs_planned=len(runs),
        statuses=statuses,
        skip_reasons=tuple(sorted({run.skip_reason for run in runs if run.skip_reason is not None})),
        reasons=tuple(sorted({f"{record.status}: {record.reason}" for record in executed if record.reason is not None})),
    )
