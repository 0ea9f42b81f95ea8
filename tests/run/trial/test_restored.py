"""Checkpoints, attempts that go on from them, and trainings that end by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.event_logs import Log
from builders.specs import make_spec
from record.test_derive import one_trial, trial
from trial_runs import events_of, run, trial_context
from tuneoff.base.identity import configuration_digest
from tuneoff.errors import CheckpointError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events import schema
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint, write_checkpoint
from tuneoff.run.trial.run_trial import Decision
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff.workload import StateTensor


def walk(folder: Path, **changes: Any) -> TrialContext:
    folder.mkdir(exist_ok=True)
    return trial_context(folder, workload="trial_runs:Walk", epochs=5, **{"retries": 1, **changes})


def cut(context: TrialContext, after: int) -> None:
    """Let the first attempt at trial t0 end in the report of an epoch."""

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        if epoch == after:
            raise ConnectionError("storage is gone")
        return Decision.CONTINUE

    with pytest.raises(ConnectionError):
        run(context, report=report)


def epochs_of(folder: Path, attempt: int) -> list[tuple[int, bool]]:
    return [(event.epoch, event.restored) for event in events_of(folder, schema.Epoch) if event.attempt == attempt]


def test_a_retry_trains_again_what_came_after_the_best_epoch_and_restored_ones_use_no_tickets(tmp_path: Path) -> None:
    context = walk(tmp_path, workload_options={"falls": 2}, epochs_total=7)
    cut(context, after=4)
    assert run(context, attempt=2).state == "completed"
    assert epochs_of(tmp_path, 2) == [(1, True), (2, True), (3, False), (4, False), (5, False)]


def test_a_framework_may_stop_a_retry_at_an_epoch_that_it_restored(tmp_path: Path) -> None:
    context = walk(tmp_path)
    cut(context, after=3)
    outcome = run(context, report=lambda epoch, _: Decision.STOP if epoch == 2 else Decision.CONTINUE, attempt=2)
    assert (outcome.state, outcome.epochs) == ("pruned", 2)


@pytest.mark.parametrize(
    ("why", "is_flagged"),
    [
        ("broken", True),
        ("refused by the workload", True),
        ("other configuration", True),
        ("no training from it", False),
        ("no retries when it was written", False),
        ("first attempt", False),
    ],
)
def test_where_there_is_nothing_to_go_on_from_a_trial_begins_anew(tmp_path: Path, why: str, is_flagged: bool) -> None:
    workload = "trial_runs:Curve" if why == "no training from it" else "trial_runs:Walk"
    options = {"refuses": why == "refused by the workload"}
    retries = 0 if why == "no retries when it was written" else 1
    context = trial_context(tmp_path, workload=workload, epochs=5, workload_options=options, retries=retries)
    cut(context, after=3)
    if why == "broken":
        checkpoint_path(tmp_path, "t0").write_bytes(b"torn")
    again = run(context, x=0.5 if why == "other configuration" else 0.6, attempt=1 if why == "first attempt" else 2)
    assert again.state == "completed"
    assert not [event for event in events_of(tmp_path, schema.Epoch) if event.restored]
    assert [flag.name for flag in events_of(tmp_path, schema.Flag)] == ["checkpoint_lost"] * is_flagged


TENSORS = {
    "weights": StateTensor(dtype="F32", shape=(2, 3), data=bytes(range(24))),
    "generator": StateTensor(dtype="U8", shape=(5,), data=b"12345"),
    "step": StateTensor(dtype="I64", shape=(), data=(7).to_bytes(8, "little")),
}


def write(path: Path, epoch: int = 4) -> None:
    write_checkpoint(path, TENSORS, {"optimizer": "adam"}, epoch=epoch, configuration={"x": 1})


def test_a_checkpoint_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path / "c" / "t0.safetensors")
    checkpoint = read_checkpoint(tmp_path / "c" / "t0.safetensors")
    assert dict(checkpoint.tensors) == TENSORS
    assert (checkpoint.texts, checkpoint.epoch) == ({"optimizer": "adam"}, 4)


def test_equal_content_has_an_equal_digest_and_no_temporary_file_stays(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors")
    write(tmp_path / "b.safetensors")
    assert read_checkpoint(tmp_path / "a.safetensors").sha256 == read_checkpoint(tmp_path / "b.safetensors").sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.safetensors", "b.safetensors"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "garbage", "empty"])
def test_an_unreadable_checkpoint_is_an_error_and_never_a_restart(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t0.safetensors"
    write(path)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"truncated": content[:-3], "garbage": b"x" * 40, "empty": b""}[damage])
    with pytest.raises(CheckpointError, match="must be readable"):
        read_checkpoint(path)


PLANNED = 9  # of specs and contexts here


def stopping(tmp_path: Path, last: int, **changes: Any) -> Any:
    options = {"last": last, **changes.pop("workload_options", {})}
    return trial_context(tmp_path, epochs=PLANNED, workload_options=options, **changes)


@pytest.mark.parametrize(
    ("last", "options", "state", "epochs", "cause"),
    [
        (2, {}, "completed", 2, ""),
        (PLANNED, {}, "completed", PLANNED, ""),
        (0, {}, "failed", 0, "the training ended before its first epoch; a trial needs the metrics of at least one"),
        (2, {"ends_in_validate": True}, "failed", 0, "only `train_epoch` may raise it"),
    ],
)
def test_it_is_completed_and_says_so_itself_or_fails_with_the_rule(
    tmp_path: Path, last: int, options: dict[str, Any], state: str, epochs: int, cause: str
) -> None:
    outcome = run(stopping(tmp_path, last, workload_options=options))
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert (outcome.state, outcome.epochs, outcome.best_epoch) == (state, epochs, epochs or None)
    assert (end.state, end.epochs, end.ended_early) == (state, epochs, 0 < epochs < PLANNED)
    assert (end.charged, end.cause) == ("workload" if cause else None, outcome.cause)
    assert cause in (outcome.cause or "")
    assert ("(trial_runs.py:" in (outcome.cause or "")) is bool(options)


def test_a_decision_to_stop_at_its_last_epoch_prunes_it(tmp_path: Path) -> None:
    outcome = run(stopping(tmp_path, 2), report=lambda epoch, _: Decision.STOP if epoch == 2 else Decision.CONTINUE)
    assert (outcome.state, outcome.epochs) == ("pruned", 2)


def test_the_budget_of_epochs_is_used_by_trained_epochs_alone(tmp_path: Path) -> None:
    context = stopping(tmp_path, 2, epochs_total=5)
    assert [run(context, f"t{number}").state for number in range(2)] == ["completed", "completed"]
    budget = TrialBudget(context)
    assert (budget.epoch_tickets.taken, budget.is_used_up()) == (4, False)
    last = run(context, "t2")
    assert (last.state, last.epochs) == ("cancelled", 1)
    assert (budget.epoch_tickets.taken, budget.is_used_up()) == (5, True)
    budget.close()


def test_a_retry_goes_on_from_the_checkpoint_and_ends_where_the_training_ends(tmp_path: Path) -> None:
    context = stopping(tmp_path, 4, workload="trial_runs:Walk", retries=1)
    cut(context, after=3)
    outcome = run(context, attempt=2)
    assert (outcome.state, outcome.epochs) == ("completed", 4)
    assert epochs_of(tmp_path, 2) == [(1, True), (2, True), (3, True), (4, False)]


def test_one_whose_checkpoint_has_its_last_epoch_completes_without_training(tmp_path: Path) -> None:
    context = stopping(tmp_path, 2, workload="trial_runs:Walk", retries=1)
    run(context)
    assert run(context, attempt=2).epochs == 2


def ended_early(epochs: int = 2, **more: Any) -> tuple[Log, Any]:
    log, worker = one_trial(epochs=epochs)
    worker.end("1", 7, "completed", epochs, ended_early=True, **more)
    return log, worker


def spec(**more: Any) -> Any:
    return make_spec(epochs=PLANNED, **more)


@pytest.mark.parametrize("more", [{"by": "coordinator"}, {"by": "supervisor"}, {"ended_early": False}])
def test_only_its_own_word_counts(more: dict[str, Any]) -> None:
    log, worker = one_trial()
    writer = worker if "by" not in more else log.coordinator
    writer.end("1", 7, "completed", 2, **more)
    assert trial(log, spec()).state == "pruned"


@pytest.mark.parametrize(("epoch", "state"), [(1, "pruned"), (2, "pruned"), (3, "completed")])
def test_a_decision_on_one_of_its_epochs_came_first(epoch: int, state: str) -> None:
    log, _ = ended_early()
    log.coordinator.add(schema.StopDecided, 8, trial="1", epoch=epoch)  # read after the process was gone
    record = trial(log, spec())
    assert (record.state, record.stop_epoch) == (state, epoch if state == "pruned" else None)


@pytest.mark.parametrize(("stop", "losing"), [(1, 1), (2, 2), (5, None)])
def test_a_scripted_stop_after_its_end_is_not_due(stop: int, losing: int | None) -> None:
    scripted = spec(pruner="scripted", stops={configuration_digest({"x": 0.5}): stop})
    assert trial(ended_early()[0], scripted).stop_epoch == losing
