"""The time left: by the nearest runs that ended, and none where nothing can be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.live_states import LIVE
from builders.made_runs import made_run
from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.run_record import StepRecord
from tuneoff.tell.live.state import RuntimeEstimator


@pytest.fixture
def ids(tmp_path: Path) -> tuple[RuntimeEstimator, dict[tuple[str, int], str]]:
    folder = Folder(tmp_path / "results")
    return RuntimeEstimator(folder.plan.runs), {key: spec.run_id for key, spec in folder.specs.items()}


def test_a_run_takes_as_long_as_those_of_its_cell(ids: tuple[RuntimeEstimator, dict[tuple[str, int], str]]) -> None:
    estimate, of = ids
    took = {of["serial", 0]: 10.0, of["serial", 1]: 20.0, of["optuna", 0]: 100.0}
    assert estimate.seconds([of["serial", 2]], took, None) == 15.0
    assert estimate.seconds([of["serial", 2], of["optuna", 1]], took, None) == 115.0
    del took[of["optuna", 0]]
    assert estimate.seconds([of["optuna", 1]], took, None) == 15.0  # of all, where its adapter has none


def test_the_current_run_counts_with_what_is_left_of_it(ids: tuple[RuntimeEstimator, dict[tuple[str, int], str]]) -> None:
    estimate, of = ids
    took = {of["serial", 0]: 40.0}
    begun = replace(LIVE, run_id=of["serial", 1], seconds=15.0, completed=0, pruned=0, failed=0)
    assert estimate.seconds([], took, begun) == 25.0  # before its first trial ended
    assert estimate.seconds([], took, replace(begun, seconds=99.0)) == 0.0
    assert estimate.seconds([of["serial", 2]], took, LIVE) == LIVE.seconds_left + 40.0  # type: ignore[operator]


def test_nothing_is_said_before_it_is_known(ids: tuple[RuntimeEstimator, dict[tuple[str, int], str]]) -> None:
    estimate, of = ids
    assert estimate.seconds([of["serial", 0]], {}, None) is None
    assert estimate.seconds([of["serial", 0]], {}, LIVE) is None
    assert estimate.seconds([], {}, LIVE) == LIVE.seconds_left
    assert estimate.seconds([], {}, None) == 0


def test_a_warm_up_tells_how_long_runs_of_its_framework_take_until_one_has_ended(tmp_path: Path) -> None:
    """2 s of 5 are its trials, of which a run has five times as many."""
    folder = Folder(tmp_path / "results", seeds=2)
    first = folder.plan.runs[0]
    budget = replace(first.spec.experiment.budget, trials=first.spec.experiment.budget.trials // 5)
    spec = replace(first.spec, warm_up=True, experiment=replace(first.spec.experiment, budget=budget))
    warm = replace(first, run_id=spec.run_id, spec=spec)
    estimate = RuntimeEstimator([warm, *folder.plan.runs])
    steps = (
        StepRecord(step="deploy", started_ns=0, ended_ns=1 * NANOSECONDS),
        StepRecord(step="trial", started_ns=1 * NANOSECONDS, ended_ns=3 * NANOSECONDS),
        StepRecord(step="undeploy", started_ns=3 * NANOSECONDS, ended_ns=5 * NANOSECONDS),
    )
    seconds = estimate.taken(made_run(spec, [], steps=steps))
    assert seconds == 5 + 4 * 2
    took = {warm.run_id: seconds}
    own, other = first.run_id, folder.specs["optuna", 0].run_id
    assert estimate.seconds([own, folder.specs["serial", 1].run_id], took, None) == 26.0
    assert estimate.seconds([other], took, None) is None, "another framework has a warm-up of its own"
    assert estimate.seconds([folder.specs["serial", 1].run_id], {**took, own: 9.0}, None) == 9.0
