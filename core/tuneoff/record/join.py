"""One run out of several executions: the trials of all, each with all its attempts, on the time scale of the last one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.history import EarlierExecution, FinishedTrial, History, UnfinishedTrial
from tuneoff.record.run_record import AttemptRecord, ClockRecord, ContinuesRecord, EpochRecord, FlagRecord, RunRecord, TrialRecord

RESUMED_FLAG = "resumed"
REPEATED_FLAG = "finished_trial_repeated"
CHANGED_FLAG = "configuration_changed_by_resume"
# of an attempt
_TIMES = ("submitted_ns", "process_started_ns", "imported_ns", "exited_ns", "started_ns", "loaded_ns", "ended_ns")


def is_finished(trial: TrialRecord) -> bool:
    """Tell whether a trial ended by itself: completed, pruned, or failed by its workload's doing."""
    if trial.state in ("completed", "pruned"):
        return trial.used_ticket
    return trial.state in ("failed", "timed_out") and trial.charged == "workload" and trial.used_ticket


def joined_trials(earlier: Sequence[RunRecord], own: Sequence[TrialRecord], clock: ClockRecord | None) -> tuple[TrialRecord, ...]:
    """Return the trials of all executions; times of earlier ones are before 0 on the scale of `clock`.

    A trial that was begun again ends as its last attempt did; the attempts before are superseded.
    """
    found: dict[str, TrialRecord] = {}
    for record in earlier:
        shift = shift_ns(record.clock, clock)
        _add(found, [_shifted(trial, shift) for trial in record.trials])
    _add(found, own)
    return tuple(sorted(found.values(), key=lambda trial: (_first_ns(trial), trial.trial)))


def own_trials(trials: Sequence[TrialRecord], earlier: Sequence[RunRecord]) -> tuple[TrialRecord, ...]:
    """Return of joined trials what the last execution did."""
    before = attempts_before(earlier)
    return tuple(
        replace(trial, attempts=trial.attempts[before.get(trial.trial, 0) :])
        for trial in trials
        if len(trial.attempts) > before.get(trial.trial, 0)
    )


def attempts_before(earlier: Sequence[RunRecord]) -> dict[str, int]:
    """Return how many attempts each trial had in these executions."""
    counts: dict[str, int] = {}
    for record in earlier:
        for trial in record.trials:
            counts[trial.trial] = counts.get(trial.trial, 0) + len(trial.attempts)
    return counts


def history_of(earlier: Sequence[RunRecord]) -> History:
    """Return what the next execution begins with."""
    last = earlier[-1]
    trials = joined_trials(earlier[:-1], last.trials, last.clock)
    objective = last.run_spec().experiment.objective
    finished = [
        FinishedTrial(
            trial_id=trial.trial,
            configuration=trial.configuration,
            state=trial.state if trial.state in ("completed", "pruned") else "failed",
            values=tuple((epoch.epoch, epoch.metrics.get(objective.metric)) for epoch in trial.attempts[-1].epochs),
            value=trial.value,
        )
        for trial in trials
        if is_finished(trial)
    ]
    unfinished = [
        UnfinishedTrial(
            trial_id=trial.trial,
            configuration=trial.configuration,
            attempt=max(attempt.attempt for attempt in trial.attempts) + 1,
        )
        for trial in trials
        if not is_finished(trial)
    ]
    return History(
        finished=tuple(finished),
        unfinished=tuple(unfinished),
        executions=tuple(
            EarlierExecution(execution_id=record.execution_id, status=record.status, reason=record.reason, charged=record.charged)
            for record in earlier
        ),
        epochs=sum(trial.epochs_trained for trial in trials),
        seconds=sum(_used_ns(record) for record in earlier) / NANOSECONDS,
    )


def continues_record(earlier: Sequence[RunRecord], own: Sequence[TrialRecord], clock: ClockRecord | None) -> ContinuesRecord:
    """Return what a record says of the executions before it, without their digest."""
    history = history_of(earlier)
    again = {trial.trial for trial in own}
    return ContinuesRecord(
        executions=tuple(record.execution_id for record in earlier),
        digest="",
        finished=tuple(trial.trial_id for trial in history.finished),
        begun_again=tuple(trial.trial_id for trial in history.unfinished if trial.trial_id in again),
        away_ns=_away_ns(earlier, clock),
    )


