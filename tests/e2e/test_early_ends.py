"""Trainings that end by themselves, in every adapter: completed with equal epochs and values, whatever pruner there is."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import Call
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord

pytestmark = pytest.mark.slow(first=True)

LAST, PLANNED = 4, 9  # epochs
ADAPTERS: list[Any] = ["serial", "optuna", "ray-tune", "syne-tune", {"name": "katib", "platform": "emulated"}]
EXPERIMENT: dict[str, Any] = {
    "workload": "e2e.test_early_ends:train",
    "search_space": {"x": {"type": "float", "low": 0, "high": 1}},
    "objective": {"metric": "loss", "mode": "min"},
    "sampler": "fixed",
    "configurations": [{"x": x} for x in (0.5, 0.25, 0.75)],
    "budget": {"trials": 3, "epochs_per_trial": PLANNED},
    "workers": {"count": 2},
    "adapters": ADAPTERS,
    "warm_up": False,
}


def train(configuration: Mapping[str, float], seed: int) -> Iterator[Mapping[str, float]]:
    for epoch in range(1, LAST + 1):
        yield {"loss": configuration["x"] / epoch, "seed": seed}


def train_at_once_or_long(configuration: Mapping[str, float], seed: int) -> Iterator[Mapping[str, float]]:
    """End after one epoch where x is 0.75, else train better and better until the budget ends it."""
    for epoch in itertools.count(1):
        yield {"loss": configuration["x"] / epoch}
        if configuration["x"] == 0.75:
            return
        time.sleep(0.1)


def compared(call: Call, folder: Path, **changes: Any) -> list[RunRecord]:
    """Return the runs of a matrix that is done, verified, and whose adapters' values are equal."""
    (folder / "early.yaml").write_text(json.dumps({**EXPERIMENT, **changes}))
    assert call("compare", "early.yaml", "--no-report", "--output", "results").code == 0
    assert call("verify", "results").code == 0
    answer = json.loads(call("check", "--controls", "results", "--json").out)
    several = len(changes.get("adapters", ADAPTERS)) > 1
    assert {one["answer"] for one in answer["same_configurations"]} == ({"EQUAL"} if several else set())
    records = list(read_runs(folder / "results"))
    assert [record.reason for record in records if record.status != "done"] == []
    for record in records:
        assert record.best is not None
        assert record.best.trial == record.best.core_trial
    return records


def ends(record: RunRecord) -> dict[float, tuple[str, int]]:
    return {trial.configuration["x"]: (trial.state, len(trial.attempts[-1].epochs)) for trial in record.trials}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))


def test_a_scripted_stop_prunes_only_where_it_comes_no_later(call: Call, tmp_path: Path) -> None:
    stops = [{"index": index, "after_epoch": epoch} for index, epoch in enumerate((2, LAST, LAST + 2))]
    records = compared(call, tmp_path, pruner="scripted", stops=stops)
    assert len(records) == len(ADAPTERS)
    for record in records:
        found = ends(record)
        late = found.pop(0.5)  # Syne Tune looks from time to time, and this training takes no time
        assert late[0] == "pruned"
        assert 2 <= late[1] <= LAST
        assert found == {0.25: ("pruned", LAST), 0.75: ("completed", LAST)}, record.run_spec().adapter
        assert "scripted_stop_missed" not in {flag.name for flag in record.flags}
        assert record.metrics["trials.ended_early"].value == 1


def test_a_pruner_bears_trials_that_end_before_its_rungs(call: Call, tmp_path: Path) -> None:
    adapters = ["optuna", "ray-tune", "syne-tune"]
    pruner = {"name": "asha", "first_rung_epochs": LAST + 2}
    records = compared(call, tmp_path, pruner=pruner, adapters=adapters)
    assert len(records) == len(adapters)
    for record in records:
        assert set(ends(record).values()) == {("completed", LAST)}, record.run_spec().adapter
        assert record.metrics["epochs.trained"].value == 3 * LAST


def test_one_that_the_budget_cancelled_is_not_the_best_beside_one_that_ended(call: Call, tmp_path: Path) -> None:
    (record,) = compared(
        call,
        tmp_path,
        workload="e2e.test_early_ends:train_at_once_or_long",
        configurations=[{"x": 0.75}, {"x": 0.5}],
        budget={"trials": 2, "epochs_per_trial": 1000, "wall_clock_seconds": 3},
        workers={"count": 1},
        adapters=["ray-tune"],  # for which both have ended normally, once each epoch was told: one that told nothing failed
        reports="every_epoch",
    )
    found = ends(record)
    assert found[0.75] == ("completed", 1)
    assert found[0.5][0] == "cancelled"
    assert found[0.5][1] > 1
    assert record.best is not None
    assert record.best.framework_value == 0.75
