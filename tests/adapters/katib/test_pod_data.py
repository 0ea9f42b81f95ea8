"""A trial's data where the claim with a prepared cache folder is mounted: the pod's program reads them, and prepares nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.katib.test_pod import run_pod
from builders.katib_specs import plan_of, spec_of
from tuneoff.base.space import Float, SearchSpace
from tuneoff.experiment.spec import Budget, Objective, WorkloadSpec
from tuneoff.record.events import schema
from tuneoff_adapters.kubernetes import layout

PREPARE = "from tuneoff_workloads.mnist_mlp import MnistMlp; MnistMlp({'dataset': 'digits'}).prepare()"  # as documented


@pytest.mark.slow
def test_a_pod_trains_on_a_claim_that_the_documented_command_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(
        workload=WorkloadSpec(name="mnist_mlp", target="tuneoff_workloads.mnist_mlp:MnistMlp", options={"dataset": "digits"}),
        search_space=SearchSpace({"learning_rate": Float(low=1e-4, high=1e-1, log=True)}),
        objective=Objective(metric="validation_accuracy", mode="max"),
        budget=Budget(trials=2, epochs_per_trial=1),
        options={"image": "any.example/tuneoff:1", "namespace": "team", "data_claim": "prepared"},
    )
    claim = tmp_path / "claim"
    subprocess.run([sys.executable, "-c", PREPARE], env={**os.environ, "TUNEOFF_CACHE_DIR": str(claim)}, check=True, timeout=120)
    (variable,) = [name for name, value in plan_of(spec, tmp_path / "plan").environment.items() if value == layout.DATA_DIR]
    for name in ("TUNEOFF_DATA_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(variable, str(claim))
    before = {path: path.stat().st_mtime_ns for path in claim.rglob("*")}
    for path in [claim, *before]:
        path.chmod(0o555 if path.is_dir() else 0o444)  # it is mounted read-only
    try:
        ended = run_pod(spec, tmp_path, {"learning_rate": "0.01"})
    finally:
        for path in [claim, *before]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert ended.code == 0, ended.errors
    assert ended.event(schema.TrialEnded).state == "completed"
    assert {path: path.stat().st_mtime_ns for path in claim.rglob("*")} == before
