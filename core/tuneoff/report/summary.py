"""Summarize runs per adapter, sampler and variant: median, least and greatest over the seeds."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tuneoff.experiment.names import emulated_label, label_texts, variant_text
from tuneoff.experiment.spec import RunSpec
from tuneoff.metrics.attribution_gpu import trained_on_gpu
from tuneoff.metrics.spans import PARTS
from tuneoff.metrics.values import Kind
from tuneoff.records.model import RunRecord, RunStatus
from tuneoff.records.store import selected

SPANS = {  # sums of parts, for narrow tables; the collection of metrics is in none
    "before": ("deploy", "setup"),
    "after": ("result_collection", "test", "undeploy"),
}
FIGURES = (  # metrics of the table of energy, carbon, cost and waste
    "time.jct",
    "energy.trial",
    "energy.per_completed_trial",
    "energy.cpu_seconds",
    "energy.reserved_core_seconds",
    "carbon.job",
    "cost.job",
    "waste.default.time",
    "waste.default.energy",
    "waste.default.cost",
    "slots.idle_share",
    "energy.idle_share",
    "pruning.saved_epochs",
    "pruning.saved_time",
    "pruning.saved_energy",
)
ABSENT = "this record has no such metric: it is older"


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
    @property
    def same_as(self) -> str | None: ...
    @property
    def emulated(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Incident:
    """Why runs of a row were skipped or are not done, and the seeds of these runs."""

    seeds: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of `n` values."""

    median: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric over the runs of a row that are done: its spread, the kinds of its values, and why values are missing."""

    spread: Spread | None
    unit: str
    kinds: frozenset[Kind] = frozenset()  # of the values that are there
    reasons: Mapping[str, int] = field(default_factory=dict)  # runs by why they have no value

    @property
    def is_estimated(self) -> bool:
        return "estimated" in self.kinds


@dataclass(frozen=True, slots=True)
class Use:
    """CPU seconds and reserved core seconds of a run that is done, per completed trial: what an energy model weighs."""

    seed: int
    cpu_seconds: float
    core_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One adapter with one sampler, pruner and variant. Times in ms over the runs that are done; None without one."""

    label: str
    platform: str
    sampler: str
    pruner: str
    variant: str = ""
    metric: str = ""
    test: Spread | None = None
    validation: Spread | None = None
    jct: Spread | None = None
    parts: Mapping[str, Spread | None] = field(default_factory=dict)  # and `before`, `after`, see SPANS
    overhead_per_trial: Spread | None = None
    clock_uncertainty: float = 0.0
    trials_completed: int = 0  # over all executed runs, done or not
    trials_failed: int = 0  # failed or timed out
    trials_cancelled: int = 0  # the budget of time or epochs ended them, or whoever ended the run
    trials_pruned: int = 0
    runs_planned: int = 0
    statuses: Mapping[RunStatus, int] = field(default_factory=dict)  # of the executed runs
    flags: Mapping[str, int] = field(default_factory=dict)  # executed runs by the name of a flag that they have
    same_as: str | None = None  # the sampler whose runs stand for all runs of this row
    emulated: bool = False  # something stood in for the platform, planned or found: the row is in no ranking
    skips: tuple[Incident, ...] = ()
    not_done: tuple[Incident, ...] = ()  # "failed: why"
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by metric, see FIGURES
    uses: tuple[Use, ...] = ()
    replicate: int = 0

    @property
    def runs_executed(self) -> int:
        return sum(self.statuses.values())

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
    same_as: str | None = None
    emulated: bool = False


