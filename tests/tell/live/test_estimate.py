"""The time left: by the nearest runs that ended, and none where nothing can be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builders.live_folders import Folder
from builders.live_states import LIVE
from builders.made_runs import made_run
from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.run_record import StepRecord
from tuneoff.tell.live.state import RuntimeEstimator


def test_a_run_takes_as_long_as_those_of_its_cell_its_framework_or_all(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results")
    left, of = RuntimeEstimator(folder.plan.runs).seconds, {key: spec.run_id for key, spec in folder.specs.items()}
    assert [left([of["serial", 0]], {}, live) for live in (None, LIVE)] == [None, None]
    assert [left([], {}, live) for live in (None, LIVE)] == [0, LIVE.seconds_left]
    took = {of["serial", 0]: 10.0, of["serial", 1]: 20.0}
    assert left([of["optuna", 1]], took, None) == 15.0
    assert left([of["serial", 2], of["optuna", 1]], {**took, of["optuna", 0]: 100.0}, None) == 115.0
    begun = replace(LIVE, run_id=of["serial", 1], seconds=15.0, completed=0, pruned=0, failed=0)
    took = {of["serial", 0]: 40.0}
    assert left([], took, begun) == 25.0  # before its first trial ended
    assert left([], took, replace(begun, seconds=99.0)) == 0.0
    assert left([of["serial", 2]], took, LIVE) == LIVE.seconds_left + 40.0  # type: ignore[operator]


def test_a_warm_up_tells_how_long_runs_of_its_framework_take_until_one_has_ended(tmp_path: Path) -> None:
    """2 s of 5 are its trials, of which a run has five times as many."""
    folder = Folder(tmp_path / "results", seeds=2)
    first = folder.plan.runs[0]
    budget = replace(first.spec.experiment.budget, trials=first.spec.experiment.budget.trials // 5)
    spec = replace(first.spec, warm_up=True, experiment=replace(first.spec.experiment, budget=budget))
    warm = replace(first, run_id=spec.run_id, spec=spec)
    estimate = RuntimeEstimator([warm, *folder.plan.runs])
    steps = tuple(
        StepRecord(step=step, started_ns=begin * NANOSECONDS, ended_ns=end * NANOSECONDS)  # type: ignore[arg-type]
        for step, begin, end in (("deploy", 0, 1), ("trial", 1, 3), ("undeploy", 3, 5))
    )
    seconds = estimate.taken(made_run(spec, [], steps=steps))
    assert seconds == 5 + 4 * 2
    took, second = {warm.run_id: seconds}, folder.specs["serial", 1].run_id
    assert estimate.seconds([first.run_id, second], took, None) == 26.0
    assert estimate.seconds([folder.specs["optuna", 0].run_id], took, None) is None, "another framework has its own"
    assert estimate.seconds([second], {**took, first.run_id: 9.0}, None) == 9.0
