"""Derive a run's record from its events: a pure function, so every number can be recomputed later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from tuneoff.base.identity import is_finite
from tuneoff.experiment.spec import Objective, RunSpec, run_spec_to_json
from tuneoff.record.endings import IN_NO_EVENT, Ruling, RunStop, promise_flags, ruling_of
from tuneoff.record.event_index import Collected, Timeline, collect
from tuneoff.record.events.schema import OF_ONE_TRIAL, STEPS, STORAGE_FIGURES, Event, Process
from tuneoff.record.run_record import (
    BestRecord,
    FlagRecord,
    ProcessRecord,
    RefusalRecord,
    RunRecord,
    StepRecord,
    TestRecord,
    TrialRecord,
)
from tuneoff.record.trials import trial_records

VALUE_TOLERANCE = 1e-6  # relative: a framework may keep its values in single precision


def derive(
    events: Iterable[tuple[Process, Event]],
    spec: RunSpec,
    *,
    ruling: Ruling | None = None,
    versions: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> RunRecord:
    """Return the record of one execution, without metrics.

    One pass; the order of processes does not matter, each process's own events come in their order. Without a `ruling`
    the status follows from the events: done, failed (a step failed, no trial completed, no test) or interrupted.
    """
    collected = collect(events)
    timeline = Timeline(collected)
    widened = _widen(collected, timeline)
    flags = _flags(collected, timeline, widened)
    trials = trial_records(collected, timeline, spec.experiment, _run_stop(collected, timeline, ruling))
    best = _best(collected, timeline, trials, spec.experiment.objective)
    test = _test(collected, timeline)
    steps = _steps(collected, timeline)
    goals = {seen.event.trial for seen in collected.goals}
    planned = spec.experiment.budget.epochs_per_trial
    early = {trial.trial for trial in trials if trial.trial in goals and trial.ended_early(planned)}
    flags += _best_flags(best, trials, early)
    promises = promise_flags(spec, trials, is_at_goal=spec.experiment.objective.stop and bool(collected.goals))
    flags += promises
    ruling = ruling or ruling_of(steps, trials, best, test, promises)
    reference = timeline.alignment.reference
    return RunRecord(
        run_id=spec.run_id,
        execution_id=reference.execution_id if reference is not None else spec.run_id,
        specification=run_spec_to_json(spec),
        status=ruling.status,
        reason=ruling.reason,
        charged=ruling.charged,
        started_at=timeline.started_at(),
        versions=dict(versions or {}),
        environment=dict(environment or {}),
        steps=steps,
        trials=trials,
        without_attempt=_without_attempt(collected, timeline, trials),
        refusals=_refusals(collected, timeline),
        stages=tuple(collected.stages[name] for name in sorted(collected.stages)),
        storage=_storage(collected, timeline),
        best=best,
        test=test,
        flags=tuple(flags),
        clock=timeline.clock(),
        coordinators=tuple(sorted(process.name for process in collected.processes if process.role == "coordinator")),
        clock_uncertainty_ns=timeline.alignment.uncertainty_ns,
        events=collected.events,
    )


def _storage(collected: Collected, timeline: Timeline) -> dict[str, int | None]:
    seen = timeline.last(collected.storage_used)
    return {} if seen is None else {name: getattr(seen.event, name) for name in STORAGE_FIGURES}


def best_trial(objective: Objective, trials: Iterable[TrialRecord]) -> TrialRecord | None:
    """Return the best completed trial with a finite value, or None: by value, validation loss, canonical hash, name."""

    def rank(trial: TrialRecord) -> tuple[float, float, str, str]:
        value = trial.value or 0.0
        return -value if objective.mode == "max" else value, trial.tie_loss or 0.0, trial.digest, trial.trial

    candidates = [trial for trial in trials if trial.state == "completed" and is_finite(trial.value)]
    return min(candidates, key=rank, default=None)


def _run_stop(collected: Collected, timeline: Timeline, ruling: Ruling | None) -> RunStop | None:
    """Return what ended the run before its time: as the supervisor noted it, else a step that failed, else the ruling.

    Where the command was killed an un-deploy that failed came after the kill, from whoever cleaned up.
    """
    stopped = timeline.first(collected.run_stopped)
    if stopped is not None:
        event = stopped.event
        return RunStop(cause=event.cause, charged=event.charged, cancels=event.cancels, since_ns=timeline.seen_at(stopped))
    is_killed = ruling is not None and ruling.reason in IN_NO_EVENT
    errors = [seen for seen in collected.steps_ended if seen.event.error not in (None, "interrupted")]
    failed = timeline.first([seen for seen in errors if not (is_killed and seen.event.step == "undeploy")])
    if failed is not None:
        cause = f"step {failed.event.step} failed: {failed.event.error}"
        return RunStop(cause=cause, charged=failed.event.charged or "infrastructure", since_ns=timeline.seen_at(failed))
    if ruling is not None and ruling.reason and ruling.charged is not None:
        return RunStop(cause=ruling.reason, charged=ruling.charged, cancels=ruling.status == "interrupted")
    return None


def _widen(collected: Collected, timeline: Timeline) -> int:
    """Widen the clocks' uncertainty by trials that seem to start before they were submitted; return how many did so."""
    violations, alignment = 0, timeline.alignment
    for key, executions in collected.executions.items():
        submitted = timeline.first(collected.submitted.get(key, ()))
        if submitted is None:
            continue
        for execution in executions:
            early = timeline.seen_at(submitted) - timeline.at(execution.process, execution.started.t)
            if early > 0:
                violations += 1
                if alignment.is_foreign(execution.process):  # it errs at least so much
                    alignment.uncertainty_ns = max(alignment.uncertainty_ns, early)
    return violations