def summary_rows(records: Iterable[RunRecord], planned: Sequence[Planned] = ()) -> list[SummaryRow]:
    """Return one row per label, platform, sampler, pruner and variant, in the order of the plan.

    Of several executions of a run the latest that is done counts, else the latest. Warm-up runs are left out. Without
    a plan the executed runs are the plan. The order of the records changes nothing.
    """
    standing = {record.run_id: record for record in selected(sorted(records, key=lambda record: record.execution_id))}
    specs = {run_id: record.run_spec() for run_id, record in standing.items()}
    plan: Sequence[Planned] = planned or sorted(
        (_recorded(standing[run_id], spec) for run_id, spec in specs.items()),
        key=lambda run: (run.label, run.spec.experiment.sampler.name, run.spec.seed, run.run_id),
    )
    labels = label_texts((run.label, run.spec.adapter) for run in plan)
    samplers = {run.run_id: run.spec.experiment.sampler.name for run in plan}
    groups: dict[str, list[Planned]] = {}
    for run in plan:
        if not run.spec.warm_up:
            groups.setdefault(_group(run), []).append(run)
    return [_row(runs, standing, labels[runs[0].label], samplers) for runs in groups.values()]


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return the spread of the values that are there, or None."""
    known = [value for value in values if value is not None]
    return Spread(statistics.median(known), min(known), max(known), len(known)) if known else None


def _recorded(record: RunRecord, spec: RunSpec) -> _RecordedRun:
    label = emulated_label(spec.adapter, spec) if record.emulated else spec.adapter
    return _RecordedRun(record.run_id, spec, label, emulated=record.emulated)


def _group(run: Planned) -> str:
    experiment = run.spec.experiment
    strategies = [(item.name, sorted(item.options.items())) for item in (experiment.sampler, experiment.pruner)]
    return repr((run.label, run.spec.platform, strategies, sorted(experiment.variant.items())))


def _row(runs: Sequence[Planned], standing: Mapping[str, RunRecord], label: str, samplers: Mapping[str, str]) -> SummaryRow:
    spec = runs[0].spec
    executed = [standing[run.run_id] for run in runs if run.run_id in standing and run.skip_reason is None]
    done = [record for record in executed if record.status == "done"]
    statuses: Counter[RunStatus] = Counter(record.status for record in executed)

    def of(name: str) -> Spread | None:
        return spread(_value(record, name) for record in done)

    def count(*states: str) -> int:
        return sum(trial.state in states and trial.used_ticket for record in executed for trial in record.trials)

    sums = {name: spread(_sum(record, parts) for record in done) for name, parts in SPANS.items()}
    emulated = any(run.emulated for run in runs) or any(record.emulated for record in executed)
    twins = {samplers.get(run.same_as or "") for run in runs}
    return SummaryRow(
        label=emulated_label(label, spec) if emulated else label,
        platform=spec.platform,
        sampler=spec.experiment.sampler.name,
        pruner=spec.experiment.pruner.name,
        variant=variant_text(spec.experiment.variant),
        metric=spec.experiment.objective.metric,
        test=of("quality.test"),
        validation=of("quality.validation"),
        jct=of("time.jct"),
        parts={**{part: of(f"time.{part}") for part in PARTS}, **sums},
        overhead_per_trial=of("overhead.per_trial"),
        clock_uncertainty=max((record.clock_uncertainty_ns / 1e6 for record in done), default=0.0),
        trials_completed=count("completed"),
        trials_failed=count("failed", "timed_out"),
        trials_cancelled=count("cancelled"),
        trials_pruned=count("pruned"),
        runs_planned=len(runs),
        statuses=statuses,
        flags=Counter(name for record in executed for name in {flag.name for flag in record.flags}),
        same_as=twins.pop() if len(twins) == 1 else None,
        emulated=emulated,
        skips=_incidents(runs, lambda run: run.skip_reason),
        not_done=_incidents(runs, lambda run: _why(standing.get(run.run_id)) if run.skip_reason is None else None),
        figures={name: _figure(done, name) for name in FIGURES},
        uses=tuple(_uses(runs, standing)),
        replicate=spec.replicate,
    )


def _figure(done: Sequence[RunRecord], name: str) -> Figure:
    found = [record.metrics[name] for record in done if name in record.metrics]
    there = [value for value in found if value.value is not None]
    reasons = Counter(value.reason_if_null for value in found if value.reason_if_null is not None)
    reasons.update({ABSENT: len(done) - len(found)} if len(found) < len(done) else {})
    return Figure(
        spread=spread(value.value for value in there),
        unit=next((value.unit for value in found), ""),
        kinds=frozenset(value.kind for value in there),
        reasons=dict(reasons),
    )


def _uses(runs: Sequence[Planned], standing: Mapping[str, RunRecord]) -> Iterator[Use]:
    """Yield the uses of the runs whose energy is by the model alone: with an accelerator's energy they do not tell the order."""
    for run in runs:
        record = standing.get(run.run_id)
        if record is None or record.status != "done" or run.skip_reason is not None or trained_on_gpu(record):
            continue
        names = ("energy.cpu_seconds", "energy.reserved_core_seconds", "energy.joules_per_cpu_second")
        cpu, cores, weight = (_value(record, name) for name in names)
        completed = sum(trial.state == "completed" for trial in record.trials)
        if cpu is not None and cores is not None and weight is not None and completed:
            yield Use(run.spec.seed, cpu / completed, cores / completed)


def _value(record: RunRecord, name: str) -> float | None:
    return record.metrics[name].value if name in record.metrics else None


def _sum(record: RunRecord, parts: Iterable[str]) -> float | None:
    """Return the sum of parts of a run's time; None where one is missing."""
    values = [_value(record, f"time.{part}") for part in parts]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _why(record: RunRecord | None) -> str | None:
    if record is None or record.status == "done":
        return None
    return f"{record.status}: {record.reason}" if record.reason not in (None, record.status) else record.status


def _incidents(runs: Sequence[Planned], text: Callable[[Planned], str | None]) -> tuple[Incident, ...]:
    seeds: dict[str, set[int]] = {}
    for run in runs:
        found = text(run)
        if found is not None:
            seeds.setdefault(found, set()).add(run.spec.seed)
    return tuple(Incident(tuple(sorted(found)), text) for text, found in sorted(seeds.items()))