def resume_flags(continues: ContinuesRecord, earlier: Sequence[RunRecord], own: Sequence[TrialRecord]) -> Iterator[FlagRecord]:
    """Yield that the run was continued, and what a resume must never do."""
    text = f"continued from {', '.join(continues.executions)}: {len(continues.finished)} finished trials were kept, "
    text += f"{len(continues.begun_again)} begun again; in no comparison of time, energy or cost"
    yield FlagRecord(name=RESUMED_FLAG, text=text, count=len(continues.executions))
    repeated = sorted({trial.trial for trial in own} & set(continues.finished))
    if repeated:
        text = f"trials that an earlier execution had finished were trained again, first {repeated[0]}"
        yield FlagRecord(name=REPEATED_FLAG, text=text, count=len(repeated))
    before = {trial.trial: trial.digest for record in earlier for trial in record.trials}
    changed = sorted(trial.trial for trial in own if before.get(trial.trial, trial.digest) != trial.digest)
    if changed:
        text = f"trials were begun again with another configuration, first {changed[0]}"
        yield FlagRecord(name=CHANGED_FLAG, text=text, count=len(changed))


def shift_ns(of: ClockRecord | None, onto: ClockRecord | None) -> int:
    """Return what to add to times of one execution to have them on another's scale: by their boot's clock, else the wall's."""
    if of is None or onto is None:
        return 0
    is_same = of.boot_id == onto.boot_id and (of.boot_id != "unknown" or of.host == onto.host)
    if is_same:
        return of.start_monotonic_ns - onto.start_monotonic_ns
    return of.start_wall_ns - onto.start_wall_ns


def _add(found: dict[str, TrialRecord], trials: Sequence[TrialRecord]) -> None:
    for trial in trials:
        known = found.get(trial.trial)
        if known is None:
            found[trial.trial] = trial
            continue
        lost = tuple(msgspec.structs.replace(attempt, state="superseded") for attempt in known.attempts)
        found[trial.trial] = replace(trial, attempts=(*lost, *trial.attempts))


def _shifted(trial: TrialRecord, by_ns: int) -> TrialRecord:
    return replace(trial, attempts=tuple(_shifted_attempt(attempt, by_ns) for attempt in trial.attempts))


def _shifted_attempt(attempt: AttemptRecord, by_ns: int) -> AttemptRecord:
    def at(t: int | None) -> int | None:
        return t + by_ns if t is not None else None

    def moved(epoch: EpochRecord) -> EpochRecord:
        began, reported = at(epoch.report_began_ns), at(epoch.reported_ns)
        return msgspec.structs.replace(epoch, ended_ns=epoch.ended_ns + by_ns, report_began_ns=began, reported_ns=reported)

    times = {name: at(getattr(attempt, name)) for name in _TIMES}
    return msgspec.structs.replace(attempt, **times, epochs=tuple(map(moved, attempt.epochs)))


def _first_ns(trial: TrialRecord) -> int:
    times = [t for attempt in trial.attempts for t in (attempt.submitted_ns, attempt.started_ns, attempt.ended_ns)]
    return min((t for t in times if t is not None), default=0)


def _used_ns(record: RunRecord) -> int:
    """Return how much of the wall-clock budget an execution used: from its first trial's start to the last sign of one."""
    attempts = [attempt for trial in record.trials for attempt in trial.attempts]
    started = [attempt.started_ns for attempt in attempts if attempt.started_ns is not None]
    ended = [attempt.ended_ns for attempt in attempts if attempt.ended_ns is not None]
    return max(0, max(ended) - min(started)) if started and ended else 0


def _away_ns(earlier: Sequence[RunRecord], clock: ClockRecord | None) -> int:
    total = 0
    following = [*(record.clock for record in earlier[1:]), clock]
    for record, after in zip(earlier, following, strict=True):
        times = [attempt.ended_ns for trial in record.trials for attempt in trial.attempts]
        times += [t for step in record.steps for t in (step.started_ns, step.ended_ns)]
        last = max((t for t in times if t is not None), default=0)
        total += max(0, -(last + shift_ns(record.clock, after)))
    return total
