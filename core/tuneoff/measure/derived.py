"""From an execution's raw files to its record: derive and measure.

With all its metrics; made here: what trials did against the budget.
"""

from __future__ import annotations

import gc
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

from tuneoff.base.layout import EVENTS
from tuneoff.experiment.accounting.declared import read_accounting
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.carbon import carbon_metrics
from tuneoff.measure.cost import cost_metrics, waste_cost_metrics
from tuneoff.measure.declared_variables import with_declared
from tuneoff.measure.energy import RESIDUAL_FLAG, energy_metrics, residual_flags
from tuneoff.measure.incumbent import quality_metrics
from tuneoff.measure.inside import inside_metrics
from tuneoff.measure.overhead import overhead_metrics, stop_metrics, storage_metrics
from tuneoff.measure.presence import CROWDED_FLAG, DOUBLED_FLAG, Presence, presence_flags, presence_of
from tuneoff.measure.slots import slot_metrics
from tuneoff.measure.spans import busy_ns, span_metrics
from tuneoff.measure.use import DISTURBED, SHARE, device_memory, disturbance, memory_metrics
from tuneoff.measure.waste import (
    LOWER_BOUND_FLAG,
    lower_bound,
    pruning_metrics,
    waste_energy_metrics,
    waste_metrics,
)
from tuneoff.record.derive import derive
from tuneoff.record.end import ExecutionEnd
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Charged
from tuneoff.record.metric_value import MetricValue, metric_value, milliseconds, missing
from tuneoff.record.run_context import noted_versions
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.record.samples.reader import (
    NO_EVIDENCE,
    Evidence,
    on_run_clock,
    power_of,
    read_samples,
    sample_flags,
)

NOTHING_STATED = ExecutionEnd()
STATES = ("completed", "pruned", "failed", "cancelled", "timed_out")
# flags of a machine on which a framework's start may fail that goes well elsewhere
NOT_IN_ORDER = frozenset({DISTURBED, "steal", "machine_drift", "low_memory", "low_disk", "cpu_throttled", "earlier_survivor"})
CHARGES = ("framework", "workload", "infrastructure", "user")


def with_metrics(
    run: RunRecord,
    evidence: Evidence = NO_EVIDENCE,
    account: EnergyAccount | None = None,
    presence: Presence | None = None,
) -> RunRecord:
    """Return the same record with its metrics and the flags that follow: disturbed, residual, bounds of waste, doubled slots.

    `account` and `presence`: the run's `energy_account` and `presence_of`, where the caller has them already.
    """
    presence = presence or presence_of(run)
    account = account or energy_account(run, evidence, presence)
    of_metrics = (RESIDUAL_FLAG, LOWER_BOUND_FLAG, DISTURBED, CROWDED_FLAG, DOUBLED_FLAG)
    others, disturbed = disturbance(run, evidence, account)
    bound = lower_bound(run)
    flags = [flag for flag in run.flags if flag.name not in of_metrics]
    flags += (*disturbed, *residual_flags(account), *([bound] if bound else ()), *presence_flags(run, presence))
    run = replace(run, flags=tuple(flags))
    values = {
        **span_metrics(run),
        **quality_metrics(run),
        **budget_metrics(run),
        **slot_metrics(run, presence),
        **overhead_metrics(run, presence),
        **storage_metrics(run),
        **stop_metrics(run),
        **waste_metrics(run),
        **inside_metrics(run),
        **energy_metrics(run, account),
    }
    for measured in (  # they read samples and prices too
        waste_energy_metrics,
        pruning_metrics,
        carbon_metrics,
        cost_metrics,
        waste_cost_metrics,
        memory_metrics,
        device_memory,
    ):
        values.update(measured(run, evidence, account))
    values[SHARE] = others
    for name, value in values.items() if bound else ():
        if name.startswith("waste.") and value.value is not None:
            values[name] = replace(value, kind="estimated", source=f"{value.source}; a lower bound (flag {LOWER_BOUND_FLAG})")
    return replace(run, metrics=values, charged=_charged(run))


def _charged(run: RunRecord) -> Charged | None:
    """Return who is charged with the run's end: of a failed deploy the infrastructure, where the framework is not known at fault.

    So it is on a machine that was not in order.
    """
    failed = next((step.step for step in run.steps if step.error is not None), None)
    if run.status != "failed" or run.charged != "framework" or failed != "deploy":
        return run.charged
    is_in_order = not any(flag.name in NOT_IN_ORDER for flag in run.flags)
    return "framework" if is_in_order else "infrastructure"


