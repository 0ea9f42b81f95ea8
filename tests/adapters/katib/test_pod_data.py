"""A trial's data where the claim with a prepared cache folder is mounted: the pod's program reads them, and prepares nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.katib.test_pod import Ended, run_pod
from builders.katib_specs import plan_of, spec_of
from tuneoff.base.space import Float, SearchSpace
from tuneoff.experiment.spec import Budget, Objective, RunSpec, WorkloadSpec
from tuneoff.record.events import schema
from tuneoff_adapters.kubernetes import layout

TARGET = "tuneoff_workloads.mnist_mlp:MnistMlp"
OPTIONS = {"image": "any.example/tuneoff:1", "namespace": "team", "data_claim": "prepared"}
PREPARE = "from tuneoff_workloads.mnist_mlp import MnistMlp; MnistMlp({'dataset': 'digits'}).prepare()"  # as documented


def digits_spec() -> RunSpec:
    return spec_of(
        workload=WorkloadSpec(name="mnist_mlp", target=TARGET, options={"dataset": "digits"}),
        search_space=SearchSpace({"learning_rate": Float(low=1e-4, high=1e-1, log=True)}),
        objective=Objective(metric="validation_accuracy", mode="max"),
        budget=Budget(trials=2, epochs_per_trial=1),
        options=OPTIONS,
    )


def trial_with(claim: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """Run a pod's program with the variables of the plan, and with `claim` where /data would be."""
    spec = digits_spec()
    environment = plan_of(spec, folder / "plan").environment
    data = {name: value.replace(layout.DATA_DIR, str(claim)) for name, value in environment.items() if value == layout.DATA_DIR}
    assert set(data) == {"TUNEOFF_CACHE_DIR"}
    for name in ("TUNEOFF_DATA_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    for name, value in data.items():
        monkeypatch.setenv(name, value)
    return run_pod(spec, folder, {"learning_rate": "0.01"})


@pytest.mark.slow
def test_a_pod_trains_on_a_claim_that_the_documented_command_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = tmp_path / "claim"
    subprocess.run([sys.executable, "-c", PREPARE], env={**os.environ, "TUNEOFF_CACHE_DIR": str(claim)}, check=True, timeout=120)
    before = {path: path.stat().st_mtime_ns for path in claim.rglob("*")}
    for path in [claim, *before]:
        path.chmod(0o555 if path.is_dir() else 0o444)  # it is mounted read-only
    try:
        ended = trial_with(claim, tmp_path, monkeypatch)
    finally:
        for path in [claim, *before]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert ended.code == 0, ended.errors
    assert ended.event(schema.TrialEnded).state == "completed"
    assert {path: path.stat().st_mtime_ns for path in claim.rglob("*")} == before


@pytest.mark.slow
def test_a_claim_without_prepared_data_fails_the_trial_and_prepares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = tmp_path / "claim"
    claim.mkdir()
    ended = trial_with(claim, tmp_path, monkeypatch)
    assert ended.code != 0
    assert "the cached data are missing" in str(ended.event(schema.TrialEnded))
    assert list(claim.iterdir()) == []
