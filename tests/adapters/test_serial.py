"""The plain pool and a budget of epochs or seconds; everything else about it is in the contract tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.lifecycle_run import run_lifecycle
from tuneoff.events import schema


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
