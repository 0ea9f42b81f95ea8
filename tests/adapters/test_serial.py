"""The plain pool and a budget of epochs or seconds; everything else about it is in the contract tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.lifecycle_run import run_lifecycle
from trust.space_test.every_kind import context_of
from tuneoff.record.events import schema
from tuneoff.run.pool_adapter import Task
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.serial import SerialAdapter


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "most"),
    [({"epochs_total": 10}, 5), ({"wall_clock_seconds": 0.4, "workload_options": {"epoch_seconds": 0.05}}, 20)],
)
def test_nothing_is_proposed_once_the_budget_is_used_up(tmp_path: Path, limits: dict[str, Any], most: int) -> None:
    run = run_lifecycle(tmp_path, "tuneoff_adapters.serial:SerialAdapter", trials=200, epochs=3, **limits)
    assert run.exit_code == 0, run.log
    assert len(run.of(schema.Epoch)) == limits.get("epochs_total", len(run.of(schema.Epoch)))
    assert 2 <= len(run.of(schema.TrialSubmitted)) <= most
    assert len(run.of(schema.Refused)) <= 2  # each worker's last task may be on its way when the budget ends


@pytest.mark.parametrize("order", [("t00000", "t00001"), ("t00001", "t00000")])
def test_of_equal_values_the_earlier_trial_is_named_whichever_ended_first(tmp_path: Path, order: tuple[str, str]) -> None:
    adapter = SerialAdapter(context_of(SerialAdapter, 0, 2, tmp_path))
    adapter.setup()
    for trial_id in order:
        adapter.ended(Task(trial_id, {}, 0), TrialOutcome(state="completed", value=0.5))
    best = adapter.collect_results()
    assert best is not None
    assert best.trial_id == "t00000"
