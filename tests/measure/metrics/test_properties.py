"""Properties that hold for every run, on random runs: splits leave no remainder, order changes nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.event_logs import Log
from builders.specs import make_spec
from tuneoff.experiment.spec import Objective, RunSpec, Workers
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.incumbent import incumbents
from tuneoff.measure.overhead import slot_stages_ns
from tuneoff.measure.presence import presence_of
from tuneoff.measure.slots import slot_times, slot_window, trial_window
from tuneoff.measure.spans import PARTS, busy_ns, jct_ns, partition_ns
from tuneoff.measure.waste import wasted_segments
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord

pytestmark = pytest.mark.slow

PLANNED = 3
STATES = ("completed", "pruned", "failed", "cancelled", None)  # None: nobody saw an end


@st.composite
def runs(draw: st.DrawFn, *, overlapping: bool = False) -> tuple[Log, RunSpec]:
    """Random runs: workers with several trials or a process per trial, waits, failures, retries, missing ends."""
    slots = draw(st.integers(1, 3))
    log = Log()
    now = draw(st.integers(0, 50))
    log.step("deploy", 0, now)
    log.step("setup", now, None)
    first = float(now + draw(st.integers(0, 20)))
    step = st.integers(0, 30)
    last, number = first, 0
    log.submit("warm", first)
    for slot in range(slots):
        at, worker = first + draw(step), None
        for _ in range(draw(st.integers(0, 4))):
            if worker is None or draw(st.booleans()):
                started = at + draw(step) if not overlapping else max(0.0, at - draw(st.integers(0, 60)))
                worker, at = log.process(draw(st.sampled_from(["worker", "trial"])), started), started
            name = f"t{number:02d}"
            number += 1
            log.submit(name, max(first, at - draw(step)), x=number / 100)
            at += draw(step)
            worker.start(name, at, slot=slot, x=number / 100)
            epochs = draw(st.integers(0, PLANNED))
            for epoch in range(1, epochs + 1):
                at += draw(step)
                value = draw(st.one_of(st.none(), st.integers(0, 8).map(lambda value: value / 8)))
                back = at + draw(step) if draw(st.booleans()) else None
                worker.epoch(name, epoch, at, value, reported=back)
                at = back or at
            at += draw(step)
            state: Any = draw(st.sampled_from(STATES))
            if state is not None:
                cause: dict[str, Any] = {"cause": "x", "charged": "workload"} if state == "failed" else {}
                worker.end(name, at, state, epochs, **cause)
            if draw(st.booleans()):
                at += draw(step)
                worker.exit(at, by=log.coordinator)
                worker = None
            last = max(last, at)
    end = last + draw(step)
    log.step("collect", end, end + 1)
    log.coordinator.add(schema.BestKnown, end + 1, trial=f"t{draw(st.integers(0, 12)):02d}")
    if draw(st.booleans()):
        log.step("test", end + 1, end + 3)
    if draw(st.booleans()):
        log.step("metrics", end + 4, end + 5)
    log.step("undeploy", end + 6, end + 7)
    objective = Objective(metric="validation_accuracy", mode=draw(st.sampled_from(["min", "max"])), goal=0.5)
    return log, make_spec(epochs=PLANNED, workers=Workers(count=slots), objective=objective)


def derived(example: tuple[Log, RunSpec]) -> RunRecord:
    return derive(example[0].pairs(), example[1])


@given(runs())
@settings(max_examples=60, deadline=None)
def test_the_parts_and_what_is_unassigned_sum_to_the_jct(example: tuple[Log, RunSpec]) -> None:
    run = derived(example)
    parts = partition_ns(run)
    assert sum(part for part in parts.values() if part is not None) == jct_ns(run)
    assert all(part is None or part >= 0 for part in parts.values())
    if all(parts[name] is not None for name in PARTS):
        assert parts["unassigned"] == 0


@given(st.one_of(runs(), runs(overlapping=True)))
@settings(max_examples=80, deadline=None)
def test_busy_overhead_and_idle_time_are_the_slot_time(example: tuple[Log, RunSpec]) -> None:
    run = derived(example)
    for window in (slot_window(run), trial_window(run), (0, 10**13)):
        if window is None:
            continue
        times = slot_times(presence_of(run), window)
        assert len(times) == example[1].experiment.workers.count
        for time in times:
            assert time.busy_ns + time.overhead_ns + time.idle_ns == window[1] - window[0]
            assert min(time.busy_ns, time.overhead_ns, time.idle_ns, time.overlapped_ns) >= 0


@given(runs())
@settings(max_examples=60, deadline=None)
def test_the_stages_of_overhead_sum_to_the_overhead_of_the_slots(example: tuple[Log, RunSpec]) -> None:
    run = derived(example)
    for window in ((-(10**13), 10**13), trial_window(run) or (0, 0)):
        times, stages = slot_times(presence_of(run), window), slot_stages_ns(presence_of(run), window)
        if not any(time.overlapped_ns for time in times):
            vacant = stages.pop("vacant")
            assert sum(stages.values()) == sum(time.overhead_ns for time in times)
            assert 0 <= vacant <= sum(time.idle_ns for time in times)


@given(runs())
@settings(max_examples=60, deadline=None)
def test_the_incumbent_never_gets_worse_and_ends_at_the_best_value(example: tuple[Log, RunSpec]) -> None:
    run = derived(example)
    objective = example[1].experiment.objective
    steps = incumbents(run)
    for before, after in pairwise(steps):
        assert objective.is_better(after.value, before.value)
        assert before.at_ns <= after.at_ns
        assert before.trials <= after.trials
        assert before.epochs <= after.epochs
    values = [trial.value for trial in run.trials if trial.state == "completed" and trial.value is not None]
    assert [step.value for step in steps[-1:]] == ([max(values) if objective.mode == "max" else min(values)] if values else [])


@given(runs(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_files_and_of_finished_trials_changes_no_metric(
    example: tuple[Log, RunSpec], shuffler: random.Random
) -> None:
    log, spec = example
    order = list(range(len(log.writers)))
    shuffler.shuffle(order)
    run = derived(example)
    assert derive(log.pairs(order), spec) == run
    trials = list(run.trials)
    shuffler.shuffle(trials)
    assert with_metrics(replace(run, trials=tuple(trials))).metrics == with_metrics(run).metrics


@given(runs())
@settings(max_examples=60, deadline=None)
def test_wasted_time_never_exceeds_what_was_busy(example: tuple[Log, RunSpec]) -> None:
    run = derived(example)
    wasted = sum(end - start for _, (start, end) in wasted_segments(run, "default"))
    assert 0 <= wasted <= sum(busy_ns(attempt) for trial in run.trials for attempt in trial.attempts)
