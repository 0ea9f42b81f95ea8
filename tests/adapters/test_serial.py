"""The adapter without a framework, the start of workers, and which epochs a framework is told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from adapters.lifecycle_run import run_lifecycle
from builders.specs import toy_spec
from trust.space_test.every_kind import context_of
from tuneoff.adapter import Adapter
from tuneoff.base.capabilities import Reports
from tuneoff.base.targets import load_target
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
    assert len(run.of(schema.TrialRefused)) <= 2  # each worker's last task may be on its way when the budget ends


@pytest.mark.parametrize("order", [("t00000", "t00001"), ("t00001", "t00000")])
def test_of_equal_values_the_earlier_trial_is_named_whichever_ended_first(tmp_path: Path, order: tuple[str, str]) -> None:
    adapter = SerialAdapter(context_of(SerialAdapter, 0, 2, tmp_path))
    adapter.setup()
    for trial_id in order:
        adapter.ended(Task(trial_id, {}, 0), TrialOutcome(state="completed", value=0.5))
    best = adapter.collect_results()
    assert best is not None
    assert best.trial_id == "t00000"


ADAPTERS = {
    "serial": "tuneoff_adapters.serial:SerialAdapter",
    "optuna": "tuneoff_adapters.optuna.adapter:OptunaAdapter",
    "nevergrad": "tuneoff_adapters.nevergrad:NevergradAdapter",
    "rustuna": "tuneoff_adapters.rustuna:RustunaAdapter",
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_workers_are_fresh_interpreters_unless_a_run_says_otherwise(name: str) -> None:
    adapter: type[Adapter] = load_target(ADAPTERS[name])
    fresh, forked = toy_spec(name), toy_spec(name, options={"start": "forkserver"})
    assert adapter.refuse(fresh) is None
    assert adapter.refuse(forked) is None
    assert fresh.run_id != forked.run_id
    assert set(adapter.changed_defaults(forked)) > set(adapter.changed_defaults(fresh))
    assert any("forked" in text for text in adapter.changed_defaults(forked))
    refusal = adapter.refuse(toy_spec(name, options={"start": "fork"}))
    assert refusal is not None
    assert "`start` must be forkserver" in refusal
    assert "'fork'" in refusal


NEEDED: dict[str, Reports] = {
    "serial:SerialAdapter": "none",
    "optuna.adapter:OptunaAdapter": "none",
    "ray_tune.adapter:RayTuneAdapter": "at_end",
    "syne_tune.adapter:SyneTuneAdapter": "at_end",
    "katib.adapter:KatibAdapter": "at_end",
    "rustuna:RustunaAdapter": "none",
    "nevergrad:NevergradAdapter": "none",
}
TRIALS, EPOCHS = 4, 3


@pytest.mark.slow
@pytest.mark.parametrize("is_needed", [True, False])
def test_optunas_best_is_the_best_epoch_whatever_it_is_told(tmp_path: Path, is_needed: bool) -> None:
    """Looked at in its own study; of every adapter the contract asks it."""
    reports: Reports = "none" if is_needed else "every_epoch"
    run = run_lifecycle(tmp_path, ADAPTERS["optuna"], trials=TRIALS, epochs=EPOCHS, reports=reports)
    each = 0 if is_needed else EPOCHS
    assert len(run.of(schema.Reported)) == TRIALS * each
    assert set(run.ends.values()) == {"completed"}
    (best,) = run.of(schema.BestKnown)
    values = [value for event in run.of(schema.Epoch) if (value := event.metrics["loss"]) is not None]
    assert best.value == pytest.approx(min(values))
    storage = JournalStorage(JournalFileBackend(str(run.folder / "framework" / "journal.log")))
    known = [len(trial.intermediate_values) for trial in optuna.load_study(study_name=None, storage=storage).trials]
    assert known == [each] * TRIALS


def test_who_has_no_pruner_cannot_be_told_of_every_epoch() -> None:
    told = {name: load_target(f"tuneoff_adapters.{name}").capabilities.reports_with("none", "every_epoch") for name in NEEDED}
    assert [name for name, reports in told.items() if reports == "none"] == [
        "serial:SerialAdapter",
        "rustuna:RustunaAdapter",
        "nevergrad:NevergradAdapter",
    ]
