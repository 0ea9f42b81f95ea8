"""What a failed run's reason says of its trials and of its best trial."""

from __future__ import annotations

from builders.event_logs import Log
from builders.specs import make_spec
from tuneoff.record.derive import derive
from tuneoff.record.events import schema


def end_of(*causes: str | None) -> tuple[str, str | None, str | None]:
    """Return the end of a run whose trials failed by these causes; None: that trial was pruned."""
    log = Log()
    for number, cause in enumerate(causes):
        log.submit(f"t{number}", 1)
        worker = log.process("worker", 1)
        worker.start(f"t{number}", 2, slot=number)
        if cause is None:
            worker.end(f"t{number}", 9, "pruned", 0)
        else:
            worker.end(f"t{number}", 9, "failed", 0, cause=cause, charged="framework" if cause == "c" else "workload")
    log.step("undeploy", 10, 11)
    run = derive(log.pairs(), make_spec())
    return run.status, run.reason, run.charged


def test_a_run_of_failed_trials_names_their_most_frequent_cause_and_charges_who_they_charge() -> None:
    assert end_of("a", "a", "a") == ("failed", "no trial completed: 3 of 3 failed: a", "workload")
    assert end_of("b", "a", "a", None) == ("failed", "no trial completed: 3 of 4 failed, 2 of them: a", "workload")
    assert end_of("c", "c", "a")[2] == "framework"
    assert end_of(None, None) == ("failed", "no trial completed", "framework")


def with_best(trial: str, error: str | None) -> tuple[str, str | None, str | None]:
    log = Log()
    for name in ("t0", "t1", "t2", "t3"):
        log.submit(name, 1)
        worker = log.process("worker", 1)
        worker.start(name, 2, slot=0)
        for epoch in range(1, 5):
            worker.epoch(name, epoch, 2 + epoch, 0.5, reported=2 + epoch)
        worker.end(name, 9, "completed", 4)
    log.step("collect", 10, 11)
    log.coordinator.add(schema.BestKnown, 11, trial=trial, value=0.5)
    log.step("test", 11, 12, **({} if error is None else {"error": error, "charged": "workload"}))
    log.step("undeploy", 12, 13)
    run = derive(log.pairs(), make_spec(trials=4))
    return run.status, run.reason, run.charged


def test_a_best_trial_that_was_never_submitted_is_named_and_not_the_failed_test_that_follows_from_it() -> None:
    text = "collect_results named trial '7' as the best, which was never submitted; submitted: t0 ... t3"
    assert with_best("7", None) == ("failed", text, "framework")
    assert with_best("7", "CheckpointError: no such file") == ("failed", text, "framework")
    assert with_best("t1", "ValueError: x") == ("failed", "step test failed: ValueError: x", "workload")
