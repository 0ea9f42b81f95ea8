"""Who occupies slots: worked example C of the metrics' definition to its last digit, and what it does not show."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from builders.event_logs import Log, example_c, example_c_of_one_slot, ns
from builders.specs import make_spec
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.presence import presence_of
from tuneoff.measure.slots import slot_times
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord

CROWDED = ["more_processes_than_workers"]


def derived(example: tuple[Log, RunSpec]) -> RunRecord:
    return derive(example[0].pairs(), example[1])


def flags(run: RunRecord) -> list[str]:
    return [flag.name for flag in with_metrics(run).flags]


EXPECTED_C: dict[str, float] = {
    "slots.busy": 0.4,
    "slots.overhead": 30.4,
    "slots.idle": 9.2,
    "slots.slot_time": 40,
    "slots.idle_share": 23.0,
    "overhead.process_start": 6_675,
    "overhead.per_trial": 7_650,
    "overhead.vacant": 1_700 / 4,
    "slots.overlapped": 0,
    "slots.crowded": 0,
}


@pytest.mark.parametrize("slot", [None, 0, 1])
def test_every_figure_of_worked_example_c_is_met_whatever_slot_its_short_trials_got(slot: int | None) -> None:
    run = derived(example_c())
    if slot is not None:
        trials = [
            replace(trial, attempts=tuple(msgspec.structs.replace(one, slot=slot) for one in trial.attempts))
            for trial in run.trials
        ]
        run = replace(run, trials=tuple(trials))
    metrics = with_metrics(run).metrics
    assert {name: metrics[name].value for name in EXPECTED_C} == pytest.approx(EXPECTED_C, rel=1e-12)
    present = [(11, 19), (12, 19.5), (19.2, 27), (20, 27.5)]  # never more than two of them
    occupied = EXPECTED_C["slots.overhead"] + EXPECTED_C["slots.busy"]
    assert occupied == pytest.approx(sum(end - start for start, end in present), rel=1e-12)
    assert flags(run) == []


@pytest.mark.parametrize("role", ["trial", "pod"])
def test_a_process_that_imports_beside_a_trial_on_the_only_slot_shares_what_is_left(role: str) -> None:
    """Example C's one slot: from 9 to 10 one process exits while the other imports, half of the slot each."""
    run = derived(example_c_of_one_slot(role))
    metrics = with_metrics(run).metrics
    expected = {
        "slots.busy": 8,
        "slots.overhead": 7,
        "slots.idle": 1,
        "slots.crowded": 2,
        "overhead.process_start": (4 + 0.5 + 1) * 1000 / 2,
        "overhead.exit": 0.5 * 1000 / 2,  # the second exit is after the trial span
    }
    assert {name: metrics[name].value for name in expected} == pytest.approx(expected, rel=1e-12)
    assert flags(run) == CROWDED


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_process_that_ends_before_an_attempt_occupies_a_slot_and_is_in_the_record(is_refused: bool) -> None:
    log, spec = example_c()
    process = log.process("trial", 27.6)
    if is_refused:  # nobody saw its exit: it was there up to its last line
        process.add(schema.TrialRefused, 28.6, trial="5", reason="trials")
    else:
        process.exit(28.6, by=log.coordinator)
    run = derive(log.pairs(), spec)
    (one,) = run.without_attempt
    assert (one.process, one.started_ns, one.ended_ns) == (process.process.name, ns(27.6), ns(28.6))
    metrics = with_metrics(run).metrics
    assert metrics["slots.overhead"].value == pytest.approx(30.4 + 1)
    assert metrics["slots.idle"].value == pytest.approx(9.2 - 1)


def test_trials_that_overlap_on_a_slot_while_another_is_empty_break_the_sum_and_are_flagged() -> None:
    log = Log()
    log.step("deploy", 0, 0)
    for name, start, end in (("a", 0, 10), ("b", 4, 12)):
        log.submit(name, 0)
        process = log.process("trial", start)
        process.start(name, start, slot=0)
        process.end(name, end, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    assert presence_of(run).doubled == [(ns(4), ns(10))]
    assert flags(run) == ["trials_share_a_slot"]
    assert presence_of(derive(log.pairs(), make_spec(workers=Workers(count=1)))).doubled == []


@pytest.mark.parametrize(
    ("role", "second", "uncertainty_ms", "expected"),
    [
        ("trial", 4.995, None, []),  # within the grain of starts
        ("trial", 4.98, None, CROWDED),
        ("worker", 4.95, 100, []),  # it replaces a killed one, whose end was seen later than it was
        ("worker", 4.95, 20, CROWDED),
        ("pod", 4.2, None, []),  # exits of pods are dated to the second
        ("worker", 4.2, None, CROWDED),
    ],
)
def test_processes_that_overlap_are_flagged_only_if_both_were_there(
    role: str, second: float, uncertainty_ms: int | None, expected: list[str]
) -> None:
    log = Log()
    log.step("deploy", 0, 0)
    for number, (start, end) in enumerate(((0, 5), (second, 9))):
        log.submit(str(number), start)
        process = log.process(role, start)
        process.start(str(number), start + 1, slot=0)
        if number == 0 and uncertainty_ms is not None:
            late = {"by": "supervisor", "uncertainty_ns": uncertainty_ms * 1_000_000}
            log.process("supervisor", 0).add(schema.TrialEnded, end, trial="0", state="failed", epochs=0, **late)
        else:
            process.end(str(number), end, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec(workers=Workers(count=1)))
    assert presence_of(run).crowded == [(ns(second), ns(5))]
    assert flags(run) == expected


def test_more_processes_than_slots_share_them_all_evenly() -> None:
    log = Log()
    for number in range(3):
        log.submit(str(number), 0)
        process = log.process("trial", 0)
        process.start(str(number), 6 + number, slot=number % 2, imported=6)
        process.end(str(number), 7 + number, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    times = slot_times(presence_of(run), (0, ns(20)))
    # 0-6 both slots; then a trial has one, and who waits for the next the other; the third is alone from 8
    assert sum(time.busy_ns for time in times) == ns(3)
    assert sum(time.busy_ns + time.overhead_ns for time in times) == ns(2 * 6 + 2 + 2 + 1)
    assert flags(run) == CROWDED
