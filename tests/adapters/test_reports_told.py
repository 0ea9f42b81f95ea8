"""Of which epochs each framework is told without a pruner, in whole runs: what it knows then, and that its best is core's."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from adapters.lifecycle_run import run_lifecycle
from tuneoff.capabilities import Reports
from tuneoff.record.events import schema

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
@pytest.mark.parametrize(
    "name", ["optuna.adapter:OptunaAdapter", "ray_tune.adapter:RayTuneAdapter", "syne_tune.adapter:SyneTuneAdapter"]
)
def test_a_frameworks_best_is_the_best_epoch_whatever_it_is_told(tmp_path: Path, name: str, is_needed: bool) -> None:
    reports: Reports = NEEDED[name] if is_needed else "every_epoch"
    run = run_lifecycle(tmp_path, f"tuneoff_adapters.{name}", trials=TRIALS, epochs=EPOCHS, reports=reports)
    each = {"none": 0, "at_end": 1, "every_epoch": EPOCHS}[reports]
    assert len(run.of(schema.Reported)) == TRIALS * each
    assert set(run.ends.values()) == {"completed"}
    (best,) = run.of(schema.BestKnown)
    values = [value for event in run.of(schema.Epoch) if (value := event.metrics["loss"]) is not None]
    assert best.value == pytest.approx(min(values))
    if name.startswith("optuna"):
        storage = JournalStorage(JournalFileBackend(str(run.folder / "framework" / "journal.log")))
        known = [len(trial.intermediate_values) for trial in optuna.load_study(study_name=None, storage=storage).trials]
        assert known == [each] * TRIALS
