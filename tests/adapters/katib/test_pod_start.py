"""A trial's process starts lean: it imports no package that it does not need, before its trial or during it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from adapters.katib.test_pod import KATIB_TRIAL, RATE, environment_of
from builders.katib_specs import spec_of
from tuneoff.experiment.spec import Objective, RunSpec, WorkloadSpec
from tuneoff.experiment.strategies import sample_distinct
from tuneoff_adapters.kubernetes import layout

IMPORTED = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s*(\S+)")
CLIENTS = {"kubernetes", "kubeflow", "urllib3", "optuna", "ray", "syne_tune"}
CHECKERS = {"pydantic", "yaml", "msgspec", "rich"}  # of what people write, of records, of terminals
DATA = {"sklearn", "scipy", "pandas", "torchvision", "pyarrow"}
NETWORKS = {"numpy", "torch", "safetensors"}
PROCESSES = {"asyncio", "subprocess", "multiprocessing", "http", "email"}
ENTRY_POINTS = "importlib.metadata"
OF_THE_RUN = {
    *(f"tuneoff_adapters.katib.{name}" for name in ("adapter", "manifest", "plan", "platforms")),
    *("tuneoff_adapters.kubernetes.connection", "logging", "decimal", "sysconfig"),
}


def imports(program: list[str], environment: Mapping[str, str]) -> tuple[set[str], str]:
    """Run Python; return the names of the modules that it imported until its end, and its standard output.

    A module that is imported by `importlib.import_module` is not told by its own name, but what it imports is.
    """
    environment = {**environment, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run([sys.executable, *program], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    return set(IMPORTED.findall(done.stderr)), done.stdout


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def pod_imports(spec: RunSpec, folder: Path, **values: str) -> set[str]:
    """Run a whole trial's pod and return what it imported."""
    words = [f"{name}={value}" for name, value in values.items()]
    found, output = imports(["-m", layout.POD_MODULE, KATIB_TRIAL, *words], environment_of(spec, folder))
    (ended,) = [json.loads(line.partition(" ")[2]) for line in output.split("\n") if '{"type":"trial_ended"' in line]
    assert ended["state"] == "completed"
    return found


def test_a_null_trial_imports_the_standard_library_and_tuneoff_alone(tmp_path: Path) -> None:
    found = pod_imports(spec_of(search_space=RATE), tmp_path, learning_rate="0.01")
    assert "tuneoff.run.trial.run_trial" in found
    assert packages(found) & (CLIENTS | CHECKERS | DATA | NETWORKS | PROCESSES) == set()
    assert found & ({ENTRY_POINTS} | OF_THE_RUN) == set()


def test_what_is_imported_is_seen() -> None:
    found, _ = imports(["-c", "import tuneoff.experiment.load, tuneoff_adapters.katib.manifest"], os.environ)
    assert {"yaml", "msgspec"} <= packages(found) & CHECKERS
    assert "tuneoff_adapters.katib.plan" in found & OF_THE_RUN


@pytest.mark.slow
def test_a_trial_of_the_network_on_prepared_digits_imports_nothing_that_only_the_data_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuneoff_workloads.mnist_mlp import MnistMlp

    monkeypatch.setenv("TUNEOFF_CACHE_DIR", str(tmp_path / "cache"))
    options = {"dataset": "digits"}
    MnistMlp(options).prepare()
    space = MnistMlp.default_space()
    spec = spec_of(
        "fixed",
        workload=WorkloadSpec(name="mnist_mlp", target="tuneoff_workloads.mnist_mlp:MnistMlp", options=options),
        search_space=space,
        objective=Objective(metric="validation_accuracy", mode="max"),
        configurations=tuple(sample_distinct(space, 1, seed=1)),
    )
    found = packages(pod_imports(spec, tmp_path, configuration_index="0"))
    assert "torch" in found
    assert found & (CLIENTS | CHECKERS | DATA) == set()
