"""Which slot each pod's attempt was on: Kubernetes knows none, and the run's figures are per slot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.layout import POD
from tuneoff.record.run_record import AttemptRecord, TrialRecord

_TICK_NS = NANOSECONDS // os.sysconf("SC_CLK_TCK")  # the grain of a process's start


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
    given: dict[tuple[str, int], int] = {}
    for start_ns, trial_id, index, attempt in starts:
        number = _best(slots, start_ns, count)
        if number >= count:  # none was free when it started: it has one from its trial on
            number = _best(slots, attempt.started_ns or start_ns, count)
        assert attempt.ended_ns is not None
        end_ns = max(start_ns, attempt.ended_ns - attempt.uncertainty_ns)
        slots[number : number + 1] = [_Stay(end_ns, max(attempt.ended_ns, attempt.exited_ns or 0))]
        given[trial_id, index] = number
    return tuple(_moved(trial, given) for trial in trials)


def _best(slots: Sequence[_Stay | None], start_ns: int, count: int) -> int:
    free = [(number >= count, 0, number) for number, stay in enumerate(slots) if stay is None]
    free += [
        (number >= count, max(0, stay.gone_ns - start_ns), number)
        for number, stay in enumerate(slots)
        if stay is not None and stay.end_ns <= start_ns
    ]
    return min(free)[-1] if free else len(slots)


def _moved(trial: TrialRecord, given: dict[tuple[str, int], int]) -> TrialRecord:
    if not any((trial.trial, index) in given for index in range(len(trial.attempts))):
        return trial
    attempts = tuple(
        msgspec.structs.replace(attempt, slot=given.get((trial.trial, index), attempt.slot))
        for index, attempt in enumerate(trial.attempts)
    )
    return replace(trial, attempts=attempts)


def _start_ns(attempt: AttemptRecord) -> int:
    """Return the latest moment at which a pod's process started."""
    assert attempt.started_ns is not None
    if attempt.process_started_ns is None:
        return attempt.started_ns
    return min(attempt.process_started_ns + _TICK_NS, attempt.started_ns)
