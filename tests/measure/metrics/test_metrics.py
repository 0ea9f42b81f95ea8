from __future__ import annotations

from dataclasses import replace

import pytest

from builders.event_logs import Log, example_a, example_b, ns
from builders.specs import make_spec
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.incumbent import test_counterpart
from tuneoff.measure.presence import presence_of
from tuneoff.measure.slots import slot_times
from tuneoff.measure.spans import partition_ns
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord


def run_of(example: tuple[Log, RunSpec]) -> RunRecord:
    return derive(example[0].pairs(), example[1])


def value(run: RunRecord, name: str) -> float | None:
    return with_metrics(run).metrics[name].value


def reason(run: RunRecord, name: str) -> str | None:
    return with_metrics(run).metrics[name].reason_if_null


@pytest.mark.parametrize(
    ("number", "why", "coverage"),
    [(None, None, None), (None, "", None), (1.0, "there is one", None), (float("nan"), None, None), (1.0, None, 1.5)],
)
def test_a_value_that_contradicts_itself_is_refused(number: float | None, why: str | None, coverage: float | None) -> None:
    with pytest.raises(ValueError, match="but got"):
        MetricValue(value=number, unit="ms", reason_if_null=why, coverage=coverage)


def test_two_trials_that_overlap_on_a_slot_share_its_time_and_are_told() -> None:
    """The planted defect of the slot accounting: without it, overlap is 0 and nothing is shared."""
    log = Log()
    log.submit("a", 0)
    log.submit("b", 0)
    one, two = log.process("trial", 0), log.process("trial", 10)
    one.start("a", 0, slot=0)
    one.epoch("a", 1, 10, reported=20)  # waits while b is busy
    one.end("a", 20, "failed", 1, cause="x", charged="workload")
    two.start("b", 10, slot=0)
    two.end("b", 30, "failed", 0, cause="x", charged="workload")
    run = derive(log.pairs(), make_spec())
    used, unused = slot_times(presence_of(run), (0, ns(40)))
    assert (used.busy_ns, used.overhead_ns, used.idle_ns, used.overlapped_ns) == (ns(25), ns(5), ns(10), ns(10))
    assert (unused.busy_ns, unused.overhead_ns, unused.idle_ns) == (0, 0, ns(40))
    assert value(run, "slots.overlapped") == 10
    assert value(run, "slots.greatest_overlap") == 2
    assert value(run_of(example_b()), "slots.overlapped") == 0


@pytest.mark.parametrize(("uncertainty_ms", "most"), [(0, 2), (1, 2), (3, 1)])
def test_an_end_that_was_seen_late_makes_no_overlap(uncertainty_ms: int, most: int) -> None:
    """A killed trial's slot is free at once, but its death is seen at the supervisor's next look."""
    log = Log()
    log.submit("a", 0)
    log.submit("b", 0)
    one, two, supervisor = log.process("trial", 0), log.process("trial", 10), log.process("supervisor", 0)
    one.start("a", 0, slot=0)
    late = {"by": "supervisor", "uncertainty_ns": ns(uncertainty_ms)}
    supervisor.add(schema.TrialEnded, 12, trial="a", state="failed", epochs=0, **late)
    two.start("b", 10, slot=0)
    two.end("b", 30, "failed", 0, cause="x", charged="workload")
    assert value(derive(log.pairs(), make_spec()), "slots.greatest_overlap") == most


def test_without_a_completed_trial_what_needs_a_best_is_null_and_the_jct_stays() -> None:
    log, spec = example_a()
    events = log.coordinator.events
    events[:] = [event for event in events if not isinstance(event, schema.BestKnown | schema.Tested)]
    events[:] = [event for event in events if getattr(event, "step", "") != "test"]
    run = derive(log.pairs(), spec)
    run = replace(run, trials=tuple(replace(trial, state="pruned") for trial in run.trials))
    assert value(run, "time.jct") == 176_000
    for name in ("result_collection", "test", "evaluation", "optimization"):
        assert reason(run, f"time.{name}"), name
    assert reason(run, "slots.idle")
    assert reason(run, "quality.validation")
    assert value(run, "time.metric_collection") == 1_000
    assert value(run, "time.unassigned") == 8_000  # from the last trial's end to the start of metric collection


def test_a_trial_seen_to_end_after_the_best_was_known_makes_no_part_negative() -> None:
    log, spec = example_a()
    late = log.process("supervisor", 0)
    late.add(schema.TrialEnded, 166, trial="3", state="pruned", epochs=2, by="supervisor")
    log.writers[1].events.pop()  # its own end
    parts = partition_ns(derive(log.pairs(), spec))
    assert (parts["result_collection"], parts["test"], parts["unassigned"]) == (0, ns(4), 0)


@pytest.mark.parametrize(
    ("metric", "scores", "counterpart"),
    [
        ("validation_accuracy", ["test_loss", "test_accuracy"], "test_accuracy"),
        ("val_loss", ["loss"], "loss"),
        ("accuracy", ["accuracy"], "accuracy"),
        ("accuracy", ["loss"], None),
    ],
)
def test_the_objective_finds_its_counterpart_among_the_test_scores(
    metric: str, scores: list[str], counterpart: str | None
) -> None:
    assert test_counterpart(metric, scores) == counterpart


def test_refusals_and_submitted_trials_that_never_started_are_counted_apart() -> None:
    log, spec = example_a()
    log.submit("4", 113, x=0.4)
    log.submit("5", 114, x=0.5)
    log.writers[1].add(schema.TrialRefused, 115, trial="5", reason="trials")
    run = derive(log.pairs(), spec)
    counts = [value(run, f"trials.{name}") for name in ("submitted", "used", "never_started", "refused", "cancelled")]
    assert counts == [5, 3, 1, 1, 0]
    assert value(run, "trials.of_budget") == 100
