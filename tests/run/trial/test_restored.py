"""A retry that goes on from its trial's checkpoint, and one that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trial_runs import events_of, run, trial_context
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events import schema
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.run.trial.run_trial import Decision


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


def test_a_retry_goes_on_from_the_checkpoint_as_if_never_interrupted(tmp_path: Path) -> None:
    whole = run(walk(tmp_path / "whole"))
    context = walk(tmp_path / "cut")
    cut(context, after=3)
    told: list[int] = []
    again = run(context, report=lambda epoch, _: told.append(epoch) or Decision.CONTINUE, attempt=2)  # type: ignore[func-returns-value]
    assert again == whole
    assert told == [1, 2, 3, 4, 5]
    assert epochs_of(tmp_path / "cut", 2) == [(1, True), (2, True), (3, True), (4, False), (5, False)]
    metrics = [
        [(event.metrics, event.non_finite) for event in events_of(tmp_path / name, schema.Epoch) if event.attempt == attempt]
        for name, attempt in (("whole", 1), ("cut", 2))
    ]
    assert metrics[0] == metrics[1]
    checkpoints = [read_checkpoint(checkpoint_path(tmp_path / name, "t0")).sha256 for name in ("whole", "cut")]
    assert checkpoints[0] == checkpoints[1]


def test_a_retry_trains_again_what_came_after_the_best_epoch(tmp_path: Path) -> None:
    context = walk(tmp_path, workload_options={"falls": 2})
    cut(context, after=4)
    run(context, attempt=2)
    assert epochs_of(tmp_path, 2) == [(1, True), (2, True), (3, False), (4, False), (5, False)]


def test_restored_epochs_use_no_tickets(tmp_path: Path) -> None:
    context = walk(tmp_path, epochs_total=5)
    cut(context, after=3)
    assert run(context, attempt=2).state == "completed"


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
