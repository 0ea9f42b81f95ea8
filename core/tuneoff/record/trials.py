"""Make trial records out of collected events; pods, which know none, get their slots."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from tuneoff.base.clock import TICK_NS
from tuneoff.base.identity import configuration_digest, is_finite
from tuneoff.base.layout import POD
from tuneoff.experiment.spec import ExperimentSpec, Objective
from tuneoff.record.endings import Ending, RunStop, ending
from tuneoff.record.event_index import NOT_REPORTED, AttemptEvents, Collected, Key, Timeline
from tuneoff.record.events.schema import Epoch
from tuneoff.record.run_record import AttemptRecord, EpochRecord, TrialRecord

AnyEpoch = TypeVar("AnyEpoch", EpochRecord, Epoch)  # as it was recorded, or logged
TIE_LOSSES = ("validation_loss", "val_loss", "loss")


def trial_records(
    collected: Collected, timeline: Timeline, experiment: ExperimentSpec, stop: RunStop | None = None
) -> tuple[TrialRecord, ...]:
    """Return all trials in order of their first submission. A trial that was only refused is none. `stop`: what ended the run.

    The collected executions are emptied on the way: a large run fits into memory once, not twice.
    """
    keys: dict[str, set[Key]] = {}
    for group in (collected.submitted, collected.executions, collected.observed_ends, collected.died):
        for key in group:
            keys.setdefault(key[0], set()).add(key)
    refused = {seen.event.trial for seen in collected.refused}
    records = []
    for trial, trial_keys in keys.items():
        if trial in refused and not any(key in collected.executions for key in trial_keys):
            continue
        records.append(_trial(collected, timeline, experiment, trial, sorted(trial_keys), stop))

    first: dict[str, int] = {}
    for record in records:
        times = [t for attempt in record.attempts for t in (attempt.submitted_ns, attempt.started_ns, attempt.ended_ns)]
        first[record.trial] = min((t for t in times if t is not None), default=0)
    return with_pod_slots(sorted(records, key=lambda record: (first[record.trial], record.trial)), experiment.workers.count)


def _trial(
    collected: Collected, timeline: Timeline, experiment: ExperimentSpec, trial: str, keys: list[Key], stop: RunStop | None
) -> TrialRecord:
    planned = experiment.budget.epochs_per_trial
    pairs: list[tuple[Key, AttemptEvents | None, Ending]] = []
    for key in keys:
        executions = collected.executions.pop(key, [])
        if len(executions) > 1:
            executions.sort(key=lambda execution: timeline.at(execution.process, execution.started.t))
        for earlier in executions[:-1]:  # the framework ran the attempt again without saying so
            pairs.append((key, earlier, ending(None, timeline, key, earlier, planned)))
        last = executions[-1] if executions else None
        pairs.append((key, last, ending(collected, timeline, key, last, planned, stop)))
    attempts = []
    for index, (key, execution, end) in enumerate(pairs):
        submitted = timeline.first(collected.submitted.get(key))
        exited = timeline.first(collected.exits.get(execution.process.name)) if execution is not None else None
        attempts.append(
            _attempt(
                timeline,
                key[1],
                execution,
                end,
                submitted_ns=timeline.seen_at(submitted) if submitted is not None else None,
                exited_ns=timeline.seen_at(exited) if exited is not None else None,
                superseded=index < len(pairs) - 1,
            )
        )
    _, final, end = pairs[-1]
    started = next((pair[1].started for pair in reversed(pairs) if pair[1] is not None), None)
    announced = timeline.first([seen for key in keys for seen in collected.submitted.get(key, ())])
    if started is not None:
        configuration, digest = started.configuration, started.digest
    else:
        configuration = announced.event.configuration if announced is not None else {}
        digest = configuration_digest(configuration)
    last_attempt = attempts[-1]
    best = best_epoch(experiment.objective, last_attempt.epochs)
    stops: list[int] = []  # the losing epoch: the scripted one, else the framework's decision, else the report that said stop
    if experiment.pruner.name == "scripted" and digest in experiment.stops:
        stops = [experiment.stops[digest]]
    elif trial in collected.stops:
        stops = [min(seen.event.epoch for seen in collected.stops[trial])]
    elif final is not None and final.stop_epoch is not None and not end.is_at_goal:
        stops = [final.stop_epoch]
    elif last_attempt.state == "pruned" and last_attempt.epochs:
        stops = [last_attempt.epochs[-1].epoch]
    # a training that ended by itself meets no later stop
    ran = len(last_attempt.epochs) if last_attempt.state == "completed" else planned
    return TrialRecord(
        trial=trial,
        configuration=configuration,
        digest=digest,
        state=end.state,
        cause=end.cause,
        charged=end.charged,
        framework_id=(announced.event.framework_id if announced is not None else None)
        or (started.framework_id if started is not None else None),
        value=best.metrics[experiment.objective.metric] if best is not None else None,
        value_epoch=best.epoch if best is not None else None,
        tie_loss=next((best.metrics[name] for name in TIE_LOSSES if best and best.metrics.get(name) is not None), None),
        stop_epoch=next((epoch for epoch in stops if epoch < planned and epoch <= ran), None),
        attempts=tuple(attempts),
    )


def _attempt(
    timeline: Timeline,
    number: int,
    execution: AttemptEvents | None,
    end: Ending,
    *,
    submitted_ns: int | None,
    exited_ns: int | None,
    superseded: bool,
) -> AttemptRecord:
    record = AttemptRecord(
        attempt=number,
        state="superseded" if superseded else end.state,
        cause=end.cause,
        charged=end.charged,
        ended_by=end.by,
        uncertainty_ns=end.uncertainty_ns,
        submitted_ns=submitted_ns,
        ended_ns=end.ended_ns,
    )
    if execution is None:
        return record
    process, started, shift = execution.process, execution.started, timeline.shift_ns(execution.process)
    return msgspec.structs.replace(
        record,
        process=sys.intern(process.name),  # one text per process, not per attempt
        process_role=process.role,
        process_started_ns=process.began_ns + shift,
        imported_ns=started.imported_ns + shift if started.imported_ns is not None else None,
        exited_ns=exited_ns,
        slot=started.slot,
        waited_ns=started.waited_ns,
        started_ns=started.t + shift,
        loaded_ns=execution.loaded.t + shift if execution.loaded is not None else None,
        threads=started.threads,
        seed=started.seed,
        device=execution.loaded.device if execution.loaded is not None else None,
        cpu_ns=end.cpu_ns,
        process_cpu_ns=started.process_cpu_ns,
        cpus_allowed=started.cpus_allowed,
        visible=started.visible if started.visible is not None else msgspec.UNSET,
        peak_rss_bytes=end.peak_rss_bytes,
        epochs=_epochs(execution, shift),
    )


def _epochs(execution: AttemptEvents, shift: int) -> tuple[EpochRecord, ...]:
    reported = execution.reported
    reported.extend([NOT_REPORTED] * (len(execution.epochs) - len(reported)))
    records = tuple(
        EpochRecord(
            epoch=event.epoch,
            ended_ns=event.t + shift,
            train_ns=event.train_ns,
            validate_ns=event.validate_ns,
            checkpoint_ns=event.checkpoint_ns,
            metrics=event.metrics,
            is_reported=event.is_reported or t is not None,
            report_began_ns=began + shift if began is not None else None,
            reported_ns=t + shift if t is not None else None,
            non_finite=event.non_finite,
            saved=event.saved,
            restored=event.restored,
            cpu_ns=event.cpu_ns,
            reported_cpu_ns=cpu_ns,
            items=event.items,
            phases=event.phases,
        )
        for event, (t, cpu_ns, began) in zip(execution.epochs, reported, strict=True)
    )
    execution.epochs, execution.reported = [], []
    return records


def best_epoch(objective: Objective, epochs: Sequence[AnyEpoch]) -> AnyEpoch | None:
    """Return the epoch with the best finite validation value, the earliest of equals; None if no value is finite."""
    best: AnyEpoch | None = None
    value: float | None = None
    for epoch in epochs:
        new = epoch.metrics.get(objective.metric)
        if new is not None and is_finite(new) and objective.is_better(new, value):
            best, value = epoch, new
    return best


@dataclass(frozen=True, slots=True)
class _Stay:
    """The last pod on a slot; nanoseconds on the record's clock."""

    end_ns: int  # it was surely there until then
    gone_ns: int  # it was surely gone then