def _steps(collected: Collected, timeline: Timeline) -> tuple[StepRecord, ...]:
    records = []
    for step in STEPS:
        started = timeline.first([seen for seen in collected.steps_started if seen.event.step == step])
        if started is None:
            continue
        # un-deploy may be done again by a fresh process after a kill: the last end counts
        ended = timeline.last([seen for seen in collected.steps_ended if seen.event.step == step])
        records.append(
            StepRecord(
                step=step,
                started_ns=timeline.seen_at(started),
                ended_ns=max(timeline.seen_at(ended), timeline.seen_at(started)) if ended is not None else None,
                error=ended.event.error if ended is not None else None,
                charged=ended.event.charged if ended is not None else None,
            )
        )
    return tuple(records)


def _without_attempt(collected: Collected, timeline: Timeline, trials: Sequence[TrialRecord]) -> tuple[ProcessRecord, ...]:
    """Return the processes that were started for one trial each and began no attempt."""
    began = {attempt.process for trial in trials for attempt in trial.attempts}
    records = []
    for process in collected.processes:
        if process.role not in OF_ONE_TRIAL or process.name in began:
            continue
        exited = timeline.first(collected.exits.get(process.name))
        last = [timeline.seen_at(seen) for seen in collected.refused if seen.process is process]
        records.append(
            ProcessRecord(
                process=process.name,
                started_ns=timeline.at(process, process.began_ns),
                ended_ns=timeline.seen_at(exited) if exited is not None else max((timeline.at(process, process.t), *last)),
            )
        )
    return tuple(sorted(records, key=lambda record: (record.started_ns, record.process)))


def _refusals(collected: Collected, timeline: Timeline) -> tuple[RefusalRecord, ...]:
    records = [
        RefusalRecord(trial=seen.event.trial, reason=seen.event.reason, refused_ns=timeline.seen_at(seen))
        for seen in collected.refused
    ]
    return tuple(sorted(records, key=lambda record: (record.refused_ns, record.trial)))


def _best(collected: Collected, timeline: Timeline, trials: Sequence[TrialRecord], objective: Objective) -> BestRecord | None:
    best_known = timeline.last(collected.best)
    if best_known is None:
        return None
    core = best_trial(objective, trials)
    return BestRecord(
        trial=best_known.event.trial,
        framework_value=best_known.event.value,
        known_ns=timeline.seen_at(best_known),
        core_trial=core.trial if core is not None else None,
    )