def budget_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return counts of trials and epochs, shares of the budget in %, and busy time in ms per trial, its attempts together.

    A trial is one budget ticket: attempts are segments of one trial. Trials that never took a ticket (submitted, but
    never started) count as submitted only.
    """
    budget = run.run_spec().experiment.budget
    used = [trial for trial in run.trials if trial.used_ticket]
    epochs = sum(trial.epochs_trained for trial in run.trials)
    values = {
        "trials.submitted": _count(len(run.trials) + len({refusal.trial for refusal in run.refusals})),
        "trials.used": _count(len(used)),
        "trials.never_started": _count(len(run.trials) - len(used)),
        "trials.refused": _count(len(run.refusals)),
        "trials.retries": _count(sum(max(0, len(trial.attempts) - 1) for trial in run.trials)),
        "trials.distinct_configurations": _count(len({trial.digest for trial in used})),
        "trials.of_budget": metric_value(100 * len(used) / budget.trials, "%"),
        "epochs.trained": _count(epochs),
        "epochs.of_budget": (
            metric_value(100 * epochs / budget.epochs_total, "%")
            if budget.epochs_total is not None
            else metric_value(100 * epochs / (budget.trials * budget.epochs_per_trial), "%")
        ),
    }
    values["trials.ended_early"] = _count(sum(trial.ended_early(budget.epochs_per_trial) for trial in used))
    for state in STATES:
        values[f"trials.{state}"] = _count(sum(trial.state == state for trial in used))
    failed = [trial for trial in run.trials if trial.state in ("failed", "timed_out")]
    for charge in CHARGES:
        values[f"failures.{charge}"] = _count(sum(trial.charged == charge for trial in failed))
    values["trials.failed_before_start"] = _count(sum(not trial.used_ticket for trial in failed))
    times = [sum(busy_ns(attempt) for attempt in trial.attempts) for trial in used]
    none = "no trial started"
    for name, pick in (("mean", statistics.fmean), ("median", statistics.median), ("min", min), ("max", max)):
        picked = round(pick(times)) if times else None
        values[f"trial_execution.{name}"] = milliseconds(picked, none, n_samples=len(times))
    attempts = [attempt for trial in run.trials for attempt in trial.attempts]
    starts = [attempt.submitted_ns for attempt in attempts if attempt.submitted_ns is not None]
    ends = [attempt.ended_ns for attempt in attempts if attempt.ended_ns is not None]
    seconds = (max(ends) - min(starts)) / 1e9 if starts and ends else 0.0
    values["trials.per_second"] = metric_value(len(times) / seconds, "1/s") if seconds > 0 and times else missing("1/s", none)
    return values


def _count(number: int) -> MetricValue:
    return metric_value(number, "count", kind="measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A record with its metrics, and what these rest on."""

    record: RunRecord
    evidence: Evidence
    account: EnergyAccount


def derive_folder(run_dir: Path, spec: RunSpec, end: ExecutionEnd = NOTHING_STATED, log: EventLog | None = None) -> Derived:
    """Derive the record of an execution's folder, with its metrics and what they rest on; writes nothing.

    `end`: what was stated of it. `log`: the folder's events, where the caller is to see what reading them met.

    Raises:
        ResultsError: the events cannot be read.
    """
    log = log or EventLog(run_dir / EVENTS)
    was_enabled = gc.isenabled()
    gc.disable()  # it would search the growing record for cycles, again and again: there are none
    try:
        versions = {**end.versions, **noted_versions(run_dir)}
        environment = {**end.environment, "power": power_of(run_dir)}
        record = derive(log, spec, ruling=end.ruling, versions=versions, environment=environment)
        flags = [*record.flags, *end.platform_flags(spec.platform, {flag.name for flag in record.flags})]
        if log.statistics.gaps:
            first = log.statistics.gaps[0]
            text = f"lines are missing, first in {first.file} before line {first.line}"
            flags.append(FlagRecord(name="missing_lines", text=text, count=len(log.statistics.gaps)))
        record = replace(
            record,
            execution_id=run_dir.name,
            flags=tuple(flags),
            torn_lines=log.statistics.torn_lines,
        )
        samples = on_run_clock(read_samples(run_dir), record)
        record = replace(record, flags=(*record.flags, *sample_flags(samples)))
        evidence = Evidence(samples=samples, accounting=read_accounting(run_dir))
        presence = presence_of(record)
        account = energy_account(record, evidence, presence)
        record = with_declared(with_metrics(record, evidence, account, presence), presence)
        return Derived(record=record, evidence=evidence, account=account)
    finally:
        if was_enabled:
            gc.enable()