def with_pod_slots(trials: Sequence[TrialRecord], count: int) -> tuple[TrialRecord, ...]:
    """Return the trials with the slots of their pods, by these pods' lifetimes alone; `count`: of the run's slots.

    In the order of their processes' starts (of equal ones, of the trials' names) each pod gets a slot whose last pod had ended:
    if possible one that was surely gone, else the one that was gone first; of equal ones the lowest. So it does not matter when
    and in which order they were heard of. Only where more than `count` were there at once, some get numbers beyond theirs.
    """
    starts = sorted(
        (_start_ns(attempt), trial.trial, index, attempt)
        for trial in trials
        for index, attempt in enumerate(trial.attempts)
        if attempt.process_role == POD and attempt.started_ns is not None
    )
    slots: list[_Stay | None] = [None] * count
    slot_of: dict[tuple[str, int], int] = {}
    for start_ns, trial_id, index, attempt in starts:
        number = _best(slots, start_ns, count)
        if number >= count:  # none was free when it started: it has one from its trial on
            number = _best(slots, attempt.started_ns or start_ns, count)
        assert attempt.ended_ns is not None
        end_ns = max(start_ns, attempt.ended_ns - attempt.uncertainty_ns)
        slots[number : number + 1] = [_Stay(end_ns, max(attempt.ended_ns, attempt.exited_ns or 0))]
        slot_of[trial_id, index] = number
    records = []
    for trial in trials:
        keyed = [((trial.trial, index), attempt) for index, attempt in enumerate(trial.attempts)]
        if any(key in slot_of for key, _ in keyed):
            moved = (msgspec.structs.replace(attempt, slot=slot_of.get(key, attempt.slot)) for key, attempt in keyed)
            trial = replace(trial, attempts=tuple(moved))
        records.append(trial)
    return tuple(records)


def _best(slots: Sequence[_Stay | None], start_ns: int, count: int) -> int:
    free = [(number >= count, 0, number) for number, stay in enumerate(slots) if stay is None]
    free += [
        (number >= count, max(0, stay.gone_ns - start_ns), number)
        for number, stay in enumerate(slots)
        if stay is not None and stay.end_ns <= start_ns
    ]
    return min(free)[-1] if free else len(slots)


def _start_ns(attempt: AttemptRecord) -> int:
    """Return the latest moment at which a pod's process started."""
    assert attempt.started_ns is not None
    if attempt.process_started_ns is None:
        return attempt.started_ns
    return min(attempt.process_started_ns + TICK_NS, attempt.started_ns)