def _test(collected: Collected, timeline: Timeline) -> TestRecord | None:
    tested = timeline.last(collected.tested)
    if tested is None:
        return None
    event = tested.event
    return TestRecord(
        trial=event.trial,
        scores=event.scores,
        tested_ns=timeline.seen_at(tested),
        checkpoint_sha256=event.checkpoint_sha256,
        device=event.device,
        non_finite=event.non_finite,
        cpu_ns=event.cpu_ns,
    )


def _flags(collected: Collected, timeline: Timeline, started_early: int) -> list[FlagRecord]:
    counts: dict[str, int] = {}
    for seen in collected.flags:
        counts[seen.event.name] = counts.get(seen.event.name, 0) + 1
    flags = []
    for name in sorted(counts):
        first = timeline.first([seen for seen in collected.flags if seen.event.name == name])
        assert first is not None
        flags.append(FlagRecord(name=name, text=first.event.text, count=counts[name]))
    if started_early:
        text = "trials started before their submission was logged"
        flags.append(FlagRecord(name="started_before_submitted", text=text, count=started_early))
    if collected.orphans:
        text = "events belong to no started trial: lines of an event file are missing"
        flags.append(FlagRecord(name="orphan_events", text=text, count=collected.orphans))
    execution_ids = {process.execution_id for process in collected.processes}
    if len(execution_ids) > 1:
        text = f"event files of several executions lie together: {', '.join(sorted(execution_ids))}"
        flags.append(FlagRecord(name="foreign_events", text=text))
    changed = {
        key[0]
        for key, executions in collected.executions.items()
        for seen in collected.submitted.get(key, ())
        if any(execution.started.configuration != seen.event.configuration for execution in executions)
    }
    if changed:
        text = f"the configuration trained is not the one submitted, first in trial {min(changed)}"
        flags.append(FlagRecord(name="configuration_changed", text=text, count=len(changed)))
    repeated = sum(len(executions) - 1 for executions in collected.executions.values())
    if repeated:
        text = "an attempt was run again under the same number"
        flags.append(FlagRecord(name="attempt_repeated", text=text, count=repeated))
    if (goal := timeline.first(collected.goals)) is not None:
        name = "stopped_at_goal" if goal.event.by else "stopped_by_core"
        text = f"trial {goal.event.trial} met the goal: {goal.event.by or 'tuneoff'} kept further ones back"
        flags.append(FlagRecord(name=name, text=text))
    if collected.refused:
        budgets = ", ".join(sorted({seen.event.reason for seen in collected.refused}))
        text = f"the framework asked for trials beyond the budget ({budgets}); they were refused"
        flags.append(FlagRecord(name="over_budget", text=text, count=len(collected.refused)))
    return flags


def _best_flags(best: BestRecord | None, trials: Sequence[TrialRecord], cut: Set[str]) -> list[FlagRecord]:
    """Return what speaks against the framework's best trial; `cut`: ended at the goal, after epochs that it may not have told."""
    if best is None or best.trial is None:
        return []
    named = next((trial for trial in trials if trial.trial == best.trial), None)
    if named is None:
        return [FlagRecord(name="unknown_best", text=f"the framework's best trial {best.trial!r} is in no event")]
    flags = []
    if best.trial != best.core_trial:
        core = next((trial for trial in trials if trial.trial == best.core_trial), None)
        is_tied = core is not None and core.value == named.value
        text = f"the framework's best trial is {best.trial!r} ({named.value}), core's is {best.core_trial!r}"
        text += "; equal values, core breaks the tie by validation loss" if is_tied else ""
        flags.append(FlagRecord(name="best_tied" if is_tied else "best_differs", text=text))
    theirs, ours = best.framework_value if best.trial not in cut else None, named.value
    if theirs is not None and ours is not None and abs(theirs - ours) > VALUE_TOLERANCE * max(1.0, abs(ours)):
        text = f"the framework's value of its best trial is {theirs}, the events record {ours}"
        flags.append(FlagRecord(name="best_value_differs", text=text))
    return flags
