"""Slots of pods by their lifetimes, whatever the order in which they are told."""

from __future__ import annotations

from collections.abc import Mapping

from tuneoff.base.clock import NANOSECONDS as S
from tuneoff.record.run_record import AttemptRecord, TrialRecord
from tuneoff.record.trials import with_pod_slots


def trial(name: str, start: float, end: float, gone: float | None = None, **changes: object) -> TrialRecord:
    attempt = AttemptRecord(
        **{
            "attempt": 1,
            "state": "completed",
            "process_role": "pod",
            "process_started_ns": int(start * S),
            "slot": 0,
            "started_ns": int((start + 0.02) * S),
            "ended_ns": int(end * S),
            "exited_ns": None if gone is None else int(gone * S),
            **changes,
        }  # type: ignore[arg-type]
    )
    return TrialRecord(trial=name, configuration={}, digest=name, state="completed", attempts=(attempt,))


def slots_of(count: int, trials: list[TrialRecord]) -> Mapping[str, int | None]:
    return {one.trial: one.attempts[0].slot for one in with_pod_slots(trials, count)}


def test_an_end_that_is_uncertain_pushes_no_pod_beyond_the_slots() -> None:
    trials = [trial("a", 0, 10, uncertainty_ns=4 * S), trial("b", 7, 9)]
    assert slots_of(1, trials) == {"a": 0, "b": 0}
    assert slots_of(1, [trial("a", 0, 10, uncertainty_ns=2 * S), trial("b", 7, 9)]) == {"a": 0, "b": 1}


def test_processes_that_are_no_pods_keep_their_slots_and_pods_that_never_started_have_none() -> None:
    unstarted = {"slot": None, "started_ns": None, "process_role": None, "process_started_ns": None, "ended_ns": 3 * S}
    trials = [trial("a", 0, 10, process_role="trial", slot=3), trial("b", 0, 0, **unstarted), trial("c", 0, 10)]
    assert slots_of(2, trials) == {"a": 3, "b": None, "c": 0}
