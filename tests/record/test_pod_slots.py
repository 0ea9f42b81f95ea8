"""Slots of pods by their lifetimes, whatever the order in which they are told."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.base.clock import NANOSECONDS as S
from tuneoff.record.run_record import AttemptRecord, TrialRecord
from tuneoff.record.trials import with_pod_slots

Life = tuple[float, ...]  # seconds: process start, end, and where it was seen its exit


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


@pytest.mark.parametrize(
    ("count", "lives", "slots"),
    [
        (2, {"a": (0, 10), "b": (1, 15), "c": (11, 20)}, {"a": 0, "b": 1, "c": 0}),
        (2, {"a": (0, 10), "b": (0, 12), "c": (10, 20), "d": (12, 20)}, {"a": 0, "b": 1, "c": 0, "d": 1}),  # ties: by name
        (2, {"a": (0, 4), "b": (0, 5), "c": (6, 9)}, {"a": 0, "b": 1, "c": 0}),  # of two free slots the lowest
        (1, {"a": (0, 4), "b": (3, 20), "c": (4, 9)}, {"a": 0, "b": 1, "c": 0}),  # more at once than workers
        (1, {"a": (0, 4), "b": (3, 5), "c": (6, 7), "d": (6, 8)}, {"a": 0, "b": 1, "c": 0, "d": 1}),
        (2, {"a": (0, 10, 12), "b": (0, 10.4, 10.5), "c": (10.6, 20)}, {"a": 0, "b": 1, "c": 1}),  # a's process still ended
        (2, {"a": (0, 10, 30), "b": (0, 10.4, 29), "c": (10.6, 20)}, {"a": 0, "b": 1, "c": 1}),  # both exits were seen late
    ],
)
def test_a_pod_gets_a_slot_whose_last_pod_had_ended(count: int, lives: dict[str, Life], slots: dict[str, int]) -> None:
    trials = [trial(name, *life) for name, life in lives.items()]
    for order in itertools.permutations(trials):
        assert slots_of(count, list(order)) == slots


def test_an_end_that_is_uncertain_pushes_no_pod_beyond_the_slots() -> None:
    trials = [trial("a", 0, 10, uncertainty_ns=4 * S), trial("b", 7, 9)]
    assert slots_of(1, trials) == {"a": 0, "b": 0}
    assert slots_of(1, [trial("a", 0, 10, uncertainty_ns=2 * S), trial("b", 7, 9)]) == {"a": 0, "b": 1}


def test_processes_that_are_no_pods_keep_their_slots_and_pods_that_never_started_have_none() -> None:
    unstarted = {"slot": None, "started_ns": None, "process_role": None, "process_started_ns": None, "ended_ns": 3 * S}
    trials = [trial("a", 0, 10, process_role="trial", slot=3), trial("b", 0, 0, **unstarted), trial("c", 0, 10)]
    assert slots_of(2, trials) == {"a": 3, "b": None, "c": 0}


@given(
    count=st.integers(1, 4),
    stays=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), max_size=30),
    order=st.randoms(use_true_random=False),
)
def test_pods_of_as_many_workers_get_the_workers_slots_and_share_none(
    count: int, stays: list[tuple[int, int]], order: object
) -> None:
    free_at = [0] * count
    trials = []
    for number, (busy, idle) in enumerate(stays):  # each begins where a worker is free, as Katib makes them
        worker = min(range(count), key=lambda index: free_at[index])
        start = free_at[worker] + idle
        free_at[worker] = start + busy
        trials.append(trial(f"t{number}", start, start + busy))
    expected = slots_of(count, trials)
    order.shuffle(trials)  # type: ignore[attr-defined]
    assert slots_of(count, trials) == expected
    assert set(expected.values()) <= set(range(count))
    stays_of = sorted((expected[one.trial], one.attempts[0].started_ns, one.attempts[0].ended_ns) for one in trials)
    for (slot, _, end), (following, start, _) in itertools.pairwise(stays_of):  # type: ignore[assignment]
        assert slot != following or start >= end  # type: ignore[operator]
